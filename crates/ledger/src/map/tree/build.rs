//! A tree out of keys that come in order.

use super::arena::{Arena, Node};
use crate::map::bits::difference;
use quorate_crypto::Digest;

/// Joins neighbours as soon as nothing can come between them: what waits is a way down the tree.
pub(crate) struct Builder<'a> {
    arena: &'a mut Arena,
    /// Left children whose right siblings are not complete, with the bits of their parents, which
    /// increase.
    open: Vec<(Node, u16)>,
    last: Option<Node>,
    last_key: Vec<u8>,
}

impl<'a> Builder<'a> {
    /// A tree to which no key was added yet.
    pub(crate) fn new(arena: &'a mut Arena) -> Self {
        Self { arena, open: Vec::new(), last: None, last_key: Vec::new() }
    }

    /// Adds the next key, in order.
    pub(crate) fn push(&mut self, key: &[u8], value: &Digest) {
        if let Some(last) = self.last.replace(Node::leaf(key, value)) {
            let bit = difference(&self.last_key, key).expect("a state's keys ascend");
            let left = self.close(last, bit);
            self.open.push((left, bit));
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
    }

    /// Node above all keys, not in the arena yet; `None` when there were none.
    pub(crate) fn finish(mut self) -> Option<Node> {
        let last = self.last.take()?;
        Some(self.close(last, 0))
    }

    /// Joins `right` with everything open whose parent stands below `bit`.
    fn close(&mut self, mut right: Node, bit: u16) -> Node {
        while let Some((left, at)) = self.open.pop_if(|(_, at)| *at >= bit) {
            right = self.arena.join(at, left, right);
        }
        right
    }
}
