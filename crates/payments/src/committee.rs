//! What a committee orders for a payment network: steps of releases and of changes of authorities.
//!
//! Of a payment that went well it sees nothing. Steps are checked for the epoch in force; what they
//! come to, [`release`] and [`change`](crate::change) decide.

use crate::Network;
use crate::change::{ChangeError, ChangeStep};
use crate::release::{self, ReleaseStep, StepError};
use borsh::{BorshDeserialize, BorshSerialize};

/// Operation of the committee's order.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Step {
    /// Step of the release of locked coins.
    Release(ReleaseStep),
    /// Step of a change of the authorities.
    Change(ChangeStep),
}

/// Rule that a step breaks, whatever came before it in its epoch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepRefused {
    /// The bytes are no step.
    #[error("this is no step of a release or of a change of authorities")]
    Malformed,
    /// A rule of releases.
    #[error(transparent)]
    Release(#[from] StepError),
    /// A rule of changes.
    #[error(transparent)]
    Change(#[from] ChangeError),
}

/// Change by an ordered step, as those learn it who follow the order.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Ordered {
    /// Coins were frozen, or decided about, in the epoch in force.
    Release(release::Ordered),
    /// A step of a change, which took effect (★: what comes before a [`ChangeStep::Change`] is of
    /// the epoch that it ends, what comes after of the next).
    Change(ChangeStep),
}

impl Step {
    /// The step in these bytes, if it keeps every rule that needs no order (★). `present` is the
    /// network of the epoch in force, `ended` that of the one before it.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn open(
        present: &Network,
        ended: Option<&Network>,
        bytes: &[u8],
    ) -> Result<Self, StepRefused> {
        let step = Self::try_from_slice(bytes).map_err(|_| StepRefused::Malformed)?;
        match &step {
            Self::Release(step) => step.check(present)?,
            Self::Change(step) => step.check(present, ended)?,
        }
        Ok(step)
    }

    /// The bytes to order.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        borsh::to_vec(self).expect("encoding into memory cannot fail")
    }
}
