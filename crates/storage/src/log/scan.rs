//! Recovery: reads the segments in order, finds where the log ends, and clears what a crash left
//! behind it.

use super::record::{self, ALIGNMENT, HEADER_BYTES, RecordHeader};
use super::{FORMAT, Location, Segment, name_of, number_of};
use crate::StorageError;
use crate::disk::Disk;
use quorate_crypto::mutants::{self, Mutant};

pub(super) type Visit<'a> =
    dyn FnMut(&Segment, Location, u8, &[u8]) -> Result<(), StorageError> + 'a;

/// What recovery found.
pub(super) struct Found {
    /// Every segment that holds records, in order.
    pub(super) segments: Vec<Segment>,
    /// The one that the log goes on in; `None` in an empty log.
    pub(super) last: Option<Segment>,
    /// Where it goes on.
    pub(super) end: u64,
    /// The sequence number of the next record.
    pub(super) sequence: u64,
}

pub(super) fn scan(disk: &mut dyn Disk, visit: &mut Visit<'_>) -> Result<Found, StorageError> {
    let listed = disk
        .list()
        .map_err(|error| StorageError::io("list the files beside", disk.locate("log-*"), &error))?;
    let mut numbers: Vec<u64> = listed.iter().filter_map(|name| number_of(name)).collect();
    numbers.sort_unstable();

    let mut found = Found { segments: Vec::new(), last: None, end: 0, sequence: 0 };
    let mut rest = &numbers[..];
    while let Some((&number, later)) = rest.split_first() {
        rest = later;
        let segment = Segment::open(disk, number)?;
        let bytes = read_whole(&segment)?;
        let end = read_records(&segment, &bytes, &mut found.sequence, visit)?;
        if end == 0 {
            // Made but never committed to, or damaged at its very start.
            refuse_corruption(disk, &found, &segment, 0, &bytes, rest)?;
            discard(disk, std::iter::once(number).chain(rest.iter().copied()))?;
            break;
        }
        found.end = end;
        found.last = Some(segment.clone());
        found.segments.push(segment);
        let tail = &bytes[usize::try_from(end).expect("read into memory")..];
        let continued = match rest.first() {
            // Where nothing was begun after the last record, the next segment answers for itself.
            Some(_) if tail.iter().all(|byte| *byte == 0) => true,
            Some(&next) => begins_with(disk, next, found.sequence)?,
            None => false,
        };
        if !continued {
            let segment = found.segments.last().expect("just pushed");
            refuse_corruption(disk, &found, segment, end, tail, rest)?;
            clear_tail(segment, end, tail)?;
            discard(disk, rest.iter().copied())?;
            break;
        }
    }
    Ok(found)
}

fn read_whole(segment: &Segment) -> Result<Vec<u8>, StorageError> {
    let length = usize::try_from(segment.capacity).expect("segments fit in memory");
    let mut bytes = vec![0; length];
    segment.file.read_at(0, &mut bytes).map_err(|error| segment.error("read", &error))?;
    Ok(bytes)
}

/// Visits the records in their order; where the first one is missing.
fn read_records(
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
        let offset = at as u64;
        if at == 0 {
            check_format(segment, payload)?;
        } else {
            let location = Location { segment: segment.number, offset, bytes: header.length };
            visit(segment, location, header.kind, payload)?;
        }
        at = (at + size_of_record(header)).min(bytes.len());
        *sequence += 1;
    }
    Ok(at as u64)
}

fn check_format(segment: &Segment, payload: &[u8]) -> Result<(), StorageError> {
    let found = payload.try_into().map_or(0, u32::from_le_bytes);
    if found == FORMAT {
        return Ok(());
    }
    Err(StorageError::Format { file: segment.place.clone(), found, expected: FORMAT })
}

/// Whether the segment's first record is the one that comes next in the log.
fn begins_with(disk: &dyn Disk, number: u64, sequence: u64) -> Result<bool, StorageError> {
    let segment = Segment::open(disk, number)?;
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
    found: &Found,
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
        let segment = Segment::open(disk, number)?;
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
    let mut latest = None;
    let mut at = 0;
    while at + HEADER_BYTES <= bytes.len() {
        match RecordHeader::read(&bytes[at..], &segment.key) {
            Some(header) => {
                latest = latest.max(Some(header.group));
                at += size_of_record(header);
            }
            None => at += ALIGNMENT,
        }
    }
    latest
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
fn discard(disk: &mut dyn Disk, segments: impl Iterator<Item = u64>) -> Result<(), StorageError> {
    let mut removed = false;
    for number in segments {
        let name = name_of(number);
        let place = disk.locate(&name);
        disk.remove(&name).map_err(|error| StorageError::io("remove", place, &error))?;
        removed = true;
    }
    if !removed {
        return Ok(());
    }
    disk.sync_directory()
        .map_err(|error| StorageError::io("sync the directory of", disk.locate("log-*"), &error))
}
