//! A history on disk, in an LSM tree.
//!
//! Entries lie in *parts*, trees of their own that follow one another in height: what is older
//! than anybody wants goes with the oldest part, at no cost. A key is looked for in one part after
//! the other, from the height that is asked for.
//!
//! Changes are in memory until the state is about to be durable, and go to the tree in one batch.

use super::{
    Before, HistoryConfig, INDEX, IndexBounds, IndexScan, Kept, Pending, StateHistory,
    entries_after, index_bounds, show_merged,
};
use crate::{Owner, Room, StorageError};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use parking_lot::RwLock;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::Height;
use quorate_types::service::{Index, IndexEntries, KeyRange, ScanOrder, StateError, Visitor};
use std::collections::{BTreeMap, VecDeque};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
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
const FORMAT: u32 = 2;

/// Parts into which what may be kept is divided: so much too little may be kept for a moment.
const PARTS: u64 = 8;

/// Bytes that an entry takes beside its key and value, once it lies among others.
const ENTRY_BYTES: u64 = 16;

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
    /// `None` once it is closed, or has failed.
    inner: RwLock<Option<Inner>>,
}

struct Inner {
    database: Database,
    about: Keyspace,
    parts: VecDeque<Part>,
    /// Newest height that is recorded, durably or not.
    newest: Height,
    pending: Pending,
}

/// Entries of the heights after one, up to that with which the next part begins.
struct Part {
    after: Height,
    entries: Keyspace,
    /// Bytes of its entries, as far as this process knows: what was on disk, and what it wrote.
    bytes: u64,
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
        let opened = catch_unwind(|| Inner::open(folder, &owner));
        let failed = |reason: String| {
            let place = folder.display().to_string();
            StorageError::io("open", place, &io::Error::other(reason))
        };
        let inner = opened.map_err(|_| failed("it is damaged".to_owned()))?;
        let inner = inner.map_err(|error| failed(error.to_string()))?;
        let folder = folder.to_owned();
        Ok(Self { config, folder, room, inner: RwLock::new(Some(inner)) })
    }

    /// Disk that it takes, its journal included; 0 once it has ended.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let inner = self.inner.read();
        inner.as_ref().map_or(0, |inner| inner.database.disk_space().unwrap_or_default())
    }

    /// Changes it, unless it has ended; one that fails ends.
    fn change(&self, change: impl FnOnce(&mut Inner) -> fjall::Result<()>) {
        let mut place = self.inner.write();
        let Some(inner) = place.as_mut() else { return };
        if let Err(error) = change(inner) {
            tracing::error!(%error, "the history of the state ends here, until the next start");
            dispose(place.take());
        }
    }

    /// Ends for want of room. What is bounded may be missed, and makes some.
    fn give_way(&self) {
        tracing::warn!(
            "the disk is nearly full: the history of the state ends here, and begins anew at the next \
             start"
        );
        let inner = self.inner.write().take();
        let folder = self.config.bytes_max.map(|_| self.folder.clone());
        thread::spawn(move || {
            drop(inner);
            if let Some(Err(error)) = folder.map(fs::remove_dir_all) {
                tracing::warn!(%error, "the history of the state stays where it is");
            }
        });
    }
}

/// Drops what may take a while on a thread of its own.
fn dispose(what: impl Send + 'static) {
    thread::spawn(move || drop(what));
}

impl Inner {
    fn open(folder: &Path, owner: &str) -> fjall::Result<Self> {
        let database = Database::builder(folder)
            .cache_size(CACHE_BYTES)
            .max_cached_files(Some(FILES_MAX))
            .max_journaling_size(JOURNAL_BYTES)
            .worker_threads(1)
            .open()?;
        let about = database.keyspace(ABOUT, options)?;
        let mut inner = Self {
            parts: VecDeque::new(),
            newest: Height(0),
            pending: Pending::default(),
            database,
            about,
        };
        let is_owned = inner.about.get(OWNER)?.is_some_and(|found| *found == *owner.as_bytes());
        let newest = inner.about.get(NEWEST)?.filter(|_| is_owned);
        let newest = newest.and_then(|bytes| bytes[..].try_into().ok());
        inner.newest = Height(newest.map_or(0, u64::from_be_bytes));
        for name in inner.database.list_keyspace_names() {
            let Ok(after) = name.parse() else { continue };
            let entries = inner.database.keyspace(&name, options)?;
            let bytes = entries.disk_space();
            inner.parts.push_back(Part { after: Height(after), bytes, entries });
        }
        inner.parts.make_contiguous().sort_by_key(|part| part.after);
        if newest.is_none() && !mutants::active(Mutant::HistoryRemains) {
            inner.forget()?;
        }
        inner.about.insert(OWNER, owner)?;
        Ok(inner)
    }

    /// Lets go of all that is kept. ★ First of the word for how far it goes: what a crash leaves of
    /// it is of no height.
    fn forget(&mut self) -> fjall::Result<()> {
        self.about.remove(NEWEST)?;
        self.database.persist(PersistMode::SyncData)?;
        self.pending = Pending::default();
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

    /// Goes on from a height whose state is there, or begins with it.
    fn begin(&mut self, height: Height) -> fjall::Result<()> {
        let is_whole = self.newest >= height || mutants::active(Mutant::HistoryGap);
        if self.oldest().is_some_and(|oldest| oldest <= height) && is_whole {
            return Ok(());
        }
        self.forget()?;
        self.newest = height;
        self.begin_part()?;
        self.write()
    }

    fn begin_part(&mut self) -> fjall::Result<()> {
        let after = self.newest;
        let entries = self.database.keyspace(&after.0.to_string(), options)?;
        self.parts.push_back(Part { after, entries, bytes: 0 });
        Ok(())
    }

    /// Writes what is pending, durably. ★ With it, in one batch, the word for how far it goes: a
    /// height that is taken for known comes no more.
    fn write(&mut self) -> fjall::Result<()> {
        let apart = if mutants::active(Mutant::IndexApart) {
            self.pending.0.split_off(&INDEX[..])
        } else {
            BTreeMap::new()
        };
        let part = self.parts.back_mut().expect("one is begun with");
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for (key, value) in &self.pending.0 {
            let value = encode(value.as_deref());
            part.bytes += ENTRY_BYTES + (key.len() + value.len()) as u64;
            batch.insert(&part.entries, &key[..], value);
        }
        batch.insert(&self.about, NEWEST, self.newest.0.to_be_bytes());
        batch.commit()?;
        self.pending = Pending(apart);
        Ok(())
    }

    /// Begins a part where the last has its share of what is kept, and gives up the oldest ones
    /// that are not wanted any more.
    fn prune(&mut self, config: &HistoryConfig) -> fjall::Result<()> {
        let last = self.parts.back().expect("one is begun with");
        let heights = self.newest.0 - last.after.0;
        let share = |most: u64| most.div_ceil(PARTS);
        let is_long = config.heights_max.is_some_and(|most| heights >= share(most));
        let is_large = config.bytes_max.is_some_and(|most| last.bytes >= share(most));
        if heights > 0 && (is_long || is_large) {
            self.begin_part()?;
        }
        while let Some(next) = self.parts.get(1) {
            let kept_without = self.newest.0 - next.after.0;
            let bytes: u64 = self.parts.iter().map(|part| part.bytes).sum();
            let is_too_old = config.heights_max.is_some_and(|most| kept_without >= most);
            let is_too_much = config.bytes_max.is_some_and(|most| bytes > most);
            if kept_without < HistoryConfig::HEIGHTS_MIN || !(is_too_old || is_too_much) {
                break;
            }
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
        Ok(self.pending.before_change(key, height))
    }
}

impl StateHistory for DiskHistory {
    fn oldest(&self) -> Option<Height> {
        self.inner.read().as_ref().and_then(Inner::oldest)
    }

    fn begin(&self, height: Height) {
        self.change(|inner| inner.begin(height));
    }

    fn record(&self, height: Height, before: Before, index: IndexEntries) {
        let mut inner = self.inner.write();
        let Some(inner) = inner.as_mut().filter(|inner| height > inner.newest) else { return };
        inner.newest = height;
        inner.pending.add(height, before, index);
    }

    fn make_durable(&self) {
        if self.room.is_low() && self.inner.read().is_some() {
            self.give_way();
        }
        self.change(|inner| inner.write().and_then(|()| inner.prune(&self.config)));
    }

    fn before_change(&self, key: &[u8], height: Height) -> Result<Option<Kept>, StateError> {
        let inner = self.inner.read();
        inner
            .as_ref()
            .ok_or_else(ended)?
            .before_change(key, height)
            .map_err(|error| unreadable(&error))
    }

    fn close(&self) {
        *self.inner.write() = None;
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
        let inner = self.inner.read();
        let inner = inner.as_ref().ok_or_else(ended)?;
        let parts = inner.parts.iter().map(|part| part.indexed(&bounds, order));
        let pending = inner.pending.indexed(&bounds, order);
        show_merged(parts.chain([pending]).collect(), order, visit)
    }
}

impl Part {
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

/// A value as an entry has it: 1 and the value, or 0.
fn encode(value: Option<&[u8]>) -> Vec<u8> {
    let mut entry = vec![u8::from(value.is_some())];
    entry.extend_from_slice(value.unwrap_or_default());
    entry
}

fn decode(entry: &[u8]) -> Kept {
    entry.split_first().and_then(|(is_some, value)| (*is_some == 1).then(|| value.to_vec()))
}
