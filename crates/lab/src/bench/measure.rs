//! What came of every operation, counted and timed.
//!
//! An operation's mark is when it was due, in microseconds since the load began, so that nothing has
//! to be remembered for each. Latency runs from then, not from when a busy client got round to
//! sending: otherwise a stall would hide the very operations that it delayed. In a closed loop an
//! operation is due when the one before it is answered.

use super::latencies::{self, Latencies, LatencyMs, summarise};
use super::latency_grid::{INTERVAL_MS, LatencyGrid};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// When the load begins, and which part of it counts.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// When it begins.
    pub start: Instant,
    /// How much of the start does not count.
    pub warmup: Duration,
    /// How much follows that does.
    pub window: Duration,
}

impl Schedule {
    /// When an operation with this mark is due.
    #[must_use]
    pub fn due(&self, mark: u64) -> Instant {
        self.start + Duration::from_micros(mark)
    }

    /// The mark of what is due at this moment.
    #[must_use]
    pub fn mark(&self, moment: Instant) -> u64 {
        let since = moment.saturating_duration_since(self.start);
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }

    /// The first mark that counts.
    #[must_use]
    pub fn first_counted(&self) -> u64 {
        self.mark(self.start + self.warmup)
    }

    /// All marks are below this one.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.mark(self.start + self.warmup + self.window)
    }
}

/// What became of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// f+1 replicas gave the same signed reply.
    Done {
        /// When the last of them was counted.
        at: Instant,
        /// Whether the service refused the operation.
        refused: bool,
    },
    /// The session was full and did not take it.
    NotTaken,
}

/// Counts fates.
#[derive(Debug)]
pub struct Recorder {
    schedule: Schedule,
    latencies: Latencies,
    lately_us: Histogram<u64>,
    offered: Vec<u64>,
    answered: Vec<u64>,
    /// Operations offered that count, those that do not, and whether there will be more.
    offered_counted: u64,
    offered_warmup: u64,
    offering: bool,
    /// Everything that counts.
    pub counted: Counts,
    /// The warm-up, apart.
    pub warmup: Counts,
}

/// How many met which fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Done, refused by the service or not.
    pub done: u64,
    /// Of those, refused by the service.
    pub refused: u64,
    /// Not taken by a full session.
    pub dropped: u64,
}

impl Counts {
    /// All that are settled.
    #[must_use]
    pub fn settled(&self) -> u64 {
        self.done + self.dropped
    }
}

impl Recorder {
    /// Nothing counted yet.
    #[must_use]
    pub fn new(schedule: Schedule) -> Self {
        Self {
            schedule,
            latencies: Latencies::new(schedule.first_counted()..schedule.end()),
            lately_us: latencies::histogram(2),
            offered: Vec::new(),
            answered: Vec::new(),
            offered_counted: 0,
            offered_warmup: 0,
            offering: true,
            counted: Counts::default(),
            warmup: Counts::default(),
        }
    }

    /// Takes in that operations with these marks are offered, whether or not they will be taken.
    pub fn offer(&mut self, marks: impl Iterator<Item = u64>) {
        let first_counted = self.schedule.first_counted();
        for mark in marks {
            count(&mut self.offered, mark);
            if mark >= first_counted {
                self.offered_counted += 1;
            } else {
                self.offered_warmup += 1;
            }
        }
    }

    /// All operations were offered.
    pub fn offer_no_more(&mut self) {
        self.offering = false;
    }

    /// Takes in what became of an operation with this mark.
    pub fn record(&mut self, mark: u64, fate: Fate) {
        let counts = mark >= self.schedule.first_counted();
        let tally = if counts { &mut self.counted } else { &mut self.warmup };
        match fate {
            Fate::NotTaken => tally.dropped += 1,
            Fate::Done { at, refused } => {
                tally.done += 1;
                tally.refused += u64::from(refused);
                let done = self.schedule.mark(at);
                let latency_us = done.saturating_sub(mark);
                self.lately_us.saturating_record(latency_us);
                self.latencies.add(mark, latency_us, 1);
                count(&mut self.answered, done);
            }
        }
    }

    /// Everything over time, the warm-up included.
    #[must_use]
    pub fn over_time(&self) -> OverTime {
        let span = self.schedule.warmup + self.schedule.window;
        let intervals = (span.as_millis() as u64).div_ceil(INTERVAL_MS) as usize;
        let mut offered = self.offered.clone();
        offered.resize(intervals.max(offered.len()), 0);
        OverTime {
            offered,
            answered: self.answered.clone(),
            latency: self.latencies.over_time().clone(),
            distribution_us: self.latencies.distribution_us(),
        }
    }

    /// The latency of the operations that count.
    #[must_use]
    pub fn latency(&self) -> LatencyMs {
        self.latencies.summary()
    }

    /// Answers a second, as [`Latencies::goodput_tps`] has it.
    #[must_use]
    pub fn goodput_tps(&self) -> f64 {
        self.latencies.goodput_tps()
    }

    /// The latency of what was done since this was last asked.
    pub fn lately(&mut self) -> LatencyMs {
        let summary = summarise(&self.lately_us);
        self.lately_us.reset();
        summary
    }

    /// Operations that count and were offered.
    #[must_use]
    pub fn offered(&self) -> u64 {
        self.offered_counted
    }

    /// Whether everything was offered and is settled.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let settled = self.counted.settled() + self.warmup.settled();
        !self.offering && settled >= self.offered_counted + self.offered_warmup
    }
}

/// What happened when, in intervals of [`INTERVAL_MS`] from the beginning of the load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverTime {
    /// Operations due in each interval.
    pub offered: Vec<u64>,
    /// Operations whose (f+1)-th equal reply came in each interval; it may go on after the load.
    pub answered: Vec<u64>,
    /// Latency of the operations due in each interval.
    pub latency: LatencyGrid,
    /// Latency of the operations that count: values in µs, ascending, and how many had them.
    pub distribution_us: Vec<(u64, u64)>,
}

/// Counts one more in the interval of a mark.
fn count(intervals: &mut Vec<u64>, mark: u64) {
    let index = (mark / (INTERVAL_MS * 1_000)) as usize;
    if intervals.len() <= index {
        intervals.resize(index + 1, 0);
    }
    intervals[index] += 1;
}

#[cfg(test)]
mod tests;
