//! The store of earlier versions: one redb table in a file, which is taken over.
//!
//! ```text
//! state (a file) ─▶ state (a file), state.new ─▶ state.new ─▶ state (a folder)
//!                   a log of values, in one batch
//! ```
//!
//! ★ The file is removed when the log has all of it, durably. Until then a start begins anew.

use super::folder;
use crate::error::{STATE_FULL, STATE_REFUSED};
use crate::owner::OwnerRecord;
use crate::store::value_log::{Sizes, ValueLog};
use crate::{Owner, Room, StorageError, WantsRoom};
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::service::StateError;
use redb::{Database, Range, ReadOnlyTable, ReadableDatabase, TableDefinition, TableError};
use std::cell::Cell;
use std::fs;
use std::io;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Once;

pub(super) const TABLE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("state");

/// The owner's record. The first files had none.
pub(super) const OWNER: TableDefinition<'static, (), &[u8]> = TableDefinition::new("owner");

/// Format of the file, written with the owner.
pub(super) const FORMAT: u32 = 3;

type Table = ReadOnlyTable<&'static [u8], &'static [u8]>;

/// A key with its value.
type OwnedPair = (Vec<u8>, Vec<u8>);

/// Folder in which the log is made that takes the file's place.
pub(super) fn beside(path: &Path) -> PathBuf {
    path.with_added_extension("new")
}

/// Puts a log of values in the place of an earlier version's file, where there is one.
///
/// # Errors
/// When the file is in use, another owner's, or damaged; when a disk fails.
pub(super) fn take_over(path: &Path, owner: &Owner, room: &Room) -> Result<(), StorageError> {
    let beside = beside(path);
    let failed = |action| {
        let shown = path.display().to_string();
        move |error: io::Error| StorageError::io(action, shown, &error)
    };
    if path.is_file() {
        let file = FormerStore::open(path, owner)?;
        if mutants::active(Mutant::RemoveFormerEarly) {
            fs::remove_file(path).map_err(failed("remove"))?;
        }
        let copied = file.copy_to(&beside, owner, room);
        if let Err(error) = copied {
            // What is not whole is not to be found where the file is put aside.
            let _ = fs::remove_dir_all(&beside);
            return Err(error);
        }
        fs::remove_file(path).map_err(failed("remove"))?;
    }
    if !path.exists() && beside.exists() {
        fs::rename(&beside, path).map_err(failed("rename"))?;
        let parent = path.canonicalize().and_then(|path| {
            path.parent().map_or(Ok(()), |parent| fs::File::open(parent)?.sync_all())
        });
        parent.map_err(failed("sync the parent of"))?;
    }
    Ok(())
}

/// An earlier version's store, open.
struct FormerStore(Option<Database>);

impl FormerStore {
    fn open(path: &Path, owner: &Owner) -> Result<Self, StorageError> {
        let shown = path.display().to_string();
        let opened = guarded(|| Ok(Database::open(path)?));
        let database = opened.map_err(|error| match error {
            redb::Error::DatabaseAlreadyOpen => StorageError::InUse { directory: shown.clone() },
            redb::Error::Corrupted(_) => failed(error).into(),
            redb::Error::Io(error) => StorageError::io("open", shown.clone(), &error),
            error => {
                let (file, reason) = (shown.clone(), error.to_string());
                StorageError::Io { action: "open", file, reason }
            }
        })?;
        let store = Self(Some(database));
        if let Some(record) = store.owner()? {
            let (found, _) =
                OwnerRecord::split(&record).ok_or(StorageError::StateDamaged { entry: "owner" })?;
            found.check(&shown, FORMAT, owner)?;
        }
        Ok(store)
    }

    fn database(&self) -> &Database {
        self.0.as_ref().expect("present until the end")
    }

    fn owner(&self) -> Result<Option<Vec<u8>>, StateError> {
        let read = guarded(|| match self.database().begin_read()?.open_table(OWNER) {
            Ok(table) => Ok(table.get(())?.map(|record| record.value().to_vec())),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(error.into()),
        });
        read.map_err(failed)
    }

    /// The table; a file without one has nothing in it.
    fn table(&self) -> Result<Option<Table>, StateError> {
        let opened = guarded(|| match self.database().begin_read()?.open_table(TABLE) {
            Ok(table) => Ok(Some(table)),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(error.into()),
        });
        opened.map_err(failed)
    }

    /// Fills a log in another folder, whatever an earlier try left there.
    fn copy_to(&self, to: &Path, owner: &Owner, room: &Room) -> Result<(), StorageError> {
        if to.exists() {
            let removed = fs::remove_dir_all(to);
            removed
                .map_err(|error| StorageError::io("remove", to.display().to_string(), &error))?;
        }
        tracing::info!(to = %to.display(), "the state of an earlier version is taken over");
        let log = ValueLog::open(folder(to, room.clone())?, owner, Sizes::DEFAULT)?;
        let Some(table) = self.table()? else { return Ok(()) };
        let mut range = guarded(|| Ok(table.range::<&[u8]>(..)?)).map_err(failed)?;
        log.replace(&mut std::iter::from_fn(|| {
            Some(next(&mut range).transpose()?.map_err(Into::into))
        }))
    }
}

impl Drop for FormerStore {
    /// Closing writes, and may come upon damage, which nobody needs to know of any more.
    fn drop(&mut self) {
        let database = self.0.take();
        let _ = guarded(|| {
            drop(database);
            Ok(())
        });
    }
}

/// The next entry of a table, if there is one.
fn next(
    entries: &mut Range<'_, &'static [u8], &'static [u8]>,
) -> Result<Option<OwnedPair>, StateError> {
    let read = guarded(|| {
        let entry = entries.next().transpose()?;
        Ok(entry.map(|(key, value)| (key.value().to_vec(), value.value().to_vec())))
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
mod tests;
