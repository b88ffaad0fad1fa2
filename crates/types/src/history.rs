//! The epochs of a network, as far as whoever begins with its first committee file knows them.

use crate::{Committee, Epoch, HandedOver, HandedOverError, Height};
use quorate_crypto::KeyCache;
use quorate_crypto::mutants::{self, Mutant};
use std::sync::Arc;

/// The committees of a network from its first to the one in force, and the hand-overs between them,
/// each of which was checked under the committee before it.
///
/// Whoever goes from one epoch to the next does so with [`History::append`], on the word of a
/// source that it trusts, or with [`History::follow`], whoever shows the step.
#[derive(Clone, Debug)]
pub struct History {
    committees: Vec<Arc<Committee>>,
    steps: Vec<HandedOver>,
    /// Time at which the epoch in force is known to have been so; `None` of a first committee for
    /// which somebody vouches now.
    known_ms: Option<u64>,
}

impl History {
    /// History of a network in its first epoch.
    #[must_use]
    pub fn new(first: Arc<Committee>) -> Self {
        Self { committees: vec![first], steps: Vec::new(), known_ms: None }
    }

    /// This history, whose epoch in force is known to have been so at this time, too.
    #[must_use]
    pub fn known_at(mut self, time_ms: u64) -> Self {
        self.known_ms = self.known_ms.max(Some(time_ms));
        self
    }

    /// Last time at which the epoch in force is known to have been so, in milliseconds since the
    /// Unix epoch; `None` of a first committee of which none is known.
    #[must_use]
    pub fn known_ms(&self) -> Option<u64> {
        self.known_ms
    }

    /// History of a network from its first committee over all these steps.
    ///
    /// # Errors
    /// The first rule that a step breaks.
    pub fn walk(
        first: Committee,
        steps: &[HandedOver],
        cache: KeyCache,
    ) -> Result<Self, HandedOverError> {
        let mut history = Self::new(Arc::new(first));
        for step in steps {
            history.append(step.clone(), cache)?;
        }
        Ok(history)
    }

    /// Goes on to the next epoch, if this is how the one in force ended, by a step from a source
    /// that is trusted: however long ago that was.
    ///
    /// # Errors
    /// The first rule that the step breaks; the epoch in force stays.
    pub fn append(&mut self, step: HandedOver, cache: KeyCache) -> Result<(), HandedOverError> {
        let next = step.check(self.committee(), cache)?;
        self.enter(step, next);
        Ok(())
    }

    /// Goes on to the next epoch by a step that anybody shows: as [`History::append`], and within
    /// the trusting period alone (★).
    ///
    /// # Errors
    /// The first rule that the step breaks, its signatures first; the epoch in force stays.
    pub fn follow(
        &mut self,
        shown: HandedOver,
        now_ms: u64,
        cache: KeyCache,
    ) -> Result<(), HandedOverError> {
        let next = shown.check(self.committee(), cache)?;
        shown.check_age(self.committee(), self.known_ms, now_ms)?;
        self.enter(shown, next);
        Ok(())
    }

    /// Goes on over all these steps as [`History::append`] does, but for those that are known here.
    ///
    /// # Errors
    /// The first rule that a step breaks; [`HandedOverError::OtherEnd`] where another is known.
    pub fn append_all(
        &mut self,
        steps: Vec<HandedOver>,
        cache: KeyCache,
    ) -> Result<(), HandedOverError> {
        steps.into_iter().try_for_each(|step| match self.knows(&step)? {
            true => Ok(()),
            false => self.append(step, cache),
        })
    }

    /// Goes on over all these steps as [`History::follow`] does, but for those that are known here.
    ///
    /// # Errors
    /// As [`History::append_all`], and where the keys of an epoch are not trusted any more.
    pub fn follow_all(
        &mut self,
        shown: Vec<HandedOver>,
        now_ms: u64,
        cache: KeyCache,
    ) -> Result<(), HandedOverError> {
        shown.into_iter().try_for_each(|step| match self.knows(&step)? {
            true => Ok(()),
            false => self.follow(step, now_ms, cache),
        })
    }

    /// Returns `true` if this step is known here, and refuses another way into its epoch.
    fn knows(&self, step: &HandedOver) -> Result<bool, HandedOverError> {
        let known = self.steps.iter().find(|known| known.file.epoch == step.file.epoch);
        match known.map(|known| known.signed.content == step.signed.content) {
            Some(false) => Err(HandedOverError::OtherEnd(step.file.epoch)),
            known => Ok(known.is_some()),
        }
    }

    fn enter(&mut self, step: HandedOver, next: Committee) {
        self.known_ms = Some(step.header.proposed_at_ms);
        self.committees.push(Arc::new(next));
        self.steps.push(step);
    }

    /// Committee in force.
    ///
    /// # Panics
    /// Never: there is one from the beginning.
    #[must_use]
    pub fn committee(&self) -> &Arc<Committee> {
        self.committees.last().expect("the first is there")
    }

    /// All committees, the first one first.
    #[must_use]
    pub fn committees(&self) -> &[Arc<Committee>] {
        &self.committees
    }

    /// Hand-overs since the first epoch.
    #[must_use]
    pub fn steps(&self) -> &[HandedOver] {
        &self.steps
    }

    /// ★ The one committee under which a proof of this epoch counts, whatever the keys of others
    /// are worth; `None` of an epoch that is not known here.
    #[must_use]
    pub fn committee_of(&self, epoch: Epoch) -> Option<&Arc<Committee>> {
        let any = mutants::active(Mutant::ProofOfAnyEpoch);
        self.committees.iter().rev().find(|committee| any || committee.epoch() == epoch)
    }

    /// ★ The one committee under which a proof about this height counts: that of the epoch whose
    /// height it is. Keys of epochs before and after prove nothing about it.
    #[must_use]
    pub fn owner_of(&self, height: Height) -> &Arc<Committee> {
        let is_over = |step: &HandedOver| step.signed.content.height < height;
        let ended = self.steps.partition_point(is_over);
        let any = mutants::active(Mutant::FirstEpochOwnsAll);
        &self.committees[if any { 0 } else { ended }]
    }
}

#[cfg(test)]
mod tests;
