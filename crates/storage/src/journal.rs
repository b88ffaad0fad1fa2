//! The journal: carries out a machine's `Persist`, `Append`, `Store`, `Release` and `Read` over two
//! logs.
//!
//! Records and decided heights are in one, bodies in the other: the bodies' files may be lost, or
//! on another disk, and the promises survive. A commit makes both durable. Nothing is relied on
//! across them but through an answer: a vote's record is written after the
//! [`quorate_types::Event::Stored`] of its bodies, so a commit syncs bodies first and the order
//! within each log is all that counts.
//!
//! The latest records are kept twice ([`Safeguards`]), so that damage to one log costs no promise;
//! bodies and decided heights others have: what is damaged of them is left out.
//!
//! A host queues what its machine asks for, then for every group: [`Journal::write`] each entry,
//! one [`Journal::commit`], and only then releases what waited for it. Any error is final: the
//! journal gives the same one to every later call, and the replica stops (a failed sync may have
//! dropped pages that a second sync would report clean).

mod copy;
mod index;
mod recover;
mod retention;
mod standing;

pub use standing::{Findings, Safeguards, SetBack, Witnessed};

use crate::disk::Disk;
use crate::log::salvage::Salvaged;
use crate::log::{BODIES, Durability, Location, Log, LogConfig, LogMark, RECORDS, scan};
use crate::{JournalStats, Owner, StorageError};
use bytes::Bytes;
use copy::PromiseCopy;
use index::Index;
use parking_lot::Mutex;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::machine::{
    DecidedRecord, Entry, ExecutedUpTo, ReadAnswer, ReadItem, ReadRequest, Record, RecordKind,
    Recovery, Release,
};
use quorate_types::{BodyRef, Height};
use recover::{Bodies, Collected, Records, lost_body};
use standing::{Standing, judge};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Kinds of log records; 0 is a segment's first.
const SAFETY: u8 = 1;
const INCARNATION: u8 = 2;
/// Its payload begins with the slot's place.
const SLOT: u8 = 3;
const HAND_OVER: u8 = 4;
const DECIDED: u8 = 16;
const BODY: u8 = 17;
/// A height was released: its number and the names of its bodies.
const RELEASED: u8 = 18;
/// After damage: from the record on whose number is its payload, the log has the latest of each
/// kind.
const REPAIRED: u8 = 19;

/// Bytes besides bodies that a group is taken to have, where it matters whether a segment ends.
const QUICK_BYTES: usize = 64 * 1024;

/// Bytes before a decided record's own: its height.
const DECIDED_HEAD_BYTES: usize = 8;
/// Bytes before a body's own: its reference.
const BODY_HEAD_BYTES: usize = 2 + 8 + 32;

/// The latest record of each kind.
type Latest = BTreeMap<RecordKind, Promise>;

/// A record in the log.
#[derive(Clone)]
struct Promise {
    bytes: Bytes,
    segment: u64,
    sequence: u64,
}

/// Both logs with the index of what is in them.
pub struct Journal {
    records: Log,
    bodies: Log,
    shared: Arc<Shared>,
    /// Index of what was written since the last flush: not yet in the file, so not yet in the
    /// shared index.
    staged: Index,
    latest: Latest,
    /// The second copy of the latest records; `None` where none is kept.
    copy: Option<PromiseCopy>,
    /// Last record that was committed.
    committed: Option<LogMark>,
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
    /// remembers ([`crate::Executor::open`]). Bodies that are damaged are left out.
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
        let none = Safeguards::default();
        let (journal, recovery, _) =
            Self::open_guarded(disk, bodies, owner, config, executed, none)?;
        Ok((journal, recovery))
    }

    /// Opens the logs as [`Journal::open`] does, and repairs what these safeguards allow to; says
    /// what was damaged. A log that was set back ([`Findings::set_back`]) is opened as it is, for
    /// who does not sign.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn open_guarded(
        disk: Box<dyn Disk>,
        bodies: Box<dyn Disk>,
        owner: &Owner,
        config: LogConfig,
        executed: Option<ExecutedUpTo>,
        safeguards: Safeguards,
    ) -> Result<(Self, Recovery, Findings), StorageError> {
        let Safeguards { copy, witnessed } = safeguards;
        let mut found = Collected::new(executed.as_ref());
        let retention_bytes = config.retention_bytes;
        let copy = copy.map(|disk| PromiseCopy::open(disk, owner, &config)).transpose()?;
        let (records, damage) =
            Log::open_or_salvage(disk, RECORDS, owner, config.clone(), &mut Records(&mut found))?;
        let standing = judge(&records, damage.as_ref(), found.repaired, copy.as_ref(), witnessed)?;
        let mut findings = Findings {
            records_damaged: damage.as_ref().map_or(0, Salvaged::records),
            promises_restored: restore(&mut found, &records, &copy, damage.as_ref(), standing),
            ..Findings::default()
        };
        let bodies = open_bodies(bodies, owner, config, &mut found, &mut findings)?;
        let recovery = found.recovery(executed);
        let shared = Shared { index: Mutex::new(found.index), failure: Mutex::default() };
        let mut journal = Self {
            records,
            bodies,
            shared: Arc::new(shared),
            staged: Index::default(),
            latest: found.latest,
            copy,
            committed: None,
            record_barrier: false,
            body_barrier: false,
            retention_bytes,
            below: Height(0),
            prune_due: false,
        };
        journal.settle(standing, damage.is_some(), &mut findings)?;
        if let Some(executed) = &recovery.executed {
            journal.take_over(executed)?;
            if found.no_bodies {
                journal.bodies_are_lost(executed.height())?;
            }
        }
        Ok((journal, recovery, findings))
    }

    /// Makes good what was found: after this the log has all latest promises, whole, and the copy
    /// has them too. Neither is touched further for a log that was set back.
    fn settle(
        &mut self,
        standing: Standing,
        is_damaged: bool,
        findings: &mut Findings,
    ) -> Result<(), StorageError> {
        match standing {
            Standing::SetBack(set_back) => {
                findings.set_back = Some(set_back);
                // What it says must not be lost: it may be all that is left.
                self.copy = None;
                if is_damaged { self.records.skip_to(0) } else { Ok(()) }
            }
            Standing::Sound { cut_at } => {
                if is_damaged || cut_at.is_some() {
                    let cut = cut_at.and_then(|at| {
                        let covered = self.copy.as_ref()?.covered()?.sequence + 1;
                        findings.records_damaged += covered - at;
                        Some(covered)
                    });
                    self.promise_again(cut.unwrap_or(0))?;
                }
                self.bring_copy_level()
            }
        }
    }

    /// Writes the latest of each kind once more, in a new segment with numbers from `sequence` on:
    /// what is missing before matters no more (★).
    fn promise_again(&mut self, sequence: u64) -> Result<(), StorageError> {
        self.records.skip_to(sequence)?;
        let from = self.records.sequence().to_le_bytes();
        let all: Vec<_> = self.latest.iter().map(|(kind, p)| (*kind, p.bytes.clone())).collect();
        all.into_iter().try_for_each(|(kind, bytes)| self.promise(kind, bytes))?;
        self.records.append(REPAIRED, &from, &Bytes::new())?;
        self.records.commit()
    }

    /// Writes the copy anew if it has anything else than the log, as after a power cut.
    fn bring_copy_level(&mut self) -> Result<(), StorageError> {
        let (Some(copy), Some(last)) = (&mut self.copy, self.records.last()) else {
            return Ok(());
        };
        let is_level = copy.latest().len() == self.latest.len()
            && self.latest.iter().all(|(kind, promise)| {
                let copied = copy.latest().get(kind);
                copied.is_some_and(|copied| copied.sequence == promise.sequence)
            });
        if !is_level {
            copy.begin_anew()?;
            for (kind, Promise { sequence, bytes, .. }) in &self.latest {
                copy.add(*kind, *sequence, bytes)?;
            }
        }
        if copy.covered() != Some(last) && self.records.is_committed() {
            copy.cover(last)?;
        }
        copy.sync()
    }

    /// Last record that is committed; `None` before any is.
    #[must_use]
    pub fn committed(&self) -> Option<LogMark> {
        self.committed
    }

    /// Last record that was written, committed or not.
    #[must_use]
    pub fn written(&self) -> Option<LogMark> {
        self.records.last()
    }

    /// Makes durable what was written behind the logs' own syncs: the copy of the promises. To be
    /// called when no more is written, after the last commit.
    ///
    /// # Errors
    /// When the disk failed, now or earlier.
    pub fn close(&mut self) -> Result<(), StorageError> {
        self.shared.check()?;
        match &mut self.copy {
            Some(copy) => copy.sync().map_err(|error| self.shared.fail(error)),
            None => Ok(()),
        }
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
        let promised = std::mem::take(&mut self.record_barrier);
        end(&mut self.bodies, std::mem::take(&mut self.body_barrier))?;
        end(&mut self.records, promised)?;
        if promised {
            self.committed = self.records.last();
            if let (Some(copy), Some(mark)) = (&mut self.copy, self.committed) {
                copy.cover(mark)?;
            }
        }
        self.publish();
        if std::mem::take(&mut self.prune_due) { self.prune() } else { Ok(()) }
    }

    /// Reads back what was stored, of this group too.
    ///
    /// # Errors
    /// When the disk failed, now or earlier. What is not what was written any more is left out, as
    /// if it had been pruned.
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

    /// Returns `true` if a group of so many bytes of bodies is handed to the operating system and
    /// no more: nothing is synced, and no segment ends.
    #[must_use]
    pub fn is_quick(&self, bytes: usize) -> bool {
        let logs =
            [Some(&self.records), Some(&self.bodies), self.copy.as_ref().map(PromiseCopy::log)];
        let mut logs = logs.into_iter().flatten();
        logs.all(|log| log.durability() == Durability::Os && log.has_room(bytes + QUICK_BYTES))
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
                self.promise(*kind, bytes.clone())?;
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

    /// Appends a record to the log, and to the copy.
    fn promise(&mut self, kind: RecordKind, bytes: Bytes) -> Result<(), StorageError> {
        let segment = append_record(&mut self.records, kind, &bytes)?.segment;
        let sequence = self.records.last().expect("just appended").sequence;
        if let Some(copy) = &mut self.copy {
            copy.add(kind, sequence, &bytes)?;
        }
        self.latest.insert(kind, Promise { bytes, segment, sequence });
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
        RecordKind::HandOver => log.append(HAND_OVER, &[], bytes),
        RecordKind::Slot(place) => log.append(SLOT, &[place], bytes),
    }
}

/// Takes from the copy what a damaged log lacks, what never reached it too: a copy has the newest
/// of a kind alone, so that nothing else makes up for the one before. Returns how many kinds of
/// promises.
fn restore(
    found: &mut Collected,
    log: &Log,
    copy: &Option<PromiseCopy>,
    damage: Option<&Salvaged>,
    standing: Standing,
) -> u64 {
    let (Some(copy), Standing::Sound { cut_at }) = (copy, standing) else { return 0 };
    let is_damaged = damage.is_some() || cut_at.is_some();
    let gaps = damage.map_or(&[][..], |damage| &damage.missing);
    found.restore(copy, |sequence| {
        let is_beyond = is_damaged && sequence >= log.sequence();
        is_beyond || gaps.iter().any(|gap| gap.contains(&sequence))
    })
}

/// Opens the log of bodies. What is damaged there is left out, and fetched from the other members
/// if it is needed.
fn open_bodies(
    disk: Box<dyn Disk>,
    owner: &Owner,
    config: LogConfig,
    found: &mut Collected,
    findings: &mut Findings,
) -> Result<Log, StorageError> {
    let (mut bodies, damage) =
        Log::open_or_salvage(disk, BODIES, owner, config, &mut Bodies(found))?;
    let Some(damage) = damage else { return Ok(bodies) };
    findings.bodies_damaged = damage.records().max(1);
    if damage.is_owned {
        bodies.skip_to(0)?;
    } else {
        found.forget_bodies();
        bodies.begin_anew()?;
    }
    bodies.commit()?;
    Ok(bodies)
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
        let mut read = 0;
        for item in &request.items {
            let is_over = read >= request.bytes_max;
            let bytes =
                if is_over { None } else { self.read_item(item).map_err(|e| self.fail(e))? };
            read += bytes.as_ref().map_or(0, Bytes::len);
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
            // Others have it: what a replica needs itself it asks them for.
            Err(error @ StorageError::Corrupt { .. }) => {
                tracing::warn!(%error, "left out");
                self.index.lock().forget(item);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn is_at(&self, item: &ReadItem, location: Location) -> bool {
        self.index.lock().find(item).is_some_and(|(_, now)| now == location)
    }
}

#[cfg(test)]
mod tests;
