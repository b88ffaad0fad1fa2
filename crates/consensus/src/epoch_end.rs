//! The end of an epoch at a machine that decided its stop block.
//!
//! ★ It signs nothing in the epoch any more, and has no timer. Members that have not decided yet go
//! on until they hear of the decision: whatever they send is answered with it.

use quorate_types::{ReplicaId, Time};
use std::collections::BTreeMap;
use std::time::Duration;

/// Members that were shown the decision, each at most once in a while.
#[derive(Debug)]
pub(crate) struct EpochEnd {
    every: Duration,
    shown_at: BTreeMap<ReplicaId, Time>,
}

impl EpochEnd {
    /// Shows the decision to a member that asks again once so much time has passed.
    pub(crate) fn new(every: Duration) -> Self {
        Self { every, shown_at: BTreeMap::new() }
    }

    /// Returns `true` if the member is to be shown the decision now, and notes that it is.
    pub(crate) fn is_due(&mut self, now: Time, member: ReplicaId) -> bool {
        let shown = self.shown_at.get(&member);
        if shown.is_some_and(|shown| now.since(*shown) < self.every) {
            return false;
        }
        self.shown_at.insert(member, now);
        true
    }

    /// Number of members that were shown it.
    pub(crate) fn len(&self) -> usize {
        self.shown_at.len()
    }
}
