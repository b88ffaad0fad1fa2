//! A store on disk: one redb table.

use super::{Changes, Entries, Store, Transaction, View, Visit, part, scan_changed};
use crate::owner::OwnerRecord;
use crate::{Owner, StorageError};
use quorate_types::service::{KeyRange, State, StateError, Visitor};
use redb::{
    Database, Durability, ReadOnlyTable, ReadableDatabase, ReadableTable, TableDefinition,
    TableError,
};
use std::path::Path;

const TABLE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("state");

/// The owner's record, in a table of its own: what replaces the state leaves it.
const OWNER: TableDefinition<'static, (), &[u8]> = TableDefinition::new("owner");

/// Format of the file, written with the owner. The first had neither.
const FORMAT: u32 = 2;

/// Pages that redb keeps in memory.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// A store in one file, locked against other processes.
///
/// A transaction gathers its changes in memory, in key order, and writes them at its commit.
/// Commits that need not be durable stay in memory until one that must be; redb reuses no space in
/// between, so a durable one is due every now and then.
#[derive(Debug)]
pub struct DiskStore {
    database: Database,
}

impl DiskStore {
    /// Opens the store in the file `path`, or makes one. One that an earlier version made does not
    /// say whose it is, and becomes `owner`'s.
    ///
    /// # Errors
    /// [`StorageError::InUse`] when another process holds it; [`StorageError::Foreign`] when it is
    /// not `owner`'s; [`StorageError::Io`] when it cannot be opened.
    pub fn open(path: &Path, owner: &Owner) -> Result<Self, StorageError> {
        let shown = path.display().to_string();
        let failed =
            |reason: String| StorageError::Io { action: "open", file: shown.clone(), reason };
        let database =
            Database::builder().set_cache_size(CACHE_BYTES).create(path).map_err(|error| {
                match error {
                    redb::DatabaseError::DatabaseAlreadyOpen => {
                        StorageError::InUse { directory: shown.clone() }
                    }
                    error => failed(error.to_string()),
                }
            })?;
        let store = Self { database };
        match store.owner().map_err(|error| failed(error.0))? {
            Some(record) => {
                let (found, _) = OwnerRecord::split(&record)
                    .ok_or(StorageError::StateDamaged { entry: "owner" })?;
                found.check(&shown, FORMAT, owner)?;
            }
            None => store.make_tables(owner).map_err(|error| failed(error.0))?,
        }
        Ok(store)
    }

    fn owner(&self) -> Result<Option<Vec<u8>>, StateError> {
        match self.database.begin_read().map_err(failed)?.open_table(OWNER) {
            Ok(table) => Ok(table.get(()).map_err(failed)?.map(|record| record.value().to_vec())),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// Makes the tables, and says whose they are.
    fn make_tables(&self, owner: &Owner) -> Result<(), StateError> {
        let mut transaction = self.database.begin_write().map_err(failed)?;
        transaction.set_quick_repair(true);
        transaction.open_table(TABLE).map_err(failed)?;
        let mut table = transaction.open_table(OWNER).map_err(failed)?;
        drop(table.insert((), &owner.record(FORMAT)[..]).map_err(failed)?);
        drop(table);
        transaction.commit().map_err(failed)
    }

    fn reader(&self) -> Result<ReadOnlyTable<&'static [u8], &'static [u8]>, StateError> {
        self.database.begin_read().map_err(failed)?.open_table(TABLE).map_err(failed)
    }

    fn write(&self, changes: Changes, durable: bool) -> Result<(), StateError> {
        let mut transaction = self.database.begin_write().map_err(failed)?;
        let durability = if durable { Durability::Immediate } else { Durability::None };
        transaction.set_durability(durability).map_err(failed)?;
        // Without it, opening after a crash would walk the whole file.
        transaction.set_quick_repair(durable);
        let mut table = transaction.open_table(TABLE).map_err(failed)?;
        for (key, value) in changes {
            match value {
                Some(value) => drop(table.insert(&key[..], &value[..]).map_err(failed)?),
                None => drop(table.remove(&key[..]).map_err(failed)?),
            }
        }
        drop(table);
        transaction.commit().map_err(failed)
    }
}

impl Store for DiskStore {
    fn begin(&mut self) -> Result<Box<dyn Transaction + '_>, StateError> {
        let reader = self.reader()?;
        Ok(Box::new(DiskTransaction { store: self, reader, changes: Changes::new() }))
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        get(&self.reader()?, key)
    }

    fn scan(&self, keys: KeyRange<'_>, visit: &mut Visitor<'_>) -> Result<(), StateError> {
        scan(&self.reader()?, keys, visit)
    }

    fn view(&self) -> Result<Box<dyn View>, StateError> {
        Ok(Box::new(DiskView(self.reader()?)))
    }

    fn replace(&mut self, entries: &mut Entries<'_>) -> Result<(), StorageError> {
        let mut transaction = self.database.begin_write().map_err(failed)?;
        transaction.set_durability(Durability::Immediate).map_err(failed)?;
        transaction.set_quick_repair(true);
        transaction.delete_table(TABLE).map_err(failed)?;
        let mut table = transaction.open_table(TABLE).map_err(failed)?;
        for entry in entries {
            let (key, value) = entry?;
            drop(table.insert(&key[..], &value[..]).map_err(failed)?);
        }
        drop(table);
        Ok(transaction.commit().map_err(failed)?)
    }
}

/// A read transaction: pages that it sees are not used again until it is dropped.
struct DiskView(ReadOnlyTable<&'static [u8], &'static [u8]>);

impl View for DiskView {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        get(&self.0, key)
    }

    fn range(&self, keys: KeyRange<'_>, visit: &mut Visitor<'_>) -> Result<(), StateError> {
        scan(&self.0, keys, visit)
    }

    fn scan(&self, visit: &mut Visit<'_>) -> Result<(), StorageError> {
        for entry in self.0.iter().map_err(failed)? {
            let (key, value) = entry.map_err(failed)?;
            visit(key.value(), value.value())?;
        }
        Ok(())
    }
}

struct DiskTransaction<'a> {
    store: &'a DiskStore,
    reader: ReadOnlyTable<&'static [u8], &'static [u8]>,
    changes: Changes,
}

impl State for DiskTransaction<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        match self.changes.get(key) {
            Some(value) => Ok(value.clone()),
            None => get(&self.reader, key),
        }
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StateError> {
        self.changes.insert(key.to_vec(), Some(value.to_vec()));
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StateError> {
        self.changes.insert(key.to_vec(), None);
        Ok(())
    }

    fn scan(&self, keys: KeyRange<'_>, visit: &mut Visitor<'_>) -> Result<(), StateError> {
        let committed = |visit: &mut Visitor<'_>| scan(&self.reader, keys, visit);
        scan_changed(part(&self.changes, keys), committed, visit)
    }
}

impl Transaction for DiskTransaction<'_> {
    fn commit(self: Box<Self>, durable: bool) -> Result<(), StateError> {
        let Self { store, reader, changes } = *self;
        // An open reader would keep the pages that this replaces.
        drop(reader);
        store.write(changes, durable)
    }
}

fn get(
    table: &ReadOnlyTable<&'static [u8], &'static [u8]>,
    key: &[u8],
) -> Result<Option<Vec<u8>>, StateError> {
    Ok(table.get(key).map_err(failed)?.map(|value| value.value().to_vec()))
}

fn scan(
    table: &ReadOnlyTable<&'static [u8], &'static [u8]>,
    keys: KeyRange<'_>,
    visit: &mut Visitor<'_>,
) -> Result<(), StateError> {
    let Some(bounds) = keys.bounds() else { return Ok(()) };
    for entry in table.range::<&[u8]>(bounds).map_err(failed)? {
        let (key, value) = entry.map_err(failed)?;
        if visit(key.value(), value.value()).is_break() {
            break;
        }
    }
    Ok(())
}

fn failed(error: impl Into<redb::Error>) -> StateError {
    StateError(error.into().to_string())
}
