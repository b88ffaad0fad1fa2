//! Election of leaders by view.

mod reputation;

pub use reputation::LeaderReputation;

use quorate_types::{ReplicaId, View, Weights};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Debug;

/// Names the leader of each view. Every replica must name the same one: an election may depend on
/// the chain under the certificate by which a view is entered, on nothing else.
pub trait LeaderElection: Send + Debug {
    /// The leader of `view`, which is at least 1.
    fn leader(&self, view: View) -> ReplicaId;

    /// Number of consecutive views that a turn has.
    fn tenure(&self) -> u64 {
        1
    }
}

/// Members in turn, as often as they weigh: members of equal weight one after the other from member
/// 0 in view 1, others interleaved as evenly as can be.
///
/// In every round of `W` views (`W` the total weight over the weights' common divisor) each member
/// leads exactly as many as it weighs. Faulty members, who weigh less than a third, lead less than
/// a third of a round, so that each round has three views in a row with honest leaders: what a
/// chain of two certificates needs to decide. Equal turns would not give that, since the faulty
/// third may be most of the heads.
///
/// The order is that of R. Tijdeman, "The chairman assignment problem" (Discrete Mathematics 32,
/// 1980): after any number of views each member has led within one view of its share.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    /// Leaders of one round, in order.
    turns: Vec<ReplicaId>,
    /// Views of a turn, at least one.
    tenure: u64,
}

impl RoundRobin {
    /// Over a committee with these weights.
    #[must_use]
    pub fn new(weights: &Weights) -> Self {
        let divisor = weights.each().iter().copied().fold(0, common_divisor);
        let each: Vec<u64> = weights.each().iter().map(|weight| weight / divisor).collect();
        Self { turns: order(&each), tenure: 1 }
    }

    /// With turns of so many views, at least one: `⌊v/K⌋ mod n` where all weigh alike.
    #[must_use]
    pub fn with_tenure(self, views: u64) -> Self {
        Self { tenure: views.max(1), ..self }
    }

    /// Number of views of a round: after so many the leaders come again in the same order.
    #[must_use]
    pub fn round(&self) -> u64 {
        self.turns.len() as u64 * self.tenure
    }
}

impl LeaderElection for RoundRobin {
    fn leader(&self, view: View) -> ReplicaId {
        let turn = view.previous().0 / self.tenure % self.turns.len() as u64;
        self.turns[usize::try_from(turn).expect("less than a round")]
    }

    fn tenure(&self) -> u64 {
        self.tenure
    }
}

/// One round of turns. A member's `k`-th turn (from 0) may not come before its share is so large
/// that the turn keeps it within the bound, nor so late that missing it breaks the bound; of all
/// that may come, the one that must come soonest does. Such a turn exists in every view: the shares
/// of `n` members add up to one more view than was handed out, so one of them lacks `1/n` at least.
fn order(each: &[u64]) -> Vec<ReplicaId> {
    let round: u64 = each.iter().sum();
    let mut upcoming: Vec<Turn> = (0..)
        .zip(each)
        .flat_map(|(member, weight)| {
            (0..*weight).map(move |k| Turn::new(member, k, *weight, round, each.len() as u64))
        })
        .collect();
    upcoming.sort_unstable_by_key(|turn| Reverse(turn.first));
    let mut waiting: BinaryHeap<Reverse<(u64, u16)>> = BinaryHeap::new();
    let one = |view| {
        while upcoming.last().is_some_and(|turn| turn.first <= view) {
            waiting.extend(upcoming.pop().map(|turn| Reverse((turn.last, turn.member))));
        }
        let Reverse((_, member)) = waiting.pop().expect("in every view somebody's turn has come");
        ReplicaId(member)
    };
    (1..=round).map(one).collect()
}

/// A turn to lead, and the views in which it may be taken, counted from 1.
struct Turn {
    member: u16,
    first: u64,
    last: u64,
}

impl Turn {
    /// The `k`-th of `weight` turns of a member in a round. After view `v` its share is
    /// `v·weight/round`, and Tijdeman's bound on what it has more or less than that is
    /// `1 − 1/(2n−2)`.
    fn new(member: u16, k: u64, weight: u64, round: u64, members: u64) -> Self {
        // All in units of 1/(2n−2) of a turn. Products stay under 2⁴⁵: a round has 2¹⁶ views, and
        // committees 2¹⁰ members.
        let unit = 2 * (members - 1).max(1);
        let first = ((k * unit + 1) * round).div_ceil(unit * weight);
        let last = ((k + 1) * unit - 1) * round / (unit * weight) + 1;
        Self { member, first, last }
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests;
