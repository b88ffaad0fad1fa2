//! Services to replicate.
//!
//! Each is a [`Service`]: deterministic, with its state in the store that the executor hands it.
//! [`by_name`] finds one for a configuration file.
//!
//! * [`Noop`] does nothing: it measures ordering alone.
//! * [`OrderedLog`] numbers what it is given: the smallest service whose state can go wrong.
//! * [`Kv`] keeps values under keys, and proves to clients what it holds.
//! * [`keygen::KeyGeneration`] makes a committee threshold keys that no dealer knows;
//!   `quorate keys dkg` runs it, and no configuration file names it.
//! * [`payments::ReleaseService`] orders the steps by which locked coins of a payment network are
//!   released.
//!
//! # Writing one
//!
//! A service says what may enter the log at all ([`Service::admit`], independent of state),
//! executes operations in order ([`Service::execute`], one [`Outcome`](quorate_types::Outcome) for
//! each), and names its state by a hash ([`Service::root`]). It never reads a clock and draws no
//! randomness: the block's height and time are all it knows of the world. Here is a counter:
//!
//! ```
//! use bytes::Bytes;
//! use quorate_crypto::{Digest, hash};
//! use quorate_storage::{Executor, ExecutorConfig, MemoryStore};
//! use quorate_types::service::{BlockContext, Operation, Outcome, Service, State, StateError};
//!
//! struct Counter;
//!
//! fn count(state: &dyn State) -> Result<u64, StateError> {
//!     let bytes = state.get(b"count")?.unwrap_or_else(|| vec![0; 8]);
//!     Ok(u64::from_le_bytes(bytes.try_into().expect("written below")))
//! }
//!
//! impl Service for Counter {
//!     fn name(&self) -> &'static str {
//!         "counter"
//!     }
//!     fn admit(&self, operation: Operation<'_>) -> Result<(), String> {
//!         if operation.bytes.len() == 1 { Ok(()) } else { Err("one byte: what to add".into()) }
//!     }
//!     fn execute(
//!         &mut self,
//!         state: &mut dyn State,
//!         _: BlockContext,
//!         operations: &[Operation<'_>],
//!     ) -> Result<Vec<Outcome>, StateError> {
//!         let mut count = count(state)?; // read once for the whole block
//!         let mut outcomes = Vec::with_capacity(operations.len());
//!         for operation in operations {
//!             count += u64::from(operation.bytes[0]);
//!             outcomes.push(Outcome::Applied(Bytes::copy_from_slice(&count.to_le_bytes())));
//!         }
//!         state.put(b"count", &count.to_le_bytes())?; // and written once
//!         Ok(outcomes)
//!     }
//!     fn root(&self, state: &dyn State) -> Result<Digest, StateError> {
//!         Ok(hash(&count(state)?.to_le_bytes()))
//!     }
//! }
//!
//! let store = Box::new(MemoryStore::new());
//! let (executor, _) = Executor::open(store, Box::new(Counter), ExecutorConfig::default())?;
//! assert_eq!(executor.query(count)?, 0);
//! # Ok::<(), quorate_storage::StorageError>(())
//! ```

#[cfg(feature = "evm")]
pub mod evm;
pub mod keygen;
pub mod kv;
pub mod map;
mod noop;
mod ordered_log;
pub mod payments;

pub use kv::Kv;
pub use noop::Noop;
pub use ordered_log::OrderedLog;

use quorate_types::Service;

/// The names that [`by_name`] knows.
pub const NAMES: [&str; 3] = [Noop::NAME, OrderedLog::NAME, Kv::NAME];

/// The service with this name, if there is one.
///
/// ```
/// let service = quorate_ledger::by_name("ordered-log").expect("one of NAMES");
/// assert_eq!(service.name(), "ordered-log");
/// assert!(quorate_ledger::by_name("unheard-of").is_none());
/// ```
#[must_use]
pub fn by_name(name: &str) -> Option<Box<dyn Service>> {
    match name {
        Noop::NAME => Some(Box::new(Noop)),
        OrderedLog::NAME => Some(Box::new(OrderedLog)),
        Kv::NAME => Some(Box::new(Kv::default())),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
