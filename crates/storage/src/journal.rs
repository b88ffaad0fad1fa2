//! The journal: carries out a machine's `Persist`, `Append`, `Store` and `Read` over one log.
//!
//! A host queues what its machine asks for, then for every group: [`Journal::write`] each entry,
//! one [`Journal::commit`], and only then lets go what waited for it. Any error is final: the
//! journal gives the same one to every later call, and the replica stops (a failed sync may have
//! dropped pages that a second sync would report clean).

use crate::StorageError;
use crate::disk::Disk;
use crate::log::{Durability, Location, Log, LogConfig, Segment};
use borsh::BorshDeserialize;
use bytes::Bytes;
use parking_lot::Mutex;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::machine::{
    DecidedRecord, ExecutedUpTo, ReadAnswer, ReadItem, ReadRequest, Record, RecordKind, Recovery,
};
use quorate_types::{Body, BodyRef, Height};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Kinds of log records; 0 is a segment's first.
const SAFETY: u8 = RecordKind::Safety as u8;
const INCARNATION: u8 = RecordKind::Incarnation as u8;
const DECIDED: u8 = 16;
const BODY: u8 = 17;

/// Bytes before a decided record's own: its height.
const DECIDED_HEAD_BYTES: usize = 8;
/// Bytes before a body's own: its reference.
const BODY_HEAD_BYTES: usize = 2 + 8 + 32;

/// Something to write.
#[derive(Clone, Debug)]
pub enum Entry {
    /// [`quorate_types::Effect::Persist`]: durable after the next commit.
    Record(Record),
    /// [`quorate_types::Effect::Append`]: written with the next commit, durable with some later one.
    Decided(DecidedRecord),
    /// [`quorate_types::Effect::Store`]: durable after the next commit.
    Body(Arc<Body>),
}

/// What a journal has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalStats {
    /// Bytes handed to the operating system.
    pub bytes_written: u64,
    /// Syncs of a file or the directory.
    pub syncs: u64,
    /// Records, without the segments' own.
    pub records: u64,
}

/// The log with the index of what is in it.
pub struct Journal {
    log: Log,
    shared: Arc<Shared>,
    /// Written since the last flush: not yet in the file, so not yet in the index.
    staged: Index,
    /// Something in the group waits for durability.
    barrier: bool,
}

#[derive(Default)]
struct Shared {
    index: Mutex<Index>,
    failure: Mutex<Option<StorageError>>,
}

#[derive(Default)]
struct Index {
    bodies: BTreeMap<BodyRef, Location>,
    decided: BTreeMap<Height, Location>,
    segments: BTreeMap<u64, Segment>,
}

impl Journal {
    /// Opens the log on `disk`, or begins one, and collects what survived. `executed` is what the
    /// state store remembers ([`crate::Executor::open`]).
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] when committed records are damaged or missing; others when the
    /// disk fails.
    pub fn open(
        disk: Box<dyn Disk>,
        config: LogConfig,
        executed: Option<ExecutedUpTo>,
    ) -> Result<(Self, Recovery), StorageError> {
        let mut index = Index::default();
        let mut recovery = Recovery { executed, ..Recovery::default() };
        let after = recovery.executed.as_ref().map_or(Height(0), |executed| executed.height);
        let mut decided = BTreeMap::new();
        let log = Log::open(disk, config, &mut |segment, location, kind, payload| {
            index.segments.entry(segment.number).or_insert_with(|| segment.clone());
            match kind {
                SAFETY => recovery.safety = Some(Bytes::copy_from_slice(payload)),
                INCARNATION => recovery.incarnation = Some(Bytes::copy_from_slice(payload)),
                DECIDED if payload.len() >= DECIDED_HEAD_BYTES => {
                    let (height, bytes) = payload.split_at(DECIDED_HEAD_BYTES);
                    let height = Height(u64::from_le_bytes(height.try_into().expect("8 bytes")));
                    index.decided.insert(height, location);
                    if height > after {
                        decided.insert(height, Bytes::copy_from_slice(bytes));
                    }
                }
                BODY if payload.len() >= BODY_HEAD_BYTES => {
                    let reference = BodyRef::try_from_slice(&payload[..BODY_HEAD_BYTES])
                        .expect("a reference is these bytes, whatever they are");
                    index.bodies.insert(reference, location);
                }
                _ => {
                    return Err(StorageError::Corrupt {
                        file: segment.place.clone(),
                        offset: location.offset,
                        reason: format!("a sound record of the unknown kind {kind}"),
                    });
                }
            }
            Ok(())
        })?;
        recovery.decided = contiguous_after(after, decided);
        recovery.bodies = index.bodies.keys().copied().collect();
        index.segments.insert(log.segment().number, log.segment().clone());
        let shared = Shared { index: Mutex::new(index), failure: Mutex::default() };
        let mut journal =
            Self { log, shared: Arc::new(shared), staged: Index::default(), barrier: false };
        journal.take_over(recovery.executed.as_mut())?;
        Ok((journal, recovery))
    }

    /// Writes the decided records that the state store kept and the log lost.
    fn take_over(&mut self, executed: Option<&mut ExecutedUpTo>) -> Result<(), StorageError> {
        let Some(executed) = executed else { return Ok(()) };
        for record in std::mem::take(&mut executed.recent) {
            if !self.has_decided(record.height) {
                self.write(&Entry::Decided(record))?;
            }
        }
        self.commit()
    }

    fn has_decided(&self, height: Height) -> bool {
        self.shared.index.lock().decided.contains_key(&height)
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
    /// records alone is handed to the operating system and not synced: nothing waits for it.
    ///
    /// # Errors
    /// When the disk failed, now or earlier. What was written since the last commit may or may not
    /// survive.
    pub fn commit(&mut self) -> Result<(), StorageError> {
        self.shared.check()?;
        let wait = self.barrier || self.log.durability() == Durability::Os;
        let result = if wait { self.log.commit() } else { self.log.flush() };
        result.map_err(|error| self.shared.fail(error))?;
        self.barrier = false;
        self.publish();
        Ok(())
    }

    /// Reads back what was stored, of this group too.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] when it is not what was written; others when the disk failed, now
    /// or earlier.
    pub fn read(&mut self, request: &ReadRequest) -> Result<ReadAnswer, StorageError> {
        self.shared.check()?;
        self.log.flush().map_err(|error| self.shared.fail(error))?;
        self.publish();
        self.shared.read(request)
    }

    /// A handle for reading on other threads.
    #[must_use]
    pub fn reader(&self) -> JournalReader {
        JournalReader { shared: Arc::clone(&self.shared) }
    }

    /// What was done since it was opened.
    #[must_use]
    pub fn stats(&self) -> JournalStats {
        self.log.stats()
    }

    fn append(&mut self, entry: &Entry) -> Result<(), StorageError> {
        match entry {
            Entry::Record(Record { kind, bytes }) => {
                self.log.append(*kind as u8, &[], bytes)?;
                self.barrier = true;
            }
            Entry::Decided(DecidedRecord { height, bytes }) => {
                let location = self.log.append(DECIDED, &height.0.to_le_bytes(), bytes)?;
                self.staged.decided.insert(*height, location);
            }
            Entry::Body(body) => {
                // Even when it is stored already: its first copy may still wait for this commit.
                self.barrier = true;
                if !self.has_body(&body.reference) {
                    let head = borsh::to_vec(&body.reference).expect("encoding into memory");
                    let location = self.log.append(BODY, &head, &body.raw)?;
                    self.staged.bodies.insert(body.reference, location);
                }
            }
        }
        self.staged.segments.insert(self.log.segment().number, self.log.segment().clone());
        Ok(())
    }

    fn has_body(&self, reference: &BodyRef) -> bool {
        self.staged.bodies.contains_key(reference)
            || self.shared.index.lock().bodies.contains_key(reference)
    }

    /// Everything staged is in the files now.
    fn publish(&mut self) {
        let mut index = self.shared.index.lock();
        index.bodies.append(&mut self.staged.bodies);
        index.decided.append(&mut self.staged.decided);
        index.segments.append(&mut self.staged.segments);
    }
}

/// Reads back from a journal's files, on a thread of its own. Sees what was committed or read back
/// by the journal before. Cloning shares.
#[derive(Clone)]
pub struct JournalReader {
    shared: Arc<Shared>,
}

impl JournalReader {
    /// As [`Journal::read`], without the group that is being written.
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
        let mut items = Vec::with_capacity(request.items.len());
        for item in &request.items {
            let bytes = self.read_item(item).map_err(|error| self.fail(error))?;
            items.push((*item, bytes));
        }
        Ok(ReadAnswer { ticket: request.ticket, items })
    }

    fn read_item(&self, item: &ReadItem) -> Result<Option<Bytes>, StorageError> {
        let Some((segment, location)) = self.index.lock().find(item) else {
            return Ok(None);
        };
        let head = match item {
            ReadItem::Body(_) => BODY_HEAD_BYTES,
            ReadItem::Decided(_) => DECIDED_HEAD_BYTES,
        };
        Ok(Some(segment.read(location)?.slice(head..)))
    }
}

impl Index {
    fn find(&self, item: &ReadItem) -> Option<(Segment, Location)> {
        let location = match item {
            ReadItem::Body(reference) => *self.bodies.get(reference)?,
            ReadItem::Decided(height) => *self.decided.get(height)?,
        };
        let segment =
            self.segments.get(&location.segment).expect("every location's segment is open");
        Some((segment.clone(), location))
    }
}

fn contiguous_after(after: Height, decided: BTreeMap<Height, Bytes>) -> Vec<DecidedRecord> {
    let mut next = after.next();
    let mut records = Vec::new();
    for (height, bytes) in decided {
        if height != next {
            break;
        }
        records.push(DecidedRecord { height, bytes });
        next = next.next();
    }
    records
}

#[cfg(test)]
mod tests;
