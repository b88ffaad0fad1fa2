//! Votes, timeouts and phases of the views under way: what the machine collects.

use super::messages::Qc;
use super::records::LaterVotes;
use super::rules::Phase;
use crate::tally::Tally;
use quorate_types::{BlockId, Time, View};
use std::collections::{BTreeMap, BTreeSet};

/// Subject of a vote. Votes that differ in anything sign differently, and are counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Subject {
    pub(super) phase: Phase,
    pub(super) id: BlockId,
    pub(super) base_view: View,
    pub(super) base_id: BlockId,
}

/// The votes under way, by view and block. Each signer fills at most two tallies a view and phase.
#[derive(Debug, Default)]
pub(super) struct Votes {
    pub(super) tallies: BTreeMap<View, BTreeMap<Subject, Tally<()>>>,
}

impl Votes {
    pub(super) fn prune(&mut self, view: View) {
        self.tallies.retain(|v, _| v.next() >= view);
    }

    /// Number of tallies that are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.tallies.values().map(BTreeMap::len).sum()
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.tallies.values().flat_map(BTreeMap::values).filter_map(Tally::deadline).min()
    }
}

/// The timeouts under way, by view; within one, by the certificate's view that each reports.
#[derive(Debug, Default)]
pub(super) struct Timeouts {
    pub(super) tallies: BTreeMap<View, Tally<View>>,
    /// The highest certificate reported in each view, for the timeout certificate to show.
    pub(super) reported: BTreeMap<(View, View), Qc>,
}

impl Timeouts {
    pub(super) fn prune(&mut self, view: View) {
        self.tallies.retain(|v, _| *v >= view);
        self.reported.retain(|(v, _), _| *v >= view);
    }
}

/// Progress of the current view through its later phases.
#[derive(Debug, Default)]
pub(super) struct Phases {
    /// The highest certificate of pre-commit votes.
    pub(super) pre_committed: Option<Qc>,
    /// Votes in the later phases of the view that was voted in last.
    pub(super) voted: LaterVotes,
    /// Members that told this leader that the view before the current one was decided.
    pub(super) new_views: BTreeSet<usize>,
}
