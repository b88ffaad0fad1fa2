//! The service contract: what is replicated.
//!
//! A [`Service`] is deterministic: the same operations in the same order over the same state give
//! the same outcomes and the same state on every replica. It keeps its state in the [`State`] it is
//! handed, and commits nothing itself: the executor commits state, client sessions and height
//! together.

use crate::{ClientId, Height, LacksVersion, Versions};
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use quorate_crypto::Digest;
use quorate_crypto::mutants::{self, Mutant};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// Most bytes of a reason that goes to a client.
pub const REASON_BYTES_MAX: usize = 256;

/// One operation with what a service may know of its origin.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a> {
    /// Client that signed the request that carried it.
    pub client: ClientId,
    /// The bytes; their meaning is the service's.
    pub bytes: &'a Bytes,
}

/// Result of executing an operation. Applied or refused, it is executed once and takes its place in
/// the order.
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

/// Place and time of a block's execution; the same on every replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockContext {
    /// Height that the block is executed at.
    pub height: Height,
    /// The proposer's clock in milliseconds since the Unix epoch: monotone, and within the drift
    /// that a quorum accepted.
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

    /// Shows these keys to `visit`, in order with their values, until it breaks. `visit` must not
    /// use the state.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn scan(&self, keys: KeyRange<'_>, visit: &mut Visitor<'_>) -> Result<(), StateError>;

    /// What this height adds to the index beside the state: the service puts entries in, and never
    /// reads them when it executes. `None` where the host keeps no index.
    fn index_entries(&mut self) -> Option<&mut IndexEntries> {
        None
    }

    /// The index beside the state, for a reader; `None` where the host keeps none.
    fn index(&self) -> Option<&dyn Index> {
        None
    }
}

/// Entries of an index: keys, each with a value.
pub type IndexEntries = BTreeMap<Vec<u8>, Vec<u8>>;

/// Entries that a service left at each height, by which its reader finds things again. They are
/// under no root, and hosts differ in how far back theirs go.
pub trait Index {
    /// Height after which entries are known; `None` where none are.
    fn known_after(&self) -> Option<Height>;

    /// Shows entries with these keys, in this order, until `visit` breaks. What a later height put
    /// under the same key is shown alone. `visit` must not use the index nor a past state, and is
    /// to be quick: what a host gives up waits for it.
    ///
    /// # Errors
    /// When the index cannot be read.
    fn scan_index(
        &self,
        keys: KeyRange<'_>,
        order: ScanOrder,
        visit: &mut Visitor<'_>,
    ) -> Result<(), StateError>;
}

/// Order in which keys are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum ScanOrder {
    /// From the first on.
    Forward,
    /// From the last on.
    Backward,
}

/// Keys that follow one another in the order of their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRange<'a> {
    /// The first key that may be among them.
    pub from: &'a [u8],
    /// The first key beyond them, if there is one.
    pub to: Option<&'a [u8]>,
}

/// Both ends of a [`KeyRange`], as ordered maps take them.
pub type KeyBounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

impl<'a> KeyRange<'a> {
    /// All keys of the state.
    pub const ALL: KeyRange<'static> = KeyRange { from: &[], to: None };

    /// Bounds as ordered maps take them; `None` where no key is in the range, which they would
    /// refuse.
    #[must_use]
    pub fn bounds(self) -> Option<KeyBounds<'a>> {
        let is_empty = self.to.is_some_and(|to| to <= self.from);
        let to = self.to.map_or(Bound::Unbounded, Bound::Excluded);
        (!is_empty).then_some((Bound::Included(self.from), to))
    }
}

/// Is shown a key with its value, and says whether it wants to see more.
pub type Visitor<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// Answer to a query of the state.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Proven {
    /// The answer; its meaning is the service's.
    pub answer: Bytes,
    /// Evidence, for whoever knows the state's root, that the answer is true of it. The service's
    /// library checks it for clients.
    pub proof: Bytes,
}

/// Work on operations that needs neither state nor order: hosts do it ahead of execution, in
/// parallel, for operations that came with a client's signature. What it finds is a cache that
/// execution looks into.
pub trait Preparation: Send + Sync + std::fmt::Debug {
    /// Works on one operation, whatever its bytes are.
    fn prepare(&self, operation: &Bytes);
}

/// A service's judgement of what clients send, before it is ordered or answered, on any thread:
/// [`Service::admit`] and [`Service::admit_query`] of whatever [`Service::admission`] hands out.
pub trait Admission: Send + Sync + std::fmt::Debug {
    /// As [`Service::admit`].
    ///
    /// # Errors
    /// Why not.
    fn judge(&self, operation: Operation<'_>) -> Result<(), String>;

    /// As [`Service::admit_query`].
    ///
    /// # Errors
    /// Why not.
    fn judge_query(&self, client: ClientId, query: &[u8]) -> Result<(), String>;
}

impl<S: Service + Sync + std::fmt::Debug> Admission for S {
    fn judge(&self, operation: Operation<'_>) -> Result<(), String> {
        self.admit(operation)
    }

    fn judge_query(&self, client: ClientId, query: &[u8]) -> Result<(), String> {
        self.admit_query(client, query)
    }
}

/// Answers queries of a view of the state, on any thread, while execution goes on.
pub trait Reader: Send + Sync + std::fmt::Debug {
    /// Answers a query; the inner error is for whoever asked. `state` is not to be written.
    ///
    /// # Errors
    /// When the state cannot be read.
    fn query(&self, state: &dyn State, query: &[u8]) -> Result<Result<Bytes, String>, StateError>;
}

/// Says of a key of the state if anybody may want the values that it had.
pub type Remembered = fn(&[u8]) -> bool;

/// Service that a committee replicates.
pub trait Service: Send {
    /// Its name in configurations and reports.
    fn name(&self) -> &'static str;

    /// Versions of its rules that it has here. A new one comes beside those before, and nothing
    /// that they make of a block changes ever again.
    fn versions(&self) -> Versions {
        Versions::FIRST
    }

    /// From now on it goes by this one of its versions ([`put_in_force`]): told before anything
    /// else is asked, and for all that is. The next version comes with the next epoch, which has a
    /// service of its own that opens the same state: [`Service::root`] of what an earlier version
    /// left is what it was.
    fn execute_by(&mut self, _version: u64) {}

    /// It may keep so many bytes of its state in memory to spare itself reading them again, beside
    /// what it cannot do without. Told before it opens a state; a service goes by a default of its
    /// own otherwise.
    fn limit_cache(&mut self, _bytes: u64) {}

    /// It keeps in memory what proofs of its last states before the newest need, as many as fit
    /// into so many bytes; none unless it is told. Told before it opens a state.
    fn keep_provable(&mut self, _bytes: u64) {}

    /// Fills a state that nothing was ever executed on. The same on every replica.
    ///
    /// # Errors
    /// When the state cannot be written.
    fn genesis(&mut self, _state: &mut dyn State) -> Result<(), StateError> {
        Ok(())
    }

    /// Work that can be done ahead of execution; `None` if there is none.
    fn preparation(&self) -> Option<Arc<dyn Preparation>> {
        None
    }

    /// Reader that answers queries beside execution; `None` if the service has none.
    fn reader(&self) -> Option<Arc<dyn Reader>> {
        None
    }

    /// Chooses the keys of which a host that keeps a history keeps what they were, for its reader
    /// to be asked of past states. Beside them it may read keys there that never change once they
    /// are set, and no ranges. `None`: nobody asks.
    fn remembered(&self) -> Option<Remembered> {
        None
    }

    /// The state is this now: at the start, and when a snapshot replaced it. A service that keeps
    /// anything of it in memory reads it here.
    ///
    /// # Errors
    /// When the state cannot be read, or is not this service's.
    fn open(&mut self, _state: &dyn State) -> Result<(), StateError> {
        Ok(())
    }

    /// Decides if an operation may take effect at all: independent of state, so that every replica
    /// decides alike. Always asked when an operation is executed, which is what binds, and ahead of
    /// the order where [`Service::admission`] is. The reason for a refusal is shown to the client.
    ///
    /// # Errors
    /// Why not.
    fn admit(&self, operation: Operation<'_>) -> Result<(), String>;

    /// Decides if a client may ask this. Asked where [`Service::admission`] is.
    ///
    /// # Errors
    /// Why not.
    fn admit_query(&self, _client: ClientId, _query: &[u8]) -> Result<(), String> {
        Ok(())
    }

    /// A service like this one, for members whose clients it admits (`clients = "service"`): they
    /// ask it before a request is ordered and before a query is answered. `None`: it is never asked
    /// there, and such members refuse to start.
    fn admission(&self) -> Option<Arc<dyn Admission>> {
        None
    }

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

    /// Returns `true` if the root stands for all that the state holds, read anew: a service that
    /// keeps hashes beside what they are of compares them (★). Asked of a state that one disk alone
    /// vouches for.
    ///
    /// # Errors
    /// When the state cannot be read.
    fn is_whole(&self, _state: &dyn State) -> Result<bool, StateError> {
        Ok(true)
    }

    /// Answers a query of the state as it is, with a proof under its root. The inner error is
    /// for whoever asked.
    ///
    /// # Errors
    /// When the state cannot be read.
    fn query(
        &self,
        _state: &dyn State,
        _question: &[u8],
    ) -> Result<Result<Proven, String>, StateError> {
        Ok(Err(format!("the service '{}' answers no questions", self.name())))
    }
}

/// ★ Has a service execute by this version from now on, before anything else is asked of it:
/// nothing is executed by rules that the program lacks.
///
/// # Errors
/// [`LacksVersion`]; the service is as it was.
pub fn put_in_force(service: &mut dyn Service, version: u64) -> Result<(), LacksVersion> {
    let checked = service.versions().check(service.name(), version);
    if !mutants::active(Mutant::ExecuteByLackedVersion) {
        checked?;
    }
    service.execute_by(version);
    Ok(())
}
