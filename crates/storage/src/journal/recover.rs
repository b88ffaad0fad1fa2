//! Opening a journal: what both logs hold, put together with what the state store remembers.

use super::copy::PromiseCopy;
use super::index::Index;
use super::{
    BODY, BODY_HEAD_BYTES, DECIDED, DECIDED_HEAD_BYTES, HAND_OVER, INCARNATION, Latest, Promise,
    RELEASED, REPAIRED, SAFETY, SLOT,
};
use crate::StorageError;
use crate::log::salvage::Reader;
use crate::log::scan::Found;
use borsh::BorshDeserialize;
use bytes::Bytes;
use quorate_crypto::Digest;
use quorate_types::machine::{DecidedRecord, ExecutedUpTo, RecordKind, Recovery, SnapshotsOnDisk};
use quorate_types::{BodyRef, Height, ReplicaId};
use std::collections::BTreeMap;

/// Entries collected while the logs are read.
pub(super) struct Collected {
    pub(super) index: Index,
    pub(super) latest: Latest,
    /// Number of the record from which on the log has the latest of each kind, by its own word.
    pub(super) repaired: u64,
    /// Heights after the executed one.
    decided: BTreeMap<Height, Bytes>,
    after: Height,
    /// Heights that were released, and whether all their bodies are still here.
    released: BTreeMap<Height, bool>,
    /// Set until a record of the bodies was read.
    pub(super) no_bodies: bool,
}

impl Collected {
    pub(super) fn new(executed: Option<&ExecutedUpTo>) -> Self {
        Self {
            index: Index::default(),
            latest: Latest::new(),
            repaired: 0,
            decided: BTreeMap::new(),
            after: executed.map_or(Height(0), ExecutedUpTo::height),
            released: BTreeMap::new(),
            no_bodies: true,
        }
    }

    /// A record of the log of promises and decisions.
    fn record(&mut self, found: Found<'_>) -> Result<(), StorageError> {
        let Found { segment, location, sequence, kind, payload } = found;
        let mut latest = |kind, bytes| {
            let bytes = Bytes::copy_from_slice(bytes);
            self.latest.insert(kind, Promise { bytes, segment: segment.number, sequence });
        };
        match (kind, payload) {
            (SAFETY, _) => latest(RecordKind::Safety, payload),
            (INCARNATION, _) => latest(RecordKind::Incarnation, payload),
            (HAND_OVER, _) => latest(RecordKind::HandOver, payload),
            (SLOT, [place, bytes @ ..]) => latest(RecordKind::Slot(*place), bytes),
            (REPAIRED, _) => {
                let from = payload.try_into().map_err(|_| unknown(found))?;
                self.repaired = self.repaired.max(u64::from_le_bytes(from));
            }
            (DECIDED, _) if payload.len() >= DECIDED_HEAD_BYTES => {
                let (height, bytes) = payload.split_at(DECIDED_HEAD_BYTES);
                let height = Height(u64::from_le_bytes(height.try_into().expect("8 bytes")));
                self.index.add_decided(segment, height, location);
                if height > self.after {
                    self.decided.insert(height, Bytes::copy_from_slice(bytes));
                }
            }
            _ => return Err(unknown(found)),
        }
        Ok(())
    }

    /// Takes from the copy the promises that are newer than what the log has left of their kind
    /// and are missing there; `is_missing` says of a number whether it is. Returns how many.
    pub(super) fn restore(&mut self, copy: &PromiseCopy, is_missing: impl Fn(u64) -> bool) -> u64 {
        let mut restored = 0;
        for (kind, copied) in copy.latest() {
            let sequence = copied.sequence;
            let is_newer = self.latest.get(kind).is_none_or(|known| known.sequence < sequence);
            if is_newer && is_missing(sequence) {
                let bytes = copied.bytes.clone();
                self.latest.insert(*kind, Promise { bytes, segment: 0, sequence });
                restored += 1;
            }
        }
        restored
    }

    /// A record of the log of bodies.
    fn body(&mut self, found: Found<'_>) -> Result<(), StorageError> {
        let Found { segment, location, kind, payload, .. } = found;
        self.no_bodies = false;
        match kind {
            BODY if payload.len() >= BODY_HEAD_BYTES => {
                let name = BodyRef::try_from_slice(&payload[..BODY_HEAD_BYTES])
                    .expect("a reference is these bytes, whatever they are");
                self.index.add_body(segment, name, location);
                Ok(())
            }
            RELEASED => {
                let mark = <(Height, Vec<BodyRef>)>::try_from_slice(payload);
                let (height, names) = mark.map_err(|_| unknown(found))?;
                let complete = self.index.release(height, &names);
                self.released.insert(height, complete);
                Ok(())
            }
            _ => Err(unknown(found)),
        }
    }

    /// Forgets what it read of the bodies' log.
    pub(super) fn forget_bodies(&mut self) {
        self.index.bodies.clear();
        self.index.body_segments.clear();
        self.index.bodies_from = Height(0);
        self.released.clear();
        self.no_bodies = true;
    }

    /// State that survived, as the machine is told it; the index is complete afterwards.
    pub(super) fn recovery(&mut self, executed: Option<ExecutedUpTo>) -> Recovery {
        self.index.decided_from = contiguous_down(&self.index.decided);
        self.index.bodies_from = self.bodies_from();
        let latest = |kind| self.latest.get(&kind).map(|promise: &Promise| promise.bytes.clone());
        let is_slot = |kind: &RecordKind| matches!(kind, RecordKind::Slot(_));
        let slots = self.latest.iter().filter(|(kind, _)| is_slot(kind));
        let live = self.index.bodies.iter().filter(|(_, stored)| stored.height.is_none());
        Recovery {
            safety: latest(RecordKind::Safety),
            slots: slots.map(|(_, promise)| promise.bytes.clone()).collect(),
            incarnation: latest(RecordKind::Incarnation),
            hand_over: latest(RecordKind::HandOver),
            executed,
            decided: contiguous_after(self.after, std::mem::take(&mut self.decided)),
            bodies: live.map(|(name, _)| *name).collect(),
            snapshots: SnapshotsOnDisk::default(),
            staged: Vec::new(),
        }
    }

    /// Height from which on all bodies are here, down from the newest that was released.
    fn bodies_from(&self) -> Height {
        let mut from = self.released.last_key_value().map_or(Height(0), |(top, _)| top.next());
        for (height, complete) in self.released.iter().rev() {
            if height.next() != from || !complete {
                break;
            }
            from = *height;
        }
        from
    }
}

/// Stands for bodies that were lost with their files: never stored, so that the height that it is
/// written for counts as pruned.
pub(super) fn lost_body() -> BodyRef {
    BodyRef { author: ReplicaId(u16::MAX), sequence: u64::MAX, digest: Digest::ZERO }
}

fn unknown(found: Found<'_>) -> StorageError {
    let reason = format!("a sound record of the unknown kind {}", found.kind);
    found.segment.corrupt(found.location.offset, &reason)
}

/// Reads the log of promises and decisions.
pub(super) struct Records<'a>(pub(super) &'a mut Collected);

impl Reader for Records<'_> {
    fn take(&mut self, found: Found<'_>) -> Result<(), StorageError> {
        self.0.record(found)
    }

    fn restart(&mut self) {
        let Collected { index, latest, repaired, decided, .. } = &mut *self.0;
        index.decided.clear();
        index.record_segments.clear();
        index.decided_from = Height(0);
        latest.clear();
        decided.clear();
        *repaired = 0;
    }
}

/// Reads the log of bodies.
pub(super) struct Bodies<'a>(pub(super) &'a mut Collected);

impl Reader for Bodies<'_> {
    fn take(&mut self, found: Found<'_>) -> Result<(), StorageError> {
        self.0.body(found)
    }

    fn restart(&mut self) {
        self.0.forget_bodies();
    }
}

fn contiguous_after(after: Height, decided: BTreeMap<Height, Bytes>) -> Vec<DecidedRecord> {
    let mut next = after.next();
    let mut records = Vec::new();
    for (height, bytes) in decided {
        if height != next {
            break;
        }
        records.push(DecidedRecord { height, bytes });
        next = next.next();
    }
    records
}

/// The lowest height that is joined to the highest one without a gap.
pub(super) fn contiguous_down<T>(decided: &BTreeMap<Height, T>) -> Height {
    let mut from = decided.last_key_value().map_or(Height(0), |(last, _)| last.next());
    for height in decided.keys().rev() {
        if height.next() != from {
            break;
        }
        from = *height;
    }
    from
}
