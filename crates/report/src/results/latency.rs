//! Latency distributions in short.

use serde::{Deserialize, Serialize};

/// A latency distribution in milliseconds; zeros when nothing was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyMs {
    /// Mean of all latencies.
    pub mean: f64,
    /// Median of all latencies.
    pub p50: f64,
    /// Latency that nine in ten did not exceed.
    pub p90: f64,
    /// Latency that ninety-nine in a hundred did not exceed.
    pub p99: f64,
    /// Longest latency of all.
    pub max: f64,
}
