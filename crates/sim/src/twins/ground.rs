//! Ground of all runs of Twins: a committee, its keys and its timeout.

use super::plan::{MEMBERS, Plan};
use quorate_consensus::{ProposalKey, ProtocolKind, Verifier};
use quorate_crypto::{IdentitySecret, KeyCache, SchemeKind, VotingSecret};
use quorate_deterministic::genesis;
use quorate_types::{Anchor, Committee, CommitteeFile, HandOver, Height, ReplicaId, Weights};
use std::sync::Arc;
use std::time::Duration;

/// Time that a view may take.
pub(super) const TIMEOUT: Duration = Duration::from_millis(100);

/// A committee and its keys, shared by all runs.
pub struct Ground {
    pub(super) committee: Arc<Committee>,
    /// The same members in the epoch after it.
    later: Arc<Committee>,
    keys: Vec<(Arc<IdentitySecret>, Arc<VotingSecret>)>,
    protocol: ProtocolKind,
}

impl Ground {
    /// Four members with stub keys that run this protocol.
    #[must_use]
    pub fn of(protocol: ProtocolKind) -> Self {
        let (weights, scheme) = (Weights::equal(MEMBERS), SchemeKind::Stub);
        let (keys, groups) = genesis::member_keys(0, scheme, &weights);
        let file = genesis::committee_file(0, scheme, &keys, groups, &weights);
        let committee = Committee::load_simulated(&file, KeyCache::Off).expect("fresh keys");
        let later = Arc::new(epoch_after(&committee, file));
        let keys = keys.into_iter().map(|keys| (Arc::new(keys.identity), Arc::new(keys.voting)));
        Self { committee: Arc::new(committee), later, keys: keys.collect(), protocol }
    }

    /// Protocol that its members run.
    #[must_use]
    pub fn protocol(&self) -> ProtocolKind {
        self.protocol
    }

    pub(super) fn has_fast_path(&self) -> bool {
        self.protocol.windowed_rules().is_some_and(|rules| rules.fast_path)
    }

    /// Proposals are signed with the voting key too: stubs cost next to nothing.
    pub(super) fn verifier(&self, plan: &Plan) -> Arc<Verifier> {
        let is_first = plan.begins_after == Height(0);
        let committee = Arc::clone(if is_first { &self.committee } else { &self.later });
        let verifier = Verifier::new(committee, self.protocol, ProposalKey::Voting);
        let anchor = Anchor { height: plan.begins_after, proposed_at_ms: 0 };
        Arc::new(verifier.starting_after(anchor))
    }

    pub(super) fn keys(&self, member: ReplicaId) -> (Arc<IdentitySecret>, Arc<VotingSecret>) {
        self.keys[member.index()].clone()
    }
}

/// The members of an epoch in the one after it, whatever height and state that begins with.
fn epoch_after(ended: &Committee, file: CommitteeFile) -> Committee {
    let (network, epoch) = (Some(ended.network()), ended.epoch().next());
    let file = CommitteeFile { network, epoch, ..file };
    ended.check_next(&file).expect("it is the next");
    let hand_over = HandOver { file: file.digest(), ..HandOver::default() };
    Committee::load_simulated_after(&file, &hand_over, KeyCache::Off).expect("the same keys")
}
