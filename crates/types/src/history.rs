//! The epochs of a network, as far as whoever begins with its first committee file knows them.

use crate::{Committee, HandedOver, HandedOverError, Height};
use quorate_crypto::KeyCache;
use quorate_crypto::mutants::{self, Mutant};
use std::sync::Arc;

/// The committees of a network from its first to the one in force, and the hand-overs between them,
/// each of which was checked under the committee before it.
///
/// Whoever goes from one epoch to the next, from whatever source and after however long, does so
/// with [`History::append`].
#[derive(Clone, Debug)]
pub struct History {
    committees: Vec<Arc<Committee>>,
    steps: Vec<HandedOver>,
}

impl History {
    /// History of a network in its first epoch.
    #[must_use]
    pub fn new(first: Arc<Committee>) -> Self {
        Self { committees: vec![first], steps: Vec::new() }
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

    /// Goes on to the next epoch, if this is how the one in force ended.
    ///
    /// # Errors
    /// The first rule that the step breaks; the epoch in force stays.
    pub fn append(&mut self, step: HandedOver, cache: KeyCache) -> Result<(), HandedOverError> {
        let next = step.check(self.committee(), cache)?;
        self.committees.push(Arc::new(next));
        self.steps.push(step);
        Ok(())
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
