//! What updates replaced, for proofs of earlier states.
//!
//! An update puts away each node that it changes, as it was, and each changed key's entry. A node
//! of an earlier state is the one that the first update after that state put away, or the one that
//! stands there still; so is an entry.

use super::Change;
use super::arena::{Node, NodeId};
use quorate_types::service::KeyRange;
use std::collections::VecDeque;

/// Most updates that can be undone: each is one more place in which a node is looked for.
pub(crate) const UPDATES_MAX: usize = 256;

/// The last updates, as many as fit.
#[derive(Debug, Default)]
pub(super) struct UndoLog {
    kept: VecDeque<Undo>,
    bytes: usize,
    bytes_max: usize,
}

/// What one update replaced.
#[derive(Debug)]
pub(super) struct Undo {
    /// The tree's top before it, and the number of keys.
    pub(super) top: Option<NodeId>,
    pub(super) count: u64,
    /// Nodes by their places, which ascend.
    nodes: Box<[(NodeId, Node)]>,
    /// Keys that were changed, which ascend, and the entries that they had.
    entries: Box<[Spot]>,
    /// What these are: keys and entries one after the other.
    content: Box<[u8]>,
    bytes: usize,
}

/// A key in the content of an [`Undo`], with its entry behind it.
#[derive(Clone, Copy, Debug)]
struct Spot {
    start: usize,
    key_bytes: usize,
    /// `None` where the key had no entry.
    entry_bytes: Option<usize>,
}

impl UndoLog {
    /// A log of no updates yet, which takes so many bytes at most; 0: it keeps none.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, ..Self::default() }
    }

    pub(super) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of updates that can be undone.
    #[cfg(any(feature = "evm", test))]
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    /// The last `updates` of them, the oldest first.
    pub(super) fn last(&self, updates: usize) -> impl DoubleEndedIterator<Item = &Undo> {
        self.kept.range(self.kept.len() - updates..)
    }

    /// Keeps one more, and gives up the oldest where they do not fit: all of them, where one alone
    /// is larger.
    pub(super) fn push(&mut self, undo: Undo) {
        self.bytes += undo.bytes;
        self.kept.push_back(undo);
        while self.bytes > self.bytes_max || self.kept.len() > UPDATES_MAX {
            let Some(oldest) = self.kept.pop_front() else { return };
            self.bytes -= oldest.bytes;
        }
    }
}

impl Undo {
    /// What an update replaced of a tree with this top and number of keys: nodes, each once, and
    /// the entries of what it changed.
    pub(super) fn new(
        (top, count): (Option<NodeId>, u64),
        mut nodes: Vec<(NodeId, Node)>,
        changes: &[Change<'_>],
    ) -> Self {
        nodes.sort_unstable_by_key(|(id, _)| *id);
        let mut content = Vec::new();
        let put = |change: &Change<'_>| {
            let spot = Spot {
                start: content.len(),
                key_bytes: change.key.len(),
                entry_bytes: change.entry.map(<[u8]>::len),
            };
            content.extend_from_slice(change.key);
            content.extend_from_slice(change.entry.unwrap_or_default());
            spot
        };
        let entries: Box<[Spot]> = changes.iter().map(put).collect();
        let prefixes = nodes.iter().map(|(_, node)| node.prefix_bytes()).sum::<usize>();
        let bytes = size_of::<Self>()
            + size_of_val(&*nodes)
            + prefixes
            + size_of_val(&*entries)
            + content.len();
        Self { top, count, nodes: nodes.into(), entries, content: content.into(), bytes }
    }

    fn key(&self, spot: &Spot) -> &[u8] {
        &self.content[spot.start..][..spot.key_bytes]
    }

    fn entry_of(&self, spot: &Spot) -> Option<&[u8]> {
        Some(&self.content[spot.start + spot.key_bytes..][..spot.entry_bytes?])
    }

    /// The node that was in a place; `None` where the update left it as it was.
    pub(super) fn node(&self, id: NodeId) -> Option<&Node> {
        let found = self.nodes.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(&self.nodes[found].1)
    }

    /// The entry that a key had; `None` where the update left it as it was.
    #[cfg(feature = "evm")]
    pub(super) fn entry(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        let found = self.entries.binary_search_by_key(&key, |spot| self.key(spot)).ok()?;
        Some(self.entry_of(&self.entries[found]))
    }

    /// The entries that keys had which the update changed.
    pub(super) fn entries(
        &self,
        keys: KeyRange<'_>,
    ) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let below = |end: &[u8]| self.entries.partition_point(|spot| self.key(spot) < end);
        let end = keys.to.map_or(self.entries.len(), below);
        let found = &self.entries[below(keys.from)..end];
        found.iter().map(|spot| (self.key(spot), self.entry_of(spot)))
    }
}
