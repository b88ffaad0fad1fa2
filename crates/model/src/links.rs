//! Links between hosts: delays by region pair, bandwidth of hosts and links, loss, partitions.
//!
//! A frame leaves its host when the uplink has sent those before it, is under way for a delay drawn
//! from the measured distribution of its pair of regions, and comes in when the downlink has taken
//! those before it. Within a lane of a pair it never overtakes (TCP). Votes, consensus and client
//! frames go ahead of bulk on a host's link: many connections share it fairly, and small frames on
//! their own connections do not wait for megabytes on others. Bulk frames take turns whole;
//! connections that really share a link would all end late together.
//!
//! Loss is delay: a lost frame is sent again after one round trip. What is sent across a partition
//! waits for its end.

use crate::scene::{Partition, Scene};
use crate::time::{Nanos, nanos};
use quorate_deterministic::Rng;
use quorate_types::Lane;
use quorate_wan::{Route, Topology};
use std::time::Duration;

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

/// All connections of a scene.
#[derive(Debug)]
pub(crate) struct Links {
    members: usize,
    hosts: usize,
    routes: Vec<Route>,
    /// By pair and lane: the time at which the connection is free, and the last frame arrives.
    lanes: Vec<(Nanos, Nanos)>,
    up: Vec<Card>,
    down: Vec<Card>,
    up_ns_per_byte: f64,
    down_ns_per_byte: f64,
    loss: f64,
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
        let mut rng = Rng::new(scene.seed, "lines", 0);
        let rate = |mbps: Option<f64>| mbps.map_or(0.0, |mbps| 8_000.0 / mbps);
        Self {
            members,
            hosts,
            routes: pairs.map(|(from, to)| topology.route(from, to)).collect(),
            lanes: vec![(0, 0); members * members * 4],
            up: vec![Card::default(); hosts],
            down: vec![Card::default(); hosts],
            up_ns_per_byte: rate(scene.host.uplink_mbps),
            down_ns_per_byte: rate(scene.host.downlink_mbps),
            loss: scene.loss,
            partitions: scene.partitions.clone(),
            shift: Duration::from_secs(rng.below(1 << 32)),
            rng,
        }
    }

    /// Time at which a frame that is handed to the network now reaches the receiver's host.
    pub(crate) fn send(
        &mut self,
        now: Nanos,
        from: usize,
        to: usize,
        lane: Lane,
        bytes: usize,
    ) -> Nanos {
        let near = self.host(from) == self.host(to);
        let host = self.host(from);
        let mut left = now;
        if !near {
            let takes = (bytes as f64 * self.up_ns_per_byte) as Nanos;
            left = self.up[host].pass(now, is_urgent(lane), takes);
        }
        let pair = from * self.members + to;
        let route = &self.routes[pair];
        let (free, last) = &mut self.lanes[pair * 4 + lane_index(lane)];
        *free = left.max(*free) + nanos(route.transmission(bytes));
        let moment = Duration::from_nanos(now) + self.shift;
        let mut delay = nanos(route.delay(moment));
        if self.loss > 0.0 && self.rng.below(1 << 32) as f64 / 4_294_967_296.0 < self.loss {
            delay += 2 * nanos(route.latency().median());
        }
        let mut arrival = *free + delay;
        for partition in &self.partitions {
            let (begins, ends) = (nanos(partition.at), nanos(partition.at + partition.duration));
            if partition.separates(from, to) && arrival >= begins && *free < ends {
                arrival = arrival.max(ends + delay);
            }
        }
        *last = arrival.max(*last);
        *last
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
