//! Epochs of the payment network, as changes of its authorities were ordered.

use super::docket::MapDocket;
use super::{Refused, keys};
use crate::map::entries::damaged;
use quorate_crypto::mutants::{self, Mutant};
use quorate_payments::Network;
use quorate_payments::change::{Border, Change, ChangeStep};
use quorate_payments::committee::{Ordered, Step, StepRefused};
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
        let ending = match (step, &known.ended) {
            (ChangeStep::Change(_), Some(ended)) => {
                let border = docket.border(ended.epoch())?;
                let present = &known.present;
                if !border.has_begun(present.shards(), present.committee().weights()) {
                    return Ok(Err(Refused::NotBegun(present.epoch())));
                }
                present.epoch()
            }
            (ChangeStep::Change(_), None) => known.present.epoch(),
            (_, Some(ended)) => ended.epoch(),
            (_, None) => return Err(damaged()),
        };
        let mut border: Border = docket.border(ending)?;
        let present = &known.present;
        let has_begun = border.has_begun(present.shards(), present.committee().weights());
        // ★ Nobody guards the keys of an epoch that ended for ever.
        if matches!(step, ChangeStep::Closing(_))
            && has_begun
            && !mutants::active(Mutant::PayReportTooLate)
        {
            return Ok(Err(Refused::Begun(present.epoch())));
        }
        if let Err(refusal) = border.apply(step) {
            return Ok(Err(refusal.into()));
        }
        docket.set_border(ending, &border)?;
        let ordered = match step {
            ChangeStep::Change(change) => {
                let next = known.present.succeed(change).map_err(|_| damaged())?;
                docket.set_change(next.epoch(), change)?;
                self.set(known.followed_by(next));
                Ordered::Change(change.clone())
            }
            ChangeStep::Closing(closing) => Ordered::Closing(*closing),
            ChangeStep::Entered(entered) => Ordered::Entered(*entered),
        };
        docket.append(&ordered).map(Ok)
    }
}

impl Known {
    fn followed_by(self, next: Network) -> Self {
        Self { present: Arc::new(next), ended: Some(self.present) }
    }

    /// The step in these bytes, if it keeps every rule that needs no order.
    pub(super) fn open(&self, bytes: &[u8]) -> Result<Step, StepRefused> {
        Step::open(&self.present, self.ended.as_deref(), bytes)
    }
}
