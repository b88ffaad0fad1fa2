//! Values of slots, votes for them, and proofs that one is decided: plain data, hashed and encoded
//! here, with neither state nor keys.

use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use quorate_crypto::{Certificate, Digest, Share, hash_parts};
use quorate_types::{BlockId, Height, Payload, Scope, View};

/// Value proposed for a slot in a view: the triple `(v, s, d)` that prepares and commits sign (PBFT
/// §4.2, paper 002 §V-C).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub struct Proposal {
    /// View in which it is proposed.
    pub view: View,
    /// Slot that it fills: the height that is decided there.
    pub slot: Height,
    /// Digest of its payload ([`digest_of`]).
    pub digest: Digest,
}

/// Digest of a payload's header, the same in every view and by whichever primary it is proposed: a
/// decision of one view is the same decision in the next.
#[must_use]
pub fn digest_of(payload: &Payload) -> Digest {
    hash_parts("quorate v1 slot value", &[&encode(&payload.header)])
}

/// Null operation (PBFT §4.4): an empty payload stamped zero, which fills a slot that no member of
/// a new view's quorum has evidence of.
#[must_use]
pub fn null_operation(slot: Height) -> Payload {
    Payload::new(slot, 0, Vec::new())
}

/// Id of the parent of the first slot.
pub(crate) fn genesis_id(scope: Scope) -> BlockId {
    BlockId(hash_parts("quorate v1 windowed genesis", &[&encode(&scope)]))
}

/// Primary's proposal for a slot, with the payload and the primary's own vote for it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PrePrepare {
    /// View that the primary leads.
    pub view: View,
    /// Payload proposed; its header names the slot.
    pub payload: Payload,
    /// Vote of the primary, which sends no sign-share of its own.
    pub shares: Shares,
    /// Signature by the primary's proposal key: two of these for one slot and view convict it.
    pub signature: Vec<u8>,
}

impl PrePrepare {
    /// View, slot and digest that it proposes.
    #[must_use]
    pub fn proposal(&self) -> Proposal {
        let slot = self.payload.header.height;
        Proposal { view: self.view, slot, digest: digest_of(&self.payload) }
    }
}

/// Signature shares of one member over one proposal. Where one key serves both thresholds
/// (multi-signatures), one share serves both.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Shares {
    /// Share for a quorum's certificate (paper 002: `τᵢ`).
    pub slow: Share,
    /// Share for a fast proof (`σᵢ`): only where its keys differ from `τ`'s, and only within a
    /// quarter of a window beyond what the signer decided (§V-F).
    pub fast: Option<Share>,
}

/// Combined votes for one proposal. Two certificates of one proposal are equal, whoever signed
/// them.
#[derive(Clone, Debug, BorshSerialize, BorshDeserialize)]
pub struct SlotCertificate {
    /// Proposal that the signers voted for.
    pub proposal: Proposal,
    /// Their combined signature, and who they are.
    pub certificate: Certificate,
}

impl PartialEq for SlotCertificate {
    fn eq(&self, other: &Self) -> bool {
        self.proposal == other.proposal
    }
}

impl Eq for SlotCertificate {}

/// Commit path on which a slot was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub enum Path {
    /// One round of votes, by all but the redundant members (paper 002 §V-C: `3f+c+1`).
    Fast,
    /// Two rounds, each by a quorum (PBFT §4.2; paper 002 §V-E: `2f+c+1`).
    Slow,
}

/// Commit proof of a slot (paper 002: full-commit-proof): valid whoever shows it and in whatever
/// view.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Proof {
    /// Path that its votes are of.
    pub path: Path,
    /// Votes to prepare on the fast path, votes to commit on the slow one.
    pub certificate: SlotCertificate,
}

/// Decided slot as it is stored and served: payload and proof.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct DecidedSlot {
    /// Payload that is decided there.
    pub payload: Payload,
    /// Proof over the payload's digest.
    pub proof: Proof,
}

impl DecidedSlot {
    /// Id of the decided block: its payload's digest.
    #[must_use]
    pub fn id(&self) -> BlockId {
        BlockId(digest_of(&self.payload))
    }

    /// Bytes in the log and on the wire.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        Bytes::from(encode(self))
    }

    /// Reads what [`DecidedSlot::encode`] wrote; `None` for anything else.
    #[must_use]
    pub fn decode(record: &Bytes) -> Option<Self> {
        borsh::from_slice(record).ok()
    }
}

pub(super) fn encode(value: &impl BorshSerialize) -> Vec<u8> {
    borsh::to_vec(value).expect("encoding into memory cannot fail")
}
