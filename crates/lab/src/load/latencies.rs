//! Latencies of answered operations: how they are distributed, how they change over time, and the
//! goodput.
//!
//! Real and simulated committees fill the same [`Latencies`], so that their figures mean the same.

use hdrhistogram::Histogram;
use quorate_report::results::{LatencyGrid, LatencyMs};
use std::ops::Range;

/// Longest latency told apart: ten minutes.
const LATENCY_US_MAX: u64 = 600_000_000;

/// Answered operations, by when they were due and how long they took.
#[derive(Debug)]
pub struct Latencies {
    /// Moments at which operations are due that count, in microseconds since the load began.
    counted_us: Range<u64>,
    histogram: Histogram<u64>,
    grid: LatencyGrid,
    /// Those that were answered in that time, whenever they were due, and when the first of them
    /// was.
    in_time: u64,
    first_answer_us: u64,
}

impl Latencies {
    /// None yet; `counted_us`: when operations are due that count, in microseconds since the load
    /// began. It ends with the load.
    #[must_use]
    pub fn new(counted_us: Range<u64>) -> Self {
        let (histogram, grid) = (histogram(3), LatencyGrid::default());
        Self { first_answer_us: counted_us.end, counted_us, histogram, grid, in_time: 0 }
    }

    /// So many operations were due then and took so long.
    pub fn add(&mut self, due_us: u64, latency_us: u64, count: u32) {
        self.grid.record(due_us / 1_000, latency_us, count);
        if due_us >= self.counted_us.start {
            self.histogram.saturating_record_n(latency_us, u64::from(count));
        }
        let answered_us = due_us.saturating_add(latency_us);
        if self.counted_us.contains(&answered_us) {
            self.in_time += u64::from(count);
            self.first_answer_us = self.first_answer_us.min(answered_us);
        }
    }

    /// Answers a second in the time that counts, from the first of them to the end of the load.
    ///
    /// Operations of the warm-up are among them: where a queue grows they are all that is answered
    /// for a while, and the committee is as busy with them. The end is that of the load and not of
    /// the wait for late answers (as paper 004 may be read): what is answered when nothing is
    /// offered any more says nothing of a committee under load, and one straggler would stretch the
    /// time. A first answer in the second half of the time that counts is taken to have come in its
    /// middle: a burst at the very end is no rate.
    #[must_use]
    pub fn goodput_tps(&self) -> f64 {
        let Range { start, end } = self.counted_us;
        let middle = start + (end - start) / 2;
        let span_us = end - self.first_answer_us.min(middle);
        if span_us == 0 { 0.0 } else { self.in_time as f64 * 1e6 / span_us as f64 }
    }

    /// All of them over time, also those that do not count.
    #[must_use]
    pub fn over_time(&self) -> &LatencyGrid {
        &self.grid
    }

    /// Those that count, in short.
    #[must_use]
    pub fn summary(&self) -> LatencyMs {
        summarise(&self.histogram)
    }

    /// Those that count: the distinct latencies in µs, ascending, each with how many had it. Those
    /// within one per cent of each other are counted as the largest of them.
    #[must_use]
    pub fn distribution_us(&self) -> Vec<(u64, u64)> {
        let mut distinct: Vec<(u64, u64)> = Vec::new();
        let mut least = 0.0;
        for found in self.histogram.iter_recorded() {
            let (value, count) = (found.value_iterated_to(), found.count_at_value());
            match distinct.last_mut() {
                Some(last) if value as f64 <= least * DISTRIBUTION_RATIO => {
                    *last = (value, last.1 + count);
                }
                _ => {
                    least = value as f64;
                    distinct.push((value, count));
                }
            }
        }
        distinct
    }
}

/// Values closer together than this are one in a distribution: nothing drawn shows less.
const DISTRIBUTION_RATIO: f64 = 1.01;

/// A histogram of microseconds, to so many digits.
pub(super) fn histogram(digits: u8) -> Histogram<u64> {
    let made = Histogram::new_with_bounds(1, LATENCY_US_MAX, digits);
    made.expect("constants within their ranges")
}

/// A histogram of microseconds in short.
pub(super) fn summarise(histogram: &Histogram<u64>) -> LatencyMs {
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
