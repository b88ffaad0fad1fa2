//! The undecided blocks: a tree whose root is the last decided one.
//!
//! A block is in the tree only if its chain down to the root is: whoever asks for a path gets all
//! of it. Blocks whose parent is missing wait outside, a bounded number of them.

use crate::leader::LeaderReputation;
use quorate_types::{Anchor, BlockId, BodyRef, Height, Payload, View};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Fields of a block that the tree must know.
pub trait TreeBlock {
    /// Id of the block, its hash.
    fn id(&self) -> BlockId;
    /// Id of the block that it extends.
    fn parent(&self) -> BlockId;
    /// View of the block that it extends.
    fn parent_view(&self) -> View;
    /// View that it was proposed in.
    fn view(&self) -> View;
    /// Payload that it orders.
    fn payload(&self) -> &Payload;
    /// The reputation of leaders after it.
    fn reputation(&self) -> &LeaderReputation;
}

/// The last decided block, as far as the tree needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Id of the block.
    pub id: BlockId,
    /// View that it was proposed in.
    pub view: View,
    /// Its parent's view and id; the first block's own.
    pub parent: (View, BlockId),
    /// Height that it decides.
    pub height: Height,
    /// Proposer's clock, in milliseconds since the Unix epoch.
    pub proposed_at_ms: u64,
    /// The reputation of leaders after it.
    pub reputation: LeaderReputation,
}

impl Root {
    /// The block before the first of an epoch that begins after this height.
    #[must_use]
    pub fn genesis(id: BlockId, anchor: Anchor) -> Self {
        let view = View(0);
        let reputation = LeaderReputation::new();
        let Anchor { height, proposed_at_ms } = anchor;
        Self { id, view, parent: (view, id), height, proposed_at_ms, reputation }
    }

    /// The root that a decided block becomes.
    #[must_use]
    pub fn of(block: &impl TreeBlock) -> Self {
        let header = block.payload().header;
        Self {
            id: block.id(),
            view: block.view(),
            parent: (block.parent_view(), block.parent()),
            height: header.height,
            proposed_at_ms: header.proposed_at_ms,
            reputation: block.reputation().clone(),
        }
    }
}

/// The tree. `B` is the protocol's block.
#[derive(Debug)]
pub struct BlockTree<B> {
    root: Root,
    blocks: BTreeMap<BlockId, Arc<B>>,
}

impl<B: TreeBlock> BlockTree<B> {
    /// A tree of its root alone.
    #[must_use]
    pub fn new(root: Root) -> Self {
        Self { root, blocks: BTreeMap::new() }
    }

    /// The last decided block.
    #[must_use]
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Number of undecided blocks that it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Returns `true` if it holds no undecided block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns `true` if the block is the root or in the tree.
    #[must_use]
    pub fn contains(&self, id: BlockId) -> bool {
        id == self.root.id || self.blocks.contains_key(&id)
    }

    /// An undecided block by its id.
    #[must_use]
    pub fn get(&self, id: BlockId) -> Option<&Arc<B>> {
        self.blocks.get(&id)
    }

    /// The height and stamp of the root or of an undecided block.
    #[must_use]
    pub fn position(&self, id: BlockId) -> Option<(Height, u64)> {
        if id == self.root.id {
            return Some((self.root.height, self.root.proposed_at_ms));
        }
        let header = self.blocks.get(&id)?.payload().header;
        Some((header.height, header.proposed_at_ms))
    }

    /// The reputation of leaders after the root or an undecided block.
    #[must_use]
    pub fn reputation(&self, id: BlockId) -> Option<&LeaderReputation> {
        if id == self.root.id {
            return Some(&self.root.reputation);
        }
        self.blocks.get(&id).map(|block| block.reputation())
    }

    /// The view and id of the parent of the root or of an undecided block.
    #[must_use]
    pub fn parent_of(&self, id: BlockId) -> Option<(View, BlockId)> {
        if id == self.root.id {
            return Some(self.root.parent);
        }
        self.blocks.get(&id).map(|block| (block.parent_view(), block.parent()))
    }

    /// Returns `true` if `id` is a descendant of a block of this view, or that block. Blocks before
    /// the root were decided, and everything here descends from them.
    #[must_use]
    pub fn extends(&self, id: BlockId, ancestor: (View, BlockId)) -> bool {
        let (view, ancestor) = ancestor;
        let is_here = |path: Vec<Arc<B>>| path.iter().any(|block| block.id() == ancestor);
        view <= self.root.view || self.path(id).is_some_and(is_here)
    }

    /// Adds a block whose parent is here.
    ///
    /// # Panics
    /// When the parent is not here: the caller asked [`BlockTree::contains`].
    pub fn insert(&mut self, block: Arc<B>) {
        assert!(self.contains(block.parent()), "a block is inserted after its parent");
        self.blocks.insert(block.id(), block);
    }

    /// The blocks after the root up to and including `id`, oldest first; empty for the root itself,
    /// `None` when `id` is not here. Walks ids, never views.
    #[must_use]
    pub fn path(&self, id: BlockId) -> Option<Vec<Arc<B>>> {
        let mut path = Vec::new();
        let mut at = id;
        while at != self.root.id {
            let block = self.blocks.get(&at)?;
            path.push(Arc::clone(block));
            at = block.parent();
        }
        path.reverse();
        Some(path)
    }

    /// The undecided ancestors of `tips` and the tips themselves, each once, parents first.
    #[must_use]
    pub fn chains(&self, tips: &[BlockId]) -> Vec<Arc<B>> {
        let mut seen = BTreeSet::new();
        let paths = tips.iter().filter_map(|tip| self.path(*tip));
        paths.flatten().filter(|block| seen.insert(block.id())).collect()
    }

    /// Makes a block of the tree the root and drops everything that does not descend from it.
    pub fn decide(&mut self, id: BlockId) {
        let Some(block) = self.blocks.remove(&id) else {
            return;
        };
        self.root = Root::of(block.as_ref());
        self.drop_strangers();
    }

    /// Starts again from a root that was decided elsewhere.
    pub fn reset(&mut self, root: Root) {
        self.root = root;
        self.blocks.clear();
    }

    /// Drops blocks of views before `horizon`, but none in `keep` and none of their ancestors.
    pub fn prune(&mut self, horizon: View, keep: &[BlockId]) {
        let kept: BTreeSet<BlockId> = self.chains(keep).iter().map(|block| block.id()).collect();
        self.blocks.retain(|id, block| block.view() >= horizon || kept.contains(id));
        self.drop_strangers();
    }

    /// All undecided blocks, in no order of views.
    pub fn blocks(&self) -> impl Iterator<Item = &Arc<B>> {
        self.blocks.values()
    }

    /// The bodies that undecided blocks order.
    pub fn bodies(&self) -> impl Iterator<Item = &BodyRef> {
        self.blocks.values().flat_map(|block| &block.payload().bodies)
    }

    /// Returns `true` if any undecided block orders something.
    #[must_use]
    pub fn has_payload(&self) -> bool {
        self.blocks.values().any(|block| !block.payload().is_empty())
    }

    /// Drops what no longer descends from the root.
    fn drop_strangers(&mut self) {
        let rooted: Vec<BlockId> =
            self.blocks.keys().copied().filter(|id| self.path(*id).is_some()).collect();
        self.blocks.retain(|id, _| rooted.binary_search(id).is_ok());
    }
}

#[cfg(test)]
mod tests;
