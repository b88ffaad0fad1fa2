//! Writes to the map, noted for its tree.

use super::tree::Change;
use super::{Tree, entries};
use quorate_crypto::Digest;
use quorate_types::service::{State, StateError};
use std::collections::BTreeMap;

/// The state with the entries that a block changed so far.
pub(crate) struct MapWriter<'a> {
    state: &'a mut dyn State,
    /// The changed keys, with the hash of the value if there is one now.
    changed: BTreeMap<Vec<u8>, Option<Digest>>,
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

    /// Sets or removes the value of a key.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub(crate) fn set(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), StateError> {
        self.write(key, value.map(entries::encode).as_deref())
    }

    /// Sets or removes the entry of a key, as [`entries`] encodes it.
    ///
    /// # Errors
    /// When the state cannot be written, or the entry is none.
    pub(crate) fn write(&mut self, key: &[u8], entry: Option<&[u8]>) -> Result<(), StateError> {
        let hash = entry.map(entries::decode).transpose()?.map(|(hash, _)| hash);
        self.changed.insert(key.to_vec(), hash);
        entries::set(self.state, key, entry)
    }

    /// Has the tree follow what was changed.
    ///
    /// # Errors
    /// When the state cannot be read; the tree is of no use then.
    pub(crate) fn finish(self, tree: &mut Tree) -> Result<(), StateError> {
        let changed: Vec<Change<'_>> =
            self.changed.iter().map(|(key, value)| (key.as_slice(), *value)).collect();
        tree.update(self.state, &changed)
    }
}
