//! Shares by members that may differ in what they state.

use super::{Collector, InvalidShare, Progress, Tally};
use quorate_crypto::{Bitmap, Certificate, Share};
use quorate_types::machine::{CombineId, CombineJob, CombineOutcome};
use quorate_types::{ReplicaId, Time};
use std::collections::BTreeMap;
use std::time::Duration;

/// A tally for each statement; nobody is counted for two. `K` tells them apart.
#[derive(Debug)]
pub struct Ballots<K> {
    seen: Bitmap,
    wait: Duration,
    tallies: BTreeMap<K, Tally<()>>,
}

impl<K: Ord + Clone> Ballots<K> {
    /// None yet, of a committee of `members`. After a threshold each goes on collecting for `wait`.
    #[must_use]
    pub fn new(members: usize, wait: Duration) -> Self {
        Self { seen: Bitmap::new(members), wait, tallies: BTreeMap::new() }
    }

    /// Takes a share. A second one by the same signer is dropped, whatever it states: `false`.
    pub fn add(
        &mut self,
        signer: ReplicaId,
        statement: K,
        message: impl FnOnce() -> Vec<u8>,
        share: Share,
    ) -> bool {
        if !self.seen.insert(signer.index()) {
            return false;
        }
        let members = self.seen.members();
        let new = || Tally::new(members, self.wait);
        self.tallies.entry(statement).or_insert_with(new).add(signer, (), message, share)
    }

    /// Number of statements that shares came for.
    pub(crate) fn len(&self) -> usize {
        self.tallies.len()
    }

    /// Whether this member was counted.
    #[must_use]
    pub fn has(&self, signer: ReplicaId) -> bool {
        self.seen.contains(signer.index())
    }

    /// Statement that this member was counted for.
    pub(crate) fn stated_by(&self, signer: ReplicaId) -> Option<&K> {
        let mut tallies = self.tallies.iter();
        tallies.find(|(_, tally)| tally.has(signer)).map(|(statement, _)| statement)
    }

    /// The jobs to start now.
    pub fn combine(&mut self, now: Time, collector: &mut Collector) -> Vec<CombineJob> {
        self.tallies.values_mut().flat_map(|tally| tally.combine(now, collector)).collect()
    }

    /// Whether a job is one of these tallies'.
    #[must_use]
    pub fn awaits(&self, job: CombineId) -> bool {
        self.tallies.values().any(|tally| tally.awaits(job))
    }

    /// Whether a job of one of these tallies is under way.
    #[must_use]
    pub fn is_combining(&self) -> bool {
        self.tallies.values().any(Tally::is_combining)
    }

    /// Takes in what a job came to: the certificate of a statement that reached its threshold.
    /// Without one, ask [`Ballots::combine`] again.
    pub fn combined(
        &mut self,
        outcome: &CombineOutcome,
        collector: &mut Collector,
        invalid: &mut Vec<InvalidShare>,
    ) -> Option<(K, Certificate)> {
        let mut tallies = self.tallies.iter_mut();
        let (statement, tally) = tallies.find(|(_, tally)| tally.awaits(outcome.id))?;
        match tally.combined(outcome, collector, invalid) {
            Progress::Done(certificates) => {
                certificates.into_iter().next().map(|((), made)| (statement.clone(), made))
            }
            Progress::Waiting => None,
        }
    }

    /// When [`Ballots::combine`] has something, if it waits for shares beyond a threshold.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.tallies.values().filter_map(Tally::deadline).min()
    }
}
