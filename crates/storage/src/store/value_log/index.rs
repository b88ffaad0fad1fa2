//! Keys in order with the places of their values, in memory.
//!
//! ```text
//! slots:  beginning, chunk ─ beginning, chunk ─ …        some 130 keys a chunk
//!
//! chunk:   0  entries u16                4 + 2n   places: segment, offset, length u32
//!          2  bytes of the prefix u16    4 + 14n  prefix, which all keys have
//!          4  ends of the rests u16      …        rests of the keys
//! ```
//!
//! So a key takes its length and 14 bytes, less what it shares with its neighbours. A chunk is
//! never changed: what a batch changes is copied, and whoever holds an older index reads on in it.

use super::format::entry_bytes;
use quorate_types::service::KeyRange;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// Chunks with fewer entries are put together with the next.
const ENTRIES_MIN: usize = 48;

/// Entries of a chunk when all are made at once.
const ENTRIES_FILL: usize = 128;

/// Chunks with more entries are split.
const ENTRIES_MAX: usize = 192;

const HEAD: usize = 4;
const PLACE: usize = 12;

/// Place of an entry in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) segment: u32,
    pub(super) offset: u32,
    /// Length of its value.
    pub(super) length: u32,
}

/// A key with its new place, or none.
pub(super) type Update<'a> = (&'a [u8], Option<Place>);

/// Keys and places as one batch left them.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    slots: Vec<Slot>,
    /// Bytes that the entries take in the log.
    living: u64,
}

#[derive(Clone, Debug)]
struct Slot {
    /// Beginning of its first key.
    beginning: u64,
    chunk: Chunk,
}

#[derive(Clone, Debug)]
struct Chunk(Arc<[u8]>);

impl Index {
    /// An index of these keys, which come in order.
    pub(super) fn of<E>(
        entries: impl Iterator<Item = Result<(impl AsRef<[u8]>, Place), E>>,
    ) -> Result<Self, E> {
        let mut packer = Packer::default();
        for entry in entries {
            let (key, place) = entry?;
            packer.update(key.as_ref(), None, Some(place));
            if packer.places.len() == ENTRIES_FILL {
                packer.flush();
            }
        }
        Ok(packer.finish())
    }

    /// Bytes that the entries take in the log.
    pub(super) fn living(&self) -> u64 {
        self.living
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<Place> {
        let Slot { chunk, .. } = self.slots.get(self.slot_of(key)?)?;
        chunk.search(key).ok().map(|at| chunk.place(at))
    }

    /// Keys of a range, in order.
    pub(super) fn range<'a>(&'a self, keys: KeyRange<'a>) -> Cursor<'a> {
        let slot = self.slot_of(keys.from).unwrap_or(0);
        let at = self.slots.get(slot).map_or(0, |first| match first.chunk.search(keys.from) {
            Ok(at) | Err(at) => at,
        });
        Cursor { index: self, slot, at, to: keys.to }
    }

    /// The index with these updates, which come in order, each key once.
    pub(super) fn apply(&self, mut updates: &[Update<'_>]) -> Self {
        let mut packer = Packer { living: self.living, ..Packer::default() };
        packer.slots.reserve(self.slots.len() + 1);
        let mut at = 0;
        while let Some((key, _)) = updates.first() {
            let slot = self.slot_of(key).unwrap_or(0).max(at);
            at = packer.take_over(&self.slots, at..slot);
            let Some(Slot { chunk, .. }) = self.slots.get(at) else { break };
            let next = self.slots.get(at + 1);
            let count = next.map_or(updates.len(), |next| {
                updates.partition_point(|(key, _)| next.chunk.cmp(0, key).is_gt())
            });
            let (these, rest) = updates.split_at(count);
            packer.merge(chunk, these);
            (updates, at) = (rest, at + 1);
        }
        packer.take_over(&self.slots, at..self.slots.len());
        for (key, place) in updates {
            packer.update(key, None, *place);
        }
        packer.finish()
    }

    /// The chunk in which a key is, if it is anywhere; `None` before the first key.
    fn slot_of(&self, key: &[u8]) -> Option<usize> {
        let begins = beginning(&[key]);
        let from = self.slots.partition_point(|slot| slot.beginning < begins);
        let alike = self.slots[from..].partition_point(|slot| slot.beginning == begins);
        let among = &self.slots[from..from + alike];
        (from + among.partition_point(|slot| slot.chunk.cmp(0, key).is_le())).checked_sub(1)
    }

    /// Bytes of memory that it takes.
    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> usize {
        let slots = self.slots.len() * (size_of::<Slot>() + 2 * size_of::<usize>());
        slots + self.slots.iter().map(|slot| slot.chunk.0.len()).sum::<usize>()
    }
}

/// A way through the keys of a range.
pub(super) struct Cursor<'a> {
    index: &'a Index,
    slot: usize,
    at: usize,
    to: Option<&'a [u8]>,
}

impl Cursor<'_> {
    /// Appends the next key to `key`; its place.
    pub(super) fn next(&mut self, key: &mut Vec<u8>) -> Option<Place> {
        let mut chunk = &self.index.slots.get(self.slot)?.chunk;
        if self.at == chunk.len() {
            (self.slot, self.at) = (self.slot + 1, 0);
            chunk = &self.index.slots.get(self.slot)?.chunk;
        }
        if self.to.is_some_and(|to| chunk.cmp(self.at, to).is_ge()) {
            return None;
        }
        key.extend_from_slice(chunk.prefix());
        key.extend_from_slice(chunk.rest(self.at));
        self.at += 1;
        Some(chunk.place(self.at - 1))
    }
}

impl Chunk {
    fn short(&self, at: usize) -> usize {
        usize::from(u16::from_le_bytes([self.0[at], self.0[at + 1]]))
    }

    fn len(&self) -> usize {
        self.short(0)
    }

    fn place_at(&self, at: usize) -> usize {
        HEAD + 2 * self.len() + PLACE * at
    }

    fn place(&self, at: usize) -> Place {
        let bytes = &self.0[self.place_at(at)..][..PLACE];
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        Place { segment: word(0), offset: word(4), length: word(8) }
    }

    fn prefix(&self) -> &[u8] {
        &self.0[self.place_at(self.len())..][..self.short(2)]
    }

    /// A key without the prefix.
    fn rest(&self, at: usize) -> &[u8] {
        let rests = self.place_at(self.len()) + self.short(2);
        let end = |at: usize| self.short(HEAD + 2 * at);
        let from = at.checked_sub(1).map_or(0, end);
        &self.0[rests + from..rests + end(at)]
    }

    /// Order of a key of this chunk beside another.
    fn cmp(&self, at: usize, key: &[u8]) -> Ordering {
        let prefix = self.prefix();
        let (head, rest) = key.split_at(prefix.len().min(key.len()));
        prefix.cmp(head).then_with(|| self.rest(at).cmp(rest))
    }

    fn search(&self, key: &[u8]) -> Result<usize, usize> {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from.midpoint(to);
            match self.cmp(middle, key) {
                Ordering::Less => from = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => to = middle,
            }
        }
        Err(from)
    }

    /// The chunk with other places for some of its keys, and where those are; `None` where keys
    /// come or go.
    fn with_places(&self, updates: &[Update<'_>]) -> Option<(Self, Vec<usize>)> {
        let found = |(key, place): &Update<'_>| place.and(self.search(key).ok());
        let found: Vec<usize> = updates.iter().map(found).collect::<Option<_>>()?;
        let mut bytes: Arc<[u8]> = Arc::from(&self.0[..]);
        let copied = Arc::get_mut(&mut bytes).expect("just made");
        for (at, place) in found.iter().zip(updates.iter().filter_map(|(_, place)| *place)) {
            copied[self.place_at(*at)..][..PLACE].copy_from_slice(&place.encode());
        }
        Some((Self(bytes), found))
    }
}

impl Place {
    fn encode(self) -> [u8; PLACE] {
        let mut bytes = [0; PLACE];
        bytes[..4].copy_from_slice(&self.segment.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }
}

/// Makes the chunks of an index, in order.
#[derive(Debug, Default)]
struct Packer {
    slots: Vec<Slot>,
    living: u64,
    /// Keys that are in no chunk yet, one after the other.
    keys: Vec<u8>,
    ends: Vec<usize>,
    places: Vec<Place>,
}

impl Packer {
    /// Takes another key, in parts.
    fn push(&mut self, key: &[&[u8]], place: Place) {
        key.iter().for_each(|part| self.keys.extend_from_slice(part));
        self.ends.push(self.keys.len());
        self.places.push(place);
    }

    /// Takes chunks as they are; what few keys wait go into the first of them. The end of the
    /// range.
    fn take_over(&mut self, slots: &[Slot], mut range: Range<usize>) -> usize {
        while !self.places.is_empty() && !range.is_empty() {
            self.merge(&slots[range.start].chunk, &[]);
            range.start += 1;
        }
        self.slots.extend_from_slice(&slots[range.clone()]);
        range.end
    }

    /// Takes the keys of a chunk as these updates leave them.
    fn merge(&mut self, chunk: &Chunk, updates: &[Update<'_>]) {
        if self.places.is_empty()
            && let Some((changed, found)) = chunk.with_places(updates)
        {
            for (at, (key, place)) in found.into_iter().zip(updates) {
                self.count(key.len(), Some(chunk.place(at)), *place);
            }
            self.slots.push(Slot { beginning: changed.beginning(), chunk: changed });
            return;
        }
        let mut updates = updates.iter().peekable();
        for at in 0..chunk.len() {
            while let Some((key, place)) = updates.next_if(|(key, _)| chunk.cmp(at, key).is_gt()) {
                self.update(key, None, *place);
            }
            match updates.next_if(|(key, _)| chunk.cmp(at, key).is_eq()) {
                Some((key, place)) => self.update(key, Some(chunk.place(at)), *place),
                None => self.push(&[chunk.prefix(), chunk.rest(at)], chunk.place(at)),
            }
        }
        for (key, place) in updates {
            self.update(key, None, *place);
        }
        if self.places.len() >= ENTRIES_MIN {
            self.flush();
        }
    }

    fn update(&mut self, key: &[u8], former: Option<Place>, place: Option<Place>) {
        self.count(key.len(), former, place);
        if let Some(place) = place {
            self.push(&[key], place);
        }
    }

    /// Counts what an update makes of the bytes that live.
    fn count(&mut self, key: usize, former: Option<Place>, place: Option<Place>) {
        let bytes = |place: Option<Place>| place.map_or(0, |it| entry_bytes(key, it.length));
        self.living = self.living + bytes(place) - bytes(former);
    }

    /// Makes chunks of all keys that wait.
    fn flush(&mut self) {
        if !self.places.is_empty() {
            self.pack(0..self.places.len());
        }
        self.keys.clear();
        self.ends.clear();
        self.places.clear();
    }

    fn pack(&mut self, range: Range<usize>) {
        let bytes = self.key(range.start).start..self.key(range.end - 1).end;
        let is_large = range.len() > ENTRIES_MAX || bytes.len() > usize::from(u16::MAX);
        if is_large && range.len() > 1 {
            let middle = range.start.midpoint(range.end);
            self.pack(range.start..middle);
            self.pack(middle..range.end);
            return;
        }
        let (first, last) =
            (&self.keys[self.key(range.start)], &self.keys[self.key(range.end - 1)]);
        let prefix = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let size = HEAD + (2 + PLACE) * range.len() + prefix + bytes.len() - prefix * range.len();
        let mut chunk = Vec::with_capacity(size);
        let short = |number: usize| u16::try_from(number).expect("within bounds").to_le_bytes();
        chunk.extend_from_slice(&short(range.len()));
        chunk.extend_from_slice(&short(prefix));
        let mut end = 0;
        for at in range.clone() {
            end += self.key(at).len() - prefix;
            chunk.extend_from_slice(&short(end));
        }
        self.places[range.clone()].iter().for_each(|place| chunk.extend(place.encode()));
        chunk.extend_from_slice(&first[..prefix]);
        for at in range.clone() {
            chunk.extend_from_slice(&self.keys[self.key(at)][prefix..]);
        }
        let (beginning, chunk) = (beginning(&[first]), Chunk(chunk.into()));
        self.slots.push(Slot { beginning, chunk });
    }

    fn key(&self, at: usize) -> Range<usize> {
        at.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[at]
    }

    fn finish(mut self) -> Index {
        self.flush();
        Index { slots: self.slots, living: self.living }
    }
}

impl Chunk {
    fn beginning(&self) -> u64 {
        beginning(&[self.prefix(), self.rest(0)])
    }
}

/// The first bytes of a key that comes in parts, in the order of keys.
fn beginning(key: &[&[u8]]) -> u64 {
    let mut bytes = [0; 8];
    let first = key.iter().flat_map(|part| part.iter());
    bytes.iter_mut().zip(first).for_each(|(byte, first)| *byte = *first);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests;
