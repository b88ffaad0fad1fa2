//! Durable records: promises that a replica must never forget (★).

use super::rules::WINDOW;
use super::values::{SlotCertificate, digest_of, encode};
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use quorate_crypto::Digest;
use quorate_types::executed::CheckpointCertificate;
use quorate_types::machine::{Record, RecordKind};
use quorate_types::{EpochId, Height, Payload, View};

/// Promises of a replica about its views (★), durable before it signs anything in them.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ViewRecord {
    /// Epoch of these promises, by how it began (★).
    pub epoch: EpochId,
    /// Lowest view in which it still signs.
    pub view: View,
    /// `true` until that view has begun: only view changes are signed before.
    pub in_view_change: bool,
    /// Last slot that the new view itself fills: up to here no pre-prepare is accepted.
    pub base: Height,
    /// Last stable checkpoint: promises about slots up to its height may be overwritten.
    pub stable: Option<CheckpointCertificate>,
}

impl ViewRecord {
    /// Record as the log keeps it.
    #[must_use]
    pub fn encode(&self) -> Record {
        Record { kind: RecordKind::Safety, bytes: Bytes::from(encode(self)) }
    }
}

/// Promises of a replica about one slot (★), durable before its votes for that slot leave.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SlotRecord {
    /// Epoch of these promises, by how it began (★).
    pub epoch: EpochId,
    /// Slot that they are about.
    pub slot: Height,
    /// Last proposal that it voted for: no other gets its vote in that view.
    pub accepted: Option<(View, Digest)>,
    /// Prepared certificate of the highest view: it voted to commit it.
    pub prepared: Option<SlotCertificate>,
    /// Payloads of both: if all members lose power at once, a certified value must still exist.
    pub payloads: Vec<Payload>,
}

impl SlotRecord {
    /// Returns `true` if the prepared value is here, to report it.
    pub(super) fn is_complete(&self) -> bool {
        let prepared = self.prepared.as_ref().map(|prepared| prepared.proposal.digest);
        prepared.is_none_or(|digest| self.payloads.iter().any(|it| digest_of(it) == digest))
    }

    /// Record as the log keeps it.
    #[must_use]
    pub fn encode(&self) -> Record {
        Record { kind: record_kind(self.slot), bytes: Bytes::from(encode(self)) }
    }
}

/// Kind of the record of a slot: it replaces that of the slot one window before, which is stable.
pub(super) fn record_kind(slot: Height) -> RecordKind {
    RecordKind::Slot(u8::try_from(slot.0 % WINDOW).expect("a window of 256"))
}
