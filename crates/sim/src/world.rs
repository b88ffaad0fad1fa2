//! The world: virtual time, hosts, links, and what happens to them.
//!
//! One queue holds everything that is going to happen, by time and then by the order in which it was
//! put there. The world takes the first, hands it to a host, and puts what comes of it back: frames
//! that leave, work that takes a while, timers. No event costs any time but what is drawn for it.

mod client;
mod clock;
mod replica;

use crate::byzantine::{Behaviour, Twins};
use crate::dice::Dice;
use crate::faults::Fault;
use crate::network::Network;
use crate::oracles::{Ending, Observation, Oracles, Violation};
use crate::scenario::Scenario;
use crate::trace::Trace;
use bytes::Bytes;
use client::{ClientHost, ClientTurn};
use quorate_crypto::{KeyFile, hash};
use quorate_engine::{Message, Verifier};
use quorate_types::{
    Committee, CommitteeFile, Epoch, Height, Member, Peer, Recipients, Rejected, ReplicaId, Time,
    View,
};
use replica::{HostConfig, Note, ReplicaHost, Turn, Work};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

/// A run with more events than this is stuck in one moment, or close to it.
const EVENTS_MAX: u64 = 3_000_000;

/// A host's status is looked at once in so many of the world's events.
const STATUS_EVERY: u64 = 16;

/// How often twins change whom they reach.
const SHUFFLE_EVERY: Duration = Duration::from_millis(250);

/// One committee, its clients, and everything around them.
pub struct World {
    scenario: Scenario,
    now: Time,
    queue: BinaryHeap<Reverse<Scheduled>>,
    scheduled: u64,
    network: Network,
    twins: Twins,
    hosts: Vec<ReplicaHost>,
    clients: Vec<ClientHost>,
    members: usize,
    calm: bool,
    /// Operations that the clients will still hand in.
    unsubmitted: usize,
    completed: u64,
    /// Snapshots installed by correct replicas.
    installed: u64,
    /// The highest height at which a correct replica executed an operation.
    last_filled: Height,
    oracles: Oracles,
    trace: Trace,
    dice: Dice,
    listener: Option<Listener>,
}

/// Hears what happens, line by line.
pub type Listener = Box<dyn FnMut(&str)>;

/// What a world shows of itself at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Virtual time.
    pub now: Time,
    /// The highest executed height of a correct replica.
    pub height: Height,
    /// The highest view of a correct replica.
    pub view: View,
    /// Operations completed.
    pub completed: u64,
    /// Snapshots installed by correct replicas.
    pub installed: u64,
    /// Events processed.
    pub events: u64,
    /// The hash over all of them.
    pub trace: quorate_crypto::Digest,
}

#[derive(Debug)]
struct Scheduled {
    at: Time,
    number: u64,
    what: Happening,
}

#[derive(Debug)]
enum Happening {
    /// A frame arrives.
    Frame { to: usize, from: Peer, honest: bool, content: Bytes, digest: [u8; 32] },
    /// A timer rings, if it is still the one that is set.
    Timer { endpoint: usize },
    /// A host's work is complete, if the host still is the one that began it.
    Work { host: usize, incarnation: u32, work: Work },
    /// A client hands in an operation.
    Submit { client: usize, operation: Bytes },
    /// Something begins to go wrong.
    Fault(Fault),
    /// A replica starts again.
    Boot { host: usize },
    /// Twins change whom they reach.
    Shuffle,
    /// Faults are over; Byzantine members are not.
    Calm,
}

impl World {
    /// A world at its beginning: everything is scheduled, nothing has happened.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        let dice = |purpose| Dice::new(scenario.seed, purpose, 0);
        let keys = keys_of(scenario);
        let committee = Arc::new(committee_of(scenario, &keys));
        let (hosts, pairs) = hosts_of(scenario, &keys, &committee);
        let endpoints = hosts.len() + scenario.clients;
        let verifier = Arc::new(Verifier::new(committee, scenario.settings.proposal_key));
        let mut client_dice = dice("clients");
        let clients: Vec<_> = (0..scenario.clients)
            .map(|_| {
                let first = ReplicaId(u16::try_from(client_dice.index(keys.len())).expect("few"));
                ClientHost::new(&client_dice.bytes32(), first, Arc::clone(&verifier))
            })
            .collect();
        let mut world = Self {
            scenario: scenario.clone(),
            now: Time(0),
            queue: BinaryHeap::new(),
            scheduled: 0,
            network: Network::new(endpoints, scenario.conditions.clone(), dice("network")),
            twins: Twins::new(pairs, endpoints, dice("twins")),
            hosts,
            clients,
            members: scenario.replicas,
            calm: false,
            unsubmitted: 0,
            completed: 0,
            installed: 0,
            last_filled: Height(0),
            oracles: Oracles::new(scenario.oracles()),
            trace: Trace::default(),
            dice: dice("world"),
            listener: None,
        };
        world.schedule_all(&mut client_dice);
        world
    }

    /// From now on `listener` is told what happens, for people who look for a cause.
    pub fn narrate(&mut self, listener: Listener) {
        self.listener = Some(listener);
    }

    fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(listener) = &mut self.listener {
            listener(&format!("{:>10} {}", self.now.0, line()));
        }
    }

    /// Runs to the end: everything done, the time over, or a property broken.
    ///
    /// # Errors
    /// The first broken property.
    pub fn run(&mut self) -> Result<(), Violation> {
        let deadline = Time(0) + self.scenario.fault_phase + self.scenario.liveness_bound;
        while let Some(Reverse(next)) = self.queue.pop() {
            if next.at > deadline || (self.calm && self.is_done()) {
                break;
            }
            self.now = next.at;
            self.happen(next.what)?;
            if self.trace.events() > EVENTS_MAX {
                let text = format!("{EVENTS_MAX} events by {} µs", self.now.0);
                return Err(Violation { oracle: "livelock", text });
            }
        }
        let ending = Ending {
            heights: self.correct().map(|host| (host.config.id, host.executed())).collect(),
        };
        self.oracles.finish(&ending)
    }

    /// What can be said of the run so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let statuses = || self.correct().filter_map(ReplicaHost::status);
        Summary {
            now: self.now,
            height: self.correct().filter_map(ReplicaHost::executed).max().unwrap_or_default(),
            view: statuses().map(|status| status.view).max().unwrap_or_default(),
            completed: self.completed,
            installed: self.installed,
            events: self.trace.events(),
            trace: self.trace.hash(),
        }
    }

    /// Each running replica's own account, for people.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = format!("at {} µs:", self.now.0);
        for host in &self.hosts {
            let shown = host.status().map_or("down".to_owned(), |status| format!("{status:?}"));
            text.push_str(&format!("\n  {:?} {shown}", host.config.behaviour));
        }
        for client in &self.clients {
            text.push_str(&format!("\n  client with {} pending", client.pending()));
        }
        text
    }

    fn schedule_all(&mut self, dice: &mut Dice) {
        for host in 0..self.hosts.len() {
            self.schedule(Time(dice.below(20_000)), Happening::Boot { host });
        }
        for (at, fault) in self.scenario.schedule.clone() {
            self.schedule(at, Happening::Fault(fault));
        }
        let calm = Time(0) + self.scenario.fault_phase;
        self.schedule(calm, Happening::Calm);
        for (number, (at, client)) in (0_u32..).zip(draw_load(&self.scenario, dice)) {
            let padding = dice.index(200);
            let mut operation = number.to_le_bytes().to_vec();
            operation.resize(4 + padding, b'.');
            let operation = Bytes::from(operation);
            self.schedule(at, Happening::Submit { client, operation });
            self.unsubmitted += 1;
        }
        if !self.twins.is_empty() {
            self.schedule(Time(0) + SHUFFLE_EVERY, Happening::Shuffle);
        }
    }

    fn schedule(&mut self, at: Time, what: Happening) {
        let number = self.scheduled;
        self.scheduled += 1;
        self.queue.push(Reverse(Scheduled { at, number, what }));
    }

    fn happen(&mut self, what: Happening) -> Result<(), Violation> {
        if let Some(resumes) = self.paused_until(&what) {
            self.schedule(resumes, what);
            return Ok(());
        }
        let (kind, place, digest) = what.fingerprint();
        self.trace.record(self.now, kind, place, &digest);
        match what {
            Happening::Frame { to, from, honest, content, .. } => {
                self.deliver(to, from, honest, content)
            }
            Happening::Timer { endpoint } => self.ring(endpoint),
            Happening::Work { host, incarnation, work } => self.finish(host, incarnation, work),
            Happening::Submit { client, operation } => self.submit(client, operation),
            Happening::Fault(fault) => self.begin(&fault),
            Happening::Boot { host } => self.boot(host),
            Happening::Shuffle => {
                self.twins.shuffle();
                self.schedule(self.now + SHUFFLE_EVERY, Happening::Shuffle);
                Ok(())
            }
            Happening::Calm => self.calm(),
        }
    }

    /// Until when the host that this concerns does nothing at all.
    fn paused_until(&self, what: &Happening) -> Option<Time> {
        let host = match what {
            Happening::Frame { to: host, .. }
            | Happening::Timer { endpoint: host }
            | Happening::Work { host, .. } => *host,
            _ => return None,
        };
        let paused_until = self.hosts.get(host)?.paused_until;
        (paused_until > self.now).then_some(paused_until)
    }

    fn deliver(
        &mut self,
        to: usize,
        from: Peer,
        honest: bool,
        content: Bytes,
    ) -> Result<(), Violation> {
        let tag = content.first().copied().unwrap_or(0);
        let Some(client) = to.checked_sub(self.hosts.len()) else {
            let host = &mut self.hosts[to];
            let receives = host.config.behaviour == Behaviour::Honest;
            let mut turn = Turn::default();
            let outcome = host.deliver(self.now, from, content, &mut turn);
            self.judge(honest && receives, tag, outcome)?;
            return self.carry_on(to, turn);
        };
        match self.clients[client].deliver(self.now, from, content) {
            Ok(turn) => self.carry_on_client(client, turn),
            Err(reason) => self.judge(honest, tag, Err(reason)),
        }
    }

    fn judge(
        &mut self,
        honest: bool,
        tag: u8,
        outcome: Result<(), Rejected>,
    ) -> Result<(), Violation> {
        match outcome {
            Err(reason) if honest => {
                self.oracles.observe(&Observation::Refused { reason: &reason, tag })
            }
            _ => Ok(()),
        }
    }

    fn ring(&mut self, endpoint: usize) -> Result<(), Violation> {
        let Some(client) = endpoint.checked_sub(self.hosts.len()) else {
            let host = &mut self.hosts[endpoint];
            if host.armed != Some(self.now) {
                // A pause may have held it back: only the timer that is set counts.
                if host.armed.is_none_or(|armed| armed > self.now) {
                    return Ok(());
                }
            }
            host.armed = None;
            let turn = host.wake(self.now);
            return self.carry_on(endpoint, turn);
        };
        let host = &mut self.clients[client];
        if host.armed != Some(self.now) {
            return Ok(());
        }
        host.armed = None;
        let turn = host.wake(self.now);
        self.carry_on_client(client, turn)
    }

    fn finish(&mut self, host: usize, incarnation: u32, work: Work) -> Result<(), Violation> {
        let machine_room = &mut self.hosts[host];
        if machine_room.incarnation != incarnation || !machine_room.is_up() {
            return Ok(());
        }
        let turn = machine_room.finish(self.now, work);
        self.carry_on(host, turn)
    }

    fn submit(&mut self, client: usize, operation: Bytes) -> Result<(), Violation> {
        self.unsubmitted -= 1;
        self.oracles.observe(&Observation::Submitted { operation: &operation })?;
        let turn = self.clients[client].submit(self.now, operation);
        self.carry_on_client(client, turn)
    }

    fn boot(&mut self, host: usize) -> Result<(), Violation> {
        if self.hosts[host].is_up() {
            return Ok(());
        }
        let turn = self.hosts[host].boot(self.now);
        self.carry_on(host, turn)
    }

    fn begin(&mut self, fault: &Fault) -> Result<(), Violation> {
        self.tell(|| format!("{fault:?}"));
        if self.calm {
            return Ok(());
        }
        match *fault {
            Fault::Partition { side, shape, lasts } => {
                self.network.partition(self.now, side, shape, lasts);
            }
            Fault::Clog { from, to, lasts } => self.network.clog(self.now, from, to, lasts),
            Fault::Pause { host, lasts } => self.hosts[host].paused_until = self.now + lasts,
            Fault::SlowDisk { host, sync_us, lasts } => {
                let sync = Duration::from_micros(sync_us);
                self.hosts[host].slow_down_disk(sync, self.now + lasts);
            }
            Fault::Crash { host, down } => self.crash(host, down),
            Fault::WipeBodies { host, down } => {
                self.crash(host, down);
                self.hosts[host].wipe_bodies();
            }
            Fault::PowerCut { down } => (0..self.hosts.len()).for_each(|host| {
                self.crash(host, down);
            }),
        }
        Ok(())
    }

    /// Mostly nearly everything unsynced is lost; sometimes it had all reached the disk.
    fn crash(&mut self, host: usize, down: Duration) {
        let lost = if self.dice.one_in(4) { 0 } else { self.dice.between(&(80..=100)) };
        self.hosts[host].crash(lost);
        self.schedule(self.now + down, Happening::Boot { host });
    }

    /// The faults are over: whoever is down starts, and from here on there is a bound.
    fn calm(&mut self) -> Result<(), Violation> {
        self.tell(|| "calm".to_owned());
        self.calm = true;
        self.network.calm();
        for host in 0..self.hosts.len() {
            self.hosts[host].calm();
            self.boot(host)?;
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        if self.unsubmitted > 0 || self.clients.iter().any(|client| client.pending() > 0) {
            return false;
        }
        self.correct().all(|host| host.executed() >= Some(self.last_filled))
    }

    fn correct(&self) -> impl Iterator<Item = &ReplicaHost> {
        self.hosts.iter().filter(|host| host.config.behaviour == Behaviour::Honest)
    }

    /// Carries out what came of a turn of a replica's host.
    fn carry_on(&mut self, host: usize, turn: Turn) -> Result<(), Violation> {
        let Turn { released, later, notes } = turn;
        let HostConfig { id, behaviour, .. } = self.hosts[host].config;
        let honest = behaviour == Behaviour::Honest;
        for note in notes {
            self.tell(|| format!("host {host}: {}", note.brief()));
            self.note(id, honest, &note)?;
        }
        for (to, message) in released {
            self.send(host, to, &message)?;
        }
        let incarnation = self.hosts[host].incarnation;
        for (after, work) in later {
            self.schedule(self.now + after, Happening::Work { host, incarnation, work });
        }
        if honest
            && self.trace.events().is_multiple_of(STATUS_EVERY)
            && let Some(status) = self.hosts[host].status()
        {
            self.oracles.observe(&Observation::Shown { status: &status })?;
        }
        self.arm(host);
        Ok(())
    }

    fn note(&mut self, replica: ReplicaId, honest: bool, note: &Note) -> Result<(), Violation> {
        if !honest {
            return Ok(());
        }
        if let Note::Executed { height, operations, .. } = note
            && !operations.is_empty()
        {
            self.last_filled = self.last_filled.max(*height);
        }
        let observation = match note {
            Note::Booted(executed, bodies) => {
                self.oracles.observe(&Observation::Kept { replica, bodies })?;
                Observation::Booted { replica, executed: executed.as_ref() }
            }
            Note::Stored(body) => Observation::Stored { replica, body: *body },
            Note::Executed { height, root, payload, operations } => Observation::Executed {
                replica,
                height: *height,
                root: *root,
                payload: *payload,
                operations,
            },
            Note::Installed { height, root } => {
                self.installed += 1;
                Observation::Installed { replica, height: *height, root: *root }
            }
            Note::Halted(halt) => Observation::Halted { replica, halt },
            Note::Storage(error) => {
                return Err(Violation { oracle: "storage", text: format!("{replica}: {error}") });
            }
        };
        self.oracles.observe(&observation)
    }

    fn send(&mut self, host: usize, to: Recipients, message: &Message) -> Result<(), Violation> {
        let HostConfig { id, behaviour, .. } = self.hosts[host].config;
        let honest = behaviour == Behaviour::Honest;
        let content = content_of(message);
        self.tell(|| format!("host {host} to {to:?}: {}", brief(message)));
        if honest {
            let (tag, bytes) = (content[0], content.len());
            self.oracles.observe(&Observation::Released { replica: id, message, tag, bytes })?;
        }
        let digest = hash(&content).0;
        for endpoint in 0..self.hosts.len() + self.clients.len() {
            if endpoint != host && self.is_meant(endpoint, id, to) {
                let lane = message.lane();
                let from = Peer::Replica(id);
                for at in self.route(host, endpoint, lane) {
                    let content = content.clone();
                    let frame = Happening::Frame { to: endpoint, from, honest, content, digest };
                    self.schedule(at, frame);
                }
            }
        }
        Ok(())
    }

    fn is_meant(&self, endpoint: usize, sender: ReplicaId, to: Recipients) -> bool {
        match (to, self.hosts.get(endpoint)) {
            (Recipients::All, Some(host)) => host.config.id != sender,
            (Recipients::One(replica), Some(host)) => host.config.id == replica,
            (Recipients::Client(client), None) => {
                self.clients[endpoint - self.hosts.len()].id == client
            }
            _ => false,
        }
    }

    fn route(&mut self, from: usize, to: usize, lane: quorate_types::Lane) -> Vec<Time> {
        if self.twins.connects(from, to) {
            self.network.route(self.now, from, to, lane)
        } else {
            Vec::new()
        }
    }

    /// Carries out what came of a turn of a client.
    fn carry_on_client(&mut self, client: usize, turn: ClientTurn) -> Result<(), Violation> {
        let ClientTurn { sends, completed, overloaded } = turn;
        let endpoint = self.hosts.len() + client;
        for (replica, request) in sends {
            let message = Message::Request(request);
            let (lane, content) = (message.lane(), content_of(&message));
            let digest = hash(&content).0;
            let from = Peer::Client(self.clients[client].id);
            for host in 0..self.hosts.len() {
                if self.hosts[host].config.id == replica {
                    for at in self.route(endpoint, host, lane) {
                        let content = content.clone();
                        let honest = true;
                        let frame = Happening::Frame { to: host, from, honest, content, digest };
                        self.schedule(at, frame);
                    }
                }
            }
        }
        for (operation, completed) in completed {
            self.completed += 1;
            let (operation, completed) = (&operation, &completed);
            self.oracles.observe(&Observation::Completed { operation, completed })?;
        }
        for operation in overloaded {
            self.unsubmitted += 1;
            let later = self.now + Duration::from_millis(100);
            self.schedule(later, Happening::Submit { client, operation });
        }
        self.arm(endpoint);
        Ok(())
    }

    /// Sets the endpoint's timer, if it wants to be woken earlier than it will be.
    fn arm(&mut self, endpoint: usize) {
        let (wake, armed) = match endpoint.checked_sub(self.hosts.len()) {
            None => (self.hosts[endpoint].next_wake(), &mut self.hosts[endpoint].armed),
            Some(client) => (self.clients[client].next_wake(), &mut self.clients[client].armed),
        };
        let Some(wake) = wake else {
            return;
        };
        let wake = wake.max(Time(self.now.0 + 1));
        if armed.is_none_or(|armed| wake < armed) {
            *armed = Some(wake);
            self.schedule(wake, Happening::Timer { endpoint });
        }
    }

    /// How many members the committee has; hosts after them are second machines of twins.
    #[must_use]
    pub fn members(&self) -> usize {
        self.members
    }
}

impl Happening {
    fn fingerprint(&self) -> (u8, usize, [u8; 32]) {
        let of = |content: &str| hash(content.as_bytes()).0;
        match self {
            Self::Frame { to, digest, .. } => (1, *to, *digest),
            Self::Timer { endpoint } => (2, *endpoint, [0; 32]),
            Self::Work { host, incarnation, work } => {
                let kind = match work {
                    Work::Sync => 0,
                    Work::Execute => 1,
                    Work::Combine(_) => 2,
                    Work::Read(_) => 3,
                    Work::Snapshot => 4,
                };
                let mut content = [0; 32];
                content[0] = kind;
                content[1..5].copy_from_slice(&incarnation.to_le_bytes());
                (3, *host, content)
            }
            Self::Submit { client, operation } => (4, *client, hash(operation).0),
            Self::Fault(fault) => (5, 0, of(&format!("{fault:?}"))),
            Self::Boot { host } => (6, *host, [0; 32]),
            Self::Shuffle => (7, 0, [0; 32]),
            Self::Calm => (8, 0, [0; 32]),
        }
    }
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// A message on one line.
fn brief(message: &Message) -> String {
    match message {
        Message::Body(body) => format!("Body({:?})", body.reference),
        Message::Blocks(blocks) => format!(
            "Blocks({:?}, {} decided, {} more)",
            blocks.request,
            blocks.decided.len(),
            blocks.tail.len()
        ),
        Message::Inline(inner, bodies) => format!("{inner:?} with {} bodies", bodies.len()),
        Message::Reply(reply) => format!("Reply(#{} at {})", reply.sequence, reply.height),
        other => format!("{other:?}"),
    }
}

/// A frame's content: what a receiver checks, without the length prefix.
fn content_of(message: &Message) -> Bytes {
    let frame = message.frame();
    let whole = frame.0.concat();
    let length = u32::from_le_bytes(whole[..4].try_into().expect("a frame has a length"));
    assert_eq!(length as usize, whole.len() - 4, "a frame is as long as it says");
    Bytes::from(whole).slice(4..)
}

fn keys_of(scenario: &Scenario) -> Vec<KeyFile> {
    let mut dice = Dice::new(scenario.seed, "keys", 0);
    (0..scenario.replicas).map(|_| KeyFile::from_seed(scenario.scheme, &dice.bytes32())).collect()
}

fn committee_of(scenario: &Scenario, keys: &[KeyFile]) -> Committee {
    let members = keys.iter().zip(scenario.weights.each()).enumerate();
    let members = members.map(|(port, (keys, weight))| Member {
        identity: keys.identity.public().to_string(),
        voting: keys.voting.public().to_string(),
        possession: keys.voting.prove_possession().to_string(),
        address: format!("sim:{port}"),
        weight: *weight,
    });
    let file = CommitteeFile {
        name: format!("sim {}", scenario.seed),
        epoch: Epoch(0),
        scheme: scenario.scheme.to_string(),
        members: members.collect(),
    };
    Committee::load_simulated(&file, scenario.settings.key_cache).expect("fresh keys are sound")
}

/// A host for each member, then a second one for each twin; and the pairs.
fn hosts_of(
    scenario: &Scenario,
    keys: &[KeyFile],
    committee: &Arc<Committee>,
) -> (Vec<ReplicaHost>, Vec<(usize, usize)>) {
    let members = 0..scenario.replicas;
    let twins = members.clone().filter(|member| scenario.behaviours[*member] == Behaviour::Twin);
    let mut pairs = Vec::new();
    for (second, first) in (scenario.replicas..).zip(twins.clone()) {
        pairs.push((first, second));
    }
    let hosts = (0..).zip(members.chain(twins)).map(|(number, member)| {
        let config = HostConfig {
            id: ReplicaId(u16::try_from(member).expect("few members")),
            behaviour: scenario.behaviours[member],
            keys: keys[member].clone(),
            committee: Arc::clone(committee),
            settings: scenario.settings.clone(),
            log: scenario.log.clone(),
            executor: scenario.executor.clone(),
            durations: scenario.durations.clone(),
            clock_rate: scenario.clock_rates[member],
        };
        ReplicaHost::new(config, Dice::new(scenario.seed, "host", number))
    });
    (hosts.collect(), pairs)
}

/// When which client hands in an operation: bursts over the fault phase, and a few after it, so that
/// whoever missed everything hears of something.
fn draw_load(scenario: &Scenario, dice: &mut Dice) -> Vec<(Time, usize)> {
    let phase_us = u64::try_from(scenario.fault_phase.as_micros()).expect("seconds");
    let mut load = Vec::new();
    while load.len() < scenario.operations {
        let at = Time(dice.below(phase_us));
        let client = dice.index(scenario.clients);
        let burst = if dice.one_in(8) { dice.index(16) + 1 } else { dice.index(3) + 1 };
        load.extend(std::iter::repeat_n((at, client), burst.min(scenario.operations - load.len())));
    }
    for client in 0..scenario.clients {
        load.push((Time(phase_us + dice.between(&(1..=1_000_000))), client));
    }
    load
}
