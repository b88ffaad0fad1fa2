//! A run under way: looks at everybody, lets events happen, waits for the last answers.

use super::beside::least_latency;
use super::changes::{self, Border, Roster};
use super::committee::Committee;
use super::config::BenchConfig;
use super::events::{Action, Event, Target};
use super::evidence::{Evidence, Sample, ValidatorState, growth, on_this_machine};
use super::health::{self, Health, HealthIssue};
use super::plan::{next_due, plan};
use super::recovery::Series;
use super::siege::Siege;
use super::watch::Tracks;
use super::{BenchError, Progress, settle};
use crate::load::LoadConfig;
use crate::load::measure::{Recorder, Schedule};
use crate::machine::{filesystem, own_cpu_seconds};
use crate::stations::{self, Threads, Used, of_validator};
use crate::status::{ValidatorStatus, recovered};
use crate::written::Written;
use parking_lot::Mutex;
use quorate_report::Report;
use quorate_report::results::beside::{BorderTimes, LeastLatency, Recovery};
use quorate_report::results::latency_grid::INTERVAL_MS;
use quorate_report::results::{Beside, FaultEvent, Measurement};
use quorate_types::Committee as Members;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// The longest nap: how late an event or an interruption may be noticed.
const NAP: Duration = Duration::from_millis(20);

/// Parts of a run that are made before it.
pub(super) struct Given<'a> {
    pub(super) config: &'a BenchConfig,
    pub(super) committee: &'a mut Committee,
    pub(super) members: Arc<Members>,
    pub(super) progress: &'a Progress,
    pub(super) interrupted: &'a AtomicBool,
    pub(super) schedule: Schedule,
    pub(super) recorder: Arc<Mutex<Recorder>>,
}

/// A run under way.
pub(super) struct Run<'a> {
    given: Given<'a>,
    /// The load as it runs: its warm-up is the longest until it ends.
    load: LoadConfig,
    started: SystemTime,
    health: Health,
    states: Vec<ValidatorState>,
    samples: Vec<Sample>,
    /// Those to come, the next one last.
    events: Vec<Event>,
    /// Those that were, in order.
    happened: Vec<FaultEvent>,
    /// Validators that were killed or stopped, each with the name used, the latest last.
    harmed: Vec<(Target, Action, u16)>,
    /// Validators that are stopped now.
    paused: Vec<u16>,
    /// Crowds at doors.
    sieges: Vec<Siege>,
    /// Processes that are members now.
    roster: Roster,
    /// Changes of the committee on their way, and those that came about.
    borders: Vec<(usize, Border)>,
    crossed: Vec<BorderTimes>,
    /// Processor time of threads before the window opened, and while it was open, in µs.
    threads: Threads,
    stations_us: Used,
    /// What the disk had been given when the window opened; and while it was open, for each
    /// validator and operation that it executed.
    written: Written,
    written_bytes_per_tx: Option<f64>,
}

type Looks = Vec<Option<ValidatorStatus>>;

impl<'a> Run<'a> {
    /// A run that begins now.
    pub(super) fn new(given: Given<'a>) -> Self {
        let config = given.config;
        let validators = usize::from(config.processes());
        let mut health = Health::new(validators);
        let mut states = vec![ValidatorState::Healthy; validators];
        for absent in config.absent() {
            health.excuse(absent);
            states[usize::from(absent)] = ValidatorState::Absent;
        }
        Self {
            load: config.longest_load(),
            started: SystemTime::now(),
            health,
            states,
            samples: Vec::new(),
            events: plan(config),
            happened: Vec::new(),
            harmed: Vec::new(),
            paused: Vec::new(),
            sieges: Vec::new(),
            roster: Roster::new(config.validators, config.processes() - config.validators),
            borders: Vec::new(),
            crossed: Vec::new(),
            threads: Threads::new(),
            stations_us: Used::new(),
            written: Written::default(),
            written_bytes_per_tx: None,
            given,
        }
    }

    /// Looks at everybody once a second, and lets the events happen in between.
    pub(super) fn under_load(&mut self) -> Result<(), BenchError> {
        let Given { config, progress, schedule, .. } = self.given;
        progress.begin(config.title(), &self.load);
        let mut second = 0;
        while second <= self.load.span().as_secs() {
            self.sleep_until(schedule.start + Duration::from_secs(second))?;
            self.sample(second)?;
            if (config.load.warmup_s..=self.load.warmup_s).contains(&(second + 1)) {
                self.end_warmup_if_settled();
            }
            if second == self.load.warmup_s {
                self.threads = self.healthy_threads();
                self.written = Written::beneath(self.given.committee.folder());
            }
            progress.show(&self.samples, &self.states);
            second += 1;
        }
        self.sieges.clear();
        self.stations_us = stations::used(&self.healthy_threads(), &self.threads, of_validator);
        self.written_bytes_per_tx = self.written.since().and_then(|bytes| self.for_each_tx(bytes));
        Ok(())
    }

    fn end_warmup_if_settled(&mut self) {
        let healthy = self.with(|state| *state == ValidatorState::Healthy);
        if !settle::has_settled(&self.samples, &healthy, self.load.rate) {
            return;
        }
        self.given.schedule = self.given.recorder.lock().end_warmup();
        self.load.warmup_s = self.given.schedule.warmup.as_secs();
        self.given.progress.begin(self.given.config.title(), &self.load);
    }

    /// The threads of those that ran all along so far; none where the system does not tell.
    fn healthy_threads(&self) -> Threads {
        let ids = self.healthy_processes();
        ids.filter_map(|process| stations::threads(process).ok()).flatten().collect()
    }

    fn healthy_processes(&self) -> impl Iterator<Item = u32> {
        let healthy = self.with(|state| *state == ValidatorState::Healthy);
        let processes = &self.given.committee.processes;
        healthy.into_iter().filter_map(|id| processes.id(usize::from(id)))
    }

    fn sample(&mut self, second: u64) -> Result<(), BenchError> {
        let looks = self.look()?;
        self.health.observe(&looks).map_err(|issue| self.unwell(issue))?;
        let (answered, lately) = {
            let mut recorder = self.given.recorder.lock();
            (recorder.answered(), recorder.lately())
        };
        let cpu = own_cpu_seconds().unwrap_or(0.0);
        let looks = recovered(looks);
        self.samples.push(Sample { second, looks, answered, lately, client_cpu_seconds: cpu });
        Ok(())
    }

    /// Waits for the last answers, and until all who live have executed the same.
    pub(super) fn drain(&mut self) -> Result<Looks, BenchError> {
        let config = self.given.config;
        self.given.progress.say("waiting for the last answers and for every validator to catch up");
        self.await_borders()?;
        let deadline = Instant::now() + Duration::from_secs(config.load.drain_s);
        let living = self.with(ValidatorState::must_catch_up);
        loop {
            self.sleep_until(Instant::now() + 5 * NAP)?;
            let looks = self.look()?;
            let answered = self.given.recorder.lock().is_settled();
            let level = health::caught_up(&looks, &living, 0).is_ok();
            if answered && level || Instant::now() >= deadline {
                // Late answers may still be executed while we look: a second's worth is no lag.
                health::caught_up(&looks, &living, config.load.under_way_max())
                    .and_then(|()| health::agree(&looks))
                    .map_err(|issue| self.unwell(issue))?;
                return Ok(looks);
            }
        }
    }

    pub(super) fn conclude(&self, last: &Looks, tracks: &Tracks) -> Result<Report, BenchError> {
        let config = self.given.config;
        let recorder = self.given.recorder.lock();
        let over_time = recorder.over_time();
        let latency = recorder.latency();
        let minimum = least_latency(config, &self.given.members, latency);
        let recoveries = self.recoveries(&over_time.answered, minimum.as_ref());
        let evidence = Evidence {
            load: &self.load,
            measurement: Measurement::Bench,
            config: describe(&BenchConfig { load: self.load.clone(), ..config.clone() }),
            samples: &self.samples,
            last,
            states: &self.states,
            counted: recorder.counted,
            warmup: recorder.whole_warmup(),
            latency,
            goodput_tps: recorder.goodput_tps(),
            stations_us: self.stations_us.clone(),
            disk_bytes: Some(self.given.committee.disk_bytes()),
            over_time: &over_time,
            tracks,
            started: self.started,
            offered: recorder.offered(),
            events: &self.happened,
            beside: Beside {
                minimum,
                recoveries,
                borders: self.crossed.clone(),
                logged_bytes_per_tx: self.logged_bytes_per_tx(),
                written_bytes_per_tx: self.written_bytes_per_tx,
                ..Beside::default()
            },
        };
        let report = evidence.report();
        if report.committed_tps <= 0.0 {
            return Err(self.given.committee.explain(BenchError::NothingCommitted, 0));
        }
        if report.answered == 0 {
            return Err(BenchError::NothingAnswered(Box::new(report)));
        }
        Ok(report)
    }

    fn recoveries(&self, answered: &[u64], least: Option<&LeastLatency>) -> Vec<Recovery> {
        let config = self.given.config;
        // Answers come in bursts, one a view: on a wide network these are farther apart than the
        // intervals that they are counted in.
        let view_ms = least.map_or(0.0, |least| least.least.view_ms);
        let series = Series {
            answered,
            interval_ms: INTERVAL_MS,
            warmup_ms: self.load.warmup_s * 1_000,
            load_ms: (self.load.warmup_s + self.load.duration_s) * 1_000,
            smooth: (2.0 * view_ms / INTERVAL_MS as f64).ceil().max(1.0) as usize,
        };
        series.recoveries(&self.happened, config.settings.timeout_ms)
    }

    fn logged_bytes_per_tx(&self) -> Option<f64> {
        let logged = self.grown(|status| status.log_bytes_written as f64)?;
        self.for_each_tx(logged).filter(|_| logged > 0.0)
    }

    /// Bytes of all validators for each operation that one of them executed in the window.
    fn for_each_tx(&self, bytes: f64) -> Option<f64> {
        let executed = self.grown(|status| status.operations as f64)?;
        (executed > 0.0).then(|| (bytes / executed * 10.0).round() / 10.0)
    }

    /// Growth of a counter over the window, of all validators together.
    fn grown(&self, value: fn(&ValidatorStatus) -> f64) -> Option<f64> {
        let warmup_s = self.load.warmup_s;
        let window = self.samples.iter().position(|sample| sample.second >= warmup_s)?;
        let ids = 0..self.given.config.processes();
        Some(ids.map(|id| growth(&self.samples[window..], id, value)).sum())
    }

    fn look(&mut self) -> Result<Looks, BenchError> {
        self.given.committee.check_alive()?;
        Ok(self.given.committee.look_but(&self.paused))
    }

    fn sleep_until(&mut self, moment: Instant) -> Result<(), BenchError> {
        loop {
            if self.given.interrupted.load(Ordering::Relaxed) {
                return Err(BenchError::Interrupted);
            }
            self.let_events_happen()?;
            let left = moment.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(NAP));
        }
    }

    // ---- events ---------------------------------------------------------------------------------

    fn let_events_happen(&mut self) -> Result<(), BenchError> {
        let opened = self.given.schedule.start + self.given.schedule.warmup;
        while let Some(event) = self.take_due(opened) {
            let at_s = opened.elapsed().as_secs_f64();
            let change = match event.action {
                Action::Change(index) => Some(self.change(index)?),
                _ => None,
            };
            let validator = change.is_none().then(|| self.resolve(event));
            if let Some(validator) = validator {
                self.happen(event, validator)?;
            }
            let at_s = (at_s * 1_000.0).round() / 1_000.0;
            let kind = event.action.name().to_owned();
            let link_to = event.action.other_end();
            let happening = FaultEvent { at_s, kind, validator, link_to, change };
            self.given.progress.note(at_s, happening.describe());
            self.happened.push(happening);
        }
        Ok(())
    }

    /// Takes the next event whose time has come.
    fn take_due(&mut self, opened: Instant) -> Option<Event> {
        // Negative before the window opens: nothing is due then.
        let second = Instant::now().checked_duration_since(opened)?.as_secs_f64();
        let is_beginning = self.borders.iter().any(|(_, border)| !border.is_finished());
        let next = next_due(&self.events, second, is_beginning)?;
        Some(self.events.remove(next))
    }

    fn happen(&mut self, event: Event, validator: u16) -> Result<(), BenchError> {
        if let Some(other) = event.action.other_end() {
            // Both go on, and must keep up.
            return self.given.committee.cut(validator, other).map_err(BenchError::cutting);
        }
        let (index, second) = (usize::from(validator), event.at.second);
        let processes = &mut self.given.committee.processes;
        self.health.excuse(validator);
        match event.action {
            Action::Kill => processes.kill(index).map_err(BenchError::killing)?,
            Action::Restart => processes.start_one(index).map_err(BenchError::starting)?,
            Action::Pause => {
                processes.pause(index).map_err(BenchError::signalling)?;
                self.paused.push(validator);
            }
            Action::Resume => {
                processes.resume(index).map_err(BenchError::signalling)?;
                self.paused.retain(|paused| *paused != validator);
            }
            Action::Lie => processes.begin_to_lie(index).map_err(BenchError::signalling)?,
            Action::Crowd => self.crowd(validator)?,
            Action::CutFrom(_) | Action::Change(_) => {}
        }
        if event.action.harms() {
            self.harmed.push((event.at.who, event.action, validator));
        }
        let state = &mut self.states[index];
        *state = match (event.action, *state) {
            (Action::Kill, _) => ValidatorState::Killed(second),
            (Action::Restart, _) => ValidatorState::Restarted(second),
            (Action::Pause, _) => ValidatorState::Paused(second),
            (Action::Lie, _) => ValidatorState::Lying(second),
            (Action::Crowd, _) => ValidatorState::Crowded(second),
            (Action::Resume | Action::CutFrom(_) | Action::Change(_), state) => state,
        };
        Ok(())
    }

    /// Brings a change of the committee; what it is, in words.
    fn change(&mut self, index: usize) -> Result<String, BenchError> {
        // What the change before it came to comes first.
        self.join_borders()?;
        let what = self.given.config.changes[index].what;
        let dead = self.with(|state| !state.must_catch_up());
        let processes = self.given.committee.changing(&dead);
        let border = changes::bring(what, &mut self.roster, &processes)?;
        self.borders.push((index, border));
        Ok(what.to_string())
    }

    /// Waits until all are in the epochs that changes began, and brings those that waited for them.
    fn await_borders(&mut self) -> Result<(), BenchError> {
        while !self.borders.is_empty() {
            self.join_borders()?;
            self.let_events_happen()?;
        }
        Ok(())
    }

    fn join_borders(&mut self) -> Result<(), BenchError> {
        for (index, border) in self.borders.drain(..) {
            let failed = |reason| {
                let what = self.given.config.changes[index].what.to_string();
                BenchError::Change { what, reason }
            };
            let crossed = border.join().unwrap_or_else(|_| Err("its thread ended".to_owned()));
            self.crossed.push(crossed.map_err(failed)?);
        }
        Ok(())
    }

    fn crowd(&mut self, validator: u16) -> Result<(), BenchError> {
        let doors = self.given.committee.doors(&self.given.members, validator);
        let begun = Siege::begin(doors);
        let failed = |source| BenchError::System { what: "gather a crowd", source };
        self.sieges.push(begun.map_err(failed)?);
        Ok(())
    }

    /// Validator that is meant, now that the time has come.
    fn resolve(&self, event: Event) -> u16 {
        if let Target::Member(id) = event.at.who {
            return id;
        }
        let before = match event.action {
            Action::Restart => Action::Kill,
            Action::Resume => Action::Pause,
            Action::Kill
            | Action::Pause
            | Action::Lie
            | Action::Crowd
            | Action::CutFrom(_)
            | Action::Change(_) => return self.by_role(event.at.who),
        };
        let of_it =
            |(who, action, _): &&(Target, Action, u16)| *who == event.at.who && *action == before;
        self.harmed.iter().rfind(of_it).map_or(0, |(_, _, id)| *id)
    }

    /// The leader of the latest view that anybody is in, or the one before it in turn; past whoever
    /// is not there.
    fn by_role(&self, who: Target) -> u16 {
        let looks = self.given.committee.look_but(&self.paused);
        let latest = looks.iter().flatten().max_by_key(|status| status.view);
        let leader = latest.map_or(0, |status| status.leader);
        let n = self.roster.size();
        let there = |id: &u16| looks[usize::from(*id)].is_some();
        let turn = |step: u16| match who {
            Target::Follower => (leader + n - 1 - step) % n,
            Target::Leader | Target::Member(_) | Target::Committee => (leader + step) % n,
        };
        let process = |step| self.roster.process(turn(step));
        (0..n).map(process).find(there).unwrap_or_else(|| self.roster.process(leader))
    }

    fn with(&self, choice: impl Fn(&ValidatorState) -> bool) -> Vec<u16> {
        let chosen = (0..).zip(&self.states).filter(|(_, state)| choice(state));
        chosen.map(|(id, _)| id).collect()
    }

    fn unwell(&self, issue: HealthIssue) -> BenchError {
        let id = issue.validator();
        self.given.committee.explain(BenchError::Unwell(issue), id)
    }
}

fn describe(config: &BenchConfig) -> Value {
    let mut described = on_this_machine(config.to_json());
    let folder = config.directory.clone().unwrap_or_else(std::env::temp_dir);
    described["machine"]["disk"] = json!(filesystem(&folder));
    described["shared_machine"] = json!("validators and clients share this machine's cores");
    described
}
