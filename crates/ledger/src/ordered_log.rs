//! A service that numbers what it is given.

use bytes::Bytes;
use quorate_crypto::{Digest, PartsHasher, hash_parts};
use quorate_types::Versions;
use quorate_types::service::{
    Admission, BlockContext, Operation, Outcome, Service, State, StateError,
};
use std::sync::Arc;

/// The one key of its state: the length and the head.
const HEAD: &[u8] = b"head";

/// An ordered log: every operation is appended to it.
///
/// * **Operation**: 1 byte to [`OrderedLog::OPERATION_BYTES_MAX`], any meaning.
/// * **Result**: its position, from 0, as eight little-endian bytes.
/// * **State**: the length, and the head of a hash chain over the blocks:
///   `head' = H(head, operation, operation, …)`, from zeroes. The operations themselves are not
///   kept here; they are in the blocks.
///
/// Two replicas with one head appended the same operations in the same order, which makes it the
/// service to check the rest of a system with.
///
/// ```
/// use bytes::Bytes;
/// use quorate_crypto::{Digest, IdentitySecret};
/// use quorate_ledger::OrderedLog;
/// use quorate_storage::{Executor, ExecutorConfig, MemoryStore};
/// use quorate_types::machine::Block;
/// use quorate_types::{Body, NetworkId, Height, Outcome, Payload, ReplicaId, Request};
/// use std::sync::Arc;
///
/// // A client signs a request of two operations; a validator seals it into a body; it is decided.
/// let client = IdentitySecret::from_seed([7; 32]);
/// let operations = [Bytes::from("first"), Bytes::from("second")];
/// let request = Request::sign(&client, NetworkId::default(), 0, &operations)?;
/// let body = Arc::new(Body::seal(ReplicaId(0), 0, &[request]));
/// let block = Block {
///     payload: Payload::new(Height(1), 0, vec![body.reference]),
///     bodies: vec![body],
///     decided: Bytes::from("proof"),
/// };
///
/// let store = Box::new(MemoryStore::new());
/// let (mut executor, _) =
///     Executor::open(store, Box::new(OrderedLog), ExecutorConfig::default())?;
/// let executed = executor.execute(&block)?;
///
/// let position = |n: u64| Outcome::Applied(Bytes::copy_from_slice(&n.to_le_bytes()));
/// assert_eq!(executed.answers[0].results[..], [position(0), position(1)]);
/// assert_eq!(executor.query(OrderedLog::length)?, 2);
/// let head = OrderedLog::chain(Digest::ZERO, ["first".as_bytes(), "second".as_bytes()]);
/// assert_eq!(executor.query(OrderedLog::head)?, head);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct OrderedLog;

impl OrderedLog {
    /// Name of the service in a configuration file.
    pub const NAME: &'static str = "ordered-log";
    /// Versions of its rules that are here.
    pub const VERSIONS: Versions = Versions::FIRST;
    /// Most bytes in one operation.
    pub const OPERATION_BYTES_MAX: usize = 64 * 1024;

    /// Number of operations that were appended.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn length(state: &dyn State) -> Result<u64, StateError> {
        Ok(Head::read(state)?.length)
    }

    /// The head of the hash chain over them.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn head(state: &dyn State) -> Result<Digest, StateError> {
        Ok(Head::read(state)?.digest)
    }

    /// The head after one more block's operations.
    #[must_use]
    pub fn chain<'a>(head: Digest, operations: impl IntoIterator<Item = &'a [u8]>) -> Digest {
        let mut hasher = PartsHasher::new("quorate v1 ordered log");
        hasher.part(&head.0);
        operations.into_iter().for_each(|operation| hasher.part(operation));
        hasher.finish()
    }
}

impl Service for OrderedLog {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn versions(&self) -> Versions {
        Self::VERSIONS
    }

    fn admit(&self, operation: Operation<'_>) -> Result<(), String> {
        match operation.bytes.len() {
            0 => Err("an operation carries at least one byte".into()),
            bytes if bytes > Self::OPERATION_BYTES_MAX => Err(format!(
                "an operation carries at most {} bytes, this one {bytes}",
                Self::OPERATION_BYTES_MAX
            )),
            _ => Ok(()),
        }
    }

    fn admission(&self) -> Option<Arc<dyn Admission>> {
        Some(Arc::new(Self))
    }

    fn execute(
        &mut self,
        state: &mut dyn State,
        _: BlockContext,
        operations: &[Operation<'_>],
    ) -> Result<Vec<Outcome>, StateError> {
        if operations.is_empty() {
            return Ok(Vec::new());
        }
        let mut head = Head::read(state)?;
        // One allocation for all positions.
        let last = head.length + operations.len() as u64;
        let positions: Vec<u8> = (head.length..last).flat_map(u64::to_le_bytes).collect();
        let mut positions = Bytes::from(positions);
        let outcomes = operations.iter().map(|_| Outcome::Applied(positions.split_to(8))).collect();
        head.length = last;
        head.digest = Self::chain(head.digest, operations.iter().map(|o| o.bytes.as_ref()));
        head.write(state)?;
        Ok(outcomes)
    }

    fn root(&self, state: &dyn State) -> Result<Digest, StateError> {
        let head = Head::read(state)?;
        Ok(hash_parts("quorate v1 ordered log root", &[&head.length.to_le_bytes(), &head.digest.0]))
    }
}

struct Head {
    length: u64,
    digest: Digest,
}

impl Head {
    fn read(state: &dyn State) -> Result<Self, StateError> {
        let Some(bytes) = state.get(HEAD)? else {
            return Ok(Self { length: 0, digest: Digest::ZERO });
        };
        let bytes: [u8; 40] = bytes
            .try_into()
            .map_err(|_| StateError("the ordered log's head does not decode".into()))?;
        let (length, digest) = bytes.split_at(8);
        Ok(Self {
            length: u64::from_le_bytes(length.try_into().expect("8 bytes")),
            digest: Digest(digest.try_into().expect("32 bytes")),
        })
    }

    fn write(&self, state: &mut dyn State) -> Result<(), StateError> {
        let mut bytes = [0; 40];
        bytes[..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..].copy_from_slice(&self.digest.0);
        state.put(HEAD, &bytes)
    }
}
