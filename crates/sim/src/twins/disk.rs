//! What a machine's host keeps for it through restarts, and from one epoch to the next.

use bytes::Bytes;
use quorate_types::machine::{DecidedRecord, Record, RecordKind, Recovery};
use quorate_types::{BodyRef, Height};
use std::collections::{BTreeMap, BTreeSet};

/// Records and bodies of one host: of every epoch that it was in.
#[derive(Debug, Default)]
pub(super) struct Disk {
    safety: Option<Bytes>,
    slots: BTreeMap<RecordKind, Bytes>,
    /// Oldest first.
    decided: Vec<DecidedRecord>,
    pub(super) stored: BTreeSet<BodyRef>,
}

impl Disk {
    /// Keeps a promise, in the place of the last of its kind.
    pub(super) fn persist(&mut self, record: Record) {
        match record.kind {
            RecordKind::Safety | RecordKind::Incarnation => self.safety = Some(record.bytes),
            RecordKind::HandOver => unreachable!("a protocol's machine hands nothing over"),
            RecordKind::Slot(_) => drop(self.slots.insert(record.kind, record.bytes)),
        }
    }

    /// Keeps a decision. After a restart a machine decides again what it had decided.
    pub(super) fn append(&mut self, height: Height, bytes: Bytes) {
        if self.decided.last().is_none_or(|last| last.height < height) {
            self.decided.push(DecidedRecord { height, bytes });
        }
    }

    /// Decided records after this height, oldest first.
    pub(super) fn decided_after(&self, height: Height) -> &[DecidedRecord] {
        let first = self.decided.partition_point(|record| record.height <= height);
        &self.decided[first..]
    }

    /// All that is there when a machine starts.
    pub(super) fn recovery(&self) -> Recovery {
        Recovery {
            safety: self.safety.clone(),
            slots: self.slots.values().cloned().collect(),
            decided: self.decided.clone(),
            ..Recovery::default()
        }
    }
}
