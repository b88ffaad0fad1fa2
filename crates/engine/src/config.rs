//! Parts that a replica is made of.

use crate::{Settings, Verifier};
use quorate_crypto::{IdentitySecret, VotingSecret};
use quorate_types::ReplicaId;
use std::sync::Arc;

/// Keys, committee and settings that a replica starts with.
#[derive(Clone, Debug)]
pub struct ReplicaConfig {
    /// Its index in the committee; one beyond the members is a learner's.
    pub id: ReplicaId,
    /// Identity key, which signs whatever no certificate is made of.
    pub identity: Arc<IdentitySecret>,
    /// Voting key, whose shares make certificates.
    pub voting: Arc<VotingSecret>,
    /// Committee, schemes and caches, shared with the host's pool.
    pub verifier: Arc<Verifier>,
    /// Settings from the configuration file.
    pub settings: Settings,
    /// Wall clock at [`Time`](quorate_types::Time) zero, in milliseconds since the Unix epoch. The
    /// clock advances with the host's monotonic time, until the host says that it moved
    /// ([`Event::WallClock`](quorate_types::Event)).
    pub wall_origin_ms: u64,
    /// `true` if it may sign; otherwise it follows and serves other members, and never votes,
    /// proposes, times out or answers clients (a validator that lost its disk, and a learner).
    pub signs: bool,
    /// `true` if it signs nothing before other members have shown it its own newest signatures;
    /// `false` where none of them ever runs on an old copy of its disk, as in a model of speed.
    pub asks_witnesses: bool,
}

impl ReplicaConfig {
    /// Returns `true` if it is no member: it asks for what was decided, executes it and answers
    /// queries of the state.
    #[must_use]
    pub fn is_learner(&self) -> bool {
        !self.verifier.committee().contains(self.id)
    }
}
