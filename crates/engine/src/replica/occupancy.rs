//! How full a replica's collections are: the rows of docs/bounds.md that peers fill.

use super::{READS_PER_PEER_MAX, Replica};
use quorate_consensus::Occupancy;
use std::collections::BTreeMap;

/// Kinds of what a peer may have read from the disk.
const READING_KINDS: usize = 5;

impl Replica {
    /// Entries of the collections that peers fill, beside the most that there may be.
    #[must_use]
    pub fn occupancy(&self) -> Vec<Occupancy> {
        let mut all = self.protocol.state().occupancy();
        all.extend([
            self.reads_of_the_busiest(),
            self.replies.occupancy(),
            self.queries.occupancy(),
            self.checkpoints.occupancy(),
            self.changes.occupancy(),
            Occupancy::new("shown_meanwhile", self.shown_meanwhile.len(), self.members()),
        ]);
        all.extend(self.hand_overs.occupancy());
        all.extend(self.bodies.occupancy());
        all.extend(self.primary_delay.occupancy(self.members()));
        all.extend(self.execution.occupancy());
        all.extend(self.sync.occupancy());
        all.extend(self.certifier.occupancy());
        all.extend(self.own_signatures.occupancy());
        all.extend(self.evidence.occupancy(self.members()));
        all
    }

    fn members(&self) -> usize {
        self.config.verifier.committee().size()
    }

    fn reads_of_the_busiest(&self) -> Occupancy {
        let mut reads = BTreeMap::new();
        for peer in self.reads.values().filter_map(super::Reading::peer) {
            *reads.entry(peer).or_insert(0) += 1;
        }
        Occupancy::of_fullest("reads", reads.into_values(), READS_PER_PEER_MAX * READING_KINDS)
    }
}
