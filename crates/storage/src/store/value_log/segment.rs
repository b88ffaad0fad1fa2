//! One segment of the log, and its frames in order.

use super::format::{FRAME_HEAD, Frame, Link, START, SegmentHead, frame_bytes, heads};
use super::{damaged, refused};
use crate::disk::{Disk, DiskFile};
use crate::{Owner, StorageError};
use crc32c::crc32c_append;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::service::StateError;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// Bytes that are read at once where a whole segment is.
const PIECE_BYTES: u32 = 1 << 20;

const ENDING: &str = ".values";

/// A segment that is open. Its file can be read as long as somebody holds it, removed or not.
#[derive(Clone)]
pub(super) struct Segment {
    pub(super) head: SegmentHead,
    pub(super) file: Arc<dyn DiskFile>,
    /// Length of the file.
    pub(super) length: u32,
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Segment").field(&self.head).finish()
    }
}

/// A file under the name of a segment.
pub(super) enum Found {
    Segment(Segment),
    /// Its making was cut short: nothing was written to it.
    Unmade,
    /// It has no head, and something else.
    Damaged,
}

impl Segment {
    pub(super) fn name(number: u32) -> String {
        format!("{number:010}{ENDING}")
    }

    /// Number of the segment of this name, if it is one's.
    pub(super) fn number(name: &str) -> Option<u32> {
        name.strip_suffix(ENDING)?.parse().ok().filter(|number| Self::name(*number) == name)
    }

    /// Makes a segment of so many bytes, durable with its head and name: whoever finds a frame in
    /// it finds the head too.
    pub(super) fn create(
        disk: &mut dyn Disk,
        owner: &Owner,
        (number, before): (u32, Link),
        length: u32,
    ) -> Result<Self, StateError> {
        let salt = RandomState::new().hash_one(number) as u32;
        let head = SegmentHead { number, salt, before };
        let made = disk.create(&Self::name(number), u64::from(length)).and_then(|file| {
            file.write_at(0, &[&head.encode(owner)])?;
            file.sync_data()?;
            disk.sync_directory()?;
            Ok(file)
        });
        let file = made.map_err(|error| refused(&error))?;
        Ok(Self { head, file, length })
    }

    pub(super) fn open(disk: &dyn Disk, number: u32, owner: &Owner) -> Result<Found, StorageError> {
        let name = Self::name(number);
        let place = disk.locate(&name);
        let opened = disk.open(&name).and_then(|file| {
            let length = u32::try_from(file.length()?).unwrap_or(u32::MAX);
            let mut head = vec![0; START.min(length) as usize];
            file.read_at(0, &mut head)?;
            Ok((file, length, head))
        });
        let (file, length, head) =
            opened.map_err(|error| StorageError::io("open", place.clone(), &error))?;
        match SegmentHead::read(&place, &head, owner)? {
            Some(head) if head.number == number => Ok(Found::Segment(Self { head, file, length })),
            _ => {
                let head = SegmentHead { number, salt: 0, before: Link::NONE };
                let is_empty = Self { head, file, length }
                    .pieces(START, |piece| piece.iter().all(|byte| *byte == 0))?;
                Ok(if is_empty { Found::Unmade } else { Found::Damaged })
            }
        }
    }

    /// Reads `bytes.len()` bytes.
    pub(super) fn read(&self, offset: u32, bytes: &mut [u8]) -> Result<(), StateError> {
        self.file.read_at(u64::from(offset), bytes).map_err(|error| refused(&error))
    }

    pub(super) fn write(&self, offset: u32, parts: &[&[u8]]) -> Result<(), StateError> {
        self.file.write_at(u64::from(offset), parts).map_err(|error| refused(&error))
    }

    pub(super) fn sync(&self) -> Result<(), StateError> {
        self.file.sync_data().map_err(|error| refused(&error))
    }

    /// Its frames.
    pub(super) fn all_frames(&self) -> Frames {
        Frames { segment: self.clone(), at: START, link: self.head.before }
    }

    /// True if there is the head of a frame of this batch, or a later one, behind this place.
    pub(super) fn goes_on(&self, from: u32, batch: u64) -> Result<bool, StateError> {
        let salt = self.head.salt;
        let ends =
            self.pieces(from, |piece| heads(piece, salt).all(|frame| frame.link.batch < batch))?;
        Ok(!ends)
    }

    /// True if all pieces from this place on are of one kind; each shows the beginning of the next.
    fn pieces(&self, from: u32, is: impl Fn(&[u8]) -> bool) -> Result<bool, StateError> {
        let mut at = from;
        while at < self.length {
            let bytes = PIECE_BYTES.saturating_add(FRAME_HEAD as u32).min(self.length - at);
            let mut piece = vec![0; bytes as usize];
            self.read(at, &mut piece)?;
            if !is(&piece) {
                return Ok(false);
            }
            at = at.saturating_add(PIECE_BYTES);
        }
        Ok(true)
    }

    pub(super) fn damaged_at(&self, offset: u32) -> StateError {
        let name = Self::name(self.head.number);
        damaged(&format!("{name} reads back changed at byte {offset}"))
    }
}

/// Frames of a segment, in order, up to the first that is not whole.
#[derive(Debug)]
pub(super) struct Frames {
    pub(super) segment: Segment,
    /// Where the next begins.
    pub(super) at: u32,
    /// End of the frame before.
    pub(super) link: Link,
}

impl Frames {
    /// The next frame with the offset of its entries, which fill `entries`; `None` where none
    /// follows that is whole.
    pub(super) fn next(
        &mut self,
        entries: &mut Vec<u8>,
    ) -> Result<Option<(u32, Frame)>, StateError> {
        let Some(frame) = self.head()? else { return Ok(None) };
        let offset = self.at + FRAME_HEAD as u32;
        entries.resize(frame.length as usize, 0);
        self.segment.read(offset, entries)?;
        if crc32c_append(frame.before, entries) != frame.link.crc {
            return Ok(None);
        }
        self.at += u32::try_from(frame.size()).expect("within its segment");
        self.link = frame.link;
        Ok(Some((offset, frame)))
    }

    /// ★ The head of the next frame, which follows the one before and none else: what an earlier
    /// try left behind it is not taken for more of this one.
    fn head(&self) -> Result<Option<Frame>, StateError> {
        let left = u64::from(self.segment.length.saturating_sub(self.at));
        if left < FRAME_HEAD as u64 {
            return Ok(None);
        }
        let mut head = [0; FRAME_HEAD];
        self.segment.read(self.at, &mut head)?;
        let (batch, part, before) = self.link.next();
        let follows = |frame: &Frame| {
            (frame.link.batch, frame.link.part) == (batch, part)
                && (frame.before == before || mutants::active(Mutant::KeepTornTail))
                && frame_bytes(frame.length as usize) <= left
        };
        Ok(Frame::read(&head, self.segment.head.salt).filter(follows))
    }
}
