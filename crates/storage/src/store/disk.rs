//! A store on disk: one redb table.

use super::backend::RoomyFile;
use super::{Changes, Entries, Store, Transaction, View, Visit, part, scan_changed};
use crate::error::{STATE_FULL, STATE_REFUSED};
use crate::owner::OwnerRecord;
use crate::{Owner, Room, StorageError, WantsRoom};
use quorate_types::service::{KeyRange, State, StateError, Visitor};
use redb::{
    AccessGuard, Database, Durability, Range, ReadOnlyTable, ReadableDatabase, ReadableTable,
    TableDefinition, TableError, WriteTransaction,
};
use std::cell::Cell;
use std::io;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Once;

const TABLE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("state");

/// The owner's record, in a table of its own: what replaces the state leaves it.
const OWNER: TableDefinition<'static, (), &[u8]> = TableDefinition::new("owner");

/// Format of the file, written with the owner. The first had neither.
const FORMAT: u32 = 3;

/// A key with its value, in a page of the store.
type Pair<'a> = (AccessGuard<'a, &'static [u8]>, AccessGuard<'a, &'static [u8]>);

/// Pages that redb keeps in memory.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// A store in one file, locked against other processes.
///
/// A transaction gathers its changes in memory, in key order, and writes them at its commit.
/// Commits that need not be durable stay in memory until one that must be; redb reuses no space in
/// between, so a durable one is due every now and then.
#[derive(Debug)]
pub struct DiskStore {
    /// Present until it is dropped.
    database: Option<Database>,
}

impl DiskStore {
    /// Opens the store in the file `path`, or makes one. One that an earlier version made does not
    /// say whose it is, and becomes `owner`'s.
    ///
    /// # Errors
    /// [`StorageError::InUse`] when another process holds it; [`StorageError::Foreign`] when it is
    /// not `owner`'s; [`StorageError::Io`] when it cannot be opened.
    pub fn open(path: &Path, owner: &Owner) -> Result<Self, StorageError> {
        Self::open_within(path, owner, Room::unwatched())
    }

    /// As [`DiskStore::open`]; what is written later waits for `room`.
    ///
    /// # Errors
    /// As [`DiskStore::open`].
    pub fn open_within(path: &Path, owner: &Owner, room: Room) -> Result<Self, StorageError> {
        let shown = path.display().to_string();
        let opened = guarded(|| {
            let file = RoomyFile::open(path, room)?;
            Ok(Database::builder().set_cache_size(CACHE_BYTES).create_with_backend(file)?)
        });
        let database = opened.map_err(|error| match error {
            redb::Error::DatabaseAlreadyOpen => StorageError::InUse { directory: shown.clone() },
            redb::Error::Corrupted(_) => failed(error).into(),
            redb::Error::Io(error) => StorageError::io("open", shown.clone(), &error),
            error => {
                let (file, reason) = (shown.clone(), error.to_string());
                StorageError::Io { action: "open", file, reason }
            }
        })?;
        let store = Self { database: Some(database) };
        match store.owner()? {
            Some(record) => {
                let (found, _) = OwnerRecord::split(&record)
                    .ok_or(StorageError::StateDamaged { entry: "owner" })?;
                found.check(&shown, FORMAT, owner)?;
            }
            None => store.make_tables(owner)?,
        }
        Ok(store)
    }

    fn database(&self) -> &Database {
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

    fn reader(&self) -> Result<ReadOnlyTable<&'static [u8], &'static [u8]>, StateError> {
        guarded(|| Ok(self.database().begin_read()?.open_table(TABLE)?)).map_err(failed)
    }

    fn write(&self, changes: Changes, durable: bool) -> Result<(), StateError> {
        let written = guarded(|| {
            let mut transaction = self.database().begin_write()?;
            let durability = if durable { Durability::Immediate } else { Durability::None };
            transaction.set_durability(durability)?;
            // Without it, opening after a crash would walk the whole file.
            transaction.set_quick_repair(durable);
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
}

impl Drop for DiskStore {
    /// Closing writes, and may come upon damage: whoever opens the file next is told.
    fn drop(&mut self) {
        let database = self.database.take();
        let _ = guarded(|| {
            drop(database);
            Ok(())
        });
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
        filled.and(ended.map_err(|error| failed(error).into()))
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
        let mut entries = guarded(|| Ok(self.0.iter()?)).map_err(failed)?;
        while let Some((key, value)) = next(&mut entries)? {
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
    guarded(|| Ok(table.get(key)?.map(|value| value.value().to_vec()))).map_err(failed)
}

fn scan(
    table: &ReadOnlyTable<&'static [u8], &'static [u8]>,
    keys: KeyRange<'_>,
    visit: &mut Visitor<'_>,
) -> Result<(), StateError> {
    let Some(bounds) = keys.bounds() else { return Ok(()) };
    let mut entries = guarded(|| Ok(table.range::<&[u8]>(bounds)?)).map_err(failed)?;
    while let Some((key, value)) = next(&mut entries)? {
        if visit(key.value(), value.value()).is_break() {
            break;
        }
    }
    Ok(())
}

/// The next entry of a table, if there is one.
fn next<'a>(
    entries: &mut Range<'a, &'static [u8], &'static [u8]>,
) -> Result<Option<Pair<'a>>, StateError> {
    let read = guarded(|| {
        let entry = entries.next().transpose()?;
        if let Some((key, value)) = &entry {
            // Where these lie is read each time: what can be had once will be.
            let _ = (key.value(), value.value());
        }
        Ok(entry)
    });
    read.map_err(failed)
}

thread_local! {
    /// Set while redb is at work on this thread.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Has redb do something. It asserts what it reads, so that it panics over a damaged file: an error
/// as others are. Nothing of ours is called in there: our own panics stay panics.
fn guarded<T>(work: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, redb::Error> {
    static HOOK: Once = Once::new();
    // Nobody is told of a defect of this program where the error says that the file is damaged.
    HOOK.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                others(panic);
            }
        }));
    });
    GUARDED.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(false);
    match outcome {
        Ok(Err(redb::Error::Io(error))) if error.kind() == io::ErrorKind::InvalidData => {
            Err(redb::Error::Corrupted(error.to_string()))
        }
        Ok(outcome) => outcome,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(redb::Error::Corrupted(text.unwrap_or("it cannot be read").to_owned()))
        }
    }
}

fn failed(error: redb::Error) -> StateError {
    StateError(match error {
        redb::Error::Corrupted(reason) => format!("its file is damaged ({reason})"),
        redb::Error::Io(error) if error.wants_room() => STATE_FULL.to_owned(),
        error => format!("{STATE_REFUSED}: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::{failed, guarded};
    use crate::StorageError;
    use std::io;

    fn said(error: redb::Error) -> StorageError {
        StorageError::State(failed(error))
    }

    fn of(kind: io::ErrorKind) -> redb::Error {
        redb::Error::Io(kind.into())
    }

    /// A full file system, a file that cannot be used, and one that is damaged are three things:
    /// the last alone is made again.
    #[test]
    fn what_is_wrong_with_a_file_is_told_apart() {
        let full = said(of(io::ErrorKind::StorageFull));
        assert!(full.is_full() && !full.is_damaged_state(), "{full}");
        let broken = said(of(io::ErrorKind::BrokenPipe));
        assert!(!broken.is_full() && !broken.is_damaged_state(), "{broken}");
        for work in
            [|| Err(of(io::ErrorKind::InvalidData)), || panic!("page {}", 7), || panic!("a page")]
        {
            let damaged = said(guarded::<()>(work).expect_err("it is damaged"));
            assert!(damaged.is_damaged_state() && !damaged.is_full(), "{damaged}");
        }
        assert_eq!(guarded(|| Ok(7)).expect("nothing is wrong"), 7);
    }
}
