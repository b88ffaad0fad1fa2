//! Votes of one slot in one view, as one collector gathers them.

use crate::collector_backoff::Turn;
use crate::tally::Ballots;
use quorate_crypto::{Bitmap, Digest};
use quorate_types::{Committee, ReplicaId, Time};
use std::time::Duration;

/// Longest wait for the shares of the redundant members: about the time it takes to interpolate two
/// hundred threshold shares, which a sum of all `n` saves (paper 002 §VIII).
pub(super) const INTERPOLATION_TIME: Duration = Duration::from_millis(4);

/// Votes of one slot in one view, as one collector gathers them.
#[derive(Debug)]
pub(super) struct SlotVotes {
    pub(super) prepares: Ballots<Digest>,
    /// Shares for a fast proof, where they have keys of their own.
    pub(super) fast: Ballots<Digest>,
    pub(super) commits: Ballots<Digest>,
    pub(super) prepares_turn: Turn,
    pub(super) commits_turn: Turn,
    /// Members whose votes came, in time or not: the fast timer learns from their lags.
    pub(super) arrived: Bitmap,
    pub(super) quorum_at: Option<Time>,
    pub(super) fast_at: Option<Time>,
    /// A certificate of this view is known: no further one is made.
    pub(super) prepared: bool,
    /// Collectors whose turns come before this one's.
    pub(super) earlier: Vec<ReplicaId>,
}

impl SlotVotes {
    pub(super) fn new(members: usize, waits: Waits, earlier: Vec<ReplicaId>) -> Self {
        Self {
            prepares: Ballots::new(members, waits.fast),
            fast: Ballots::new(members, waits.whole),
            commits: Ballots::new(members, Duration::ZERO),
            prepares_turn: Turn::default(),
            commits_turn: Turn::default(),
            arrived: Bitmap::new(members),
            quorum_at: None,
            fast_at: None,
            prepared: false,
            earlier,
        }
    }

    /// Notes that a member's vote arrived, and returns the lags that it completes.
    pub(super) fn lags(&mut self, now: Time, from: ReplicaId, committee: &Committee) -> Lags {
        if !self.arrived.insert(from.index()) {
            return Lags::default();
        }
        let weight = committee.weight_of(&self.arrived);
        if weight < committee.quorum() {
            return Lags::default();
        }
        let quorum_at = *self.quorum_at.get_or_insert(now);
        let is_first = weight >= committee.weights().fast() && self.fast_at.is_none();
        if is_first {
            self.fast_at = Some(now);
        }
        let is_all = weight == committee.weights().total();
        Lags {
            fast: is_first.then(|| now.since(quorum_at)),
            whole: self.fast_at.filter(|_| is_all).map(|fast_at| now.since(fast_at)),
        }
    }

    /// Returns `true` while a fast proof is being combined, or waits a moment for all shares.
    pub(super) fn is_fast_imminent(&self) -> bool {
        self.fast.is_combining() || self.fast.deadline().is_some()
    }

    /// Time at which votes that wait are to be combined.
    pub(super) fn deadline(&self) -> Option<Time> {
        let awaits_slow = !self.prepared && !self.is_fast_imminent();
        let more = self.prepares.deadline().filter(|_| awaits_slow);
        let waiting = [more, self.fast.deadline()];
        let waiting = waiting.into_iter().filter(|_| self.prepares_turn == Turn::Come);
        [self.prepares_turn.deadline(), self.commits_turn.deadline()]
            .into_iter()
            .chain(waiting)
            .flatten()
            .min()
    }
}

/// Longest waits for votes beyond a quorum's (`fast`), and beyond those of all but the redundant
/// members (`whole`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waits {
    pub(super) fast: Duration,
    pub(super) whole: Duration,
}

/// Observed times from a quorum's votes to those of all but the redundant members (`fast`), and
/// from these to everybody's (`whole`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lags {
    pub(super) fast: Option<Duration>,
    pub(super) whole: Option<Duration>,
}
