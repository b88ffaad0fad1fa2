//! Simulation of a scene: the loop over its events.
//!
//! Its parts are layers, each calling those before it alone: `state`; `checks` and `machine`, jobs
//! of single stations; `work`, every job with its cost; `service`, queues and cores; `transport`,
//! frames between hosts; `effects`, what comes of jobs; and this loop.

mod checks;
mod effects;
mod event;
mod machine;
mod service;
mod state;
mod transport;
mod work;

use crate::bottleneck::{Bottleneck, Resource};
use crate::clients::arrival_interval;
use crate::doubt::Doubt;
use crate::gauges::Gauges;
use crate::jobs::Job;
use crate::outcome::{Estimate, Progress, Signatures};
use crate::queue::Priority;
use crate::scene::{Scene, SceneError};
use crate::service_times::ServiceTimes;
use crate::station::Station;
use crate::time::{Nanos, nanos};
use crate::validity::{doubts, is_too_much};
use crate::workload::Arrivals;
use event::{SimEvent, TraceHash};
#[cfg(feature = "stand-ins")]
use quorate_crypto::stand_in::StandIns;
use quorate_types::Event;
use state::State;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Clients begin when validators have started.
const LOAD_FROM: Nanos = 200_000_000;

/// Events between two reports of progress.
const PROGRESS_EVENTS: u64 = 1 << 14;

/// Most operations that may be under way before a run is given up.
fn under_way_max(scene: &Scene) -> u64 {
    let is_closed = matches!(scene.load.arrivals, Arrivals::Closed(_));
    let limit = scene.give_up.filter(|_| !is_closed);
    limit.map_or(u64::MAX, |limit| (scene.load.rate * limit.as_secs_f64()).max(1_000.0) as u64)
}

/// A run of a scene.
pub(crate) struct Simulation {
    state: State,
    /// Time between two handovers of operations to a client's sessions.
    interval: Nanos,
    /// The measurement window.
    window: Range<Nanos>,
    /// Most operations under way: with more, the run is given up.
    under_way_max: u64,
    /// Time in which the load grows to its rate.
    ramp: Nanos,
    /// Gauges at the beginning of the window.
    before: Gauges,
    /// Events processed.
    events: u64,
    trace: TraceHash,
    signatures: Signatures,
    /// Signatures are stand-ins while it lives, those of keys being made included.
    #[cfg(feature = "stand-ins")]
    _stand_ins: Option<StandIns>,
}

impl Simulation {
    pub(crate) fn new(scene: &Scene) -> Self {
        #[cfg(feature = "stand-ins")]
        let stand_ins = (!scene.real_signatures).then(StandIns::begin);
        let begins = nanos(scene.warmup);
        let window = begins..begins + nanos(scene.duration);
        let mut simulation = Self {
            state: State::new(scene, &window),
            interval: arrival_interval(scene.load.bundle_delay),
            window,
            under_way_max: under_way_max(scene),
            ramp: nanos(scene.ramp),
            before: Gauges::default(),
            events: 0,
            trace: TraceHash::default(),
            signatures: if scene.real_signatures { Signatures::Real } else { Signatures::Priced },
            #[cfg(feature = "stand-ins")]
            _stand_ins: stand_ins,
        };
        simulation.schedule_first(scene);
        simulation
    }

    /// Measures the times that machines really take here, beside everything else.
    pub(crate) fn with_service_times(mut self) -> Self {
        self.state.service_times = Some(ServiceTimes::default());
        self
    }

    /// Schedules what begins a run.
    fn schedule_first(&mut self, scene: &Scene) {
        let state = &mut self.state;
        state.events.schedule(self.window.start, SimEvent::WindowBegins);
        state.schedule_crashes(scene);
        let members = state.nodes.validators.len();
        for member in 0..members {
            let recovered = Job::Handle(vec![Event::Recovered(Box::default())]);
            state.queue(member, Station::Machine, Priority::Answer, recovered);
            // Not in step: each at another part of an interval.
            let phase = self.interval * member as u64 / members as u64;
            state.events.schedule(LOAD_FROM + phase, SimEvent::LoadDue { member });
        }
    }

    /// Runs to the end; returns the estimate, and service times where they were measured.
    pub(crate) fn run(
        mut self,
        scene: &Scene,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Estimate, ServiceTimes), SceneError> {
        let mut estimate = self.last_window(scene, progress)?;
        estimate.answered = self.state.latencies.answered;
        Ok((estimate, self.state.service_times.unwrap_or_default()))
    }

    /// Runs window after window; returns the estimate of the last.
    fn last_window(
        &mut self,
        scene: &Scene,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Estimate, SceneError> {
        let began = Instant::now();
        let mut left = if scene.is_of_a_crash() { 0 } else { scene.windows_more };
        let mut grew = false;
        loop {
            if let Some(doubt) = self.run_window(progress)? {
                return Ok(self.given_up(began.elapsed(), doubt));
            }
            let mut estimate = self.estimate(began.elapsed());
            estimate.doubts = doubts(scene, &estimate);
            let grows = estimate.doubts.iter().any(Doubt::is_growth);
            let ends = scene.give_up.is_some() && is_too_much(&estimate.doubts);
            if left == 0 || estimate.doubts.is_empty() || ends || grew && grows {
                return Ok(estimate);
            }
            self.move_window();
            (left, grew) = (left - 1, grows);
        }
    }

    /// Runs to the end of the window; the doubt, where the run is given up before.
    fn run_window(
        &mut self,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Option<Doubt>, SceneError> {
        while self.state.events.next_at().is_some_and(|at| at <= self.window.end) {
            let Some((at, event)) = self.state.events.pop() else { break };
            self.state.now = at;
            self.events += 1;
            self.trace.record(at, &event);
            self.handle(event).map_err(SceneError::Broken)?;
            if self.events.is_multiple_of(PROGRESS_EVENTS) {
                progress(Progress {
                    virtual_time: Duration::from_nanos(at),
                    total: Duration::from_nanos(self.window.end),
                    committed: self.state.latencies.committed,
                });
            }
            let under_way = self.state.latencies.under_way();
            if under_way > self.under_way_max {
                return Ok(Some(Doubt::GivenUp { under_way, at_s: at as f64 / 1e9 }));
            }
        }
        self.state.now = self.window.end;
        Ok(None)
    }

    /// Estimate of a run that is given up now: of everything since the load began.
    fn given_up(&mut self, wall: Duration, doubt: Doubt) -> Estimate {
        self.window = LOAD_FROM..self.state.now;
        self.before = Gauges::default();
        let mut estimate = self.estimate(wall);
        let seconds = (self.window.end - self.window.start) as f64 / 1e9;
        estimate.committed_tps = self.state.latencies.committed as f64 / seconds;
        estimate.doubts.push(doubt);
        estimate
    }

    /// Another window follows, twice as long.
    fn move_window(&mut self) {
        let Range { start, end } = self.window;
        self.window = end..end + 2 * (end - start);
        self.before = self.gauges();
        self.state.latencies.move_window(self.window.clone());
    }

    /// Handles an event. The error is a broken property.
    fn handle(&mut self, event: SimEvent) -> Result<(), String> {
        let state = &mut self.state;
        match event {
            SimEvent::JobDone { host } => return self.finish_jobs(host),
            SimEvent::Arrived { to, frame } => state.arrive(to, frame),
            SimEvent::Released { id } => state.release(id),
            SimEvent::Writable { id } => state.write_next(id),
            SimEvent::Awake { member, job } => state.awake(member, job),
            SimEvent::ArrivalsDue { member } => state.take_arrivals(member),
            SimEvent::Received { to, frame } => state.receive(to, frame),
            SimEvent::Acknowledged { body } => state.acknowledge(body),
            SimEvent::Synced { member } => return state.synced(member),
            SimEvent::Timeout { member } => self.on_timeout(member),
            SimEvent::ClientTimeout { member } => self.on_client_timeout(member),
            SimEvent::LoadDue { member } => self.offer(member),
            SimEvent::Crash { member } => {
                state.view_change.on_crash(state.now);
                state.nodes.validators[member].crash();
            }
            SimEvent::WindowBegins => self.before = self.gauges(),
        }
        Ok(())
    }

    /// Ends the service of jobs that are done, and begins others.
    fn finish_jobs(&mut self, host: usize) -> Result<(), String> {
        let state = &mut self.state;
        if !state.hosts.begin_check(host, state.now) {
            return Ok(());
        }
        while let Some(job) = state.hosts.finish(host, state.now) {
            let (member, station) = (job.member, job.station);
            if station == Station::Machine {
                let waited = (state.now - job.ready).saturating_sub(job.cost);
                state.nodes.validators[member].ready += waited;
            }
            state.nodes.validators[member].station(station).end();
            state.complete(member, station, job.completion)?;
            state.serve(member, station);
            state.nodes.validators[member].station(station).rest();
        }
        state.check_later(host);
        Ok(())
    }

    /// A machine's timer is due, unless it was armed anew since.
    fn on_timeout(&mut self, member: usize) {
        let state = &mut self.state;
        let validator = &mut state.nodes.validators[member];
        if validator.armed != Some(state.now) {
            return;
        }
        validator.armed = None;
        if validator.alive && !std::mem::replace(&mut validator.timeout_queued, true) {
            state.queue(member, Station::Machine, Priority::Answer, Job::Timeout);
        }
    }

    /// A timer of a client's sessions is due, unless it was armed anew since.
    fn on_client_timeout(&mut self, member: usize) {
        let state = &mut self.state;
        let client = &mut state.nodes.clients[member];
        if client.armed == Some(state.now) {
            client.armed = None;
            state.queue(member, Station::Client, Priority::Answer, Job::ClientTimeout);
        }
    }

    /// Operations that are due are handed to a client.
    fn offer(&mut self, member: usize) {
        let grown = self.grown();
        let state = &mut self.state;
        let operations = state.nodes.clients[member].arrivals(self.interval, grown);
        if operations > 0 {
            let job = Job::Submit { operations, at: state.now };
            state.queue(member, Station::Client, Priority::Answer, job);
        }
        state.events.schedule(state.now + self.interval, SimEvent::LoadDue { member });
    }

    /// Share of the offered rate that is offered now.
    fn grown(&self) -> f64 {
        let since = self.state.now.saturating_sub(LOAD_FROM) as f64;
        if self.ramp == 0 { 1.0 } else { (since / self.ramp as f64).min(1.0) }
    }

    fn gauges(&self) -> Gauges {
        let State { nodes, hosts, links, execution, now, .. } = &self.state;
        Gauges::read(*now, nodes, hosts, links, execution.last().0)
    }

    /// Estimate of the window that ends now, of a run that took `wall`.
    fn estimate(&mut self, wall: Duration) -> Estimate {
        let span = self.window.end - self.window.start;
        let seconds = span as f64 / 1e9;
        let (before, gauges) = (std::mem::take(&mut self.before), self.gauges());
        let state = &mut self.state;
        let root = state.execution.last().1.0[..8].try_into().expect("8 bytes");
        let cores = f64::from(state.hosts.cores());
        let members = state.nodes.validators.len() as f64;
        let latencies = &mut state.latencies;
        let utilisation = gauges.utilisation(&before, span);
        let share = |used: u64| used as f64 / span as f64;
        let cores_busiest = share(gauges.busiest_cores(&before)) / cores;
        let uplink_busiest = share(gauges.busiest_uplink(&before));
        let hosts = [
            (Resource::Processor, cores_busiest),
            (Resource::Uplink, uplink_busiest),
            (Resource::Disk, share(gauges.busiest_disk(&before))),
            (Resource::Window, share(gauges.longest_wait(&before))),
        ];
        Estimate {
            committed_tps: latencies.counted as f64 / seconds,
            one_validator: latencies.own.percentiles(),
            first_validator: latencies.first.percentiles(),
            slowest_validator: latencies.slowest.percentiles(),
            acknowledged: latencies.acknowledged.percentiles(),
            answered: Vec::new(),
            window_s: (self.window.start as f64 / 1e9, self.window.end as f64 / 1e9),
            doubts: Vec::new(),
            seconds: latencies.seconds(),
            offered: latencies.offered,
            refused: latencies.refused,
            views: gauges.views - before.views,
            timeouts: gauges.timeouts - before.timeouts,
            heights: gauges.heights - before.heights,
            view_change: state.view_change.view_change(),
            fast_decisions: gauges.fast - before.fast,
            slow_decisions: gauges.slow - before.slow,
            messages_per_second: gauges.sent_frames(&before) as f64 / seconds,
            certificate_bytes: gauges.certificate_bytes,
            bottleneck: Bottleneck::of(utilisation.iter().map(|one| one.busiest), hosts),
            utilisation,
            cores_busiest,
            uplink_busiest,
            bytes_sent_per_second: gauges.sent_bytes(&before) as f64 / seconds / members,
            dropped: state.in_flight.dropped + state.taken_back,
            pace_ms: self.longest_pace_ms(),
            wall_s: wall.as_secs_f64(),
            virtual_s: self.window.end as f64 / 1e9,
            events: self.events,
            signatures: self.signatures,
            trace_hash: format!("{:016x}", self.trace.with_root(root)),
        }
    }

    fn longest_pace_ms(&self) -> u64 {
        let validators = self.state.nodes.validators.iter().filter(|one| one.alive);
        validators.map(|one| one.machine.status().pace_ms).max().unwrap_or(0)
    }
}
