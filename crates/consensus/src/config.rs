//! Configuration of a protocol machine.

use crate::{Verifier, windowed};
use quorate_crypto::{IdentitySecret, Policy, VotingSecret};
use quorate_types::ReplicaId;
use std::sync::Arc;
use std::time::Duration;

/// Keys, timers and bounds that a protocol machine starts with.
#[derive(Clone, Debug)]
pub struct ProtocolConfig {
    /// Index of this replica; beyond the members' for a learner.
    pub id: ReplicaId,
    /// Identity key, which signs proposals unless the voting key does.
    pub identity: Arc<IdentitySecret>,
    /// Voting key, whose shares make certificates.
    pub voting: Arc<VotingSecret>,
    /// Committee and caches, shared with whoever checks messages.
    pub verifier: Arc<Verifier>,
    /// Time until a view with work and without progress times out; later views in a row get more.
    pub timeout: Duration,
    /// Time that a collector goes on collecting votes after it has a quorum; zero: none (000 §3).
    pub vote_wait: Duration,
    /// Way to check collected shares when they are combined: each, all at once, or their sum.
    pub policy: Policy,
    /// Milliseconds by which a proposal's stamp may be ahead of the own clock and still get a vote.
    pub clock_drift_max_ms: u64,
    /// Wall clock at [`Time`](quorate_types::Time) zero, in milliseconds since the Unix epoch.
    pub wall_origin_ms: u64,
    /// `true` if it may sign; otherwise it follows decisions, and neither votes nor times out.
    pub signs: bool,
    /// Choices about leaders and timers, which no safety depends on.
    pub liveness: Liveness,
}

/// Choices for when leaders fail. Nothing here decides what is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Liveness {
    /// Views in a row that a member leads, at least 1; the same for all members.
    pub leader_tenure: u64,
    /// `true` if leaders whose last turns came to nothing are passed over; the same for all
    /// members.
    pub leader_reputation: bool,
    /// `true` if views that depend on a member whose last turn came to nothing get an eighth of
    /// their span.
    pub shorten_failed_turns: bool,
    /// Growth of a view's span, in per cent of it, for each view timed out since the last decision;
    /// but for the [first failures](crate::pacemaker::Pacemaker::failed) of the few
    /// that may be dead.
    pub timeout_growth: u32,
    /// `true` if timeouts show their sender's last vote, so that a certificate that a collector
    /// took with it can be made again.
    pub vote_salvage: bool,
    /// Slots that a primary has under way at once, where it orders in slots.
    pub concurrent_slots: u64,
}

impl Default for Liveness {
    fn default() -> Self {
        Self {
            leader_tenure: 1,
            leader_reputation: false,
            shorten_failed_turns: true,
            timeout_growth: 50,
            vote_salvage: true,
            concurrent_slots: windowed::CONCURRENT,
        }
    }
}
