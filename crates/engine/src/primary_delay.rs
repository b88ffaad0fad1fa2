//! How long bodies wait for a primary that stays until it fails: one that orders just enough to
//! keep its view has to go (ADR 31).
//!
//! A wait lasts from the time at which a body is here until it is decided, or until now for one
//! that others hold too and nobody ordered; at the earliest from the view's first decision. What is
//! judged are medians of each author's last waits. Liars reach them little: an author may make its
//! own bodies look slow and a primary may favour its own, so the worst-treated authors are left
//! out, as many as may be faulty together. A member trusts what it sees of its own bodies.
//!
//! What is too long no constant can say: it is a round trip for one committee and a disk for
//! another. The *allowance* starts short, doubles with each view that this member complained of,
//! and halves after a good run that had no use for it. So it is less than twice the longest wait
//! that was judged: a committee that needs longer, or has more to do than it can, changes its
//! primary a few times and has its peace.

use quorate_consensus::Occupancy;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{ReplicaId, Time, Weights};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Waits of an author that its median is of.
const SAMPLES: usize = 16;
/// The shortest allowance is this part of a view's timeout: as long as a round trip between the
/// farthest members is at most.
const ALLOWANCE_MIN_PART: u32 = 8;
/// Timeouts after which the allowance halves, if a quarter of it was enough in them. A primary
/// that uses the allowance up, or a committee that needs it, does not have it changed; one whose
/// load comes and goes pays a view change for each of these runs at most.
const GOOD_RUN_TIMEOUTS: u32 = 64;

/// Waits under the present primary, and what is allowed.
#[derive(Debug)]
pub(crate) struct PrimaryDelay {
    own: ReplicaId,
    timeout: Duration,
    /// A faulty author can delay its own bodies so much, under any primary.
    withheld: Duration,
    allowance: Duration,
    /// The first decision of the view.
    since: Option<Time>,
    /// The last waits of each author in this view.
    waits: BTreeMap<ReplicaId, VecDeque<Duration>>,
    judged_at: Option<Time>,
    /// This member complained in this view.
    is_suspected: bool,
    run_since: Option<Time>,
    /// The longest judged wait in the run, if any was judged.
    longest: Option<Duration>,
}

impl PrimaryDelay {
    /// No waits yet, at member `own`. An author that shows a body to all but the primary delays it
    /// by `withheld` at most, as the others announce it.
    pub(crate) fn new(own: ReplicaId, timeout: Duration, withheld: Duration) -> Self {
        Self {
            own,
            timeout,
            withheld,
            allowance: timeout / ALLOWANCE_MIN_PART,
            since: None,
            waits: BTreeMap::new(),
            judged_at: None,
            is_suspected: false,
            run_since: None,
            longest: None,
        }
    }

    /// Another view was entered.
    pub(crate) fn entered(&mut self) {
        if self.is_suspected {
            self.allowance = self.allowance.saturating_mul(2);
        }
        self.waits.clear();
        (self.since, self.judged_at, self.is_suspected) = (None, None, false);
        (self.run_since, self.longest) = (None, None);
    }

    /// A payload was decided that orders these bodies, each with the time since which it is here.
    pub(crate) fn decided(&mut self, now: Time, bodies: impl Iterator<Item = (ReplicaId, Time)>) {
        let began = *self.since.get_or_insert(now);
        for (author, since) in bodies {
            observe(&mut self.waits, author, now.since(since.max(began)));
        }
    }

    /// Time before which a waiting body came that waits longer than it may, if the primary is to be
    /// judged now: once in a while, after a whole timeout of this view.
    pub(crate) fn judges(&self, now: Time) -> Option<Time> {
        let every = self.timeout / ALLOWANCE_MIN_PART;
        let began = self.since?;
        let is_early = now.since(began) < self.timeout
            || self.judged_at.is_some_and(|at| now.since(at) < every);
        (!is_early).then(|| now - self.allowance)
    }

    /// Returns `true` if bodies wait longer than they may, if the primary is to be judged now;
    /// `waiting` are those that others hold too, oldest first.
    pub(crate) fn is_too_long(
        &mut self,
        now: Time,
        waiting: impl Iterator<Item = (ReplicaId, Time)>,
        weights: &Weights,
    ) -> bool {
        let Some(began) = self.since.filter(|_| self.judges(now).is_some()) else {
            return false;
        };
        self.judged_at = Some(now);
        let mut waits = self.waits.clone();
        let ages = waiting.map(|(author, since)| (author, now.since(since.max(began))));
        for (author, age) in ages.take_while(|(_, age)| *age > self.allowance) {
            observe(&mut waits, author, age);
        }
        let judged = self.judged(&waits, weights);
        self.longest = self.longest.max(judged);
        let is_too_long = judged.is_some_and(|wait| wait > self.allowance)
            && !mutants::active(Mutant::KeepSlowPrimary);
        self.is_suspected |= is_too_long;
        self.end_good_run(now);
        is_too_long
    }

    /// The longest of the waits that count: of the own bodies, of authors of whom one is honest,
    /// and of any author if not even a faulty one can have delayed its bodies so much.
    fn judged(
        &self,
        waits: &BTreeMap<ReplicaId, VecDeque<Duration>>,
        weights: &Weights,
    ) -> Option<Duration> {
        let each = waits.iter().filter_map(|(author, waits)| Some((median(waits)?, *author)));
        let mut medians: Vec<(Duration, ReplicaId)> = each.collect();
        medians.sort_unstable_by(|one, other| other.cmp(one));
        let mut left_out = 0;
        let counts = |(wait, author): &(Duration, ReplicaId)| {
            left_out += weights.of(author.index());
            *author == self.own || left_out > weights.faulty_max() || *wait > self.withheld
        };
        medians.iter().copied().find(counts).map(|(wait, _)| wait)
    }

    /// Halves the allowance after a good run.
    fn end_good_run(&mut self, now: Time) {
        let began = *self.run_since.get_or_insert(now);
        if now.since(began) < GOOD_RUN_TIMEOUTS * self.timeout {
            return;
        }
        if self.longest.is_some_and(|longest| 4 * longest <= self.allowance) {
            self.allowance = (self.allowance / 2).max(self.timeout / ALLOWANCE_MIN_PART);
        }
        (self.run_since, self.longest) = (Some(now), None);
    }

    pub(crate) fn occupancy(&self, members: usize) -> [Occupancy; 1] {
        let waits = self.waits.values().map(VecDeque::len).sum();
        [Occupancy::new("waits", waits, SAMPLES * members)]
    }
}

fn observe(waits: &mut BTreeMap<ReplicaId, VecDeque<Duration>>, author: ReplicaId, one: Duration) {
    let waits = waits.entry(author).or_default();
    waits.push_back(one);
    if waits.len() > SAMPLES {
        waits.pop_front();
    }
}

/// The median of an author's last waits, once there are enough.
fn median(waits: &VecDeque<Duration>) -> Option<Duration> {
    let mut sorted: Vec<Duration> = waits.iter().copied().collect();
    sorted.sort_unstable();
    (sorted.len() == SAMPLES).then(|| sorted[SAMPLES / 2])
}

#[cfg(test)]
mod tests;
