//! Proofs of what the state holds, checked by whoever knows its root.
//!
//! A proof is the tree with most of it pruned: subtrees that do not matter are hashes. Encoded:
//! the number of keys (`u64`, little-endian), then, unless there are none, the tree from the top, a
//! node before its children:
//!
//! | byte | what follows |
//! |---|---|
//! | 0 | a pruned subtree: its hash |
//! | 1 | a leaf: the key's length (`u16`, little-endian), the key, the value's hash |
//! | 2 | an inner node: its bit's position (`u16`, little-endian); its left and its right child |
//!
//! # Why it is safe
//!
//! Whoever signed the root computed it from a well-formed tree: an inner node's position is the
//! first bit in which the keys below it differ, and keys ascend. Leaves, inner nodes with their
//! position and roots are hashed apart, so what a proof shows under the root is part of that tree,
//! and only what is pruned is left open.
//!
//! * A key is there only at the leaf that its own bits lead to. That leaf says whether it is.
//! * Leaves stand in the order of their keys. Nothing is left out of a range if nothing is pruned
//!   between the first shown leaf of it and the last, nor before it but above a leaf that is below
//!   the range, nor after it but above a leaf that is past the range.

use super::bits::{KEY_BYTES_MAX, POSITIONS, bit};
use super::hashes;
use bytes::Bytes;
use quorate_crypto::Digest;
use quorate_crypto::mutants::{self, Mutant};

/// Longest proof that is looked at, in bytes: a longest answer with two deepest ways beside it.
pub const PROOF_BYTES_MAX: usize = 2 * 1024 * 1024;

const PRUNED: u8 = 0;
const LEAF: u8 = 1;
const INNER: u8 = 2;

/// Reason for which a proof shows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// It is longer than [`PROOF_BYTES_MAX`].
    #[error("the proof is longer than {PROOF_BYTES_MAX} bytes")]
    TooLong,
    /// Its bytes are not a tree.
    #[error("the proof is not a tree: {0}")]
    Malformed(&'static str),
    /// It is of another state.
    #[error("the proof is not of the state with this root")]
    OtherRoot,
    /// The leaf that the key leads to is pruned.
    #[error("the proof does not show the leaf that the key leads to")]
    KeyPruned,
    /// Keys may have been left out of the range.
    #[error("the proof leaves a gap in the range")]
    Gap,
    /// It shows more entries than were asked for.
    #[error("the proof shows more entries than the limit")]
    BeyondLimit,
    /// The answer is not the one that the proof shows.
    #[error("the answer is not what its proof shows")]
    OtherAnswer,
}

/// Range of keys as a proof shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvenRange {
    /// Every key of the range up to the last of these, in order, with the hash of its value.
    pub entries: Vec<(Bytes, Digest)>,
    /// Set if these are all; otherwise there is at least one entry, and there may be more after it.
    pub complete: bool,
}

/// The hash of a value, as proofs show it.
#[must_use]
pub fn value_hash(value: &[u8]) -> Digest {
    hashes::value(value)
}

/// The hash of what the state with this root holds under `key`; `None` when it holds nothing (★).
///
/// # Errors
/// When the proof does not show it.
pub fn verify_get(root: Digest, key: &[u8], proof: &[u8]) -> Result<Option<Digest>, ProofError> {
    let proof = Proof::open(root, proof)?;
    let mut at = 0;
    loop {
        match proof.nodes.get(at) {
            None => return Ok(None), // there are no keys at all
            Some(Node::Inner { bit: position, right }) => {
                at = if bit(key, *position) { *right } else { at + 1 };
            }
            Some(Node::Leaf { key: found, value }) => return Ok((found == key).then_some(*value)),
            Some(Node::Pruned(_)) if mutants::active(Mutant::KvAbsentAnywhere) => return Ok(None),
            Some(Node::Pruned(_)) => return Err(ProofError::KeyPruned),
        }
    }
}

/// Entries that the state with this root holds from `from` on, before `to` if there is one: `limit`
/// entries at most, none left out up to the last (★).
///
/// # Errors
/// When the proof does not show it.
pub fn verify_range(
    root: Digest,
    from: &[u8],
    to: Option<&[u8]>,
    limit: usize,
    proof: &[u8],
) -> Result<ProvenRange, ProofError> {
    let proof = Proof::open(root, proof)?;
    let mut range =
        Range { from, to, coverage: Coverage::Before { gap: false }, entries: Vec::new() };
    for node in &proof.nodes {
        match node {
            Node::Inner { .. } => {}
            Node::Pruned(_) => range.pruned(),
            Node::Leaf { key, value } => range.leaf(key, *value)?,
        }
    }
    range.finish(limit)
}

/// A walk along the leaves, in order.
struct Range<'a> {
    from: &'a [u8],
    to: Option<&'a [u8]>,
    coverage: Coverage,
    entries: Vec<(Bytes, Digest)>,
}

/// Coverage of the range by the leaves seen so far.
enum Coverage {
    /// Below the range; with a gap since the last leaf that was seen.
    Before { gap: bool },
    /// In the range, without a gap.
    Within,
    /// There is a gap after what was seen of the range.
    Cut,
    /// Past the range, and all of it was seen.
    Past,
}

impl Range<'_> {
    fn pruned(&mut self) {
        self.coverage = match self.coverage {
            _ if mutants::active(Mutant::KvRangeGap) => return,
            Coverage::Before { .. } => Coverage::Before { gap: true },
            Coverage::Within | Coverage::Cut => Coverage::Cut,
            Coverage::Past => Coverage::Past,
        };
    }

    fn leaf(&mut self, key: &Bytes, value: Digest) -> Result<(), ProofError> {
        if key < self.from {
            self.coverage = Coverage::Before { gap: false };
            return Ok(());
        }
        let is_past = self.to.is_some_and(|to| key >= to);
        self.coverage = match self.coverage {
            Coverage::Before { gap: true } | Coverage::Cut => return Err(ProofError::Gap),
            _ if is_past => Coverage::Past,
            _ => {
                self.entries.push((key.clone(), value));
                Coverage::Within
            }
        };
        Ok(())
    }

    fn finish(self, limit: usize) -> Result<ProvenRange, ProofError> {
        let complete = match self.coverage {
            Coverage::Before { gap: true } => return Err(ProofError::Gap),
            Coverage::Before { gap: false } | Coverage::Within | Coverage::Past => true,
            Coverage::Cut => false,
        };
        if self.entries.len() > limit {
            return Err(ProofError::BeyondLimit);
        }
        Ok(ProvenRange { entries: self.entries, complete })
    }
}

/// A tree with most of it pruned, whose hash is the root that it was opened with.
struct Proof {
    /// A node before its children, the left child directly after its parent.
    nodes: Vec<Node>,
}

enum Node {
    Pruned(Digest),
    Leaf { key: Bytes, value: Digest },
    Inner { bit: u16, right: usize },
}

impl Proof {
    fn open(root: Digest, bytes: &[u8]) -> Result<Self, ProofError> {
        if bytes.len() > PROOF_BYTES_MAX {
            return Err(ProofError::TooLong);
        }
        let mut reader = Reader(bytes);
        let count = u64::from_le_bytes(reader.array()?);
        let proof = Self { nodes: if count == 0 { Vec::new() } else { read_nodes(&mut reader)? } };
        if !reader.0.is_empty() {
            return Err(ProofError::Malformed("something follows it"));
        }
        if hashes::root(count, &proof.top()) == root {
            Ok(proof)
        } else {
            Err(ProofError::OtherRoot)
        }
    }

    /// Hash of the top node. From the last node to the first, both children come before their
    /// parent, the left one last.
    fn top(&self) -> Digest {
        let mut done: Vec<Digest> = Vec::new();
        for node in self.nodes.iter().rev() {
            let hash = match node {
                Node::Pruned(hash) => *hash,
                Node::Leaf { key, value } => hashes::leaf(key, value),
                Node::Inner { bit, .. } => {
                    let left = done.pop().expect("read with its children");
                    let right = done.pop().expect("read with its children");
                    hashes::inner(*bit, &left, &right)
                }
            };
            done.push(hash);
        }
        done.pop().unwrap_or(Digest::ZERO)
    }
}

/// One whole tree, in a loop: positions increase downwards, so no more inner nodes wait for their
/// children than there are positions.
fn read_nodes(reader: &mut Reader<'_>) -> Result<Vec<Node>, ProofError> {
    let mut nodes: Vec<Node> = Vec::new();
    // Inner nodes whose right child is to come.
    let mut open: Vec<(usize, u16)> = Vec::new();
    let mut lowest = 0;
    loop {
        let node = reader.node()?;
        if let Node::Inner { bit, .. } = node {
            if !(lowest..POSITIONS).contains(&bit) {
                return Err(ProofError::Malformed("the positions do not increase downwards"));
            }
            open.push((nodes.len(), bit));
            nodes.push(node);
            lowest = bit + 1;
            continue;
        }
        nodes.push(node);
        let Some((parent, bit)) = open.pop() else { return Ok(nodes) };
        nodes[parent] = Node::Inner { bit, right: nodes.len() };
        lowest = bit + 1;
    }
}

/// Bytes of the proof that are left to read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], ProofError> {
        let (taken, rest) =
            self.0.split_at_checked(count).ok_or(ProofError::Malformed("it ends early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ProofError> {
        Ok(self.take(N)?.try_into().expect("as many were taken"))
    }

    /// An inner node comes without its children: where the right one is, is not known yet.
    fn node(&mut self) -> Result<Node, ProofError> {
        Ok(match self.array()? {
            [PRUNED] => Node::Pruned(Digest(self.array()?)),
            [LEAF] => {
                let length = usize::from(u16::from_le_bytes(self.array()?));
                if !(1..=KEY_BYTES_MAX).contains(&length) {
                    return Err(ProofError::Malformed("a key is empty or too long"));
                }
                let key = Bytes::copy_from_slice(self.take(length)?);
                Node::Leaf { key, value: Digest(self.array()?) }
            }
            [INNER] => Node::Inner { bit: u16::from_le_bytes(self.array()?), right: 0 },
            _ => return Err(ProofError::Malformed("a node is of no known kind")),
        })
    }
}

/// Writes a proof, a node before its children.
pub(crate) struct ProofWriter(Vec<u8>);

impl ProofWriter {
    /// A proof of a state with so many keys.
    pub(crate) fn new(count: u64) -> Self {
        Self(count.to_le_bytes().to_vec())
    }

    pub(crate) fn pruned(&mut self, hash: &Digest) {
        self.0.push(PRUNED);
        self.0.extend_from_slice(&hash.0);
    }

    pub(crate) fn leaf(&mut self, key: &[u8], value: &Digest) {
        let length = u16::try_from(key.len()).expect("keys have at most 1,024 bytes");
        self.0.push(LEAF);
        self.0.extend_from_slice(&length.to_le_bytes());
        self.0.extend_from_slice(key);
        self.0.extend_from_slice(&value.0);
    }

    pub(crate) fn inner(&mut self, bit: u16) {
        self.0.push(INNER);
        self.0.extend_from_slice(&bit.to_le_bytes());
    }

    pub(crate) fn finish(self) -> Bytes {
        self.0.into()
    }
}

#[cfg(test)]
mod tests;
