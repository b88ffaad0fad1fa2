//! Hashes of the tree, each kind under a key of its own so that none passes for another.

use super::bits::KEY_BYTES_MAX;
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Digest, hash_keyed};

const VALUE: &[u8; 32] = b"quorate v1 key-value: a value   ";
const LEAF: &[u8; 32] = b"quorate v1 key-value: a leaf    ";
const ROOT: &[u8; 32] = b"quorate v1 key-value: the root  ";
/// The last two bytes are the position.
const INNER: &[u8; 32] = b"quorate v1 key-value: a node, at";

/// The hash that stands for a value.
pub(crate) fn value(value: &[u8]) -> Digest {
    hash_keyed(VALUE, value)
}

/// A key, of at most [`KEY_BYTES_MAX`], with its value's hash.
pub(crate) fn leaf(key: &[u8], value: &Digest) -> Digest {
    let length = u16::try_from(key.len()).expect("keys have at most 1,024 bytes");
    let mut content = [0; 2 + KEY_BYTES_MAX + 32];
    let (key_end, end) = (2 + key.len(), 2 + key.len() + 32);
    content[..2].copy_from_slice(&length.to_le_bytes());
    content[2..key_end].copy_from_slice(key);
    content[key_end..end].copy_from_slice(&value.0);
    hash_keyed(LEAF, &content[..end])
}

/// The keys on both sides of a bit (★: a proof cannot choose which bit).
pub(crate) fn inner(bit: u16, left: &Digest, right: &Digest) -> Digest {
    let mut key = *INNER;
    if !mutants::active(Mutant::KvUnboundPosition) {
        key[30..].copy_from_slice(&bit.to_le_bytes());
    }
    let mut both = [0; 64];
    both[..32].copy_from_slice(&left.0);
    both[32..].copy_from_slice(&right.0);
    hash_keyed(&key, &both)
}

/// Root over so many keys below a top, which is zero where there are none (★).
pub(crate) fn root(count: u64, top: &Digest) -> Digest {
    let mut content = [0; 40];
    if !mutants::active(Mutant::KvForgetCount) {
        content[..8].copy_from_slice(&count.to_le_bytes());
    }
    content[8..].copy_from_slice(&top.0);
    hash_keyed(ROOT, &content)
}
