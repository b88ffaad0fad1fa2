//! Search for the scheme and the way of checking votes that fit a committee: `quorate compare`.
//!
//! For each size and each [`Candidate`] a search for the *knee*: the highest rate at which nearly
//! everything offered is committed and the median latency is at most twice that under little load.
//! Then all candidates of a size are looked at under one common rate, and [`advise`] recommends
//! one of them and says why. Points are short: the knee is known to within [`PRECISION`].

mod advice;
mod present;
mod search;

pub use advice::{Advice, Ground, advise};
pub use present::{experiment, table};
pub use search::{KEPT_UP, LATENCY_FACTOR, PRECISION};

use crate::experiment::{Measured, Record, RunError, Runner, Setup, results};
use crate::side_by_side::side_by_side;
use parking_lot::Mutex;
use quorate_crypto::{Policy, SchemeKind};
use quorate_report::text::utc;
use quorate_types::as_text;
use search::Knee;
use serde::Serialize;
use serde_json::Value;
use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Instant, SystemTime};

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
    /// `true` if nothing beyond that was tried.
    pub is_capped: bool,
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

/// Answers a spec.
///
/// # Errors
/// When it was interrupted, or no point can be measured.
pub fn compare(
    spec: &ComparisonSpec,
    runner: &dyn Runner,
    machine: &Value,
    threads: usize,
    progress: OnProgress<'_>,
    interrupted: &AtomicBool,
) -> Result<Comparison, RunError> {
    let bench = Bench { spec, runner, machine, interrupted, records: Mutex::default() };
    let threads = if runner.is_parallel() { threads.max(1) } else { 1 };
    let mut sizes = spec.sizes.clone();
    sizes.sort_unstable();
    let (steps, done) = (2 * sizes.len() * spec.candidates.len(), AtomicUsize::new(0));
    let step = || progress(done.fetch_add(1, Ordering::Relaxed) + 1, steps);
    let knees = side_by_side(&spec.candidates, threads, |candidate| {
        knees(&bench, *candidate, &sizes, &step)
    })?;
    // The largest first, so that no core waits at the end for one that began late.
    let mut knees: Vec<(u16, Candidate, Knee)> = knees.into_iter().flatten().collect();
    knees.sort_by_key(|(size, ..)| Reverse(*size));
    let mut findings = side_by_side(&knees, threads, |(size, candidate, knee)| {
        let found = bench.finding(*size, *candidate, knee, common_rate(spec, &knees, *size));
        step();
        found
    })?;
    let place = |finding: &Finding| {
        let size = spec.sizes.iter().position(|size| *size == finding.validators);
        let who = spec.candidates.iter().position(|other| *other == finding.candidate);
        (size, who)
    };
    findings.sort_by_key(place);
    let advice = advise(spec, &findings);
    let records = bench.records.into_inner();
    Ok(Comparison { findings, advice, precision: PRECISION, records })
}

/// The knees of one candidate. What it takes at one size is where the search begins at the next.
fn knees(
    bench: &Bench<'_>,
    candidate: Candidate,
    sizes: &[u16],
    step: &(dyn Fn() + Sync),
) -> Result<Vec<(u16, Candidate, Knee)>, RunError> {
    let mut found: Vec<(u16, Candidate, Knee)> = Vec::with_capacity(sizes.len());
    for &size in sizes {
        let near = found.last().map(|(_, _, knee)| knee.rate);
        found.push((size, candidate, search::knee(bench, size, candidate, near)?));
        step();
    }
    Ok(found)
}

/// Half of what the weakest of the better half takes, or what was asked for: a rate that a
/// candidate which is far behind does not decide.
fn common_rate(spec: &ComparisonSpec, knees: &[(u16, Candidate, Knee)], size: u16) -> u64 {
    if let Some(rate) = spec.rate {
        return rate;
    }
    let of_size = knees.iter().filter(|(of, ..)| *of == size);
    let mut rates: Vec<u64> = of_size.map(|(_, _, knee)| knee.rate).collect();
    rates.sort_unstable_by(|a, b| b.cmp(a));
    let weakest = rates.get(rates.len().saturating_sub(1) / 2).copied().unwrap_or(0);
    (weakest / 2).max(search::RATE_MIN)
}

/// Means of measuring points.
struct Bench<'a> {
    spec: &'a ComparisonSpec,
    runner: &'a dyn Runner,
    machine: &'a Value,
    interrupted: &'a AtomicBool,
    records: Mutex<Vec<Record>>,
}

impl Bench<'_> {
    /// A point; `None` when nothing came of it.
    fn measure(
        &self,
        validators: u16,
        candidate: Candidate,
        rate: u64,
    ) -> Result<Option<Measured>, RunError> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(RunError::Interrupted);
        }
        let mut setup =
            Setup { validators, scheme: candidate.scheme, rate, ..self.spec.base.clone() };
        setup.settings.verify = candidate.verify;
        let (started, began) = (utc(SystemTime::now()), Instant::now());
        let (measured, failed) = match self.runner.run(&setup, self.interrupted) {
            Ok(measured) => (Some(measured), None),
            Err(RunError::Failed(reason)) => (None, Some(reason)),
            Err(error) => return Err(error),
        };
        let shown = measured.clone().unwrap_or_default();
        self.records.lock().push(Record {
            format: results::FORMAT,
            experiment: "compare".to_owned(),
            preset: "compare".to_owned(),
            key: setup.key(),
            setup,
            measured: shown.numbers,
            failed,
            signatures: shown.signatures,
            started,
            wall_s: began.elapsed().as_secs_f64(),
            machine: self.machine.clone(),
            details: shown.details,
        });
        Ok(measured)
    }

    fn finding(
        &self,
        validators: u16,
        candidate: Candidate,
        knee: &Knee,
        common_rate: u64,
    ) -> Result<Finding, RunError> {
        let there = self.measure(validators, candidate, common_rate)?;
        let there = there.filter(|measured| search::kept_up(measured, common_rate, knee.idle_ms));
        let number = |name: &str| there.as_ref()?.numbers.get(name).copied();
        // A failed search still says how large a certificate is.
        Ok(Finding {
            validators,
            candidate,
            knee_tps: knee.committed_tps,
            is_capped: knee.is_capped,
            idle_ms: knee.idle_ms,
            common_rate,
            latency_ms: there.as_ref().and_then(|measured| search::latency(measured, "p50")),
            latency_p99_ms: there.as_ref().and_then(|measured| search::latency(measured, "p99")),
            cpu_share: number("busiest_share"),
            certificate_bytes: knee.certificate_bytes,
        })
    }
}

#[cfg(test)]
mod tests;
