//! A run under way: looks at everybody, lets events happen, waits for the last answers.

use super::beside::{Beside, LeastLatency};
use super::committee::Committee;
use super::config::BenchConfig;
use super::events::{Deed, Event, Who, plan};
use super::evidence::{Evidence, Fortune, Sample, growth};
use super::health::{self, Ailment, Health};
use super::latency_grid::INTERVAL_MS;
use super::measure::{Recorder, Schedule};
use super::recovery::{Recovery, Series};
use super::report::Happening;
use super::watch::Tracks;
use super::{BenchError, Progress, Report};
use crate::machine::own_cpu_seconds;
use crate::stations::{self, Threads, Used, of_validator};
use crate::status::ValidatorStatus;
use parking_lot::Mutex;
use quorate_types::Committee as Members;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// The longest nap: how late an event or an interruption may be noticed.
const NAP: Duration = Duration::from_millis(20);

/// What a run is given.
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
    started: SystemTime,
    health: Health,
    fortunes: Vec<Fortune>,
    samples: Vec<Sample>,
    /// Those to come, the next one last.
    events: Vec<Event>,
    /// Those that were, in order.
    happened: Vec<Happening>,
    /// Who was killed or stopped under which name, the latest last.
    harmed: Vec<(Who, Deed, u16)>,
    /// Who is stopped now.
    paused: Vec<u16>,
    /// What threads had used when the window opened, and used while it was open, in µs.
    threads: Threads,
    stations_us: Used,
}

type Looks = Vec<Option<ValidatorStatus>>;

impl<'a> Run<'a> {
    /// A run that begins now.
    pub(super) fn new(given: Given<'a>) -> Self {
        let config = given.config;
        let validators = usize::from(config.validators);
        let mut health = Health::new(validators);
        let mut fortunes = vec![Fortune::Healthy; validators];
        for absent in config.absent() {
            health.excuse(absent);
            fortunes[usize::from(absent)] = Fortune::Absent;
        }
        Self {
            started: SystemTime::now(),
            health,
            fortunes,
            samples: Vec::new(),
            events: plan(&config.kills, &config.restarts, &config.pauses),
            happened: Vec::new(),
            harmed: Vec::new(),
            paused: Vec::new(),
            threads: Threads::new(),
            stations_us: Used::new(),
            given,
        }
    }

    /// Looks at everybody once a second, and lets the events happen in between.
    pub(super) fn under_load(&mut self) -> Result<(), BenchError> {
        let Given { config, progress, schedule, .. } = self.given;
        for second in 0..=config.load_span().as_secs() {
            self.sleep_until(schedule.start + Duration::from_secs(second))?;
            self.sample(second)?;
            if second == config.warmup_s {
                self.threads = self.healthy_threads();
            }
            progress.show(&self.samples, &self.fortunes);
        }
        self.stations_us = stations::used(&self.healthy_threads(), &self.threads, of_validator);
        Ok(())
    }

    /// The threads of those that ran all along so far; none where the system does not tell.
    fn healthy_threads(&self) -> Threads {
        let healthy = self.with(|fortune| *fortune == Fortune::Healthy);
        let processes = &self.given.committee.processes;
        let ids = healthy.into_iter().filter_map(|id| processes.id(usize::from(id)));
        ids.filter_map(|process| stations::threads(process).ok()).flatten().collect()
    }

    fn sample(&mut self, second: u64) -> Result<(), BenchError> {
        let looks = self.look()?;
        self.health.observe(&looks).map_err(|ailment| self.unwell(ailment))?;
        let (counted, lately) = {
            let mut recorder = self.given.recorder.lock();
            (recorder.counted, recorder.lately())
        };
        let cpu = own_cpu_seconds().unwrap_or(0.0);
        self.samples.push(Sample { second, looks, counted, lately, client_cpu_seconds: cpu });
        Ok(())
    }

    /// Waits for the last answers, and until all who live have executed the same.
    pub(super) fn drain(&mut self) -> Result<Looks, BenchError> {
        let config = self.given.config;
        self.given.progress.say("waiting for the last answers and for every validator to catch up");
        let deadline = Instant::now() + Duration::from_secs(config.drain_s);
        let living = self.with(|fortune| !matches!(fortune, Fortune::Killed(_) | Fortune::Absent));
        loop {
            self.sleep_until(Instant::now() + 5 * NAP)?;
            let looks = self.look()?;
            let answered = self.given.recorder.lock().is_settled();
            let level = health::caught_up(&looks, &living, 0).is_ok();
            if answered && level || Instant::now() >= deadline {
                // Late answers may still be executed while we look: a second's worth is no lag.
                health::caught_up(&looks, &living, config.under_way_max())
                    .and_then(|()| health::agree(&looks))
                    .map_err(|ailment| self.unwell(ailment))?;
                return Ok(looks);
            }
        }
    }

    pub(super) fn conclude(&self, last: &Looks, tracks: &Tracks) -> Result<Report, BenchError> {
        let recorder = self.given.recorder.lock();
        let over_time = recorder.over_time();
        let latency = recorder.latency();
        let minimum = LeastLatency::of(self.given.config, &self.given.members, latency);
        let recoveries = self.recoveries(&over_time.answered, minimum.as_ref());
        let report = Report::new(&Evidence {
            config: self.given.config,
            samples: &self.samples,
            last,
            fortunes: &self.fortunes,
            counted: recorder.counted,
            warmup: recorder.warmup,
            latency,
            goodput_tps: recorder.goodput_tps(),
            stations_us: self.stations_us.clone(),
            disk_bytes: self.given.committee.disk_bytes(),
            over_time: &over_time,
            tracks,
            started: self.started,
            offered: recorder.offered(),
            events: &self.happened,
            beside: Beside {
                minimum,
                recoveries,
                logged_bytes_per_tx: self.logged_bytes_per_tx(),
                ..Beside::default()
            },
        });
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
            warmup_ms: config.warmup_s * 1_000,
            load_ms: (config.warmup_s + config.duration_s) * 1_000,
            smooth: (2.0 * view_ms / INTERVAL_MS as f64).ceil().max(1.0) as usize,
        };
        series.recoveries(&self.happened, config.settings.timeout_ms)
    }

    fn logged_bytes_per_tx(&self) -> Option<f64> {
        let warmup_s = self.given.config.warmup_s;
        let window = self.samples.iter().position(|sample| sample.second >= warmup_s)?;
        let grown = |value: fn(&ValidatorStatus) -> f64| -> f64 {
            let ids = 0..self.given.config.validators;
            ids.map(|id| growth(&self.samples[window..], id, value)).sum()
        };
        let logged = grown(|status| status.log_bytes_written as f64);
        let executed = grown(|status| status.operations as f64);
        (logged > 0.0 && executed > 0.0).then(|| (logged / executed * 10.0).round() / 10.0)
    }

    fn look(&mut self) -> Result<Looks, BenchError> {
        if let Some((id, status)) = self.given.committee.processes.find_exited() {
            let id = u16::try_from(id).expect("validators are counted in 16 bits");
            return Err(self.unwell(Ailment::Exited(id, status.to_string())));
        }
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
        while let Some(event) = self.events.last().copied() {
            if Instant::now() < opened + Duration::from_secs_f64(event.at.second) {
                break;
            }
            self.events.pop();
            let validator = self.resolve(event);
            let at_s = opened.elapsed().as_secs_f64();
            self.happen(event, validator)?;
            let at_s = (at_s * 1_000.0).round() / 1_000.0;
            let kind = event.deed.name().to_owned();
            let happening = Happening { at_s, kind, validator };
            self.given.progress.note(at_s, happening.describe());
            self.happened.push(happening);
        }
        Ok(())
    }

    fn happen(&mut self, event: Event, validator: u16) -> Result<(), BenchError> {
        let (index, second) = (usize::from(validator), event.at.second);
        let processes = &mut self.given.committee.processes;
        self.health.excuse(validator);
        match event.deed {
            Deed::Kill => processes.kill(index).map_err(BenchError::killing)?,
            Deed::Restart => processes.start_one(index).map_err(BenchError::starting)?,
            Deed::Pause => {
                processes.pause(index).map_err(BenchError::signalling)?;
                self.paused.push(validator);
            }
            Deed::Resume => {
                processes.resume(index).map_err(BenchError::signalling)?;
                self.paused.retain(|paused| *paused != validator);
            }
        }
        if event.deed.harms() {
            self.harmed.push((event.at.who, event.deed, validator));
        }
        let fortune = &mut self.fortunes[index];
        *fortune = match (event.deed, *fortune) {
            (Deed::Kill, _) => Fortune::Killed(second),
            (Deed::Restart, _) => Fortune::Restarted(second),
            (Deed::Pause, _) => Fortune::Paused(second),
            (Deed::Resume, fortune) => fortune,
        };
        Ok(())
    }

    /// Who is meant, now that the time has come.
    fn resolve(&self, event: Event) -> u16 {
        if let Who::Member(id) = event.at.who {
            return id;
        }
        let before = match event.deed {
            Deed::Restart => Deed::Kill,
            Deed::Resume => Deed::Pause,
            Deed::Kill | Deed::Pause => return self.by_role(event.at.who),
        };
        let of_it = |(who, deed, _): &&(Who, Deed, u16)| *who == event.at.who && *deed == before;
        self.harmed.iter().rfind(of_it).map_or(0, |(_, _, id)| *id)
    }

    /// The leader of the latest view that anybody is in, or the one before it in turn; past whoever
    /// is not there.
    fn by_role(&self, who: Who) -> u16 {
        let looks = self.given.committee.look_but(&self.paused);
        let latest = looks.iter().flatten().max_by_key(|status| status.view);
        let leader = latest.map_or(0, |status| status.leader);
        let n = self.given.config.validators;
        let there = |id: &u16| looks[usize::from(*id)].is_some();
        let turn = |step: u16| match who {
            Who::Follower => (leader + n - 1 - step) % n,
            Who::Leader | Who::Member(_) => (leader + step) % n,
        };
        (0..n).map(turn).find(there).unwrap_or(leader)
    }

    fn with(&self, choice: impl Fn(&Fortune) -> bool) -> Vec<u16> {
        let chosen = (0..).zip(&self.fortunes).filter(|(_, fortune)| choice(fortune));
        chosen.map(|(id, _)| id).collect()
    }

    fn unwell(&self, ailment: Ailment) -> BenchError {
        let id = ailment.validator();
        self.given.committee.explain(BenchError::Unwell(ailment), id)
    }
}
