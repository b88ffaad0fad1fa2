//! Outcomes of all operations, counted and timed.
//!
//! An operation's mark is when it was due, in microseconds since the load began, so that nothing
//! has to be remembered for each. Latency runs from then, not from when a busy client got round to
//! sending: otherwise a stall would hide the very operations that it delayed. In a closed loop an
//! operation is due when the one before it is answered.

use super::latencies::{Counted, Latencies};
use quorate_report::results::latency_grid::INTERVAL_MS;
use quorate_report::results::{Counts, Histogram, LatencyGrid, LatencyMs, Rates};
use std::time::{Duration, Instant};

/// Beginning of the load, and the part of it that counts.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// Moment at which it begins.
    pub start: Instant,
    /// Length of the first part, which does not count.
    pub warmup: Duration,
    /// Length of the part that does.
    pub window: Duration,
}

impl Schedule {
    /// Moment at which an operation with this mark is due.
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

/// Result of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationResult {
    /// f+1 replicas gave the same signed reply.
    Done {
        /// Moment at which the last of them was counted.
        at: Instant,
        /// `true` if the service refused the operation.
        refused: bool,
    },
    /// The session was full and did not take it.
    NotTaken,
}

/// Counts results of operations.
#[derive(Debug)]
pub struct Recorder {
    schedule: Schedule,
    latencies: Latencies,
    lately: Counted,
    offered: Vec<u64>,
    answered: Vec<u64>,
    /// Operations offered that count, those that do not, and whether there will be more.
    offered_counted: u64,
    offered_warmup: u64,
    offering: bool,
    /// Operations of the measured window.
    pub counted: Counts,
    /// Operations of the warm-up that are settled; [`Recorder::whole_warmup`] has the others too.
    pub warmup: Counts,
}

impl Recorder {
    /// A recorder that has counted nothing yet.
    #[must_use]
    pub fn new(schedule: Schedule) -> Self {
        Self {
            schedule,
            latencies: Latencies::new(schedule.first_counted()..schedule.end()),
            lately: Counted::new(2),
            offered: Vec::new(),
            answered: Vec::new(),
            offered_counted: 0,
            offered_warmup: 0,
            offering: true,
            counted: Counts::default(),
            warmup: Counts::default(),
        }
    }

    /// Ends the warm-up at the next whole second of the load, if that is earlier than was planned:
    /// nothing was due after it so far, so that no operation changes sides.
    pub fn end_warmup(&mut self) -> Schedule {
        let next = Duration::from_secs(self.schedule.start.elapsed().as_secs() + 1);
        if next < self.schedule.warmup {
            self.schedule.warmup = next;
            self.latencies.count_only(self.schedule.first_counted()..self.schedule.end());
        }
        self.schedule
    }

    /// All operations of the load have marks below this one.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.schedule.end()
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
    pub fn record(&mut self, mark: u64, result: OperationResult) {
        let counts = mark >= self.schedule.first_counted();
        let tally = if counts { &mut self.counted } else { &mut self.warmup };
        match result {
            OperationResult::NotTaken => tally.dropped += 1,
            OperationResult::Done { at, refused } => {
                tally.done += 1;
                tally.refused += u64::from(refused);
                let done = self.schedule.mark(at);
                let latency_us = done.saturating_sub(mark);
                self.lately.add(latency_us, 1);
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
            histogram: self.latencies.histogram(),
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
        let summary = self.lately.kept().summary();
        self.lately.reset();
        summary
    }

    /// Operations that count and were offered.
    #[must_use]
    pub fn offered(&self) -> u64 {
        self.offered_counted
    }

    /// Operations of the warm-up, those included that nothing has become of so far.
    #[must_use]
    pub fn whole_warmup(&self) -> Counts {
        let unanswered = self.offered_warmup.saturating_sub(self.warmup.settled());
        Counts { unanswered, ..self.warmup }
    }

    /// Operations answered so far, the warm-up included.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.counted.done + self.warmup.done
    }

    /// Returns `true` if everything was offered and is settled.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let settled = self.counted.settled() + self.warmup.settled();
        !self.offering && settled >= self.offered_counted + self.offered_warmup
    }
}

/// Counts over time, in intervals of [`INTERVAL_MS`] from the beginning of the load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverTime {
    /// Operations due in each interval.
    pub offered: Vec<u64>,
    /// Operations whose (f+1)-th equal reply came in each interval; it may go on after the load.
    pub answered: Vec<u64>,
    /// Latency of the operations due in each interval.
    pub latency: LatencyGrid,
    /// Latency of the operations that count.
    pub histogram: Histogram,
}

impl OverTime {
    /// Offered and answered operations a second.
    #[must_use]
    pub fn rates(&self) -> Rates {
        let per_second = |counts: &[u64]| {
            counts.iter().map(|&count| (count * 1_000 / INTERVAL_MS) as f64).collect()
        };
        Rates {
            interval_ms: INTERVAL_MS,
            offered_tps: per_second(&self.offered),
            answered_tps: per_second(&self.answered),
        }
    }
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
