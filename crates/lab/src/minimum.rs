//! The least latency that a protocol needs on a network, by arithmetic: what a client would see if
//! computing, disks and queues took no time at all.
//!
//! # Jolteon and HotStuff, as implemented
//!
//! A client beside validator `v` sends an operation; `v` seals it into a body and sends that to
//! all. The first leader that proposes after the body has reached it orders it, in view `r`:
//!
//! ```text
//! client ─▶ v ──body──▶ L(r) ──proposal r──▶ all ──votes──▶ L(r+1)
//!        L(r+1) ──proposal r+1──▶ all ──votes──▶ L(r+2)
//!        L(r+2) decides r and sends proposal r+2 ──▶ all decide and execute r ──replies──▶ client
//! ```
//!
//! In chained HotStuff one view more passes: `L(r+3)` decides. In basic HotStuff `L(r)` decides
//! itself, after three rounds to a quorum and back:
//!
//! ```text
//! L(r) ──proposal r──▶ all ──votes──▶ L(r) ──▶ all ──votes──▶ L(r) ──▶ all ──votes──▶ L(r)
//!      L(r) decides r ──▶ all decide and execute r ──new-view──▶ L(r+1)      ──replies──▶ client
//! ```
//!
//! Leaders rotate and views follow one another at network speed: `L(r+1)` proposes as soon as it
//! has the proposal of `r` and the votes of a quorum; in basic HotStuff, a quorum's new-views.
//! Operations come at any moment, so one usually waits for the next proposal; that wait is part of
//! the protocol, and is given apart as well. The client is done at the weak-th equal reply (f+1).
//! All delays are at their medians; a body is taken to be at every voter before the proposal that
//! names it, which holds where no detour is a short cut, and makes the result a lower bound
//! elsewhere.
//!
//! For PBFT and SBFT: [`windowed()`].

mod windowed;

pub use windowed::{Slots, Votes, windowed};

use quorate_report::results::beside::Minimum;
use quorate_wan::Topology;

/// Operations whose latency lies between two bounds, evenly.
#[derive(Clone, Copy, Debug)]
struct Piece {
    low: f64,
    high: f64,
    weight: f64,
}

/// Leaders, and makers of a certificate or an answer.
#[derive(Clone, Copy, Debug)]
pub struct Roster<'a> {
    /// The leaders of one round of views, by index; views go round and round. A long round may be
    /// given as a stretch of it.
    pub turns: &'a [usize],
    /// Weight of each member's vote.
    pub weights: &'a [u64],
    /// Way from a proposal to its decision.
    pub course: Course,
    /// The weight of a certificate's signers.
    pub quorum: u64,
    /// The weight that is certain to include an honest member.
    pub weak: u64,
}

/// Computes the minimum of a chained protocol with leaders in rotation.
///
/// # Panics
/// Without turns, with turns or weights of others, or when a threshold exceeds the sum of weights.
#[must_use]
pub fn chained(network: &Topology, roster: Roster<'_>) -> Minimum {
    let members = network.members();
    let Roster { turns, weights, quorum, weak, .. } = roster;
    let fits = weights.len() == members && quorum.max(weak) <= weights.iter().sum();
    let led = !turns.is_empty() && turns.iter().all(|leader| *leader < members);
    assert!(fits && led, "a roster of this committee");
    let model = Model { network, roster, proposals: Vec::new() }.with_proposals();
    let pieces: Vec<Piece> = (0..members).flat_map(|home| model.pieces(home)).collect();
    let weight: f64 = pieces.iter().map(|piece| piece.weight).sum();
    let mean = |value: fn(&Piece) -> f64| {
        pieces.iter().map(|piece| piece.weight * value(piece)).sum::<f64>() / weight
    };
    Minimum {
        p50_ms: median(&pieces, weight),
        mean_ms: mean(|piece| f64::midpoint(piece.low, piece.high)),
        mean_without_wait_ms: mean(|piece| piece.low),
        view_ms: model.round_ms() / turns.len() as f64,
    }
}

/// The way from a proposal to its decision.
#[derive(Clone, Copy, Debug)]
pub enum Course {
    /// By the leader of so many views later.
    Views(usize),
    /// By its own leader, after so many rounds of votes.
    Phases(usize),
}

impl Course {
    /// Views from a proposal to the one whose leader decides it.
    fn depth(self) -> usize {
        match self {
            Self::Views(depth) => depth,
            Self::Phases(_) => 0,
        }
    }
}

struct Model<'a> {
    network: &'a Topology,
    roster: Roster<'a>,
    /// Moments at which each view's leader proposes, for three rounds and a decision; the second
    /// round stands for all.
    proposals: Vec<f64>,
}

impl Model<'_> {
    fn with_proposals(mut self) -> Self {
        let mut at = 0.0;
        for view in 0..3 * self.roster.turns.len() + self.roster.course.depth() {
            self.proposals.push(at);
            at += self.view(self.leader(view), self.leader(view + 1));
        }
        self
    }

    fn leader(&self, view: usize) -> usize {
        self.roster.turns[view % self.roster.turns.len()]
    }

    /// Milliseconds between two members.
    fn between(&self, from: usize, to: usize) -> f64 {
        if from == to { 0.0 } else { self.beside(from, to) }
    }

    /// Milliseconds between a member and a client that sits beside the other one.
    fn beside(&self, from: usize, to: usize) -> f64 {
        self.network.latency(from, to).median().as_secs_f64() * 1_000.0
    }

    /// From a leader's proposal to the next leader's.
    fn view(&self, leader: usize, next: usize) -> f64 {
        let told = self.round(leader, next);
        match self.roster.course {
            Course::Views(_) => told.max(self.between(leader, next)),
            Course::Phases(_) => self.phases(leader) + told,
        }
    }

    /// From one member by way of a quorum to another.
    fn round(&self, from: usize, to: usize) -> f64 {
        let members = 0..self.network.members();
        let times = members.map(|i| self.between(from, i) + self.between(i, to)).collect();
        self.done_by(times, self.roster.quorum)
    }

    /// From a proposal to what its own leader decides.
    fn phases(&self, leader: usize) -> f64 {
        match self.roster.course {
            Course::Views(_) => 0.0,
            Course::Phases(phases) => phases as f64 * self.round(leader, leader),
        }
    }

    /// Moment at which members of so much weight are done, given the moment of each.
    fn done_by(&self, times: Vec<f64>, threshold: u64) -> f64 {
        done_by(times.into_iter().zip(self.roster.weights.iter().copied()).collect(), threshold)
    }

    /// Length of a round, in milliseconds.
    fn round_ms(&self) -> f64 {
        let round = self.roster.turns.len();
        self.proposals[2 * round] - self.proposals[round]
    }

    /// From the proposal of a view to the client's last needed reply.
    fn tail(&self, view: usize, home: usize) -> f64 {
        let members = self.network.members();
        let deciding = view + self.roster.course.depth();
        let collector = self.leader(deciding);
        let passed = self.proposals[deciding] - self.proposals[view];
        let decided = passed + self.phases(collector);
        let heard = |i| decided + self.between(collector, i) + self.beside(i, home);
        self.done_by((0..members).map(heard).collect(), self.roster.weak)
    }

    /// The last moment at which an operation can be sent for a view's proposal to order it.
    fn last_moment(&self, view: usize, home: usize) -> f64 {
        let leader = self.leader(view);
        self.proposals[view] - self.beside(home, home) - self.between(home, leader)
    }

    /// Every moment of a round belongs to the first view that can still order what is sent then.
    fn pieces(&self, home: usize) -> Vec<Piece> {
        let round = self.roster.turns.len();
        let mut pieces = Vec::with_capacity(round);
        // Up to here, operations belong to earlier views.
        let first = (0..round).map(|view| self.last_moment(view, home));
        let mut taken = first.fold(f64::MIN, f64::max);
        for view in round..2 * round {
            let last = self.last_moment(view, home);
            let span = last - taken;
            taken = taken.max(last);
            let low = self.proposals[view] - last + self.tail(view, home);
            // Without any distance a round takes no time: then all views count alike.
            let weight = if self.round_ms() > 0.0 { span.max(0.0) } else { 1.0 };
            pieces.push(Piece { low, high: low + span.max(0.0), weight });
        }
        pieces
    }
}

/// Moment at which members of so much weight are done, given the moment and weight of each.
fn done_by(mut by_time: Vec<(f64, u64)>, threshold: u64) -> f64 {
    by_time.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut weight = 0;
    let reached = by_time.into_iter().find(|(_, own)| {
        weight += own;
        weight >= threshold
    });
    reached.map_or(0.0, |(time, _)| time)
}

/// The latency that half of the operations stay below.
fn median(pieces: &[Piece], weight: f64) -> f64 {
    let below = |latency: f64| -> f64 {
        let share = |piece: &Piece| {
            if latency >= piece.high {
                1.0
            } else {
                ((latency - piece.low) / (piece.high - piece.low)).max(0.0)
            }
        };
        pieces.iter().map(|piece| piece.weight * share(piece)).sum()
    };
    let (mut low, mut high) = (0.0, pieces.iter().map(|piece| piece.high).fold(0.0, f64::max));
    // Sixty halvings leave less than a float can tell.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if below(middle) < weight / 2.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests;
