//! The keys of a segment in order, with the places of their last values in it: what is read of it
//! when the store is opened.
//!
//! ```text
//!  0  magic "QVK1"            8  last frame: batch u64, part u32, commits u8, crc u32
//!  4  salt of the segment    25  where it ends u32
//!                            29  entries: bytes of the key u16, of the value u32, offset u32, key
//!                            …   CRC-32C of all before it
//! ```
//!
//! A segment has such a file once nothing more is written to it. One that is missing, damaged, or
//! of another end than the segment came to, is made again from the segment.

use super::format::{Link, REMOVED, entries, word};
use super::index::Place;
use super::segment::{Frames, Segment};
use super::{damaged, refused};
use crate::disk::Disk;
use crc32c::crc32c;
use quorate_types::service::StateError;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const MAGIC: [u8; 4] = *b"QVK1";
const LINK_END: usize = 25;
const HEAD: usize = 29;
const ENTRY_HEAD: usize = 10;
const CRC: usize = 4;

const ENDING: &str = ".keys";

/// The keys of one segment.
#[derive(Debug)]
pub(super) struct Keys {
    segment: u32,
    /// As they stand in a file.
    bytes: Vec<u8>,
}

impl Keys {
    pub(super) fn name(number: u32) -> String {
        format!("{number:010}{ENDING}")
    }

    /// Number of the segment whose keys have this name, if they are one's.
    pub(super) fn number(name: &str) -> Option<u32> {
        name.strip_suffix(ENDING)?.parse().ok().filter(|number| Self::name(*number) == name)
    }

    /// The keys of a segment in frames up to this one.
    pub(super) fn read_from(segment: &Segment, to: Link) -> Result<Self, StateError> {
        let (mut frames, mut frame) = (segment.all_frames(), Vec::new());
        let mut found = Found::default();
        while frames.link != to {
            let Some((offset, _)) = frames.next(&mut frame)? else {
                return Err(segment.damaged_at(frames.at));
            };
            found.take(offset, &frame);
        }
        Ok(Self { segment: segment.head.number, bytes: found.encode(segment.head.salt, &frames) })
    }

    /// The keys of a segment that ends so, if there is a whole file of them.
    pub(super) fn load(disk: &dyn Disk, segment: &Segment, end: Link) -> Option<Self> {
        let number = segment.head.number;
        let file = disk.open(&Self::name(number)).ok()?;
        let mut bytes = vec![0; usize::try_from(file.length().ok()?).ok()?];
        file.read_at(0, &mut bytes).ok()?;
        let checked = bytes.len().checked_sub(CRC).filter(|checked| *checked >= HEAD)?;
        let is_whole = crc32c(&bytes[..checked]) == word(&bytes, checked)
            && bytes[..LINK_END] == head(segment.head.salt, end);
        is_whole.then_some(Self { segment: number, bytes })
    }

    /// Writes the file.
    pub(super) fn keep(&self, disk: &mut dyn Disk) -> Result<(), StateError> {
        disk.write(&Self::name(self.segment), &self.bytes).map_err(|error| refused(&error))
    }

    /// Where the segment's last frame ends.
    pub(super) fn end(&self) -> u32 {
        word(&self.bytes, LINK_END)
    }

    fn cursor(&self) -> Cursor<'_> {
        Cursor { rest: &self.bytes[HEAD..self.bytes.len() - CRC], segment: self.segment }
    }
}

fn head(salt: u32, end: Link) -> [u8; LINK_END] {
    let mut bytes = [0; LINK_END];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4..8].copy_from_slice(&salt.to_le_bytes());
    bytes[8..16].copy_from_slice(&end.batch.to_le_bytes());
    bytes[16..20].copy_from_slice(&end.part.to_le_bytes());
    bytes[20] = u8::from(end.commits);
    bytes[21..].copy_from_slice(&end.crc.to_le_bytes());
    bytes
}

/// Entries as they are found in a segment.
#[derive(Default)]
struct Found {
    keys: Vec<u8>,
    entries: Vec<FoundEntry>,
}

struct FoundEntry {
    key: std::ops::Range<usize>,
    length: u32,
    offset: u32,
}

impl Found {
    fn take(&mut self, offset: u32, frame: &[u8]) {
        for (at, entry) in entries(frame) {
            let start = self.keys.len();
            self.keys.extend_from_slice(entry.key);
            let (key, length) = (start..self.keys.len(), entry.length());
            self.entries.push(FoundEntry { key, length, offset: offset + at });
        }
    }

    fn encode(mut self, salt: u32, frames: &Frames) -> Vec<u8> {
        let key = |entry: &FoundEntry| &self.keys[entry.key.clone()];
        // Of entries of one key the last comes first, and is the one that stays.
        self.entries.sort_unstable_by_key(|entry| (key(entry), Reverse(entry.offset)));
        self.entries.dedup_by(|later, first| key(later) == key(first));
        let mut bytes =
            Vec::with_capacity(HEAD + CRC + self.keys.len() + ENTRY_HEAD * self.entries.len());
        bytes.extend_from_slice(&head(salt, frames.link));
        bytes.extend_from_slice(&frames.at.to_le_bytes());
        for entry in &self.entries {
            let key_bytes = u16::try_from(entry.key.len()).expect("as it was read");
            bytes.extend_from_slice(&key_bytes.to_le_bytes());
            bytes.extend_from_slice(&entry.length.to_le_bytes());
            bytes.extend_from_slice(&entry.offset.to_le_bytes());
            bytes.extend_from_slice(key(entry));
        }
        let crc = crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes
    }
}

/// A key, with offset and length of its last value.
type Last<'a> = (&'a [u8], u32, u32);

/// A way through the keys of one segment.
struct Cursor<'a> {
    rest: &'a [u8],
    segment: u32,
}

impl<'a> Cursor<'a> {
    /// The next key.
    fn next(&mut self) -> Option<Result<Last<'a>, StateError>> {
        if self.rest.is_empty() {
            return None;
        }
        let split = self.rest.split_at_checked(ENTRY_HEAD).and_then(|(head, rest)| {
            let key_bytes = u16::from_le_bytes(head[..2].try_into().expect("2 bytes"));
            Some((head, rest.split_at_checked(key_bytes.into())?))
        });
        let Some((head, (key, rest))) = split else {
            return Some(Err(damaged("the keys of a segment end too soon")));
        };
        self.rest = rest;
        Some(Ok((key, word(head, 6), word(head, 2))))
    }
}

/// All keys that segments leave, in order: from the oldest segment to the newest, the last of
/// which has the last word on a key.
pub(super) struct Merged<'a> {
    cursors: Vec<Cursor<'a>>,
    /// Next entry of each, the newest first of those with one key.
    heap: BinaryHeap<(Reverse<&'a [u8]>, usize, u32, u32)>,
    last: Option<&'a [u8]>,
    failed: Option<StateError>,
}

impl<'a> Merged<'a> {
    pub(super) fn of(all: &'a [Keys]) -> Self {
        let cursors: Vec<_> = all.iter().map(Keys::cursor).collect();
        let mut merged = Self { cursors, heap: BinaryHeap::new(), last: None, failed: None };
        (0..all.len()).for_each(|age| merged.advance(age));
        merged
    }

    fn advance(&mut self, age: usize) {
        match self.cursors[age].next() {
            Some(Ok((key, offset, length))) => {
                self.heap.push((Reverse(key), age, offset, length));
            }
            Some(Err(error)) => self.failed = Some(error),
            None => {}
        }
    }
}

impl<'a> Iterator for Merged<'a> {
    type Item = Result<(&'a [u8], Place), StateError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(error) = self.failed.take() {
                return Some(Err(error));
            }
            let (Reverse(key), age, offset, length) = self.heap.pop()?;
            self.advance(age);
            if self.last.replace(key) != Some(key) && length != REMOVED {
                let segment = self.cursors[age].segment;
                return Some(Ok((key, Place { segment, offset, length })));
            }
        }
    }
}
