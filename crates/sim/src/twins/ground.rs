//! Ground of all runs of Twins: committees, their keys and their timeout.

use super::plan::{MEMBERS, NextEpoch, Plan, Successor};
use quorate_consensus::{ProposalKey, ProtocolKind, Verifier};
use quorate_crypto::{IdentitySecret, KeyCache, KeyFile, SchemeKind, VotingSecret};
use quorate_deterministic::genesis;
use quorate_engine::EpochStart;
use quorate_types::{
    Committee, CommitteeFile, HandOver, HandedOver, HandedOverError, Header, Height, ReplicaId,
    Weights,
};
use std::sync::Arc;
use std::time::Duration;

/// Time that a view may take.
pub(super) const TIMEOUT: Duration = Duration::from_millis(100);

/// Committees and keys, shared by all runs.
pub struct Ground {
    first: Members,
    /// The same members in the epoch after it.
    later: Members,
    /// By index, the keys of members that join a next committee there, or get other keys.
    spare: Vec<KeyFile>,
    protocol: ProtocolKind,
}

/// A committee, and its members' keys by index.
#[derive(Clone)]
struct Members {
    committee: Arc<Committee>,
    keys: Arc<[KeyFile]>,
}

/// One epoch of a run: its members, what they run, and how it began.
pub(super) struct EpochGround {
    members: Members,
    protocol: ProtocolKind,
    pub(super) start: EpochStart,
}

impl Ground {
    /// Four members with stub keys that run this protocol.
    #[must_use]
    pub fn of(protocol: ProtocolKind) -> Self {
        let (weights, scheme) = (Weights::equal(MEMBERS), SchemeKind::Stub);
        let (keys, groups) = genesis::member_keys(0, scheme, &weights);
        let file = genesis::committee_file(0, scheme, &keys, groups, &weights);
        let committee = Committee::load_simulated(&file, KeyCache::Off).expect("fresh keys");
        let keys: Arc<[KeyFile]> = keys.into();
        let later = Arc::new(epoch_after(&committee, &file));
        let later = Members { committee: later, keys: Arc::clone(&keys) };
        let first = Members { committee: Arc::new(committee), keys };
        let spare = genesis::learner_keys(0, scheme, MEMBERS);
        Self { first, later, spare, protocol }
    }

    /// Protocol that its members run.
    #[must_use]
    pub fn protocol(&self) -> ProtocolKind {
        self.protocol
    }

    /// The epoch that a plan begins in.
    pub(super) fn epoch(&self, plan: &Plan) -> EpochGround {
        let is_first = plan.begins_after == Height(0);
        let members = if is_first { &self.first } else { &self.later }.clone();
        let header = Header { height: plan.begins_after, ..Header::default() };
        let start = EpochStart::from_state(header);
        EpochGround { members, protocol: self.protocol, start }
    }

    /// The epoch after `ended` that this hand-over, signed by a quorum of it, leads to.
    ///
    /// # Errors
    /// The first rule that the hand-over breaks.
    pub(super) fn epoch_after(
        &self,
        ended: &EpochGround,
        next: &NextEpoch,
        step: &HandedOver,
    ) -> Result<EpochGround, HandedOverError> {
        let committee = Arc::new(step.check(ended.committee(), KeyCache::Off)?);
        let start = EpochStart::after(committee.network(), std::slice::from_ref(step));
        let members = Members { committee, keys: self.keys_of(next).into() };
        Ok(EpochGround { members, protocol: next.protocol.unwrap_or(self.protocol), start })
    }

    /// File of the committee after the first.
    pub(super) fn file_of(&self, next: &NextEpoch) -> CommitteeFile {
        let (weights, scheme) = (Weights::equal(MEMBERS), SchemeKind::Stub);
        let file = genesis::committee_file(0, scheme, &self.keys_of(next), None, &weights);
        let mut file = following(&self.first.committee, &file);
        file.settings.protocol = next.protocol.unwrap_or(self.protocol).to_string();
        file
    }

    fn keys_of(&self, next: &NextEpoch) -> Vec<KeyFile> {
        let own = |member: ReplicaId| self.first.keys[member.index()].clone();
        let keys = |(successor, spare): (&Successor, &KeyFile)| match *successor {
            Successor::Stays(member) => own(member),
            Successor::Renews(member) => {
                KeyFile { identity: own(member).identity, voting: spare.voting.clone() }
            }
            Successor::Joins => spare.clone(),
        };
        next.members.iter().zip(&self.spare).map(keys).collect()
    }
}

impl EpochGround {
    pub(super) fn committee(&self) -> &Arc<Committee> {
        &self.members.committee
    }

    pub(super) fn has_fast_path(&self) -> bool {
        self.protocol.windowed_rules().is_some_and(|rules| rules.fast_path)
    }

    /// Proposals are signed with the voting key too: stubs cost next to nothing.
    pub(super) fn verifier(&self) -> Arc<Verifier> {
        let committee = Arc::clone(self.committee());
        let verifier = Verifier::new(committee, self.protocol, ProposalKey::Voting);
        Arc::new(verifier.starting_after(self.start.anchor()))
    }

    pub(super) fn keys(&self, member: ReplicaId) -> (Arc<IdentitySecret>, Arc<VotingSecret>) {
        let KeyFile { identity, voting } = self.members.keys[member.index()].clone();
        (Arc::new(identity), Arc::new(voting))
    }
}

/// The members of an epoch in the one after it, whatever height and state that begins with.
fn epoch_after(ended: &Committee, file: &CommitteeFile) -> Committee {
    let file = following(ended, file);
    let hand_over = HandOver { file: file.digest(), ..HandOver::default() };
    Committee::load_simulated_after(&file, &hand_over, KeyCache::Off).expect("the same keys")
}

/// The file as that of the epoch after this committee's.
fn following(ended: &Committee, file: &CommitteeFile) -> CommitteeFile {
    let (network, epoch) = (Some(ended.network()), ended.epoch().next());
    let file = CommitteeFile { network, epoch, ..file.clone() };
    ended.check_next(&file).expect("it is the next");
    file
}
