//! A store on disk: a log of values, and what is newer in memory.

mod former;

use super::overlay::{Layers, Overlay};
use super::value_log::{Sizes, Snapshot, ValueLog};
use super::{
    Beforehand, Changes, Checkpoint, Entries, Store, Transaction, View, Visit, owned, part,
    scan_changed,
};
use crate::disk::Disk;
use crate::error::STATE_REFUSED;
use crate::{Owner, RealDisk, Room, RoomyDisk, StorageError};
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::service::{KeyRange, State, StateError, Visitor};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread;

/// A store in a folder of its own, locked against other processes.
///
/// A transaction gathers its changes in memory, in key order. Commits that need not be durable stay
/// there too, in an `Overlay`, which a checkpoint writes in one batch of the log, on a thread of
/// its own: what was written many times in between is written once.
#[derive(Debug)]
pub struct DiskStore {
    log: Arc<ValueLog>,
    overlay: Overlay,
    /// Checkpoint that may be on its way.
    writing: Option<Checkpoint>,
    /// The log as the last checkpoint left it that is known to be over.
    on_disk: Arc<Snapshot>,
}

impl DiskStore {
    /// Opens the store in the folder `path`, or makes one. A file there is the store of an earlier
    /// version, which is taken over, once.
    ///
    /// # Errors
    /// [`StorageError::InUse`] when another process holds it; [`StorageError::Foreign`] when it is
    /// not `owner`'s; [`StorageError::Format`] when another version wrote it;
    /// [`StorageError::Io`] when it cannot be opened.
    pub fn open(path: &Path, owner: &Owner) -> Result<Self, StorageError> {
        Self::open_within(path, owner, Room::unwatched())
    }

    /// As [`DiskStore::open`]; what is written waits for `room`.
    ///
    /// # Errors
    /// As [`DiskStore::open`].
    pub fn open_within(path: &Path, owner: &Owner, room: Room) -> Result<Self, StorageError> {
        former::take_over(path, owner, &room)?;
        Self::over(folder(path, room)?, owner, Sizes::DEFAULT)
    }

    /// Returns `true` if there is a store at `path`, of this version or an earlier one.
    #[must_use]
    pub fn is_at(path: &Path) -> bool {
        path.exists() || former::beside(path).exists()
    }

    fn over(disk: Box<dyn Disk>, owner: &Owner, sizes: Sizes) -> Result<Self, StorageError> {
        let log = Arc::new(ValueLog::open(disk, owner, sizes)?);
        let (overlay, on_disk) = (Overlay::default(), log.snapshot());
        Ok(Self { log, overlay, writing: None, on_disk })
    }

    /// Takes what is committed for the next checkpoint.
    fn begin_writing(&mut self) -> Result<(Checkpoint, Arc<Changes>), StateError> {
        self.settle()?;
        let checkpoint = Checkpoint::default();
        self.writing = Some(checkpoint.clone());
        Ok((checkpoint, self.overlay.begin_writing()))
    }

    /// Makes durable what is committed, on this thread.
    fn write_now(&mut self) -> Result<(), StateError> {
        let (checkpoint, changes) = self.begin_writing()?;
        checkpoint.end(self.log.write(&changes));
        self.settle()
    }

    /// Waits for the checkpoint that is on its way, if there is one.
    fn settle(&mut self) -> Result<(), StateError> {
        if let Some(checkpoint) = &self.writing {
            checkpoint.wait()?;
            self.overlay.written();
            self.on_disk = self.log.snapshot();
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

/// The folder of a store. New files take no room before something is written to them: a store's
/// syncs are few, and zeroes ahead of them would be most of what it writes.
fn folder(path: &Path, room: Room) -> Result<Box<dyn Disk>, StorageError> {
    Ok(Box::new(RoomyDisk::new(RealDisk::open(path)?.without_zeroing(), room)))
}

impl Drop for DiskStore {
    /// Nobody opens the folder while something is written to it.
    fn drop(&mut self) {
        // Whoever wanted to know how it ended has asked.
        let _ = self.settle();
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
            None => self.on_disk.get(key),
        }
    }

    fn scan(&self, keys: KeyRange<'_>, visit: &mut Visitor<'_>) -> Result<(), StateError> {
        self.overlay.scan(keys, &mut |visit| self.on_disk.scan(keys, visit), visit)
    }

    fn view(&mut self) -> Result<Box<dyn View>, StateError> {
        self.look_at_checkpoint()?;
        // What comes to the disk in between is seen twice, and not missed.
        let layers = self.overlay.layers();
        Ok(Box::new(DiskView { layers, on_disk: Arc::clone(&self.on_disk) }))
    }

    fn checkpoint_after(&mut self, first: Beforehand) -> Result<Checkpoint, StateError> {
        let (checkpoint, changes) = self.begin_writing()?;
        let (log, ended) = (Arc::clone(&self.log), checkpoint.clone());
        let is_ahead = mutants::active(Mutant::CheckpointAhead);
        let write = move || {
            let write = || log.write(&changes);
            let ahead = is_ahead.then(write);
            first();
            ahead.unwrap_or_else(write)
            // Whoever is told may close the store: it is let go of here.
        };
        let spawned = thread::Builder::new().name("checkpoint".to_owned()).spawn(move || {
            let panicked = |_| Err(StateError(format!("{STATE_REFUSED}: its writer panicked")));
            ended.end(catch_unwind(AssertUnwindSafe(write)).unwrap_or_else(panicked));
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
        self.log.replace(entries)?;
        self.overlay = Overlay::default();
        self.on_disk = self.log.snapshot();
        Ok(())
    }
}

/// What was in memory at a moment, over what was on disk.
struct DiskView {
    layers: Layers,
    on_disk: Arc<Snapshot>,
}

impl View for DiskView {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        match self.layers.get(key) {
            Some(value) => Ok(owned(value)),
            None => self.on_disk.get(key),
        }
    }

    fn range(&self, keys: KeyRange<'_>, visit: &mut Visitor<'_>) -> Result<(), StateError> {
        self.layers.scan(keys, &mut |visit| self.on_disk.scan(keys, visit), visit)
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
