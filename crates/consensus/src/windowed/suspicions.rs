//! Suspicions of a primary that is no better than it must be: it passes bodies over, or is slow.
//!
//! Each member measures that for itself, and what it measures may be its own link's fault. So a
//! member that suspects says so and goes on. Whoever hears it of `f+1` others says so too, since
//! one of them is honest; `n−f` end the view, the primary's own word among them, and those who left
//! it already, by a view change. A member that left alone would sign nothing until others
//! followed, which they need not ever do: of those that it left by, `f+1` are honest and told all,
//! so that all say so, and all leave.

use crate::last_times::LastTimes;
use quorate_types::{ReplicaId, Time};
use std::time::Duration;

/// Timeouts for which a suspicion counts: who still suspects says so at each decision, and views
/// have one in each timeout.
const COUNTS_FOR_TIMEOUTS: u32 = 2;

/// A suspicion is said again after this part of a timeout at the soonest.
const SAID_AGAIN_PART: u32 = 8;

/// Members that suspect the primary of the view that they are in.
#[derive(Debug, Default)]
pub(super) struct Suspicions {
    /// Time at which each member last said so.
    said: LastTimes,
}

impl Suspicions {
    /// Forgets them all: they are about a view that is over.
    pub(super) fn clear(&mut self) {
        self.said.clear();
    }

    /// Number of members that are remembered.
    pub(super) fn len(&self) -> usize {
        self.said.len()
    }

    /// A member says that it suspects the primary.
    pub(super) fn note(&mut self, now: Time, member: ReplicaId) {
        self.said.note(now, member);
    }

    /// Returns `true` if a member said so just now.
    pub(super) fn has_just_said(&self, now: Time, member: ReplicaId, timeout: Duration) -> bool {
        self.said.is_within(now, member, timeout / SAID_AGAIN_PART)
    }

    /// Members whose suspicion counts.
    pub(super) fn by(&self, now: Time, timeout: Duration) -> impl Iterator<Item = ReplicaId> {
        self.said.since(now, COUNTS_FOR_TIMEOUTS * timeout)
    }
}
