//! Who leads a view.

use quorate_types::{ReplicaId, View};
use std::fmt::Debug;

/// Names the leader of each view. Every replica must name the same one: an election may depend on
/// the chain under the certificate by which a view is entered, on nothing else.
pub trait LeaderElection: Send + Debug {
    /// The leader of `view`, which is at least 1.
    fn leader(&self, view: View) -> ReplicaId;
}

/// Each member in turn, from member 0 in view 1.
#[derive(Clone, Copy, Debug)]
pub struct RoundRobin {
    members: u64,
}

impl RoundRobin {
    /// Over a committee of `members`.
    #[must_use]
    pub fn new(members: usize) -> Self {
        assert!(members > 0, "a committee has members");
        Self { members: members as u64 }
    }
}

impl LeaderElection for RoundRobin {
    fn leader(&self, view: View) -> ReplicaId {
        let index = view.previous().0 % self.members;
        ReplicaId(u16::try_from(index).expect("committees are limited to 1,024"))
    }
}

#[cfg(test)]
mod tests;
