//! When something was last said by each member, or done for it.

use quorate_types::{ReplicaId, Time};
use std::collections::BTreeMap;
use std::time::Duration;

/// The last time of each member, for what may be repeated only so often or counts only so long.
#[derive(Debug, Default)]
pub(crate) struct LastTimes {
    last: BTreeMap<ReplicaId, Time>,
}

impl LastTimes {
    /// Notes that it was now.
    pub(crate) fn note(&mut self, now: Time, member: ReplicaId) {
        self.last.insert(member, now);
    }

    /// Returns `true` if it was less than this span ago.
    pub(crate) fn is_within(&self, now: Time, member: ReplicaId, span: Duration) -> bool {
        self.last.get(&member).is_some_and(|at| now.since(*at) < span)
    }

    /// Members of whom it was no longer ago than this span.
    pub(crate) fn since(&self, now: Time, span: Duration) -> impl Iterator<Item = ReplicaId> {
        let recent = self.last.iter().filter(move |(_, at)| now.since(**at) <= span);
        recent.map(|(member, _)| *member)
    }

    /// Number of members that are remembered.
    pub(crate) fn len(&self) -> usize {
        self.last.len()
    }

    /// Forgets all members.
    pub(crate) fn clear(&mut self) {
        self.last.clear();
    }
}
