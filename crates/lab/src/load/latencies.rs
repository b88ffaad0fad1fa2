//! Latencies of answered operations: how they are distributed, how they change over time, and the
//! goodput.
//!
//! Real and simulated committees fill the same [`Latencies`], so that their figures mean the same.

use quorate_report::results::{Histogram, LatencyGrid, LatencyMs};
use std::ops::Range;

/// Longest latency told apart: ten minutes.
const LATENCY_US_MAX: u64 = 600_000_000;

/// Answered operations, by when they were due and how long they took.
#[derive(Debug)]
pub struct Latencies {
    /// Moments at which operations are due that count, in microseconds since the load began.
    counted_us: Range<u64>,
    counted: Counted,
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
        let (counted, grid) = (Counted::new(3), LatencyGrid::default());
        Self { first_answer_us: counted_us.end, counted_us, counted, grid, in_time: 0 }
    }

    /// Changes when operations are due that count. It lies in the future: none were so far.
    pub fn count_only(&mut self, counted_us: Range<u64>) {
        self.first_answer_us = counted_us.end;
        self.counted_us = counted_us;
    }

    /// So many operations were due then and took so long.
    pub fn add(&mut self, due_us: u64, latency_us: u64, count: u32) {
        self.grid.record(due_us / 1_000, latency_us, count);
        if due_us >= self.counted_us.start {
            self.counted.add(latency_us, u64::from(count));
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

    /// Latencies of the operations that count, in full.
    #[must_use]
    pub fn histogram(&self) -> Histogram {
        self.counted.kept()
    }

    /// Those that count, in short.
    #[must_use]
    pub fn summary(&self) -> LatencyMs {
        self.histogram().summary()
    }

    /// Those that count: the distinct latencies in µs, ascending, each with how many had it. Those
    /// within one per cent of each other are counted as the largest of them.
    #[must_use]
    pub fn distribution_us(&self) -> Vec<(u64, u64)> {
        self.histogram().distribution_us()
    }
}

/// Latencies as they are counted.
#[derive(Debug)]
pub(super) struct Counted {
    steps: hdrhistogram::Histogram<u64>,
    sum_us: u64,
}

impl Counted {
    /// None yet, to be told apart to so many digits.
    pub(super) fn new(digits: u8) -> Self {
        let made = hdrhistogram::Histogram::new_with_bounds(1, LATENCY_US_MAX, digits);
        Self { steps: made.expect("constants within their ranges"), sum_us: 0 }
    }

    pub(super) fn add(&mut self, latency_us: u64, count: u64) {
        let latency_us = latency_us.min(LATENCY_US_MAX);
        self.steps.saturating_record_n(latency_us, count);
        self.sum_us += latency_us * count;
    }

    /// What was counted so far.
    pub(super) fn kept(&self) -> Histogram {
        let recorded = self.steps.iter_recorded();
        let counts = recorded.map(|found| (found.value_iterated_to(), found.count_at_value()));
        Histogram { counts_us: counts.collect(), sum_us: self.sum_us }
    }

    /// Begins anew.
    pub(super) fn reset(&mut self) {
        self.steps.reset();
        self.sum_us = 0;
    }
}

#[cfg(test)]
mod tests;
