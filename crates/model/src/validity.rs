//! Doubts about a result: what must hold of a measurement before its figures mean anything.
//!
//! A mean over a window describes a committee under a load only if the window is stationary and
//! long enough. Each check is of one run by itself; what a run fails is said beside its figures,
//! which stay as they are.

use crate::outcome::{Estimate, PerSecond};
use crate::scene::Scene;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Reason for which the figures of a run are not those of a committee under this load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// Too few operations or heights for a mean.
    FewSamples {
        /// Operations that were committed in the window.
        operations: u64,
        /// Heights that were decided in it.
        heights: u64,
    },
    /// Views timed out though nobody crashed.
    ViewChanges {
        /// Number of them, at the validator at which most did.
        views: u64,
    },
    /// Both halves of the window committed at different rates, in operations.
    RateDrifts {
        /// Committed in the first half.
        first: f64,
        /// Committed in the second half.
        second: f64,
    },
    /// Both halves of the window had different mean latencies, in milliseconds.
    LatencyDrifts {
        /// Mean of the first half.
        first: f64,
        /// Mean of the second half.
        second: f64,
    },
    /// In the window's second half fewer operations were committed than came in.
    BacklogGrows {
        /// Those that came in.
        offered: f64,
        /// Those that were committed, whenever they came in.
        committed: f64,
    },
    /// Throughput times latency is not what was under way (Little's law).
    LittlesLaw {
        /// Operations under way, the mean over the window.
        under_way: f64,
        /// Throughput times mean latency.
        accounted: f64,
    },
}

impl Doubt {
    /// Tells whether more is offered than is committed.
    pub(crate) fn is_growth(&self) -> bool {
        matches!(self, Self::BacklogGrows { .. })
    }
}

/// Fewest operations of a window.
const OPERATIONS_MIN: u64 = 1_000;
/// Fewest heights of a window: their moments are what a mean latency varies by.
const HEIGHTS_MIN: u64 = 20;
/// By how much both halves may differ.
const DRIFT_MAX: f64 = 0.1;
/// By how much what was under way may differ from throughput times latency.
const LITTLE_MAX: f64 = 0.15;

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::FewSamples { operations, heights } => {
                write!(f, "{operations} operations in {heights} heights are few")
            }
            Self::ViewChanges { views } => write!(f, "{views} views timed out, and nobody crashed"),
            Self::RateDrifts { first, second } => write!(
                f,
                "{first:.0} operations were committed in the window's first half, {second:.0} in its \
                 second"
            ),
            Self::LatencyDrifts { first, second } => write!(
                f,
                "latency was {first:.0} ms in the window's first half, {second:.0} in its second"
            ),
            Self::BacklogGrows { offered, committed } => write!(
                f,
                "the backlog grows: {committed:.0} of {offered:.0} operations were committed in the \
                 window's second half"
            ),
            Self::LittlesLaw { under_way, accounted } => write!(
                f,
                "{under_way:.0} operations were under way, and throughput times latency is \
                 {accounted:.0}"
            ),
        }
    }
}

/// Doubts about what a scene came to; none of a result that stands, or of a window in which
/// somebody crashes: that it is not stationary is what it is looked at for.
pub(crate) fn doubts(scene: &Scene, estimate: &Estimate) -> Vec<Doubt> {
    if scene.is_of_a_crash() {
        return Vec::new();
    }
    let latency = estimate.first_validator;
    let mut doubts = Vec::new();
    let (operations, heights) = (latency.operations, estimate.heights);
    if operations < OPERATIONS_MIN || heights < HEIGHTS_MIN {
        doubts.push(Doubt::FewSamples { operations, heights });
    }
    if estimate.timeouts > 0 && scene.crashes().next().is_none() {
        doubts.push(Doubt::ViewChanges { views: estimate.timeouts });
    }
    doubts.extend(drifts(&estimate.seconds));
    let seconds = estimate.seconds.len() as f64;
    let under_way = estimate.seconds.iter().map(|second| second.under_way).sum::<f64>() / seconds;
    let accounted = estimate.committed_tps * latency.mean_ms / 1e3;
    if differ(under_way, accounted, LITTLE_MAX) {
        doubts.push(Doubt::LittlesLaw { under_way, accounted });
    }
    doubts
}

/// What tells the halves of a window apart. An odd second in the middle is in neither.
fn drifts(seconds: &[PerSecond]) -> Vec<Doubt> {
    let half = seconds.len() / 2;
    let sum = |part: &[PerSecond], of: fn(&PerSecond) -> f64| part.iter().map(of).sum::<f64>();
    let both = |of| (sum(&seconds[..half], of), sum(&seconds[seconds.len() - half..], of));
    let mut doubts = Vec::new();
    let (before, after) = both(|second| second.committed as f64);
    if differ(before, after, DRIFT_MAX) {
        doubts.push(Doubt::RateDrifts { first: before, second: after });
    }
    let (_, entered) = both(|second| second.offered as f64);
    if after < (1.0 - DRIFT_MAX) * entered {
        doubts.push(Doubt::BacklogGrows { offered: entered, committed: after });
    }
    let (sums, counts) = (both(|second| second.first_ms_sum), (before, after));
    let (before, after) = (sums.0 / counts.0, sums.1 / counts.1);
    if differ(before, after, DRIFT_MAX) {
        doubts.push(Doubt::LatencyDrifts { first: before, second: after });
    }
    doubts
}

/// Tells whether two numbers differ by more than a share of the larger one. Nothing beside
/// something does; two that are no numbers do not.
fn differ(one: f64, other: f64, share: f64) -> bool {
    (one - other).abs() > share * one.max(other)
}

#[cfg(test)]
mod tests;
