//! What is written down: decided slots, and what a replica must never forget.

use super::messages::{Proof, SlotCertificate, digest_of, encode};
use super::slots::record_kind;
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use quorate_crypto::Digest;
use quorate_types::executed::CheckpointCertificate;
use quorate_types::machine::{Record, RecordKind};
use quorate_types::{BlockId, Epoch, Height, Payload, View};

/// A decided slot, which proves itself.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct DecidedSlot {
    /// What is decided.
    pub payload: Payload,
    /// What decided it.
    pub proof: Proof,
}

impl DecidedSlot {
    /// The name of what was decided: its value, in whatever view.
    #[must_use]
    pub fn id(&self) -> BlockId {
        BlockId(digest_of(&self.payload))
    }

    /// As it is kept and served.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        Bytes::from(encode(self))
    }

    /// Reads what [`DecidedSlot::encode`] wrote.
    #[must_use]
    pub fn decode(record: &Bytes) -> Option<Self> {
        borsh::from_slice(record).ok()
    }
}

/// What a replica must never forget of its views (★).
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ViewRecord {
    /// The epoch of these promises.
    pub epoch: Epoch,
    /// Nothing is signed below this view.
    pub view: View,
    /// Whether it has begun; nothing but view changes is signed before.
    pub changing: bool,
    /// Slots up to here are what its new view says: no value of the primary is accepted for them.
    pub base: Height,
    /// Slots up to here are forgotten, and who asks is shown why.
    pub stable: Option<CheckpointCertificate>,
}

impl ViewRecord {
    /// As it is kept.
    #[must_use]
    pub fn encode(&self) -> Record {
        Record { kind: RecordKind::Safety, bytes: Bytes::from(encode(self)) }
    }
}

/// What a replica must never forget of a slot (★).
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SlotRecord {
    /// The epoch of these promises.
    pub epoch: Epoch,
    /// The slot.
    pub slot: Height,
    /// The last value that got its vote: no other gets one in that view.
    pub accepted: Option<(View, Digest)>,
    /// The certificate of the highest view that got its vote to commit.
    pub prepared: Option<SlotCertificate>,
    /// Both values: if everybody loses power at once, a certified value must still be somewhere.
    pub payloads: Vec<Payload>,
}

impl SlotRecord {
    /// As it is kept.
    #[must_use]
    pub fn encode(&self) -> Record {
        Record { kind: record_kind(self.slot), bytes: Bytes::from(encode(self)) }
    }
}
