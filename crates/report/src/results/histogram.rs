//! Latencies of all operations, kept so that those of several loads can be added.

use super::LatencyMs;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Values closer together than this are one in a distribution: nothing drawn shows less.
const DISTRIBUTION_RATIO: f64 = 1.01;

/// Number of operations by latency. The steps between values are the same wherever it was filled
/// (three digits of microseconds), so that adding two is adding what each step holds: the
/// percentiles of the sum are those of all operations together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// Latencies in µs, ascending, each with how many operations had it. A value is the largest of
    /// its step.
    pub counts_us: Vec<(u64, u64)>,
    /// Sum of all latencies in µs, as they were before they were put into steps.
    pub sum_us: u64,
}

impl Histogram {
    /// Number of operations, whatever they took.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts_us.iter().map(|entry| entry.1).sum()
    }

    /// Adds the operations of another.
    pub fn add(&mut self, other: &Self) {
        let mut counts: BTreeMap<u64, u64> = self.counts_us.iter().copied().collect();
        for &(value, count) in &other.counts_us {
            *counts.entry(value).or_insert(0) += count;
        }
        self.counts_us = counts.into_iter().collect();
        self.sum_us += other.sum_us;
    }

    /// Latency in µs that a share of `quantile` (0 to 1) of the operations did not exceed; 0 where
    /// there are none.
    #[must_use]
    pub fn quantile_us(&self, quantile: f64) -> u64 {
        let wanted = ((quantile * self.total() as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let reaches = |&&(_, count): &&(u64, u64)| {
            seen += count;
            seen >= wanted
        };
        self.counts_us.iter().find(reaches).or(self.counts_us.last()).map_or(0, |entry| entry.0)
    }

    /// The distribution in short.
    #[must_use]
    pub fn summary(&self) -> LatencyMs {
        let total = self.total();
        if total == 0 {
            return LatencyMs::default();
        }
        let at = |quantile| self.quantile_us(quantile) as f64 / 1_000.0;
        let mean_us = self.sum_us as f64 / total as f64;
        LatencyMs {
            mean: (mean_us / 10.0).round() / 100.0,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: at(1.0),
        }
    }

    /// The distinct latencies in µs, ascending, each with how many had it. Those within one per
    /// cent of each other are counted as the largest of them.
    #[must_use]
    pub fn distribution_us(&self) -> Vec<(u64, u64)> {
        let mut distinct: Vec<(u64, u64)> = Vec::new();
        let mut least = 0.0;
        for &(value, count) in &self.counts_us {
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

#[cfg(test)]
mod tests;
