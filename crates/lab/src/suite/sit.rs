//! A sitting: the rows of a suite, one after the other. A row whose rate follows from another's
//! comes right after that.

use super::{FORMAT, Row, RowResult, Suite, SuiteResult, figures};
use crate::experiment::results::rounded;
use crate::experiment::{Measured, Point, Record, RunError, Runner, Runners, Setup, shuffle};
use crate::quiet::{Look, Quietness};
use quorate_report::text::utc;
use serde_json::Value;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// Time for which the machine is looked at before a row.
const MOMENT: Duration = Duration::from_secs(1);
/// Time between two synced writes in it, and during a row.
const SYNC_EVERY: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(1)];

/// Rows to measure, and what their result says of its origin.
#[derive(Clone, Copy, Debug)]
pub struct Sitting<'a> {
    /// Rows to measure, each once.
    pub suite: &'a Suite,
    /// Seed that decides the order of the rows.
    pub seed: u64,
    /// The machine and the binary.
    pub machine: &'a Value,
    /// Folder on the disk whose synced writes are timed.
    pub folder: &'a Path,
    /// The command that asked for it.
    pub command: &'a str,
}

/// Progress of a sitting.
#[derive(Debug)]
pub enum Event<'a> {
    /// A row begins to be measured.
    Started {
        /// What is measured now.
        row: &'a Row,
        /// Its place in the order, from 1 on.
        place: usize,
        /// Number of rows in all.
        total: usize,
    },
    /// A row is measured. Its goals are not judged yet.
    Finished(&'a RowResult),
}

/// About how many seconds a suite takes on this machine.
#[must_use]
pub fn estimate_s(suite: &Suite, runners: &Runners) -> f64 {
    let row = |row: &Row| {
        let setup = &row.setup;
        MOMENT.as_secs_f64() + runners.of(setup.runner).estimate_s(setup)
    };
    suite.rows.iter().map(row).sum()
}

/// Measures all rows. One that the machine is not up to is a result too; what ends a sitting early
/// is in the result, with the rows before it.
pub fn sit(
    sitting: &Sitting<'_>,
    runners: &Runners,
    report: &mut dyn FnMut(Event<'_>),
    interrupted: &AtomicBool,
) -> SuiteResult {
    let began = Instant::now();
    let order = order(sitting.suite, sitting.seed);
    let mut result = empty(sitting, &order);
    for (index, row) in order.iter().enumerate() {
        report(Event::Started { row, place: index + 1, total: order.len() });
        match measure(sitting, row, &result.rows, runners, interrupted) {
            Ok(measured) => {
                report(Event::Finished(&measured));
                result.rows.push(measured);
            }
            Err(reason) => {
                result.ended_early = Some(reason);
                break;
            }
        }
    }
    result.wall_s = rounded(began.elapsed().as_secs_f64());
    result.conclude(sitting.suite);
    result
}

/// The rows in an order that the seed decides, each with those behind it whose rates follow from
/// its own.
pub(super) fn order(suite: &Suite, seed: u64) -> Vec<&Row> {
    let mut rows: Vec<&Row> = suite.rows.iter().collect();
    shuffle(&mut rows, seed);
    let (followers, rows): (Vec<&Row>, Vec<&Row>) =
        rows.into_iter().partition(|row| row.base().is_some());
    let mut order = Vec::with_capacity(suite.rows.len());
    for row in rows {
        order.push(row);
        order.extend(followers.iter().filter(|other| other.base() == Some(&row.key)));
    }
    order
}

fn empty(sitting: &Sitting<'_>, order: &[&Row]) -> SuiteResult {
    let Suite { id, title, shows, .. } = sitting.suite;
    SuiteResult {
        suite_format: FORMAT,
        suite: id.clone(),
        title: title.clone(),
        shows: shows.clone(),
        started: utc(SystemTime::now()),
        wall_s: 0.0,
        command: sitting.command.to_owned(),
        seed: sitting.seed,
        order: order.iter().map(|row| row.key.clone()).collect(),
        ended_early: None,
        machine: sitting.machine.clone(),
        against: None,
        rows: Vec::new(),
    }
}

/// A row beside what was seen of the machine.
///
/// # Errors
/// In words why the sitting ends here.
fn measure(
    sitting: &Sitting<'_>,
    row: &Row,
    measured: &[RowResult],
    runners: &Runners,
    interrupted: &AtomicBool,
) -> Result<RowResult, String> {
    let look = |every| {
        let folder = sitting.folder.display();
        let refused = |error| format!("cannot time a synced write in {folder}: {error}");
        Look::begin(sitting.folder, every).map_err(refused)
    };
    let before = look(SYNC_EVERY[0])?;
    thread::sleep(MOMENT);
    let before = before.end();
    let during = look(SYNC_EVERY[1])?;
    let record = match setup(row, measured) {
        Ok(setup) => record(sitting, row, &setup, runners.of(setup.runner), interrupted),
        Err(reason) => record(sitting, row, &row.setup, &Idle(reason), interrupted),
    };
    let quietness = Quietness { before, during: during.end() };
    Ok(RowResult::new(row, record?, quietness))
}

/// Everything that decides a row's run, with the rate that follows from another's.
///
/// # Errors
/// Why there is no such rate.
pub(super) fn setup(row: &Row, measured: &[RowResult]) -> Result<Setup, String> {
    let (Some(base), Some(times)) = (row.base(), row.rate_times) else {
        return Ok(row.setup.clone());
    };
    let of_base = measured.iter().find(|other| other.row == base);
    let rate = of_base.and_then(|other| figures::rate(&other.record));
    let rate =
        rate.ok_or_else(|| format!("its rate follows from that of {base}, which has none"))?;
    Ok(Setup { rate: ((rate * times).round() as u64).max(1), ..row.setup.clone() })
}

/// Measures nothing, for this reason.
struct Idle(String);

impl Runner for Idle {
    fn is_parallel(&self) -> bool {
        true
    }

    fn estimate_s(&self, _: &Setup) -> f64 {
        0.0
    }

    fn run(&self, _: &Setup, _: &AtomicBool) -> Result<Measured, RunError> {
        Err(RunError::Failed(self.0.clone()))
    }
}

fn record(
    sitting: &Sitting<'_>,
    row: &Row,
    setup: &Setup,
    runner: &dyn Runner,
    interrupted: &AtomicBool,
) -> Result<Record, String> {
    let point = Point {
        experiment: &sitting.suite.id,
        preset: &row.key,
        shard: None,
        setup,
        machine: sitting.machine,
    };
    let record = point.measure(runner, interrupted);
    // Not every runner hears that it is interrupted.
    if interrupted.load(Ordering::Relaxed) {
        return Err("interrupted".to_owned());
    }
    record.map_err(|error| match error {
        RunError::Interrupted => "interrupted".to_owned(),
        RunError::Failed(reason) | RunError::Refused(reason) => {
            format!("the row {} ended the sitting: {reason}", row.key)
        }
    })
}
