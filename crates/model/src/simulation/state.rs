//! State of a run: virtual time, what is going to happen, and everything that it happens to.

use super::event::SimEvent;
use crate::acknowledgements::Acknowledgements;
use crate::execution::SharedExecution;
use crate::frames::Frame;
use crate::hosts::Hosts;
use crate::in_flight::InFlight;
use crate::inbound::InboundQueue;
use crate::latency::LatencyLedger;
use crate::links::{Flight, Links};
use crate::nodes::Nodes;
use crate::outbox::Outboxes;
use crate::prices::Prices;
use crate::profile::Behaviour;
use crate::scene::Scene;
use crate::service_times::ServiceTimes;
use crate::station::Station;
use crate::time::{Nanos, nanos};
use crate::view_change::ViewChangeProbe;
use crate::workload::Work;
use quorate_crypto::{SchemeKind, counts};
use quorate_deterministic::EventQueue;
use quorate_storage::Durability;
use quorate_types::{ClientId, Machine};
use std::collections::BTreeMap;
use std::ops::Range;

/// Everything that handlers of events read and change.
pub(crate) struct State {
    pub(crate) now: Nanos,
    pub(crate) events: EventQueue<SimEvent, Nanos>,
    pub(crate) nodes: Nodes,
    pub(crate) hosts: Hosts,
    pub(crate) links: Links,
    /// What is leaving now.
    pub(crate) flights: Vec<Flight>,
    /// Urgent frames on their way to each validator, where they are taken up by spans.
    pub(crate) inbound: InboundQueue,
    pub(crate) in_flight: InFlight,
    /// Bodies that their authors may still take back.
    pub(crate) outboxes: Outboxes,
    pub(crate) taken_back: u64,
    pub(crate) execution: SharedExecution,
    pub(crate) acknowledgements: Acknowledgements,
    pub(crate) latencies: LatencyLedger,
    pub(crate) view_change: ViewChangeProbe,
    pub(crate) prices: Prices,
    pub(crate) behaviour: Behaviour,
    pub(crate) work: Work,
    pub(crate) scheme: SchemeKind,
    pub(crate) durability: Durability,
    /// Times that machines take on this machine, where they are measured.
    pub(crate) service_times: Option<ServiceTimes>,
    /// Client and session by the session's identity.
    clients: BTreeMap<ClientId, (usize, usize)>,
}

impl State {
    /// State of a scene before its first event; `window` is when latencies are measured.
    pub(crate) fn new(scene: &Scene, window: &Range<Nanos>) -> Self {
        let nodes = Nodes::new(scene);
        let members = nodes.validators.len();
        let live = nodes.validators.iter().filter(|validator| validator.lives).count();
        let mut clients = BTreeMap::new();
        for (place, client) in nodes.clients.iter().enumerate() {
            clients.extend(client.ids().enumerate().map(|(session, id)| (id, (place, session))));
        }
        let behaviour = scene.profile.behaviour();
        let mut prices = scene.prices.as_paid(behaviour);
        if !scene.settings.comparison.signatures {
            prices = prices.without_signatures();
        }
        Self {
            now: 0,
            events: EventQueue::default(),
            hosts: Hosts::new(scene.host.hosts(members), scene.host.cores),
            links: Links::new(scene),
            flights: Vec::new(),
            inbound: InboundQueue::new(members, scene.take_up),
            in_flight: InFlight::new(members, behaviour.bounds_outboxes),
            outboxes: Outboxes::default(),
            taken_back: 0,
            acknowledgements: Acknowledgements::new(nodes.quorum()),
            execution: SharedExecution::new(live, behaviour.executes),
            latencies: LatencyLedger::new(window.clone(), live),
            view_change: ViewChangeProbe::default(),
            prices,
            behaviour,
            work: scene.load.work,
            scheme: scene.scheme,
            durability: scene.durability,
            service_times: None,
            clients,
            nodes,
        }
    }

    /// Schedules the crashes that a scene asks for.
    pub(crate) fn schedule_crashes(&mut self, scene: &Scene) {
        for (member, at) in &scene.crashed {
            self.events.schedule(nanos(*at), SimEvent::Crash { member: member.index() });
        }
        if let Some(at) = scene.leader_crashes {
            let member = self.nodes.leader.index();
            self.events.schedule(nanos(at), SimEvent::Crash { member });
        }
    }

    /// Arms the machine's timer.
    pub(crate) fn arm(&mut self, member: usize) {
        let validator = &mut self.nodes.validators[member];
        if validator.timeout_queued {
            return;
        }
        let Some(due) = validator.machine.next_timeout() else { return };
        let at = (due.0 * 1_000).max(self.now + 1);
        if validator.armed.is_none_or(|armed| at < armed) {
            validator.armed = Some(at);
            self.events.schedule(at, SimEvent::Timeout { member });
        }
    }

    /// Arms the timer of a client's sessions.
    pub(crate) fn arm_client(&mut self, member: usize) {
        let client = &mut self.nodes.clients[member];
        let Some(due) = client.next_timeout() else { return };
        let at = due.max(self.now + 1);
        if client.armed.is_none_or(|armed| at < armed) {
            client.armed = Some(at);
            self.events.schedule(at, SimEvent::ClientTimeout { member });
        }
    }

    /// Client and session of an identity; `None` for one that nobody here has.
    pub(crate) fn client_of(&self, client: ClientId) -> Option<(usize, usize)> {
        self.clients.get(&client).copied()
    }

    /// Session that a frame is for, if it is for a client's.
    pub(crate) fn session_of(&self, frame: &Frame) -> Option<usize> {
        frame.client.and_then(|client| self.client_of(client)).map(|(_, session)| session)
    }

    /// Cost in nanoseconds of the operations that this thread counted since the last time. Where
    /// clients sign nothing, neither they nor those who check what they sent pay for signatures.
    pub(crate) fn counted(&self, station: Station) -> f64 {
        let counts = counts::take();
        let unsigned =
            !self.behaviour.signs_requests && matches!(station, Station::Client | Station::Checks);
        self.prices.of(&if unsigned { counts.hashing() } else { counts })
    }
}
