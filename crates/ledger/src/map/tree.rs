//! The tree over all keys: an ordered binary Patricia trie, hashed.
//!
//! An inner node stands at the first [bit](super::bits) in which the keys below it differ: those
//! with 0 are on its left, those with 1 on its right. The shape follows from the keys alone, so
//! states that hold the same have the same root, whatever their history.
//!
//! ```text
//! leaf  = H(length of key ‖ key ‖ H(value))      inner = H under its position (left ‖ right)
//! root  = H(number of keys ‖ top)
//! ```
//!
//! # What is in memory
//!
//! The upper part alone. The largest subtrees of at most [`BUCKET_KEYS_MAX`] keys are *buckets*:
//! memory holds the bits that their keys have in common, their number and their hash. When one
//! is read, for a proof or because its keys become others, its keys are read from the state in one
//! scan. Buckets are a cache: the hashes do not depend on them.
//!
//! Beside a bucket are its [`leaves`], 52 bytes a key, as long as those of all buckets stay
//! below a number of bytes. With them a value that is replaced is followed without reading the
//! state: one leaf is hashed, and the nodes of the bucket. Whoever replaced it says which value was
//! there before, and the leaf shows it. So is a key that is new, where the bucket has room for it
//! and its neighbour differs within the first bytes.
//!
//! # What was
//!
//! A tree that keeps [versions](Tree::keep_versions) puts away what each update replaces of it
//! ([`undo`]): proofs are of the newest state, or of one some updates ago ([`Version`]).
//!
//! # Depth
//!
//! Keys that extend one another bit by bit make a chain of up to 9,216 inner nodes: nine for each
//! byte of a longest key. Every walk is a loop with a stack on the heap.

mod arena;
mod build;
mod leaves;
mod prove;
mod undo;
mod version;

use super::bits::bit;
use super::entries;
use arena::{Arena, Inner, Node, NodeId};
use build::Builder;
use quorate_crypto::Digest;
use quorate_types::service::{KeyRange, State, StateError};
use std::ops::ControlFlow;
use undo::{Undo, UndoLog};

#[cfg(any(feature = "evm", test))]
pub(crate) use undo::UPDATES_MAX;
pub(crate) use version::Version;

/// Most keys of a bucket. More make memory smaller and updates slower: ADR 19.
pub(crate) const BUCKET_KEYS_MAX: u8 = 16;

/// Most bytes of leaves that are kept unless told otherwise: those of 5.1 million keys.
pub(crate) const LEAVES_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The tree. What it stands for is in the [`State`] that is handed to it each time.
#[derive(Debug)]
pub(crate) struct Tree {
    arena: Arena,
    top: Option<NodeId>,
    count: u64,
    undo: UndoLog,
}

/// A changed key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change<'a> {
    /// The key.
    pub(crate) key: &'a [u8],
    /// Hash of the value that it had; `None` if it had none, or nobody knows. A wrong one costs a
    /// reading of the state and changes nothing.
    pub(crate) before: Option<Digest>,
    /// Entry that it had, if it had one; of use to a tree that keeps versions alone, to which it
    /// must be right.
    pub(crate) entry: Option<&'a [u8]>,
    /// Hash of the value that it has now, if it has one.
    pub(crate) now: Option<Digest>,
}

/// A key with its value's hash.
#[derive(Clone, Debug)]
struct Leaf {
    key: Vec<u8>,
    value: Digest,
}

impl Default for Tree {
    fn default() -> Self {
        Self::new(LEAVES_BYTES_MAX)
    }
}

impl Tree {
    /// A tree without keys, which keeps so many bytes of leaves at most.
    pub(crate) fn new(leaves_bytes_max: usize) -> Self {
        Self { arena: Arena::new(leaves_bytes_max), top: None, count: 0, undo: UndoLog::default() }
    }

    /// Keeps so many bytes of leaves at most from now on.
    pub(crate) fn limit_leaves(&mut self, bytes: u64) {
        self.arena.limit_leaves(usize::try_from(bytes).unwrap_or(usize::MAX));
    }

    /// Keeps what the last updates replaced from now on, as many as fit into so many bytes: 0 for
    /// none. What is kept so far is forgotten.
    pub(crate) fn keep_versions(&mut self, bytes_max: usize) {
        self.undo = UndoLog::new(bytes_max);
        self.arena.want_replaced(bytes_max > 0);
    }

    /// The tree as it is.
    pub(crate) fn newest(&self) -> Version<'_> {
        Version { tree: self, updates: 0 }
    }

    /// The tree as it was so many updates ago, if that is kept.
    #[cfg(any(feature = "evm", test))]
    pub(crate) fn version(&self, updates: usize) -> Option<Version<'_>> {
        (updates <= self.undo.len()).then_some(Version { tree: self, updates })
    }

    /// Number of updates that can be undone.
    #[cfg(any(feature = "evm", test))]
    pub(crate) fn versions(&self) -> usize {
        self.undo.len()
    }

    /// The tree over what is in the state, read in one scan. It keeps as many leaves and bytes of
    /// versions as this one, and no version yet.
    ///
    /// # Errors
    /// When the state cannot be read, or holds what this service did not write.
    pub(crate) fn reopened(&self, state: &dyn State) -> Result<Self, StateError> {
        let mut tree = Self::new(self.arena.leaves_bytes_max());
        let mut builder = Builder::new(&mut tree.arena);
        entries::scan(state, KeyRange::ALL, &mut |key, value, _| {
            tree.count += 1;
            builder.push(key, &value);
            ControlFlow::Continue(())
        })?;
        let top = builder.finish();
        tree.top = top.map(|node| tree.arena.add(node));
        tree.arena.shrink_to_fit();
        tree.keep_versions(self.undo.bytes_max());
        Ok(tree)
    }

    /// The hash that stands for all keys and values.
    pub(crate) fn root(&self) -> Digest {
        self.newest().root()
    }

    /// Number of keys in the tree.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Bytes of memory, without what the allocator adds.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.arena.memory_bytes() + self.undo.bytes()
    }

    /// Follows a state that has changed in these keys, which ascend. Each bucket is read once at
    /// most, each inner node above a change hashed once.
    ///
    /// # Errors
    /// When the state cannot be read or is not the one that the tree knew; the tree is of no use
    /// then.
    pub(crate) fn update(
        &mut self,
        state: &dyn State,
        changes: &[Change<'_>],
    ) -> Result<(), StateError> {
        let before = (self.top, self.count);
        self.arena.begin_update();
        self.follow_all(state, changes)?;
        self.settle();
        if let Some(replaced) = self.arena.take_replaced() {
            self.undo.push(Undo::new(before, replaced, changes));
        }
        Ok(())
    }

    fn follow_all(
        &mut self,
        state: &dyn State,
        mut changes: &[Change<'_>],
    ) -> Result<(), StateError> {
        while let Some((first, rest)) = changes.split_first() {
            changes = match self.newest().reach(first.key) {
                None => {
                    self.plant(first);
                    rest
                }
                Some((bucket, None)) => {
                    let prefix = &self.arena.bucket(bucket).prefix;
                    let is_here = |change: &&Change<'_>| prefix.departure(change.key).is_none();
                    let with = rest.iter().take_while(is_here).count();
                    let (here, rest) = changes.split_at(1 + with);
                    self.follow(state, here)?;
                    rest
                }
                Some((_, Some(position))) => {
                    self.insert(first, position);
                    rest
                }
            };
        }
        Ok(())
    }

    /// The first node on the key's way that stands below `position`. Those above are stale from now
    /// on.
    fn touch(&mut self, key: &[u8], position: u16) -> NodeId {
        let mut at = self.top.expect("a node was reached");
        while let Node::Inner(inner) = self.arena.node(at)
            && inner.bit < position
        {
            let below = inner.child(key);
            self.arena.touch(at);
            at = below;
        }
        at
    }

    /// Adds the first key.
    fn plant(&mut self, change: &Change<'_>) {
        self.top = change.now.map(|value| self.arena.add(Node::leaf(change.key, &value)));
        self.count = u64::from(self.top.is_some());
    }

    /// Adds a key, if it has a value, which departs at `position` from those beside it.
    fn insert(&mut self, change: &Change<'_>, position: u16) {
        let Change { key, now: Some(value), .. } = change else { return };
        let at = self.touch(key, position);
        let beside = self.arena.put(at, Node::Vacant);
        let (beside, new) = (self.arena.add(beside), self.arena.add(Node::leaf(key, value)));
        let children = if bit(key, position) { [beside, new] } else { [new, beside] };
        let inner = Inner { bit: position, stale: true, changed: 0, children, hash: Digest::ZERO };
        self.arena.put(at, Node::Inner(inner));
        self.count += 1;
    }

    /// Follows changes that are all of one bucket's keys.
    fn follow(&mut self, state: &dyn State, changes: &[Change<'_>]) -> Result<(), StateError> {
        let at = self.touch(changes[0].key, u16::MAX);
        match self.arena.follow(at, changes) {
            Some(new) => self.count += new,
            None => self.reread(state, at)?,
        }
        Ok(())
    }

    /// Makes a bucket again out of what the state holds for it now.
    fn reread(&mut self, state: &dyn State, at: NodeId) -> Result<(), StateError> {
        let prefix = &self.arena.bucket(at).prefix;
        let before = u64::from(self.arena.bucket(at).count);
        let (from, to) = (prefix.lowest().to_vec(), prefix.end());
        let keys = KeyRange { from: &from, to: to.as_deref() };
        let mut builder = Builder::new(&mut self.arena);
        let mut count = 0;
        entries::scan(state, keys, &mut |key, value, _| {
            count += 1;
            builder.push(key, &value);
            ControlFlow::Continue(())
        })?;
        match builder.finish() {
            Some(node) => drop(self.arena.put(at, node)),
            None => self.arena.empty(at),
        }
        self.count = (self.count + count).checked_sub(before).ok_or_else(entries::damaged)?;
        Ok(())
    }

    /// Hashes what is stale, children first, and makes buckets as large as they may be.
    fn settle(&mut self) {
        let mut below: Vec<(NodeId, bool)> = self.top.map(|top| (top, false)).into_iter().collect();
        while let Some((id, children_are_settled)) = below.pop() {
            match self.arena.node(id) {
                Node::Inner(inner) if inner.stale => {
                    if children_are_settled {
                        self.arena.settle(id);
                    } else {
                        below.push((id, true));
                        below.extend(inner.children.map(|child| (child, false)));
                    }
                }
                Node::Inner(_) | Node::Bucket(_) | Node::Vacant => {}
            }
        }
        if let Some(top) = self.top
            && self.arena.is_empty(top)
        {
            self.arena.take(top);
            self.top = None;
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::expected_root;
