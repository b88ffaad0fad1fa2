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
    /// The whole entry before the block, where it is kept.
    entry: Option<Vec<u8>>,
    now: Option<Digest>,
}

impl Values {
    fn change<'a>(&'a self, key: &'a [u8]) -> Change<'a> {
        Change { key, before: self.before, entry: self.entry.as_deref(), now: self.now }
    }
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
        self.write(key, (before, None), value.map(entries::encode).as_deref())
    }

    /// Sets or removes the value of a key whose `entry` is this, before this block that is. It is
    /// kept, for trees that keep versions; entries are to be small.
    ///
    /// # Errors
    /// When the state cannot be written, or the entry is none.
    #[cfg(feature = "evm")]
    pub(crate) fn replace_entry(
        &mut self,
        key: &[u8],
        entry: Option<Vec<u8>>,
        value: Option<&[u8]>,
    ) -> Result<(), StateError> {
        let before = (hash_in(entry.as_deref())?, entry);
        self.write(key, before, value.map(entries::encode).as_deref())
    }

    /// Gives a key back the entry that it had.
    ///
    /// # Errors
    /// When the state cannot be written, or the entry is none.
    pub(crate) fn restore(&mut self, key: &[u8], entry: Option<&[u8]>) -> Result<(), StateError> {
        self.write(key, (hash_in(entry)?, None), entry)
    }

    fn write(
        &mut self,
        key: &[u8],
        (before, entry): (Option<Digest>, Option<Vec<u8>>),
        written: Option<&[u8]>,
    ) -> Result<(), StateError> {
        let now = hash_in(written)?;
        match self.changed.get_mut(key) {
            Some(values) => values.now = now,
            None => drop(self.changed.insert(key.to_vec(), Values { before, entry, now })),
        }
        entries::set(self.state, key, written)
    }

    /// Has the tree follow what was changed.
    ///
    /// # Errors
    /// When the state cannot be read; the tree is of no use then.
    pub(crate) fn finish(self, tree: &mut Tree) -> Result<(), StateError> {
        let changed: Vec<_> = self.changed.iter().map(|(key, values)| values.change(key)).collect();
        tree.update(self.state, &changed)
    }
}

fn hash_in(entry: Option<&[u8]>) -> Result<Option<Digest>, StateError> {
    Ok(entry.map(entries::decode).transpose()?.map(|(hash, _)| hash))
}
