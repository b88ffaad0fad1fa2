//! How long bodies wait for a primary that stays until it fails: one that orders just enough to
//! keep its view has to go (ADR 31).
//!
//! A wait lasts from the time at which a body is here until it is decided, or until now for one
//! that others hold too and nobody ordered; at the earliest from the view's first decision. What is
//! judged is the typical one of each author's last waits. Liars reach that little: an author may
//! make its own bodies look slow and a primary may favour its own, so the worst-treated authors are
//! left out, as many as may be faulty together. A member trusts what it sees of its own bodies.
//!
//! What is too long no constant can say: it is a round trip for one committee and a disk for
//! another. The *allowance* starts short, doubles with each view that this member complained of,
//! and halves after a good run that had no use for it. So it is less than twice the longest wait
//! that was judged: a committee that needs longer, or has more to do than it can, changes its
//! primary a few times and has its peace.
//!
//! The authors that are left out have an allowance of their own: a primary that neglects them alone
//! must go too, and an author that hides its bodies from honest primaries must not decide how long
//! everybody else's may wait.

mod allowance;

use allowance::Allowance;
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
/// Waits under the present primary, and what is allowed.
#[derive(Debug)]
pub(crate) struct PrimaryDelay {
    own: ReplicaId,
    timeout: Duration,
    allowance: Allowance,
    /// The same for the authors that are left out.
    neglect: Allowance,
    /// The first decision of the view.
    since: Option<Time>,
    /// The last waits of each author in this view.
    waits: BTreeMap<ReplicaId, VecDeque<Duration>>,
    judged_at: Option<Time>,
}

/// The longest typical waits.
#[derive(Clone, Copy, Debug, Default)]
struct Judged {
    /// Of the own bodies, and of authors of whom one is honest.
    counting: Option<Duration>,
    /// Of any author, the worst-treated too, who may be faulty together.
    longest: Option<Duration>,
}

impl Judged {
    /// The worst-treated wait twice as long as the rest.
    fn is_neglect(&self) -> bool {
        let longest = self.longest.unwrap_or_default();
        self.counting.is_none_or(|counting| longest > 2 * counting)
    }
}

impl PrimaryDelay {
    /// No waits yet, at member `own`. A few bodies that their author shows to all but the primary
    /// are delayed by `hidden`, as the others announce them.
    pub(crate) fn new(own: ReplicaId, timeout: Duration, hidden: Duration) -> Self {
        Self {
            own,
            timeout,
            allowance: Allowance::new(timeout / ALLOWANCE_MIN_PART, timeout),
            neglect: Allowance::new(hidden, timeout),
            since: None,
            waits: BTreeMap::new(),
            judged_at: None,
        }
    }

    /// Another view was entered.
    pub(crate) fn entered(&mut self) {
        self.allowance.entered();
        self.neglect.entered();
        self.waits.clear();
        (self.since, self.judged_at) = (None, None);
    }

    /// A payload was decided that orders these bodies, each with the time since which it is here.
    /// Returns the time of the view's first decision.
    pub(crate) fn decided(
        &mut self,
        now: Time,
        bodies: impl Iterator<Item = (ReplicaId, Time)>,
    ) -> Time {
        let began = *self.since.get_or_insert(now);
        for (author, since) in bodies {
            observe(&mut self.waits, author, now.since(since.max(began)));
        }
        began
    }

    /// Returns `true` if the primary is to blame for passing over what these authors' oldest bodies
    /// wait for: its own or an honest one's are among them, or they wait for longer than those may
    /// who may be faulty together.
    pub(crate) fn is_censorship(
        &mut self,
        now: Time,
        passed_over: &[(ReplicaId, Duration)],
        weights: &Weights,
    ) -> bool {
        let weight: u64 = passed_over.iter().map(|(author, _)| weights.of(author.index())).sum();
        let is_own = passed_over.iter().any(|(author, _)| *author == self.own);
        if is_own || weight > weights.faulty_max() {
            return true;
        }
        let longest = passed_over.iter().map(|(_, wait)| *wait).max();
        longest.is_some() && self.neglect.is_exceeded_by(now, longest, true)
    }

    /// Time before which a waiting body came that waits longer than it may, if the primary is to be
    /// judged now: once in a while, after a whole timeout of this view.
    pub(crate) fn judges(&self, now: Time) -> Option<Time> {
        let every = self.timeout / ALLOWANCE_MIN_PART;
        let began = self.since?;
        let is_early = now.since(began) < self.timeout
            || self.judged_at.is_some_and(|at| now.since(at) < every);
        (!is_early).then(|| now - self.allowance.now)
    }

    /// Returns `true` if bodies wait longer than they may, if the primary is to be judged now;
    /// `waiting` are those that others hold too, of each author the oldest first.
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
        for (author, age) in ages.filter(|(_, age)| *age > self.allowance.now) {
            observe(&mut waits, author, age);
        }
        let judged = self.judged(&waits, weights);
        let is_slow = self.allowance.is_exceeded_by(now, judged.counting, true);
        let neglects = self.neglect.is_exceeded_by(now, judged.longest, judged.is_neglect());
        (is_slow || neglects) && !mutants::active(Mutant::KeepSlowPrimary)
    }

    fn judged(&self, waits: &BTreeMap<ReplicaId, VecDeque<Duration>>, weights: &Weights) -> Judged {
        let each = waits.iter().filter_map(|(author, waits)| Some((typical(waits)?, *author)));
        let mut longest: Vec<(Duration, ReplicaId)> = each.collect();
        longest.sort_unstable_by(|one, other| other.cmp(one));
        let mut left_out = 0;
        let counts = |(_, author): &(Duration, ReplicaId)| {
            left_out += weights.of(author.index());
            *author == self.own || left_out > weights.faulty_max()
        };
        let counting = longest.iter().copied().find(counts).map(|(wait, _)| wait);
        Judged { counting, longest: longest.first().map(|(wait, _)| *wait) }
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

/// The median of an author's last waits, once there are enough; or a quarter of their mean if that
/// is longer, so that nearly half of them do not wait for ever longer.
fn typical(waits: &VecDeque<Duration>) -> Option<Duration> {
    let mut sorted: Vec<Duration> = waits.iter().copied().collect();
    sorted.sort_unstable();
    let mean = sorted.iter().sum::<Duration>() / SAMPLES as u32;
    (sorted.len() == SAMPLES).then(|| sorted[SAMPLES / 2].max(mean / 4))
}

#[cfg(test)]
mod tests;
