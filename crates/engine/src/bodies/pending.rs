//! Bodies that are stored and not decided, in the order of their arrival.

use quorate_types::{BodyRef, ReplicaId};
use std::collections::{BTreeMap, BTreeSet};

/// Pending bodies by arrival, of all and of each author.
#[derive(Debug, Default)]
pub(super) struct Pending {
    arrived: BTreeMap<u64, BodyRef>,
    of_author: BTreeSet<(ReplicaId, u64)>,
}

impl Pending {
    pub(super) fn insert(&mut self, arrival: u64, name: BodyRef) {
        self.arrived.insert(arrival, name);
        self.of_author.insert((name.author, arrival));
    }

    pub(super) fn remove(&mut self, arrival: u64) {
        if let Some(name) = self.arrived.remove(&arrival) {
            self.of_author.remove(&(name.author, arrival));
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &BodyRef> {
        self.arrived.values()
    }

    /// Those of one author.
    pub(super) fn names_of(&self, author: ReplicaId) -> impl Iterator<Item = &BodyRef> {
        let own = self.of_author.range((author, 0)..=(author, u64::MAX));
        own.filter_map(|(_, arrival)| self.arrived.get(arrival))
    }

    pub(super) fn len(&self) -> usize {
        self.arrived.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.arrived.is_empty()
    }
}
