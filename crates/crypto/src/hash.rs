//! Hashing: BLAKE3 for everything of ours.

use crate::counts;
use borsh::{BorshDeserialize, BorshSerialize};
use std::fmt;
use std::str::FromStr;

/// A 32-byte BLAKE3 hash. `Debug` and `Display` print its first eight hexadecimal digits; use
/// [`Digest::to_hex`] for all of it.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, BorshSerialize, BorshDeserialize,
)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// All zero bytes: "nothing", the parent of a first block.
    pub const ZERO: Self = Self([0; 32]);

    /// All 64 hexadecimal digits.
    pub fn to_hex(&self) -> String {
        hex::encode(self.0)
    }

    /// Reads 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Result<Self, ParseDigestError> {
        let mut bytes = [0; 32];
        match hex::decode_to_slice(text, &mut bytes) {
            Ok(()) => Ok(Self(bytes)),
            Err(_) => Err(ParseDigestError { length: text.len() }),
        }
    }
}

/// A text that is not 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a digest is written as 64 hexadecimal digits; these {length} characters are not that")]
pub struct ParseDigestError {
    /// Length of the refused text in bytes.
    pub length: usize,
}

impl FromStr for Digest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_hex(text)
    }
}

impl AsRef<[u8]> for Digest {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0[..4]))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Hash of `bytes` with BLAKE3, of 32 bytes.
pub fn hash(bytes: &[u8]) -> Digest {
    counts::add(|count| {
        count.hashes += 1;
        count.hashed_bytes += bytes.len() as u64;
    });
    Digest(*blake3::hash(bytes).as_bytes())
}

/// BLAKE3 of `bytes` under a key. The key is a constant of the program and its meaning: what is
/// hashed under one key never equals what is hashed under another. For small things that are hashed
/// often: [`hash_parts`] hashes its domain each time.
pub fn hash_keyed(key: &[u8; 32], bytes: &[u8]) -> Digest {
    counts::add(|count| {
        count.hashes += 1;
        count.hashed_bytes += bytes.len() as u64;
    });
    Digest(*blake3::keyed_hash(key, bytes).as_bytes())
}

/// Blocks that are hashed side by side at most, on any processor.
const SIDE_BY_SIDE: usize = blake3::platform::MAX_SIMD_DEGREE;

/// [`hash_keyed`] of many blocks of 64 bytes under one key: side by side in vectors, where the
/// processor has them, which takes an eighth of the time of one after the other with AVX-512.
///
/// The library has no other way to several short inputs than what its own benchmarks use; tests
/// hold it to what [`hash_keyed`] says.
pub(crate) fn hash_keyed_blocks(key: &[u8; 32], blocks: &[[u8; 64]]) -> Vec<Digest> {
    // BLAKE3 §2.2: a whole input of one block, under a key.
    const START: u8 = 1;
    const END: u8 = 1 << 1;
    const ROOT: u8 = 1 << 3;
    const KEYED: u8 = 1 << 4;
    counts::add(|count| {
        count.hashes += blocks.len() as u64;
        count.hashed_bytes += 64 * blocks.len() as u64;
    });
    let platform = blake3::platform::Platform::detect();
    let key = blake3::platform::words_from_le_bytes_32(key);
    let mut hashes = Vec::with_capacity(blocks.len());
    for part in blocks.chunks(SIDE_BY_SIDE) {
        let inputs: [&[u8; 64]; SIDE_BY_SIDE] =
            std::array::from_fn(|at| &part[at.min(part.len() - 1)]);
        let mut out = [0; 32 * SIDE_BY_SIDE];
        let (inputs, increment) = (&inputs[..part.len()], blake3::IncrementCounter::No);
        platform.hash_many(inputs, &key, 0, increment, KEYED | ROOT, START, END, &mut out);
        let (found, _) = out.as_chunks();
        hashes.extend(found[..part.len()].iter().map(|hash| Digest(*hash)));
    }
    hashes
}

/// BLAKE3 of a list of byte strings under a domain of its own.
///
/// Injective: BLAKE3's `derive_key` mode separates the domains, and every part is preceded by its
/// length, so `["ab", "c"]` and `["a", "bc"]` differ, as do `[]` and `[""]`. A domain is a constant
/// of the program, never data.
pub fn hash_parts(domain: &'static str, parts: &[&[u8]]) -> Digest {
    Digest(*absorb(domain, parts.iter().copied()).finalize().as_bytes())
}

/// [`hash_parts`] of many parts that come one after the other.
///
/// Small parts are gathered first: BLAKE3 is several times as fast on kilobytes at once as on one
/// block of 64 bytes after the other.
///
/// ```
/// use quorate_crypto::{PartsHasher, hash_parts};
///
/// let mut hasher = PartsHasher::new("an example");
/// hasher.part(b"ab");
/// hasher.part(b"c");
/// assert_eq!(hasher.finish(), hash_parts("an example", &[b"ab", b"c"]));
/// ```
#[derive(Debug)]
pub struct PartsHasher {
    hasher: blake3::Hasher,
    gathered: Vec<u8>,
}

impl PartsHasher {
    const GATHERED_MAX: usize = 32 * 1024;

    /// No parts yet, under `domain`.
    pub fn new(domain: &'static str) -> Self {
        Self {
            hasher: blake3::Hasher::new_derive_key(domain),
            gathered: Vec::with_capacity(Self::GATHERED_MAX),
        }
    }

    /// Adds the next part, with its length before it.
    pub fn part(&mut self, part: &[u8]) {
        counts::add(|count| count.hashed_bytes += part.len() as u64 + 8);
        if self.gathered.len() + 8 + part.len() > Self::GATHERED_MAX {
            self.flush();
        }
        self.gathered.extend_from_slice(&(part.len() as u64).to_le_bytes());
        if self.gathered.len() + part.len() > Self::GATHERED_MAX {
            self.flush();
            self.hasher.update(part);
        } else {
            self.gathered.extend_from_slice(part);
        }
    }

    /// The hash over all parts.
    pub fn finish(mut self) -> Digest {
        counts::add(|count| count.hashes += 1);
        self.flush();
        Digest(*self.hasher.finalize().as_bytes())
    }

    fn flush(&mut self) {
        self.hasher.update(&self.gathered);
        self.gathered.clear();
    }
}

/// A hasher that has absorbed length-prefixed `parts` under `domain`.
pub(crate) fn absorb<'a>(
    domain: &'static str,
    parts: impl Iterator<Item = &'a [u8]>,
) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new_derive_key(domain);
    counts::add(|count| count.hashes += 1);
    for part in parts {
        counts::add(|count| count.hashed_bytes += part.len() as u64 + 8);
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher
}

#[cfg(test)]
mod tests;
