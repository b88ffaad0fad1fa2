//! Ground of all runs of Twins: a committee, its keys and its timeout.

use super::plan::{MEMBERS, Plan};
use quorate_consensus::{ProposalKey, ProtocolKind, Verifier};
use quorate_crypto::{IdentitySecret, KeyCache, SchemeKind, VotingSecret};
use quorate_deterministic::genesis;
use quorate_types::{Anchor, Committee, ReplicaId, Weights};
use std::sync::Arc;
use std::time::Duration;

/// Time that a view may take.
pub(super) const TIMEOUT: Duration = Duration::from_millis(100);

/// A committee and its keys, shared by all runs.
pub struct Ground {
    pub(super) committee: Arc<Committee>,
    keys: Vec<(Arc<IdentitySecret>, Arc<VotingSecret>)>,
    protocol: ProtocolKind,
}

impl Ground {
    /// Four members with stub keys that run this protocol.
    #[must_use]
    pub fn of(protocol: ProtocolKind) -> Self {
        let weights = Weights::equal(MEMBERS);
        let (keys, committee) = genesis::members(0, SchemeKind::Stub, KeyCache::Off, &weights);
        let keys = keys.into_iter().map(|keys| (Arc::new(keys.identity), Arc::new(keys.voting)));
        Self { committee: Arc::new(committee), keys: keys.collect(), protocol }
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
        let committee = Arc::clone(&self.committee);
        let verifier = Verifier::new(committee, self.protocol, ProposalKey::Voting);
        let anchor = Anchor { height: plan.begins_after, proposed_at_ms: 0 };
        Arc::new(verifier.starting_after(anchor))
    }

    pub(super) fn keys(&self, member: ReplicaId) -> (Arc<IdentitySecret>, Arc<VotingSecret>) {
        self.keys[member.index()].clone()
    }
}
