//! Writes to the map, noted for its tree.

use super::tree::Change;
use super::{Tree, entries};
use quorate_crypto::Digest;
use quorate_types::service::{State, StateError};
use std::collections::BTreeMap;

/// The state with the entries that a block changed so far.
pub(crate) struct MapWriter<'a> {
    state: &'a mut dyn State,
    changed: BTreeMap<Vec<u8>, Values>,
}

/// Hashes of a key's value, where it has one.
struct Values {
    /// Before the block, as far as it is known.
    before: Option<Digest>,
    now: Option<Digest>,
}

impl<'a> MapWriter<'a> {
    /// Nothing is changed yet.
    pub(crate) fn new(state: &'a mut dyn State) -> Self {
        Self { state, changed: BTreeMap::new() }
    }

    /// The state as it is now.
    pub(crate) fn state(&self) -> &dyn State {
        self.state
    }

    /// Sets or removes the value of a key, whose entry is read for the tree's sake.
    ///
    /// # Errors
    /// When the state cannot be read or written.
    pub(crate) fn set(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), StateError> {
        let before = hash_in(entries::get(self.state, key)?.as_deref())?;
        self.replace(key, before, value)
    }

    /// Sets or removes the value of a key. `before` is the hash of the value that it has, as far as
    /// that is known: the tree reads the state where it is not, or is another.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub(crate) fn replace(
        &mut self,
        key: &[u8],
        before: Option<Digest>,
        value: Option<&[u8]>,
    ) -> Result<(), StateError> {
        self.write(key, before, value.map(entries::encode).as_deref())
    }

    /// Gives a key back the entry that it had.
    ///
    /// # Errors
    /// When the state cannot be written, or the entry is none.
    pub(crate) fn restore(&mut self, key: &[u8], entry: Option<&[u8]>) -> Result<(), StateError> {
        self.write(key, hash_in(entry)?, entry)
    }

    fn write(
        &mut self,
        key: &[u8],
        before: Option<Digest>,
        entry: Option<&[u8]>,
    ) -> Result<(), StateError> {
        let now = hash_in(entry)?;
        match self.changed.get_mut(key) {
            Some(values) => values.now = now,
            None => drop(self.changed.insert(key.to_vec(), Values { before, now })),
        }
        entries::set(self.state, key, entry)
    }

    /// Has the tree follow what was changed.
    ///
    /// # Errors
    /// When the state cannot be read; the tree is of no use then.
    pub(crate) fn finish(self, tree: &mut Tree) -> Result<(), StateError> {
        let changed = self.changed.iter();
        let changed: Vec<Change<'_>> =
            changed.map(|(key, &Values { before, now })| Change { key, before, now }).collect();
        tree.update(self.state, &changed)
    }
}

fn hash_in(entry: Option<&[u8]>) -> Result<Option<Digest>, StateError> {
    Ok(entry.map(entries::decode).transpose()?.map(|(hash, _)| hash))
}
