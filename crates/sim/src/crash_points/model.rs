//! Model of what a log of records may give back: always a beginning of what was written, and at
//! least what was called durable. It shares no code with the log.

use bytes::Bytes;
use quorate_storage::Entry;
use quorate_types::machine::{ExecutedUpTo, Record, RecordKind, Recovery, Release};
use quorate_types::{BodyRef, Height};
use std::collections::{BTreeMap, BTreeSet};

/// Entries written to both logs, and how many of them were called durable.
#[derive(Clone, Default)]
pub(super) struct Model {
    records: Vec<Entry>,
    records_durable: usize,
    bodies: Vec<Entry>,
    bodies_durable: usize,
}

/// Part of the last entries that may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// Nothing may be missing.
    Nothing,
    /// Entries that were not called durable, or part of them: a segment that ended was synced
    /// early.
    Unsynced,
    /// Anything: a bit of the very last group rotted, and that cannot be told from a crash.
    Anything,
}

impl Model {
    pub(super) fn wrote(&mut self, entry: &Entry) {
        match entry {
            Entry::Record(_) | Entry::Decided(_) => self.records.push(entry.clone()),
            Entry::Body(_) => self.bodies.push(entry.clone()),
            // Each height that is released has a record of its own.
            Entry::Release(Release { below, bodies }) => {
                for mark in bodies {
                    let release = Release { below: *below, bodies: vec![mark.clone()] };
                    self.bodies.push(Entry::Release(release));
                }
            }
        }
    }

    pub(super) fn synced(&mut self, records: bool, bodies: bool) {
        if records {
            self.records_durable = self.records.len();
        }
        if bodies {
            self.bodies_durable = self.bodies.len();
        }
    }

    /// Returns `true` if a record of this kind was called durable.
    pub(super) fn keeps(&self, kind: RecordKind) -> bool {
        latest(&self.records[..self.records_durable], kind).is_some()
    }

    /// Checks that this may have survived; it is all there is from here on.
    pub(super) fn recovered(&mut self, missing: Missing, found: &Recovery) -> Result<(), String> {
        let after = found.executed.as_ref().map_or(Height(0), ExecutedUpTo::height);
        let records = range(missing, self.records_durable, self.records.len());
        let fits = |count: &usize| {
            let kept = &self.records[..*count];
            latest(kept, RecordKind::Safety) == found.safety
                && latest(kept, RecordKind::Incarnation) == found.incarnation
                && latest(kept, RecordKind::HandOver) == found.hand_over
                && slots(kept) == found.slots
                && decided(kept, after) == found.decided_bytes()
        };
        let Some(count) = records.rev().find(fits) else {
            return Err(format!(
                "the records recovered are no beginning of the {} written, of which {} were durable",
                self.records.len(),
                self.records_durable
            ));
        };
        let names: BTreeSet<BodyRef> = found.bodies.iter().copied().collect();
        let bodies = range(missing, self.bodies_durable, self.bodies.len());
        let Some(bodies) = bodies.rev().find(|count| live(&self.bodies[..*count]) == names) else {
            return Err(format!(
                "the {} bodies recovered are not those of a beginning of the {} entries written, of \
                 which {} were durable",
                names.len(),
                self.bodies.len(),
                self.bodies_durable
            ));
        };
        self.records.truncate(count);
        self.records_durable = count;
        self.bodies.truncate(bodies);
        self.bodies_durable = bodies;
        Ok(())
    }
}

trait DecidedBytes {
    fn decided_bytes(&self) -> Vec<(Height, Bytes)>;
}

impl DecidedBytes for Recovery {
    fn decided_bytes(&self) -> Vec<(Height, Bytes)> {
        self.decided.iter().map(|record| (record.height, record.bytes.clone())).collect()
    }
}

fn range(missing: Missing, durable: usize, written: usize) -> std::ops::RangeInclusive<usize> {
    match missing {
        Missing::Nothing => written..=written,
        Missing::Unsynced => durable..=written,
        Missing::Anything => 0..=written,
    }
}

fn latest(entries: &[Entry], kind: RecordKind) -> Option<Bytes> {
    entries.iter().rev().find_map(|entry| match entry {
        Entry::Record(record) if record.kind == kind => Some(record.bytes.clone()),
        _ => None,
    })
}

/// The latest record of each slot's place.
fn slots(entries: &[Entry]) -> Vec<Bytes> {
    let places: BTreeMap<u8, Bytes> = entries
        .iter()
        .filter_map(|entry| match entry {
            Entry::Record(Record { kind: RecordKind::Slot(place), bytes }) => {
                Some((*place, bytes.clone()))
            }
            _ => None,
        })
        .collect();
    places.into_values().collect()
}

/// The decided heights after this one, as long as none is missing.
fn decided(entries: &[Entry], after: Height) -> Vec<(Height, Bytes)> {
    let mut all = BTreeMap::new();
    for entry in entries {
        if let Entry::Decided(record) = entry
            && record.height > after
        {
            all.insert(record.height, record.bytes.clone());
        }
    }
    let contiguous = (after.0 + 1..).zip(all);
    contiguous.take_while(|(next, (height, _))| height.0 == *next).map(|(_, found)| found).collect()
}

fn live(entries: &[Entry]) -> BTreeSet<BodyRef> {
    let mut live = BTreeSet::new();
    for entry in entries {
        match entry {
            Entry::Body(body) => {
                live.insert(body.reference);
            }
            Entry::Release(release) => {
                for name in release.bodies.iter().flat_map(|(_, names)| names) {
                    live.remove(name);
                }
            }
            Entry::Record(_) | Entry::Decided(_) => {}
        }
    }
    live
}
