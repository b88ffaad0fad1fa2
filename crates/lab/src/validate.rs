//! The model held against real committees on this machine: `quorate validate`.
//!
//! Each point is measured twice: with real processes, and by the model at the prices of this
//! machine, with all members and clients on one host as they are here. What both say stands side by
//! side; [`Pair::judge`] holds the ratios against [`GOAL`].

mod table;

pub use table::{markdown, table};

use crate::ServiceKind;
use crate::experiment::results::{ResultsError, Writer};
use crate::experiment::{Point, Record, RunError, RunnerKind, Runners, Setup};
use crate::load::sessions_for;
use quorate_storage::Durability;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Share by which the model may be off, in throughput and in the median latency.
pub const GOAL: f64 = 0.15;

/// Share of what is offered that is committed where a latency means anything: beyond, it is that of
/// a queue that grows.
const KEPT_UP: f64 = 0.92;

/// View timeout of the committees, in milliseconds: none is meant to run out.
const TIMEOUT_MS: u64 = 5_000;

/// Name of the experiment in result lines.
const NAME: &str = "validate";

/// Points to measure: every combination.
#[derive(Clone, Debug)]
pub struct ValidationSpec {
    /// Sizes of the committees, in members.
    pub sizes: Vec<u16>,
    /// What votes survive: the end of the machine, or that of the process.
    pub durabilities: Vec<Durability>,
    /// One-way delays between members, emulated, in milliseconds.
    pub delays_ms: Vec<u64>,
    /// Operations offered a second.
    pub rates: Vec<u64>,
    /// The price list of this machine: a file's name, or one that comes along.
    pub prices: String,
    /// Cores of this machine.
    pub cores: u16,
    /// Seconds of load before those that count.
    pub warmup_s: u64,
    /// Length of the measured window, in seconds.
    pub duration_s: u64,
    /// Seed of arrivals, keys and delays.
    pub seed: u64,
}

impl ValidationSpec {
    /// The points, those of one size together.
    #[must_use]
    pub fn points(&self) -> Vec<Setup> {
        let mut points = Vec::new();
        for &validators in &self.sizes {
            for &durability in &self.durabilities {
                for &delay_ms in &self.delays_ms {
                    let point = |rate: &u64| self.point(validators, durability, delay_ms, *rate);
                    points.extend(self.rates.iter().map(point));
                }
            }
        }
        points
    }

    fn point(&self, validators: u16, durability: Durability, delay_ms: u64, rate: u64) -> Setup {
        let mut setup = Setup {
            runner: RunnerKind::Processes,
            validators,
            durability,
            delay_ms,
            rate,
            // As many for both: how operations share requests is a part of their latency.
            sessions: sessions_for(rate) as u64,
            service: ServiceKind::Noop,
            prices: self.prices.clone(),
            cores: self.cores,
            uplink_mbit: 0,
            downlink_mbit: 0,
            validators_per_host: validators,
            warmup_s: self.warmup_s,
            duration_s: self.duration_s,
            seed: self.seed,
            ..Setup::default()
        };
        setup.settings.timeout_ms = TIMEOUT_MS;
        setup
    }
}

/// One point, measured and modelled.
#[derive(Clone, Debug)]
pub struct Pair {
    /// Result of real processes.
    pub real: Record,
    /// Estimate of the model.
    pub model: Record,
}

/// Ratios of the model to reality.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Ratios {
    /// Of what was committed a second.
    pub throughput: Option<f64>,
    /// Of the median latency, where both committed what was offered.
    pub latency: Option<f64>,
    /// Of the cores that all members kept busy.
    pub cores: Option<f64>,
}

impl Pair {
    /// Ratios of the model to reality; none of what one of both has no figure of.
    #[must_use]
    pub fn ratios(&self) -> Ratios {
        let of = |name: &str| {
            let (real, model) = (self.real.measured.get(name)?, self.model.measured.get(name)?);
            (*real > 0.0).then(|| model / real)
        };
        let keeps_up = |record: &Record| {
            let committed = record.measured.get("committed_tps").copied().unwrap_or(0.0);
            committed >= KEPT_UP * record.setup.rate as f64
        };
        let both = keeps_up(&self.real) && keeps_up(&self.model);
        Ratios {
            throughput: of("committed_tps"),
            latency: of("latency_client_p50_ms").filter(|_| both),
            cores: of("cpu_cores"),
        }
    }

    /// Reasons for which a figure is missing or may not be what it seems: what failed, and doubts
    /// of the model, each with whose it is.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let of = |whose: &str, record: &Record| -> Vec<String> {
            let failed = record.failed.iter().map(String::as_str);
            failed.chain(record.doubts()).map(|text| format!("{whose}: {text}")).collect()
        };
        [of("real", &self.real), of("model", &self.model)].concat()
    }

    /// Tells whether the ratios that are judged, throughput and latency, meet the goal; `false` too
    /// where nothing was measured.
    #[must_use]
    pub fn judge(&self) -> bool {
        let Ratios { throughput, latency, .. } = self.ratios();
        throughput.is_some() && [throughput, latency].into_iter().flatten().all(meets)
    }
}

/// Tells whether a ratio meets the goal.
pub(crate) fn meets(ratio: f64) -> bool {
    (1.0 - GOAL..=1.0 + GOAL).contains(&ratio)
}

/// Runners, machine and file with which points are measured.
pub struct Means<'a> {
    /// A runner for every kind of point.
    pub runners: &'a Runners,
    /// The machine and binary, as results name them.
    pub machine: &'a Value,
    /// File that every result is written to.
    pub results: &'a Path,
    /// Told of every point that is done, with their number.
    pub progress: &'a dyn Fn(usize, usize),
    /// Set when somebody asks for an early end.
    pub interrupted: &'a AtomicBool,
}

/// Measures all points, each with real processes and then by the model: nothing else runs beside a
/// real committee.
///
/// # Errors
/// When it was interrupted, no point can be measured, or results cannot be written.
pub fn validate(spec: &ValidationSpec, means: &Means<'_>) -> Result<Vec<Pair>, RunError> {
    let refused = |error: ResultsError| RunError::Refused(error.to_string());
    let mut writer = Writer::create(means.results, &[]).map_err(refused)?;
    let (points, mut pairs) = (spec.points(), Vec::new());
    for real in &points {
        let model = Setup { runner: RunnerKind::Simulated, ..real.clone() };
        let mut measure = |setup: &Setup| {
            if means.interrupted.load(Ordering::Relaxed) {
                return Err(RunError::Interrupted);
            }
            let machine = means.machine;
            let point = Point { experiment: NAME, preset: "points", shard: None, setup, machine };
            let record = point.measure(means.runners.of(setup.runner), means.interrupted)?;
            writer.add(&record).map_err(refused)?;
            Ok(record)
        };
        pairs.push(Pair { real: measure(real)?, model: measure(&model)? });
        (means.progress)(pairs.len(), points.len());
    }
    Ok(pairs)
}

/// Pairs from result lines, in their order; without the last point, where its model is not there
/// yet.
///
/// # Errors
/// A sentence, when a line is not of a validation or is not followed by the other of its point.
pub fn pairs(records: Vec<Record>) -> Result<Vec<Pair>, String> {
    let mut pairs = Vec::new();
    let mut records = records.into_iter();
    while let Some(real) = records.next() {
        let expected = Setup { runner: RunnerKind::Simulated, ..real.setup.clone() };
        let is_real = real.experiment == NAME && real.setup.runner == RunnerKind::Processes;
        let Some(model) = records.next() else { break };
        if !is_real || model.setup != expected {
            return Err(format!("the line of the point {} is not followed by its model", real.key));
        }
        pairs.push(Pair { real, model });
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests;
