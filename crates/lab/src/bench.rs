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
//! * **A full state**, where it is asked for: the key-value store has a value under every key
//!   before the warm-up begins (`fill`). A search fills one committee and makes all its runs on
//!   it, each when nothing of the one before is left.
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
mod fill;
pub mod health;
mod limits;
mod plan;
mod progress;
mod readers;
pub mod recovery;
mod restart;
mod run;
pub mod search;
mod sessions;
mod settle;
mod siege;
mod stage;
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

use limits::Limits;
use quorate_report::Report;
use stage::Stage;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

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
    let mut stage = Stage::begin(config, progress, interrupted, keep_failed)?;
    let report = stage.measure(config, progress, interrupted);
    progress.say("stopping the validators");
    stage.dismiss(report, keep_failed)
}
