//! What came of every operation, counted and timed.
//!
//! An operation's mark is its position in the offered load, so that its scheduled time follows from
//! the mark alone and nothing has to be remembered for each. Latency runs from that scheduled time,
//! not from when a busy client got round to sending: otherwise a stall would hide the very operations
//! that it delayed.

use super::latency_grid::{INTERVAL_MS, LatencyGrid};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// When each operation is due.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// When the first one is.
    pub start: Instant,
    /// Operations per second.
    pub rate: u64,
    /// How much of the start does not count.
    pub warmup: Duration,
    /// How much follows that does.
    pub window: Duration,
}

impl Schedule {
    /// When the operation with this mark is due.
    #[must_use]
    pub fn due(&self, mark: u64) -> Instant {
        let nanos = u128::from(mark) * 1_000_000_000 / u128::from(self.rate);
        self.start + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How many operations are due at `now`, and never more than the whole load.
    #[must_use]
    pub fn due_by(&self, now: Instant) -> u64 {
        let elapsed = now.saturating_duration_since(self.start).min(self.warmup + self.window);
        let due = elapsed.as_nanos() * u128::from(self.rate) / 1_000_000_000;
        u64::try_from(due).unwrap_or(u64::MAX)
    }

    /// The first mark that counts.
    #[must_use]
    pub fn first_counted(&self) -> u64 {
        self.rate * self.warmup.as_secs()
    }

    /// One past the last mark.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.due_by(self.start + self.warmup + self.window)
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

/// Longest latency told apart: ten minutes.
const LATENCY_US_MAX: u64 = 600_000_000;

/// Counts fates.
#[derive(Debug)]
pub struct Recorder {
    schedule: Schedule,
    latency_us: Histogram<u64>,
    lately_us: Histogram<u64>,
    grid: LatencyGrid,
    answered: Vec<u64>,
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

/// A latency distribution in milliseconds; zeros when nothing was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyMs {
    /// Average.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// Nine in ten were quicker.
    pub p90: f64,
    /// Ninety-nine in a hundred were quicker.
    pub p99: f64,
    /// The slowest.
    pub max: f64,
}

impl Recorder {
    /// Nothing counted yet.
    ///
    /// # Panics
    /// Never: the histograms' bounds are constants.
    #[must_use]
    pub fn new(schedule: Schedule) -> Self {
        let histogram = |digits| {
            let made = Histogram::new_with_bounds(1, LATENCY_US_MAX, digits);
            made.expect("constants within their ranges")
        };
        Self {
            schedule,
            latency_us: histogram(3),
            lately_us: histogram(2),
            grid: LatencyGrid::default(),
            answered: Vec::new(),
            counted: Counts::default(),
            warmup: Counts::default(),
        }
    }

    /// Takes in what became of the operation with this mark.
    pub fn record(&mut self, mark: u64, fate: Fate) {
        let counts = mark >= self.schedule.first_counted();
        let tally = if counts { &mut self.counted } else { &mut self.warmup };
        match fate {
            Fate::NotTaken => tally.dropped += 1,
            Fate::Done { at, refused } => {
                tally.done += 1;
                tally.refused += u64::from(refused);
                let due = self.schedule.due(mark);
                let latency = at.saturating_duration_since(due);
                let latency_us = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
                self.lately_us.saturating_record(latency_us);
                self.grid.record(since(self.schedule.start, due), latency_us);
                self.count_answer(at);
                if counts {
                    self.latency_us.saturating_record(latency_us);
                }
            }
        }
    }

    fn count_answer(&mut self, at: Instant) {
        let index = (since(self.schedule.start, at) / INTERVAL_MS) as usize;
        if self.answered.len() <= index {
            self.answered.resize(index + 1, 0);
        }
        self.answered[index] += 1;
    }

    /// Everything over time, the warm-up included.
    #[must_use]
    pub fn over_time(&self) -> OverTime {
        let span = self.schedule.warmup + self.schedule.window;
        let moment = |index: u64| self.schedule.start + Duration::from_millis(index * INTERVAL_MS);
        let due =
            |index| self.schedule.due_by(moment(index + 1)) - self.schedule.due_by(moment(index));
        let intervals = (span.as_millis() as u64).div_ceil(INTERVAL_MS);
        OverTime {
            offered: (0..intervals).map(due).collect(),
            answered: self.answered.clone(),
            latency: self.grid.clone(),
            distribution_us: distribution(&self.latency_us),
        }
    }

    /// The latency of the operations that count.
    #[must_use]
    pub fn latency(&self) -> LatencyMs {
        summarise(&self.latency_us)
    }

    /// The latency of what was done since this was last asked.
    pub fn lately(&mut self) -> LatencyMs {
        let summary = summarise(&self.lately_us);
        self.lately_us.reset();
        summary
    }

    /// Operations settled in all.
    #[must_use]
    pub fn settled(&self) -> u64 {
        self.counted.settled() + self.warmup.settled()
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

/// Values closer together than this are one in a distribution: nothing drawn shows less.
const DISTRIBUTION_RATIO: f64 = 1.01;

/// The distinct values of a histogram, ascending, those within one per cent counted as the largest.
fn distribution(histogram: &Histogram<u64>) -> Vec<(u64, u64)> {
    let mut distinct: Vec<(u64, u64)> = Vec::new();
    let mut least = 0.0;
    for found in histogram.iter_recorded() {
        let (value, count) = (found.value_iterated_to(), found.count_at_value());
        match distinct.last_mut() {
            Some(last) if value as f64 <= least * DISTRIBUTION_RATIO => {
                *last = (value, last.1 + count)
            }
            _ => {
                least = value as f64;
                distinct.push((value, count));
            }
        }
    }
    distinct
}

/// Milliseconds from `start` to `moment`, rounded down.
fn since(start: Instant, moment: Instant) -> u64 {
    u64::try_from(moment.saturating_duration_since(start).as_millis()).unwrap_or(u64::MAX)
}

fn summarise(histogram: &Histogram<u64>) -> LatencyMs {
    if histogram.is_empty() {
        return LatencyMs::default();
    }
    let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1_000.0;
    LatencyMs {
        mean: (histogram.mean() / 10.0).round() / 100.0,
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        max: histogram.max() as f64 / 1_000.0,
    }
}

#[cfg(test)]
mod tests;
