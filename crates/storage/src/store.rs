//! Where executed state lives: ordered keys and values, changed in transactions.

mod disk;
mod memory;

pub use disk::DiskStore;
pub use memory::MemoryStore;

use quorate_types::service::{State, StateError};
use std::collections::BTreeMap;

/// A store with one writer.
pub trait Store: Send {
    /// Begins the one transaction. Dropped without a commit, it changes nothing.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn begin(&mut self) -> Result<Box<dyn Transaction + '_>, StateError>;

    /// The committed value under `key`.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError>;
}

/// Changes that take effect together. They are seen by [`State::get`] at once.
pub trait Transaction: State {
    /// Makes the changes visible to everyone; `durable` waits until they, and all committed before
    /// them, survive a power cut. Otherwise a crash may take back the latest commits, never a part
    /// of one and never an earlier one alone.
    ///
    /// # Errors
    /// When the store cannot be written. It must not be used again.
    fn commit(self: Box<Self>, durable: bool) -> Result<(), StateError>;
}

/// What a transaction changed: key by key the new value, or its removal.
type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

#[cfg(test)]
mod tests;
