//! Numbered entries that are kept in order, and read back by number: what an authority locked.
//!
//! Entries are written in groups to a log like the journal's (its promises hold here: a committed
//! entry is there after a crash, or its loss is an error). What the entries came to is kept beside
//! them in [runs](crate::Runs), so that recovery needs those and the entries after them alone, and
//! the log prunes its oldest segments.

use crate::disk::Disk;
use crate::log::scan::{self, Found};
use crate::log::{Location, Log, LogConfig, LogName, Segment, record};
use crate::{JournalStats, Owner, StorageError};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

const NAME: LogName = LogName("lock");

/// The kind of an entry's record.
const ENTRY: u8 = 1;

/// The place of every so many entries is kept in memory; the others are found from there.
const PLACES_EVERY: u64 = 64;

/// The entries. After any error it is unusable, and whoever promised something must stop.
pub struct Archive {
    log: Log,
    retention_bytes: u64,
    next: u64,
    /// Places of some entries, among them the first of each segment, by number.
    places: VecDeque<(u64, Location)>,
    segments: BTreeMap<u64, Segment>,
}

impl Archive {
    /// Opens or begins an archive; hands every entry that is kept to `visit`, in order.
    ///
    /// # Errors
    /// When it is not `owner`'s, the disk fails, or something that was committed is gone.
    pub fn open(
        disk: Box<dyn Disk>,
        owner: &Owner,
        config: LogConfig,
        mut visit: impl FnMut(u64, &[u8]) -> Result<(), StorageError>,
    ) -> Result<Self, StorageError> {
        let mut next = 0;
        let mut places = VecDeque::new();
        let mut segments = BTreeMap::new();
        let retention_bytes = config.retention_bytes;
        let mut log = Log::open(disk, NAME, owner, config, &mut |found| {
            let Found { segment, location, kind, payload, .. } = found;
            let unknown = || StorageError::Corrupt {
                file: segment.place.clone(),
                offset: location.offset,
                reason: "a record that no archive writes".into(),
            };
            let (number, entry) = split(payload).filter(|_| kind == ENTRY).ok_or_else(unknown)?;
            let is_first = places.is_empty();
            if !is_first && number != next {
                return Err(unknown());
            }
            if segments.insert(segment.number, segment.clone()).is_none() || keeps_place(number) {
                places.push_back((number, location));
            }
            next = number + 1;
            visit(number, entry)
        })?;
        // From its beginning on it says whose it is.
        log.commit()?;
        Ok(Self { log, retention_bytes, next, places, segments })
    }

    /// Returns `true` if there is an archive in this folder, whoever's. Locks nothing.
    ///
    /// # Errors
    /// When the folder cannot be looked into.
    pub fn has_begun(folder: &Path) -> Result<bool, StorageError> {
        scan::has_begun(folder, NAME)
            .map_err(|error| StorageError::io("look into", folder.display().to_string(), &error))
    }

    /// The number of the next entry.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The oldest entry that can be read back.
    #[must_use]
    pub fn oldest(&self) -> u64 {
        self.places.front().map_or(self.next, |(number, _)| *number)
    }

    /// Adds an entry to the group; returns its number.
    ///
    /// # Errors
    /// When the disk failed: for good.
    pub fn append(&mut self, entry: &[u8]) -> Result<u64, StorageError> {
        let number = self.next;
        let payload = [&number.to_le_bytes()[..], entry].concat();
        let location = self.log.append(ENTRY, &payload, &Bytes::new())?;
        let segment = self.log.segment();
        let is_new = !self.segments.contains_key(&location.segment);
        if is_new {
            self.segments.insert(location.segment, segment.clone());
        }
        if is_new || keeps_place(number) {
            self.places.push_back((number, location));
        }
        self.next += 1;
        Ok(number)
    }

    /// Makes the group durable.
    ///
    /// # Errors
    /// When the disk failed: for good.
    pub fn commit(&mut self) -> Result<(), StorageError> {
        self.log.commit()
    }

    /// Reads a committed entry back; `None` when it was pruned, or never written.
    ///
    /// # Errors
    /// When the disk fails or the entry is damaged.
    pub fn read(&self, number: u64) -> Result<Option<Bytes>, StorageError> {
        let after = self.places.partition_point(|(other, _)| *other <= number);
        let Some((mut at, mut location)) = after.checked_sub(1).map(|place| self.places[place])
        else {
            return Ok(None);
        };
        if number >= self.next {
            return Ok(None);
        }
        let segment = &self.segments[&location.segment];
        while at < number {
            location = segment.following(location)?;
            at += 1;
        }
        let payload = segment.read(location)?;
        match split(&payload) {
            Some((found, _)) if found == number => Ok(Some(payload.slice(size_of::<u64>()..))),
            _ => Err(segment.corrupt(location.offset, "another entry stands there")),
        }
    }

    /// Prunes entries below `number` as far as the retention allows: durable runs have what they
    /// came to (★). The segment in use stays.
    ///
    /// # Errors
    /// When the disk failed: for good.
    pub fn prune_below(&mut self, number: u64) -> Result<(), StorageError> {
        let mut kept = self.log.used_bytes();
        let mut floor = None;
        for (segment, bytes) in self.log.full() {
            let ends_below = self.first_after(segment).is_some_and(|first| first <= number);
            if kept <= self.retention_bytes || !ends_below {
                break;
            }
            kept -= bytes;
            floor = Some(segment + 1);
        }
        let Some(floor) = floor else { return Ok(()) };
        self.places.retain(|(_, location)| location.segment >= floor);
        self.segments.retain(|segment, _| *segment >= floor);
        self.log.prune_before(floor)
    }

    /// The first entry in the segments after this one.
    fn first_after(&self, segment: u64) -> Option<u64> {
        self.places.iter().find(|(_, place)| place.segment > segment).map(|(number, _)| *number)
    }

    /// Counts of what was written and synced since it was opened.
    #[must_use]
    pub fn stats(&self) -> JournalStats {
        self.log.stats()
    }
}

impl Segment {
    /// The place of the entry after the one at `location`, in the same segment.
    fn following(&self, location: Location) -> Result<Location, StorageError> {
        let mut offset = location.offset + record::size(location.bytes as usize);
        loop {
            let mut header = [0; record::HEADER_BYTES];
            self.file
                .read_at(offset, &mut header)
                .map_err(|error| StorageError::io("read", self.place.clone(), &error))?;
            let header = record::RecordHeader::read(&header, &self.key)
                .ok_or_else(|| self.corrupt(offset, "a committed record reads back changed"))?;
            if header.kind == ENTRY {
                return Ok(Location { segment: self.number, offset, bytes: header.length });
            }
            offset += record::size(header.length as usize);
        }
    }
}

fn keeps_place(number: u64) -> bool {
    number.is_multiple_of(PLACES_EVERY)
}

/// An entry's number, and its bytes.
fn split(payload: &[u8]) -> Option<(u64, &[u8])> {
    let (number, entry) = payload.split_first_chunk()?;
    Some((u64::from_le_bytes(*number), entry))
}

impl std::fmt::Debug for Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Archive({} to {})", self.oldest(), self.next)
    }
}

#[cfg(test)]
mod tests;
