//! The highest rate that every healthy validator keeps up with.
//!
//! First short probes, each on a committee of its own so that none starts with the backlog of
//! another; over a state that has to be filled first, all on the same committee, each when nothing
//! of the one before is left to execute. A probe at the rate that the committee keeps up with about
//! half of the time tells most, so the next is always there: at twice or half of the last one as
//! long as all end alike, and then nearer and nearer between two. A probe may err: one that fails
//! by bad luck costs a few more, and its side is tried again (`belief`). Then runs of the whole
//! length, until one holds: the result. One that fails has a second try a little lower; after that
//! each goes 5, 10, 20, 40 and 80 % below the last, and once one holds, up again to what is
//! likely. So a search ends with a figure unless the lowest rate there is fails for the whole
//! length.
//!
//! Every run waits until the committee has settled before it counts, for the time of `settle_s` at
//! most, and counts for `PROBE_S` seconds or for the whole length. A search takes at most
//! `PROBES_MAX` probes and, once a rate has held, `CONFIRMATIONS_MAX` runs of the whole length;
//! some 14 and two are usual. Where none holds, rates that fall by steps reach the lowest after
//! sixteen. A probe of four validators on two processors is under load for 7 to 12 seconds, one of
//! twenty for 7 to 20; starting, waiting for answers and stopping come on top.

mod belief;
mod bisection;
mod judge;

use super::limits::Limits;
use super::stage::Stage;
use super::{BenchConfig, BenchError, Progress};
use crate::load::LoadConfig;
use bisection::{Attempt, Bisection};
use judge::{Performance, judge};
use quorate_report::Report;
use quorate_report::results::beside::{Beside, Probe, Searched};
use quorate_report::text::thousands;
use std::sync::atomic::AtomicBool;
use std::thread::available_parallelism;

/// First rate of a search that begins without a guess, in operations per second.
pub const FIRST_RATE: u64 = 2_000;
/// A p99 above this is not keeping up, in milliseconds, unless somebody says otherwise.
const P99_LIMIT_MS: f64 = 1_000.0;
/// Nothing beyond is tried.
const RATE_MAX: u64 = 10_000_000;
/// Nothing below is tried.
const RATE_MIN: u64 = 10;
/// Seconds of a probe that count, and the fewest before them.
const PROBE_S: u64 = 4;
const PROBE_WARMUP_S: u64 = 2;
/// Most probes of a search.
const PROBES_MAX: u32 = 20;
/// Most runs of the whole length, once one of them has held.
const CONFIRMATIONS_MAX: u32 = 6;
/// Seconds that a small committee has to settle. Each validator for a processor has one more.
const SETTLE_S: u64 = 4;
/// Starts of a committee for one run: one that does not come up says nothing of the rate.
const STARTS: u32 = 2;

/// Highest p99 that counts as keeping up, in milliseconds: a second, or what an emulated network
/// asks for.
#[must_use]
pub fn fitting_p99_limit_ms(config: &BenchConfig) -> f64 {
    let network_ms = config.topology().map_or(0, |network| super::fitting_timeout_ms(&network));
    P99_LIMIT_MS.max(network_ms as f64)
}

/// Most seconds that a committee is given to settle: validators that share a processor start one
/// after the other. None beside readers, whose figures are of a warm-up of fixed length.
fn settle_s(config: &BenchConfig) -> u64 {
    let processors = available_parallelism().map_or(1, |count| count.get() as u64);
    let longest = SETTLE_S + u64::from(config.validators).div_ceil(processors);
    if config.reads == 0 { longest } else { 0 }
}

/// Finds the highest rate, and returns the report of the run that confirmed it. The search begins
/// at the rate of the configuration's load.
///
/// # Errors
/// As [`super::run()`]; and when not even the lowest rate was kept up with.
pub fn find_max(
    config: &BenchConfig,
    p99_limit_ms: f64,
    progress: &Progress,
    interrupted: &AtomicBool,
) -> Result<Report, BenchError> {
    config.validate().map_err(BenchError::Config)?;
    let limits = Limits::measure(config, progress)?;
    let mut finder = Finder::new(config, p99_limit_ms, progress, interrupted);
    let mut bisection = Bisection::from(config.load.rate);
    let mut confirmed: Option<(BenchConfig, Report)> = None;
    while let Some(attempt) = bisection.next() {
        let attempted = finder.config_of(attempt);
        let kept_up = finder.attempt(&attempted, attempt)?;
        bisection.learn(attempt, kept_up.is_some());
        if let Some(report) = kept_up.filter(|_| bisection.held() == Some(attempt.rate)) {
            confirmed = Some((attempted, report));
        }
    }
    let (attempted, report) = confirmed.ok_or_else(|| finder.give_up())?;
    let report = limits.beside(&attempted, report);
    let likely = Some(bisection.likely());
    let searched = Searched { p99_limit_ms, probes: finder.runs, likely };
    let beside = Beside { searched: Some(searched), ..report.beside };
    Ok(Report { beside, ..report })
}

struct Finder<'a> {
    config: &'a BenchConfig,
    p99_limit_ms: f64,
    progress: &'a Progress,
    interrupted: &'a AtomicBool,
    runs: Vec<Probe>,
    /// The committee whose state is full, where it is to be, and how many there were.
    stage: Option<Stage>,
    stages: u64,
}

impl<'a> Finder<'a> {
    fn new(
        config: &'a BenchConfig,
        p99_limit_ms: f64,
        progress: &'a Progress,
        interrupted: &'a AtomicBool,
    ) -> Self {
        let runs = Vec::new();
        Self { config, p99_limit_ms, progress, interrupted, runs, stage: None, stages: 0 }
    }

    fn config_of(&self, Attempt { rate, whole }: Attempt) -> BenchConfig {
        if whole {
            return confirmation_config(self.config, rate, self.runs.len() + 1);
        }
        probe_config(self.config, rate, self.p99_limit_ms)
    }

    /// The report of a run that kept up.
    fn attempt(
        &mut self,
        config: &BenchConfig,
        Attempt { rate, whole }: Attempt,
    ) -> Result<Option<Report>, BenchError> {
        let what = if whole { "confirming" } else { "probing" };
        let number = self.runs.len() + 1;
        self.progress.say(format!("{what} {} tx/s, run {number}", thousands(rate)));
        let (report, failed) = match self.run(config) {
            Ok(report) => {
                let failed = judge(&Performance::of(&report), self.p99_limit_ms).err();
                (Some(report), failed)
            }
            Err(error) if error.is_overload() => (None, Some(error.in_short())),
            Err(error) => return Err(error),
        };
        self.runs.push(Probe {
            rate,
            whole,
            warmup_s: report.as_ref().map(Report::warmup_s),
            committed_tps: report.as_ref().map(|report| report.committed_tps),
            p99_ms: report.as_ref().map(|report| report.latency_ms.p99),
            failed: failed.clone(),
        });
        Ok(report.filter(|_| failed.is_none()))
    }

    /// Runs on the committee that is there, once its state is full.
    fn run_on_full(&mut self, config: &BenchConfig) -> Result<Report, BenchError> {
        let mut stage = match self.stage.take() {
            Some(stage) => stage,
            None => self.fill()?,
        };
        let result = stage.measure(config, self.progress, self.interrupted);
        let is_well = result.as_ref().map_or_else(BenchError::is_overload, |_| true);
        if is_well && stage.settle(self.interrupted).is_ok() {
            self.stage = Some(stage);
            return result;
        }
        stage.dismiss(result, false)
    }

    fn fill(&mut self) -> Result<Stage, BenchError> {
        self.stages += 1;
        let name = format!("committee-{}", self.stages);
        let directory = self.config.directory.as_ref().map(|folder| folder.join(name));
        let config = BenchConfig { directory, ..self.config.clone() };
        Stage::begin(&config, self.progress, self.interrupted, false)
    }

    /// Runs a committee; another one if the first did not come up, unless its folder is to be kept.
    fn run(&mut self, config: &BenchConfig) -> Result<Report, BenchError> {
        if config.fill {
            return self.run_on_full(config);
        }
        let mut starts = if config.directory.is_some() { STARTS } else { 1 };
        loop {
            match super::run_unkept(config, self.progress, self.interrupted) {
                Err(error) if error.is_of_start() && starts < STARTS => {
                    self.progress.say(format!("starting again: {}", error.in_short()));
                    starts += 1;
                }
                result => return result,
            }
        }
    }

    fn give_up(&self) -> BenchError {
        let why = self.runs.last().and_then(|probe| probe.failed.clone()).unwrap_or_default();
        let rate = self.runs.last().map_or(0, |probe| probe.rate);
        let tried = self.config.validators;
        BenchError::NoRate(format!("{tried} validators did not keep up with {rate} tx/s: {why}"))
    }
}

/// A probe's answers are waited for as long as two of them may take: who has not answered by then
/// does not keep up.
fn probe_config(config: &BenchConfig, rate: u64, p99_limit_ms: f64) -> BenchConfig {
    let answers_s = (2.0 * p99_limit_ms / 1_000.0).ceil() as u64;
    BenchConfig {
        load: LoadConfig {
            rate,
            duration_s: PROBE_S.min(config.load.duration_s),
            warmup_s: PROBE_WARMUP_S,
            drain_s: answers_s.min(config.load.drain_s),
            ..config.load.clone()
        },
        settle_s: settle_s(config),
        directory: None,
        ..config.clone()
    }
}

/// A folder that is to be kept holds one of its own for each run of the whole length.
fn confirmation_config(config: &BenchConfig, rate: u64, number: usize) -> BenchConfig {
    let name = format!("run-{number}-at-{rate}");
    let directory = config.directory.as_ref().map(|folder| folder.join(name));
    let load = LoadConfig { rate, ..config.load.clone() };
    BenchConfig { load, settle_s: settle_s(config), directory, ..config.clone() }
}

#[cfg(test)]
mod tests;
