//! A one-way delay as a distribution.

use crate::RoundTrip;
use std::time::Duration;

/// The longest delay that is drawn: one in a thousand is as long.
const QUANTILE_MAX: f64 = 0.999;

/// A floor, and above it an exponential tail: `base + scale · −ln(1 − u)` for a uniform `u`.
///
/// Fitted to half of a measured round trip so that the median and the 90th percentile are met
/// exactly: with `spread = p90 − p50`, `scale = spread / ln 5` and `base = p50 − scale · ln 2`.
/// Paths have a floor, the way that light takes, and queues on top; a symmetric distribution would
/// have packets arrive before they could.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    base_s: f64,
    scale_s: f64,
}

impl Latency {
    /// A delay that is always the same.
    #[must_use]
    pub fn constant(delay: Duration) -> Self {
        Self { base_s: delay.as_secs_f64(), scale_s: 0.0 }
    }

    /// Half of a round trip.
    #[must_use]
    pub fn half_of(round_trip: RoundTrip) -> Self {
        let median = round_trip.p50_ms / 2_000.0;
        let spread = (round_trip.p90_ms - round_trip.p50_ms).max(0.0) / 2_000.0;
        // A floor below zero cannot be: then the median is kept and the tail is shorter.
        let scale_s = (spread / 5.0_f64.ln()).min(median / 2.0_f64.ln());
        Self { base_s: median - scale_s * 2.0_f64.ln(), scale_s }
    }

    /// The same median without a tail.
    #[must_use]
    pub fn without_jitter(self) -> Self {
        Self { base_s: self.median_s(), scale_s: 0.0 }
    }

    /// Median delay: half of all are shorter.
    #[must_use]
    pub fn median(self) -> Duration {
        Duration::from_secs_f64(self.median_s())
    }

    /// The delay below which this share of all lies, 0 to 1; beyond 0.999 it is the longest.
    #[must_use]
    pub fn quantile(self, share: f64) -> Duration {
        let share = share.clamp(0.0, QUANTILE_MAX);
        Duration::from_secs_f64(self.base_s - self.scale_s * (1.0 - share).ln())
    }

    /// Longest delay that is drawn: one in a thousand.
    #[must_use]
    pub fn longest(self) -> Duration {
        self.quantile(1.0)
    }

    fn median_s(self) -> f64 {
        self.base_s + self.scale_s * 2.0_f64.ln()
    }
}

#[cfg(test)]
mod tests;
