//! What lies between hosts: delays by region pair, bandwidth of hosts and links, loss, partitions.
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

use super::{Nanos, Scene, nanos};
use crate::dice::Dice;
use quorate_types::Lane;
use quorate_wan::{Route, Topology};

/// Members cut off from the others for a while. Nothing is lost: it arrives late.
#[derive(Clone, Debug, PartialEq)]
pub struct Cut {
    /// Who is on one side.
    pub members: Vec<u16>,
    /// From when, since the beginning of the scene.
    pub at: std::time::Duration,
    /// For how long.
    pub lasts: std::time::Duration,
}

/// One direction of a host's link.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    urgent_free: Nanos,
    bulk_free: Nanos,
    busy: Nanos,
}

impl Link {
    /// When a frame that is there at `at` is through.
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

    /// How long it was sending until now: what is queued is not sent yet. Bulk waits for what is
    /// urgent, and so is free last.
    fn busy_until(&self, now: Nanos) -> Nanos {
        self.busy - self.bulk_free.saturating_sub(now)
    }
}

/// All connections of a scene.
#[derive(Debug)]
pub(crate) struct Lines {
    members: usize,
    hosts: usize,
    routes: Vec<Route>,
    /// By pair and lane: when the link between them is free, and when the last frame arrives.
    lanes: Vec<(Nanos, Nanos)>,
    up: Vec<Link>,
    down: Vec<Link>,
    up_ns_per_byte: f64,
    down_ns_per_byte: f64,
    loss: f64,
    cuts: Vec<Cut>,
    /// So that scenes with other seeds have other delays.
    shift: std::time::Duration,
    dice: Dice,
}

impl Lines {
    pub(crate) fn new(scene: &Scene) -> Self {
        let members = usize::from(scene.validators);
        let topology: &Topology = &scene.topology;
        let hosts = scene.host.hosts(members);
        let pairs = (0..members).flat_map(|from| (0..members).map(move |to| (from, to)));
        let mut dice = Dice::new(scene.seed, "lines", 0);
        let rate = |mbps: Option<f64>| mbps.map_or(0.0, |mbps| 8_000.0 / mbps);
        Self {
            members,
            hosts,
            routes: pairs.map(|(from, to)| topology.route(from, to)).collect(),
            lanes: vec![(0, 0); members * members * 4],
            up: vec![Link::default(); hosts],
            down: vec![Link::default(); hosts],
            up_ns_per_byte: rate(scene.host.uplink_mbps),
            down_ns_per_byte: rate(scene.host.downlink_mbps),
            loss: scene.loss,
            cuts: scene.cuts.clone(),
            shift: std::time::Duration::from_secs(dice.below(1 << 32)),
            dice,
        }
    }

    /// When a frame that is handed to the network now reaches the receiver's host.
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
        let moment = std::time::Duration::from_nanos(now) + self.shift;
        let mut delay = nanos(route.delay(moment));
        if self.loss > 0.0 && self.dice.below(1 << 32) as f64 / 4_294_967_296.0 < self.loss {
            delay += 2 * nanos(route.latency().median());
        }
        let mut arrival = *free + delay;
        for cut in &self.cuts {
            let inside = |member: usize| cut.members.iter().any(|one| usize::from(*one) == member);
            let (begins, ends) = (nanos(cut.at), nanos(cut.at + cut.lasts));
            if inside(from) != inside(to) && arrival >= begins && *free < ends {
                arrival = arrival.max(ends + delay);
            }
        }
        *last = arrival.max(*last);
        *last
    }

    /// When a frame that reaches the receiver's host now is all in.
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

    /// How long each host's uplink was busy until now.
    pub(crate) fn uplinks(&self, now: Nanos) -> impl Iterator<Item = Nanos> + '_ {
        self.up.iter().map(move |link| link.busy_until(now))
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
