//! The nodes in memory, and how many leaves are kept beside them.

use super::leaves::{HashedLeaf, Head, Leaves};
use super::{BUCKET_KEYS_MAX, Change};
use crate::map::bits::{Prefix, bit};
use crate::map::hashes;
use quorate_crypto::Digest;
use quorate_crypto::mutants::{self, Mutant};
use std::borrow::Cow;
use std::mem;

pub(super) type NodeId = u32;

#[derive(Debug)]
pub(super) enum Node {
    Inner(Inner),
    Bucket(Bucket),
    /// A place that is not part of the tree.
    Vacant,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Inner {
    pub(super) bit: u16,
    /// Something below changed, and the hash did not follow yet.
    pub(super) stale: bool,
    /// Number of the update that changed it last.
    pub(super) changed: u32,
    pub(super) children: [NodeId; 2],
    pub(super) hash: Digest,
}

#[derive(Debug)]
pub(super) struct Bucket {
    /// Bits that the keys have in common; while an update is under way, those that they had before.
    pub(super) prefix: Prefix,
    /// 0 only while an update is under way.
    pub(super) count: u8,
    /// Number of the update that changed it last.
    pub(super) changed: u32,
    pub(super) hash: Digest,
    /// Leaves of two keys and more, if they are kept. A single one has the bucket's hash.
    pub(super) leaves: Leaves,
    /// The leaves were of use since the hand of [`Arena`] went by.
    pub(super) is_recent: bool,
}

impl Inner {
    pub(super) fn child(&self, key: &[u8]) -> NodeId {
        self.children[usize::from(bit(key, self.bit))]
    }
}

impl Bucket {
    /// A bucket of one key.
    fn of(key: &[u8], value: &Digest) -> Self {
        Self {
            prefix: Prefix::whole(key),
            count: 1,
            changed: 0,
            hash: hashes::leaf(key, value),
            leaves: Leaves::default(),
            is_recent: false,
        }
    }

    fn has_leaves(&self) -> bool {
        self.count == 1 || !self.leaves.is_empty()
    }

    /// The leaves of one that has them, the lone one among them.
    fn all_leaves(&self) -> Cow<'_, [HashedLeaf]> {
        if self.count > 1 {
            return Cow::Borrowed(&self.leaves.0);
        }
        let head = Head::of(self.prefix.lowest());
        Cow::Owned(vec![HashedLeaf { head, hash: self.hash, split: 0 }])
    }

    /// Two that differ at `bit`, as one.
    fn join(bit: u16, left: Self, right: &Self) -> Self {
        let leaves = if left.has_leaves() && right.has_leaves() {
            Leaves::join(bit, &left.all_leaves(), &right.all_leaves())
        } else {
            Leaves::default()
        };
        Self {
            hash: hashes::inner(bit, &left.hash, &right.hash),
            prefix: left.prefix.cut(bit),
            count: left.count + right.count,
            changed: 0,
            leaves,
            is_recent: false,
        }
    }

    /// Follows values that were replaced and keys that are new, all in this bucket, by its leaves
    /// alone. Returns `false` if it has to be read again: its leaves are not kept or do not tell,
    /// or its keys are too many or fewer.
    fn follow(&mut self, changes: &[Change<'_>]) -> bool {
        let before = self.count;
        let follows = changes.iter().all(|change| self.replace(change) || self.insert(change));
        if !follows {
            self.count = before;
        } else if self.count > 1 {
            self.hash = self.leaves.top();
        }
        self.is_recent = follows;
        follows
    }

    fn insert(&mut self, change: &Change<'_>) -> bool {
        let Change { key, now: Some(now), .. } = change else { return false };
        let is_new =
            self.count < BUCKET_KEYS_MAX && self.leaves.insert(key, hashes::leaf(key, now));
        self.count += u8::from(is_new);
        is_new
    }

    /// The leaf that a key leads to is the key's own only if it is the one with the value that the
    /// key is said to have had (★): a wrong word leads to a bucket that is read again.
    fn replace(&mut self, change: &Change<'_>) -> bool {
        let Change { key, before: Some(before), now: Some(now), .. } = change else { return false };
        let leaf = if self.count == 1 { Some(&mut self.hash) } else { self.leaves.reach(key) };
        let Some(leaf) = leaf else { return false };
        let is_own = *leaf == hashes::leaf(key, before);
        if is_own || mutants::active(Mutant::KvAnyLeaf) {
            *leaf = hashes::leaf(key, now);
            return true;
        }
        false
    }
}

impl Node {
    /// A bucket of one key.
    pub(super) fn leaf(key: &[u8], value: &Digest) -> Self {
        Self::Bucket(Bucket::of(key, value))
    }

    pub(super) fn hash(&self) -> Digest {
        match self {
            Self::Inner(Inner { hash, .. }) | Self::Bucket(Bucket { hash, .. }) => *hash,
            Self::Vacant => unreachable!("not part of the tree"),
        }
    }

    fn leaves_bytes(&self) -> usize {
        match self {
            Self::Bucket(bucket) => bucket.leaves.heap_bytes(),
            Self::Inner(_) | Self::Vacant => 0,
        }
    }

    /// Bytes on the heap, but for leaves.
    pub(super) fn prefix_bytes(&self) -> usize {
        match self {
            Self::Bucket(bucket) => bucket.prefix.heap_bytes(),
            Self::Inner(_) | Self::Vacant => 0,
        }
    }

    /// Number of the update that changed it last; `None` of a place that is free.
    fn changed(&self) -> Option<u32> {
        match self {
            Self::Inner(Inner { changed, .. }) | Self::Bucket(Bucket { changed, .. }) => {
                Some(*changed)
            }
            Self::Vacant => None,
        }
    }

    fn set_changed(&mut self, update: u32) {
        match self {
            Self::Inner(Inner { changed, .. }) | Self::Bucket(Bucket { changed, .. }) => {
                *changed = update;
            }
            Self::Vacant => {}
        }
    }

    /// What is to be remembered of it: all but leaves.
    fn without_leaves(&self) -> Self {
        match self {
            Self::Inner(inner) => Self::Inner(*inner),
            &Self::Bucket(Bucket { ref prefix, count, changed, hash, is_recent, .. }) => {
                let (prefix, leaves) = (prefix.clone(), Leaves::default());
                Self::Bucket(Bucket { prefix, count, changed, hash, leaves, is_recent })
            }
            Self::Vacant => Self::Vacant,
        }
    }
}

/// All nodes, by their place.
#[derive(Debug, Default)]
pub(super) struct Arena {
    nodes: Vec<Node>,
    vacant: Vec<NodeId>,
    /// Most bytes of all leaves that are kept.
    leaves_bytes_max: usize,
    leaves_bytes: usize,
    /// Node at which the next leaves to be given up are looked for.
    hand: usize,
    /// Number of the update under way, or of the last one. It wraps.
    update: u32,
    /// Nodes that this update replaced, as they were before it, if they are wanted.
    replaced: Option<Vec<(NodeId, Node)>>,
}

/// Nodes that the hand goes over at most to make room for one bucket's leaves. A budget of some
/// hundredth of all leaves finds some within it, mostly.
const NODES_LOOKED_AT: usize = 64;

impl Arena {
    /// No nodes yet; all leaves that are kept take so many bytes at most.
    pub(super) fn new(leaves_bytes_max: usize) -> Self {
        Self { leaves_bytes_max, ..Self::default() }
    }

    pub(super) fn leaves_bytes_max(&self) -> usize {
        self.leaves_bytes_max
    }

    /// All leaves that are kept take so many bytes at most from now on.
    pub(super) fn limit_leaves(&mut self, bytes_max: usize) {
        self.leaves_bytes_max = bytes_max;
        for node in &mut self.nodes {
            if let Node::Bucket(bucket) = node
                && self.leaves_bytes > bytes_max
            {
                self.leaves_bytes -= mem::take(&mut bucket.leaves).heap_bytes();
            }
        }
    }

    #[cfg(test)]
    pub(super) fn nodes(&self) -> &Vec<Node> {
        &self.nodes
    }

    #[cfg(test)]
    pub(super) fn vacant(&self) -> &Vec<NodeId> {
        &self.vacant
    }

    #[cfg(test)]
    pub(super) fn leaves_bytes(&self) -> usize {
        self.leaves_bytes
    }

    pub(super) fn shrink_to_fit(&mut self) {
        self.nodes.shrink_to_fit();
    }

    /// Bytes of memory, without what the allocator adds.
    pub(super) fn memory_bytes(&self) -> usize {
        let prefixes = self.nodes.iter().map(Node::prefix_bytes);
        self.nodes.capacity() * size_of::<Node>()
            + self.vacant.capacity() * size_of::<NodeId>()
            + prefixes.sum::<usize>()
            + self.leaves_bytes
    }

    /// Wants what updates replace, or does no longer.
    pub(super) fn want_replaced(&mut self, are_wanted: bool) {
        self.replaced = are_wanted.then(Vec::new);
    }

    pub(super) fn begin_update(&mut self) {
        self.update = self.update.wrapping_add(1);
        // What an update left that failed.
        self.replaced.iter_mut().for_each(Vec::clear);
    }

    /// What the update replaced, each node once and as it was before, if it is wanted.
    pub(super) fn take_replaced(&mut self) -> Option<Vec<(NodeId, Node)>> {
        self.replaced.as_mut().map(mem::take)
    }

    /// Returns `false` if a place is as it was so many updates ago. It may be all the same.
    pub(super) fn has_changed(&self, id: NodeId, updates: usize) -> bool {
        let since = self.node(id).changed().map_or(0, |changed| self.update.wrapping_sub(changed));
        (since as usize) < updates
    }

    /// Puts away what is in a place and is about to change, the first time in an update.
    fn put_away(&mut self, id: NodeId) {
        let Some(replaced) = &mut self.replaced else { return };
        let node = &self.nodes[id as usize];
        if node.changed().is_some_and(|changed| changed != self.update) {
            replaced.push((id, node.without_leaves()));
        }
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    /// A node to be changed in place; the number of its leaves stays.
    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        self.put_away(id);
        let node = &mut self.nodes[id as usize];
        node.set_changed(self.update);
        node
    }

    /// Something changes below an inner node.
    pub(super) fn touch(&mut self, id: NodeId) {
        if let Node::Inner(inner) = self.node_mut(id) {
            inner.stale = true;
        }
    }

    pub(super) fn bucket(&self, id: NodeId) -> &Bucket {
        match self.node(id) {
            Node::Bucket(bucket) => bucket,
            Node::Inner(_) | Node::Vacant => unreachable!("a bucket was reached"),
        }
    }

    fn bucket_mut(&mut self, id: NodeId) -> &mut Bucket {
        match self.node_mut(id) {
            Node::Bucket(bucket) => bucket,
            Node::Inner(_) | Node::Vacant => unreachable!("a bucket was reached"),
        }
    }

    pub(super) fn hash(&self, id: NodeId) -> Digest {
        self.node(id).hash()
    }

    pub(super) fn add(&mut self, node: Node) -> NodeId {
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.nodes.push(Node::Vacant);
            NodeId::try_from(self.nodes.len() - 1).expect("memory holds fewer")
        });
        self.put(id, node);
        id
    }

    /// Puts a node into a place; its leaves stay if there is room for them. Returns what was there.
    pub(super) fn put(&mut self, id: NodeId, mut node: Node) -> Node {
        let before = mem::replace(self.node_mut(id), Node::Vacant);
        node.set_changed(self.update);
        self.leaves_bytes -= before.leaves_bytes();
        if let Node::Bucket(bucket) = &mut node
            && !self.make_room(bucket.leaves.heap_bytes())
        {
            bucket.leaves = Leaves::default();
        }
        self.leaves_bytes += node.leaves_bytes();
        self.nodes[id as usize] = node;
        before
    }

    pub(super) fn take(&mut self, id: NodeId) -> Node {
        self.vacant.push(id);
        self.put(id, Node::Vacant)
    }

    /// Has a bucket follow changes without the state, as [`Bucket::follow`] says. Returns the
    /// number of keys that are new; `None` if it has to be read again.
    pub(super) fn follow(&mut self, id: NodeId, changes: &[Change<'_>]) -> Option<u64> {
        let mut node = self.put(id, Node::Vacant);
        let Node::Bucket(bucket) = &mut node else { unreachable!("a bucket was reached") };
        let before = bucket.count;
        let new = bucket.follow(changes).then(|| u64::from(bucket.count - before));
        self.put(id, node);
        new
    }

    /// A bucket lost all its keys.
    pub(super) fn empty(&mut self, id: NodeId) {
        let bucket = self.bucket_mut(id);
        bucket.count = 0;
        let leaves = mem::take(&mut bucket.leaves);
        self.leaves_bytes -= leaves.heap_bytes();
    }

    /// Returns `true` if a bucket lost all its keys.
    pub(super) fn is_empty(&self, id: NodeId) -> bool {
        matches!(self.node(id), Node::Bucket(bucket) if bucket.count == 0)
    }

    /// Gives up leaves that were of no use lately, until so many more bytes fit. Returns `false`
    /// if they do not.
    fn make_room(&mut self, bytes: usize) -> bool {
        for _ in 0..NODES_LOOKED_AT {
            if self.leaves_bytes + bytes <= self.leaves_bytes_max {
                return true;
            }
            if bytes > self.leaves_bytes_max {
                return false;
            }
            self.hand = (self.hand + 1) % self.nodes.len();
            if let Node::Bucket(bucket) = &mut self.nodes[self.hand]
                && !mem::take(&mut bucket.is_recent)
            {
                self.leaves_bytes -= mem::take(&mut bucket.leaves).heap_bytes();
            }
        }
        false
    }

    /// Brings an inner node up to date with its children.
    pub(super) fn settle(&mut self, id: NodeId) {
        let Node::Inner(Inner { bit, children: [left, right], .. }) = *self.node(id) else {
            unreachable!("an inner node is stale")
        };
        if self.is_one(left, right) {
            let (left, right) = (self.take(left), self.take(right));
            let node = self.join(bit, left, right);
            self.put(id, node);
            return;
        }
        let settled = hashes::inner(bit, &self.hash(left), &self.hash(right));
        if let Node::Inner(Inner { stale, hash, .. }) = self.node_mut(id) {
            (*stale, *hash) = (false, settled);
        }
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
    pub(super) fn join(&mut self, bit: u16, left: Node, right: Node) -> Node {
        match (left, right) {
            (Node::Bucket(Bucket { count: 0, .. }), node)
            | (node, Node::Bucket(Bucket { count: 0, .. })) => node,
            (Node::Bucket(left), Node::Bucket(right))
                if left.count + right.count <= BUCKET_KEYS_MAX =>
            {
                Node::Bucket(Bucket::join(bit, left, &right))
            }
            (left, right) => {
                let hash = hashes::inner(bit, &left.hash(), &right.hash());
                let children = [self.add(left), self.add(right)];
                Node::Inner(Inner { bit, stale: false, changed: self.update, children, hash })
            }
        }
    }
}
