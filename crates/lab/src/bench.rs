//! A real local committee under load: one process a validator, over TLS and disk.
//!
//! # How it measures
//!
//! * **Open loop.** Operations are scheduled at a fixed rate, and latency runs from an operation's
//!   scheduled time to its (f+1)-th equal signed reply. A committee or client that stalls cannot
//!   hide what it delayed. ([`crate::load`] has random arrivals and closed loops too.)
//! * **The slowest counts.** The committed rate is that of the healthy validator that executed
//!   least. A healthy validator that exits, stands still, stays behind or disagrees fails the run
//!   by name.
//! * **Warm-up, window, drain.** The same load runs throughout the first two. Operations scheduled
//!   in the warm-up are counted apart and in no figure. After the window the run waits, within a
//!   bound, for the last answers and for every validator to reach the same point.
//! * **The load generator shares the machine** with the validators, as the result says; its own CPU
//!   time is reported apart.

mod beside;
mod changes;
mod committee;
mod config;
mod error;
mod events;
pub(crate) mod evidence;
mod evm;
pub mod health;
mod plan;
mod progress;
mod readers;
pub mod recovery;
mod run;
pub mod search;
mod sessions;
mod siege;
mod table;
pub(crate) mod watch;

pub use changes::{NotAChange, PlannedChange, What};
pub use config::{BenchConfig, fitting_timeout_ms};
pub use error::BenchError;
pub use events::{At, Cut, Lie, NotAnEvent, Pause, Target};
pub use evm::{Trace, TraceError};
pub use progress::Progress;
pub use search::find_max;
pub use table::render;

#[cfg(test)]
pub(crate) use evidence::tests::sample_report;

use crate::ServiceKind;
use crate::bounds;
use crate::load::Load;
use crate::load::measure::{Recorder, Schedule};
use committee::Committee;
use parking_lot::Mutex;
use quorate_report::Report;
use quorate_report::results::Beside;
use quorate_report::results::bounds::{Parts, Unreplicated};
use readers::Readers;
use run::{Given, Run};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use watch::Watch;

/// Time between the announcement of a load and its first operation.
const HEAD_START: Duration = Duration::from_millis(50);

/// Runs a bench. Setting `interrupted` ends it early, with nothing left behind.
///
/// # Errors
/// When the configuration is refused, the committee cannot be set up, or a healthy validator fails.
pub fn run(
    config: &BenchConfig,
    progress: &Progress,
    interrupted: &AtomicBool,
) -> Result<Report, BenchError> {
    config.validate().map_err(BenchError::Config)?;
    let parts = measure_parts(config, progress)?;
    let alone = if config.bounds { unreplicated(config)? } else { None };
    let report = run_once(config, progress, interrupted, true)?;
    let evm = alone.map(|alone| beside::evm_bound(alone, config, &report));
    let report = Report { beside: Beside { evm, ..report.beside }, ..report };
    Ok(beside_bounds(config, parts, report))
}

/// Measures this machine's parts, on the disk that the committee will use.
fn measure_parts(config: &BenchConfig, progress: &Progress) -> Result<Option<Parts>, BenchError> {
    if !config.bounds {
        return Ok(None);
    }
    progress.say("measuring this machine's disk and processor");
    let temporary = std::env::temp_dir();
    // The folder itself is not there yet: the nearest one above it is.
    let wanted = config.directory.as_deref().unwrap_or(&temporary);
    let folder = wanted.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let failed = |source| BenchError::System { what: "measure the disk", source };
    bounds::measure(folder).map(Some).map_err(failed)
}

fn beside_bounds(config: &BenchConfig, parts: Option<Parts>, report: Report) -> Report {
    let bounds = parts.map(|parts| beside::bounds(parts, config, &report));
    Report { beside: Beside { bounds, ..report.beside }, ..report }
}

/// Measures one core with the load alone, where that means something: with the EVM ledger.
///
/// # Errors
/// When the state cannot be kept.
pub fn unreplicated(config: &BenchConfig) -> Result<Option<Unreplicated>, BenchError> {
    if config.service != ServiceKind::Evm {
        return Ok(None);
    }
    let folder = std::env::temp_dir();
    match &config.trace {
        Some(trace) => {
            let transactions = trace.transactions.iter().cloned();
            evm::unreplicated(&trace.genesis, transactions, &folder).map(Some)
        }
        None => evm::unreplicated_mix(config.mix, config.load.seed, &folder).map(Some),
    }
}

/// As [`run()`], without bounds, and with nothing left behind of a run that failed: for one of
/// many, where failing is no surprise. A report of no answers is one: of a committee that is
/// offered far more than it takes.
///
/// # Errors
/// As [`run()`], but for [`BenchError::NothingAnswered`].
pub fn run_for_experiment(
    config: &BenchConfig,
    progress: &Progress,
    interrupted: &AtomicBool,
) -> Result<Report, BenchError> {
    config.validate().map_err(BenchError::Config)?;
    match run_unkept(config, progress, interrupted) {
        Err(BenchError::NothingAnswered(report)) => Ok(*report),
        result => result,
    }
}

fn run_unkept(
    config: &BenchConfig,
    progress: &Progress,
    interrupted: &AtomicBool,
) -> Result<Report, BenchError> {
    run_once(config, progress, interrupted, false)
}

fn run_once(
    config: &BenchConfig,
    progress: &Progress,
    interrupted: &AtomicBool,
    keep_failed: bool,
) -> Result<Report, BenchError> {
    progress.say("writing keys and configurations");
    let mut committee = Committee::create(config)?;
    let report = measure(config, &mut committee, progress, interrupted);
    progress.say("stopping the validators");
    committee.dismiss(report, keep_failed)
}

fn measure(
    config: &BenchConfig,
    committee: &mut Committee,
    progress: &Progress,
    interrupted: &AtomicBool,
) -> Result<Report, BenchError> {
    progress.say("waiting until every validator is connected to every other");
    committee.await_connected(interrupted)?;
    progress.say("opening client sessions");
    let members = committee.members(config)?;
    let client = sessions::open(config, Arc::clone(&members))?;
    let (target, answers) = crate::load::sessions::ends(&client, config.load.session_count());
    drop(client);
    let plan = config.plan();
    let payload = config.payload();
    let schedule = Schedule {
        start: Instant::now() + HEAD_START,
        warmup: Duration::from_secs(config.load.warmup_s),
        window: Duration::from_secs(config.load.duration_s),
    };
    let recorder = Arc::new(Mutex::new(Recorder::new(schedule)));
    let load = Load::start(schedule, plan, payload, target, answers, Arc::clone(&recorder));
    let watch = Watch::start(committee.http(), schedule.start);
    let readers = config
        .genesis()
        .filter(|_| config.reads > 0)
        .map(|genesis| Readers::start(committee.gateways(), config.reads, schedule, &genesis));
    progress.begin(config.title(), &config.load);
    let given = Given { config, committee, members, progress, interrupted, schedule, recorder };
    let mut run = Run::new(given);
    run.under_load()?;
    let last = run.drain()?;
    drop(load);
    let report = run.conclude(&last, &watch.finish())?;
    let reads = readers.map(Readers::finish);
    Ok(Report { beside: Beside { reads, ..report.beside }, ..report })
}
