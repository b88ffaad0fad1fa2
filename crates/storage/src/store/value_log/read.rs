//! Reads of a log as one batch left it.

use super::format::{Entry, entry_bytes};
use super::index::{Cursor, Index, Place};
use super::segment::Segment;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::service::{KeyRange, StateError, Visitor};
use std::ops::Range;

/// Entries that a scan reads at first; twice as many each time, so that a short one reads little.
const WINDOW_MIN: usize = 16;

/// Entries that a scan reads at once, and bytes of them, but for one that is larger.
const WINDOW_MAX: usize = 1_024;
const WINDOW_BYTES: u64 = 1 << 20;

/// Bytes between two entries that are read rather than skipped: a call costs more.
const GAP_BYTES: u64 = 1_024;

/// A log as one batch left it, durably. It holds the files that it reads, removed or not.
#[derive(Debug)]
pub(in crate::store) struct Snapshot {
    pub(super) index: Index,
    /// Oldest first, without gaps in their numbers.
    pub(super) segments: Vec<Segment>,
}

impl Snapshot {
    pub(in crate::store) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        let Some(place) = self.index.get(key) else { return Ok(None) };
        let mut bytes = vec![0; size(key.len(), place)];
        let segment = self.segment(place);
        segment.read(place.offset, &mut bytes)?;
        let value = value(&bytes, key).ok_or_else(|| segment.damaged_at(place.offset))?;
        let head = bytes.len() - value.len();
        bytes.drain(..head);
        Ok(Some(bytes))
    }

    pub(in crate::store) fn scan(
        &self,
        keys: KeyRange<'_>,
        visit: &mut Visitor<'_>,
    ) -> Result<(), StateError> {
        if keys.bounds().is_none() {
            return Ok(());
        }
        let mut cursor = self.index.range(keys);
        let (mut window, mut most) = (Window::default(), WINDOW_MIN);
        while window.take(&mut cursor, most) {
            window.read(self)?;
            if window.entries.iter().any(|entry| window.show(entry, visit)) {
                break;
            }
            most = (2 * most).min(WINDOW_MAX);
        }
        Ok(())
    }

    fn segment(&self, place: Place) -> &Segment {
        &self.segments[(place.segment - self.segments[0].head.number) as usize]
    }
}

/// Bytes of an entry.
fn size(key: usize, place: Place) -> usize {
    usize::try_from(entry_bytes(key, place.length)).expect("it was written from memory")
}

/// ★ The value in an entry that is read back; `None` where it is not the one that was written.
fn value<'a>(bytes: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let entry = match mutants::active(Mutant::TrustValues) {
        true => Entry::split(bytes),
        false => Entry::checked(bytes),
    };
    entry.filter(|entry| entry.key == key)?.value
}

/// Entries that follow one another in the order of their keys, read in the order of their places:
/// what was written together is read together.
#[derive(Default)]
struct Window {
    keys: Vec<u8>,
    entries: Vec<WindowEntry>,
    /// Places in `entries`, in the order in which they are read.
    order: Vec<u32>,
    bytes: Vec<u8>,
}

struct WindowEntry {
    key: Range<usize>,
    place: Place,
    /// Offset in the bytes that were read.
    at: usize,
}

impl WindowEntry {
    fn size(&self) -> usize {
        size(self.key.len(), self.place)
    }

    /// Offset in its segment at which it ends.
    fn end(&self) -> u64 {
        u64::from(self.place.offset) + self.size() as u64
    }
}

impl Window {
    /// Takes the next entries; `false` where there are none.
    fn take(&mut self, cursor: &mut Cursor<'_>, most: usize) -> bool {
        self.keys.clear();
        self.entries.clear();
        let mut bytes = 0;
        while self.entries.len() < most && bytes < WINDOW_BYTES {
            let start = self.keys.len();
            let Some(place) = cursor.next(&mut self.keys) else { break };
            let entry = WindowEntry { key: start..self.keys.len(), place, at: 0 };
            bytes += entry.size() as u64;
            self.entries.push(entry);
        }
        !self.entries.is_empty()
    }

    fn read(&mut self, log: &Snapshot) -> Result<(), StateError> {
        let Self { entries, order, bytes, .. } = self;
        bytes.clear();
        order.clear();
        order.extend(0..u32::try_from(entries.len()).expect("a thousand"));
        let place = |at: &u32| entries[*at as usize].place;
        order.sort_unstable_by_key(|at| (place(at).segment, place(at).offset));
        let mut rest = &order[..];
        while let Some(first) = rest.first().map(|at| &entries[*at as usize]) {
            let (place, mut end) = (first.place, first.end());
            let together = rest[1..].iter().take_while(|at| {
                let next = &entries[**at as usize];
                let is_near = next.place.segment == place.segment
                    && u64::from(next.place.offset) <= end + GAP_BYTES;
                end = if is_near { next.end() } else { end };
                is_near
            });
            let (these, others) = rest.split_at(1 + together.count());
            let from = bytes.len();
            let length = end - u64::from(place.offset);
            bytes.resize(from + usize::try_from(length).expect("as it was written"), 0);
            log.segment(place).read(place.offset, &mut bytes[from..])?;
            for at in these {
                let entry = &mut entries[*at as usize];
                entry.at = from + (entry.place.offset - place.offset) as usize;
            }
            rest = others;
        }
        for entry in entries {
            let read = &bytes[entry.at..entry.at + entry.size()];
            if value(read, &self.keys[entry.key.clone()]).is_none() {
                return Err(log.segment(entry.place).damaged_at(entry.place.offset));
            }
        }
        Ok(())
    }

    /// Shows an entry that was read; `true` if no more is to be seen.
    fn show(&self, entry: &WindowEntry, visit: &mut Visitor<'_>) -> bool {
        let end = entry.at + entry.size();
        let value = &self.bytes[end - entry.place.length as usize..end];
        visit(&self.keys[entry.key.clone()], value).is_break()
    }
}
