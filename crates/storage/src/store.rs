//! Store of executed state: ordered keys and values, changed in transactions.

mod checkpoint;
mod disk;
mod memory;
mod overlay;
mod value_log;

pub use checkpoint::Checkpoint;
pub use disk::DiskStore;
pub use memory::MemoryStore;

use crate::StorageError;
use quorate_types::service::{KeyRange, State, StateError, Visitor};
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

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

    /// Shows these keys as they are committed, in order.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn scan(&self, keys: KeyRange<'_>, visit: &mut Visitor<'_>) -> Result<(), StateError>;

    /// View of what is committed now, durably or not, for reading on another thread. Later commits
    /// do not change it and are not delayed by it.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn view(&mut self) -> Result<Box<dyn View>, StateError>;

    /// Begins to make durable what is committed, and does not wait for it, but for a checkpoint
    /// that is still on its way. Commits and reads go on meanwhile. After a crash all of it is
    /// there, or what the checkpoint before had (★).
    ///
    /// # Errors
    /// When the checkpoint before could not be written.
    fn checkpoint(&mut self) -> Result<Checkpoint, StateError> {
        self.checkpoint_after(Box::new(|| {}))
    }

    /// As [`Store::checkpoint`]; `first` is done before anything of it is durable (★), where the
    /// checkpoint is written.
    ///
    /// # Errors
    /// As [`Store::checkpoint`].
    fn checkpoint_after(&mut self, first: Beforehand) -> Result<Checkpoint, StateError>;

    /// Bytes of memory that changes take which are committed and in no checkpoint yet, at most: a
    /// key that was changed twice counts twice.
    fn pending_bytes(&self) -> u64;

    /// Replaces everything by `entries`, durably: after a crash all of the old is there or all of
    /// the new (★). Waits for a checkpoint that is on its way.
    ///
    /// # Errors
    /// The first error among the entries, which changes nothing; or when the store cannot be
    /// written.
    fn replace(&mut self, entries: &mut Entries<'_>) -> Result<(), StorageError>;
}

/// Work that a checkpoint waits for.
pub type Beforehand = Box<dyn FnOnce() + Send>;

/// Keys and values, each with its own way to fail.
pub type Entries<'a> = dyn Iterator<Item = Result<(Vec<u8>, Vec<u8>), StorageError>> + 'a;

/// A store as it was at one moment.
pub trait View: Send + Sync {
    /// The value under `key`.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError>;

    /// Shows these keys with their values, in order.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn range(&self, keys: KeyRange<'_>, visit: &mut Visitor<'_>) -> Result<(), StateError>;

    /// Shows every key with its value to `visit`, in the order of the keys.
    ///
    /// # Errors
    /// When the store cannot be read, or what `visit` ends with.
    fn scan(&self, visit: &mut Visit<'_>) -> Result<(), StorageError>;
}

/// Is shown a key with its value.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> Result<(), StorageError> + 'a;

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

/// Changes of a transaction: key by key the new value, or its removal.
type Changes = BTreeMap<Arc<[u8]>, Option<Arc<[u8]>>>;

/// A value as whoever asks for it gets it.
fn owned(value: &Option<Arc<[u8]>>) -> Option<Vec<u8>> {
    value.as_ref().map(|value| value.to_vec())
}

/// The part of an ordered map whose keys are these.
fn part<'a, K: Borrow<[u8]> + Ord, T>(
    map: &'a BTreeMap<K, T>,
    keys: KeyRange<'_>,
) -> impl Iterator<Item = (&'a K, &'a T)> {
    let range = keys.bounds().map(|bounds| map.range::<[u8], _>(bounds));
    range.into_iter().flatten()
}

/// Shows what is committed as the changes on top of it leave it. `committed` shows the keys that
/// are committed, in order.
fn scan_changed<'a>(
    changed: impl Iterator<Item = (&'a Arc<[u8]>, &'a Option<Arc<[u8]>>)>,
    committed: impl FnOnce(&mut Visitor<'_>) -> Result<(), StateError>,
    visit: &mut Visitor<'_>,
) -> Result<(), StateError> {
    let mut changed = changed.peekable();
    let mut flow = ControlFlow::Continue(());
    committed(&mut |key, value| {
        while let Some((new, value)) = changed.next_if(|(new, _)| ***new < *key) {
            if let Some(value) = value {
                flow = visit(new, value);
                flow?;
            }
        }
        flow = match changed.next_if(|(new, _)| ***new == *key) {
            Some((_, Some(value))) => visit(key, value),
            Some((_, None)) => ControlFlow::Continue(()),
            None => visit(key, value),
        };
        flow
    })?;
    let mut rest = changed.filter_map(|(key, value)| Some((key, value.as_ref()?)));
    if flow.is_continue() {
        rest.find(|(key, value)| visit(key, value).is_break());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
