//! The second copy of the promises, in files of its own: what a flipped bit or a lost file takes
//! from one log is in the other.
//!
//! Every record that the journal persists is appended here too, with its number in the log of
//! records; at the end of each group follows how far the copy goes: the number and checksum of the
//! log's last record. When a segment is full, the latest record of each kind is written again and
//! the segments before it go, so that the copy stays at a few megabytes for ever.
//!
//! # When it is durable
//!
//! It is written after the log's sync and has none of its own but when a segment is full, when the
//! validator stops, and at every start. A second sync in each group would double what a vote waits
//! for. Without it a power cut leaves a copy that lags behind a log that is whole, which harms
//! nobody: the next start, before it signs, brings the copy level and syncs it. Two failures at
//! once are left: a power cut, and the decay of a record that was written in the half minute before
//! it. Then the copy does not reach as far as the damage, and is not used (★).
//!
//! A full segment is synced wherever the log is: the copy may have a promise that a power cut took
//! from the log. Nobody acted on it; where the one before it is damaged in the log, it is taken,
//! for the copy has no other of its kind.
//!
//! A copy that is damaged itself, or says another thing than the log, is begun anew.

use super::{HAND_OVER, INCARNATION, SAFETY, SLOT};
use crate::disk::Disk;
use crate::log::salvage::Reader;
use crate::log::scan::Found;
use crate::log::{Log, LogConfig, LogMark, LogName, record};
use crate::{Owner, StorageError};
use bytes::Bytes;
use quorate_types::machine::RecordKind;
use std::collections::BTreeMap;

const NAME: LogName = LogName("copy");

/// How far the copy goes: number and checksum of the log's last record.
const COVERED: u8 = 20;

/// Bytes of a segment, unless the log's own are smaller.
const SEGMENT_BYTES_MAX: u64 = 1024 * 1024;

/// The latest record of a kind.
#[derive(Clone, Debug)]
pub(super) struct Copied {
    /// Its number in the log of records.
    pub(super) sequence: u64,
    pub(super) bytes: Bytes,
    /// Segment of the copy that has it.
    segment: u64,
}

/// The copy of the latest records. A log of a few megabytes.
pub(super) struct PromiseCopy {
    log: Log,
    content: Content,
    /// Bytes appended since everything was written again.
    since: u64,
}

#[derive(Default)]
struct Content {
    latest: BTreeMap<RecordKind, Copied>,
    covered: Option<LogMark>,
}

impl PromiseCopy {
    /// Opens the copy, or begins one; one that is damaged is begun anew.
    pub(super) fn open(
        disk: Box<dyn Disk>,
        owner: &Owner,
        config: &LogConfig,
    ) -> Result<Self, StorageError> {
        let segment_bytes = config.segment_bytes.min(SEGMENT_BYTES_MAX);
        let config = LogConfig { segment_bytes, ..config.clone() };
        let mut content = Content::default();
        let (log, salvaged) = Log::open_or_salvage(disk, NAME, owner, config, &mut content)?;
        let mut copy = Self { log, content, since: 0 };
        if salvaged.is_some() {
            copy.begin_anew()?;
        }
        Ok(copy)
    }

    /// Log that it is in.
    pub(super) fn log(&self) -> &Log {
        &self.log
    }

    /// The latest record of each kind.
    pub(super) fn latest(&self) -> &BTreeMap<RecordKind, Copied> {
        &self.content.latest
    }

    /// Last record of the log up to which every latest record is here.
    pub(super) fn covered(&self) -> Option<LogMark> {
        self.content.covered
    }

    /// Forgets everything: it was not this log's.
    pub(super) fn begin_anew(&mut self) -> Result<(), StorageError> {
        self.content = Content::default();
        self.log.begin_anew()
    }

    /// Adds a record that has this number in the log.
    pub(super) fn add(
        &mut self,
        kind: RecordKind,
        sequence: u64,
        bytes: &Bytes,
    ) -> Result<(), StorageError> {
        let number = sequence.to_le_bytes();
        let at = match kind {
            RecordKind::Safety => self.log.append(SAFETY, &number, bytes),
            RecordKind::Incarnation => self.log.append(INCARNATION, &number, bytes),
            RecordKind::HandOver => self.log.append(HAND_OVER, &number, bytes),
            RecordKind::Slot(place) => {
                self.log.append(SLOT, &[&number[..], &[place]].concat(), bytes)
            }
        }?;
        self.since += record::size(at.bytes as usize);
        let copied = Copied { sequence, bytes: bytes.clone(), segment: at.segment };
        self.content.latest.insert(kind, copied);
        Ok(())
    }

    /// Says that all up to this record of the log, which is durable, is here, and hands it to the
    /// operating system.
    pub(super) fn cover(&mut self, mark: LogMark) -> Result<(), StorageError> {
        self.content.covered = Some(mark);
        self.put_covered(mark)?;
        self.drop_old()?;
        self.log.flush()
    }

    /// Makes it as durable as the log.
    pub(super) fn sync(&mut self) -> Result<(), StorageError> {
        self.log.commit()
    }

    fn put_covered(&mut self, mark: LogMark) -> Result<(), StorageError> {
        let (number, checksum) = (mark.sequence.to_le_bytes(), mark.checksum);
        let at = self.log.append(COVERED, &[&number[..], &checksum].concat(), &Bytes::new())?;
        self.since += record::size(at.bytes as usize);
        Ok(())
    }

    /// Writes the latest records of old segments again, and drops those. Not before as much was
    /// appended as that takes, twice.
    fn drop_old(&mut self) -> Result<(), StorageError> {
        let kept: u64 = self.content.latest.values().map(|latest| latest.bytes.len() as u64).sum();
        if self.log.full().next().is_none() || self.since < 2 * kept {
            return Ok(());
        }
        let floor = self.log.segment().number;
        let old = self.content.latest.iter().filter(|(_, copied)| copied.segment < floor);
        let old: Vec<(RecordKind, Copied)> =
            old.map(|(kind, copied)| (*kind, copied.clone())).collect();
        for (kind, Copied { sequence, bytes, .. }) in old {
            self.add(kind, sequence, &bytes)?;
        }
        if let Some(mark) = self.content.covered {
            self.put_covered(mark)?;
        }
        self.since = 0;
        self.log.prune_before(floor)
    }
}

impl Reader for Content {
    fn take(&mut self, found: Found<'_>) -> Result<(), StorageError> {
        let Found { segment, location, kind, .. } = found;
        let unknown = || segment.corrupt(location.offset, "a record that no copy writes");
        let (number, rest) = found.payload.split_first_chunk().ok_or_else(unknown)?;
        let sequence = u64::from_le_bytes(*number);
        let (kind, bytes) = match (kind, rest) {
            (COVERED, checksum) => {
                let checksum = checksum.try_into().map_err(|_| unknown())?;
                self.covered = Some(LogMark { sequence, checksum });
                return Ok(());
            }
            (SAFETY, _) => (RecordKind::Safety, rest),
            (INCARNATION, _) => (RecordKind::Incarnation, rest),
            (HAND_OVER, _) => (RecordKind::HandOver, rest),
            (SLOT, [place, bytes @ ..]) => (RecordKind::Slot(*place), bytes),
            _ => return Err(unknown()),
        };
        let bytes = Bytes::copy_from_slice(bytes);
        self.latest.insert(kind, Copied { sequence, bytes, segment: segment.number });
        Ok(())
    }

    fn restart(&mut self) {
        *self = Self::default();
    }
}
