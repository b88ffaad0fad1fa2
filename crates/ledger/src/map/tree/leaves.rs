//! Leaves of a bucket, as far as they are in memory: enough to follow a value that is replaced
//! without reading the state.
//!
//! Their hashes, and between neighbours the first bit in which the two keys differ. These bits are
//! the subtree: a run of leaves is parted at its lowest one. A key that is among the leaves is
//! found by its own bits alone; whether it is, they do not say.

use crate::map::bits::bit;
use crate::map::hashes;
use quorate_crypto::Digest;

/// The leaves of a bucket in order, or none of them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Leaves(pub(super) Box<[HashedLeaf]>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HashedLeaf {
    pub(super) hash: Digest,
    /// First bit in which the next key differs; 0 for the last one.
    pub(super) split: u16,
}

impl Leaves {
    /// Bytes of memory that a leaf takes.
    pub(super) const LEAF_BYTES: usize = size_of::<HashedLeaf>();

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.0.len() * Self::LEAF_BYTES
    }

    /// Returns `true` if none are here.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those on both sides of a bit. A side without leaves is one leaf, with this hash.
    pub(super) fn join(bit: u16, left: (&Self, Digest), right: (&Self, Digest)) -> Self {
        let count = |side: &Self| side.0.len().max(1);
        let mut all = Vec::with_capacity(count(left.0) + count(right.0));
        for (side, hash) in [left, right] {
            all.extend_from_slice(&side.0);
            if side.is_empty() {
                all.push(HashedLeaf { hash, split: 0 });
            }
        }
        all[count(left.0) - 1].split = bit;
        Self(all.into())
    }

    /// The hash of the leaf that a key's bits lead to.
    pub(super) fn reach(&mut self, key: &[u8]) -> Option<&mut Digest> {
        let (mut found, mut at) = (0, 0);
        while at + 1 < self.0.len() {
            let split = self.0[at].split;
            at += 1;
            if bit(key, split) {
                found = at;
            } else {
                // What is right of this bit is parted at higher ones alone.
                while self.0[at].split > split {
                    at += 1;
                }
            }
        }
        self.0.get_mut(found).map(|leaf| &mut leaf.hash)
    }

    /// The hash over all of them; there are some.
    pub(super) fn top(&self) -> Digest {
        // Left sides whose right ones are not complete, with their bits, which increase.
        let mut open: Vec<HashedLeaf> = Vec::with_capacity(self.0.len());
        for HashedLeaf { mut hash, split } in self.0.iter().copied() {
            while let Some(left) = open.pop_if(|left| left.split >= split) {
                hash = hashes::inner(left.split, &left.hash, &hash);
            }
            open.push(HashedLeaf { hash, split });
        }
        open.pop().expect("there are some").hash
    }
}
