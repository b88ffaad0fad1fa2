//! A batch on its way to the disk.

use super::format::{
    Entry, FRAME_HEAD, Frame, Link, REMOVED, START, entries, entry_bytes, frame_bytes, padding,
    put_entry,
};
use super::index::{Index, Place};
use super::ring::Writer;
use super::segment::Segment;
use crate::StorageError;
use crate::store::Entries;
use crc32c::crc32c_append;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::service::StateError;

/// A segment is made with this part of the bytes that live.
const SEGMENT_PART: u64 = 16;

/// Bytes that a batch cleans beyond its share.
const CLEAN_BYTES: u64 = 256 << 10;

/// Bytes that it reads for that beyond its share: where much was removed there is little to copy.
const CLEAN_READ_BYTES: u64 = 8 << 20;

/// A batch that is being written. Dropped without its commit, it is none.
pub(super) struct Batch<'a> {
    writer: &'a mut Writer,
    /// Entries of the next frame.
    entries: Vec<u8>,
    /// Bytes of all its entries.
    bytes: u64,
    /// Segment that was written to when it began.
    begun_in: u32,
}

/// Reason why a store has not been filled.
pub(super) enum Unfilled {
    /// The entries ended with an error.
    Entry(StorageError),
    Disk(StateError),
}

/// Keys that were cleaned out of a segment, in order, and where their entries are now.
pub(super) type Moved = Vec<(Vec<u8>, Place)>;

impl<'a> Batch<'a> {
    pub(super) fn begin(writer: &'a mut Writer) -> Self {
        let begun_in = writer.last().head.number;
        Self { writer, entries: Vec::new(), bytes: 0, begun_in }
    }

    /// Appends an entry; its place.
    pub(super) fn push(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<Place, StateError> {
        let length = value.map_or(REMOVED, |value| value.len().try_into().unwrap_or(REMOVED));
        let size = entry_bytes(key.len(), length);
        let place = self.next_place(size, length)?;
        put_entry(&mut self.entries, key, value);
        Ok(place)
    }

    /// Appends an entry as it is; its place.
    fn push_again(&mut self, entry: &Entry<'_>) -> Result<Place, StateError> {
        let place = self.next_place(entry.bytes.len() as u64, entry.length())?;
        self.entries.extend_from_slice(entry.bytes);
        Ok(place)
    }

    /// The place of an entry of so many bytes, which comes next.
    fn next_place(&mut self, size: u64, length: u32) -> Result<Place, StateError> {
        let fits = |this: &Self| {
            let bytes = frame_bytes(this.entries.len()).saturating_add(size.next_multiple_of(8));
            u64::from(this.writer.end.at) + bytes <= u64::from(this.writer.last().length)
        };
        let is_full = self.entries.len() as u64 + size > u64::from(self.writer.sizes.frame);
        if !self.entries.is_empty() && (is_full || !fits(self)) {
            self.write_frame(false, 0)?;
        }
        if !fits(self) {
            self.roll(size)?;
        }
        self.bytes += size;
        let offset = self.writer.end.at as usize + FRAME_HEAD + self.entries.len();
        let offset = u32::try_from(offset).expect("within its segment");
        Ok(Place { segment: self.writer.last().head.number, offset, length })
    }

    /// Begins the next segment, with room for an entry of so many bytes.
    ///
    /// ★ All that was written before is durable then: a batch is committed in its last segment, and
    /// whoever finds that commit finds all of it.
    fn roll(&mut self, size: u64) -> Result<(), StateError> {
        let writer = &mut *self.writer;
        let full = writer.last().clone();
        if !mutants::active(Mutant::CommitBeforeFiles) {
            full.sync()?;
        }
        let sizes = writer.sizes;
        let part = (writer.index.living().max(self.bytes) / SEGMENT_PART)
            .clamp(sizes.segment_min.into(), sizes.segment_max.into());
        let least = u64::from(START) + frame_bytes(0) + size.next_multiple_of(8);
        let length = u32::try_from(part.max(least))
            .map_err(|_| StateError("a value of 4 GiB has no place".to_owned()))?;
        let (number, link) = (full.head.number + 1, writer.end.link);
        let made = Segment::create(&mut *writer.disk, &writer.owner, (number, link), length)?;
        writer.without_keys.push((full, link));
        writer.segments.push(made);
        writer.end.at = START;
        Ok(())
    }

    /// Writes what was pushed. `first` says which segment is the store's first, once it is
    /// committed.
    fn write_frame(&mut self, commits: bool, first: u32) -> Result<(), StateError> {
        let end = &mut self.writer.end;
        let (batch, part, before) = end.link.next();
        let link = Link { batch, part, commits, crc: crc32c_append(before, &self.entries) };
        let length = u32::try_from(self.entries.len()).expect("within its segment");
        let frame = Frame { link, before, length, first };
        let segment = self.writer.segments.last().expect("one is written to");
        let head = frame.encode(segment.head.salt);
        segment.write(end.at, &[&head, &self.entries, padding(self.entries.len())])?;
        end.at += u32::try_from(frame.size()).expect("within its segment");
        (end.link, end.used) = (link, end.used + frame.size());
        self.entries.clear();
        Ok(())
    }

    /// Makes the batch durable; so many of the oldest segments are none of the store's any more.
    pub(super) fn commit(mut self, given_up: usize) -> Result<(), StateError> {
        let end = u64::from(self.writer.end.at) + frame_bytes(self.entries.len());
        if end > u64::from(self.writer.last().length) {
            self.roll(0)?;
        }
        let first = self.writer.segments[given_up].head.number;
        self.write_frame(true, first)?;
        if mutants::active(Mutant::RemoveBeforeDurable) {
            let files = self.writer.segments[..given_up].iter();
            let names: Vec<_> = files.map(|segment| Segment::name(segment.head.number)).collect();
            names.iter().for_each(|name| drop(self.writer.disk.remove(name)));
            drop(self.writer.disk.sync_directory());
        }
        self.writer.last().sync()
    }

    /// Takes all entries into segments of their own; where they are.
    pub(super) fn fill(mut self, all: &mut Entries<'_>) -> Result<Index, Unfilled> {
        self.roll(0).map_err(Unfilled::Disk)?;
        let mut places = Vec::new();
        for entry in all {
            let (key, value) = entry.map_err(Unfilled::Entry)?;
            let place = self.push(&key, Some(&value)).map_err(Unfilled::Disk)?;
            places.push((key, place));
        }
        if !self.entries.is_empty() {
            self.write_frame(false, 0).map_err(Unfilled::Disk)?;
        }
        // Of two with one key, the later holds.
        places.reverse();
        places.sort_by(|(one, _), (other, _)| one.cmp(other));
        places.dedup_by(|(later, _), (first, _)| later == first);
        Ok(Index::of(places.into_iter().map(Ok::<_, std::convert::Infallible>)).expect("no error"))
    }

    /// Copies what lives of the oldest segment, once there is more in the log than there may be: as
    /// much as its share is. Returns the number of clean segments, and what was moved.
    pub(super) fn clean(&mut self, index: &Index) -> Result<(usize, Moved), StateError> {
        let copied_max = 2 * self.bytes + CLEAN_BYTES;
        let read_max = 4 * self.bytes + CLEAN_READ_BYTES;
        let (mut cleaned, mut moved, mut frame) = (0, Moved::new(), Vec::new());
        let (copied, mut read) = (self.bytes, 0);
        while self.bytes - copied < copied_max
            && read < read_max
            && self.writer.is_over(index.living())
            && self.writer.segments[cleaned].head.number < self.begun_in
        {
            let oldest = &self.writer.segments[cleaned];
            let frames = self.writer.cleaning.get_or_insert_with(|| oldest.all_frames());
            match frames.next(&mut frame)? {
                Some((offset, head)) => {
                    read += head.size();
                    self.writer.end.used -= head.size();
                    let segment = oldest.head.number;
                    self.copy_living(index, (segment, offset), &frame, &mut moved)?;
                }
                None if frames.link == self.writer.segments[cleaned + 1].head.before => {
                    self.writer.cleaning = None;
                    cleaned += 1;
                }
                None => return Err(oldest.damaged_at(frames.at)),
            }
        }
        moved.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok((cleaned, moved))
    }

    fn copy_living(
        &mut self,
        index: &Index,
        (segment, start): (u32, u32),
        frame: &[u8],
        moved: &mut Moved,
    ) -> Result<(), StateError> {
        for (at, entry) in entries(frame) {
            let place = Place { segment, offset: start + at, length: entry.length() };
            if index.get(entry.key) == Some(place) {
                moved.push((entry.key.to_vec(), self.push_again(&entry)?));
            }
        }
        Ok(())
    }
}
