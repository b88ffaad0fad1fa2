//! A history on disk, in an LSM tree.
//!
//! Entries lie in *parts*, trees of their own that follow one another in height: what is older
//! than anybody wants goes with the oldest part, at no cost. A key is looked for in one part after
//! the other, from the height that is asked for.
//!
//! Changes are in memory until the state is about to be durable, and go to the tree in one batch,
//! on the thread that writes the state's checkpoint. Two locks keep the others apart: what was
//! recorded has one of its own, which nobody but who begins anew holds while he reads or writes
//! the disk, so that execution waits for neither.

use super::{Before, HistoryConfig, IndexScan, Kept, Pending, Recorded, StateHistory, show_merged};
use crate::{Owner, Room, StorageError};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use parking_lot::{Mutex, RwLock};
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::Height;
use quorate_types::service::{Index, IndexEntries, KeyRange, ScanOrder, StateError, Visitor};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io, thread};

/// Bytes of recently read blocks in memory.
const CACHE_BYTES: u64 = 8 << 20;

/// Bytes of a tree's newest entries in memory, before they are written in order.
const MEMTABLE_BYTES: u64 = 8 << 20;

/// Bytes of the tree's journal.
const JOURNAL_BYTES: u64 = 64 << 20;

/// Files that are kept open.
const FILES_MAX: usize = 64;

/// Version of what is kept: another is begun anew, and so is one of other keys of the state.
const FORMAT: u32 = 3;

/// Parts into which what may be kept is divided: so much too little may be kept for a moment.
const PARTS: u64 = 8;

/// Bytes that an entry takes beside its key and value, once it lies among others.
const ENTRY_BYTES: u64 = 16;

/// Keys without a value that the last part is known to have, some 100 bytes of memory each.
const MARKS_MAX: usize = 1 << 16;

/// Name of the tree that says what the others are.
const ABOUT: &str = "about";

/// Keys in it: whose history it is, and the newest height.
const OWNER: &str = "owner";
const NEWEST: &str = "newest";

/// A history in a folder, of one executor at a time.
pub struct DiskHistory {
    config: HistoryConfig,
    folder: PathBuf,
    room: Room,
    /// Held by whoever begins, writes or ends it.
    writing: Mutex<()>,
    /// Files that are open; `None` once it is closed, or has failed.
    disk: RwLock<Option<OnDisk>>,
    /// `None` as soon as it is closed, or has failed. Whoever has the disk may ask for this; not
    /// the other way round.
    recorded: RwLock<Option<Recording>>,
}

/// What is known without looking at the disk.
#[derive(Debug, Default)]
struct Recording {
    /// Height after which changes are known; `None` before any is begun with.
    oldest: Option<Height>,
    /// Newest height that is recorded, durably or not.
    newest: Height,
    pending: Pending,
}

struct OnDisk {
    database: Database,
    about: Keyspace,
    parts: VecDeque<Part>,
    /// Keys of the index that this process wrote to the last part without a value, some of them.
    marks: Mutex<BTreeSet<Vec<u8>>>,
}

/// Entries of the heights after one, up to that with which the next part begins.
struct Part {
    after: Height,
    entries: Keyspace,
    /// Bytes of its entries, as far as this process knows: what was on disk, and what it wrote.
    bytes: AtomicU64,
}

impl std::fmt::Debug for DiskHistory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DiskHistory(from {:?})", self.oldest())
    }
}

impl DiskHistory {
    /// Opens or begins the history in a folder. One of somebody else is begun anew; one that cannot
    /// be read is left as it is.
    ///
    /// # Errors
    /// When the folder cannot be read or written.
    pub fn open(
        folder: &Path,
        owner: &Owner,
        config: HistoryConfig,
        room: Room,
    ) -> Result<Self, StorageError> {
        let owner = format!("{FORMAT} {}", owner.network);
        // The library asserts of some files that they are whole.
        let opened = catch_unwind(|| OnDisk::open(folder, &owner));
        let failed = |reason: String| {
            let place = folder.display().to_string();
            StorageError::io("open", place, &io::Error::other(reason))
        };
        let opened = opened.map_err(|_| failed("it is damaged".to_owned()))?;
        let (disk, recorded) = opened.map_err(|error| failed(error.to_string()))?;
        Ok(Self {
            config,
            folder: folder.to_owned(),
            room,
            writing: Mutex::new(()),
            disk: RwLock::new(Some(disk)),
            recorded: RwLock::new(Some(recorded)),
        })
    }

    /// Disk that it takes, its journal included; 0 once it has ended.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let disk = self.disk.read();
        disk.as_ref().map_or(0, |disk| disk.database.disk_space().unwrap_or_default())
    }

    /// Bytes of the entries in the newest part.
    #[cfg(test)]
    pub(super) fn newest_part_bytes(&self) -> u64 {
        let disk = self.disk.read();
        disk.as_ref().and_then(|disk| disk.parts.back()).map_or(0, Part::bytes)
    }

    /// Begins with a height, unless what is known goes up to it.
    fn begin_on_disk(&self, height: Height) -> fjall::Result<()> {
        let (mut disk, mut recorded) = (self.disk.write(), self.recorded.write());
        let (Some(disk), Some(recorded)) = (disk.as_mut(), recorded.as_mut()) else {
            return Ok(());
        };
        let is_whole = recorded.newest >= height || mutants::active(Mutant::HistoryGap);
        if recorded.oldest.is_some_and(|oldest| oldest <= height) && is_whole {
            return Ok(());
        }
        *recorded = Recording::default();
        disk.forget()?;
        disk.begin_part(height)?;
        disk.write(&Pending::default(), height)?;
        *recorded = Recording { oldest: disk.oldest(), newest: height, ..Recording::default() };
        Ok(())
    }

    /// Writes what is pending, and gives up what is not wanted any more. Reading goes on meanwhile
    /// but for the latter, and recording in any case.
    fn write(&self) -> fjall::Result<()> {
        let taken = |recorded: &mut Recording| (recorded.pending.begin_writing(), recorded.newest);
        let Some((pending, newest)) = self.recorded.write().as_mut().map(taken) else {
            return Ok(());
        };
        let is_too_much = {
            let disk = self.disk.read();
            let Some(disk) = disk.as_ref() else { return Ok(()) };
            disk.write(&pending, newest)?;
            disk.is_full(newest, &self.config) || disk.has_too_much(newest, &self.config)
        };
        if let Some(recorded) = self.recorded.write().as_mut() {
            recorded.pending.heights.drain(..pending.heights.len());
        }
        if is_too_much { self.prune(newest) } else { Ok(()) }
    }

    fn prune(&self, newest: Height) -> fjall::Result<()> {
        let mut disk = self.disk.write();
        let Some(disk) = disk.as_mut() else { return Ok(()) };
        let pruned = disk.prune(newest, &self.config);
        // Before anybody reads again, however it ended.
        if let Some(recorded) = self.recorded.write().as_mut() {
            recorded.oldest = disk.oldest();
        }
        pruned
    }

    /// What waits, for a reader who looks at the disk after it: what is written meanwhile is found
    /// there, and not missed.
    fn pending(&self) -> Result<Pending, StateError> {
        Ok(self.recorded.read().as_ref().ok_or_else(ended)?.pending.clone())
    }

    /// A history that fails ends.
    fn end_if_failed(&self, outcome: fjall::Result<()>) {
        if let Err(error) = outcome {
            tracing::error!(%error, "the history of the state ends here, until the next start");
            dispose(self.end());
        }
    }

    /// Ends it: nothing is known from then on.
    fn end(&self) -> Option<OnDisk> {
        let mut disk = self.disk.write();
        *self.recorded.write() = None;
        disk.take()
    }

    /// Ends for want of room. What is bounded may be missed, and makes some.
    fn give_way(&self) {
        tracing::warn!(
            "the disk is nearly full: the history of the state ends here, and begins anew at the next \
             start"
        );
        let disk = self.end();
        let folder = self.config.bytes_max.map(|_| self.folder.clone());
        in_background(move || {
            drop(disk);
            if let Some(Err(error)) = folder.map(fs::remove_dir_all) {
                tracing::warn!(%error, "the history of the state stays where it is");
            }
        });
    }
}

/// Drops what may take a while on a thread of its own.
fn dispose(what: impl Send + 'static) {
    in_background(move || drop(what));
}

/// Does what may take a while on a thread of its own. Where there is none it is not done, and what
/// it was to be done with is dropped here.
fn in_background(work: impl FnOnce() + Send + 'static) {
    if let Err(error) = thread::Builder::new().name("archive".to_owned()).spawn(work) {
        tracing::warn!(%error, "no thread to tidy up the history of the state");
    }
}

impl OnDisk {
    fn open(folder: &Path, owner: &str) -> fjall::Result<(Self, Recording)> {
        let database = Database::builder(folder)
            .cache_size(CACHE_BYTES)
            .max_cached_files(Some(FILES_MAX))
            .max_journaling_size(JOURNAL_BYTES)
            .worker_threads(1)
            .open()?;
        let about = database.keyspace(ABOUT, options)?;
        let is_owned = about.get(OWNER)?.is_some_and(|found| *found == *owner.as_bytes());
        let newest = about.get(NEWEST)?.filter(|_| is_owned);
        let newest = newest.and_then(|bytes| bytes[..].try_into().ok());
        let mut disk = Self { parts: VecDeque::new(), marks: Mutex::default(), database, about };
        for name in disk.database.list_keyspace_names() {
            let Ok(after) = name.parse() else { continue };
            let entries = disk.database.keyspace(&name, options)?;
            let bytes = entries.disk_space();
            disk.parts.push_back(Part { after: Height(after), entries, bytes: bytes.into() });
        }
        disk.parts.make_contiguous().sort_by_key(|part| part.after);
        if newest.is_none() && !mutants::active(Mutant::HistoryRemains) {
            disk.forget()?;
        }
        disk.about.insert(OWNER, owner)?;
        let newest = Height(newest.map_or(0, u64::from_be_bytes));
        let recorded = Recording { oldest: disk.oldest(), newest, pending: Pending::default() };
        Ok((disk, recorded))
    }

    /// Lets go of all that is kept. ★ First of the word for how far it goes: what a crash leaves of
    /// it is of no height.
    fn forget(&mut self) -> fjall::Result<()> {
        self.about.remove(NEWEST)?;
        self.database.persist(PersistMode::SyncData)?;
        while let Some(part) = self.parts.pop_front() {
            self.delete(part)?;
        }
        Ok(())
    }

    /// Deletes a part; its files go on a thread of their own, for there may be many.
    fn delete(&self, part: Part) -> fjall::Result<()> {
        self.database.delete_keyspace(part.entries.clone())?;
        dispose(part);
        Ok(())
    }

    fn oldest(&self) -> Option<Height> {
        self.parts.front().map(|part| part.after)
    }

    fn begin_part(&mut self, after: Height) -> fjall::Result<()> {
        let entries = self.database.keyspace(&after.0.to_string(), options)?;
        self.parts.push_back(Part { after, entries, bytes: AtomicU64::new(0) });
        self.marks.lock().clear();
        Ok(())
    }

    /// Writes heights, durably. ★ With them, in one batch, the word for how far it goes: a height
    /// that is taken for known comes no more.
    fn write(&self, pending: &Pending, newest: Height) -> fjall::Result<()> {
        let part = self.parts.back().expect("one is begun with");
        let index = index_of(pending).into_iter().filter(|(key, value)| self.lacks(key, value));
        let index = index.map(|(key, value)| (index_key(key), encode(Some(value))));
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        let mut bytes = 0;
        for (key, value) in pending.heights.iter().flat_map(before_of).chain(index) {
            bytes += ENTRY_BYTES + (key.len() + value.len()) as u64;
            batch.insert(&part.entries, key, value);
        }
        batch.insert(&self.about, NEWEST, newest.0.to_be_bytes());
        batch.commit()?;
        part.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Returns `true` if an entry of the index has to be written. One without a value says all by
    /// being there, and many heights put the same: no key has a value at one height and none at
    /// another.
    fn lacks(&self, key: &[u8], value: &[u8]) -> bool {
        if !value.is_empty() {
            return true;
        }
        let mut marks = self.marks.lock();
        if marks.len() >= MARKS_MAX {
            marks.clear();
        }
        !marks.contains(key) && marks.insert(key.to_vec())
    }

    /// The last part has its share of what is kept.
    fn is_full(&self, newest: Height, config: &HistoryConfig) -> bool {
        let last = self.parts.back().expect("one is begun with");
        let heights = newest.0 - last.after.0;
        let share = |most: u64| most.div_ceil(PARTS);
        let is_long = config.heights_max.is_some_and(|most| heights >= share(most));
        let is_large = config.bytes_max.is_some_and(|most| last.bytes() >= share(most));
        heights > 0 && (is_long || is_large)
    }

    /// The oldest part is not wanted any more.
    fn has_too_much(&self, newest: Height, config: &HistoryConfig) -> bool {
        let Some(next) = self.parts.get(1) else { return false };
        let kept_without = newest.0 - next.after.0;
        let bytes: u64 = self.parts.iter().map(Part::bytes).sum();
        let is_too_old = config.heights_max.is_some_and(|most| kept_without >= most);
        let is_too_much = config.bytes_max.is_some_and(|most| bytes > most);
        kept_without >= HistoryConfig::HEIGHTS_MIN && (is_too_old || is_too_much)
    }

    /// Begins a part where the last is full, and gives up the oldest ones that are not wanted any
    /// more.
    fn prune(&mut self, newest: Height, config: &HistoryConfig) -> fjall::Result<()> {
        if self.is_full(newest, config) {
            self.begin_part(newest)?;
        }
        while self.has_too_much(newest, config) {
            let oldest = self.parts.pop_front().expect("two or more");
            self.delete(oldest)?;
        }
        Ok(())
    }

    /// What a key was before its first change after `height`.
    fn before_change(&self, key: &[u8], height: Height) -> fjall::Result<Option<Kept>> {
        let (from, to) = entries_after(key, height);
        let ends_before = |next: Option<&Part>| next.is_some_and(|next| next.after <= height);
        for (index, part) in self.parts.iter().enumerate() {
            if ends_before(self.parts.get(index + 1)) {
                continue;
            }
            if let Some(entry) = part.entries.range(&from[..]..=&to[..]).next() {
                return Ok(Some(decode(&entry.value()?)));
            }
        }
        Ok(None)
    }
}

/// Entries of what keys were before a height.
fn before_of(recorded: &Arc<Recorded>) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    let entry = |(key, value): (&Vec<u8>, &Kept)| {
        (entry_key(key, recorded.height), encode(value.as_deref()))
    };
    recorded.before.iter().map(entry)
}

/// Entries of the index that heights added, each key's newest: a tree takes a key once in a batch.
fn index_of(pending: &Pending) -> BTreeMap<&[u8], &[u8]> {
    if mutants::active(Mutant::IndexApart) {
        return BTreeMap::new();
    }
    let entries = pending.heights.iter().flat_map(|recorded| &recorded.index);
    entries.map(|(key, value)| (&key[..], &value[..])).collect()
}

impl StateHistory for DiskHistory {
    fn oldest(&self) -> Option<Height> {
        self.recorded.read().as_ref()?.oldest
    }

    fn begin(&self, height: Height) {
        let _one_at_a_time = self.writing.lock();
        self.end_if_failed(self.begin_on_disk(height));
    }

    fn record(&self, height: Height, before: Before, index: IndexEntries) {
        let mut recorded = self.recorded.write();
        let next = recorded.as_mut().filter(|recorded| height > recorded.newest);
        if let Some(recorded) = next {
            recorded.newest = height;
            recorded.pending.add(Recorded { height, before, index });
        }
    }

    fn pending_bytes(&self) -> u64 {
        self.recorded.read().as_ref().map_or(0, |recorded| recorded.pending.bytes)
    }

    fn make_durable(&self) {
        let _one_at_a_time = self.writing.lock();
        if self.room.is_low() && self.disk.read().is_some() {
            self.give_way();
        }
        // The library asserts of its locks that nobody panicked with them.
        let written = catch_unwind(AssertUnwindSafe(|| self.write()));
        self.end_if_failed(written.unwrap_or(Err(fjall::Error::Poisoned)));
    }

    fn before_change(&self, key: &[u8], height: Height) -> Result<Option<Kept>, StateError> {
        let pending = self.pending()?;
        let disk = self.disk.read();
        let disk = disk.as_ref().ok_or_else(ended)?;
        let found = disk.before_change(key, height).map_err(|error| unreadable(&error))?;
        Ok(found.or_else(|| pending.before_change(key, height)))
    }

    fn close(&self) {
        let _one_at_a_time = self.writing.lock();
        drop(self.end());
    }
}

impl Index for DiskHistory {
    fn known_after(&self) -> Option<Height> {
        self.oldest()
    }

    fn scan_index(
        &self,
        keys: KeyRange<'_>,
        order: ScanOrder,
        visit: &mut Visitor<'_>,
    ) -> Result<(), StateError> {
        let Some(bounds) = index_bounds(keys) else { return Ok(()) };
        let pending = self.pending()?;
        let disk = self.disk.read();
        let disk = disk.as_ref().ok_or_else(ended)?;
        let parts = disk.parts.iter().map(|part| part.indexed(&bounds, order));
        show_merged(parts.chain(pending.indexed(keys, order)).collect(), order, visit)
    }
}

impl Part {
    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Entries of the index with keys between these, in an order.
    fn indexed(&self, (from, to): &IndexBounds, order: ScanOrder) -> IndexScan<'static> {
        let entries = self.entries.range(&from[..]..&to[..]);
        let entry = |entry: fjall::Guard| {
            let (key, value) = entry.into_inner().map_err(|error| unreadable(&error))?;
            Ok((key[INDEX.len()..].to_vec(), decode(&value).unwrap_or_default()))
        };
        match order {
            ScanOrder::Forward => Box::new(entries.map(entry)),
            ScanOrder::Backward => Box::new(entries.rev().map(entry)),
        }
    }
}

fn ended() -> StateError {
    StateError("the history of the state has ended".into())
}

fn unreadable(error: &fjall::Error) -> StateError {
    StateError(error.to_string())
}

fn options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES)
}

/// Beginning of the keys of the index: no key of the state has so many bytes.
const INDEX: [u8; 4] = [0xff; 4];

fn index_key(key: &[u8]) -> Vec<u8> {
    [&INDEX, key].concat()
}

/// First key of a part of the index, and the first beyond it.
type IndexBounds = (Vec<u8>, Vec<u8>);

/// Bounds of these keys of the index; `None` where no key is among them.
fn index_bounds(keys: KeyRange<'_>) -> Option<IndexBounds> {
    keys.bounds()?;
    // No key of a service begins with so many bytes of ones.
    let end = || [&INDEX[..], &[0xff; 64]].concat();
    Some((index_key(keys.from), keys.to.map_or_else(end, index_key)))
}

/// Key of what `key` was before a height: no key's entries lie between those of another.
fn entry_key(key: &[u8], height: Height) -> Vec<u8> {
    let length = key.len() as u64;
    [&length.to_be_bytes()[4..], key, &height.0.to_be_bytes()].concat()
}

/// The first and the last entry that a key may have of changes after `height`.
fn entries_after(key: &[u8], height: Height) -> (Vec<u8>, Vec<u8>) {
    (entry_key(key, height.next()), entry_key(key, Height(u64::MAX)))
}

/// A value as an entry has it: 1 and the value, or 0.
fn encode(value: Option<&[u8]>) -> Vec<u8> {
    let mut entry = vec![u8::from(value.is_some())];
    entry.extend_from_slice(value.unwrap_or_default());
    entry
}

fn decode(entry: &[u8]) -> Kept {
    entry.split_first().and_then(|(is_some, value)| (*is_some == 1).then(|| value.to_vec()))
}
