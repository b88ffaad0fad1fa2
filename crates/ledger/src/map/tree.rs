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
//! changes or is proven, its keys are read from the state in one scan. Buckets are a cache: the
//! hashes do not depend on them.
//!
//! # Depth
//!
//! Keys that extend one another bit by bit make a chain of up to 9,216 inner nodes: nine for each
//! byte of a longest key. Every walk is a loop with a stack on the heap.

mod build;
mod prove;

use super::bits::{Prefix, bit};
use super::{entries, hashes};
use build::Builder;
use quorate_crypto::Digest;
use quorate_types::service::{KeyRange, State, StateError};
use std::mem;
use std::ops::ControlFlow;

/// Most keys of a bucket. More make memory smaller and updates slower: ADR 19.
pub(crate) const BUCKET_KEYS_MAX: u8 = 16;

/// The tree. What it stands for is in the [`State`] that is handed to it each time.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    arena: Arena,
    top: Option<NodeId>,
    count: u64,
}

/// A changed key, with the hash of its value if it has one now.
pub(crate) type Change<'a> = (&'a [u8], Option<Digest>);

/// A key with its value's hash.
#[derive(Clone, Debug)]
struct Leaf {
    key: Vec<u8>,
    value: Digest,
}

type NodeId = u32;

#[derive(Debug)]
enum Node {
    Inner(Inner),
    Bucket(Bucket),
    /// A place that is not part of the tree.
    Vacant,
}

#[derive(Debug)]
struct Inner {
    bit: u16,
    /// Something below changed, and the hash did not follow yet.
    stale: bool,
    children: [NodeId; 2],
    hash: Digest,
}

#[derive(Debug)]
struct Bucket {
    /// Bits that the keys have in common; while an update is under way, those that they had before.
    prefix: Prefix,
    /// 0 only while an update is under way.
    count: u8,
    hash: Digest,
}

impl Tree {
    /// The tree over what is in the state, read in one scan.
    ///
    /// # Errors
    /// When the state cannot be read, or holds what this service did not write.
    pub(crate) fn open(state: &dyn State) -> Result<Self, StateError> {
        let mut tree = Self::default();
        let mut builder = Builder::new(&mut tree.arena);
        entries::scan(state, KeyRange::ALL, &mut |key, value, _| {
            tree.count += 1;
            builder.push(key, &value);
            ControlFlow::Continue(())
        })?;
        let top = builder.finish();
        tree.top = top.map(|node| tree.arena.add(node));
        tree.arena.nodes.shrink_to_fit();
        Ok(tree)
    }

    /// The hash that stands for all keys and values.
    pub(crate) fn root(&self) -> Digest {
        let top = self.top.map_or(Digest::ZERO, |top| self.arena.hash(top));
        hashes::root(self.count, &top)
    }

    /// Number of keys in the tree.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Bytes of memory, without what the allocator adds.
    pub(crate) fn memory_bytes(&self) -> usize {
        let prefixes = self.arena.nodes.iter().map(|node| match node {
            Node::Bucket(bucket) => bucket.prefix.heap_bytes(),
            Node::Inner(_) | Node::Vacant => 0,
        });
        self.arena.nodes.capacity() * size_of::<Node>()
            + self.arena.vacant.capacity() * size_of::<NodeId>()
            + prefixes.sum::<usize>()
    }

    /// Follows a state that has changed in these keys, which ascend. Each bucket is read once, each
    /// inner node above a change hashed once.
    ///
    /// # Errors
    /// When the state cannot be read or is not the one that the tree knew; the tree is of no use
    /// then.
    pub(crate) fn update(
        &mut self,
        state: &dyn State,
        mut changes: &[Change<'_>],
    ) -> Result<(), StateError> {
        while let Some(((key, value), rest)) = changes.split_first() {
            changes = match self.reach(key) {
                None => {
                    self.plant(key, value.as_ref());
                    rest
                }
                Some((bucket, None)) => {
                    let prefix = &self.arena.bucket(bucket).prefix;
                    let with = rest.iter().take_while(|(key, _)| prefix.departure(key).is_none());
                    let with = with.count();
                    self.reread(state, key)?;
                    &rest[with..]
                }
                Some((_, Some(position))) => {
                    if let Some(value) = value {
                        self.insert(key, value, position);
                    }
                    rest
                }
            };
        }
        self.settle();
        Ok(())
    }

    /// The bucket that the key's bits lead to, and where the key departs from what is there, if it
    /// does.
    fn reach(&self, key: &[u8]) -> Option<(NodeId, Option<u16>)> {
        let mut at = self.top?;
        while let Node::Inner(inner) = self.arena.node(at) {
            at = inner.child(key);
        }
        Some((at, self.arena.bucket(at).prefix.departure(key)))
    }

    /// The first node on the key's way that stands below `position`. Those above are stale from now
    /// on.
    fn touch(&mut self, key: &[u8], position: u16) -> NodeId {
        let mut at = self.top.expect("a node was reached");
        while let Node::Inner(inner) = self.arena.node_mut(at)
            && inner.bit < position
        {
            inner.stale = true;
            at = inner.child(key);
        }
        at
    }

    /// Adds the first key.
    fn plant(&mut self, key: &[u8], value: Option<&Digest>) {
        self.top = value.map(|value| self.arena.add(Node::leaf(key, value)));
        self.count = u64::from(self.top.is_some());
    }

    /// A new key, which departs at `position` from those beside it.
    fn insert(&mut self, key: &[u8], value: &Digest, position: u16) {
        let at = self.touch(key, position);
        let beside = mem::replace(self.arena.node_mut(at), Node::Vacant);
        let (beside, new) = (self.arena.add(beside), self.arena.add(Node::leaf(key, value)));
        let children = if bit(key, position) { [beside, new] } else { [new, beside] };
        let inner = Inner { bit: position, stale: true, children, hash: Digest::ZERO };
        *self.arena.node_mut(at) = Node::Inner(inner);
        self.count += 1;
    }

    /// Makes the bucket of `key` again out of what the state holds for it now.
    fn reread(&mut self, state: &dyn State, key: &[u8]) -> Result<(), StateError> {
        let at = self.touch(key, u16::MAX);
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
        match (builder.finish(), self.arena.node_mut(at)) {
            (Some(node), place) => *place = node,
            (None, Node::Bucket(bucket)) => bucket.count = 0,
            (None, Node::Inner(_) | Node::Vacant) => unreachable!("a bucket was reached"),
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

impl Inner {
    fn child(&self, key: &[u8]) -> NodeId {
        self.children[usize::from(bit(key, self.bit))]
    }
}

impl Node {
    /// A bucket of one key.
    fn leaf(key: &[u8], value: &Digest) -> Self {
        Self::Bucket(Bucket {
            prefix: Prefix::whole(key),
            count: 1,
            hash: hashes::leaf(key, value),
        })
    }

    fn hash(&self) -> Digest {
        match self {
            Self::Inner(Inner { hash, .. }) | Self::Bucket(Bucket { hash, .. }) => *hash,
            Self::Vacant => unreachable!("not part of the tree"),
        }
    }
}

/// All nodes, by their place.
#[derive(Debug, Default)]
struct Arena {
    nodes: Vec<Node>,
    vacant: Vec<NodeId>,
}

impl Arena {
    fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id as usize]
    }

    fn bucket(&self, id: NodeId) -> &Bucket {
        match self.node(id) {
            Node::Bucket(bucket) => bucket,
            Node::Inner(_) | Node::Vacant => unreachable!("a bucket was reached"),
        }
    }

    fn hash(&self, id: NodeId) -> Digest {
        self.node(id).hash()
    }

    fn add(&mut self, node: Node) -> NodeId {
        if let Some(id) = self.vacant.pop() {
            *self.node_mut(id) = node;
            return id;
        }
        self.nodes.push(node);
        NodeId::try_from(self.nodes.len() - 1).expect("memory holds fewer")
    }

    fn take(&mut self, id: NodeId) -> Node {
        self.vacant.push(id);
        mem::replace(self.node_mut(id), Node::Vacant)
    }

    /// Returns `true` if a bucket lost all its keys.
    fn is_empty(&self, id: NodeId) -> bool {
        matches!(self.node(id), Node::Bucket(bucket) if bucket.count == 0)
    }

    /// Brings an inner node up to date with its children.
    fn settle(&mut self, id: NodeId) {
        let Node::Inner(Inner { bit, children: [left, right], .. }) = *self.node(id) else {
            unreachable!("an inner node is stale")
        };
        *self.node_mut(id) = if self.is_one(left, right) {
            let (left, right) = (self.take(left), self.take(right));
            self.join(bit, left, right)
        } else {
            let hash = hashes::inner(bit, &self.hash(left), &self.hash(right));
            Node::Inner(Inner { bit, stale: false, children: [left, right], hash })
        };
    }

    /// Returns `true` if two neighbours are one bucket, or only one is left of them.
    fn is_one(&self, left: NodeId, right: NodeId) -> bool {
        match (self.node(left), self.node(right)) {
            (Node::Bucket(left), Node::Bucket(right)) => {
                left.count + right.count <= BUCKET_KEYS_MAX
            }
            _ => self.is_empty(left) || self.is_empty(right),
        }
    }

    /// The node above two that differ at `bit`: a bucket if they are small enough together.
    fn join(&mut self, bit: u16, left: Node, right: Node) -> Node {
        match (left, right) {
            (Node::Bucket(Bucket { count: 0, .. }), node)
            | (node, Node::Bucket(Bucket { count: 0, .. })) => node,
            (Node::Bucket(left), Node::Bucket(right))
                if left.count + right.count <= BUCKET_KEYS_MAX =>
            {
                let hash = hashes::inner(bit, &left.hash, &right.hash);
                let count = left.count + right.count;
                Node::Bucket(Bucket { prefix: left.prefix.cut(bit), count, hash })
            }
            (left, right) => {
                let hash = hashes::inner(bit, &left.hash(), &right.hash());
                let children = [self.add(left), self.add(right)];
                Node::Inner(Inner { bit, stale: false, children, hash })
            }
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::expected_root;
