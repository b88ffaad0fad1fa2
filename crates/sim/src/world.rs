//! The world: virtual time, hosts, links, and what happens to them.
//!
//! One queue holds everything that is going to happen, by time and then by the order in which it
//! was put there. The world takes the first, hands it to a host, and puts what comes of it back:
//! frames that leave, work that takes a while, timers. No event costs any time but what is drawn
//! for it.
//!
//! `events` is what happens to hosts, `effects` what comes of it, `setup` how it begins,
//! `succession` how it goes on in another epoch.

mod client;
mod clock;
mod effects;
mod epochs;
mod events;
mod paces;
mod reactions;
mod replica;
mod setup;
mod succession;

use crate::byzantine::Twins;
use crate::epoch::EpochConfig;
use crate::faults::Fault;
use crate::network::Network;
use crate::oracles::{Oracles, RunEnd, Violation};
use crate::scenario::Scenario;
use crate::trace::Trace;
use bytes::Bytes;
use client::ClientHost;
use epochs::Epochs;
use quorate_crypto::stand_in::StandIns;
use quorate_crypto::{SchemeKind, hash};
use quorate_deterministic::{EventQueue, Rng};
use quorate_types::{Epoch, HandedOver, Height, Peer, ReplicaId, Time, View};
use replica::{Checked, ReplicaHost, Station, Work};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub use reactions::Reactions;

/// A run with more events than this is stuck in one moment, or close to it.
const EVENTS_MAX: u64 = 3_000_000;

/// A host's status is looked at once in so many of the world's events.
const STATUS_EVERY: u64 = 16;

/// Time between changes of the endpoints that twins reach.
const SHUFFLE_EVERY: Duration = Duration::from_millis(250);

/// One committee, its clients, and everything around them.
pub struct World {
    scenario: Scenario,
    now: Time,
    events: EventQueue<SimEvent>,
    network: Network,
    twins: Twins,
    hosts: Vec<ReplicaHost>,
    clients: Vec<ClientHost>,
    epochs: Epochs,
    /// Time at which an endpoint was last shown by a host that its epoch is over.
    shown_at: BTreeMap<(usize, usize), Time>,
    /// Clients have been asked for operations of the last epoch.
    asked_last: bool,
    members: usize,
    calm: bool,
    /// The highest view of a correct replica when the faults were over.
    view_at_calm: View,
    /// Since then all correct replicas that sign stood in one view under a correct leader.
    together: bool,
    /// Operations that the clients will still submit.
    unsubmitted: usize,
    completed: u64,
    /// Snapshots installed by correct replicas.
    installed: u64,
    /// Frames that did not pass the checks.
    refused: u64,
    /// The highest height at which a correct replica executed an operation.
    last_filled: Height,
    oracles: Oracles,
    trace: Trace,
    rng: Rng,
    /// Draws when connections come up again.
    connections: Rng,
    listener: Option<Listener>,
    /// Stand-ins for identities, as long as the voting keys are stubs too.
    _stand_ins: Option<StandIns>,
}

/// Hears what happens, line by line.
pub type Listener = Box<dyn FnMut(&str)>;

/// Summary of a world's run, up to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Virtual time of the last event.
    pub now: Time,
    /// The highest executed height of a correct replica.
    pub height: Height,
    /// The highest view of a correct replica.
    pub view: View,
    /// Number of operations completed.
    pub completed: u64,
    /// Snapshots installed by correct replicas.
    pub installed: u64,
    /// Number of epochs that some host began.
    pub epochs: u64,
    /// Number of events processed.
    pub events: u64,
    /// The hash over all of them.
    pub trace: quorate_crypto::Digest,
}

/// A connection that a frame came over: both its ends are in one epoch.
#[derive(Clone, Copy, Debug)]
struct Channel {
    /// Endpoint that sends.
    sender: usize,
    /// Epoch in which it is.
    epoch: Epoch,
    /// What it is in that epoch.
    from: Peer,
}

#[derive(Debug)]
enum SimEvent {
    /// A frame arrives at an endpoint.
    Frame { to: usize, channel: Channel, honest: bool, content: Bytes, digest: [u8; 32] },
    /// A client brings a planned change to a host, the next one in turn at each attempt.
    Bring { planned: usize, attempt: usize },
    /// An endpoint that is still in this epoch is shown how it ended.
    Shown { to: usize, step: Arc<HandedOver> },
    /// A host looks whether it may go on to the next epoch.
    Succeed { host: usize, incarnation: u32 },
    /// A timer rings, if it is still the one that is set.
    Timer { endpoint: usize },
    /// A host's work is complete, if the host still is the one that began it.
    Work { host: usize, incarnation: u32, work: Work },
    /// A host has checked a frame, if the host still is the one that began to.
    Checked { host: usize, incarnation: u32, checked: Box<Checked> },
    /// A host may go on with checks that were over a peer's budget.
    Resume { host: usize, incarnation: u32, station: Station },
    /// A client submits an operation.
    Submit { client: usize, operation: Bytes },
    /// Something begins to go wrong.
    Fault(Fault),
    /// A replica starts again.
    Boot { host: usize },
    /// A host's connection to another's member is up again.
    Connected { host: usize, to: usize },
    /// Twins change whom they reach.
    Shuffle,
    /// Faults are over; Byzantine members are not.
    Calm,
}

impl World {
    /// A world at its beginning: everything is scheduled, nothing has happened.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        let rng = |purpose| Rng::new(scenario.seed, purpose, 0);
        let is_pretended = matches!(scenario.scheme, SchemeKind::Stub | SchemeKind::BlsThreshold);
        let stand_ins = is_pretended.then(StandIns::begin);
        let (keys, committee) = setup::committee(scenario);
        let (host_keys, pairs) = setup::host_keys(scenario, &keys);
        let identities: Vec<_> = host_keys.iter().map(|keys| keys.identity.public()).collect();
        let first =
            EpochConfig::first(scenario.settings.clone(), keys.clone(), committee, &identities);
        let epochs = Epochs::new(first, identities);
        let hosts = setup::hosts(scenario, host_keys, epochs.first());
        let endpoints = hosts.len() + scenario.clients;
        let mut client_rng = rng("clients");
        let clients: Vec<_> = (0..scenario.clients)
            .map(|_| {
                let first = ReplicaId(u16::try_from(client_rng.index(keys.len())).expect("few"));
                ClientHost::new(&client_rng.bytes32(), first, epochs.first())
            })
            .collect();
        let mut world = Self {
            scenario: scenario.clone(),
            now: Time(0),
            events: EventQueue::default(),
            network: Network::new(endpoints, scenario.conditions.clone(), rng("network"))
                .with_cuts(scenario.cuts.clone(), hosts.len()),
            twins: Twins::new(pairs, endpoints, rng("twins")),
            hosts,
            clients,
            epochs,
            shown_at: BTreeMap::new(),
            asked_last: false,
            members: scenario.replicas,
            calm: false,
            view_at_calm: View(0),
            together: false,
            unsubmitted: 0,
            completed: 0,
            installed: 0,
            refused: 0,
            last_filled: Height(0),
            oracles: Oracles::new(scenario.oracles()),
            trace: Trace::default(),
            rng: rng("world"),
            connections: rng("connections"),
            listener: None,
            _stand_ins: stand_ins,
        };
        world.begin_judging(Epoch(0));
        world.schedule_all(&mut client_rng);
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
        while let Some((at, what)) = self.events.pop() {
            if at > deadline || (self.calm && self.is_done() && !self.ask_last()) {
                break;
            }
            self.now = at;
            self.apply(what)?;
            if self.trace.events() > EVENTS_MAX {
                let text = format!("{EVENTS_MAX} events by {} µs", self.now.0);
                return Err(Violation { oracle: "livelock", text });
            }
        }
        let ending = RunEnd {
            heights: self.correct().map(|host| (host.config.name, host.executed())).collect(),
            epochs: self.correct().map(|host| (host.config.name, host.epoch.number())).collect(),
            last_epoch: self.epochs.last().number(),
            changes_waiting: self.changes_waiting(),
            together: self.together,
            views_after: self.summary().view.0.saturating_sub(self.view_at_calm.0),
        };
        self.oracles.finish(&ending)
    }

    /// Summarises the run so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let last = self.epochs.last().number();
        let statuses = || {
            let in_last = self.correct().filter(move |host| host.epoch.number() == last);
            in_last.filter_map(ReplicaHost::status)
        };
        Summary {
            now: self.now,
            height: self.correct().filter_map(ReplicaHost::executed).max().unwrap_or_default(),
            view: statuses().map(|status| status.view).max().unwrap_or_default(),
            completed: self.completed,
            installed: self.installed,
            epochs: last.0 + 1,
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

    fn schedule_all(&mut self, rng: &mut Rng) {
        for host in 0..self.hosts.len() {
            self.schedule(Time(rng.below(20_000)), SimEvent::Boot { host });
        }
        for (at, fault) in self.scenario.schedule.clone() {
            self.schedule(at, SimEvent::Fault(fault));
        }
        let calm = Time(0) + self.scenario.fault_phase;
        self.schedule(calm, SimEvent::Calm);
        for (number, (at, client)) in (0_u32..).zip(setup::load(&self.scenario, rng)) {
            let padding = rng.index(200);
            let mut operation = number.to_le_bytes().to_vec();
            operation.resize(4 + padding, b'.');
            let operation = Bytes::from(operation);
            self.schedule(at, SimEvent::Submit { client, operation });
            self.unsubmitted += 1;
        }
        for (planned, change) in self.scenario.changes.clone().into_iter().enumerate() {
            self.schedule(Time(0) + change.at, SimEvent::Bring { planned, attempt: 0 });
        }
        if !self.twins.is_empty() {
            self.schedule(Time(0) + SHUFFLE_EVERY, SimEvent::Shuffle);
        }
    }

    fn schedule(&mut self, at: Time, what: SimEvent) {
        self.events.schedule(at, what);
    }

    /// Number of members in the committee; hosts after them are second machines of twins, and
    /// learners.
    #[must_use]
    pub fn members(&self) -> usize {
        self.members
    }
}

impl SimEvent {
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
                    Work::WakeUp => 5,
                };
                let mut content = [0; 32];
                content[0] = kind;
                content[1..5].copy_from_slice(&incarnation.to_le_bytes());
                (3, *host, content)
            }
            Self::Submit { client, operation } => (4, *client, hash(operation).0),
            Self::Fault(fault) => (5, 0, of(&format!("{fault:?}"))),
            Self::Boot { host } => (6, *host, [0; 32]),
            Self::Connected { host, to } => {
                (11, *host, [u8::try_from(*to).expect("few hosts"); 32])
            }
            Self::Shuffle => (7, 0, [0; 32]),
            Self::Calm => (8, 0, [0; 32]),
            Self::Bring { planned, .. } => (12, *planned, [0; 32]),
            Self::Shown { to, step } => (13, *to, step.signed.content.root.0),
            Self::Succeed { host, incarnation } => {
                let mut content = [0; 32];
                content[..4].copy_from_slice(&incarnation.to_le_bytes());
                (14, *host, content)
            }
            Self::Checked { host, checked, .. } => (9, *host, [checked.tag; 32]),
            Self::Resume { host, station, .. } => (10, *host, [*station as u8; 32]),
        }
    }
}
