//! The tree as it was some updates ago.

use super::arena::{Node, NodeId};
use super::undo::Undo;
use super::{Leaf, Tree};
use crate::map::{entries, hashes};
use quorate_crypto::Digest;
use quorate_types::service::{KeyRange, State, StateError};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// The tree after one of its updates. Each question is put with the state as it is now, whichever
/// version is asked of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version<'a> {
    pub(super) tree: &'a Tree,
    /// Updates since.
    pub(super) updates: usize,
}

impl<'a> Version<'a> {
    /// What the updates since replaced, the first of them first.
    fn undone(&self) -> impl DoubleEndedIterator<Item = &'a Undo> {
        self.tree.undo.last(self.updates)
    }

    /// Those of them that may have replaced something of a place, or a key of the bucket there:
    /// none where the place is as it was.
    fn undone_at(&self, id: NodeId) -> impl DoubleEndedIterator<Item = &'a Undo> {
        let has_changed = self.tree.arena.has_changed(id, self.updates);
        has_changed.then(|| self.undone()).into_iter().flatten()
    }

    pub(super) fn top(&self) -> Option<NodeId> {
        self.undone().next().map_or(self.tree.top, |undo| undo.top)
    }

    /// Number of keys.
    pub(super) fn count(&self) -> u64 {
        self.undone().next().map_or(self.tree.count, |undo| undo.count)
    }

    /// The hash that stands for all keys and values.
    pub(crate) fn root(&self) -> Digest {
        let top = self.top().map_or(Digest::ZERO, |top| self.node(top).hash());
        hashes::root(self.count(), &top)
    }

    /// The node that was in a place.
    pub(super) fn node(&self, id: NodeId) -> &'a Node {
        let replaced = self.undone_at(id).find_map(|undo| undo.node(id));
        replaced.unwrap_or_else(|| self.tree.arena.node(id))
    }

    /// The entry of a key.
    ///
    /// # Errors
    /// When the state cannot be read.
    #[cfg(feature = "evm")]
    pub(crate) fn entry(
        &self,
        state: &dyn State,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, StateError> {
        let Some((bucket, None)) = self.reach(key) else { return Ok(None) };
        match self.undone_at(bucket).find_map(|undo| undo.entry(key)) {
            Some(entry) => Ok(entry.map(<[u8]>::to_vec)),
            None => entries::get(state, key),
        }
    }

    /// A bucket's keys, in order; at least one.
    ///
    /// # Errors
    /// When the state cannot be read or is not the one that the tree knows.
    pub(super) fn leaves(&self, state: &dyn State, id: NodeId) -> Result<Vec<Leaf>, StateError> {
        let Node::Bucket(bucket) = self.node(id) else { unreachable!("a bucket was reached") };
        let to = bucket.prefix.end();
        let keys = KeyRange { from: bucket.prefix.lowest(), to: to.as_deref() };
        let mut values = BTreeMap::new();
        entries::scan(state, keys, &mut |key, value, _| {
            values.insert(key.to_vec(), value);
            ControlFlow::Continue(())
        })?;
        for (key, entry) in self.undone_at(id).rev().flat_map(|undo| undo.entries(keys)) {
            match entry {
                Some(entry) => values.insert(key.to_vec(), entries::decode(entry)?.0),
                None => values.remove(key),
            };
        }
        let are_known = values.len() == usize::from(bucket.count);
        let leaf = |(key, value)| Leaf { key, value };
        if are_known { Ok(values.into_iter().map(leaf).collect()) } else { Err(entries::damaged()) }
    }
}
