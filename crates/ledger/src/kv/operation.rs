//! Operations on the state that clients may order, and their limits.

use crate::map::KEY_BYTES_MAX;
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;

/// Most bytes of a value; it may be empty.
pub const VALUE_BYTES_MAX: usize = 64 * 1024;
/// Most steps of a batch; the fewest are 1.
pub const BATCH_STEPS_MAX: usize = 256;
/// Most entries that one scan shows.
pub const SCAN_ENTRIES_MAX: u32 = 1_000;
/// Most bytes of keys and values that one scan shows, and of values that one batch gets.
pub const RESULT_BYTES_MAX: usize = 256 * 1024;

/// An operation, as it is encoded (borsh) in a request.
///
/// ```
/// use quorate_ledger::kv::{Operation, Step};
///
/// let operation = Operation::batch([
///     Step::compare_and_swap("leader", None, Some("replica 3".into())),
///     Step::put("term", "7"),
/// ]);
/// assert_eq!(Operation::decode(&operation.encode()), Ok(operation));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Operation {
    /// A step on one key.
    Step(Step),
    /// A scan of keys in order.
    Scan(Scan),
    /// Several steps, each on what those before it left, all or none: where a compare-and-swap does
    /// not swap, nothing is changed.
    Batch(Vec<Step>),
}

/// Step that concerns one key.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Step {
    /// Reads the value of the key.
    Get {
        /// Key to read, of 1 to [`KEY_BYTES_MAX`] bytes, as all keys.
        key: Bytes,
    },
    /// Sets the value of the key.
    Put {
        /// Key whose value is set.
        key: Bytes,
        /// Value to set, of at most [`VALUE_BYTES_MAX`] bytes, as all values.
        value: Bytes,
    },
    /// Removes the key and its value.
    Delete {
        /// Key that is removed.
        key: Bytes,
    },
    /// Changes the value if it is the expected one. `None` is no value.
    CompareAndSwap {
        /// Key whose value is compared.
        key: Bytes,
        /// Value that the key must have.
        expected: Option<Bytes>,
        /// Value that the key gets then.
        new: Option<Bytes>,
    },
}

/// Keys in order, with their values.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Scan {
    /// The first key that is shown; empty: from the start. At most [`KEY_BYTES_MAX`] bytes.
    pub from: Bytes,
    /// The first key that is no longer shown, above `from`; `None`: to the end.
    pub to: Option<Bytes>,
    /// Most entries to show, 1 to [`SCAN_ENTRIES_MAX`].
    pub limit: u32,
}

/// Reason for which bytes are no operation or query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// The bytes do not decode.
    #[error("the bytes are no key-value operation or question")]
    Undecodable,
    /// A key is empty or too long.
    #[error("a key has 1 to {KEY_BYTES_MAX} bytes, this one {0}")]
    KeyBytes(usize),
    /// A value is too long.
    #[error("a value has at most {VALUE_BYTES_MAX} bytes, this one {0}")]
    ValueBytes(usize),
    /// A batch is empty or too long.
    #[error("a batch has 1 to {BATCH_STEPS_MAX} steps, this one {0}")]
    BatchSteps(usize),
    /// A scan is to show nothing or too much.
    #[error("a scan shows 1 to {SCAN_ENTRIES_MAX} entries at most, not {0}")]
    ScanEntries(u32),
    /// A scan's bound is too long.
    #[error("a scan's bounds have at most {KEY_BYTES_MAX} bytes, this one {0}")]
    BoundBytes(usize),
    /// A scan ends before it starts.
    #[error("a scan's end is above its start")]
    ScanBackwards,
}

impl Operation {
    /// Reads the value of `key`.
    #[must_use]
    pub fn get(key: impl Into<Bytes>) -> Self {
        Self::Step(Step::get(key))
    }

    /// Sets the value of `key`.
    #[must_use]
    pub fn put(key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        Self::Step(Step::put(key, value))
    }

    /// Removes `key` and its value.
    #[must_use]
    pub fn delete(key: impl Into<Bytes>) -> Self {
        Self::Step(Step::delete(key))
    }

    /// Makes the value of `key` `new` if it is `expected`; `None` is no value.
    #[must_use]
    pub fn compare_and_swap(
        key: impl Into<Bytes>,
        expected: Option<Bytes>,
        new: Option<Bytes>,
    ) -> Self {
        Self::Step(Step::compare_and_swap(key, expected, new))
    }

    /// All of these steps or none.
    #[must_use]
    pub fn batch(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::Batch(steps.into_iter().collect())
    }

    /// The bytes to put into a request.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        super::encode(self)
    }

    /// An operation within its limits.
    ///
    /// # Errors
    /// Why the bytes are not one.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormError> {
        let operation: Self = super::decode(bytes)?;
        operation.check()?;
        Ok(operation)
    }

    fn check(&self) -> Result<(), FormError> {
        match self {
            Self::Step(step) => step.check(),
            Self::Scan(scan) => scan.check(),
            Self::Batch(steps) if (1..=BATCH_STEPS_MAX).contains(&steps.len()) => {
                steps.iter().try_for_each(Step::check)
            }
            Self::Batch(steps) => Err(FormError::BatchSteps(steps.len())),
        }
    }
}

impl Step {
    /// Reads the value of `key`.
    #[must_use]
    pub fn get(key: impl Into<Bytes>) -> Self {
        Self::Get { key: key.into() }
    }

    /// Sets the value of `key`.
    #[must_use]
    pub fn put(key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        Self::Put { key: key.into(), value: value.into() }
    }

    /// Removes `key` and its value.
    #[must_use]
    pub fn delete(key: impl Into<Bytes>) -> Self {
        Self::Delete { key: key.into() }
    }

    /// Makes the value of `key` `new` if it is `expected`; `None` is no value.
    #[must_use]
    pub fn compare_and_swap(
        key: impl Into<Bytes>,
        expected: Option<Bytes>,
        new: Option<Bytes>,
    ) -> Self {
        Self::CompareAndSwap { key: key.into(), expected, new }
    }

    /// The key that it concerns.
    #[must_use]
    pub fn key(&self) -> &Bytes {
        match self {
            Self::Get { key }
            | Self::Put { key, .. }
            | Self::Delete { key }
            | Self::CompareAndSwap { key, .. } => key,
        }
    }

    fn check(&self) -> Result<(), FormError> {
        check_key(self.key())?;
        match self {
            Self::Get { .. } | Self::Delete { .. } => Ok(()),
            Self::Put { value, .. } => check_value(value),
            Self::CompareAndSwap { expected, new, .. } => {
                expected.iter().chain(new).try_for_each(|value| check_value(value))
            }
        }
    }
}

impl Scan {
    pub(super) fn check(&self) -> Result<(), FormError> {
        for bound in [Some(&self.from), self.to.as_ref()].into_iter().flatten() {
            if bound.len() > KEY_BYTES_MAX {
                return Err(FormError::BoundBytes(bound.len()));
            }
        }
        if self.to.as_ref().is_some_and(|to| *to <= self.from) {
            return Err(FormError::ScanBackwards);
        }
        let is_limited = (1..=SCAN_ENTRIES_MAX).contains(&self.limit);
        if is_limited { Ok(()) } else { Err(FormError::ScanEntries(self.limit)) }
    }
}

pub(super) fn check_key(key: &[u8]) -> Result<(), FormError> {
    let fits = (1..=KEY_BYTES_MAX).contains(&key.len());
    if fits { Ok(()) } else { Err(FormError::KeyBytes(key.len())) }
}

fn check_value(value: &[u8]) -> Result<(), FormError> {
    let fits = value.len() <= VALUE_BYTES_MAX;
    if fits { Ok(()) } else { Err(FormError::ValueBytes(value.len())) }
}
