//! Merkle trees over a list: that something is at a place of the list is shown by a path of hashes.
//!
//! The shape is that of RFC 6962: of `n` leaves the left subtree has the largest power of two below
//! `n`. A root commits to the number of leaves, to each of them and to its place: leaves, inner
//! nodes and roots are hashed under three keys of their own, so that none passes for another
//! (second preimages), and the root covers the count.

use crate::{Digest, hash_keyed};

const LEAF: &[u8; 32] = b"quorate v1 merkle tree: a leaf  ";
const NODE: &[u8; 32] = b"quorate v1 merkle tree: a node  ";
const ROOT: &[u8; 32] = b"quorate v1 merkle tree: the root";

/// A tree over leaves that are hashes of what they stand for.
///
/// ```
/// use quorate_crypto::{hash, merkle::Tree};
///
/// let leaves: Vec<_> = (0..5u8).map(|leaf| hash(&[leaf])).collect();
/// let tree = Tree::new(&leaves);
/// let path = tree.path(3).expect("there are five");
/// assert!(path.leads(&leaves[3], &tree.root()));
/// assert!(!path.leads(&leaves[2], &tree.root()));
/// ```
#[derive(Clone, Debug)]
pub struct Tree {
    /// Hashes from the leaves up; a node without a sibling stands on the next level as it is.
    levels: Vec<Vec<Digest>>,
    count: u32,
}

/// Place of a leaf, and the hashes beside the way from it to the root.
#[derive(Clone, Debug, PartialEq, Eq, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct Path {
    /// The leaf's place, from 0.
    pub index: u32,
    /// Number of leaves in the list.
    pub count: u32,
    /// Hashes from the leaf's sibling up.
    pub siblings: Vec<Digest>,
}

impl Tree {
    /// A tree over these leaves.
    ///
    /// # Panics
    /// When there are more than 2³² − 1.
    #[must_use]
    pub fn new(leaves: &[Digest]) -> Self {
        let count = u32::try_from(leaves.len()).expect("a list in memory is shorter");
        let mut levels = vec![leaves.iter().map(leaf).collect::<Vec<_>>()];
        while let Some(below) = levels.last().filter(|level| level.len() > 1) {
            let above = below.chunks(2).map(|pair| match pair {
                [left, right] => node(left, right),
                single => single[0],
            });
            let above = above.collect();
            levels.push(above);
        }
        Self { levels, count }
    }

    /// The hash that stands for all leaves; where there are none, that of a list of none.
    #[must_use]
    pub fn root(&self) -> Digest {
        let top = self.levels.last().and_then(|level| level.first());
        root(self.count, top.unwrap_or(&Digest::ZERO))
    }

    /// The way from a leaf to the root; `None` where there is no such leaf.
    #[must_use]
    pub fn path(&self, index: u32) -> Option<Path> {
        if index >= self.count {
            return None;
        }
        let mut at = index as usize;
        let mut siblings = Vec::new();
        for level in &self.levels {
            siblings.extend(level.get(at ^ 1));
            at /= 2;
        }
        Some(Path { index, count: self.count, siblings })
    }
}

impl Path {
    /// Returns `true` if a list with this root has this leaf at the path's place. A path that is
    /// longer or shorter than the place needs leads nowhere.
    #[must_use]
    pub fn leads(&self, from: &Digest, to: &Digest) -> bool {
        self.root(from).is_some_and(|root| root == *to)
    }

    /// The root of the list that has this leaf at the path's place, if the path's length fits it.
    #[must_use]
    pub fn root(&self, leaf: &Digest) -> Option<Digest> {
        self.climb(leaf).map(|top| root(self.count, &top))
    }

    fn climb(&self, from: &Digest) -> Option<Digest> {
        if self.index >= self.count {
            return None;
        }
        let mut siblings = self.siblings.iter();
        let mut hash = leaf(from);
        let (mut at, mut last) = (self.index, self.count - 1);
        while last > 0 {
            if at & 1 == 1 {
                hash = node(siblings.next()?, &hash);
            } else if at < last {
                hash = node(&hash, siblings.next()?);
            }
            (at, last) = (at / 2, last / 2);
        }
        siblings.next().is_none().then_some(hash)
    }
}

fn leaf(content: &Digest) -> Digest {
    hash_keyed(LEAF, &content.0)
}

fn node(left: &Digest, right: &Digest) -> Digest {
    let mut both = [0; 64];
    both[..32].copy_from_slice(&left.0);
    both[32..].copy_from_slice(&right.0);
    hash_keyed(NODE, &both)
}

fn root(count: u32, top: &Digest) -> Digest {
    let mut content = [0; 36];
    content[..4].copy_from_slice(&count.to_le_bytes());
    content[4..].copy_from_slice(&top.0);
    hash_keyed(ROOT, &content)
}

#[cfg(test)]
mod tests;
