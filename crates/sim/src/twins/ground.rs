//! Ground of all runs of Twins: committees, their keys and their timeout.

use super::plan::{MEMBERS, NextEpoch, Plan, Successor};
use quorate_consensus::{ProposalKey, ProtocolKind, Verifier};
use quorate_crypto::{
    Aggregate, Bitmap, Certificate, IdentitySecret, KeyCache, KeyFile, SchemeKind, VotingSecret,
};
use quorate_deterministic::genesis;
use quorate_engine::EpochStart;
use quorate_types::{
    Committee, CommitteeFile, HandOver, HandedOver, HandedOverError, Header, Height, ReplicaId,
    SignedHandOver, Weights,
};
use std::sync::Arc;
use std::time::Duration;

/// Time that a view may take.
pub(super) const TIMEOUT: Duration = Duration::from_millis(100);

/// Committees and keys, shared by all runs.
pub struct Ground {
    first: Members,
    /// The same members in the epoch after it, and the step that led there.
    later: (Members, HandedOver),
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
    /// Steps that led to it.
    steps: Vec<HandedOver>,
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
        let (later, step) = epoch_after(&committee, &file);
        let later = Members { committee: Arc::new(later), keys: Arc::clone(&keys) };
        let first = Members { committee: Arc::new(committee), keys };
        let spare = genesis::learner_keys(0, scheme, MEMBERS);
        Self { first, later: (later, step), spare, protocol }
    }

    /// Protocol that its members run.
    #[must_use]
    pub fn protocol(&self) -> ProtocolKind {
        self.protocol
    }

    /// The epoch that a plan begins in.
    pub(super) fn epoch(&self, plan: &Plan) -> EpochGround {
        let header = Header { height: plan.begins_after, ..Header::default() };
        let (members, steps) = match (&self.later, plan.begins_after) {
            (_, Height(0)) => (&self.first, Vec::new()),
            ((members, step), _) => (members, vec![step.clone()]),
        };
        let (members, protocol) = (members.clone(), self.protocol);
        EpochGround { members, protocol, steps, start: EpochStart::from_state(header) }
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
        let steps: Vec<HandedOver> = ended.steps.iter().chain([step]).cloned().collect();
        let start = EpochStart::after(committee.network(), &steps);
        let members = Members { committee, keys: self.keys_of(next).into() };
        let protocol = next.protocol.unwrap_or(self.protocol);
        Ok(EpochGround { members, protocol, steps, start })
    }

    /// File of the committee after that of an epoch.
    pub(super) fn file_after(&self, ended: &EpochGround, next: &NextEpoch) -> CommitteeFile {
        let (weights, scheme) = (Weights::equal(MEMBERS), SchemeKind::Stub);
        let file = genesis::committee_file(0, scheme, &self.keys_of(next), None, &weights);
        let mut file = following(ended.committee(), &file);
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

/// The members of an epoch in the one after it, whatever height and state that begins with; nobody
/// has to sign the step.
fn epoch_after(ended: &Committee, file: &CommitteeFile) -> (Committee, HandedOver) {
    let file = following(ended, file);
    let content = HandOver { file: file.digest(), ..HandOver::default() };
    let next = Committee::load_simulated_after(&file, &content, KeyCache::Off);
    let signers = Bitmap::new(ended.size());
    let certificate = Certificate { signers, aggregate: Aggregate(Vec::new()) };
    let signed = SignedHandOver { content, certificate };
    let step = HandedOver { signed, header: Header::default(), file };
    (next.expect("the same keys"), step)
}

/// The file as that of the epoch after this committee's.
fn following(ended: &Committee, file: &CommitteeFile) -> CommitteeFile {
    let (network, epoch) = (Some(ended.network()), ended.epoch().next());
    let file = CommitteeFile { network, epoch, ..file.clone() };
    ended.check_next(&file).expect("it is the next");
    file
}
