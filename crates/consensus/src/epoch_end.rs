//! The end of an epoch at a machine that decided its stop block.
//!
//! ★ It signs nothing in the epoch any more, and has no timer. Members that have not decided yet go
//! on until they hear of the decision: whatever they send is answered with it.

use crate::last_times::LastTimes;
use quorate_types::{ReplicaId, Time};
use std::time::Duration;

/// Members that were shown the decision, each at most once in a while.
#[derive(Debug)]
pub(crate) struct EpochEnd {
    every: Duration,
    shown_at: LastTimes,
}

impl EpochEnd {
    /// Shows the decision to a member that asks again once so much time has passed.
    pub(crate) fn new(every: Duration) -> Self {
        Self { every, shown_at: LastTimes::default() }
    }

    /// Returns `true` if the member is to be shown the decision now, and notes that it is.
    pub(crate) fn is_due(&mut self, now: Time, member: ReplicaId) -> bool {
        let is_due = !self.shown_at.is_within(now, member, self.every);
        if is_due {
            self.shown_at.note(now, member);
        }
        is_due
    }

    /// Number of members that were shown it.
    pub(crate) fn len(&self) -> usize {
        self.shown_at.len()
    }
}
