//! An experiment's points, one after another or side by side, each kept as soon as it is finished.

use super::results::{self, Record, ResultsError, Writer};
use super::{Experiment, Job, Point, RunError, Runner, Runners, Setup, Shard};
use crate::side_by_side::side_by_side;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Experiment to run, and the way to run it.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The experiment to run.
    pub experiment: &'a Experiment,
    /// Name of its preset.
    pub preset: &'a str,
    /// The points, in order: all of the preset's, or those of a part.
    pub jobs: Vec<Job>,
    /// The part, if they are one.
    pub shard: Option<Shard>,
    /// Path of the file that keeps the results.
    pub results: PathBuf,
    /// `true` to go on with the results that are there, instead of starting over.
    pub resume: bool,
    /// The machine and binary, as results name them.
    pub machine: Value,
    /// Points measured side by side, where that is possible.
    pub threads: usize,
}

/// Progress of a run under way.
#[derive(Debug)]
pub enum Event<'a> {
    /// The whole run begins.
    Begin {
        /// Number of points in all.
        total: usize,
        /// Those that were there already.
        done: usize,
        /// Results left out, since another binary or machine measured them.
        unfit: usize,
    },
    /// One point begins to be measured.
    Started(&'a Setup),
    /// A point is finished.
    Finished {
        /// Result of the point.
        record: &'a Record,
        /// Points finished in all.
        done: usize,
        /// Number of points in all.
        total: usize,
        /// About how many seconds the rest takes.
        left_s: f64,
    },
}

/// Reason for which a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// Somebody pressed Ctrl-C; what was finished is kept.
    #[error("interrupted")]
    Interrupted,
    /// A point cannot be measured at all.
    #[error("{0}")]
    Refused(String),
    /// The results cannot be kept.
    #[error(transparent)]
    Results(#[from] ResultsError),
}

/// Runs a plan, and returns all its results, those of earlier runs included, in the order of its
/// points, whatever order they were finished in.
///
/// # Errors
/// When it was interrupted, a point was refused, or results cannot be read or written.
pub fn drive(
    plan: &Plan<'_>,
    runners: &Runners,
    report: &(dyn Fn(Event<'_>) + Sync),
    interrupted: &AtomicBool,
) -> Result<Vec<Record>, DriveError> {
    let (kept, unfit) = kept(plan)?;
    let finished: BTreeSet<String> = kept.iter().map(|record| record.key.clone()).collect();
    let open = plan.jobs.iter().filter(|job| !finished.contains(&job.key));
    let phases = phases(open, runners);
    let total = plan.jobs.len();
    let writer = Writer::create(&plan.results, &kept)?;
    report(Event::Begin { total, done: kept.len(), unfit });
    let state = State { writer, records: kept, finished_s: 0.0 };
    let run = Run {
        plan,
        report,
        interrupted,
        threads: plan.threads.max(1),
        began: Instant::now(),
        estimated_s: phases.estimated_s(plan.threads),
        state: Mutex::new(state),
    };
    for (tasks, threads) in [(&phases.alone, 1), (&phases.together, run.threads)] {
        side_by_side(tasks, threads, |task| run.measure(*task, threads))?;
    }
    let mut records = run.state.into_inner().records;
    sort(&mut records, &plan.jobs);
    Ok(records)
}

/// Puts results into the order of their points, so that what is drawn does not depend on which was
/// finished first.
pub fn sort(records: &mut [Record], jobs: &[Job]) {
    let places: BTreeMap<&str, usize> =
        jobs.iter().enumerate().map(|(place, job)| (job.key.as_str(), place)).collect();
    records.sort_by_key(|record| places.get(record.key.as_str()).copied());
}

/// About how many seconds points take on this machine.
#[must_use]
pub fn estimate_s(jobs: &[Job], runners: &Runners, threads: usize) -> f64 {
    phases(jobs.iter(), runners).estimated_s(threads)
}

fn phases<'a>(jobs: impl Iterator<Item = &'a Job>, runners: &'a Runners) -> Phases<'a> {
    let mut phases = Phases::default();
    for job in jobs {
        let runner = runners.of(job.setup.runner);
        let phase = if runner.is_parallel() { &mut phases.together } else { &mut phases.alone };
        phase.push(Task { job, runner, estimate_s: runner.estimate_s(&job.setup) });
    }
    phases
}

/// The results to go on from, and how many do not fit beside this machine's.
fn kept(plan: &Plan<'_>) -> Result<(Vec<Record>, usize), ResultsError> {
    let there = if plan.resume { results::read(&plan.results)? } else { Vec::new() };
    let wanted: BTreeSet<&str> = plan.jobs.iter().map(|job| job.key.as_str()).collect();
    let mut seen = BTreeSet::new();
    let (mut kept, mut unfit) = (Vec::new(), 0);
    for record in there {
        if !record.fits(&plan.machine) {
            unfit += 1;
        } else if wanted.contains(record.key.as_str()) && seen.insert(record.key.clone()) {
            kept.push(record);
        }
    }
    Ok((kept, unfit))
}

fn refused(error: RunError) -> DriveError {
    match error {
        RunError::Interrupted => DriveError::Interrupted,
        RunError::Failed(reason) | RunError::Refused(reason) => DriveError::Refused(reason),
    }
}

/// A point to be measured, and by whom.
#[derive(Clone, Copy)]
struct Task<'a> {
    job: &'a Job,
    runner: &'a dyn Runner,
    estimate_s: f64,
}

/// First what must be alone on the machine, then what need not.
#[derive(Default)]
struct Phases<'a> {
    alone: Vec<Task<'a>>,
    together: Vec<Task<'a>>,
}

impl Phases<'_> {
    fn estimated_s(&self, threads: usize) -> f64 {
        let sum = |tasks: &[Task<'_>]| tasks.iter().map(|task| task.estimate_s).sum::<f64>();
        sum(&self.alone) + sum(&self.together) / threads.max(1) as f64
    }
}

struct Run<'a> {
    plan: &'a Plan<'a>,
    report: &'a (dyn Fn(Event<'_>) + Sync),
    interrupted: &'a AtomicBool,
    threads: usize,
    began: Instant,
    /// Estimated time of all open points together, in seconds.
    estimated_s: f64,
    state: Mutex<State>,
}

struct State {
    writer: Writer,
    records: Vec<Record>,
    /// Estimated time of those finished in this run, in seconds.
    finished_s: f64,
}

impl Run<'_> {
    fn measure(&self, task: Task<'_>, threads: usize) -> Result<(), DriveError> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(DriveError::Interrupted);
        }
        (self.report)(Event::Started(&task.job.setup));
        let point = Point {
            experiment: &self.plan.experiment.id,
            preset: self.plan.preset,
            shard: self.plan.shard,
            setup: &task.job.setup,
            machine: &self.plan.machine,
        };
        let record = point.measure(task.runner, self.interrupted).map_err(refused)?;
        self.keep(record, task.estimate_s / threads as f64)
    }

    fn keep(&self, record: Record, estimate_s: f64) -> Result<(), DriveError> {
        let mut state = self.state.lock();
        state.writer.add(&record)?;
        state.finished_s += estimate_s;
        let ratio = self.began.elapsed().as_secs_f64() / state.finished_s.max(1e-9);
        let left_s = (self.estimated_s - state.finished_s).max(0.0) * ratio;
        let (done, total) = (state.records.len() + 1, self.plan.jobs.len());
        (self.report)(Event::Finished { record: &record, done, total, left_s });
        state.records.push(record);
        Ok(())
    }
}
