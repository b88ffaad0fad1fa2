//! Results of operations, encoded in their outcomes.

use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use quorate_types::Outcome;

/// Result of an operation that was applied, as it is encoded (borsh) in its outcome.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Output {
    /// Result of a step.
    Step(StepOutput),
    /// Result of a scan.
    Page(Page),
    /// Results of a batch, step by step.
    Batch(Vec<StepOutput>),
}

/// Result of a step.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum StepOutput {
    /// Value that a get found, if there is one.
    Value(Option<Bytes>),
    /// Confirmation of a put or delete.
    Done {
        /// Set if there was a value before.
        replaced: bool,
    },
    /// Confirmation of a compare-and-swap: the value was the expected one and is the new one.
    Swapped,
    /// Refusal of a compare-and-swap: the value was another, and still is.
    NotSwapped {
        /// The value that there is.
        actual: Option<Bytes>,
    },
}

/// Keys in order, with their values.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Page {
    /// No key in between is left out.
    pub entries: Vec<Entry>,
    /// The limit of entries or of bytes cut it: there are more in the range.
    pub more: bool,
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Entry {
    /// Key of the entry.
    pub key: Bytes,
    /// Value under the key.
    pub value: Bytes,
}

/// Reason for which an operation changed nothing, as it is encoded (borsh) in its outcome.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize, thiserror::Error)]
pub enum Refusal {
    /// A compare-and-swap of a batch did not swap.
    #[error("step {step} of the batch found another value")]
    NotSwapped {
        /// Index of the step, from 0.
        step: u32,
        /// The value that there is.
        actual: Option<Bytes>,
    },
    /// A batch gets more than [`RESULT_BYTES_MAX`](super::RESULT_BYTES_MAX) bytes.
    #[error("the values that the batch gets are too long for one result")]
    ResultTooLong,
    /// The operation is not one, and why. The executor shows such a reason as it is, not encoded.
    #[error("{0}")]
    NotAdmitted(String),
}

/// Reason for which an outcome has no [`Output`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutcomeError {
    /// The operation was refused.
    #[error("refused: {0}")]
    Refused(Refusal),
    /// It was applied, but by another service.
    #[error("the outcome is not one of a key-value operation")]
    Undecodable,
}

impl Output {
    /// Reads an operation's outcome.
    ///
    /// # Errors
    /// When the operation was refused, or is not of this service.
    pub fn read(outcome: &Outcome) -> Result<Self, OutcomeError> {
        match outcome {
            Outcome::Applied(bytes) => {
                Self::try_from_slice(bytes).map_err(|_| OutcomeError::Undecodable)
            }
            Outcome::Refused(bytes) => Err(OutcomeError::Refused(Refusal::read(bytes))),
        }
    }

    pub(super) fn outcome(&self) -> Outcome {
        Outcome::Applied(super::encode(self))
    }
}

impl Refusal {
    fn read(bytes: &[u8]) -> Self {
        Self::try_from_slice(bytes)
            .unwrap_or_else(|_| Self::NotAdmitted(String::from_utf8_lossy(bytes).into_owned()))
    }

    pub(super) fn outcome(&self) -> Outcome {
        Outcome::Refused(super::encode(self))
    }
}
