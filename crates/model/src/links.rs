//! Links between hosts: delays by region pair, bandwidth of hosts and links, loss, partitions.
//!
//! A frame leaves its host when the uplink has sent those before it and its connection's window has
//! room ([`tcp`]), is under way for a delay drawn from the measured distribution of its pair of
//! regions, and comes in when the downlink has taken those before it. A lane of a pair is a
//! connection, on which nothing overtakes. Votes, consensus and client frames go ahead of bulk on a
//! host's link: many connections share it fairly, and small frames on their own connections do not
//! wait for megabytes on others. Bulk frames take turns whole; connections that really share a link
//! would all end late together.
//!
//! What is sent across a partition waits for its end.

mod tcp;

use crate::frames::Frame;
use crate::jobs::Destination;
use crate::scene::{Partition, Scene};
use crate::time::{Nanos, nanos};
use quorate_deterministic::Rng;
use quorate_types::Lane;
use quorate_wan::{Route, Topology};
use std::rc::Rc;
use std::time::Duration;
use tcp::{Flow, Path, SEGMENT_BYTES};

/// One direction of a host's network card.
#[derive(Clone, Copy, Debug, Default)]
struct Card {
    urgent_free: Nanos,
    bulk_free: Nanos,
    busy: Nanos,
}

impl Card {
    /// Time at which a frame that is there at `at` is through.
    fn pass(&mut self, at: Nanos, urgent: bool, takes: Nanos) -> Nanos {
        self.busy += takes;
        if urgent {
            self.urgent_free = self.urgent_free.max(at) + takes;
            self.bulk_free = self.bulk_free.max(at) + takes;
            return self.urgent_free;
        }
        self.bulk_free = self.bulk_free.max(at) + takes;
        self.bulk_free
    }

    /// Time that it was sending until now: what is queued is not sent yet. Bulk waits for what is
    /// urgent, and so is free last.
    fn busy_until(&self, now: Nanos) -> Nanos {
        self.busy - self.bulk_free.saturating_sub(now)
    }
}

/// A connection from one member to another, for one lane.
#[derive(Debug, Default)]
struct Connection {
    /// Time at which everything that was handed over has left.
    free: Nanos,
    /// Time at which the last frame arrives.
    last: Nanos,
    /// Windows of TCP, once something went to another host.
    flow: Option<Box<Flow>>,
    held: Option<Box<Held>>,
}

/// Frames whose last segment Nagle's algorithm holds back.
#[derive(Debug)]
struct Held {
    until: Nanos,
    /// Bytes that are not in whole segments.
    tail: usize,
    frames: Vec<HeldFrame>,
}

/// One of them, with the time at which it could leave otherwise, and how late it then is.
#[derive(Debug)]
struct HeldFrame {
    to: Destination,
    frame: Rc<Frame>,
    left: Nanos,
    late: Nanos,
}

/// A frame on its way to its receiver's host.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) arrives: Nanos,
    pub(crate) to: Destination,
    pub(crate) frame: Rc<Frame>,
}

/// Name of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionId(usize);

impl ConnectionId {
    pub(crate) fn index(self) -> usize {
        self.0
    }
}

/// All connections of a scene.
#[derive(Debug)]
pub(crate) struct Links {
    members: usize,
    hosts: usize,
    routes: Vec<Route>,
    paths: Vec<Path>,
    /// By pair and lane.
    connections: Vec<Connection>,
    up: Vec<Card>,
    down: Vec<Card>,
    up_ns_per_byte: f64,
    down_ns_per_byte: f64,
    /// Small segments wait for acknowledgements of others.
    nagle: bool,
    /// Connections begin wide.
    warm: bool,
    partitions: Vec<Partition>,
    /// So that scenes with other seeds have other delays.
    shift: Duration,
    rng: Rng,
}

impl Links {
    pub(crate) fn new(scene: &Scene) -> Self {
        let members = usize::from(scene.validators);
        let topology: &Topology = &scene.topology;
        let hosts = scene.host.hosts(members);
        let pairs = (0..members).flat_map(|from| (0..members).map(move |to| (from, to)));
        let routes: Vec<Route> = pairs.map(|(from, to)| topology.route(from, to)).collect();
        let path = |route: &Route| {
            let round_trip = nanos(2 * route.latency().median());
            Path { round_trip, loss: scene.loss }
        };
        let mut rng = Rng::new(scene.seed, "lines", 0);
        let rate = |mbps: Option<f64>| mbps.map_or(0.0, |mbps| 8_000.0 / mbps);
        Self {
            members,
            hosts,
            paths: routes.iter().map(path).collect(),
            routes,
            connections: (0..members * members * 4).map(|_| Connection::default()).collect(),
            up: vec![Card::default(); hosts],
            down: vec![Card::default(); hosts],
            up_ns_per_byte: rate(scene.host.uplink_mbps),
            down_ns_per_byte: rate(scene.host.downlink_mbps),
            warm: scene.warm_connections,
            nagle: scene.profile.behaviour().nagle,
            partitions: scene.partitions.clone(),
            shift: Duration::from_secs(rng.below(1 << 32)),
            rng,
        }
    }

    /// Connection that a frame goes over.
    pub(crate) fn connection(&self, from: usize, to: Destination, lane: Lane) -> ConnectionId {
        ConnectionId((from * self.members + to.index()) * 4 + lane_index(lane))
    }

    /// Time from which a connection's socket has room for another frame: what is before it leaves
    /// within a round trip from then.
    pub(crate) fn writable(&self, id: ConnectionId) -> Nanos {
        self.connections[id.0].free.saturating_sub(self.paths[id.0 / 4].round_trip)
    }

    /// Hands a frame to the network. What is on its way with that is added to `flights`; returns
    /// until when the frame is held back, where it is the first that is.
    pub(crate) fn send(
        &mut self,
        now: Nanos,
        id: ConnectionId,
        (to, frame): (Destination, Rc<Frame>),
        flights: &mut Vec<Flight>,
    ) -> Option<Nanos> {
        let bytes = frame.bytes;
        let (left, late) = self.leave(now, id, bytes);
        let departing = HeldFrame { to, frame, left, late };
        let mut tail = bytes;
        if let Some(held) = &mut self.connections[id.0].held {
            held.tail += bytes;
            if held.tail < SEGMENT_BYTES {
                held.frames.push(departing);
                return None;
            }
            tail = std::mem::take(&mut held.tail);
            self.let_go(now, id, flights);
        }
        tail %= SEGMENT_BYTES;
        let flow = self.connections[id.0].flow.as_ref().filter(|_| self.nagle && tail > 0);
        if let Some(until) = flow.and_then(|flow| flow.holds(left)) {
            let frames = vec![departing];
            self.connections[id.0].held = Some(Box::new(Held { until, tail, frames }));
            return Some(until);
        }
        flights.push(self.depart(now, id, departing, tail));
        None
    }

    /// Lets go what was held back until now.
    pub(crate) fn release(&mut self, now: Nanos, id: ConnectionId, flights: &mut Vec<Flight>) {
        let held = &self.connections[id.0].held;
        if held.as_ref().is_some_and(|held| held.until == now) {
            self.let_go(now, id, flights);
        }
    }

    /// Lets go what is held back.
    fn let_go(&mut self, now: Nanos, id: ConnectionId, flights: &mut Vec<Flight>) {
        let Some(held) = self.connections[id.0].held.take() else { return };
        let Held { tail, frames, .. } = *held;
        let departed = frames.into_iter().map(|frame| self.depart(now, id, frame, tail));
        flights.extend(departed);
    }

    /// When a frame's last byte could leave its host, and how late it then is for what is lost.
    fn leave(&mut self, now: Nanos, id: ConnectionId, bytes: usize) -> (Nanos, Nanos) {
        let (from, to) = self.ends(id);
        let pair = id.0 / 4;
        let takes = nanos(self.routes[pair].transmission(bytes));
        let host = self.host(from);
        let Connection { free, flow, .. } = &mut self.connections[id.0];
        let (mut left, mut late) = (now, 0);
        if host != to % self.hosts {
            let sends = (bytes as f64 * self.up_ns_per_byte) as Nanos;
            let urgent = id.0 % 4 != lane_index(Lane::Bulk);
            left = self.up[host].pass(now, urgent, sends);
            let flow = flow.get_or_insert_with(|| Box::new(Flow::begin(self.warm)));
            let sent = flow.send(left - sends, bytes, &self.paths[pair], &mut self.rng);
            (left, late) = (left.max(sent.left), sent.late);
        }
        *free = left.max(*free) + takes;
        (*free, late)
    }

    /// A frame leaves now, or when it can, with so many bytes behind its whole segments.
    fn depart(&mut self, now: Nanos, id: ConnectionId, frame: HeldFrame, tail: usize) -> Flight {
        let HeldFrame { to, frame, left, late } = frame;
        Flight { arrives: self.arrival(now.max(left), late, id, tail), to, frame }
    }

    /// The last byte of a frame leaves at `left`, and is so `late` for what was lost; returns when
    /// it arrives.
    fn arrival(&mut self, left: Nanos, late: Nanos, id: ConnectionId, tail: usize) -> Nanos {
        let (from, to) = self.ends(id);
        let pair = id.0 / 4;
        let connection = &mut self.connections[id.0];
        if let Some(flow) = connection.flow.as_mut().filter(|_| tail > 0) {
            flow.end_small(left + late, &self.paths[pair]);
        }
        let moment = Duration::from_nanos(left) + self.shift;
        let delay = nanos(self.routes[pair].delay(moment)) + late;
        let mut arrival = left + delay;
        for partition in &self.partitions {
            let (begins, ends) = (nanos(partition.at), nanos(partition.at + partition.duration));
            if partition.separates(from, to) && arrival >= begins && left < ends {
                arrival = arrival.max(ends + delay);
            }
        }
        connection.last = arrival.max(connection.last);
        connection.last
    }

    /// Usual time of a frame from one member to another, once it has left.
    pub(crate) fn one_way(&self, from: usize, to: usize) -> Nanos {
        nanos(self.routes[from * self.members + to].latency().median())
    }

    /// Members at both ends.
    fn ends(&self, id: ConnectionId) -> (usize, usize) {
        let pair = id.0 / 4;
        (pair / self.members, pair % self.members)
    }

    /// Time at which a frame that reaches the receiver's host now has passed its link.
    pub(crate) fn receive(
        &mut self,
        now: Nanos,
        from: usize,
        to: usize,
        lane: Lane,
        bytes: usize,
    ) -> Nanos {
        let host = self.host(to);
        if self.host(from) == host || self.down_ns_per_byte == 0.0 {
            return now;
        }
        let takes = (bytes as f64 * self.down_ns_per_byte) as Nanos;
        self.down[host].pass(now, is_urgent(lane), takes)
    }

    /// For each connection, the time for which its window held something back since the beginning.
    pub(crate) fn waits(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.connections.iter().map(|one| one.flow.as_ref().map_or(0, |flow| flow.waited()))
    }

    /// Time that each host's uplink was busy until now.
    pub(crate) fn uplinks(&self, now: Nanos) -> impl Iterator<Item = Nanos> + '_ {
        self.up.iter().map(move |card| card.busy_until(now))
    }

    fn host(&self, member: usize) -> usize {
        member % self.hosts
    }
}

fn is_urgent(lane: Lane) -> bool {
    lane != Lane::Bulk
}

fn lane_index(lane: Lane) -> usize {
    match lane {
        Lane::Votes => 0,
        Lane::Consensus => 1,
        Lane::Bulk => 2,
        Lane::Client => 3,
    }
}

#[cfg(test)]
mod tests;
