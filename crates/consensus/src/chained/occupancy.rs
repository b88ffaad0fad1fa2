//! How full the collections of a chained machine are: the rows of docs/bounds.md.

use super::check::LATE_VIEWS;
use super::deciding::DECIDED_KEPT;
use super::proposals::PARKED_MAX;
use super::state::Chained;
use crate::Occupancy;
use crate::epoch_end::EpochEnd;
use crate::verifier::WINDOW;
use quorate_types::View;
use std::collections::BTreeMap;

/// Statements of one member that are counted in a view: two in each of its phases.
const STATEMENTS_MAX: usize = 2 * 3;

impl Chained {
    pub(super) fn collections(&self) -> Vec<Occupancy> {
        let members = self.verifier.committee().size();
        let views_ahead = WINDOW as usize + 1;
        let views_seen = views_ahead + LATE_VIEWS as usize;
        let blocks_of_a_view = 2 * members;
        let tree = blocks_of_a_view * 2 * views_ahead + self.views_since(self.tree.root().view);
        let tallies = &self.votes.tallies;
        vec![
            Occupancy::new("outputs", self.outputs.len(), 0),
            Occupancy::new("voted", self.voted.len(), self.views_since(self.high_qc.view)),
            Occupancy::new("parked", self.parked.len(), PARKED_MAX),
            Occupancy::new("proposals_seen", self.proposals_seen.len(), views_seen),
            Occupancy::of_fullest(
                "proposals_seen",
                self.proposals_seen.values().map(BTreeMap::len),
                blocks_of_a_view,
            ),
            Occupancy::new("blocks", self.tree.len(), tree),
            Occupancy::new("stored", self.stored.len(), tree),
            Occupancy::new("decided", self.decided.len(), DECIDED_KEPT),
            Occupancy::new("tallies", tallies.len(), views_ahead + 1),
            Occupancy::of_fullest(
                "tallies",
                tallies.values().map(BTreeMap::len),
                STATEMENTS_MAX * members,
            ),
            Occupancy::new("reported", self.timeouts.reported.len(), members),
            Occupancy::new("shown_at", self.ended.as_ref().map_or(0, EpochEnd::len), members),
            Occupancy::new("new_views", self.phases.new_views.len(), members),
        ]
    }

    /// Number of views from one on, that one and the current among them.
    fn views_since(&self, view: View) -> usize {
        usize::try_from(self.view.0.saturating_sub(view.0) + 1).unwrap_or(usize::MAX)
    }
}
