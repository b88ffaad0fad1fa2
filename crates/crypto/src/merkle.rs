//! Merkle trees over a list: that something is at a place of the list is shown by a path of hashes.
//!
//! The shape is that of RFC 6962: of `n` leaves the left subtree has the largest power of two below
//! `n`. A root commits to the number of leaves, to each of them and to its place: leaves, inner
//! nodes and roots are hashed under three keys of their own, so that none passes for another
//! (second preimages), and the root covers the count.

use crate::hash::hash_keyed_blocks;
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
    #[borsh(deserialize_with = "read_siblings")]
    pub siblings: Vec<Digest>,
}

/// Reads a list of hashes in one go, as long as a path is; payments bring hundreds.
fn read_siblings(reader: &mut impl std::io::Read) -> std::io::Result<Vec<Digest>> {
    const PORTION: usize = 32;
    let count = <u32 as borsh::BorshDeserialize>::deserialize_reader(reader)? as usize;
    let mut siblings = Vec::with_capacity(count.min(PORTION));
    while siblings.len() < count {
        let mut portion = [[0; 32]; PORTION];
        let portion = &mut portion[..(count - siblings.len()).min(PORTION)];
        reader.read_exact(portion.as_flattened_mut())?;
        siblings.extend(portion.iter().map(|hash| Digest(*hash)));
    }
    Ok(siblings)
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
            let (pairs, single) = below.as_chunks();
            let pairs: Vec<_> = pairs.iter().map(|[left, right]| pair(left, right)).collect();
            let mut above = hash_keyed_blocks(NODE, &pairs);
            above.extend(single);
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

    /// [`Path::root`] of many, each with its leaf: nodes of one height are hashed side by side, and
    /// leaves that stand one behind the other and are the same once. Some eight of ten hashes cost
    /// a fraction of what they do alone.
    #[must_use]
    pub fn roots(paths: &[(&Digest, &Self)]) -> Vec<Option<Digest>> {
        let mut climbs: Vec<Climb<'_>> = Vec::with_capacity(paths.len());
        for (at, (content, path)) in paths.iter().enumerate() {
            let same = at.checked_sub(1).filter(|before| paths[*before].0 == *content);
            let hash = same.map_or_else(|| leaf(content), |before| climbs[before].hash);
            climbs.push(path.begin(hash));
        }
        let tops = Climb::finish_all(climbs);
        let of = |((_, path), top): (&(_, &Self), Option<Digest>)| Some(root(path.count, &top?));
        paths.iter().zip(tops).map(of).collect()
    }

    fn climb(&self, from: &Digest) -> Option<Digest> {
        let mut climb = self.begin(leaf(from));
        while let Some(pair) = climb.pair() {
            climb.hash = hash_keyed(NODE, &pair);
        }
        climb.top()
    }

    fn begin(&self, leaf: Digest) -> Climb<'_> {
        let is_lost = self.index >= self.count;
        let last = if is_lost { 0 } else { self.count - 1 };
        Climb { hash: leaf, at: self.index, last, siblings: self.siblings.iter(), is_lost }
    }
}

/// Way up a tree.
struct Climb<'a> {
    /// Hash of the node that was reached.
    hash: Digest,
    /// Place of that node on its level, and that of the level's last one.
    at: u32,
    last: u32,
    siblings: std::slice::Iter<'a, Digest>,
    /// Set where the path fits no place.
    is_lost: bool,
}

impl Climb<'_> {
    /// Goes up to the next node that has a sibling and says what is hashed there; `None` at the
    /// top, and for a path that is too short.
    fn pair(&mut self) -> Option<[u8; 64]> {
        while self.last > 0 {
            let (at, last) = (self.at, self.last);
            (self.at, self.last) = (at / 2, last / 2);
            if at & 1 == 0 && at == last {
                continue;
            }
            let Some(sibling) = self.siblings.next() else {
                (self.last, self.is_lost) = (0, true);
                return None;
            };
            let (left, right) =
                if at & 1 == 1 { (sibling, &self.hash) } else { (&self.hash, sibling) };
            return Some(pair(left, right));
        }
        None
    }

    /// The hash at the top, unless the path was too long or too short.
    fn top(&self) -> Option<Digest> {
        (!self.is_lost && self.siblings.len() == 0).then_some(self.hash)
    }

    /// Takes all to the top, level by level.
    fn finish_all(mut climbs: Vec<Self>) -> Vec<Option<Digest>> {
        let mut open: Vec<usize> = (0..climbs.len()).collect();
        let mut pairs = Vec::with_capacity(climbs.len());
        while !open.is_empty() {
            pairs.clear();
            open.retain(|at| {
                let pair = climbs[*at].pair();
                pairs.extend(pair);
                pair.is_some()
            });
            for (at, hash) in open.iter().zip(hash_keyed_blocks(NODE, &pairs)) {
                climbs[*at].hash = hash;
            }
        }
        climbs.iter().map(Self::top).collect()
    }
}

fn leaf(content: &Digest) -> Digest {
    hash_keyed(LEAF, &content.0)
}

fn pair(left: &Digest, right: &Digest) -> [u8; 64] {
    let mut both = [0; 64];
    both[..32].copy_from_slice(&left.0);
    both[32..].copy_from_slice(&right.0);
    both
}

fn root(count: u32, top: &Digest) -> Digest {
    let mut content = [0; 36];
    content[..4].copy_from_slice(&count.to_le_bytes());
    content[4..].copy_from_slice(&top.0);
    hash_keyed(ROOT, &content)
}

#[cfg(test)]
mod tests;
