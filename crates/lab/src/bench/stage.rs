//! A committee that is up: its members, its state, and the runs on it.

use super::committee::Committee;
use super::config::BenchConfig;
use super::readers::Readers;
use super::run::{Given, Run};
use super::watch::Watch;
use super::{BenchError, HEAD_START, Progress, fill, restart, sessions};
use crate::load::Load;
use crate::load::measure::{Recorder, Schedule};
use crate::load::sessions::ends;
use parking_lot::Mutex;
use quorate_report::Report;
use quorate_report::results::Beside;
use quorate_report::results::beside::Filled;
use quorate_types::Committee as Members;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A committee that is up, with a full state where that was asked for.
pub(super) struct Stage {
    committee: Committee,
    members: Arc<Members>,
    filled: Option<Filled>,
    /// Times that clients came to it: each time with keys of their own.
    turn: u64,
}

impl Stage {
    /// Starts a committee, waits until it is up, and fills its state where that is asked for.
    ///
    /// # Errors
    /// When it does not come up or is not filled; it is dismissed then.
    pub(super) fn begin(
        config: &BenchConfig,
        progress: &Progress,
        interrupted: &AtomicBool,
        keep_failed: bool,
    ) -> Result<Self, BenchError> {
        progress.say("writing keys and configurations");
        let mut committee = Committee::create(config)?;
        match prepare(config, &mut committee, progress, interrupted) {
            Ok((members, filled)) => Ok(Self { committee, members, filled, turn: 0 }),
            Err(error) => committee.dismiss(Err(error), keep_failed),
        }
    }

    /// Offers a load and measures what becomes of it.
    pub(super) fn measure(
        &mut self,
        config: &BenchConfig,
        progress: &Progress,
        interrupted: &AtomicBool,
    ) -> Result<Report, BenchError> {
        progress.say("opening client sessions");
        self.turn += 1;
        let members = Arc::clone(&self.members);
        let client = sessions::open(config, Arc::clone(&members), self.turn)?;
        let (target, answers) = ends(&client, config.load.session_count());
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
        let committee = &mut self.committee;
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
        let restarted = match config.time_restart {
            true => Some(restart::time(&mut self.committee, &report, progress, interrupted)?),
            false => None,
        };
        let filled = self.filled;
        Ok(Report { beside: Beside { reads, filled, restarted, ..report.beside }, ..report })
    }

    /// Waits until nothing of the last load is left to execute.
    pub(super) fn settle(&mut self, interrupted: &AtomicBool) -> Result<(), BenchError> {
        self.committee.await_level("the load", interrupted).map(drop)
    }

    /// Ends the committee, and keeps its files as [`Committee::dismiss`] does.
    pub(super) fn dismiss<T>(
        self,
        result: Result<T, BenchError>,
        keep_failed: bool,
    ) -> Result<T, BenchError> {
        self.committee.dismiss(result, keep_failed)
    }
}

fn prepare(
    config: &BenchConfig,
    committee: &mut Committee,
    progress: &Progress,
    interrupted: &AtomicBool,
) -> Result<(Arc<Members>, Option<Filled>), BenchError> {
    progress.say("waiting until every validator is connected to every other, and signs");
    committee.await_ready(interrupted)?;
    let members = committee.members(config)?;
    let filled = match config.fill {
        true => Some(fill::fill(config, committee, &members, progress, interrupted)?),
        false => None,
    };
    Ok((members, filled))
}
