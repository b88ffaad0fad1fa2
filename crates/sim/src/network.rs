//! Links between endpoints: latency, loss, duplicates, reordering, partitions and clogs.
//!
//! Endpoints are numbered: hosts of replicas first, clients after them. A lane of a link is first
//! in, first out, unless the conditions say that it reorders.

use crate::forms;
use quorate_deterministic::Rng;
use quorate_types::{Lane, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Conditions of the links, the same for all but for their base latency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conditions {
    /// Each directed link draws its base latency from this range, in microseconds.
    #[serde(with = "forms::range")]
    pub base_us: RangeInclusive<u64>,
    /// Each frame takes up to this much longer.
    pub jitter_us: u64,
    /// Frames lost in a hundred.
    pub loss_percent: u64,
    /// Frames that arrive twice in a hundred.
    pub duplicate_percent: u64,
    /// Frames in a hundred that overtake, or are overtaken by, the others of their lane.
    pub reorder_percent: u64,
    /// Frames in a thousand in which a bit flips on the way. Between correct ends the channel
    /// notices: the frame and the connection are lost, and a new one takes a moment.
    #[serde(default)]
    pub corrupt_permille: u64,
    /// Frames are lost, doubled, reordered and corrupted in spells of so many microseconds, with as
    /// long between them in which they are not; 0: all the time.
    #[serde(default)]
    pub spell_us: u64,
}

/// Chances that a frame sent now is up against: none of it between two bad spells.
#[derive(Clone, Copy, Debug, Default)]
struct Odds {
    loss_percent: u64,
    duplicate_percent: u64,
    reorder_percent: u64,
    corrupt_permille: u64,
}

impl Conditions {
    fn odds(&self, now: Time) -> Odds {
        let fair = self.spell_us > 0 && (now.0 / self.spell_us) % 2 == 1;
        if fair {
            return Odds::default();
        }
        Odds {
            loss_percent: self.loss_percent,
            duplicate_percent: self.duplicate_percent,
            reorder_percent: self.reorder_percent,
            corrupt_permille: self.corrupt_permille,
        }
    }
}

/// Links that are cut for ever, in both directions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cuts {
    /// Pairs of hosts without a link.
    pub links: Vec<(usize, usize)>,
    /// Set if what one of a pair sends to the other goes over a third, as validators do it: later,
    /// and in order all the same.
    pub relayed: bool,
}

impl Cuts {
    /// Returns `true` if every link is there.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.links.is_empty()
    }

    fn cut(&self, one: usize, other: usize) -> bool {
        self.links.contains(&(one, other)) || self.links.contains(&(other, one))
    }
}

/// A set of endpoints, one bit each.
pub type Side = u64;

/// Directions in which the links across a partition are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Cut in both directions.
    Symmetric,
    /// From the side to the rest only.
    OneWay,
    /// Both ways, but for one endpoint that still reaches everybody.
    Bridge(usize),
}

/// Links across the border of a side that are cut for a while.
#[derive(Clone, Copy, Debug)]
pub struct Partition {
    side: Side,
    shape: Shape,
    until: Time,
}

#[derive(Clone, Debug)]
struct Clog {
    from: usize,
    to: usize,
    until: Time,
}

/// Time for which a link carries nothing after a corrupted frame.
pub(crate) const RECONNECT_US: RangeInclusive<u64> = 1_000..=200_000;

/// The network of one world.
#[derive(Debug)]
pub struct Network {
    conditions: Conditions,
    endpoints: usize,
    base_us: Vec<u64>,
    cuts: Cuts,
    /// Number of hosts among the endpoints, which relay for one another.
    hosts: usize,
    partitions: Vec<Partition>,
    clogs: Vec<Clog>,
    /// Links that carry nothing until then.
    reconnecting: BTreeMap<(usize, usize), Time>,
    last_arrivals: BTreeMap<(usize, usize, Lane), Time>,
    rng: Rng,
}

impl Network {
    /// Most endpoints: a [`Side`] has a bit for each.
    pub const ENDPOINTS_MAX: usize = 64;

    /// Links between `endpoints`.
    ///
    /// # Panics
    /// When there are more than [`Network::ENDPOINTS_MAX`].
    #[must_use]
    pub fn new(endpoints: usize, conditions: Conditions, mut rng: Rng) -> Self {
        assert!(endpoints <= Self::ENDPOINTS_MAX, "a side has a bit for each endpoint");
        let links = endpoints * endpoints;
        let base_us = (0..links).map(|_| rng.between(&conditions.base_us)).collect();
        Self {
            conditions,
            endpoints,
            base_us,
            cuts: Cuts::default(),
            hosts: endpoints,
            partitions: Vec::new(),
            clogs: Vec::new(),
            reconnecting: BTreeMap::new(),
            last_arrivals: BTreeMap::new(),
            rng,
        }
    }

    /// With links of the first `hosts` endpoints that are cut.
    #[must_use]
    pub fn with_cuts(self, cuts: Cuts, hosts: usize) -> Self {
        Self { cuts, hosts, ..self }
    }

    /// Cuts links across the border of `side` for a while.
    pub fn partition(&mut self, now: Time, side: Side, shape: Shape, lasts: Duration) -> Partition {
        let partition = Partition { side, shape, until: now + lasts };
        self.partitions.push(partition);
        partition
    }

    /// Holds back what is sent over a link for a while; nothing is lost.
    pub fn clog(&mut self, now: Time, from: usize, to: usize, lasts: Duration) {
        self.clogs.push(Clog { from, to, until: now + lasts });
    }

    /// From now on every frame arrives, once, in order and without great delay.
    pub fn calm(&mut self) {
        self.partitions.clear();
        self.clogs.clear();
        self.reconnecting.clear();
        self.conditions.loss_percent = 0;
        self.conditions.duplicate_percent = 0;
        self.conditions.reorder_percent = 0;
        self.conditions.corrupt_permille = 0;
    }

    /// Times at which a frame sent now arrives: none, one or two.
    pub fn route(&mut self, now: Time, from: usize, to: usize, lane: Lane) -> Vec<Time> {
        let odds = self.conditions.odds(now);
        let Some(base) = self.base_us(from, to) else { return Vec::new() };
        let reconnecting = self.reconnecting.get(&(from, to)).is_some_and(|until| now < *until);
        if reconnecting || self.is_cut(now, from, to) || self.rng.percent(odds.loss_percent) {
            return Vec::new();
        }
        if self.rng.below(1_000) < odds.corrupt_permille {
            self.reconnecting.insert((from, to), now + self.rng.span(&RECONNECT_US));
            return Vec::new();
        }
        let copies = if self.rng.percent(odds.duplicate_percent) { 2 } else { 1 };
        (0..copies).map(|_| self.arrival(now, (from, to, lane), base, odds)).collect()
    }

    /// Base latency from one endpoint to another: of the link, or over the first other host in turn
    /// that has links to both; none if nothing passes.
    fn base_us(&self, from: usize, to: usize) -> Option<u64> {
        let of_link = |from: usize, to: usize| self.base_us[from * self.endpoints + to];
        if !self.cuts.cut(from, to) {
            return Some(of_link(from, to));
        }
        let reaches = |relay: &usize| !self.cuts.cut(from, *relay) && !self.cuts.cut(*relay, to);
        let others = (to + 1..self.hosts).chain(0..to).filter(|other| *other != from);
        let relay = others.filter(|_| self.cuts.relayed).find(reaches)?;
        Some(of_link(from, relay) + of_link(relay, to))
    }

    fn arrival(
        &mut self,
        now: Time,
        (from, to, lane): (usize, usize, Lane),
        base: u64,
        odds: Odds,
    ) -> Time {
        let jitter = self.rng.below(self.conditions.jitter_us + 1);
        let free = now.max(self.clogged_until(now, from, to));
        let direct = free + Duration::from_micros(base + jitter);
        if self.rng.percent(odds.reorder_percent) {
            // Held back, and no reason for the others to wait: it arrives out of order.
            let extra = self.rng.below(4 * (base + self.conditions.jitter_us) + 1);
            return direct + Duration::from_micros(extra);
        }
        let last = self.last_arrivals.entry((from, to, lane)).or_default();
        *last = direct.max(*last);
        *last
    }

    /// Returns `true` if a partition lies between these endpoints.
    pub(crate) fn is_cut(&mut self, now: Time, from: usize, to: usize) -> bool {
        self.partitions.retain(|partition| partition.until > now);
        self.partitions.iter().any(|partition| partition.cuts(from, to))
    }

    /// Returns `true` if both of two endpoints reach the other without a third.
    pub(crate) fn links(&mut self, now: Time, one: usize, other: usize) -> bool {
        let is_cut = self.cuts.cut(one, other) || self.is_cut(now, one, other);
        !is_cut && !self.is_cut(now, other, one)
    }

    fn clogged_until(&mut self, now: Time, from: usize, to: usize) -> Time {
        self.clogs.retain(|clog| clog.until > now);
        let here = self.clogs.iter().filter(|clog| clog.from == from && clog.to == to);
        here.map(|clog| clog.until).max().unwrap_or(now)
    }
}

impl Partition {
    /// Returns `true` if it cuts the link from one endpoint to another.
    #[must_use]
    pub fn cuts(&self, from: usize, to: usize) -> bool {
        let inside = |endpoint: usize| self.side >> endpoint & 1 == 1;
        match self.shape {
            Shape::Symmetric => inside(from) != inside(to),
            Shape::OneWay => inside(from) && !inside(to),
            Shape::Bridge(bridge) => inside(from) != inside(to) && from != bridge && to != bridge,
        }
    }
}

#[cfg(test)]
mod tests;
