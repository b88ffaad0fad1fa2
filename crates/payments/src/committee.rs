//! What a committee orders for a payment network: steps of releases and of changes of authorities.
//!
//! Of a payment that went well it sees nothing. Steps are checked for the epoch in force; what they
//! come to, [`release`] and [`change`](crate::change) decide.

use crate::Network;
use crate::change::{Change, ChangeError, ChangeStep, Closing, Entered};
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
    /// The bytes are no step, or too many.
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
    /// The epoch ended, and another began (★: what comes before is of the one, what comes after of
    /// the other).
    Change(Box<Change>),
    /// An authority reported what a shard of it locked in the epoch that ended last.
    Closing(Closing),
    /// A shard of an authority votes in the epoch in force.
    Entered(Entered),
}

impl Ordered {
    /// Step of a change that this is; `None` for a release.
    #[must_use]
    pub fn change_step(self) -> Option<ChangeStep> {
        match self {
            Self::Release(_) => None,
            Self::Change(change) => Some(ChangeStep::Change(change)),
            Self::Closing(closing) => Some(ChangeStep::Closing(closing)),
            Self::Entered(entered) => Some(ChangeStep::Entered(entered)),
        }
    }
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
