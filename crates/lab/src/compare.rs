//! Search for the scheme and the way of checking votes that fit a committee: `quorate compare`.
//!
//! For each size and each [`Candidate`] a search for the *knee*: the highest rate at which nearly
//! everything offered is committed and the median latency is at most twice that under little load.
//! Then all candidates of a size are looked at under one common rate, and [`advise`] recommends
//! one of them and says why. Points are short: the knee is known to within [`PRECISION`].
//!
//! Each search goes by its own results, so a comparison is divided among machines by candidates
//! ([`measure_part`]). [`join`] runs it once more with what they kept, and measures only what asks
//! for all of them: each candidate at the common rate.

mod advice;
mod bench;
mod parts;
mod present;
mod search;

pub use advice::{Advice, Ground, advise};
pub use parts::{FailedJoin, candidates_of, join, measure_part};
pub use present::{experiment, table};
pub use search::{KEPT_UP, LATENCY_FACTOR, PRECISION};

use crate::experiment::{Record, RunError, Runner, Setup};
use bench::Bench;
use quorate_crypto::{Policy, SchemeKind};
use quorate_types::as_text;
use serde::Serialize;
use serde_json::Value;
use std::sync::atomic::AtomicBool;

/// A scheme, and how votes are checked under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// The voting scheme of the committee.
    #[serde(serialize_with = "as_text::serialize")]
    pub scheme: SchemeKind,
    /// Way of checking votes.
    #[serde(serialize_with = "as_text::serialize")]
    pub verify: Policy,
}

/// Parameters of a comparison.
#[derive(Clone, Debug)]
pub struct ComparisonSpec {
    /// Numbers of members, one search for each.
    pub sizes: Vec<u16>,
    /// Candidates that are compared with one another.
    pub candidates: Vec<Candidate>,
    /// The rate that the committee must take, in operations a second; `None` to ask for the
    /// highest.
    pub rate: Option<u64>,
    /// Everything else: network, prices, durability, length of a point.
    pub base: Setup,
}

/// Result of one candidate at one size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Members of the committee.
    pub validators: u16,
    /// Candidate that was measured.
    #[serde(flatten)]
    pub candidate: Candidate,
    /// The highest rate that it kept up with, in operations a second; 0 when it did not keep up
    /// with the lowest that was tried.
    pub knee_tps: f64,
    /// The rate that was offered when it committed that.
    pub kept_rate: u64,
    /// The lowest rate that it did not keep up with; absent when nothing beyond the other was
    /// tried.
    pub limit_tps: Option<f64>,
    /// What that rate was too much for, in words: a resource with its load, the latency, or what
    /// was committed.
    pub bound: Option<String>,
    /// Under little load: the median latency, in milliseconds.
    pub idle_ms: f64,
    /// The rate at which all candidates of this size are compared.
    pub common_rate: u64,
    /// Median latency at that rate, in milliseconds; absent when it did not keep up.
    pub latency_ms: Option<f64>,
    /// The same at the 99th percentile.
    pub latency_p99_ms: Option<f64>,
    /// Load of the busiest validator's processor at that rate, in per cent.
    pub cpu_share: Option<f64>,
    /// Bytes of a certificate.
    pub certificate_bytes: f64,
}

/// Everything that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// By size, then in the order in which candidates were asked for.
    pub findings: Vec<Finding>,
    /// One for each size.
    pub advice: Vec<Advice>,
    /// Largest error of a knee, as a share of it.
    pub precision: f64,
    /// Every point that was measured.
    pub records: Vec<Record>,
}

/// Callback with the searches done, and all of them.
pub type OnProgress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// Runner, machine and threads with which points are measured.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    /// Runner of the points.
    pub runner: &'a dyn Runner,
    /// The machine and binary, as results name them.
    pub machine: &'a Value,
    /// Searches side by side, where that is possible.
    pub threads: usize,
    /// Told of every search and check that is done.
    pub progress: OnProgress<'a>,
    /// Set when somebody asks for an early end.
    pub interrupted: &'a AtomicBool,
}

/// Answers a spec.
///
/// # Errors
/// When it was interrupted, or no point can be measured.
pub fn compare(spec: &ComparisonSpec, means: &Means<'_>) -> Result<Comparison, RunError> {
    answer(Bench::new(spec, *means))
}

/// Searches, holds all candidates against one another, and recommends.
fn answer(mut bench: Bench<'_>) -> Result<Comparison, RunError> {
    let spec = bench.spec;
    let sizes = sorted(&spec.sizes);
    let step = bench.steps(2 * sizes.len() * spec.candidates.len());
    let knees = bench.search(&spec.candidates, &sizes, &step)?;
    bench.is_searched();
    let mut findings = bench.check(&knees, &step)?;
    findings.sort_by_key(|finding| spec.place(finding.validators, finding.candidate));
    let advice = advise(spec, &findings);
    Ok(Comparison { findings, advice, precision: PRECISION, records: bench.into_records() })
}

fn sorted(sizes: &[u16]) -> Vec<u16> {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    sizes
}

impl ComparisonSpec {
    /// Sort key of a candidate at a size: as they were asked for.
    fn place(&self, validators: u16, candidate: Candidate) -> (Option<usize>, Option<usize>) {
        let size = self.sizes.iter().position(|size| *size == validators);
        (size, self.candidates.iter().position(|other| *other == candidate))
    }

    /// The preset under which results are kept: it tells what the search was for.
    fn preset(&self) -> String {
        self.rate.map_or("compare".to_owned(), |rate| format!("compare, rate {rate}"))
    }
}

#[cfg(test)]
mod tests;
