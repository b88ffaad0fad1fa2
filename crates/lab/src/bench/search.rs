//! The highest rate that every healthy validator keeps up with.
//!
//! Short probes, each on a committee of its own so that none starts with the backlog of another:
//! doubling until one fails, then halving the gap; then a run of the full length at the rate found,
//! a little lower again if that one does not keep up.

use super::limits::Limits;
use super::{BenchConfig, BenchError, Progress};
use crate::load::LoadConfig;
use quorate_report::Report;
use quorate_report::results::Rates;
use quorate_report::results::beside::{Beside, Probe, Searched};
use quorate_report::text::thousands;
use std::sync::atomic::AtomicBool;

/// First rate of a search that begins without a guess, in operations per second.
pub const FIRST_RATE: u64 = 2_000;
/// A p99 above this is not keeping up, in milliseconds, unless somebody says otherwise.
const P99_LIMIT_MS: f64 = 1_000.0;
/// Nothing beyond is tried.
const RATE_MAX: u64 = 10_000_000;
/// Nothing below is tried.
const RATE_MIN: u64 = 10;
/// The search ends when the gap is this share of the rate.
const GAP: f64 = 0.05;
/// Seconds of a probe that count, and before them.
const PROBE_S: u64 = 3;
const PROBE_WARMUP_S: u64 = 2;
/// Number of lower rates that are tried for the whole length.
const CONFIRMATIONS_MAX: u32 = 4;

/// Keeping up is committing this share of what is offered.
const KEPT_UP: f64 = 0.98;
/// A backlog may grow over half a window by what comes in so many seconds: that much is chance.
const BACKLOG_S: f64 = 0.1;

/// State of the search, which gives the next rate.
#[derive(Clone, Copy, Debug)]
struct Search {
    /// The rate to begin with.
    first: u64,
    /// The highest that kept up.
    good: Option<u64>,
    /// The lowest that did not.
    bad: Option<u64>,
}

impl Search {
    fn from(first: u64) -> Self {
        Self { first, good: None, bad: None }
    }

    /// The next rate, or `None` when the gap is small enough.
    fn next(self) -> Option<u64> {
        match (self.good, self.bad) {
            (None, None) => Some(self.first.clamp(RATE_MIN, RATE_MAX)),
            (Some(good), None) => (good < RATE_MAX).then(|| (2 * good).min(RATE_MAX)),
            (None, Some(bad)) => (bad > RATE_MIN).then(|| (bad / 2).max(RATE_MIN)),
            (Some(good), Some(bad)) => {
                let wide = (bad - good) as f64 > GAP * bad as f64 && bad - good > 1;
                wide.then(|| u64::midpoint(good, bad))
            }
        }
    }

    fn learn(&mut self, rate: u64, kept_up: bool) {
        let side = if kept_up { &mut self.good } else { &mut self.bad };
        *side = Some(rate);
    }
}

/// Highest p99 that counts as keeping up, in milliseconds: a second, or what an emulated network
/// asks for.
#[must_use]
pub fn fitting_p99_limit_ms(config: &BenchConfig) -> f64 {
    let network_ms = config.topology().map_or(0, |network| super::fitting_timeout_ms(&network));
    P99_LIMIT_MS.max(network_ms as f64)
}

/// Finds the highest rate, and returns the report of the run that confirmed it. The search begins
/// at the rate of the configuration's load.
///
/// # Errors
/// As [`super::run()`]; and when not even the lowest rate, or none for the whole length, was kept
/// up with.
pub fn find_max(
    config: &BenchConfig,
    p99_limit_ms: f64,
    progress: &Progress,
    interrupted: &AtomicBool,
) -> Result<Report, BenchError> {
    config.validate().map_err(BenchError::Config)?;
    let limits = Limits::measure(config, progress)?;
    let mut finder = Finder { config, p99_limit_ms, progress, interrupted, probes: Vec::new() };
    let mut search = Search::from(config.load.rate);
    while let Some(rate) = search.next() {
        let run = finder.probe(&probe_config(config, rate), "probing")?;
        search.learn(rate, run.is_some());
    }
    let mut rate = search.good.ok_or_else(|| finder.give_up())?;
    for _ in 0..CONFIRMATIONS_MAX {
        let confirmed = confirmation_config(config, rate);
        if let Some(report) = finder.probe(&confirmed, "confirming")? {
            let report = limits.beside(&confirmed, report);
            let searched = Some(Searched { p99_limit_ms, probes: finder.probes });
            let beside = Beside { searched, ..report.beside };
            return Ok(Report { beside, ..report });
        }
        rate = (rate as f64 * (1.0 - GAP)) as u64;
    }
    Err(finder.give_up())
}

fn probe_config(config: &BenchConfig, rate: u64) -> BenchConfig {
    BenchConfig {
        load: LoadConfig {
            rate,
            duration_s: PROBE_S.min(config.load.duration_s),
            warmup_s: PROBE_WARMUP_S,
            ..config.load.clone()
        },
        directory: None,
        ..config.clone()
    }
}

/// A folder that is to be kept holds one of its own for each attempt.
fn confirmation_config(config: &BenchConfig, rate: u64) -> BenchConfig {
    let directory = config.directory.as_ref().map(|folder| folder.join(format!("rate-{rate}")));
    let load = LoadConfig { rate, ..config.load.clone() };
    BenchConfig { load, directory, ..config.clone() }
}

struct Finder<'a> {
    config: &'a BenchConfig,
    p99_limit_ms: f64,
    progress: &'a Progress,
    interrupted: &'a AtomicBool,
    probes: Vec<Probe>,
}

impl Finder<'_> {
    /// The report of a run that kept up.
    fn probe(&mut self, config: &BenchConfig, what: &str) -> Result<Option<Report>, BenchError> {
        let rate = config.load.rate;
        self.progress.say(format!("{what} {} tx/s", thousands(rate)));
        let (report, failed) = match super::run_unkept(config, self.progress, self.interrupted) {
            Ok(report) => {
                let failed = judge(&ProbeResult::of(&report), self.p99_limit_ms).err();
                (Some(report), failed)
            }
            Err(error) if error.is_overload() => (None, Some(error.in_short())),
            Err(error) => return Err(error),
        };
        self.probes.push(Probe {
            rate,
            committed_tps: report.as_ref().map(|report| report.committed_tps),
            p99_ms: report.as_ref().map(|report| report.latency_ms.p99),
            failed: failed.clone(),
        });
        Ok(report.filter(|_| failed.is_none()))
    }

    fn give_up(&self) -> BenchError {
        let why = self.probes.last().and_then(|probe| probe.failed.clone()).unwrap_or_default();
        let rate = self.probes.last().map_or(0, |probe| probe.rate);
        let tried = self.config.validators;
        BenchError::NoRate(format!("{tried} validators did not keep up with {rate} tx/s: {why}"))
    }
}

/// Performance of a committee under an offered load.
#[derive(Clone, Copy, Debug)]
struct ProbeResult {
    offered_tps: f64,
    committed_tps: f64,
    dropped: u64,
    p99_ms: f64,
    /// By how many the operations under way grew over the second half of the window.
    backlog_grown: f64,
    window_s: f64,
}

impl ProbeResult {
    fn of(report: &Report) -> Self {
        Self {
            offered_tps: report.offered_tps,
            committed_tps: report.committed_tps,
            dropped: report.dropped,
            p99_ms: report.latency_ms.p99,
            backlog_grown: backlog_growth(&report.load, report.warmup_s(), report.duration_s()),
            window_s: report.duration_s(),
        }
    }
}

/// Checks that a committee kept up.
///
/// # Errors
/// Why not.
fn judge(probe: &ProbeResult, p99_limit_ms: f64) -> Result<(), String> {
    let ProbeResult { offered_tps, committed_tps, dropped, p99_ms, backlog_grown, window_s } =
        *probe;
    if committed_tps < KEPT_UP * offered_tps {
        let share = 100.0 * committed_tps / offered_tps.max(1.0);
        return Err(format!("the slowest committed {share:.0} % of what was offered"));
    }
    if dropped > 0 {
        return Err("sessions were full".to_owned());
    }
    let tolerated_s = BACKLOG_S + (1.0 - KEPT_UP) * window_s / 2.0;
    if backlog_grown > tolerated_s * offered_tps {
        return Err("the backlog grew".to_owned());
    }
    if p99_ms > p99_limit_ms {
        return Err(format!("p99 was {p99_ms:.0} ms, above {p99_limit_ms:.0}"));
    }
    Ok(())
}

/// By how much the operations under way grew from the middle of the window to its end.
fn backlog_growth(load: &Rates, warmup_s: f64, window_s: f64) -> f64 {
    let interval_s = load.interval_ms.max(1) as f64 / 1_000.0;
    let under_way_at = |second: f64| -> f64 {
        let count = (second / interval_s).round() as usize;
        let sum = |rates: &[f64]| rates.iter().take(count).sum::<f64>() * interval_s;
        sum(&load.offered_tps) - sum(&load.answered_tps)
    };
    under_way_at(warmup_s + window_s) - under_way_at(warmup_s + window_s / 2.0)
}

#[cfg(test)]
mod tests;
