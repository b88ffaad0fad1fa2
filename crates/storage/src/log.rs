//! The log: numbered segments of checksummed records, appended in groups.
//!
//! # What a group promises
//!
//! Everything appended between two syncs is one *group*. Its records reach the disk in any order,
//! so a crash may keep the third and lose the first. Each record therefore names the first sequence
//! number of its group: a record that is found says that everything *before its group* was durable
//! when it was written. That makes the two kinds of damage tell themselves apart at recovery:
//!
//! * The first bad record has only records of its own group after it, or none: the group was never
//!   committed. It is *torn*; the log ends before the bad record, and the remains are zeroed, so
//!   that nothing of them can ever be read as if it followed what is written next.
//! * Some record of a later group exists: what is bad had been committed, and promises were made on
//!   it. That is *corruption*, an error that names the file and the place
//!   ([`StorageError::Corrupt`]).
//!
//! Damage to the very last group cannot be told from a crash and counts as torn; whoever remembers
//! the last record ([`LogMark`]) can tell. What is whole of a damaged log can be
//! [salvaged](salvage).
//!
//! # Segments
//!
//! A segment is a file of zeroes of a fixed size, filled from its start; its first record carries
//! the format version and the [owner](crate::Owner). A log of the format before this one is read,
//! and goes on in a new segment, whose first record makes the version that wrote it refuse the log.
//! When a record does not fit, what is buffered is synced and the next segment begins. Checksums of
//! headers are keyed by the log's name and the segment's number, so the old content of a recycled
//! file never verifies under its new number; payloads have a CRC ([`record`] says why that is
//! enough). The oldest segments are pruned and their files used again: [`prune`] says how.

pub(crate) mod prune;
pub(crate) mod record;
pub(crate) mod salvage;
pub(crate) mod scan;

use crate::disk::{Disk, DiskFile};
use crate::owner::OwnerRecord;
use crate::{JournalStats, Owner, StorageError};
use bytes::Bytes;
use quorate_crypto::mutants::{self, Mutant};
use record::{Key, PayloadChecksum, RecordHeader};
use scan::{Scanned, Visit};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;

/// Format version, written into the first record of every segment with the owner.
pub(crate) const FORMAT: u32 = 5;

/// The format before, which is read too. Nothing is appended to its segments.
const FORMAT_BEFORE: u32 = 4;

/// A group is handed to the operating system when it has grown to this size, and synced with the
/// rest of it later.
const BUFFER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Payloads from this size on are written from where they lie instead of being copied.
const COPY_BYTES_MAX: usize = 16 * 1024;

/// Memory for copies that is kept from one group to the next.
const COPIED_BYTES_KEPT: usize = 1024 * 1024;

/// Configuration of a log on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// Bytes in one segment, 16 MiB unless told. Each is written twice, first with zeroes while the
    /// one before it is in use: larger ones take longer to start with, smaller ones sync their
    /// directory more often. A record that is larger gets a segment of its own size.
    pub segment_bytes: u64,
    /// Guarantee that a commit gives.
    pub durability: Durability,
    /// Bytes of log kept for members that fell behind, 1 GiB unless told: records and bodies
    /// together. What is executed durably, covered by a snapshot and beyond this is pruned, a
    /// segment at a time. Less: members that were away longer need a snapshot instead of the
    /// blocks.
    pub retention_bytes: u64,
}

impl LogConfig {
    /// Least value of [`LogConfig::retention_bytes`].
    pub const RETENTION_BYTES_MIN: u64 = 1024 * 1024;
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            segment_bytes: 16 * 1024 * 1024,
            durability: Durability::Fsync,
            retention_bytes: 1024 * 1024 * 1024,
        }
    }
}

/// One of the logs on a disk: its files are `<name>-<number>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogName(pub(crate) &'static str);

/// Records and decided heights.
pub(crate) const RECORDS: LogName = LogName("log");
/// Log that holds the bodies.
pub(crate) const BODIES: LogName = LogName("body");

impl LogName {
    pub(crate) fn file(self, segment: u64) -> String {
        format!("{}-{segment:012}", self.0)
    }

    /// A file that was pruned and waits to be used again.
    fn spare(self, segment: u64) -> String {
        format!("{}-spare-{segment:012}", self.0)
    }

    fn number(self, name: &str) -> Option<u64> {
        let number = name.strip_prefix(self.0)?.strip_prefix('-')?.parse().ok()?;
        (self.file(number) == name).then_some(number)
    }

    fn is_spare(self, name: &str) -> bool {
        name.strip_prefix(self.0).is_some_and(|rest| rest.starts_with("-spare-"))
    }

    fn key(self, segment: u64) -> Key {
        Key::of_segment(self.0, segment)
    }

    fn all(self) -> String {
        format!("{}-*", self.0)
    }
}

/// Accident that a committed record survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// A power cut: every commit syncs.
    #[default]
    Fsync,
    /// The end of the process, not of the machine. **Unsafe to vote with** where the power of more
    /// than f validators can fail together; for measurements.
    Os,
}

/// A text that names no [`Durability`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no durability: write \"fsync\" or \"os\"")]
pub struct UnknownDurability(String);

impl FromStr for Durability {
    type Err = UnknownDurability;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "fsync" => Ok(Self::Fsync),
            "os" => Ok(Self::Os),
            _ => Err(UnknownDurability(text.to_owned())),
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fsync => "fsync",
            Self::Os => "os",
        })
    }
}

/// Place of a record in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    /// Length of the payload, without the header.
    pub(crate) bytes: u32,
}

/// A record of a log as whoever remembers it from outside names it: by its number and its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogMark {
    /// Number of the record in its log; the first has 0.
    pub sequence: u64,
    /// Checksum of the record, with its place.
    pub checksum: [u8; 16],
}

/// An open segment. Cloning shares the file.
#[derive(Clone)]
pub(crate) struct Segment {
    pub(crate) number: u64,
    /// Path as an operator would look for it.
    pub(crate) place: String,
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) capacity: u64,
    pub(crate) key: Key,
}

impl Segment {
    fn open(disk: &dyn Disk, log: LogName, number: u64) -> Result<Self, StorageError> {
        let name = log.file(number);
        let place = disk.locate(&name);
        let failed = |error: io::Error| StorageError::io("open", place.clone(), &error);
        let file = disk.open(&name).map_err(failed)?;
        let capacity = file.length().map_err(failed)?;
        Ok(Self { number, place, file, capacity, key: log.key(number) })
    }

    /// Reads a record back and checks it.
    pub(crate) fn read(&self, location: Location) -> Result<Bytes, StorageError> {
        let mut bytes = vec![0; record::HEADER_BYTES + location.bytes as usize];
        self.file
            .read_at(location.offset, &mut bytes)
            .map_err(|error| self.error("read", &error))?;
        let header = RecordHeader::read(&bytes, &self.key);
        let sound = header.is_some_and(|header| header.is_whole(&bytes, &self.key));
        if !sound {
            return Err(self.corrupt(location.offset, "a committed record reads back changed"));
        }
        Ok(Bytes::from(bytes).slice(record::HEADER_BYTES..))
    }

    fn error(&self, action: &'static str, error: &io::Error) -> StorageError {
        StorageError::io(action, self.place.clone(), error)
    }

    pub(crate) fn corrupt(&self, offset: u64, reason: &str) -> StorageError {
        StorageError::Corrupt { file: self.place.clone(), offset, reason: reason.to_owned() }
    }
}

/// The log. After any error it is unusable: [`crate::Journal`] sees to that.
pub(crate) struct Log {
    disk: Box<dyn Disk>,
    name: LogName,
    config: LogConfig,
    /// Payload of every segment's first record.
    owner: Vec<u8>,
    segment: Segment,
    /// Offset in the segment at which the buffer begins.
    flushed: u64,
    /// Offset in the segment at which the buffer ends.
    end: u64,
    /// The part of the buffer that was copied: all but the payloads in `whole`.
    copied: Vec<u8>,
    /// Payloads that are written from where they lie, each with the length of `copied` before it.
    whole: Vec<(usize, Bytes)>,
    /// The segment is of the format before: the next record begins another.
    is_outdated: bool,
    sequence: u64,
    group: u64,
    /// The last record, once there is one.
    last: Option<LogMark>,
    unsynced_data: bool,
    unsynced_name: bool,
    prepared: bool,
    /// The segments before the present one, oldest first, with their used bytes.
    full: VecDeque<(u64, u64)>,
    /// Oldest segment that is part of the log.
    floor: u64,
    /// Files of the configured size that were pruned, by name.
    spares: Vec<String>,
    stats: JournalStats,
}

impl Log {
    /// Opens or begins a log of this owner; hands every record to `visit` in order.
    pub(crate) fn open(
        mut disk: Box<dyn Disk>,
        name: LogName,
        owner: &Owner,
        config: LogConfig,
        visit: &mut Visit<'_>,
    ) -> Result<Self, StorageError> {
        let found = scan::scan(disk.as_mut(), name, owner, visit)?;
        Self::opened(disk, name, owner, config, &found)
    }

    fn opened(
        mut disk: Box<dyn Disk>,
        name: LogName,
        owner: &Owner,
        config: LogConfig,
        found: &Scanned,
    ) -> Result<Self, StorageError> {
        let last = found.segments.last().map(|(segment, _)| segment.clone());
        if last.is_some() {
            make_durable(disk.as_mut(), name, &found.segments, config.durability)?;
        }
        let is_new = last.is_none();
        let segment = match last {
            Some(last) => last,
            None => begin_segment(disk.as_mut(), name, 1, config.segment_bytes)?,
        };
        let mut log = Self {
            flushed: found.end,
            end: found.end,
            copied: Vec::new(),
            whole: Vec::new(),
            is_outdated: !is_new && !found.is_current,
            sequence: found.sequence,
            group: found.sequence,
            last: None,
            unsynced_data: false,
            unsynced_name: is_new,
            prepared: false,
            full: found
                .segments
                .iter()
                .filter(|(other, _)| other.number != segment.number)
                .map(|(other, used)| (other.number, *used))
                .collect(),
            floor: found.floor,
            spares: Vec::new(),
            stats: JournalStats::default(),
            owner: owner.record(FORMAT),
            segment,
            disk,
            name,
            config,
        };
        log.adopt_spares(&found.spares)?;
        log.last = found.sequence.checked_sub(1).map_or(Ok(None), |last| log.find_mark(last))?;
        if is_new {
            log.push_first();
        }
        Ok(log)
    }

    /// The segment that the next record goes to, unless it does not fit.
    pub(crate) fn segment(&self) -> &Segment {
        &self.segment
    }

    /// The last record, buffered or written; `None` in a log that cannot name it.
    pub(crate) fn last(&self) -> Option<LogMark> {
        self.last
    }

    /// Returns `true` if so many bytes fit the segment.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        !self.is_outdated && self.end + bytes as u64 <= self.segment.capacity
    }

    /// Returns `true` if every record is committed.
    pub(crate) fn is_committed(&self) -> bool {
        self.group == self.sequence
    }

    /// Number of the next record.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    pub(crate) fn durability(&self) -> Durability {
        self.config.durability
    }

    pub(crate) fn stats(&self) -> JournalStats {
        self.stats
    }

    /// Buffers a record with the payload `head ‖ tail`.
    pub(crate) fn append(
        &mut self,
        kind: u8,
        head: &[u8],
        tail: &Bytes,
    ) -> Result<Location, StorageError> {
        let size = record::size(head.len() + tail.len());
        if self.is_outdated || self.end + size > self.segment.capacity {
            self.roll(size)?;
        }
        let location = self.push(kind, head, tail);
        self.stats.records += 1;
        if self.end - self.flushed >= BUFFER_BYTES_MAX as u64 {
            self.flush()?;
        }
        Ok(location)
    }

    /// Hands the buffer to the operating system.
    pub(crate) fn flush(&mut self) -> Result<(), StorageError> {
        if self.flushed == self.end {
            return Ok(());
        }
        let mut parts: Vec<&[u8]> = Vec::with_capacity(2 * self.whole.len() + 1);
        let mut at = 0;
        for (before, payload) in &self.whole {
            parts.extend([&self.copied[at..*before], payload]);
            at = *before;
        }
        if at < self.copied.len() {
            parts.push(&self.copied[at..]);
        }
        self.segment
            .file
            .write_at(self.flushed, &parts)
            .map_err(|error| self.segment.error("write", &error))?;
        self.stats.bytes_written += self.end - self.flushed;
        self.whole.clear();
        self.copied.clear();
        self.copied.shrink_to(COPIED_BYTES_KEPT);
        self.flushed = self.end;
        self.unsynced_data = true;
        Ok(())
    }

    /// Ends the group: everything before is committed.
    pub(crate) fn commit(&mut self) -> Result<(), StorageError> {
        self.flush()?;
        if self.config.durability == Durability::Fsync {
            self.sync()?;
        }
        self.group = self.sequence;
        self.prepare_next();
        Ok(())
    }

    fn sync(&mut self) -> Result<(), StorageError> {
        if self.unsynced_data && !mutants::active(Mutant::SkipSync) {
            let result = match self.segment.file.sync_data() {
                Err(_) if mutants::active(Mutant::RetryFailedSync) => self.segment.file.sync_data(),
                result => result,
            };
            result.map_err(|error| self.segment.error("sync", &error))?;
            self.stats.syncs += 1;
        }
        self.unsynced_data = false;
        if self.unsynced_name && !mutants::active(Mutant::SkipDirectorySync) {
            let place = &self.segment.place;
            self.disk.sync_directory().map_err(|error| {
                StorageError::io("sync the directory of", place.clone(), &error)
            })?;
            self.stats.syncs += 1;
        }
        self.unsynced_name = false;
        Ok(())
    }

    /// Begins the next segment. What is in this one is committed first: the next one's first record
    /// says so.
    fn roll(&mut self, size: u64) -> Result<(), StorageError> {
        self.commit()?;
        let first = record::size(self.owner.len()) + record::size(size_of::<u64>());
        let bytes = self.config.segment_bytes.max(first + size);
        let next = self.next_segment(bytes)?;
        let full = std::mem::replace(&mut self.segment, next);
        self.full.push_back((full.number, self.end));
        self.flushed = 0;
        self.end = 0;
        self.unsynced_name = true;
        self.prepared = false;
        self.is_outdated = false;
        self.push_first();
        if self.floor > 1 {
            self.push(record::FLOOR, &self.floor.to_le_bytes(), &Bytes::new());
        }
        Ok(())
    }

    /// A quarter into a segment is early enough to have the next one made ready, and spares those
    /// that hardly write.
    fn prepare_next(&mut self) {
        if !self.prepared && self.spares.is_empty() && self.end >= self.segment.capacity / 4 {
            self.prepared = true;
            let next = self.name.file(self.segment.number + 1);
            self.disk.prepare(&next, self.config.segment_bytes);
        }
    }

    fn push_first(&mut self) {
        let owner = Bytes::copy_from_slice(&self.owner);
        let checksum = PayloadChecksum::keyed(&owner, &self.segment.key);
        self.push_checked(record::SEGMENT, checksum, &[], &owner);
    }

    fn push(&mut self, kind: u8, head: &[u8], tail: &Bytes) -> Location {
        self.push_checked(kind, PayloadChecksum::crc(head, tail), head, tail)
    }

    fn push_checked(
        &mut self,
        kind: u8,
        payload: PayloadChecksum,
        head: &[u8],
        tail: &Bytes,
    ) -> Location {
        let length = head.len() + tail.len();
        let bytes = u32::try_from(length).expect("records are megabytes at most");
        let location = Location { segment: self.segment.number, offset: self.end, bytes };
        let (sequence, group) = (self.sequence, self.group);
        let header = RecordHeader { length: bytes, sequence, group, kind, payload };
        let header = header.encode(&self.segment.key);
        let checksum = RecordHeader::checksum(&header);
        self.last = Some(LogMark { sequence, checksum });
        self.copied.extend_from_slice(&header);
        self.copied.extend_from_slice(head);
        if tail.len() < COPY_BYTES_MAX {
            self.copied.extend_from_slice(tail);
        } else {
            self.whole.push((self.copied.len(), tail.clone()));
        }
        let padding = record::padding(length);
        self.copied.extend_from_slice(&[0; record::ALIGNMENT][..padding]);
        self.end += record::size(length);
        self.sequence += 1;
        location
    }
}

/// ★ Refuses a segment of another version or of somebody else, by its first record; returns its
/// format.
fn check_owner(segment: &Segment, first: &[u8], owner: &Owner) -> Result<u32, StorageError> {
    // Before format 3 that record had the format alone, and no owner.
    if let Ok(found) = first.try_into().map(u32::from_le_bytes) {
        let (file, expected) = (segment.place.clone(), FORMAT);
        return Err(StorageError::Format { file, found, expected });
    }
    let (found, _) = OwnerRecord::split(first)
        .ok_or_else(|| segment.corrupt(0, "its first record does not say whose it is"))?;
    let format = if found.format() == FORMAT_BEFORE { FORMAT_BEFORE } else { FORMAT };
    found.check(&segment.place, format, owner).map(|()| format)
}

fn begin_segment(
    disk: &mut dyn Disk,
    log: LogName,
    number: u64,
    bytes: u64,
) -> Result<Segment, StorageError> {
    let name = log.file(number);
    let place = disk.locate(&name);
    let file = disk
        .create(&name, bytes)
        .map_err(|error| StorageError::io("create", place.clone(), &error))?;
    Ok(Segment { number, place, file, capacity: bytes, key: log.key(number) })
}

/// Syncs what a process that died had written and not synced: it is readable now and would be lost
/// with the next power cut, and the machine is about to rely on it.
fn make_durable(
    disk: &mut dyn Disk,
    log: LogName,
    segments: &[(Segment, u64)],
    durability: Durability,
) -> Result<(), StorageError> {
    if durability == Durability::Os || mutants::active(Mutant::TrustPageCache) {
        return Ok(());
    }
    for (segment, _) in segments {
        segment.file.sync_data().map_err(|error| segment.error("sync", &error))?;
    }
    disk.sync_directory()
        .map_err(|error| StorageError::io("sync the directory of", disk.locate(&log.all()), &error))
}

#[cfg(test)]
mod tests;
