//! Members that leave questions unanswered, and how long each is passed over.
//!
//! What executes in order waits for the one part that a dead member, or a liar, was asked for. So
//! who did not answer in time is asked nothing for a while, each time for longer; an answer, or a
//! new connection, ends that at once.

use quorate_consensus::Occupancy;
use quorate_types::{ReplicaId, Time};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time for which a member is passed over at first.
pub(crate) const PASSED_OVER: Duration = Duration::from_secs(1);
/// So often that time doubles.
const DOUBLINGS_MAX: u32 = 4;

/// Members that are passed over.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    silent: BTreeMap<ReplicaId, Silent>,
}

#[derive(Debug)]
struct Silent {
    /// Questions in a row without an answer, less one.
    doublings: u32,
    /// Time at which the last of them was known to be.
    noted: Time,
    until: Time,
}

impl Silence {
    /// Notes that what a member was asked at this time it did not answer in time. All that was
    /// asked until this was known counts once.
    pub(crate) fn missed(&mut self, now: Time, member: ReplicaId, asked: Time) {
        let known = self.silent.get(&member);
        if known.is_some_and(|silent| asked <= silent.noted) {
            return;
        }
        let doublings = known.map_or(0, |silent| (silent.doublings + 1).min(DOUBLINGS_MAX));
        let until = now + PASSED_OVER * 2_u32.pow(doublings);
        self.silent.insert(member, Silent { doublings, noted: now, until });
    }

    /// Notes that a member answered, or that it is there again.
    pub(crate) fn heard(&mut self, member: ReplicaId) {
        self.silent.remove(&member);
    }

    /// Returns `true` if others are to be asked instead, where there are any.
    pub(crate) fn is_passed_over(&self, now: Time, member: ReplicaId) -> bool {
        self.silent.get(&member).is_some_and(|silent| now < silent.until)
    }

    /// Returns `true` of a member that has not answered since.
    pub(crate) fn is_suspected(&self, member: ReplicaId) -> bool {
        self.silent.contains_key(&member)
    }

    /// A member that was passed over for its time.
    pub(crate) fn to_try(&self, now: Time) -> Option<ReplicaId> {
        self.silent.iter().find(|(_, silent)| silent.until <= now).map(|(member, _)| *member)
    }

    pub(crate) fn occupancy(&self, members: u16) -> Occupancy {
        Occupancy::new("silent", self.silent.len(), usize::from(members))
    }
}

#[cfg(test)]
mod tests;
