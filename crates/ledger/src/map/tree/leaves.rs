//! Leaves of a bucket, as far as they are in memory: enough to follow a value that is replaced, and
//! most keys that are new, without reading the state.
//!
//! Their hashes, between neighbours the first bit in which the two keys differ, and the first bytes
//! of each key. The bits are the subtree: a run of leaves is parted at its lowest one. A key that
//! is among the leaves is found by its own bits alone; whether it is, they do not say. The first
//! bytes of the key that is found say that it is not, where they differ.

use crate::map::bits::{BITS_A_BYTE, bit, difference};
use crate::map::hashes;
use quorate_crypto::Digest;
use quorate_crypto::mutants::{self, Mutant};

/// The leaves of a bucket in order, or none of them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Leaves(pub(super) Box<[HashedLeaf]>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HashedLeaf {
    pub(super) head: Head,
    pub(super) hash: Digest,
    /// First bit in which the next key differs; 0 for the last one.
    pub(super) split: u16,
}

/// First bytes of a key, or all of a short one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    bytes: [u8; Self::BYTES],
    length: u8,
}

impl Head {
    /// Random keys differ within far fewer.
    const BYTES: usize = 16;

    pub(super) fn of(key: &[u8]) -> Self {
        let length = key.len().min(Self::BYTES);
        let mut bytes = [0; Self::BYTES];
        bytes[..length].copy_from_slice(&key[..length]);
        Self { bytes, length: u8::try_from(length).expect("it is small") }
    }

    /// The first bit in which a key differs from the one that begins so; `None` where they are
    /// equal as far as it is known (★: a longer key goes on behind its head).
    fn difference(&self, key: &[u8]) -> Option<u16> {
        let known = &self.bytes[..usize::from(self.length)];
        let is_whole = known.len() < Self::BYTES || mutants::active(Mutant::KvHeadIsKey);
        let at = difference(known, key)?;
        (is_whole || usize::from(at) < usize::from(BITS_A_BYTE) * Self::BYTES).then_some(at)
    }
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

    /// Those on both sides of a bit; some on each.
    pub(super) fn join(bit: u16, left: &[HashedLeaf], right: &[HashedLeaf]) -> Self {
        let mut all = [left, right].concat();
        all[left.len() - 1].split = bit;
        Self(all.into())
    }

    /// The hash of the leaf that a key's bits lead to.
    pub(super) fn reach(&mut self, key: &[u8]) -> Option<&mut Digest> {
        let found = self.find(key);
        self.0.get_mut(found).map(|leaf| &mut leaf.hash)
    }

    /// Adds a key with its leaf's hash. Returns `false` if it may be there already: nothing is
    /// changed then.
    pub(super) fn insert(&mut self, key: &[u8], hash: Digest) -> bool {
        let found = self.find(key);
        let beside = self.0.get(found).map(|leaf| leaf.head);
        let Some(split) = beside.and_then(|head| head.difference(key)) else { return false };
        // It stands beside all those that agree with the one found up to this bit.
        let is_above = |leaf: &&HashedLeaf| leaf.split > split;
        let mut all = std::mem::take(&mut self.0).into_vec();
        let head = Head::of(key);
        if bit(key, split) {
            let place = found + 1 + all[found..].iter().take_while(is_above).count();
            let split = std::mem::replace(&mut all[place - 1].split, split);
            all.insert(place, HashedLeaf { head, hash, split });
        } else {
            let place = found - all[..found].iter().rev().take_while(is_above).count();
            all.insert(place, HashedLeaf { head, hash, split });
        }
        self.0 = all.into();
        true
    }

    /// Place of the leaf that a key's bits lead to.
    fn find(&self, key: &[u8]) -> usize {
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
        found
    }

    /// The hash over all of them; there are some.
    pub(super) fn top(&self) -> Digest {
        // Left sides whose right ones are not complete, with their bits, which increase.
        let mut open: Vec<HashedLeaf> = Vec::with_capacity(self.0.len());
        for mut leaf in self.0.iter().copied() {
            while let Some(left) = open.pop_if(|left| left.split >= leaf.split) {
                leaf.hash = hashes::inner(left.split, &left.hash, &leaf.hash);
            }
            open.push(leaf);
        }
        open.pop().expect("there are some").hash
    }
}
