//! Statement of a member that acknowledges bodies: an author's bodies are available without a gap,
//! up to one of them.
//!
//! The bodies that an author seals from one start to the next are a chain: the link at each of them
//! is the hash of the link before it, its sequence number and its digest. A link therefore names
//! every body up to its own, and one signature over it acknowledges them all.

use crate::{Kind, ReplicaId, Scope, sign};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::{Digest, hash_parts};

/// The statement "every body of this author's chain up to this one is stored here, or was certified
/// before". By induction over the certificates, an honest member stores each body that members of
/// `weak` weight acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Available {
    /// Author of the bodies, a member.
    pub author: ReplicaId,
    /// The last of them; its upper part is the author's start to which the chain belongs.
    pub sequence: u64,
    /// The link at that body.
    pub link: Digest,
}

impl Available {
    /// Number of a sequence number's lower bits that count bodies. The bits above them count the
    /// author's starts: numbers begin anew, higher, with each.
    pub const SEQUENCE_BITS: u32 = 40;

    /// The first sequence number of the start to which `sequence` belongs.
    #[must_use]
    pub const fn first_sequence(sequence: u64) -> u64 {
        sequence >> Self::SEQUENCE_BITS << Self::SEQUENCE_BITS
    }

    /// The link before an author's first body since a start; `first` is that body's sequence
    /// number.
    #[must_use]
    pub fn start(author: ReplicaId, first: u64) -> Digest {
        let parts: [&[u8]; 2] = [&author.0.to_le_bytes(), &first.to_le_bytes()];
        hash_parts("quorate v1 body chain start", &parts)
    }

    /// The link at the body `sequence` with this digest, after the link before it.
    #[must_use]
    pub fn link(before: Digest, sequence: u64, body: Digest) -> Digest {
        let parts: [&[u8]; 3] = [&before.0, &sequence.to_le_bytes(), &body.0];
        hash_parts("quorate v1 body chain link", &parts)
    }

    /// The bytes that a member signs.
    #[must_use]
    pub fn statement(&self, scope: Scope) -> Vec<u8> {
        sign::statement(Kind::Available, scope, self)
    }
}

#[cfg(test)]
mod tests;
