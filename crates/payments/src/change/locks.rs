//! Locks of an epoch as they are reported: in the order of transactions, in chunks under a root.

use crate::{OutputId, TxId};
use quorate_crypto::merkle::Tree;
use quorate_crypto::{Digest, hash_parts};

/// A transaction, and one of the inputs that are locked for it.
pub type LockEntry = (TxId, OutputId);

/// Entries of a chunk, but for the last one of a report: just below a mebibyte.
pub const CHUNK_ENTRIES: usize = 15_000;

const ENTRY_BYTES: usize = 66;
const HASH_BYTES: usize = 32;

/// Number of chunks of a report of `count` inputs.
pub(super) fn chunks_of(count: u64) -> u64 {
    count.div_ceil(CHUNK_ENTRIES as u64)
}

/// Root over the leaves of a report's chunks; zeros for none.
pub(super) fn root_of(leaves: &[Digest]) -> Digest {
    if leaves.is_empty() { Digest::ZERO } else { Tree::new(leaves).root() }
}

/// Bytes of a chunk.
#[must_use]
pub fn encode_chunk(entries: &[LockEntry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.len() * ENTRY_BYTES);
    for (tx, input) in entries {
        bytes.extend_from_slice(&tx.0.0);
        bytes.extend_from_slice(&input.tx.0.0);
        bytes.extend_from_slice(&input.index.to_be_bytes());
    }
    bytes
}

/// Entries of a chunk; `None` where the bytes are none, or not in ascending order, each once.
#[must_use]
pub fn decode_chunk(bytes: &[u8]) -> Option<Vec<LockEntry>> {
    if bytes.len() > CHUNK_ENTRIES * ENTRY_BYTES || !bytes.len().is_multiple_of(ENTRY_BYTES) {
        return None;
    }
    let entries: Vec<LockEntry> = bytes.chunks_exact(ENTRY_BYTES).map(decode).collect();
    entries.windows(2).all(|pair| pair[0] < pair[1]).then_some(entries)
}

fn decode(entry: &[u8]) -> LockEntry {
    let hash = |at: usize| {
        let bytes = entry[at..at + HASH_BYTES].try_into().expect("32 bytes");
        TxId(Digest(bytes))
    };
    let index = u16::from_be_bytes([entry[2 * HASH_BYTES], entry[2 * HASH_BYTES + 1]]);
    (hash(0), OutputId { tx: hash(HASH_BYTES), index })
}

/// Leaf of a chunk in the report's tree.
#[must_use]
pub fn chunk_leaf(number: u32, bytes: &[u8]) -> Digest {
    hash_parts("quorate v1 payments: a chunk of locks", &[&number.to_be_bytes(), bytes])
}
