//! Pace of a session: the number of requests under way, and the time to wait for answers.
//!
//! The number follows the committee's complaints as TCP's window follows loss: a replica that says
//! it is busy halves it, answers let it grow by one a round trip. Waiting follows the time that
//! answers take of late, so that a loaded committee is not asked everything twice.

use quorate_types::Time;
use std::time::Duration;

/// The window is kept in these parts of a request.
const PARTS: u64 = 1_024;
/// The first pause after a replica said that it is busy; doubles each time.
const PAUSE_MIN: Duration = Duration::from_millis(25);
const PAUSE_DOUBLINGS_MAX: u32 = 5;
/// Longest time to wait for an answer, in waits of an idle committee: after an outage, answers that
/// it held up say nothing of those to come.
const TIMEOUT_GROWTH_MAX: u32 = 8;

/// Pace of one session.
#[derive(Debug)]
pub(super) struct Pace {
    window_parts: u64,
    window_max: u64,
    /// The smoothed time from sending to completion.
    taken: Duration,
    slowed_at: Time,
}

impl Pace {
    /// Full speed: nobody has complained yet.
    pub(super) fn new(window_max: u64) -> Self {
        Self {
            window_parts: window_max * PARTS,
            window_max,
            taken: Duration::ZERO,
            slowed_at: Time(0),
        }
    }

    /// Returns `true` if another request may be sent beside so many.
    pub(super) fn has_room(&self, under_way: usize) -> bool {
        (under_way as u64) < self.window_parts / PARTS
    }

    /// A request was completed.
    pub(super) fn completed(&mut self, sent: Time, now: Time) {
        let taken = now.since(sent);
        self.taken = if self.taken.is_zero() { taken } else { (self.taken * 7 + taken) / 8 };
        let gain = PARTS * PARTS / self.window_parts.max(PARTS);
        self.window_parts = (self.window_parts + gain.max(1)).min(self.window_max * PARTS);
    }

    /// A replica had no room for a request sent at `sent`: slower, once for all that were under
    /// way.
    pub(super) fn refused(&mut self, sent: Time, now: Time) {
        if sent >= self.slowed_at {
            self.window_parts = (self.window_parts / 2).max(PARTS);
            self.slowed_at = now;
        }
    }

    /// Time to wait before a request that was refused `times` times is sent again.
    pub(super) fn pause(times: u32) -> Duration {
        PAUSE_MIN * (1 << times.min(PAUSE_DOUBLINGS_MAX))
    }

    /// Time that an answer may take before it counts as missing.
    pub(super) fn timeout(&self, at_least: Duration) -> Duration {
        at_least.max(4 * self.taken).min(TIMEOUT_GROWTH_MAX * at_least)
    }
}

#[cfg(test)]
mod tests {
    use super::Pace;
    use quorate_types::Time;
    use std::time::Duration;

    const MS: u64 = 1_000;

    #[test]
    fn complaints_halve_the_window_once_a_round_trip_and_answers_open_it_again() {
        let mut pace = Pace::new(64);
        assert!(pace.has_room(63) && !pace.has_room(64));
        for _ in 0..30 {
            pace.refused(Time(0), Time(5 * MS));
        }
        assert!(pace.has_room(31) && !pace.has_room(32));
        for _ in 0..34 {
            pace.completed(Time(0), Time(9 * MS));
        }
        assert!(pace.has_room(32) && !pace.has_room(33), "one more a round trip");
        for round in 1..40 {
            pace.refused(Time(round * 10 * MS), Time(round * 10 * MS + 1));
        }
        assert!(pace.has_room(0) && !pace.has_room(1), "one request may always be under way");
    }

    #[test]
    fn the_timeout_follows_the_time_that_answers_take() {
        let mut pace = Pace::new(64);
        let least = Duration::from_secs(1);
        assert_eq!(pace.timeout(least), least);
        for _ in 0..50 {
            pace.completed(Time(0), Time(800 * MS));
        }
        assert!(pace.timeout(least) > 3 * least);
        (0..50).for_each(|_| pace.completed(Time(0), Time(300_000 * MS)));
        assert_eq!(pace.timeout(least), 8 * least, "an outage is over");
    }

    #[test]
    fn pauses_double_up_to_a_bound() {
        assert_eq!(Pace::pause(0), Duration::from_millis(25));
        assert_eq!(Pace::pause(2), Duration::from_millis(100));
        assert_eq!(Pace::pause(99), Duration::from_millis(800));
    }
}
