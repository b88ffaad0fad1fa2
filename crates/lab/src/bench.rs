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
//!   in the warm-up are counted apart and in no figure. A search's warm-up lasts until the
//!   committee commits what is offered, within a bound; any other has a fixed length. After the
//!   window the run waits, within a bound, for the last answers and for every validator to reach
//!   the same point.
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
mod limits;
mod plan;
mod progress;
mod readers;
pub mod recovery;
mod run;
pub mod search;
mod sessions;
mod settle;
mod siege;
pub(crate) mod table;
pub(crate) mod watch;

pub use changes::{NotAChange, PlannedChange, What};
pub use config::{BenchConfig, fitting_timeout_ms};
pub use error::BenchError;
pub use events::{At, Cut, Lie, NotAnEvent, Pause, Target};
pub use evm::{Trace, TraceError};
pub use limits::unreplicated;
pub use progress::Progress;
pub use search::find_max;
pub use table::render;

#[cfg(test)]
pub(crate) use evidence::tests::sample_report;

use crate::load::Load;
use crate::load::measure::{Recorder, Schedule};
use committee::Committee;
use limits::Limits;
use parking_lot::Mutex;
use quorate_report::Report;
use quorate_report::results::Beside;
use readers::Readers;
use run::{Given, Run};
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
    let limits = Limits::measure(config, progress)?;
    Ok(limits.beside(config, run_once(config, progress, interrupted, true)?))
}

/// As [`run()`], with nothing left behind of a run that failed: for one of many, where failing is
/// no surprise. A report of no answers is one: of a committee that is offered far more than it
/// takes.
///
/// # Errors
/// As [`run()`], but for [`BenchError::NothingAnswered`].
pub fn run_for_experiment(
    config: &BenchConfig,
    progress: &Progress,
    interrupted: &AtomicBool,
) -> Result<Report, BenchError> {
    config.validate().map_err(BenchError::Config)?;
    let limits = Limits::measure(config, progress)?;
    match run_unkept(config, progress, interrupted) {
        Err(BenchError::NothingAnswered(report)) => Ok(limits.beside(config, *report)),
        result => result.map(|report| limits.beside(config, report)),
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
    progress.say("waiting until every validator is connected to every other, and signs");
    committee.await_ready(interrupted)?;
    progress.say("opening client sessions");
    let members = committee.members(config)?;
    let client = sessions::open(config, Arc::clone(&members))?;
    let (target, answers) = crate::load::sessions::ends(&client, config.load.session_count());
    drop(client);
    let plan = config.plan();
    let payload = config.payload();
    let schedule = Schedule {
        start: Instant::now() + HEAD_START,
        warmup: Duration::from_secs(config.longest_load().warmup_s),
        window: Duration::from_secs(config.load.duration_s),
    };
    let recorder = Arc::new(Mutex::new(Recorder::new(schedule)));
    let load = Load::start(schedule, plan, payload, target, answers, Arc::clone(&recorder));
    let watch = Watch::start(committee.http(), schedule.start);
    let readers = config
        .genesis()
        .filter(|_| config.reads > 0)
        .map(|genesis| Readers::start(committee.gateways(), config.reads, schedule, &genesis));
    let given = Given { config, committee, members, progress, interrupted, schedule, recorder };
    let mut run = Run::new(given);
    run.under_load()?;
    let last = run.drain()?;
    drop(load);
    let report = run.conclude(&last, &watch.finish())?;
    let reads = readers.map(Readers::finish);
    Ok(Report { beside: Beside { reads, ..report.beside }, ..report })
}
