//! Acknowledgements of bodies, where an author may name its own only after a quorum of them.

use quorate_types::{BodyRef, ReplicaId};
use std::collections::{BTreeMap, BTreeSet};

/// Bodies whose authors wait for acknowledgements.
#[derive(Debug)]
pub(crate) struct Acknowledgements {
    /// Number of members that must have a body, its author among them.
    needed: usize,
    have: BTreeMap<BodyRef, usize>,
    /// Authors that sealed something.
    started: BTreeSet<ReplicaId>,
}

impl Acknowledgements {
    pub(crate) fn new(needed: usize) -> Self {
        Self { needed, have: BTreeMap::new(), started: BTreeSet::new() }
    }

    /// An author sealed a body. Returns `true` if it waits for nobody, as the first of each does: a
    /// replica sends none before something of its own is stored.
    pub(crate) fn seal(&mut self, body: BodyRef) -> bool {
        let is_first = self.started.insert(body.author);
        if !is_first {
            self.have.insert(body, 0);
        }
        is_first
    }

    /// Returns `true` if its author waits for acknowledgements of a body.
    pub(crate) fn waits(&self, body: &BodyRef) -> bool {
        self.have.contains_key(body)
    }

    /// Its author hears that one more member has a body, itself among them. Returns `true` if it
    /// waited for that one.
    pub(crate) fn acknowledge(&mut self, body: BodyRef) -> bool {
        let Some(have) = self.have.get_mut(&body) else { return false };
        *have += 1;
        *have >= self.needed && self.have.remove(&body).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_crypto::Digest;

    fn body(sequence: u64) -> BodyRef {
        BodyRef { author: ReplicaId(0), sequence, digest: Digest([0; 32]) }
    }

    #[test]
    fn the_quorums_last_acknowledgement_counts_once() {
        let mut acknowledgements = Acknowledgements::new(3);
        assert!(acknowledgements.seal(body(0)), "the first");
        assert!(!acknowledgements.seal(body(1)));
        assert!(!acknowledgements.acknowledge(body(2)), "nobody sealed it");
        assert!(!acknowledgements.acknowledge(body(1)));
        assert!(!acknowledgements.acknowledge(body(1)));
        assert!(acknowledgements.acknowledge(body(1)));
        assert!(!acknowledgements.acknowledge(body(1)), "the fourth");
        let mut alone = Acknowledgements::new(1);
        assert!(alone.seal(body(0)) && !alone.seal(body(1)));
        assert!(alone.acknowledge(body(1)), "a committee of one");
    }
}
