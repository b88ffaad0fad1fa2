//! Timer of views.
//!
//! The timer runs only while there is work. A view's span grows (by half, unless it is set
//! otherwise) for each view that timed out since the last decision, twelve times at most:
//! replicas whose clocks and delays differ come to stand in one view for long enough, and a single
//! decision resets it. The first failure of each of so many leaders as may be faulty is excused:
//! the dead answer no sooner for a longer wait (ADR 18).
//!
//! [`LeaderFailures`] shortens the span of views that depend on a member whose last turn came to
//! nothing: a dead leader costs its full timeout once, not each time its turn comes. It is each
//! replica's own judgement and decides nothing but how long it waits. A leader that holds a
//! proposal back, since processors are scarce (ADR 48), has to know that others wait for it as long
//! as usual: that the last turns of all on whom they depend came to something.

use quorate_types::{ReplicaId, Time, Weights};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Most times that the span grows.
const BACKOFF_MAX: u32 = 12;

/// A shortened view lasts this fraction of its span.
const SHORT: u32 = 8;
/// After so many failures in a row, and at each doubling, a member gets one full span again: it may
/// have come back slow.
const PROBATION: u32 = 64;
/// From here on it gets one every so many failures.
const PROBATION_EVERY: u32 = 256;

/// A leader's pause is this part of a full span at most.
const PAUSE_PART: u32 = 32;
/// A leader may pause if this view and the one before depend on members that are known to be well:
/// where votes go to the next leader, others are in the view before until they have its proposal.
const STEADY_VIEWS: u32 = 2;

/// Returns the longest that a leader may hold a proposal back in views of this full span.
#[must_use]
pub fn longest_pause(span: Duration) -> Duration {
    span / PAUSE_PART
}

/// Number of times in a row that each member's views timed out.
#[derive(Debug, Default)]
pub struct LeaderFailures {
    /// Zero for a member whose last turn came to something; none for one that had no turn since
    /// the start, of whom others may know more.
    failures: BTreeMap<ReplicaId, u32>,
    /// Last views in a row that each followed a certified block and depend on nobody but members
    /// whose last turn came to something.
    steady_views: u32,
}

impl LeaderFailures {
    /// A view that `leader` led timed out.
    pub fn failed(&mut self, leader: ReplicaId) {
        let failures = self.failures.entry(leader).or_default();
        *failures = failures.saturating_add(1);
    }

    /// A block that `leader` proposed was certified.
    pub fn succeeded(&mut self, leader: ReplicaId) {
        self.failures.insert(leader, 0);
    }

    /// A view is entered that depends on these members; right after the one before, and by the
    /// certificate of its block, if it `follows`.
    pub fn entered(&mut self, depends_on: &[ReplicaId], follows: bool) {
        let is_steady = follows && depends_on.iter().all(|one| self.failures.get(one) == Some(&0));
        self.steady_views = if is_steady { self.steady_views.saturating_add(1) } else { 0 };
    }

    /// Returns `true` if nobody waits less than usual for the leader of the current view.
    #[must_use]
    pub fn may_pause(&self) -> bool {
        self.steady_views >= STEADY_VIEWS
    }

    /// Returns `true` if a view that depends on this member deserves its full span.
    #[must_use]
    pub fn trusts(&self, member: ReplicaId) -> bool {
        let Some(failures) = self.failures.get(&member) else { return true };
        let doubled = *failures >= PROBATION && failures.is_power_of_two();
        doubled || failures.is_multiple_of(PROBATION_EVERY)
    }
}

/// The timer of the current view.
#[derive(Debug)]
pub struct Pacemaker {
    span: Duration,
    /// Growth of a view's span, in per cent.
    growth: u32,
    full_span: bool,
    /// The leaders of views that timed out since the last decision.
    failed: BTreeSet<ReplicaId>,
    /// Such views, but for those that are excused.
    growths: u32,
    working: bool,
    deadline: Option<Time>,
}

impl Pacemaker {
    /// A timer at rest, with the span of a first view, and by how many per cent it grows.
    #[must_use]
    pub fn new(span: Duration, growth: u32) -> Self {
        Self {
            span,
            growth,
            full_span: true,
            failed: BTreeSet::new(),
            growths: 0,
            working: false,
            deadline: None,
        }
    }

    /// A view of this leader timed out. Excused are leaders who fail for the first time since
    /// the last decision, while all such leaders together weigh no more than what may be faulty.
    pub fn failed(&mut self, leader: ReplicaId, weights: &Weights) {
        let is_first = self.failed.insert(leader);
        let weight: u64 = self.failed.iter().map(|member| weights.of(member.index())).sum();
        if !is_first || weight > weights.faulty_max() {
            self.growths = self.growths.saturating_add(1);
        }
    }

    /// A view was entered.
    pub fn enter(&mut self, now: Time) {
        self.deadline = self.working.then(|| now + self.current_span());
    }

    /// Gives views from the next one on their full span or an eighth of it, see [`LeaderFailures`].
    pub fn set_full_span(&mut self, full_span: bool) {
        self.full_span = full_span;
    }

    /// Takes note of a decision: failures are forgotten, and the span is the configured one again.
    pub fn decided(&mut self) {
        self.failed.clear();
        self.growths = 0;
    }

    /// Tells it if there is work to wait for. The timer starts when work appears and stops when the
    /// last of it is done.
    pub fn set_working(&mut self, now: Time, working: bool) {
        if working == self.working {
            return;
        }
        self.working = working;
        self.deadline = working.then(|| now + self.current_span());
    }

    /// Returns `true` if there is work to wait for.
    #[must_use]
    pub fn is_working(&self) -> bool {
        self.working
    }

    /// Stops the timer until [`Pacemaker::rearm`], whatever work there is.
    pub fn rest(&mut self) {
        self.deadline = None;
    }

    /// Starts the timer again in the same view.
    pub fn rearm(&mut self, now: Time) {
        self.deadline = Some(now + self.current_span());
    }

    /// Returns `true` if the view has timed out.
    #[must_use]
    pub fn is_due(&self, now: Time) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Time at which the view times out; `None` while there is no work.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// `span · (1 + growth)^min(k, 12)`, an eighth of it when shortened.
    fn current_span(&self) -> Duration {
        let span = if self.full_span { self.span } else { self.span / SHORT };
        (0..self.growths.min(BACKOFF_MAX)).fold(span, |span, _| span * (100 + self.growth) / 100)
    }
}

#[cfg(test)]
mod tests;
