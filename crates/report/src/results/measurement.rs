//! Kinds of measurements, and what each load on a running committee says of itself.

use super::LatencyMs;
use crate::text::{milliseconds, thousands};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Kind of a measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Measurement {
    /// A committee that was made for it, on the machine of its load: `quorate bench`.
    #[default]
    Bench,
    /// One load on a running committee: `quorate load`.
    Load(LoadOrigin),
    /// Several loads on one running committee, joined: `quorate report --merge`.
    Merged(MergedLoads),
}

/// Counting that gives [`super::Report::committed_tps`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommittedBy {
    /// The slowest healthy validator's count of executed operations, those of all its clients.
    #[default]
    Validators,
    /// The load's own answers, f+1 equal ones to each operation: no validator was asked.
    Answers,
}

/// Place of a load among several that run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Share {
    /// Number of this one, from 1.
    pub index: u16,
    /// Number of loads that run at once.
    pub of: u16,
}

/// Origin of a load: what it ran on, and against which network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadOrigin {
    /// Name of the machine that offered it and whose clock its latencies are by.
    pub host: String,
    /// Its place among several, if it was given one.
    pub share: Option<Share>,
    /// Seed of its operations.
    pub seed: u64,
    /// Beginning of the load by that machine's clock, in milliseconds since 1970.
    pub started_ms: u64,
    /// Identifier of the network, in hexadecimal.
    pub network: String,
    /// Number of the epoch at its beginning, and at its end.
    pub epochs: (u64, u64),
    /// Service of the committee.
    pub service: String,
}

/// Loads that were joined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MergedLoads {
    /// The loads, by share and host.
    pub loads: Vec<MergedLoad>,
    /// Beginning of the window that all have in common, in milliseconds since 1970.
    pub window_from_ms: u64,
    /// Its length in milliseconds. Rates are added over it alone.
    pub window_ms: u64,
    /// Length from the first window's beginning to the last one's end, in milliseconds.
    pub windows_ms: u64,
}

/// One of several loads, with its own figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MergedLoad {
    /// Origin of the load.
    #[serde(flatten)]
    pub origin: LoadOrigin,
    /// Seconds before its window, which do not count.
    pub warmup_s: f64,
    /// Seconds of its window.
    pub duration_s: f64,
    /// Operations per second that it offered over its own window.
    pub offered_tps: f64,
    /// Answers per second over its own window.
    pub answered_tps: f64,
    /// Operations of its window that were answered.
    pub answered: u64,
    /// Operations that its sessions did not take, and those never answered.
    pub lost: u64,
    /// Latency of those that count, by its host's clock.
    pub latency_ms: LatencyMs,
}

/// A text that is no share.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no share: write I/N, as in 1/3 for the first of three loads")]
pub struct NotAShare(String);

impl FromStr for Share {
    type Err = NotAShare;

    fn from_str(text: &str) -> Result<Self, NotAShare> {
        let parse = || {
            let (index, of) = text.split_once('/')?;
            Some(Self { index: index.parse().ok()?, of: of.parse().ok()? })
        };
        let fits = |share: &Self| (1..=share.of).contains(&share.index);
        parse().filter(fits).ok_or_else(|| NotAShare(text.to_owned()))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl LoadOrigin {
    /// The load in a few words: its share or its seed, and its host.
    #[must_use]
    pub fn name(&self) -> String {
        match self.share {
            Some(share) => format!("load {share} on {}", self.host),
            None => format!("load with seed {} on {}", self.seed, self.host),
        }
    }

    /// The clock that its latencies are by, in words.
    #[must_use]
    pub fn clock(&self) -> String {
        let host = &self.host;
        format!("latency by the clock of {host}, from the scheduled time to the answer")
    }
}

impl MergedLoad {
    /// Share or seed, host, rates offered and answered, median and 99 % of the latency, and how
    /// many operations were answered and lost: a row of a table.
    #[must_use]
    pub fn cells(&self) -> [String; 8] {
        let whole = |rate: f64| thousands(rate.round() as u64);
        let LoadOrigin { host, share, seed, .. } = &self.origin;
        [
            share.map_or(format!("seed {seed}"), |share| share.to_string()),
            host.clone(),
            whole(self.offered_tps),
            whole(self.answered_tps),
            milliseconds(self.latency_ms.p50),
            milliseconds(self.latency_ms.p99),
            thousands(self.answered),
            thousands(self.lost),
        ]
    }
}

impl MergedLoads {
    /// Share of the time of all windows that they have in common below which a reader is warned.
    const COMMON_MIN: f64 = 0.9;

    /// Time that the windows have in common, and what is by whose clock, in words.
    #[must_use]
    pub fn describe(&self) -> String {
        let seconds = |ms: u64| ms as f64 / 1_000.0;
        format!(
            "the windows have {:.1} s in common of {:.1} s, and rates are added over these; latency \
             of each is by the clock of its host, from the scheduled time to the answer",
            seconds(self.window_ms),
            seconds(self.windows_ms),
        )
    }

    /// Warning where shares are not here, or much was measured outside the common window; counts
    /// and latencies are of all.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let warnings: Vec<String> =
            [self.shares_missing(), self.little_in_common()].into_iter().flatten().collect();
        (!warnings.is_empty()).then(|| warnings.join("; and "))
    }

    fn shares_missing(&self) -> Option<String> {
        let here: Vec<Share> = self.loads.iter().filter_map(|load| load.origin.share).collect();
        let of = here.first()?.of;
        let is_here = |index: u16| here.iter().any(|share| share.index == index);
        let missing = (1..=of).filter(|&index| !is_here(index)).count();
        (missing > 0).then(|| {
            format!(
                "{missing} of {of} shares of the load are not here: what they offered is in no \
                 figure, and the committee may have carried it all the same"
            )
        })
    }

    fn little_in_common(&self) -> Option<String> {
        let common = self.window_ms as f64 / self.windows_ms.max(1) as f64;
        (common < Self::COMMON_MIN).then(|| {
            format!(
                "the windows have only {:.0} % of their time in common: the latencies and counts of \
                 the rest are of fewer loads at once. Begin them together, with --start-at",
                100.0 * common
            )
        })
    }
}
