//! A store on disk: one redb table.

mod pages;

use super::backend::RoomyFile;
use super::overlay::{Layers, Overlay};
use super::{
    Changes, Checkpoint, Entries, Store, Transaction, View, Visit, owned, part, scan_changed,
};
use crate::error::STATE_REFUSED;
use crate::owner::OwnerRecord;
use crate::{Owner, Room, StorageError};
use pages::{Table, failed, get, guarded, scan};
use quorate_types::service::{KeyRange, State, StateError, Visitor};
use redb::{
    Database, DatabaseError, Durability, ReadableDatabase, StorageBackend, TableDefinition,
    TableError, WriteTransaction,
};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread;

const TABLE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("state");

/// The owner's record, in a table of its own: what replaces the state leaves it.
const OWNER: TableDefinition<'static, (), &[u8]> = TableDefinition::new("owner");

/// Format of the file, written with the owner. The first had neither.
const FORMAT: u32 = 3;

/// A store in one file, locked against other processes.
///
/// A transaction gathers its changes in memory, in key order. Commits that need not be durable stay
/// there too, in an `Overlay`, which a checkpoint writes in one transaction of redb, on a thread
/// of its own: what was written many times in between is written once.
#[derive(Debug)]
pub struct DiskStore {
    /// Present until it is dropped.
    database: Option<Arc<Database>>,
    overlay: Overlay,
    /// Checkpoint that may be on its way.
    writing: Option<Checkpoint>,
    /// The disk's part, once it was asked for since the last checkpoint ended.
    on_disk: OnceLock<Arc<Table>>,
}

impl DiskStore {
    /// Most bytes of pages that are kept in memory unless told otherwise.
    pub const CACHE_BYTES: u64 = 128 * 1024 * 1024;

    /// Opens the store in the file `path`, or makes one. One that an earlier version made does not
    /// say whose it is, and becomes `owner`'s.
    ///
    /// # Errors
    /// [`StorageError::InUse`] when another process holds it; [`StorageError::Foreign`] when it is
    /// not `owner`'s; [`StorageError::Io`] when it cannot be opened.
    pub fn open(path: &Path, owner: &Owner) -> Result<Self, StorageError> {
        Self::open_within(path, owner, Room::unwatched(), Self::CACHE_BYTES)
    }

    /// As [`DiskStore::open`]; what is written later waits for `room`, and pages of the file that
    /// were read or written take `cache_bytes` of memory at most.
    ///
    /// # Errors
    /// As [`DiskStore::open`].
    pub fn open_within(
        path: &Path,
        owner: &Owner,
        room: Room,
        cache_bytes: u64,
    ) -> Result<Self, StorageError> {
        let shown = path.display().to_string();
        Self::open_file(&shown, || RoomyFile::open(path, room), owner, cache_bytes)
    }

    fn open_file<B: StorageBackend>(
        shown: &str,
        file: impl FnOnce() -> Result<B, DatabaseError>,
        owner: &Owner,
        cache_bytes: u64,
    ) -> Result<Self, StorageError> {
        let cache_bytes = usize::try_from(cache_bytes).unwrap_or(usize::MAX);
        let opened = guarded(|| {
            Ok(Database::builder().set_cache_size(cache_bytes).create_with_backend(file()?)?)
        });
        let database = opened.map_err(|error| match error {
            redb::Error::DatabaseAlreadyOpen => StorageError::InUse { directory: shown.to_owned() },
            redb::Error::Corrupted(_) => failed(error).into(),
            redb::Error::Io(error) => StorageError::io("open", shown.to_owned(), &error),
            error => {
                let (file, reason) = (shown.to_owned(), error.to_string());
                StorageError::Io { action: "open", file, reason }
            }
        })?;
        let database = Some(Arc::new(database));
        let (overlay, on_disk) = (Overlay::default(), OnceLock::new());
        let store = Self { database, overlay, writing: None, on_disk };
        match store.owner()? {
            Some(record) => {
                let (found, _) = OwnerRecord::split(&record)
                    .ok_or(StorageError::StateDamaged { entry: "owner" })?;
                found.check(shown, FORMAT, owner)?;
            }
            None => store.make_tables(owner)?,
        }
        Ok(store)
    }

    fn database(&self) -> &Arc<Database> {
        self.database.as_ref().expect("present until the end")
    }

    fn owner(&self) -> Result<Option<Vec<u8>>, StateError> {
        let read = guarded(|| match self.database().begin_read()?.open_table(OWNER) {
            Ok(table) => Ok(table.get(())?.map(|record| record.value().to_vec())),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(error.into()),
        });
        read.map_err(failed)
    }

    /// Makes the tables, and says whose they are.
    fn make_tables(&self, owner: &Owner) -> Result<(), StateError> {
        let made = guarded(|| {
            let mut transaction = self.database().begin_write()?;
            transaction.set_quick_repair(true);
            transaction.open_table(TABLE)?;
            transaction.open_table(OWNER)?.insert((), &owner.record(FORMAT)[..])?;
            Ok(transaction.commit()?)
        });
        made.map_err(failed)
    }

    fn on_disk(&self) -> Result<&Arc<Table>, StateError> {
        if let Some(table) = self.on_disk.get() {
            return Ok(table);
        }
        let table = guarded(|| Ok(self.database().begin_read()?.open_table(TABLE)?));
        let table = Arc::new(table.map_err(failed)?);
        Ok(self.on_disk.get_or_init(|| table))
    }

    /// Takes what is committed for the next checkpoint.
    fn begin_writing(&mut self) -> Result<(Checkpoint, Arc<Changes>), StateError> {
        self.settle()?;
        // Whoever reads keeps the pages that the checkpoint replaces.
        self.on_disk.take();
        let checkpoint = Checkpoint::default();
        self.writing = Some(checkpoint.clone());
        Ok((checkpoint, self.overlay.begin_writing()))
    }

    /// Makes durable what is committed, on this thread.
    fn write_now(&mut self) -> Result<(), StateError> {
        let (checkpoint, changes) = self.begin_writing()?;
        checkpoint.end(write(self.database(), &changes));
        self.settle()
    }

    /// Waits for the checkpoint that is on its way, if there is one.
    fn settle(&mut self) -> Result<(), StateError> {
        if let Some(checkpoint) = &self.writing {
            checkpoint.wait()?;
            self.overlay.written();
            self.on_disk.take();
            self.writing = None;
        }
        Ok(())
    }

    /// Lets go of what has come to the disk meanwhile.
    fn look_at_checkpoint(&mut self) -> Result<(), StateError> {
        match self.writing.as_ref().and_then(Checkpoint::outcome) {
            Some(_) => self.settle(),
            None => Ok(()),
        }
    }
}

/// Writes changes durably, all of them or none (★).
fn write(database: &Database, changes: &Changes) -> Result<(), StateError> {
    if changes.is_empty() {
        return Ok(());
    }
    let written = guarded(|| {
        let mut transaction = database.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        // Without it, opening after a crash would walk the whole file.
        transaction.set_quick_repair(true);
        let mut table = transaction.open_table(TABLE)?;
        for (key, value) in changes {
            match value {
                Some(value) => drop(table.insert(&key[..], &value[..])?),
                None => drop(table.remove(&key[..])?),
            }
        }
        drop(table);
        Ok(transaction.commit()?)
    });
    written.map_err(failed)
}

impl Drop for DiskStore {
    /// Closing writes, and may come upon damage: whoever opens the file next is told.
    fn drop(&mut self) {
        // Whoever wanted to know how it ended has asked.
        let _ = self.settle();
        let (on_disk, database) = (self.on_disk.take(), self.database.take());
        let _ = guarded(|| {
            drop((on_disk, database));
            Ok(())
        });
    }
}

impl Store for DiskStore {
    fn begin(&mut self) -> Result<Box<dyn Transaction + '_>, StateError> {
        self.look_at_checkpoint()?;
        Ok(Box::new(DiskTransaction { store: self, changes: Changes::new() }))
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        match self.overlay.get(key) {
            Some(value) => Ok(owned(value)),
            None => get(self.on_disk()?, key),
        }
    }

    fn scan(&self, keys: KeyRange<'_>, visit: &mut Visitor<'_>) -> Result<(), StateError> {
        let on_disk = self.on_disk()?;
        self.overlay.scan(keys, &mut |visit| scan(on_disk, keys, visit), visit)
    }

    fn view(&mut self) -> Result<Box<dyn View>, StateError> {
        self.look_at_checkpoint()?;
        // What comes to the disk in between is seen twice, and not missed.
        let layers = self.overlay.layers();
        Ok(Box::new(DiskView { layers, on_disk: Arc::clone(self.on_disk()?) }))
    }

    fn checkpoint(&mut self) -> Result<Checkpoint, StateError> {
        let (checkpoint, changes) = self.begin_writing()?;
        let (database, ended) = (Arc::clone(self.database()), checkpoint.clone());
        let spawned = thread::Builder::new().name("checkpoint".to_owned()).spawn(move || {
            let outcome = write(&database, &changes);
            // Whoever is told may close the store.
            drop((database, changes));
            ended.end(outcome);
        });
        if let Err(error) = spawned {
            checkpoint.end(Err(StateError(format!("{STATE_REFUSED}: no thread: {error}"))));
        }
        Ok(checkpoint)
    }

    fn pending_bytes(&self) -> u64 {
        self.overlay.bytes()
    }

    fn replace(&mut self, entries: &mut Entries<'_>) -> Result<(), StorageError> {
        self.settle()?;
        let begun = guarded(|| {
            let mut transaction = self.database().begin_write()?;
            transaction.set_durability(Durability::Immediate)?;
            transaction.set_quick_repair(true);
            transaction.delete_table(TABLE)?;
            Ok(transaction)
        });
        let transaction = begun.map_err(failed)?;
        let filled = fill(&transaction, entries);
        let ended = guarded(|| match filled {
            Ok(()) => Ok(transaction.commit()?),
            Err(_) => Ok(transaction.abort()?),
        });
        filled.and(ended.map_err(|error| failed(error).into()))?;
        self.overlay = Overlay::default();
        self.on_disk.take();
        Ok(())
    }
}

fn fill(transaction: &WriteTransaction, mut entries: &mut Entries<'_>) -> Result<(), StorageError> {
    let mut table = guarded(|| Ok(transaction.open_table(TABLE)?)).map_err(failed)?;
    let filled = Iterator::try_for_each(&mut entries, |entry| {
        let (key, value) = entry?;
        let put = guarded(|| table.insert(&key[..], &value[..]).map(drop).map_err(Into::into));
        Ok(put.map_err(failed)?)
    });
    let closed = guarded(|| {
        drop(table);
        Ok(())
    });
    filled.and(closed.map_err(|error| failed(error).into()))
}

/// What was in memory at a moment, over what was on disk.
struct DiskView {
    layers: Layers,
    on_disk: Arc<Table>,
}

impl View for DiskView {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        match self.layers.get(key) {
            Some(value) => Ok(owned(value)),
            None => get(&self.on_disk, key),
        }
    }

    fn range(&self, keys: KeyRange<'_>, visit: &mut Visitor<'_>) -> Result<(), StateError> {
        self.layers.scan(keys, &mut |visit| scan(&self.on_disk, keys, visit), visit)
    }

    fn scan(&self, visit: &mut Visit<'_>) -> Result<(), StorageError> {
        let mut outcome = Ok(());
        self.range(KeyRange::ALL, &mut |key, value| {
            outcome = visit(key, value);
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        outcome
    }
}

struct DiskTransaction<'a> {
    store: &'a mut DiskStore,
    changes: Changes,
}

impl State for DiskTransaction<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        match self.changes.get(key) {
            Some(value) => Ok(owned(value)),
            None => self.store.get(key),
        }
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StateError> {
        self.changes.insert(key.into(), Some(value.into()));
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StateError> {
        self.changes.insert(key.into(), None);
        Ok(())
    }

    fn scan(&self, keys: KeyRange<'_>, visit: &mut Visitor<'_>) -> Result<(), StateError> {
        let committed = |visit: &mut Visitor<'_>| self.store.scan(keys, visit);
        scan_changed(part(&self.changes, keys), committed, visit)
    }
}

impl Transaction for DiskTransaction<'_> {
    fn commit(self: Box<Self>, durable: bool) -> Result<(), StateError> {
        let Self { store, changes } = *self;
        store.overlay.commit(changes);
        if durable { store.write_now() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
