//! A committee on a network.

use crate::{Latency, Matrix, Region};
use std::time::Duration;

/// Time for which a draw of the jitter lasts. Queues fill and drain over such times; drawn anew for
/// every packet, an ordered connection would always wait for the slowest of the last few.
const JITTER_SPAN: Duration = Duration::from_millis(100);

/// Places of the members, and the delays and bandwidth between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// Delays from each member to each, by row of the sender. The diagonal is between two hosts in
    /// one place: a member and a client beside it.
    latencies: Vec<Latency>,
    /// Each member's region; empty where there are none.
    regions: Vec<String>,
    bytes_per_second: Option<u64>,
}

/// The way from one member to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Route {
    latency: Latency,
    bytes_per_second: Option<u64>,
    seed: u64,
}

impl Topology {
    /// `members` members, each in the region of its turn.
    ///
    /// # Panics
    /// Without any region.
    #[must_use]
    pub fn in_regions(matrix: &Matrix, regions: &[Region], members: usize) -> Self {
        let region = |member: usize| regions[member % regions.len()];
        let between = |from, to| Latency::half_of(matrix.round_trip(region(from), region(to)));
        let names = (0..members).map(|member| matrix.name(region(member)).to_owned());
        Self::new(members, names.collect(), between)
    }

    /// `members` members, the same delay between any two of them, and none between a client and the
    /// member beside it.
    #[must_use]
    pub fn uniform(members: usize, one_way: Duration) -> Self {
        let between =
            |from, to| Latency::constant(if from == to { Duration::ZERO } else { one_way });
        Self::new(members, Vec::new(), between)
    }

    fn new(
        members: usize,
        regions: Vec<String>,
        between: impl Fn(usize, usize) -> Latency,
    ) -> Self {
        let pairs = (0..members).flat_map(|from| (0..members).map(move |to| (from, to)));
        let latencies = pairs.map(|(from, to)| between(from, to)).collect();
        Self { latencies, regions, bytes_per_second: None }
    }

    /// The same with so many bits a second on each link; `None`: as many as the host gives.
    #[must_use]
    pub fn with_bandwidth(self, megabits: Option<u64>) -> Self {
        Self { bytes_per_second: megabits.map(|megabits| megabits * 125_000), ..self }
    }

    /// The same with every delay at its median.
    #[must_use]
    pub fn without_jitter(mut self) -> Self {
        self.latencies.iter_mut().for_each(|latency| *latency = latency.without_jitter());
        self
    }

    /// Number of members that have a place.
    #[must_use]
    pub fn members(&self) -> usize {
        self.latencies.len().isqrt()
    }

    /// Each member's region in member order; empty where there are none.
    #[must_use]
    pub fn regions(&self) -> &[String] {
        &self.regions
    }

    /// The delay from one member, or from a client beside it, to another.
    ///
    /// # Panics
    /// When there is no such member.
    #[must_use]
    pub fn latency(&self, from: usize, to: usize) -> Latency {
        assert!(from.max(to) < self.members(), "a committee of {}", self.members());
        self.latencies[from * self.members() + to]
    }

    /// The way from one member, or from a client beside it, to another.
    ///
    /// # Panics
    /// When there is no such member.
    #[must_use]
    pub fn route(&self, from: usize, to: usize) -> Route {
        let seed = (from as u64) << 32 | to as u64;
        let bytes_per_second = self.bytes_per_second;
        Route { latency: self.latency(from, to), bytes_per_second, seed }
    }

    /// The median round trip between the two members that are farthest apart.
    #[must_use]
    pub fn farthest_round_trip(&self) -> Duration {
        let members = 0..self.members();
        let pairs = members.clone().flat_map(|from| members.clone().map(move |to| (from, to)));
        let there_and_back =
            |(from, to)| self.latency(from, to).median() + self.latency(to, from).median();
        pairs.map(there_and_back).max().unwrap_or_default()
    }
}

impl Route {
    /// The delay of what leaves at `now`, which counts from any fixed moment.
    #[must_use]
    pub fn delay(&self, now: Duration) -> Duration {
        let span = now.as_millis() / JITTER_SPAN.as_millis();
        let draw = mix(self.seed ^ mix(u64::try_from(span).unwrap_or(u64::MAX)));
        // 53 bits are what a float between 0 and 1 can tell apart.
        self.latency.quantile((draw >> 11) as f64 / (1_u64 << 53) as f64)
    }

    /// Time for which the link is busy with so many bytes.
    #[must_use]
    pub fn transmission(&self, bytes: usize) -> Duration {
        let Some(rate) = self.bytes_per_second else { return Duration::ZERO };
        Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64)
    }

    /// The distribution that delays are drawn from.
    #[must_use]
    pub fn latency(&self) -> Latency {
        self.latency
    }

    /// Bytes a second, where they are limited.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<u64> {
        self.bytes_per_second
    }
}

/// Turns counters into draws (splitmix64's finaliser).
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests;
