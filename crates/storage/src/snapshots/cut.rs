//! Where a state's stream is cut into chunks: by what is in it, so that most chunks of a state
//! that changed in few places are those of the state before.
//!
//! A chunk ends before an entry, and whether it may depends on that entry's key and length alone:
//!
//! - A chunk of less than [`BYTES_MIN`] ends nowhere, unless the next entry would lead beyond
//!   [`Manifest::CHUNK_BYTES`].
//! - Then it ends before the first entry whose key's hash, as a number below 1, is less than the
//!   part that the entry has of [`BYTES_MEAN`]. Long entries are likelier, so that chunks are as
//!   long whatever the state's values are.
//! - It ends before an entry that does not fit any more; one that fits no chunk is cut.
//!
//! An entry that comes, goes or changes changes its chunk, and the next one seldom: where cuts are
//! not the same any more they meet again at the first entry at which both may cut. The minimum is
//! what bounds the number of chunks, for keys are whatever clients choose: of two chunks one after
//! the other the mean is at least half of the most.

use quorate_crypto::hash;
use quorate_types::Manifest;

/// Fewest bytes of a chunk that ends where it may, and not where it must.
const BYTES_MIN: usize = Manifest::CHUNK_BYTES / 2;
/// Bytes from there to the end, in the mean.
const BYTES_MEAN: u64 = 256 * 1024;

/// Bytes of an entry in the stream: two lengths, the key and the value.
fn bytes_of(key: &[u8], value: &[u8]) -> usize {
    2 * size_of::<u32>() + key.len() + value.len()
}

/// Returns `true` if a chunk that has so many bytes ends before this entry.
pub(super) fn ends_before(bytes: usize, key: &[u8], value: &[u8]) -> bool {
    let entry = bytes_of(key, value);
    let is_full = bytes > 0 && bytes + entry > Manifest::CHUNK_BYTES;
    is_full || (bytes >= BYTES_MIN && may_begin(key, entry as u64))
}

/// Returns `true` if an entry of this key and so many bytes may begin a chunk.
fn may_begin(key: &[u8], bytes: u64) -> bool {
    let drawn = hash(key).0.first_chunk().map_or(0, |first| u64::from_le_bytes(*first));
    drawn < bytes.saturating_mul(u64::MAX / BYTES_MEAN)
}

#[cfg(test)]
mod tests;
