//! Time for which bodies may wait for a primary.

use quorate_types::Time;
use std::time::Duration;

/// Timeouts after which the allowance halves, if a quarter of it was enough in them. A primary
/// that uses the allowance up, or a committee that needs it, does not have it changed; one whose
/// load comes and goes pays a view change for each of these runs at most.
pub(super) const GOOD_RUN_TIMEOUTS: u32 = 64;

/// An allowance that doubles with each view in which it was exceeded and halves after a good run
/// that had no use for it.
#[derive(Debug)]
pub(super) struct Allowance {
    pub(super) now: Duration,
    least: Duration,
    good_run: Duration,
    /// It was exceeded in this view.
    is_exceeded: bool,
    run_since: Option<Time>,
    /// The longest judged wait in the run, if any was judged.
    longest: Option<Duration>,
}

impl Allowance {
    /// The least there is, in views of this timeout.
    pub(super) fn new(least: Duration, timeout: Duration) -> Self {
        let good_run = GOOD_RUN_TIMEOUTS * timeout;
        Self { now: least, least, good_run, is_exceeded: false, run_since: None, longest: None }
    }

    /// Another view was entered.
    pub(super) fn entered(&mut self) {
        if self.is_exceeded {
            self.now = self.now.saturating_mul(2);
        }
        (self.is_exceeded, self.run_since, self.longest) = (false, None, None);
    }

    /// Returns `true` if the longest wait is too long, where that `counts`; where it does not, it
    /// tells what a good run needs.
    pub(super) fn is_exceeded_by(
        &mut self,
        now: Time,
        wait: Option<Duration>,
        counts: bool,
    ) -> bool {
        self.longest = self.longest.max(wait);
        let is_too_long = counts && wait.is_some_and(|wait| wait > self.now);
        self.is_exceeded |= is_too_long;
        self.end_good_run(now);
        is_too_long
    }

    fn end_good_run(&mut self, now: Time) {
        let began = *self.run_since.get_or_insert(now);
        if now.since(began) < self.good_run {
            return;
        }
        if self.longest.is_some_and(|longest| 4 * longest <= self.now) {
            self.now = (self.now / 2).max(self.least);
        }
        (self.run_since, self.longest) = (Some(now), None);
    }
}
