//! What a result is judged by: computed or measured beside it.

use super::config::BenchConfig;
use super::measure::LatencyMs;
use super::recovery::Recovery;
use crate::minimum::{self, Minimum};
use crate::text::milliseconds;
use quorate_types::Committee;
use serde::{Deserialize, Serialize};

/// Everything that stands beside the figures of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Beside {
    /// The least latency on the emulated network, where there is one.
    pub minimum: Option<LeastLatency>,
    /// How long throughput took to recover from each thing done to a validator.
    pub recoveries: Vec<Recovery>,
}

/// The least latency that the protocol needs on the emulated network, and how near the run came.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeastLatency {
    /// The least.
    #[serde(flatten)]
    pub least: Minimum,
    /// The measured median over the least median.
    pub p50_ratio: f64,
    /// The measured mean over the least mean.
    pub mean_ratio: f64,
}

impl Beside {
    /// A line for each thing that there is something to say of.
    #[must_use]
    pub fn figures(&self) -> Vec<(&'static str, String)> {
        let minimum = self.minimum.iter().map(|minimum| ("least latency", minimum.describe()));
        let recoveries = self.recoveries.iter().map(|recovery| ("recovery", recovery.describe()));
        minimum.chain(recoveries).collect()
    }
}

impl LeastLatency {
    /// For what was measured on the network that the configuration emulates; `None` without one.
    pub(super) fn of(
        config: &BenchConfig,
        committee: &Committee,
        measured: LatencyMs,
    ) -> Option<Self> {
        let network = config.topology()?;
        let whole = |weight: u64| usize::try_from(weight).expect("as many as members");
        let least = minimum::jolteon(&network, whole(committee.quorum()), whole(committee.weak()));
        let ratio = |measured: f64, least: f64| (measured / least * 1_000.0).round() / 1_000.0;
        (least.p50_ms > 0.0).then(|| Self {
            least,
            p50_ratio: ratio(measured.p50, least.p50_ms),
            mean_ratio: ratio(measured.mean, least.mean_ms),
        })
    }

    fn describe(&self) -> String {
        let least = &self.least;
        let wait = least.mean_ms - least.mean_without_wait_ms;
        format!(
            "p50 {} ms on this network ({} waiting for a leader's turn); measured {:.2} ×",
            milliseconds(least.p50_ms),
            milliseconds(wait),
            self.p50_ratio,
        )
    }
}
