//! Chains that travel ahead of messages, for comparison with what this replica does otherwise.
//!
//! A message of a chained protocol means nothing to whoever lacks the blocks before it. Replicas of
//! this program name them, and fetch what they lack. Paper 004 sends them along: first all of them
//! with every message, then (§3.3.3) those above the lowest height that any member is known to have
//! executed, and says with each what it knows of everybody's. Both are here so that they can be
//! measured. What comes along is checked and taken in like what was fetched, and what is cut off
//! too far is fetched.

use bytes::Bytes;
use quorate_types::{Body, Height, ReplicaId};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Bytes of blocks and bodies that go ahead of one message at most, the newest: as much as is in
/// one frame.
pub(crate) const CHAIN_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Parts of the chain that travel with messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Truncation {
    /// Ids: blocks that are missing are fetched.
    #[default]
    Ids,
    /// With proposals, new-views and timeouts, the blocks above the lowest height that any member
    /// is known to have executed, and everybody's heights (004 §3.3.3).
    Heights,
    /// With every message, the whole chain: the newest 3 MiB of it.
    Off,
}

impl fmt::Display for Truncation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ids => "ids",
            Self::Heights => "heights",
            Self::Off => "off",
        })
    }
}

impl FromStr for Truncation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ids" => Ok(Self::Ids),
            "heights" => Ok(Self::Heights),
            "off" => Ok(Self::Off),
            other => Err(format!("'{other}' is no truncation: use 'ids', 'heights' or 'off'")),
        }
    }
}

/// A decided block with its bodies.
#[derive(Debug)]
struct Ancestor {
    height: Height,
    record: Bytes,
    bodies: Vec<Arc<Body>>,
}

impl Ancestor {
    fn bytes(&self) -> usize {
        self.record.len() + self.bodies.iter().map(|body| body.raw.len()).sum::<usize>()
    }
}

/// Parts of the chain that this replica sends along.
#[derive(Debug)]
pub(crate) struct ChainPiggyback {
    truncation: Truncation,
    /// The highest height that each member is known to have executed.
    heights: Vec<Height>,
    /// Decided blocks, oldest first, without gaps.
    chain: VecDeque<Ancestor>,
    bytes: usize,
}

impl ChainPiggyback {
    pub(crate) fn new(truncation: Truncation, members: usize) -> Self {
        let heights = vec![Height(0); members];
        Self { truncation, heights, chain: VecDeque::new(), bytes: 0 }
    }

    /// Returns `true` if chains travel at all.
    pub(crate) fn travels(&self) -> bool {
        self.truncation != Truncation::Ids
    }

    /// Returns `true` if the chain goes ahead of a message; of one that `reports` its sender's
    /// reputation.
    pub(crate) fn precedes(&self, reports: bool) -> bool {
        match self.truncation {
            Truncation::Ids => false,
            Truncation::Heights => reports,
            Truncation::Off => true,
        }
    }

    /// A block was decided. Without some of its bodies it is sent as well: they are fetched.
    pub(crate) fn decided(&mut self, height: Height, record: Bytes, bodies: Vec<Arc<Body>>) {
        if self.chain.back().is_some_and(|last| last.height.next() != height) {
            // A snapshot was installed: blocks before it lead nowhere.
            self.chain.clear();
            self.bytes = 0;
        }
        let ancestor = Ancestor { height, record, bodies };
        self.bytes += ancestor.bytes();
        self.chain.push_back(ancestor);
        while self.bytes > CHAIN_BYTES_MAX {
            self.drop_oldest();
        }
    }

    /// Takes in the heights that a member reports of everybody. A lie costs others a query at most.
    pub(crate) fn learn(&mut self, heights: &[Height]) {
        for (known, told) in self.heights.iter_mut().zip(heights) {
            *known = (*known).max(*told);
        }
    }

    /// This replica has executed so far.
    pub(crate) fn executed(&mut self, id: ReplicaId, height: Height) {
        if let Some(own) = self.heights.get_mut(id.index()) {
            *own = height;
        }
    }

    /// Everybody's heights, where they travel.
    pub(crate) fn heights(&self) -> Vec<Height> {
        if self.truncation == Truncation::Heights { self.heights.clone() } else { Vec::new() }
    }

    /// The decided blocks to send, oldest first, and their bodies; and the height of the first.
    pub(crate) fn cut(&mut self) -> (Height, Vec<Bytes>, Vec<Arc<Body>>) {
        if self.truncation == Truncation::Heights {
            let lowest = self.heights.iter().min().copied().unwrap_or_default();
            while self.chain.front().is_some_and(|ancestor| ancestor.height <= lowest) {
                self.drop_oldest();
            }
        }
        let first = self.chain.front().map_or(Height(0), |ancestor| ancestor.height);
        let records = self.chain.iter().map(|ancestor| ancestor.record.clone()).collect();
        let bodies = self.chain.iter().flat_map(|ancestor| &ancestor.bodies).cloned().collect();
        (first, records, bodies)
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.chain.pop_front() {
            self.bytes -= oldest.bytes();
        }
    }
}

#[cfg(test)]
mod tests;
