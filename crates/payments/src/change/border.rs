//! The end of an epoch as its committee ordered it.

use super::{ChangeStep, Closing, Entered};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::Digest;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{ReplicaId, Weights};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// What was ordered of the end of one epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Border {
    /// Digest of the file of the next epoch, once the change to it was ordered.
    next: Option<Digest>,
    /// The first report of each authority for each shard.
    closings: BTreeMap<(u16, ReplicaId), Closing>,
    /// Shards of the next epoch's authorities that vote in it.
    entered: BTreeSet<(u16, ReplicaId)>,
}

/// Reason that a step changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BorderRefusal {
    /// A change after the first one.
    #[error("the epoch has ended: the change that was ordered first is the one")]
    Ended,
    /// A report of an epoch that goes on, or for a change that was not ordered.
    #[error("no change to this network file was ordered")]
    NotEnded,
    /// A second report of one authority.
    #[error("this authority reported the shard's locks before")]
    Repeated,
    /// Word of an authority's shard that it gave before.
    #[error("that this authority votes in the epoch is known")]
    Known,
}

impl Border {
    /// Executes a step that was checked ([`ChangeStep::check`]).
    ///
    /// # Errors
    /// Why it changes nothing.
    pub fn apply(&mut self, step: &ChangeStep) -> Result<(), BorderRefusal> {
        match step {
            ChangeStep::Change(_) if self.next.is_some() => Err(BorderRefusal::Ended),
            ChangeStep::Change(change) => {
                self.next = Some(change.next.digest());
                Ok(())
            }
            ChangeStep::Closing(closing) => self.close(closing),
            ChangeStep::Entered(entered) => self.enter(entered),
        }
    }

    fn enter(&mut self, entered: &Entered) -> Result<(), BorderRefusal> {
        if self.next.is_none() {
            return Err(BorderRefusal::NotEnded);
        }
        let is_new = self.entered.insert((entered.shard, entered.authority));
        if is_new { Ok(()) } else { Err(BorderRefusal::Known) }
    }

    /// Counts a report; the first of each authority alone (★).
    fn close(&mut self, closing: &Closing) -> Result<(), BorderRefusal> {
        if self.next != Some(closing.next) {
            return Err(BorderRefusal::NotEnded);
        }
        let place = (closing.shard, closing.authority);
        if self.closings.contains_key(&place) && !mutants::active(Mutant::PayReportTwice) {
            return Err(BorderRefusal::Repeated);
        }
        self.closings.insert(place, *closing);
        Ok(())
    }

    /// Digest of the next epoch's file, once the epoch has ended.
    #[must_use]
    pub fn next(&self) -> Option<Digest> {
        self.next
    }

    /// Reports of a shard.
    pub fn closings(&self, shard: u16) -> impl Iterator<Item = &Closing> {
        self.closings.range(of_shard(shard)).map(|(_, one)| one)
    }

    /// Authorities of the next epoch whose shard votes in it.
    pub fn entered(&self, shard: u16) -> impl Iterator<Item = ReplicaId> {
        self.entered.range(of_shard(shard)).map(|(_, one)| *one)
    }

    /// Returns `true` once the next epoch can begin: authorities that weigh a quorum reported each
    /// shard.
    #[must_use]
    pub fn is_reported(&self, shards: u16, weights: &Weights) -> bool {
        is_quorum(shards, weights, |shard| self.closings(shard).map(|one| one.authority))
    }

    /// Returns `true` once the next epoch, whose authorities have these weights, has begun: those
    /// of a quorum vote at each shard.
    #[must_use]
    pub fn has_begun(&self, shards: u16, weights: &Weights) -> bool {
        is_quorum(shards, weights, |shard| self.entered(shard))
    }
}

fn of_shard(shard: u16) -> RangeInclusive<(u16, ReplicaId)> {
    (shard, ReplicaId(0))..=(shard, ReplicaId(u16::MAX))
}

fn is_quorum<I: Iterator<Item = ReplicaId>>(
    shards: u16,
    weights: &Weights,
    of_shard: impl Fn(u16) -> I,
) -> bool {
    let weigh = |shard| of_shard(shard).map(|one| weights.of(one.index())).sum::<u64>();
    (0..shards).all(|shard| weigh(shard) >= weights.quorum())
}
