//! The service contract: what is replicated.
//!
//! A [`Service`] is deterministic: the same operations in the same order over the same state give the
//! same outcomes and the same state on every replica. It keeps its state in the [`State`] it is
//! handed, and commits nothing itself: the executor commits state, client sessions and height together.

use crate::{ClientId, Height};
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use quorate_crypto::Digest;

/// One operation with what a service may know of its origin.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a> {
    /// Who signed the request that carried it.
    pub client: ClientId,
    /// The bytes; their meaning is the service's.
    pub bytes: &'a Bytes,
}

/// What an operation came to. Both ways it is executed, once, and takes its place in the order.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Outcome {
    /// It took effect, with this result.
    Applied(Bytes),
    /// It was invalid and changed nothing; the result says why.
    Refused(Bytes),
}

impl Outcome {
    /// The result or the reason.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        match self {
            Self::Applied(bytes) | Self::Refused(bytes) => bytes,
        }
    }
}

/// Where and when a block executes; the same on every replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockContext {
    /// The block's height.
    pub height: Height,
    /// The proposer's clock in milliseconds since the Unix epoch: monotone, and within the drift that
    /// a quorum accepted.
    pub proposed_at_ms: u64,
}

/// The environment failed: a store could not read or write. The replica stops.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the state store failed: {0}")]
pub struct StateError(pub String);

/// A service's view of its state inside one transaction: ordered keys and values.
pub trait State {
    /// The value under `key`.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError>;

    /// Sets the value under `key`.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StateError>;

    /// Removes `key`.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn delete(&mut self, key: &[u8]) -> Result<(), StateError>;
}

/// What a committee replicates.
pub trait Service: Send {
    /// Its name in configurations and reports.
    fn name(&self) -> &'static str;

    /// Whether an operation may enter the log at all: independent of state, so that every replica
    /// decides alike. The reason is shown to the client.
    ///
    /// # Errors
    /// Why not.
    fn admit(&self, operation: Operation<'_>) -> Result<(), String>;

    /// Executes a block's operations in order; exactly one outcome for each.
    ///
    /// # Errors
    /// Only when the state cannot be read or written; an invalid operation is an
    /// [`Outcome::Refused`].
    fn execute(
        &mut self,
        state: &mut dyn State,
        block: BlockContext,
        operations: &[Operation<'_>],
    ) -> Result<Vec<Outcome>, StateError>;

    /// The hash that stands for the whole state.
    ///
    /// # Errors
    /// When the state cannot be read.
    fn root(&self, state: &dyn State) -> Result<Digest, StateError>;
}
