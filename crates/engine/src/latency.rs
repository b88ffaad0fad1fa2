//! Times that decisions and requests take, as this replica sees them.

use std::time::Duration;

/// Upper bounds of the buckets in microseconds: from half a millisecond, twice as much each, to
/// half a minute.
const BOUNDS_US: [u64; 17] = {
    let mut bounds = [500; 17];
    let mut index = 1;
    while index < bounds.len() {
        bounds[index] = 2 * bounds[index - 1];
        index += 1;
    }
    bounds
};

/// Counts of times by their length. Taking one in allocates nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyCounts {
    counts: [u64; BOUNDS_US.len() + 1],
    sum_us: u64,
}

impl LatencyCounts {
    /// Takes in one time.
    pub fn observe(&mut self, span: Duration) {
        let us = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        self.counts[BOUNDS_US.partition_point(|bound| *bound < us)] += 1;
        self.sum_us = self.sum_us.saturating_add(us);
    }

    /// Number of times that were taken in.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Their sum in seconds.
    #[must_use]
    pub fn sum_seconds(&self) -> f64 {
        self.sum_us as f64 / 1e6
    }

    /// Buckets in ascending order: the upper bound in seconds, infinite for the last, and the
    /// number of times in this bucket alone.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let bounds = BOUNDS_US.iter().map(|us| *us as f64 / 1e6);
        bounds.chain([f64::INFINITY]).zip(self.counts.iter().copied())
    }

    /// Times that came after those of `earlier`, which is an older state of these counts.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut counts = self.counts;
        for (count, before) in counts.iter_mut().zip(earlier.counts) {
            *count = count.saturating_sub(before);
        }
        Self { counts, sum_us: self.sum_us.saturating_sub(earlier.sum_us) }
    }

    /// Seconds that this part of the times, between 0 and 1, does not exceed; `None` while there
    /// are none. Times are taken to be spread evenly over their bucket, and those of the last one
    /// to be its lower bound.
    #[must_use]
    pub fn quantile(&self, part: f64) -> Option<f64> {
        let (mut left, mut lower, mut found) = (part * self.count() as f64, 0.0, None);
        for (upper, count) in self.buckets() {
            let count = count as f64;
            if count > 0.0 {
                let end = if upper.is_finite() { upper } else { lower };
                found = Some(lower + (end - lower) * (left / count).min(1.0));
                if left <= count {
                    break;
                }
                left -= count;
            }
            lower = upper;
        }
        found
    }
}

/// Times of decisions and requests.
#[derive(Debug, Default)]
pub(crate) struct Latencies {
    /// From the arrival of the oldest body that a payload orders to its decision.
    pub(crate) decisions: LatencyCounts,
    /// From the arrival of a request at this member to its answer, without its certificate.
    pub(crate) requests: LatencyCounts,
}

#[cfg(test)]
mod tests;
