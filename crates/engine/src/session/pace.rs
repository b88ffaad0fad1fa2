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
/// Least time after which an answer counts as late: timers and threads are no more exact.
const LATE_MIN: Duration = Duration::from_millis(10);
/// Where nothing was measured yet, an answer is late after this fraction of the wait for it.
const LATE_FRACTION: u32 = 4;

/// Time that answers take: smoothed, with its mean deviation (RFC 6298).
#[derive(Debug, Default)]
pub(super) struct AnswerTime {
    taken: Duration,
    deviation: Duration,
}

impl AnswerTime {
    /// An answer took so long.
    pub(super) fn measured(&mut self, taken: Duration) {
        if self.taken.is_zero() {
            (self.taken, self.deviation) = (taken, taken / 2);
            return;
        }
        self.deviation = (self.deviation * 3 + self.taken.abs_diff(taken)) / 4;
        self.taken = (self.taken * 7 + taken) / 8;
    }

    /// Time after which an answer is late: longer than nearly all take, and than twice the usual
    /// one. Before any was measured, a fraction of the wait; never more than half of it.
    pub(super) fn late_after(&self, wait: Duration) -> Duration {
        if self.taken.is_zero() {
            return wait / LATE_FRACTION;
        }
        let usual = (2 * self.taken).max(self.taken + 4 * self.deviation);
        usual.max(LATE_MIN).min(wait / 2)
    }
}

/// Pace of one session.
#[derive(Debug)]
pub(super) struct Pace {
    window_parts: u64,
    window_max: u64,
    /// Least time that an answer may take before its request is sent again.
    retry_after: Duration,
    times: AnswerTime,
    slowed_at: Option<Time>,
}

impl Pace {
    /// Full speed: nobody has complained yet.
    pub(super) fn new(window_max: u64, retry_after: Duration) -> Self {
        Self {
            window_parts: window_max * PARTS,
            window_max,
            retry_after,
            times: AnswerTime::default(),
            slowed_at: None,
        }
    }

    /// Returns `true` if another request may be sent beside so many.
    pub(super) fn has_room(&self, under_way: usize) -> bool {
        (under_way as u64) < self.window_parts / PARTS
    }

    /// A request was completed.
    pub(super) fn completed(&mut self, sent: Time, now: Time) {
        self.times.measured(now.since(sent));
        let gain = PARTS * PARTS / self.window_parts.max(PARTS);
        self.window_parts = (self.window_parts + gain.max(1)).min(self.window_max * PARTS);
    }

    /// A replica had no room for a request sent at `sent`: slower, once for all that were under
    /// way.
    pub(super) fn refused(&mut self, sent: Time, now: Time) {
        if self.slowed_at.is_none_or(|slowed_at| sent >= slowed_at) {
            self.window_parts = (self.window_parts / 2).max(PARTS);
            self.slowed_at = Some(now);
        }
    }

    /// Returns `true` if a replica had no room lately: then nothing is sent that need not be.
    pub(super) fn was_slowed(&self, now: Time) -> bool {
        self.slowed_at.is_some_and(|slowed_at| now < slowed_at + self.retry_after)
    }

    /// Time to wait before a request that was refused `times` times is sent again.
    pub(super) fn pause(times: u32) -> Duration {
        PAUSE_MIN * (1 << times.min(PAUSE_DOUBLINGS_MAX))
    }

    /// Time that an answer may take before it counts as missing.
    pub(super) fn timeout(&self) -> Duration {
        self.retry_after.max(4 * self.times.taken).min(TIMEOUT_GROWTH_MAX * self.retry_after)
    }

    /// Time after which more members are asked.
    pub(super) fn late_after(&self) -> Duration {
        self.times.late_after(self.timeout())
    }
}

#[cfg(test)]
mod tests {
    use super::{AnswerTime, LATE_MIN, Pace};
    use quorate_types::Time;
    use std::time::Duration;

    const MS: u64 = 1_000;
    const LEAST: Duration = Duration::from_secs(1);

    #[test]
    fn complaints_halve_the_window_once_a_round_trip_and_answers_open_it_again() {
        let mut pace = Pace::new(64, LEAST);
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
        let mut pace = Pace::new(64, LEAST);
        assert_eq!(pace.timeout(), LEAST);
        for _ in 0..50 {
            pace.completed(Time(0), Time(800 * MS));
        }
        assert!(pace.timeout() > 3 * LEAST);
        (0..50).for_each(|_| pace.completed(Time(0), Time(300_000 * MS)));
        assert_eq!(pace.timeout(), 8 * LEAST, "an outage is over");
    }

    /// Late is what takes longer than nearly all answers did; before any came, a fraction of the
    /// wait; and never so long that there is no time left to ask twice.
    #[test]
    fn what_is_late_follows_the_time_that_answers_take() {
        let ms = Duration::from_millis;
        let mut times = AnswerTime::default();
        assert_eq!(times.late_after(LEAST), LEAST / 4);
        times.measured(ms(20));
        assert_eq!(times.late_after(LEAST), ms(20 + 4 * 10), "one alone may be off by half");
        (0..50).for_each(|_| times.measured(ms(20)));
        assert_eq!(times.late_after(LEAST).as_millis(), 40, "steady: twice as long");
        (0..50).for_each(|count| times.measured(ms(if count % 2 == 0 { 10 } else { 60 })));
        let late = times.late_after(LEAST);
        assert!(late > ms(100) && late < ms(200), "they vary by 25 ms: {late:?}");
        (0..50).for_each(|_| times.measured(ms(900)));
        assert_eq!(times.late_after(LEAST), LEAST / 2);
        (0..200).for_each(|_| times.measured(ms(1)));
        assert_eq!(times.late_after(LEAST), LATE_MIN);
    }

    #[test]
    fn after_a_complaint_nothing_needless_is_sent_for_a_while() {
        let mut pace = Pace::new(64, LEAST);
        assert!(!pace.was_slowed(Time(0)));
        pace.refused(Time(0), Time(5 * MS));
        assert!(pace.was_slowed(Time(5 * MS)) && pace.was_slowed(Time(1_004 * MS)));
        assert!(!pace.was_slowed(Time(1_005 * MS)));
    }

    #[test]
    fn pauses_double_up_to_a_bound() {
        assert_eq!(Pace::pause(0), Duration::from_millis(25));
        assert_eq!(Pace::pause(2), Duration::from_millis(100));
        assert_eq!(Pace::pause(99), Duration::from_millis(800));
    }
}
