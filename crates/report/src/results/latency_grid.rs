//! Latency over time: how many operations, due in which interval, took how long.
//!
//! A grid of counts, small enough to be kept beside a result and fine enough for everything that is
//! drawn over time: quantiles of any stretch of the run, and the heat map. An operation belongs to
//! the interval in which it was *due*, so that a stall shows as the slope that it is: those due
//! first waited longest.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Length of an interval, in milliseconds.
pub const INTERVAL_MS: u64 = 100;

/// Latencies told apart within a factor of ten: neighbours differ by 7.5 %.
const PER_DECADE: u32 = 32;

/// Operations that an interval should hold for its 99th percentile to mean something.
const COUNT_WANTED: u64 = 200;

/// Most intervals that are drawn: more would be narrower than a pixel.
const COLUMNS_MAX: usize = 400;

/// Counts by interval and latency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyGrid {
    /// Length of an interval, in milliseconds.
    pub interval_ms: u64,
    /// Steps of latency to a factor of ten. Step `s` holds latencies of 10^(s / `per_decade`) µs
    /// and more, below those of the next step.
    pub per_decade: u32,
    /// One entry an interval, from the beginning of the load: the steps that occurred in it, in
    /// ascending order, and how many operations each holds.
    pub intervals: Vec<Vec<(u16, u32)>>,
}

impl Default for LatencyGrid {
    fn default() -> Self {
        Self { interval_ms: INTERVAL_MS, per_decade: PER_DECADE, intervals: Vec::new() }
    }
}

impl LatencyGrid {
    /// Counts so many operations that were due `due_ms` into the load and took `latency_us`.
    pub fn record(&mut self, due_ms: u64, latency_us: u64, count: u32) {
        let index = usize::try_from(due_ms / self.interval_ms.max(1)).unwrap_or(usize::MAX - 1);
        if self.intervals.len() <= index {
            self.intervals.resize_with(index + 1, Vec::new);
        }
        let step = self.step(latency_us);
        let interval = &mut self.intervals[index];
        match interval.binary_search_by_key(&step, |entry| entry.0) {
            Ok(found) => interval[found].1 = interval[found].1.saturating_add(count),
            Err(place) => interval.insert(place, (step, count)),
        }
    }

    /// Adds what another grid of the same intervals counted, but for its first `skip` of them, to
    /// the first `length` intervals of this one.
    pub fn add(&mut self, other: &Self, skip: usize, length: usize) {
        let added: Vec<_> = other.intervals.iter().skip(skip).take(length).collect();
        if self.intervals.len() < added.len() {
            self.intervals.resize_with(added.len(), Vec::new);
        }
        for (own, added) in self.intervals.iter_mut().zip(added) {
            let mut sum: BTreeMap<u16, u32> = own.iter().copied().collect();
            for &(step, count) in added {
                let counted = sum.entry(step).or_insert(0);
                *counted = counted.saturating_add(count);
            }
            *own = sum.into_iter().collect();
        }
    }

    /// The same counts in intervals `factor` times as long.
    #[must_use]
    pub fn coarser(&self, factor: usize) -> Self {
        let merge = |range: &[Vec<(u16, u32)>]| {
            let mut sum = BTreeMap::new();
            for &(step, count) in range.iter().flatten() {
                *sum.entry(step).or_insert(0_u32) += count;
            }
            sum.into_iter().collect()
        };
        let factor = factor.max(1);
        Self {
            interval_ms: self.interval_ms * factor as u64,
            per_decade: self.per_decade,
            intervals: self.intervals.chunks(factor).map(merge).collect(),
        }
    }

    /// The same without what was due later than `span_ms` into the load.
    #[must_use]
    pub fn until(&self, span_ms: f64) -> Self {
        let mut grid = self.clone();
        grid.intervals.truncate((span_ms / grid.interval_ms.max(1) as f64).ceil() as usize);
        grid
    }

    /// The same without what lies beyond `span_ms`, in intervals that hold enough operations to be
    /// read and are wide enough to be drawn.
    #[must_use]
    pub fn readable(&self, span_ms: f64) -> Self {
        let grid = self.until(span_ms);
        let intervals = grid.intervals.len().max(1);
        let total: u64 = (0..grid.intervals.len()).map(|index| grid.count(index)).sum();
        let mean = (total / intervals as u64).max(1);
        let wanted = (COUNT_WANTED.div_ceil(mean) as usize).max(intervals.div_ceil(COLUMNS_MAX));
        // Not so few that nothing is left of the course of events.
        let factor = [1, 2, 5, 10, 20, 50, 100, 200, 500].into_iter().find(|f| *f >= wanted);
        grid.coarser(factor.unwrap_or(1_000).min(intervals.div_ceil(20).max(1)))
    }

    /// Number of operations of an interval.
    #[must_use]
    pub fn count(&self, interval: usize) -> u64 {
        self.intervals[interval].iter().map(|entry| u64::from(entry.1)).sum()
    }

    /// The latency in milliseconds that a share of `quantile` (0 to 1) of the operations due in
    /// these intervals did not exceed, to within a step; `None` when there were none.
    #[must_use]
    pub fn quantile_ms(&self, intervals: Range<usize>, quantile: f64) -> Option<f64> {
        let mut sum = BTreeMap::new();
        for &(step, count) in self.intervals.get(intervals)?.iter().flatten() {
            *sum.entry(step).or_insert(0_u64) += u64::from(count);
        }
        let total: u64 = sum.values().sum();
        let wanted = quantile.clamp(0.0, 1.0) * total as f64;
        let mut before = 0.0;
        for (&step, &count) in &sum {
            let count = count as f64;
            if before + count >= wanted {
                let within = ((wanted - before) / count).clamp(0.0, 1.0);
                return Some(self.edge_ms(f64::from(step) + within));
            }
            before += count;
        }
        None
    }

    /// The least latency of a step, in milliseconds. Fractions lie between steps.
    #[must_use]
    pub fn edge_ms(&self, step: f64) -> f64 {
        10_f64.powf(step / f64::from(self.per_decade.max(1))) / 1_000.0
    }

    fn step(&self, latency_us: u64) -> u16 {
        let steps = (latency_us.max(1) as f64).log10() * f64::from(self.per_decade);
        // The sum of rounding errors must not push an exact power of ten below its step.
        (steps + 1e-9) as u16
    }
}

#[cfg(test)]
mod tests;
