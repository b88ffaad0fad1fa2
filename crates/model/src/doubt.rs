//! Doubts: why the figures of a run may not mean what they say.

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
    /// More operations were committed in the window than came in: it begins with a backlog.
    BacklogShrinks {
        /// Those that came in.
        offered: f64,
        /// Those that were committed, whenever they came in.
        committed: f64,
    },
    /// The run was given up: more was under way than its scene allows.
    GivenUp {
        /// Operations under way then.
        under_way: u64,
        /// Seconds since the beginning.
        at_s: f64,
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
            Self::BacklogShrinks { offered, committed } => write!(
                f,
                "a backlog shrinks: {committed:.0} operations were committed, and {offered:.0} \
                 came in"
            ),
            Self::GivenUp { under_way, at_s } => {
                write!(f, "given up after {at_s:.1} s, with {under_way} operations under way")
            }
            Self::LittlesLaw { under_way, accounted } => write!(
                f,
                "{under_way:.0} operations were under way, and throughput times latency is \
                 {accounted:.0}"
            ),
        }
    }
}
