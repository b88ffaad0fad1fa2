//! Snapshots of the executed state, as chunks and a manifest of them.
//!
//! A snapshot is a stream of bytes, cut into chunks, and a [`Manifest`] that names every chunk by
//! its hash. Replicas that executed the same heights make the same snapshots, to the byte: what
//! differs from member to member, such as who signed the certificate that decided a height, is not
//! in it.

use crate::Header;
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::{Digest, hash_parts};

/// Description of a snapshot: the same bytes at every replica that executed the height.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Manifest {
    /// The service whose state it holds.
    pub service: String,
    /// Header of the last height whose effects are in it.
    pub header: Header,
    /// Operations executed up to that height, over the whole history.
    pub operations: u64,
    /// The hash of each chunk, in order.
    pub chunks: Vec<Digest>,
}

impl Manifest {
    /// Most bytes of a chunk.
    pub const CHUNK_BYTES: usize = 1024 * 1024;
    /// Most chunks: a state of 12 GiB at least, of some 17 where keys are not chosen for it.
    pub const CHUNKS_MAX: usize = 24 * 1024;

    /// Digest that members vouch for: two manifests with one digest are the same.
    ///
    /// # Panics
    /// Never: encoding into memory cannot fail.
    #[must_use]
    pub fn digest(&self) -> Digest {
        hash_parts("quorate v1 snapshot", &[&self.encode()])
    }

    /// Its bytes.
    ///
    /// # Panics
    /// Never: encoding into memory cannot fail.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        borsh::to_vec(self).expect("encoding into memory cannot fail")
    }

    /// The manifest in `bytes`; `None` when they are none, or one over its limit.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let manifest: Self = borsh::from_slice(bytes).ok()?;
        (manifest.chunks.len() <= Self::CHUNKS_MAX).then_some(manifest)
    }
}
