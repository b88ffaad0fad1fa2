//! A real local committee under load: one process a validator, over TLS and disk.
//!
//! # How it measures
//!
//! * **Open loop.** Operations are scheduled at a fixed rate, and latency runs from an operation's
//!   scheduled time to its (f+1)-th equal signed reply. A committee or client that stalls cannot
//!   hide what it delayed.
//! * **The slowest counts.** The committed rate is that of the healthy validator that executed least.
//!   A healthy validator that exits, stands still, stays behind or disagrees fails the run by name.
//! * **Warm-up, window, drain.** The same load runs throughout the first two. Operations scheduled in
//!   the warm-up are counted apart and in no figure. After the window the run waits, within a bound,
//!   for the last answers and for every validator to reach the same point.
//! * **The load generator shares the machine** with the validators, as the result says; its own CPU
//!   time is reported apart.

pub mod beside;
mod committee;
mod config;
mod error;
mod evidence;
pub mod health;
pub mod latency_grid;
pub mod load;
pub mod measure;
mod progress;
pub mod report;
mod sessions;
mod table;

pub use config::{At, BenchConfig, NotAt, fitting_timeout_ms};
pub use error::BenchError;
pub use progress::Progress;
pub use report::Report;
pub use table::render;

use crate::machine::own_cpu_seconds;
use beside::{Beside, LeastLatency};
use committee::Committee;
use evidence::{Evidence, Fortune, Sample};
use health::{Ailment, Health};
use load::Load;
use measure::{LatencyMs, Recorder, Schedule};
use parking_lot::Mutex;
use quorate_types::Committee as Members;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// How long before its first operation a load is announced.
const HEAD_START: Duration = Duration::from_millis(50);

/// The longest nap: how late an event or an interruption may be noticed.
const NAP: Duration = Duration::from_millis(20);

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
    progress.say("writing keys and configurations");
    let mut committee = Committee::create(config)?;
    let report = measure(config, &mut committee, progress, interrupted);
    progress.say("stopping the validators");
    committee.dismiss(report)
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
    let (target, answers) = sessions::open(config, Arc::clone(&members))?;
    let schedule = Schedule {
        start: Instant::now() + HEAD_START,
        rate: config.rate,
        warmup: Duration::from_secs(config.warmup_s),
        window: Duration::from_secs(config.duration_s),
    };
    let recorder = Arc::new(Mutex::new(Recorder::new(schedule)));
    let counting = Arc::clone(&recorder);
    let load = Load::start(schedule, config.tx_bytes, config.seed, target, answers, counting);
    progress.begin(config);
    let mut run = Run {
        config,
        committee,
        members,
        progress,
        interrupted,
        schedule,
        recorder,
        started: SystemTime::now(),
        health: Health::new(usize::from(config.validators)),
        fortunes: vec![Fortune::Healthy; usize::from(config.validators)],
        samples: Vec::new(),
        events: Event::all_of(config),
    };
    run.under_load()?;
    let last = run.drain()?;
    drop(load);
    run.conclude(&last)
}

/// A run under way.
struct Run<'a> {
    config: &'a BenchConfig,
    committee: &'a mut Committee,
    members: Arc<Members>,
    progress: &'a Progress,
    interrupted: &'a AtomicBool,
    schedule: Schedule,
    recorder: Arc<Mutex<Recorder>>,
    started: SystemTime,
    health: Health,
    fortunes: Vec<Fortune>,
    samples: Vec<Sample>,
    /// Those to come, the next one last.
    events: Vec<Event>,
}

/// Something done to a validator on purpose.
#[derive(Clone, Copy, Debug)]
struct Event {
    at: At,
    start: bool,
}

impl Event {
    fn all_of(config: &BenchConfig) -> Vec<Self> {
        let kills = config.kills.iter().map(|&at| Self { at, start: false });
        let starts = config.restarts.iter().map(|&at| Self { at, start: true });
        let mut events: Vec<_> = kills.chain(starts).collect();
        events.sort_by(|a, b| b.at.second.total_cmp(&a.at.second));
        events
    }
}

type Looks = Vec<Option<crate::status::ValidatorStatus>>;

impl Run<'_> {
    /// Looks at everybody once a second, and lets the events happen in between.
    fn under_load(&mut self) -> Result<(), BenchError> {
        for second in 0..=self.config.load_span().as_secs() {
            self.sleep_until(self.schedule.start + Duration::from_secs(second))?;
            self.sample(second)?;
            let killed: Vec<u16> = self.with(|f| matches!(f, Fortune::Killed(_)));
            self.progress.show(self.config, &self.samples, &killed);
        }
        Ok(())
    }

    fn sample(&mut self, second: u64) -> Result<(), BenchError> {
        let looks = self.look()?;
        self.health.observe(&looks).map_err(|ailment| self.unwell(ailment))?;
        let (counted, lately) = {
            let mut recorder = self.recorder.lock();
            (recorder.counted, recorder.lately())
        };
        let cpu = own_cpu_seconds().unwrap_or(0.0);
        self.samples.push(Sample { second, looks, counted, lately, client_cpu_seconds: cpu });
        Ok(())
    }

    /// Waits for the last answers, and until all who live have executed the same.
    fn drain(&mut self) -> Result<Looks, BenchError> {
        self.progress.say("waiting for the last answers and for every validator to catch up");
        let deadline = Instant::now() + Duration::from_secs(self.config.drain_s);
        let living = self.with(|fortune| !matches!(fortune, Fortune::Killed(_)));
        loop {
            self.sleep_until(Instant::now() + 5 * NAP)?;
            let looks = self.look()?;
            let answered = self.recorder.lock().settled() >= self.schedule.end();
            let level = health::caught_up(&looks, &living, 0).is_ok();
            if answered && level || Instant::now() >= deadline {
                // Late answers may still be executed while we look: a second's worth is no lag.
                health::caught_up(&looks, &living, self.config.rate)
                    .and_then(|()| health::agree(&looks))
                    .map_err(|ailment| self.unwell(ailment))?;
                return Ok(looks);
            }
        }
    }

    fn conclude(&self, last: &Looks) -> Result<Report, BenchError> {
        let recorder = self.recorder.lock();
        let report = Report::new(&Evidence {
            config: self.config,
            samples: &self.samples,
            last,
            fortunes: &self.fortunes,
            counted: recorder.counted,
            warmup: recorder.warmup,
            latency: recorder.latency(),
            disk_bytes: self.committee.disk_bytes(),
            over_time: &recorder.over_time(),
            started: self.started,
            beside: self.beside(recorder.latency()),
        });
        if report.committed_tps > 0.0 && report.answered > 0 {
            return Ok(report);
        }
        Err(self.committee.explain(BenchError::NothingCommitted, 0))
    }

    fn beside(&self, latency: LatencyMs) -> Beside {
        Beside { minimum: LeastLatency::of(self.config, &self.members, latency) }
    }

    fn look(&mut self) -> Result<Looks, BenchError> {
        if let Some((id, status)) = self.committee.processes.find_exited() {
            let id = u16::try_from(id).expect("validators are counted in 16 bits");
            return Err(self.unwell(Ailment::Exited(id, status.to_string())));
        }
        Ok(self.committee.look())
    }

    fn sleep_until(&mut self, moment: Instant) -> Result<(), BenchError> {
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
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

    fn let_events_happen(&mut self) -> Result<(), BenchError> {
        let opened = self.schedule.start + self.schedule.warmup;
        while let Some(event) = self.events.last().copied() {
            if Instant::now() < opened + Duration::from_secs_f64(event.at.second) {
                break;
            }
            self.events.pop();
            let (id, index) = (event.at.validator, usize::from(event.at.validator));
            self.health.excuse(id);
            if event.start {
                self.fortunes[index] = Fortune::Restarted(event.at.second);
                self.committee.processes.start_one(index).map_err(BenchError::starting)?;
            } else {
                self.fortunes[index] = Fortune::Killed(event.at.second);
                self.committee.processes.kill(index).map_err(BenchError::killing)?;
            }
        }
        Ok(())
    }

    fn with(&self, choice: impl Fn(&Fortune) -> bool) -> Vec<u16> {
        let chosen = (0..).zip(&self.fortunes).filter(|(_, fortune)| choice(fortune));
        chosen.map(|(id, _)| id).collect()
    }

    fn unwell(&self, ailment: Ailment) -> BenchError {
        let id = ailment.validator();
        self.committee.explain(BenchError::Unwell(ailment), id)
    }
}
