//! Salvage: reads what is whole of a log that is damaged among its committed records, and says
//! which records are not. Nothing is changed: what is damaged stays as it was found, and is met
//! again at the next start, until its segment is pruned.
//!
//! Whether a log can be gone on from with records missing is for its owner to say ([`Salvaged`]);
//! then [`Log::skip_to`] begins a segment of its own for what follows.

use super::scan::{self, Found, Scanned, Visit};
use super::{Log, LogConfig, LogMark, LogName, Segment, record};
use crate::disk::Disk;
use crate::log::record::RecordHeader;
use crate::{Owner, StorageError};
use std::ops::Range;

/// Takes the records of a log in, and can be told to begin again.
pub(crate) trait Reader {
    /// The next whole record.
    fn take(&mut self, found: Found<'_>) -> Result<(), StorageError>;
    /// Forgets all that it took: the log is read again from its start.
    fn restart(&mut self);
}

/// Damage that a log was opened with.
#[derive(Debug)]
pub(crate) struct Salvaged {
    /// The error that it would be without salvage.
    pub(crate) error: StorageError,
    /// Numbers of the records that are missing before the last whole one.
    pub(crate) missing: Vec<Range<u64>>,
    /// Some segment says whose it is; if none does, it may be anybody's.
    pub(crate) is_owned: bool,
}

impl Salvaged {
    /// Number of records that are missing before the last whole one.
    pub(crate) fn records(&self) -> u64 {
        self.missing.iter().map(|range| range.end - range.start).sum()
    }
}

impl Log {
    /// Opens a log as [`Log::open`] does, and salvages it where it is damaged.
    pub(crate) fn open_or_salvage(
        mut disk: Box<dyn Disk>,
        name: LogName,
        owner: &Owner,
        config: LogConfig,
        reader: &mut dyn Reader,
    ) -> Result<(Self, Option<Salvaged>), StorageError> {
        let error = match scan::scan(disk.as_mut(), name, owner, &mut |found| reader.take(found)) {
            Ok(found) => return Ok((Self::opened(disk, name, owner, config, &found)?, None)),
            Err(error @ StorageError::Corrupt { .. }) => error,
            Err(error) => return Err(error),
        };
        reader.restart();
        let (found, missing) =
            salvage(disk.as_ref(), name, owner, &mut |found| reader.take(found))?;
        let salvaged = Salvaged { error, missing, is_owned: found.is_owned };
        Ok((Self::opened(disk, name, owner, config, &found)?, Some(salvaged)))
    }

    /// Goes on in a new segment, with this number or a higher one.
    pub(crate) fn skip_to(&mut self, sequence: u64) -> Result<(), StorageError> {
        self.sequence = self.sequence.max(sequence);
        self.roll(0)
    }

    /// Gives up everything that it holds, and goes on in a new segment.
    pub(crate) fn begin_anew(&mut self) -> Result<(), StorageError> {
        self.skip_to(self.sequence)?;
        self.prune_before(self.segment.number)
    }

    /// The record with this number, if a segment has its header whole. Looks at what is in the
    /// files, not at the buffer.
    pub(crate) fn find_mark(&self, sequence: u64) -> Result<Option<LogMark>, StorageError> {
        let earlier = self.full.iter().rev().map(|(number, _)| *number);
        for number in std::iter::once(self.segment.number).chain(earlier) {
            let segment = Segment::open(self.disk.as_ref(), self.name, number)?;
            let bytes = scan::read_whole(&segment)?;
            let mut first = None;
            for (at, header) in scan::headers(&segment, &bytes) {
                first.get_or_insert(header.sequence);
                if header.sequence == sequence {
                    let checksum = RecordHeader::checksum(&bytes[at..]);
                    return Ok(Some(LogMark { sequence, checksum }));
                }
            }
            if first.is_some_and(|first| first < sequence) {
                break;
            }
        }
        Ok(None)
    }
}

/// Visits every whole record, and returns with what was found the numbers that are missing.
fn salvage(
    disk: &dyn Disk,
    log: LogName,
    owner: &Owner,
    visit: &mut Visit<'_>,
) -> Result<(Scanned, Vec<Range<u64>>), StorageError> {
    let listed = disk.list().map_err(|error| {
        StorageError::io("list the files beside", disk.locate(&log.all()), &error)
    })?;
    let mut numbers: Vec<u64> = listed.iter().filter_map(|name| log.number(name)).collect();
    numbers.sort_unstable();
    let spares = listed.into_iter().filter(|name| log.is_spare(name)).collect();
    let floor = scan::find_floor(disk, log, owner, &numbers)?;
    let mut found = Scanned::nothing(floor, spares);
    let mut missing = Vec::new();
    for number in numbers.into_iter().filter(|number| *number >= floor) {
        let segment = Segment::open(disk, log, number)?;
        let bytes = scan::read_whole(&segment)?;
        (found.end, found.is_current) = (0, false);
        for (at, header) in scan::headers(&segment, &bytes) {
            let is_whole = header.is_whole(&bytes[at..], &segment.key);
            if !is_whole || header.sequence < found.sequence {
                continue;
            }
            let begins = at == 0 && number == floor;
            if header.sequence > found.sequence && !begins {
                missing.push(found.sequence..header.sequence);
            }
            let payload = header.payload(&bytes[at..]).expect("whole");
            match header.kind {
                record::SEGMENT => found.begin_segment(&segment, payload, owner)?,
                record::FLOOR => {}
                _ => visit(Found::new(&segment, at, header, payload))?,
            }
            found.sequence = header.sequence + 1;
            found.end = at as u64 + record::size(payload.len());
        }
        found.segments.push((segment, found.end));
    }
    Ok((found, missing))
}
