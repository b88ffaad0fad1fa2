//! Epochs of the payment network, as changes of its authorities were ordered.

use super::docket::MapDocket;
use super::{Refused, keys};
use crate::map::entries::damaged;
use quorate_crypto::mutants::{self, Mutant};
use quorate_payments::Network;
use quorate_payments::change::{Border, Change, ChangeStep};
use quorate_payments::committee::{Ordered, Step, StepRefused};
use quorate_types::Epoch;
use quorate_types::service::{State, StateError};
use std::sync::{Arc, PoisonError, RwLock};

/// Network of the epoch in force, and of the one before it. Whoever judges operations shares it
/// with the service that executes them.
#[derive(Debug)]
pub(super) struct Epochs {
    founding: Arc<Network>,
    known: RwLock<Known>,
}

#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) present: Arc<Network>,
    pub(super) ended: Option<Arc<Network>>,
}

impl Epochs {
    pub(super) fn new(founding: Arc<Network>) -> Self {
        let known = Known { present: Arc::clone(&founding), ended: None };
        Self { founding, known: RwLock::new(known) }
    }

    pub(super) fn known(&self) -> Known {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, known: Known) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = known;
    }

    /// Follows the changes in a state, from the founding epoch on.
    pub(super) fn read(&self, state: &dyn State) -> Result<(), StateError> {
        let mut known = Known { present: Arc::clone(&self.founding), ended: None };
        let change = |begun| keys::get::<Change>(state, &keys::change(begun));
        while let Some(change) = change(known.present.epoch().next())? {
            let next = known.present.succeed(&change).map_err(|_| damaged())?;
            known = known.followed_by(next);
        }
        self.set(known);
        Ok(())
    }

    /// Executes a step of a change that was checked; within, why it changes nothing.
    pub(super) fn apply(
        &self,
        docket: &mut MapDocket<'_>,
        step: &ChangeStep,
    ) -> Result<Result<(), Refused>, StateError> {
        let known = self.known();
        if let Err(refused) = known.check_turn(docket, step)? {
            return Ok(Err(refused));
        }
        let ending = known.ending(step)?;
        let mut border: Border = docket.border(ending)?;
        if let Err(refusal) = border.apply(step) {
            return Ok(Err(refusal.into()));
        }
        docket.set_border(ending, &border)?;
        if let ChangeStep::Change(change) = step {
            let next = known.present.succeed(change).map_err(|_| damaged())?;
            docket.set_change(next.epoch(), change)?;
            self.set(known.followed_by(next));
        }
        docket.append(&Ordered::Change(step.clone())).map(Ok)
    }
}

impl Known {
    fn followed_by(self, next: Network) -> Self {
        Self { present: Arc::new(next), ended: Some(self.present) }
    }

    /// Epoch of whose end a checked step is.
    fn ending(&self, step: &ChangeStep) -> Result<Epoch, StateError> {
        match step {
            ChangeStep::Change(_) => Ok(self.present.epoch()),
            _ => self.ended.as_deref().map(Network::epoch).ok_or_else(damaged),
        }
    }

    /// ★ An epoch ends after it has begun, and reports of the one before count until then: nobody
    /// guards the keys of an ended epoch for ever.
    fn check_turn(
        &self,
        docket: &MapDocket<'_>,
        step: &ChangeStep,
    ) -> Result<Result<(), Refused>, StateError> {
        let Some(ended) = &self.ended else { return Ok(Ok(())) };
        let epoch = self.present.epoch();
        let weights = self.present.committee().weights();
        let has_begun = docket.border(ended.epoch())?.has_begun(self.present.shards(), weights);
        let left_out = mutants::active;
        Ok(match step {
            ChangeStep::Change(_) if !has_begun && !left_out(Mutant::PayChangeBeforeBegun) => {
                Err(Refused::NotBegun(epoch))
            }
            ChangeStep::Closing(_) if has_begun && !left_out(Mutant::PayReportTooLate) => {
                Err(Refused::Begun(epoch))
            }
            _ => Ok(()),
        })
    }

    /// The step in these bytes, if it keeps every rule that needs no order.
    pub(super) fn open(&self, bytes: &[u8]) -> Result<Step, StepRefused> {
        Step::open(&self.present, self.ended.as_deref(), bytes)
    }
}
