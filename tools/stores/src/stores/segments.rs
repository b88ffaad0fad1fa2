//! A bound, and no store: values appended to segments, and their places in memory.
//!
//! ```text
//! segment:  batch ─ batch ─ …        batch: bytes, CRC, entries ─ key, length, value ─ …
//! in memory: first eight bytes of a key ─▶ segment, offset, length
//! ```
//!
//! A batch is a checkpoint, in one write and one sync. A segment that is full is closed with a
//! hint, its entries without their values, from which its part of memory is made when the store
//! is opened. Half of it dead, its living values go into the next batch, and it is removed. There
//! are no removals, and keys that agree in eight bytes are none of its cases.

use super::Store;
use crate::workload::{Changes, Key};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A segment is closed by the batch with which it reaches so many bytes.
const SEGMENT_BYTES: u64 = 32 << 20;

/// Bytes of a batch before its entries: their bytes and their CRC.
const BATCH_HEAD: usize = 8;

/// Bytes of an entry before its value: key and length.
const ENTRY_HEAD: usize = 36;

/// Bytes of an entry in a hint.
const HINT_BYTES: usize = 16;

/// Place of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    segment: u32,
    offset: u32,
    length: u32,
}

struct Segment {
    file: File,
    bytes: u64,
    /// Bytes of entries whose keys have later ones.
    dead: u64,
}

pub(super) struct Segments {
    folder: PathBuf,
    places: BTreeMap<u64, Place>,
    /// By number; batches go to the last.
    segments: BTreeMap<u32, Segment>,
}

impl Segments {
    pub(super) fn open(folder: &Path) -> Self {
        let mut store =
            Self { folder: folder.into(), places: BTreeMap::new(), segments: BTreeMap::new() };
        let entries = fs::read_dir(folder).expect("a folder").flatten();
        let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        let mut numbers: Vec<u32> = entries.filter_map(number).collect();
        numbers.sort_unstable();
        for &number in &numbers {
            store.recover(number);
        }
        if numbers.is_empty() {
            store.begin(0);
        }
        store
    }

    fn path(&self, number: u32) -> PathBuf {
        self.folder.join(number.to_string())
    }

    fn hint_path(&self, number: u32) -> PathBuf {
        self.folder.join(format!("{number}.hint"))
    }

    fn last(&self) -> u32 {
        *self.segments.keys().next_back().expect("there is one")
    }

    fn begin(&mut self, number: u32) {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false);
        let file = file.open(self.path(number)).expect("opens");
        File::open(&self.folder).and_then(|folder| folder.sync_all()).expect("syncs");
        self.segments.insert(number, Segment { file, bytes: 0, dead: 0 });
    }

    /// Fills memory from a segment's hint, or from its whole batches if it has none.
    fn recover(&mut self, number: u32) {
        self.begin(number);
        if let Ok(hint) = fs::read(self.hint_path(number)) {
            let word = |entry: &[u8], at| u32::from_le_bytes(entry[at..at + 4].try_into().unwrap());
            for entry in hint.chunks_exact(HINT_BYTES) {
                let hash = u64::from_be_bytes(entry[..8].try_into().expect("eight"));
                let (offset, length) = (word(entry, 8), word(entry, 12));
                self.place(hash, Place { segment: number, offset, length });
            }
            let length = self.segments[&number].file.metadata().expect("a length").len();
            self.segments.get_mut(&number).expect("just begun").bytes = length;
            return;
        }
        let content = fs::read(self.path(number)).expect("reads");
        let whole = whole_batches(&content);
        for (key, offset, length) in entries(&content[..whole]) {
            self.place(hash(&key), Place { segment: number, offset, length });
        }
        let segment = self.segments.get_mut(&number).expect("just begun");
        segment.bytes = whole as u64;
    }

    /// Has a key's value in another place from now on.
    fn place(&mut self, hash: u64, place: Place) {
        let Some(former) = self.places.insert(hash, place) else { return };
        // A segment that was emptied and removed is not asked.
        if let Some(segment) = self.segments.get_mut(&former.segment) {
            segment.dead += ENTRY_HEAD as u64 + u64::from(former.length);
        }
    }

    fn read(&self, place: Place) -> (Key, Vec<u8>) {
        let mut entry = vec![0; ENTRY_HEAD + place.length as usize];
        let file = &self.segments[&place.segment].file;
        file.read_exact_at(&mut entry, place.offset.into()).expect("reads");
        let key = entry[..32].try_into().expect("a key");
        (key, entry.split_off(ENTRY_HEAD))
    }

    /// Closed segments of which half is dead.
    fn due(&self) -> Vec<u32> {
        let last = self.last();
        let closed = self.segments.iter().filter(|&(&number, _)| number != last);
        let due = closed.filter(|(_, segment)| segment.dead * 2 >= segment.bytes);
        due.map(|(&number, _)| number).collect()
    }

    /// Adds the living values of a segment to a batch, where a change does not replace them.
    fn copy_living(&self, number: u32, changes: &Changes, batch: &mut Vec<u8>) {
        let content = fs::read(self.path(number)).expect("reads");
        for (key, offset, length) in entries(&content) {
            let place = Place { segment: number, offset, length };
            if self.places.get(&hash(&key)) == Some(&place) && !changes.contains_key(&key) {
                let start = offset as usize;
                batch.extend_from_slice(&content[start..start + ENTRY_HEAD + length as usize]);
            }
        }
    }

    /// Closes the last segment, and begins the next.
    fn close(&mut self, number: u32) {
        let content = fs::read(self.path(number)).expect("reads");
        let mut hint = Vec::new();
        for (key, offset, length) in entries(&content) {
            hint.extend_from_slice(&key[..8]);
            hint.extend_from_slice(&offset.to_le_bytes());
            hint.extend_from_slice(&length.to_le_bytes());
        }
        let (path, written) = (self.hint_path(number), self.folder.join("hint"));
        fs::write(&written, &hint).expect("writes");
        File::open(&written).and_then(|file| file.sync_all()).expect("syncs");
        fs::rename(written, path).expect("renames");
        self.begin(number + 1);
    }
}

impl Store for Segments {
    fn write(&mut self, changes: &Changes) {
        let mut batch = vec![0; BATCH_HEAD];
        for (key, value) in changes {
            batch.extend_from_slice(key);
            batch.extend_from_slice(&u32::try_from(value.len()).expect("fits").to_le_bytes());
            batch.extend_from_slice(value);
        }
        let due = self.due();
        for &number in &due {
            self.copy_living(number, changes, &mut batch);
        }
        let body = u32::try_from(batch.len() - BATCH_HEAD).expect("fits");
        let crc = crc32c::crc32c(&batch[BATCH_HEAD..]);
        batch[..4].copy_from_slice(&body.to_le_bytes());
        batch[4..BATCH_HEAD].copy_from_slice(&crc.to_le_bytes());
        let last = self.last();
        let segment = self.segments.get_mut(&last).expect("the last");
        let start = segment.bytes;
        segment.file.write_all_at(&batch, start).expect("writes");
        segment.file.sync_data().expect("syncs");
        segment.bytes += batch.len() as u64;
        let is_full = segment.bytes >= SEGMENT_BYTES;
        for (key, offset, length) in entries(&batch) {
            let offset = u32::try_from(start).expect("fits") + offset;
            self.place(hash(&key), Place { segment: last, offset, length });
        }
        for number in due {
            self.segments.remove(&number);
            fs::remove_file(self.path(number)).expect("removes");
            fs::remove_file(self.hint_path(number)).expect("removes");
        }
        if is_full {
            self.close(last);
        }
    }

    fn get(&mut self, key: &Key) -> Option<Vec<u8>> {
        let (found, value) = self.read(*self.places.get(&hash(key))?);
        assert_eq!(found, *key, "two keys with the same eight bytes");
        Some(value)
    }

    /// So many reads in as many places.
    fn scan(&mut self, from: &Key, entries: usize) -> Option<u64> {
        let places = self.places.range(hash(from)..).take(entries);
        Some(places.map(|(_, place)| self.read(*place).1.len() as u64).sum())
    }
}

fn hash(key: &Key) -> u64 {
    u64::from_be_bytes(key[..8].try_into().expect("eight bytes"))
}

/// Bytes of the batches that came to the disk whole, from the first on.
fn whole_batches(content: &[u8]) -> usize {
    let mut at = 0;
    while let Some(head) = content.get(at..at + BATCH_HEAD) {
        let word = |from| u32::from_le_bytes(head[from..from + 4].try_into().expect("four bytes"));
        let (body, crc) = (word(0) as usize, word(4));
        match content.get(at + BATCH_HEAD..at + BATCH_HEAD + body) {
            Some(entries) if body > 0 && crc32c::crc32c(entries) == crc => at += BATCH_HEAD + body,
            _ => break,
        }
    }
    at
}

/// Keys, offsets and lengths of values of the entries in whole batches.
fn entries(content: &[u8]) -> impl Iterator<Item = (Key, u32, u32)> {
    let (mut at, mut batch_end) = (0, 0);
    std::iter::from_fn(move || {
        if at == batch_end {
            let body = content.get(at..at + 4)?;
            at += BATCH_HEAD;
            batch_end = at + u32::from_le_bytes(body.try_into().expect("four bytes")) as usize;
        }
        let head = content.get(at..at + ENTRY_HEAD)?;
        let length = u32::from_le_bytes(head[32..].try_into().expect("four bytes"));
        let offset = u32::try_from(at).expect("a segment is shorter");
        at += ENTRY_HEAD + length as usize;
        Some((head[..32].try_into().expect("a key"), offset, length))
    })
}

#[cfg(test)]
mod tests;
