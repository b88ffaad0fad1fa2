//! The journal: carries out a machine's `Persist`, `Append`, `Store`, `Release` and `Read` over two
//! logs.
//!
//! Records and decided heights are in one, bodies in the other: the bodies' files may be lost, or
//! on another disk, and the promises survive. A commit makes both durable. Nothing is relied on
//! across them but through an answer: a vote's record is written after the
//! [`quorate_types::Event::Stored`] of its bodies, so a commit syncs bodies first and the order
//! within each log is all that counts.
//!
//! A host queues what its machine asks for, then for every group: [`Journal::write`] each entry,
//! one [`Journal::commit`], and only then releases what waited for it. Any error is final: the
//! journal gives the same one to every later call, and the replica stops (a failed sync may have
//! dropped pages that a second sync would report clean).

mod index;
mod recover;
mod retention;

use crate::disk::Disk;
use crate::log::{BODIES, Durability, Location, Log, LogConfig, RECORDS, scan};
use crate::{JournalStats, Owner, StorageError};
use bytes::Bytes;
use index::Index;
use parking_lot::Mutex;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::machine::{
    DecidedRecord, Entry, ExecutedUpTo, ReadAnswer, ReadItem, ReadRequest, Record, RecordKind,
    Recovery, Release,
};
use quorate_types::{BodyRef, Height};
use recover::{Collected, lost_body};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Kinds of log records; 0 is a segment's first.
const SAFETY: u8 = 1;
const INCARNATION: u8 = 2;
/// Its payload begins with the slot's place.
const SLOT: u8 = 3;
const DECIDED: u8 = 16;
const BODY: u8 = 17;
/// A height was released: its number and the names of its bodies.
const RELEASED: u8 = 18;

/// Bytes before a decided record's own: its height.
const DECIDED_HEAD_BYTES: usize = 8;
/// Bytes before a body's own: its reference.
const BODY_HEAD_BYTES: usize = 2 + 8 + 32;

/// The latest record of each kind, with its segment.
type Latest = BTreeMap<RecordKind, (Bytes, u64)>;

/// Both logs with the index of what is in them.
pub struct Journal {
    records: Log,
    bodies: Log,
    shared: Arc<Shared>,
    /// Index of what was written since the last flush: not yet in the file, so not yet in the
    /// shared index.
    staged: Index,
    latest: Latest,
    /// Something in the group waits for durability: a record, or a body.
    record_barrier: bool,
    body_barrier: bool,
    retention_bytes: u64,
    /// Decided heights below this one were released.
    below: Height,
    /// Something was released since the last look at the retention.
    prune_due: bool,
}

#[derive(Default)]
struct Shared {
    index: Mutex<Index>,
    failure: Mutex<Option<StorageError>>,
}

impl Journal {
    /// Opens the logs, or begins them, and collects what survived: records and decided heights on
    /// `disk`, bodies on `bodies` (which may be the same). `executed` is what the state store
    /// remembers ([`crate::Executor::open`]).
    ///
    /// # Errors
    /// [`StorageError::Foreign`] when one is not `owner`'s, [`StorageError::Corrupt`] when
    /// committed records are damaged or missing; others when the disk fails.
    pub fn open(
        disk: Box<dyn Disk>,
        bodies: Box<dyn Disk>,
        owner: &Owner,
        config: LogConfig,
        executed: Option<ExecutedUpTo>,
    ) -> Result<(Self, Recovery), StorageError> {
        let mut found = Collected::new(executed.as_ref());
        let retention_bytes = config.retention_bytes;
        let shared = config.clone();
        let records = Log::open(disk, RECORDS, owner, shared, &mut |segment, at, kind, bytes| {
            found.record(segment, at, kind, bytes)
        })?;
        let bodies = Log::open(bodies, BODIES, owner, config, &mut |segment, at, kind, bytes| {
            found.body(segment, at, kind, bytes)
        })?;
        let recovery = found.recovery(executed);
        let shared = Shared { index: Mutex::new(found.index), failure: Mutex::default() };
        let mut journal = Self {
            records,
            bodies,
            shared: Arc::new(shared),
            staged: Index::default(),
            latest: found.latest,
            record_barrier: false,
            body_barrier: false,
            retention_bytes,
            below: Height(0),
            prune_due: false,
        };
        if let Some(executed) = &recovery.executed {
            journal.take_over(executed)?;
            if found.no_bodies {
                journal.bodies_are_lost(executed.height())?;
            }
        }
        Ok((journal, recovery))
    }

    /// Returns `true` if a journal was begun in this folder: some segment of its records has a
    /// sound start. Of one that was, [`Journal::open`] finds every promise or says that it is
    /// damaged. Locks nothing.
    ///
    /// # Errors
    /// [`StorageError::Io`] when the folder or a file in it cannot be read.
    pub fn has_begun(folder: &Path) -> Result<bool, StorageError> {
        scan::has_begun(folder, RECORDS)
            .map_err(|error| StorageError::io("look into", folder.display().to_string(), &error))
    }

    /// Makes durable that the journal was begun: from now on [`Journal::has_begun`].
    ///
    /// # Errors
    /// When the disk failed.
    pub fn begin(&mut self) -> Result<(), StorageError> {
        self.record_barrier = true;
        self.commit()
    }

    /// Writes the decided records that the state store kept and the log lost at its end.
    fn take_over(&mut self, executed: &ExecutedUpTo) -> Result<(), StorageError> {
        let first = self.shared.index.lock().decided.keys().next().copied();
        for record in &executed.recent {
            let is_missing = !self.shared.index.lock().decided.contains_key(&record.height);
            if is_missing && first.is_none_or(|first| record.height > first) {
                self.write(&Entry::Decided(record.clone()))?;
            }
        }
        self.commit()?;
        let mut index = self.shared.index.lock();
        index.decided_from = recover::contiguous_down(&index.decided);
        Ok(())
    }

    /// No body of the heights up to this one is here, and the log of bodies says so from now on.
    fn bodies_are_lost(&mut self, up_to: Height) -> Result<(), StorageError> {
        let below = self.below;
        let bodies = vec![(up_to, vec![lost_body()])];
        self.write(&Entry::Release(Release { below, bodies }))?;
        self.commit()
    }

    /// Adds an entry to the group. A body that is stored already, or in this group, is not written
    /// again.
    ///
    /// # Errors
    /// When the disk failed, now or earlier.
    pub fn write(&mut self, entry: &Entry) -> Result<(), StorageError> {
        self.shared.check()?;
        self.append(entry).map_err(|error| self.shared.fail(error))
    }

    /// Ends the group: what was written is as durable as the configuration says. A group of decided
    /// records alone is handed to the operating system and not synced: nothing waits for it. What
    /// was released is pruned, as far as there is more than the retention.
    ///
    /// # Errors
    /// When the disk failed, now or earlier. What was written since the last commit may or may not
    /// survive.
    pub fn commit(&mut self) -> Result<(), StorageError> {
        self.shared.check()?;
        self.end_group().map_err(|error| self.shared.fail(error))
    }

    fn end_group(&mut self) -> Result<(), StorageError> {
        end(&mut self.bodies, std::mem::take(&mut self.body_barrier))?;
        end(&mut self.records, std::mem::take(&mut self.record_barrier))?;
        self.publish();
        if std::mem::take(&mut self.prune_due) { self.prune() } else { Ok(()) }
    }

    /// Reads back what was stored, of this group too.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] when it is not what was written; others when the disk failed, now
    /// or earlier.
    pub fn read(&mut self, request: &ReadRequest) -> Result<ReadAnswer, StorageError> {
        self.shared.check()?;
        let flushed = self.records.flush().and_then(|()| self.bodies.flush());
        flushed.map_err(|error| self.shared.fail(error))?;
        self.publish();
        self.shared.read(request)
    }

    /// A handle for reading on other threads.
    #[must_use]
    pub fn reader(&self) -> JournalReader {
        JournalReader { shared: Arc::clone(&self.shared) }
    }

    /// Counts of what was done since it was opened, and of what is in use.
    #[must_use]
    pub fn stats(&self) -> JournalStats {
        let (records, bodies) = (self.records.stats(), self.bodies.stats());
        JournalStats {
            bytes_written: records.bytes_written + bodies.bytes_written,
            syncs: records.syncs + bodies.syncs,
            records: records.records + bodies.records,
            bytes_used: self.used_bytes(),
            oldest: self.shared.index.lock().oldest(),
        }
    }

    fn append(&mut self, entry: &Entry) -> Result<(), StorageError> {
        match entry {
            Entry::Record(Record { kind, bytes }) => {
                let at = append_record(&mut self.records, *kind, bytes)?;
                self.latest.insert(*kind, (bytes.clone(), at.segment));
                self.record_barrier = true;
            }
            Entry::Decided(DecidedRecord { height, bytes }) => {
                let at = self.records.append(DECIDED, &height.0.to_le_bytes(), bytes)?;
                self.staged.add_decided(self.records.segment(), *height, at);
            }
            Entry::Body(body) => {
                // Even when it is stored already: its first copy may still wait for this commit.
                self.body_barrier = true;
                if !self.is_live(&body.reference) {
                    let head = borsh::to_vec(&body.reference).expect("encoding into memory");
                    let at = self.bodies.append(BODY, &head, &body.raw)?;
                    self.staged.add_body(self.bodies.segment(), body.reference, at);
                }
            }
            Entry::Release(Release { below, bodies }) => {
                self.below = self.below.max(*below);
                self.prune_due = true;
                // What is released may have been written in this very group.
                self.bodies.flush()?;
                self.records.flush()?;
                self.publish();
                for mark in bodies {
                    let payload = borsh::to_vec(mark).expect("encoding into memory");
                    self.bodies.append(RELEASED, &payload, &Bytes::new())?;
                    // At once: a store of the same body after this makes it live again.
                    self.shared.index.lock().release(mark.0, &mark.1);
                }
            }
        }
        Ok(())
    }

    /// Stored and not released. One that was released may be gone soon, so it is written again.
    fn is_live(&self, name: &BodyRef) -> bool {
        let live = |index: &Index| index.bodies.get(name).is_some_and(|body| body.height.is_none());
        live(&self.staged) || live(&self.shared.index.lock())
    }

    /// Everything staged is in the files now.
    fn publish(&mut self) {
        self.shared.index.lock().absorb(&mut self.staged);
    }
}

fn append_record(log: &mut Log, kind: RecordKind, bytes: &Bytes) -> Result<Location, StorageError> {
    match kind {
        RecordKind::Safety => log.append(SAFETY, &[], bytes),
        RecordKind::Incarnation => log.append(INCARNATION, &[], bytes),
        RecordKind::Slot(place) => log.append(SLOT, &[place], bytes),
    }
}

/// Ends a log's group: durably when something waits for it.
fn end(log: &mut Log, barrier: bool) -> Result<(), StorageError> {
    if barrier || log.durability() == Durability::Os { log.commit() } else { log.flush() }
}

/// Reads back from a journal's files, on a thread of its own. Sees what was committed or read back
/// by the journal before. Cloning shares.
#[derive(Clone)]
pub struct JournalReader {
    shared: Arc<Shared>,
}

impl JournalReader {
    /// Reads as [`Journal::read`] does, without the group that is being written.
    ///
    /// # Errors
    /// As [`Journal::read`].
    pub fn read(&self, request: &ReadRequest) -> Result<ReadAnswer, StorageError> {
        self.shared.check()?;
        self.shared.read(request)
    }
}

impl Shared {
    fn check(&self) -> Result<(), StorageError> {
        match &*self.failure.lock() {
            Some(error) if !mutants::active(Mutant::GoOnAfterFailure) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Remembers the first failure.
    fn fail(&self, error: StorageError) -> StorageError {
        self.failure.lock().get_or_insert(error).clone()
    }

    fn read(&self, request: &ReadRequest) -> Result<ReadAnswer, StorageError> {
        let oldest = self.index.lock().oldest();
        let mut items = Vec::with_capacity(request.items.len());
        for item in &request.items {
            let bytes = self.read_item(item).map_err(|error| self.fail(error))?;
            items.push((*item, bytes));
        }
        Ok(ReadAnswer { ticket: request.ticket, items, oldest })
    }

    fn read_item(&self, item: &ReadItem) -> Result<Option<Bytes>, StorageError> {
        let head = match item {
            ReadItem::Body(_) => BODY_HEAD_BYTES,
            ReadItem::Decided(_) => DECIDED_HEAD_BYTES,
            ReadItem::Manifest(_) | ReadItem::Chunk(..) => return Ok(None),
        };
        let found = self.index.lock().find(item);
        let Some((segment, location)) = found else { return Ok(None) };
        match segment.read(location) {
            Ok(bytes) => Ok(Some(bytes.slice(head..))),
            // Pruned while it was read, and its file used again.
            Err(_) if !self.is_at(item, location) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn is_at(&self, item: &ReadItem, location: Location) -> bool {
        self.index.lock().find(item).is_some_and(|(_, now)| now == location)
    }
}

#[cfg(test)]
mod tests;
