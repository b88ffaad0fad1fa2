//! Members as a session sees them: when each was heard last, and who is passed over.

use quorate_types::{Committee, ReplicaId, Time};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A member that let others answer in its place is passed over for so long; twice as long each
/// time that it does so again, without a word in between.
const PASSED_OVER_MIN: Duration = Duration::from_secs(2);
const PASSED_OVER_DOUBLINGS_MAX: u32 = 5;

/// Members by when they were heard last.
#[derive(Debug)]
pub(super) struct Members {
    committee: Arc<Committee>,
    /// Time for which a member may be silent while others are not, and is lively still.
    lively_for: Duration,
    /// Time at which each last answered anything.
    heard: BTreeMap<ReplicaId, Time>,
    silent: BTreeMap<ReplicaId, Silence>,
}

/// A member's silence when it was asked.
#[derive(Clone, Copy, Debug)]
struct Silence {
    until: Time,
    times: u32,
}

impl Members {
    pub(super) fn new(committee: Arc<Committee>, lively_for: Duration) -> Self {
        Self { committee, lively_for, heard: BTreeMap::new(), silent: BTreeMap::new() }
    }

    /// A member said something, whatever it was.
    pub(super) fn heard(&mut self, now: Time, from: ReplicaId) {
        self.heard.insert(from, now);
        self.silent.remove(&from);
    }

    /// A member was asked at `since`, and others answered. Returns `true` if it has said nothing
    /// since then: it is passed over for a while.
    pub(super) fn outdone(&mut self, now: Time, member: ReplicaId, since: Time) -> bool {
        if self.heard.get(&member).is_some_and(|heard| *heard > since) {
            return false;
        }
        let silence = self.silent.entry(member).or_insert(Silence { until: now, times: 0 });
        // What was asked before it was passed over says nothing new.
        if silence.until <= now {
            silence.until = now + PASSED_OVER_MIN * (1 << silence.times);
            silence.times = (silence.times + 1).min(PASSED_OVER_DOUBLINGS_MAX);
        }
        true
    }

    /// Returns `true` while a member is not to be asked before others.
    pub(super) fn is_passed_over(&self, now: Time, member: ReplicaId) -> bool {
        self.silent.get(&member).is_some_and(|silence| now < silence.until)
    }

    /// The next member in turn that answered about as lately as the latest to answer: one that fell
    /// silent while others did not is passed over. Never the same one, if there is another.
    pub(super) fn next_lively(&self, now: Time, after: ReplicaId) -> ReplicaId {
        let heard = |member: &ReplicaId| self.heard.get(member).copied().unwrap_or_default();
        let latest = self.heard.values().copied().max().unwrap_or_default();
        let others = || self.others(after).filter(|member| !self.is_passed_over(now, *member));
        let lively = others().find(|member| heard(member) + self.lively_for >= latest);
        lively.or_else(|| others().next()).unwrap_or_else(|| self.turn(after, 1))
    }

    /// All members but this one, from the next in the ring on.
    pub(super) fn others(&self, after: ReplicaId) -> impl Iterator<Item = ReplicaId> + '_ {
        (1..self.committee.size()).map(move |step| self.turn(after, step))
    }

    /// Member so many places further in the ring.
    pub(super) fn turn(&self, after: ReplicaId, steps: usize) -> ReplicaId {
        let index = (after.index() + steps) % self.committee.size();
        ReplicaId(u16::try_from(index).expect("members are few"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Members, PASSED_OVER_DOUBLINGS_MAX, PASSED_OVER_MIN};
    use crate::testing::committee;
    use quorate_types::{ReplicaId, Time};
    use std::time::Duration;

    const LIVELY: Duration = Duration::from_millis(500);

    fn members() -> Members {
        Members::new(committee(), LIVELY)
    }

    #[test]
    fn a_replica_that_fell_silent_while_others_did_not_is_passed_over() {
        let mut members = members();
        [0, 2, 3].into_iter().for_each(|lively| members.heard(Time(9_000_000), ReplicaId(lively)));
        members.heard(Time(1_000_000), ReplicaId(1));
        let next = |after| members.next_lively(Time(9_000_000), ReplicaId(after)).0;
        assert_eq!([0, 1, 2, 3].map(next), [2, 2, 3, 0]);
    }

    /// Who answered half a wait before the latest is lively, and a moment earlier is not.
    #[test]
    fn a_replica_is_lively_for_half_a_wait() {
        for (late, next) in [(500_000, 2), (500_001, 3)] {
            let mut members = members();
            members.heard(Time(9_000_000 - late), ReplicaId(2));
            members.heard(Time(9_000_000), ReplicaId(3));
            assert_eq!(members.next_lively(Time(9_000_000), ReplicaId(1)), ReplicaId(next));
        }
    }

    /// Silence is forgotten: after a while at first, later and later, and at a word at once.
    #[test]
    fn who_is_outdone_is_passed_over_for_twice_as_long_each_time() {
        let (mut members, dead) = (members(), ReplicaId(1));
        let mut now = Time(1_000_000);
        for times in 0..9 {
            assert!(members.outdone(now, dead, Time(500_000)));
            let lasts = PASSED_OVER_MIN * (1 << times.min(PASSED_OVER_DOUBLINGS_MAX));
            let last = now + (lasts - Duration::from_micros(1));
            assert!(members.is_passed_over(last, dead) && members.outdone(last, dead, now));
            now = now + lasts;
            assert!(!members.is_passed_over(now, dead), "asked again after {lasts:?}");
        }
        assert!(members.outdone(now, dead, now));
        members.heard(now, dead);
        assert!(!members.is_passed_over(now, dead));
        assert!(!members.outdone(now, dead, Time(now.0 - 1)), "it has said something since");
        assert!(members.outdone(now, dead, now));
        assert!(!members.is_passed_over(now + PASSED_OVER_MIN, dead), "from the start again");
    }

    /// Where all others are passed over somebody is asked all the same.
    #[test]
    fn there_is_always_a_next_member() {
        let mut members = members();
        (0..4).for_each(|member| assert!(members.outdone(Time(9), ReplicaId(member), Time(1))));
        assert_eq!(members.next_lively(Time(10), ReplicaId(3)), ReplicaId(0));
    }
}
