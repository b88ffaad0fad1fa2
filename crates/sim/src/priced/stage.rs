//! The stage: virtual time, and everything in it.

use super::book::Book;
use super::cast::Cast;
use super::coming::Coming;
use super::effects::Done;
use super::frames::Frame;
use super::gauges::Gauges;
use super::ledger::Ledger;
use super::lines::Lines;
use super::load::tick;
use super::milestones::Milestones;
use super::observed::Observed;
use super::outcome::{Outcome, Signatures};
use super::processor::Processor;
use super::stations::{Class, Job, Kind, Place};
use super::work::reference_prices;
use super::{Nanos, Prices, Profile, Progress, Scene, SceneError, Work, nanos};
use crate::agenda::Agenda;
use quorate_crypto::SchemeKind;
use quorate_crypto::stand_in::StandIns;
use quorate_storage::Durability;
use quorate_types::{ClientId, Event, Machine};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Clients begin when validators have started.
const LOAD_FROM: Nanos = 200_000_000;

/// A frame that comes in within so long is taken to be in at once: no event of its own.
const AT_ONCE: Nanos = 5_000;

/// The pool waits with bodies and requests while so many wait for the machine (`node::machine`).
const MACHINE_BULK_MAX: usize = 256;

/// Something that is going to happen.
#[derive(Debug)]
pub(crate) enum Happening {
    /// A host's job may be done.
    Served { host: usize },
    /// A frame reaches a host.
    Arrive { to: Place, frame: Rc<Frame> },
    /// What reached a validator's host within a span is taken up.
    TakeUp { member: usize },
    /// A frame is all in.
    In { to: Place, frame: Rc<Frame> },
    /// A group of the log is durable.
    Synced { member: usize },
    /// A machine's timer.
    Wake { member: usize },
    /// A client's timer.
    WakeClient { member: usize },
    /// Operations come.
    Load { member: usize },
    /// A validator ends.
    Crash { member: usize },
    /// The time that counts begins.
    Begin,
}

/// A job in service.
struct Active {
    member: usize,
    kind: Kind,
    done: Done,
}

/// A host's cores, and when they are looked at next.
struct Host {
    processor: Processor,
    looked_at: Option<Nanos>,
}

/// A run.
pub(crate) struct Stage {
    pub(crate) now: Nanos,
    pub(crate) agenda: Agenda<Happening, Nanos>,
    pub(crate) cast: Cast,
    pub(crate) lines: Lines,
    pub(crate) ledger: Ledger,
    pub(crate) book: Book,
    pub(crate) prices: Prices,
    pub(crate) profile: Profile,
    pub(crate) work: Work,
    pub(crate) scheme: SchemeKind,
    pub(crate) durability: Durability,
    /// When each host's disk is free.
    pub(crate) disks: Vec<Nanos>,
    pub(crate) milestones: Milestones,
    /// Urgent frames on their way to each validator, where they are taken up by spans.
    pub(crate) coming: Coming,
    /// Bulk bytes under way, by pair.
    pub(crate) under_way: Vec<usize>,
    pub(crate) dropped: u64,
    /// How long machines take here, where somebody wants to know.
    pub(crate) observed: Option<Observed>,
    hosts: Vec<Host>,
    active: Vec<Option<Active>>,
    free: Vec<usize>,
    clients: BTreeMap<ClientId, (usize, usize)>,
    tick: Nanos,
    begins: Nanos,
    /// What had been used then.
    began: Gauges,
    ends: Nanos,
    events: u64,
    trace: u64,
    signatures: Signatures,
    /// Before the keys: signatures are stand-ins while it lives.
    _stand_ins: Option<StandIns>,
}

impl Stage {
    pub(crate) fn new(scene: &Scene) -> Self {
        let stand_ins = (!scene.real_signatures).then(StandIns::begin);
        let cast = Cast::new(scene);
        let members = cast.validators.len();
        let hosts = scene.host.hosts(members);
        let begins = nanos(scene.warmup);
        let ends = begins + nanos(scene.duration);
        let live = cast.validators.iter().filter(|validator| validator.lives).count();
        let mut clients = BTreeMap::new();
        for (place, client) in cast.clients.iter().enumerate() {
            clients.extend(client.ids().enumerate().map(|(session, id)| (id, (place, session))));
        }
        let prices = match scene.profile {
            Profile::Quorate if !scene.settings.signatures => scene.prices.without_signatures(),
            Profile::Quorate => scene.prices.clone(),
            Profile::Reference => reference_prices(&scene.prices),
        };
        let host = || Host { processor: Processor::new(scene.host.cores), looked_at: None };
        let mut stage = Self {
            now: 0,
            agenda: Agenda::default(),
            lines: Lines::new(scene),
            ledger: Ledger::new(live, scene.profile == Profile::Quorate),
            book: Book::new(begins, ends, live),
            prices,
            profile: scene.profile,
            work: scene.load.work,
            scheme: scene.scheme,
            durability: scene.durability,
            disks: vec![0; hosts],
            milestones: Milestones::default(),
            coming: Coming::new(members, scene.take_up),
            under_way: vec![0; members * members],
            dropped: 0,
            observed: None,
            hosts: (0..hosts).map(|_| host()).collect(),
            active: Vec::new(),
            free: Vec::new(),
            clients,
            tick: tick(scene.load.bundle_delay),
            begins,
            began: Gauges::default(),
            ends,
            events: 0,
            trace: 0,
            signatures: if scene.real_signatures { Signatures::Real } else { Signatures::Priced },
            cast,
            _stand_ins: stand_ins,
        };
        stage.raise_curtain(scene);
        stage
    }

    fn raise_curtain(&mut self, scene: &Scene) {
        self.agenda.schedule(self.begins, Happening::Begin);
        for (member, at) in &scene.crashed {
            self.agenda.schedule(nanos(*at), Happening::Crash { member: member.index() });
        }
        if let Some(at) = scene.leader_crashes {
            let member = self.cast.leader.index();
            self.agenda.schedule(nanos(at), Happening::Crash { member });
        }
        for member in 0..self.cast.validators.len() {
            let events = vec![Event::Recovered(Box::default())];
            self.queue(member, Kind::Machine, Class::Answer, Job::Tell(events));
            // Not in step: each at another part of a tick.
            let phase = self.tick * member as u64 / self.cast.validators.len() as u64;
            self.agenda.schedule(LOAD_FROM + phase, Happening::Load { member });
        }
    }

    /// Runs to the end.
    pub(crate) fn run(self, progress: &mut dyn FnMut(Progress)) -> Result<Outcome, SceneError> {
        self.run_observed(progress).map(|(outcome, _)| outcome)
    }

    /// As [`Stage::run`], and what was observed.
    pub(crate) fn run_observed(
        mut self,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Outcome, Observed), SceneError> {
        let began = Instant::now();
        while let Some((at, what)) = self.agenda.pop() {
            if at > self.ends {
                break;
            }
            self.now = at;
            self.events += 1;
            self.trace(&what);
            self.happen(what).map_err(SceneError::Broken)?;
            if self.events.is_multiple_of(1 << 14) {
                progress(Progress {
                    virtual_time: Duration::from_nanos(self.now),
                    total: Duration::from_nanos(self.ends),
                    committed: self.book.committed,
                });
            }
        }
        self.now = self.ends;
        let observed = self.observed.take().unwrap_or_default();
        Ok((self.outcome(began.elapsed()), observed))
    }

    fn happen(&mut self, what: Happening) -> Result<(), String> {
        match what {
            Happening::Served { host } => return self.served(host),
            Happening::Arrive { to, frame } => self.receive(to, frame),
            Happening::TakeUp { member } => {
                let arrived = self.coming.take(member, self.now);
                if let Some(frame) = Frame::gathered(arrived) {
                    self.receive(Place::Validator(member), frame);
                }
            }
            Happening::In { to, frame } => self.come_in(to, frame),
            Happening::Synced { member } => return self.synced(member),
            Happening::Wake { member } => {
                let validator = &mut self.cast.validators[member];
                if validator.armed == Some(self.now) {
                    validator.armed = None;
                    if validator.alive && !std::mem::replace(&mut validator.tick_waits, true) {
                        self.queue(member, Kind::Machine, Class::Answer, Job::Tick);
                    }
                }
            }
            Happening::WakeClient { member } => {
                let client = &mut self.cast.clients[member];
                if client.armed == Some(self.now) {
                    client.armed = None;
                    self.queue(member, Kind::Client, Class::Answer, Job::ClientTick);
                }
            }
            Happening::Load { member } => {
                let operations = self.cast.clients[member].arrivals(self.tick);
                if operations > 0 {
                    let job = Job::Submit { operations, at: self.now };
                    self.queue(member, Kind::Client, Class::Answer, job);
                }
                self.agenda.schedule(self.now + self.tick, Happening::Load { member });
            }
            Happening::Crash { member } => {
                self.milestones.crash(self.now);
                self.cast.validators[member].crash();
            }
            Happening::Begin => self.began = Gauges::read(self),
        }
        Ok(())
    }

    /// A frame passes its receiver's link, or several that came together: they are in at once, or when
    /// the last of them is.
    fn receive(&mut self, to: Place, frame: Rc<Frame>) {
        let (now, lines) = (self.now, &mut self.lines);
        let each = frame.each();
        let ends = each.map(|one| lines.receive(now, one.from, to.index(), one.lane, one.bytes));
        let at = ends.max().unwrap_or(now);
        if at > now + AT_ONCE {
            self.agenda.schedule(at, Happening::In { to, frame });
        } else {
            self.come_in(to, frame);
        }
    }

    fn come_in(&mut self, to: Place, frame: Rc<Frame>) {
        match to {
            Place::Validator(member) if !self.cast.validators[member].alive => {
                self.left(&frame, member);
            }
            Place::Validator(member) => {
                let class = if frame.is_urgent() { Class::Urgent } else { Class::Bulk };
                self.queue(member, Kind::Net, class, Job::Take(frame));
            }
            Place::Client(member) => {
                self.queue(member, Kind::Client, Class::Urgent, Job::Reply(frame));
            }
        }
    }

    /// Puts a job in a station's queue, and serves whom it can.
    pub(crate) fn queue(&mut self, member: usize, kind: Kind, class: Class, job: Job) {
        self.cast.validators[member].station(kind).push(class, job);
        self.serve(member, kind);
    }

    /// Begins what a station can begin.
    pub(crate) fn serve(&mut self, member: usize, kind: Kind) {
        loop {
            let validator = &mut self.cast.validators[member];
            let bulk = match kind {
                Kind::Machine => validator.takes_bulk(),
                Kind::Checks => {
                    validator.station(Kind::Machine).waiting(Class::Bulk) < MACHINE_BULK_MAX
                }
                _ => true,
            };
            let Some((job, woken)) = validator.station(kind).begin(bulk) else { return };
            if let Job::Check(frame) = &job {
                let frame = Rc::clone(frame);
                self.left(&frame, member);
            }
            let (cost, done) = self.carry_out(member, kind, job);
            let cost = self.as_things_are(member, kind, cost, woken);
            self.cast.validators[member].station(kind).used += cost;
            self.begin(member, kind, cost, done);
            if kind == Kind::Machine {
                self.serve(member, Kind::Checks);
            }
        }
    }

    /// What a job costs on this host now.
    fn as_things_are(&self, member: usize, kind: Kind, cost: Nanos, woken: bool) -> Nanos {
        let crowded = self.hosts[self.host(member)].processor.is_taken();
        let times = if crowded { self.prices.crowded.of(kind) } else { 1.0 };
        let waking_us = if woken { self.prices.wake_us.of(kind) } else { 0.0 };
        (cost as f64 * times + waking_us * 1e3) as Nanos
    }

    fn begin(&mut self, member: usize, kind: Kind, cost: Nanos, done: Done) {
        let active = Some(Active { member, kind, done });
        let job = match self.free.pop() {
            Some(job) => {
                self.active[job] = active;
                job
            }
            None => {
                self.active.push(active);
                self.active.len() - 1
            }
        };
        let host = self.host(member);
        self.hosts[host].processor.start(self.now, cost, job);
        self.look_at(host);
    }

    /// Sees to it that a host is looked at when its next job is done.
    fn look_at(&mut self, host: usize) {
        let Host { processor, looked_at } = &mut self.hosts[host];
        if let Some(next) = processor.next()
            && looked_at.is_none_or(|at| next < at)
        {
            *looked_at = Some(next);
            self.agenda.schedule(next, Happening::Served { host });
        }
    }

    fn served(&mut self, host: usize) -> Result<(), String> {
        if self.hosts[host].looked_at != Some(self.now) {
            return Ok(());
        }
        self.hosts[host].looked_at = None;
        while let Some(job) = self.hosts[host].processor.finish(self.now) {
            let Active { member, kind, done } = self.active[job].take().expect("in service");
            self.free.push(job);
            self.cast.validators[member].station(kind).end();
            self.release(member, kind, done)?;
            self.serve(member, kind);
            self.cast.validators[member].station(kind).rest();
        }
        self.look_at(host);
        Ok(())
    }

    /// Sets the machine's timer.
    pub(crate) fn arm(&mut self, member: usize) {
        let validator = &mut self.cast.validators[member];
        if validator.tick_waits {
            return;
        }
        let Some(due) = validator.machine.next_timeout() else { return };
        let wake = (due.0 * 1_000).max(self.now + 1);
        if validator.armed.is_none_or(|armed| wake < armed) {
            validator.armed = Some(wake);
            self.agenda.schedule(wake, Happening::Wake { member });
        }
    }

    /// Sets the timer of a client's sessions.
    pub(crate) fn arm_client(&mut self, member: usize) {
        let client = &mut self.cast.clients[member];
        let Some(due) = client.next_wake() else { return };
        let wake = due.max(self.now + 1);
        if client.armed.is_none_or(|armed| wake < armed) {
            client.armed = Some(wake);
            self.agenda.schedule(wake, Happening::WakeClient { member });
        }
    }

    pub(crate) fn host(&self, member: usize) -> usize {
        member % self.hosts.len()
    }

    pub(crate) fn client_of(&self, client: ClientId) -> Option<(usize, usize)> {
        self.clients.get(&client).copied()
    }

    pub(crate) fn session_of(&self, frame: &Frame) -> Option<usize> {
        frame.client.and_then(|client| self.client_of(client)).map(|(_, session)| session)
    }

    /// A hash over times, kinds and places of all events.
    fn trace(&mut self, what: &Happening) {
        let (kind, place) = match what {
            Happening::Served { host } => (1, *host),
            Happening::Arrive { to, frame } => (2, to.index() ^ frame.bytes << 16),
            Happening::In { to, frame } => (3, to.index() ^ frame.bytes << 16),
            Happening::Synced { member } => (4, *member),
            Happening::Wake { member } => (5, *member),
            Happening::WakeClient { member } => (6, *member),
            Happening::Load { member } => (7, *member),
            Happening::Crash { member } => (8, *member),
            Happening::Begin => (9, 0),
            Happening::TakeUp { member } => (10, *member),
        };
        let event = self.now ^ (kind << 60) ^ (place as u64).rotate_left(24);
        self.trace = (self.trace ^ event).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    /// The cores of all hosts.
    pub(crate) fn processors(&self) -> impl Iterator<Item = &Processor> {
        self.hosts.iter().map(|host| &host.processor)
    }

    fn outcome(mut self, wall: Duration) -> Outcome {
        let span = self.ends - self.begins;
        let seconds = span as f64 / 1e9;
        let (before, gauges) = (std::mem::take(&mut self.began), Gauges::read(&self));
        let statuses = self.cast.validators.iter().map(|validator| validator.machine.status());
        let certificate_bytes = statuses.map(|status| status.certificate_bytes).max();
        let trace =
            self.trace ^ u64::from_le_bytes(self.root().1.0[..8].try_into().expect("8 bytes"));
        let cores = f64::from(self.hosts[0].processor.cores());
        let members = self.cast.validators.len() as f64;
        Outcome {
            committed_tps: self.book.counted as f64 / seconds,
            one_validator: self.book.own.percentiles(),
            first_validator: self.book.first.percentiles(),
            slowest_validator: self.book.slowest.percentiles(),
            acknowledged: self.book.acknowledged.percentiles(),
            answered: std::mem::take(&mut self.book.answered),
            seconds: self.book.seconds(),
            offered: self.book.offered,
            refused: self.book.refused,
            views: gauges.views - before.views,
            timeouts: gauges.timeouts - before.timeouts,
            heights: gauges.heights - before.heights,
            view_change: self.milestones.view_change(),
            fast_decisions: gauges.fast - before.fast,
            slow_decisions: gauges.slow - before.slow,
            messages_per_second: gauges.sent_frames(&before) as f64 / seconds,
            certificate_bytes: certificate_bytes.unwrap_or_default(),
            utilisation: gauges.utilisation(&before, span),
            cores_busiest: gauges.busiest_cores(&before) as f64 / span as f64 / cores,
            uplink_busiest: gauges.busiest_uplink(&before) as f64 / span as f64,
            bytes_sent_per_second: gauges.sent_bytes(&before) as f64 / seconds / members,
            dropped: self.dropped,
            wall_s: wall.as_secs_f64(),
            virtual_s: self.ends as f64 / 1e9,
            events: self.events,
            signatures: self.signatures,
            trace_hash: format!("{trace:016x}"),
        }
    }
}
