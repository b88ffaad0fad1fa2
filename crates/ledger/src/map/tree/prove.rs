//! Proofs out of the tree: what is between two keys is shown, the rest pruned.

use super::arena::{Node, NodeId};
use super::{Leaf, Version};
use crate::map::bits::{bit, difference};
use crate::map::hashes;
use crate::map::proof::ProofWriter;
use bytes::Bytes;
use quorate_crypto::Digest;
use quorate_types::service::{State, StateError};

/// A subtree of which everything from `low` to `high` is to be shown, both included. A bound that
/// no key equals leads to the leaf that its bits lead to. `None` is no bound.
struct Part<'a> {
    content: Content,
    low: Option<&'a [u8]>,
    high: Option<&'a [u8]>,
}

enum Content {
    Node(NodeId),
    /// A part of a bucket; at least one.
    Leaves(Vec<Leaf>),
    Pruned(Digest),
}

impl Version<'_> {
    /// Shows the leaves from the one that the bits of `low` lead to, to the one that those of
    /// `high` lead to.
    ///
    /// # Errors
    /// When the state cannot be read or is not the one that the tree knows.
    pub(crate) fn prove(
        &self,
        state: &dyn State,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
    ) -> Result<Bytes, StateError> {
        let mut proof = ProofWriter::new(self.count());
        let top = self.top().map(|top| Part { content: Content::Node(top), low, high });
        let mut parts: Vec<Part<'_>> = top.into_iter().collect();
        while let Some(Part { content, low, high }) = parts.pop() {
            let (at, left, right) = match content {
                Content::Pruned(hash) => {
                    proof.pruned(&hash);
                    continue;
                }
                Content::Leaves(leaves) if leaves.len() == 1 => {
                    proof.leaf(&leaves[0].key, &leaves[0].value);
                    continue;
                }
                Content::Leaves(leaves) => {
                    let (at, left, right) = halves(leaves);
                    (at, Content::Leaves(left), Content::Leaves(right))
                }
                Content::Node(id) => match self.node(id) {
                    Node::Inner(inner) => {
                        let [left, right] = inner.children.map(Content::Node);
                        (inner.bit, left, right)
                    }
                    Node::Bucket(_) | Node::Vacant => {
                        let content = Content::Leaves(self.leaves(state, id)?);
                        parts.push(Part { content, low, high });
                        continue;
                    }
                },
            };
            proof.inner(at);
            let low_is_right = low.is_some_and(|low| bit(low, at));
            let high_is_left = high.is_some_and(|high| !bit(high, at));
            parts.push(if high_is_left {
                Part { content: self.prune(right), low: None, high: None }
            } else {
                Part { content: right, low: low.filter(|_| low_is_right), high }
            });
            parts.push(if low_is_right {
                Part { content: self.prune(left), low: None, high: None }
            } else {
                Part { content: left, low, high: high.filter(|_| high_is_left) }
            });
        }
        Ok(proof.finish())
    }

    /// The last key below `key`, if there is one.
    ///
    /// # Errors
    /// When the state cannot be read or is not the one that the tree knows.
    pub(crate) fn last_below(
        &self,
        state: &dyn State,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, StateError> {
        let Some((_, departure)) = self.reach(key) else { return Ok(None) };
        let position = departure.unwrap_or(u16::MAX);
        let mut at = self.top().expect("a node was reached");
        let mut left = None;
        while let Node::Inner(inner) = self.node(at)
            && inner.bit < position
        {
            if bit(key, inner.bit) {
                left = Some(inner.children[0]);
            }
            at = inner.child(key);
        }
        if departure.is_none() {
            let below = self.leaves(state, at)?.into_iter().rfind(|leaf| leaf.key.as_slice() < key);
            if let Some(leaf) = below {
                return Ok(Some(leaf.key));
            }
        } else if bit(key, position) {
            left = Some(at);
        }
        left.map(|left| self.last(state, left)).transpose()
    }

    /// The bucket that the key's bits lead to, and where the key departs from what is there, if it
    /// does.
    pub(super) fn reach(&self, key: &[u8]) -> Option<(NodeId, Option<u16>)> {
        let mut at = self.top()?;
        loop {
            match self.node(at) {
                Node::Inner(inner) => at = inner.child(key),
                Node::Bucket(bucket) => return Some((at, bucket.prefix.departure(key))),
                Node::Vacant => unreachable!("not part of the tree"),
            }
        }
    }

    /// The last key below a node.
    fn last(&self, state: &dyn State, mut at: NodeId) -> Result<Vec<u8>, StateError> {
        while let Node::Inner(inner) = self.node(at) {
            at = inner.children[1];
        }
        let last = self.leaves(state, at)?.pop().expect("as many as there were");
        Ok(last.key)
    }

    fn prune(&self, content: Content) -> Content {
        Content::Pruned(match content {
            Content::Node(id) => self.node(id).hash(),
            Content::Leaves(leaves) => top(leaves),
            Content::Pruned(hash) => hash,
        })
    }
}

/// Splits at least two leaves by the first bit in which they differ.
fn halves(mut left: Vec<Leaf>) -> (u16, Vec<Leaf>, Vec<Leaf>) {
    let (first, last) = (&left[0], &left[left.len() - 1]);
    let at = difference(&first.key, &last.key).expect("a state's keys ascend");
    let right = left.split_off(left.partition_point(|leaf| !bit(&leaf.key, at)));
    (at, left, right)
}

/// The hash over a part of a bucket. A bucket has few keys: so deep is this, at most.
fn top(leaves: Vec<Leaf>) -> Digest {
    if let [leaf] = leaves.as_slice() {
        return hashes::leaf(&leaf.key, &leaf.value);
    }
    let (at, left, right) = halves(leaves);
    hashes::inner(at, &top(left), &top(right))
}
