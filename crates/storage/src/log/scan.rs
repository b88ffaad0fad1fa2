//! Recovery: reads the segments in order, finds where the log ends, and clears what a crash left
//! behind it.

use super::record::{self, ALIGNMENT, HEADER_BYTES, Key, RecordHeader};
use super::{FORMAT, Location, LogName, Segment, check_owner};
use crate::disk::Disk;
use crate::owner::OwnerRecord;
use crate::{Owner, StorageError};
use quorate_crypto::mutants::{self, Mutant};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

pub(crate) type Visit<'a> = dyn FnMut(Found<'_>) -> Result<(), StorageError> + 'a;

/// A whole record of a log, as recovery comes upon it.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    pub(crate) segment: &'a Segment,
    pub(crate) location: Location,
    pub(crate) sequence: u64,
    pub(crate) kind: u8,
    pub(crate) payload: &'a [u8],
}

impl<'a> Found<'a> {
    /// The record with this header at `at` in a segment.
    pub(super) fn new(
        segment: &'a Segment,
        at: usize,
        header: RecordHeader,
        payload: &'a [u8],
    ) -> Self {
        let RecordHeader { length: bytes, sequence, kind, .. } = header;
        let location = Location { segment: segment.number, offset: at as u64, bytes };
        Self { segment, location, sequence, kind, payload }
    }
}

/// Result of scanning a log's segments.
pub(super) struct Scanned {
    /// Every segment that holds records, in order, with its used bytes. The log goes on in the
    /// last.
    pub(super) segments: Vec<(Segment, u64)>,
    /// Offset at which the log goes on.
    pub(super) end: u64,
    /// The sequence number of the next record.
    pub(super) sequence: u64,
    /// The oldest segment of the log; older files were pruned.
    pub(super) floor: u64,
    /// Files that were pruned and may be used again, by name.
    pub(super) spares: Vec<String>,
    /// Some segment says whose it is.
    pub(super) is_owned: bool,
    /// The newest segment is of this program's format.
    pub(super) is_current: bool,
}

impl Scanned {
    /// Result before any segment was read.
    pub(super) fn nothing(floor: u64, spares: Vec<String>) -> Self {
        let (is_owned, is_current) = (false, false);
        Self { segments: Vec::new(), end: 0, sequence: 0, floor, spares, is_owned, is_current }
    }

    /// Takes in the first record of the segment that is read.
    pub(super) fn begin_segment(
        &mut self,
        segment: &Segment,
        first: &[u8],
        owner: &Owner,
    ) -> Result<(), StorageError> {
        self.is_current = check_owner(segment, first, owner)? == FORMAT;
        self.is_owned = true;
        Ok(())
    }
}

pub(super) fn scan(
    disk: &mut dyn Disk,
    log: LogName,
    owner: &Owner,
    visit: &mut Visit<'_>,
) -> Result<Scanned, StorageError> {
    let listed = disk.list().map_err(|error| {
        StorageError::io("list the files beside", disk.locate(&log.all()), &error)
    })?;
    let mut numbers: Vec<u64> = listed.iter().filter_map(|name| log.number(name)).collect();
    numbers.sort_unstable();
    let spares = listed.into_iter().filter(|name| log.is_spare(name)).collect();
    let floor = find_floor(disk, log, owner, &numbers)?;
    let (gone, kept) = numbers.split_at(numbers.partition_point(|number| *number < floor));
    discard(disk, log, gone.iter().copied())?;

    let mut found = Scanned::nothing(floor, spares);
    let mut rest = kept;
    if floor > 1 {
        found.sequence = first_sequence(disk, log, floor, rest)?;
    }
    while let Some((&number, later)) = rest.split_first() {
        rest = later;
        let segment = Segment::open(disk, log, number)?;
        let bytes = read_whole(&segment)?;
        let end = read_records(&segment, &bytes, owner, &mut found, visit)?;
        if end == 0 {
            // Made but never committed to, or damaged at its very start.
            refuse_corruption(disk, log, &found, &segment, 0, &bytes, rest)?;
            discard(disk, log, std::iter::once(number).chain(rest.iter().copied()))?;
            break;
        }
        found.end = end;
        found.segments.push((segment.clone(), end));
        let tail = &bytes[usize::try_from(end).expect("read into memory")..];
        let continued = match rest.first() {
            // Where nothing was begun after the last record, the next segment answers for itself.
            Some(_) if tail.iter().all(|byte| *byte == 0) => true,
            Some(&next) => begins_with(disk, log, next, found.sequence)?,
            None => false,
        };
        if !continued {
            refuse_corruption(disk, log, &found, &segment, end, tail, rest)?;
            clear_tail(&segment, end, tail)?;
            discard(disk, log, rest.iter().copied())?;
            break;
        }
    }
    Ok(found)
}

/// The oldest segment that is part of the log. Every segment that was begun after something was
/// pruned says so near its start, and the one in use then says so too: with a torn start of the
/// newest, the one before it has it. Refuses what is somebody else's before anything is changed.
pub(super) fn find_floor(
    disk: &dyn Disk,
    log: LogName,
    owner: &Owner,
    numbers: &[u64],
) -> Result<u64, StorageError> {
    let mut begun = 0;
    for &number in numbers.iter().rev() {
        let segment = Segment::open(disk, log, number)?;
        let bytes = read_whole(&segment)?;
        let Some(mut sequence) = begins_at(&segment, &bytes) else { continue };
        let mut floor = None;
        read_records_raw(&segment, &bytes, &mut sequence, &mut |found| {
            match found.kind {
                record::SEGMENT => drop(check_owner(&segment, found.payload, owner)?),
                record::FLOOR => floor = found.payload.try_into().ok().map(u64::from_le_bytes),
                _ => {}
            }
            Ok(())
        })?;
        begun += 1;
        if let Some(floor) = floor {
            return Ok(floor);
        }
        if begun == 2 {
            break;
        }
    }
    Ok(1)
}

/// Sequence number at which the log begins: its first segment must be there, whole at its start.
fn first_sequence(
    disk: &dyn Disk,
    log: LogName,
    floor: u64,
    numbers: &[u64],
) -> Result<u64, StorageError> {
    let missing = || StorageError::Corrupt {
        file: disk.locate(&log.file(floor)),
        offset: 0,
        reason: "the oldest segment of the log is missing or changed at its start".to_owned(),
    };
    if numbers.first() != Some(&floor) {
        return Err(missing());
    }
    let segment = Segment::open(disk, log, floor)?;
    begins_at(&segment, &read_whole(&segment)?).ok_or_else(missing)
}

/// The sequence number of the segment's own record, if it is whole.
fn begins_at(segment: &Segment, bytes: &[u8]) -> Option<u64> {
    begins(bytes, &segment.key)
}

fn begins(bytes: &[u8], key: &Key) -> Option<u64> {
    let header = RecordHeader::read(bytes, key)?;
    let sound = header.kind == record::SEGMENT && header.is_whole(bytes, key);
    sound.then_some(header.sequence)
}

/// Returns `true` if any segment of the log in `folder` has a sound start. Looks without locking
/// the folder.
pub(crate) fn has_begun(folder: &Path, log: LogName) -> io::Result<bool> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let name = entry?.file_name();
        let Some(number) = name.to_str().and_then(|name| log.number(name)) else { continue };
        let mut start = Vec::new();
        let first_record = record::size(OwnerRecord::BYTES_MAX);
        File::open(folder.join(&name))?.take(first_record).read_to_end(&mut start)?;
        if begins(&start, &log.key(number)).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(super) fn read_whole(segment: &Segment) -> Result<Vec<u8>, StorageError> {
    let length = usize::try_from(segment.capacity).expect("segments fit in memory");
    let mut bytes = vec![0; length];
    segment.file.read_at(0, &mut bytes).map_err(|error| segment.error("read", &error))?;
    Ok(bytes)
}

/// Visits the records in their order; where the first one is missing.
fn read_records(
    segment: &Segment,
    bytes: &[u8],
    owner: &Owner,
    found: &mut Scanned,
    visit: &mut Visit<'_>,
) -> Result<u64, StorageError> {
    let mut sequence = found.sequence;
    let end = read_records_raw(segment, bytes, &mut sequence, &mut |record| match record.kind {
        record::SEGMENT => found.begin_segment(segment, record.payload, owner),
        record::FLOOR => Ok(()),
        _ => visit(record),
    });
    found.sequence = sequence;
    end
}

/// Reads records as [`read_records`] does, with the log's own.
fn read_records_raw(
    segment: &Segment,
    bytes: &[u8],
    sequence: &mut u64,
    visit: &mut Visit<'_>,
) -> Result<u64, StorageError> {
    let mut at = 0;
    while let Some(header) = RecordHeader::read(&bytes[at..], &segment.key)
        && header.sequence == *sequence
        && (header.kind == record::SEGMENT) == (at == 0)
        && header.is_whole(&bytes[at..], &segment.key)
    {
        let payload = header.payload(&bytes[at..]).expect("whole");
        visit(Found::new(segment, at, header, payload))?;
        at = (at + size_of_record(header)).min(bytes.len());
        *sequence += 1;
    }
    Ok(at as u64)
}

/// Returns `true` if the segment's first record is the one that comes next in the log.
fn begins_with(
    disk: &dyn Disk,
    log: LogName,
    number: u64,
    sequence: u64,
) -> Result<bool, StorageError> {
    let segment = Segment::open(disk, log, number)?;
    let mut bytes = vec![0; HEADER_BYTES];
    if segment.capacity < HEADER_BYTES as u64 {
        return Ok(false);
    }
    segment.file.read_at(0, &mut bytes).map_err(|error| segment.error("read", &error))?;
    let header = RecordHeader::read(&bytes, &segment.key);
    Ok(header.is_some_and(|header| header.sequence == sequence))
}

/// The record with the next sequence number is missing at `offset`. If any record of a later group
/// exists, then it had been committed.
fn refuse_corruption(
    disk: &dyn Disk,
    log: LogName,
    found: &Scanned,
    segment: &Segment,
    offset: u64,
    tail: &[u8],
    later: &[u64],
) -> Result<(), StorageError> {
    if mutants::active(Mutant::TruncateCorruption) {
        return Ok(());
    }
    let mut proof = latest_group(segment, tail);
    for &number in later {
        let segment = Segment::open(disk, log, number)?;
        proof = proof.max(latest_group(&segment, &read_whole(&segment)?));
    }
    match proof {
        Some(group) if group > found.sequence => Err(segment.corrupt(
            offset,
            &format!(
                "record {} is missing or changed, and it had been committed before record {group}",
                found.sequence
            ),
        )),
        _ => Ok(()),
    }
}

/// The latest group that any record in `bytes` belongs to. A sound header is enough; its payload is
/// stepped over, so that nothing a client wrote into a body is taken for a record.
fn latest_group(segment: &Segment, bytes: &[u8]) -> Option<u64> {
    headers(segment, bytes).map(|(_, header)| header.group).max()
}

/// The sound headers in `bytes` with their offsets, whatever lies between them. Payloads are
/// stepped over.
pub(super) fn headers<'a>(
    segment: &'a Segment,
    bytes: &'a [u8],
) -> impl Iterator<Item = (usize, RecordHeader)> + 'a {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at + HEADER_BYTES <= bytes.len() {
            let here = at;
            if let Some(header) = RecordHeader::read(&bytes[here..], &segment.key) {
                at += size_of_record(header);
                return Some((here, header));
            }
            at += ALIGNMENT;
        }
        None
    })
}

fn size_of_record(header: RecordHeader) -> usize {
    usize::try_from(record::size(header.length as usize)).expect("u32 and a little")
}

/// Overwrites the remains of a torn group. Before anything is appended, this must be durable.
fn clear_tail(segment: &Segment, end: u64, tail: &[u8]) -> Result<(), StorageError> {
    let Some(last) = tail.iter().rposition(|byte| *byte != 0) else {
        return Ok(());
    };
    if mutants::active(Mutant::KeepTornTail) {
        return Ok(());
    }
    let zeroes = vec![0; last + 1];
    segment.file.write_at(end, &[&zeroes]).map_err(|error| segment.error("write", &error))?;
    segment.file.sync_data().map_err(|error| segment.error("sync", &error))
}

/// Removes segments that nothing was committed to; durably, so that the ones made in their place
/// are other files.
pub(super) fn discard(
    disk: &mut dyn Disk,
    log: LogName,
    segments: impl Iterator<Item = u64>,
) -> Result<(), StorageError> {
    let mut removed = false;
    for number in segments {
        let name = log.file(number);
        let place = disk.locate(&name);
        disk.remove(&name).map_err(|error| StorageError::io("remove", place, &error))?;
        removed = true;
    }
    if !removed {
        return Ok(());
    }
    disk.sync_directory()
        .map_err(|error| StorageError::io("sync the directory of", disk.locate(&log.all()), &error))
}
