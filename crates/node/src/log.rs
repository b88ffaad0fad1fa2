//! The log thread: writes what is queued as one group, syncs, and only then lets go what waited.
//!
//! Records, decided heights and the sends behind them have a queue and a sync of their own, ahead
//! of bodies: a vote waits for the group under way and its own, never for megabytes of bodies
//! queued before it. That is no weaker than one queue: a body's durability is answered, not
//! assumed. Decided heights keep their place among the records, which rely on them.
//!
//! Any error is final (★): nothing behind it is released, the thread ends, the validator stops.

use crate::barrier::{Barrier, Released, Way, barrier};
use crossbeam_channel::{Receiver, Select, Sender, never, unbounded};
use quorate_crypto::mutants::{self, Mutant};
use quorate_engine::Frame;
use quorate_storage::{Entry, Journal, JournalStats, StorageError};
use quorate_types::machine::{DecidedRecord, ReadRequest, Record, Release, Task};
use quorate_types::{Body, BodyRef, Lane, Recipients};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bodies in one group stop here, so that a vote's sync is never far away.
const GROUP_BULK_BYTES_MAX: usize = 1024 * 1024;

/// Something to send, encoded once for all that it goes to.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// To whom.
    pub to: Recipients,
    /// In which stream.
    pub lane: Lane,
    /// What.
    pub frame: Frame,
}

/// What the log thread writes on: a [`Journal`], or a slow or broken one in tests.
pub trait Device: Send {
    /// Adds an entry to the group.
    ///
    /// # Errors
    /// When the disk failed: for good.
    fn write(&mut self, entry: &Entry) -> Result<(), StorageError>;

    /// Makes the group durable.
    ///
    /// # Errors
    /// When the disk failed: for good.
    fn commit(&mut self) -> Result<(), StorageError>;

    /// What was done since it was opened.
    fn stats(&self) -> JournalStats;
}

impl Device for Journal {
    fn write(&mut self, entry: &Entry) -> Result<(), StorageError> {
        Self::write(self, entry)
    }

    fn commit(&mut self) -> Result<(), StorageError> {
        Self::commit(self)
    }

    fn stats(&self) -> JournalStats {
        Self::stats(self)
    }
}

/// Where things go when they leave the log thread.
pub trait Outlet: Send {
    /// Into its lanes.
    fn send(&self, outgoing: Outgoing);
    /// To the execution thread.
    fn execute(&self, task: Task);
    /// To the machine: the body is durable.
    fn stored(&self, body: BodyRef);
    /// To the thread that reads back; everything written before it can be read.
    fn read(&self, request: ReadRequest);
    /// A group is durable.
    fn committed(&self, stats: JournalStats);
}

/// How much waits for the log thread. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Backlog(Arc<AtomicU64>);

impl Backlog {
    /// Bytes of bodies that wait to be written.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

enum Urgent {
    Record(Record),
    Decided(DecidedRecord),
    Send(Outgoing),
    Task(Task),
}

enum Bulk {
    Body(Arc<Body>),
    Read(ReadRequest),
    Release(Release),
}

/// The machine thread's end. When it is dropped, the log thread finishes what is queued and ends.
pub struct LogQueue {
    urgent: Sender<Urgent>,
    bulk: Sender<Bulk>,
    barrier: Barrier,
    backlog: Arc<AtomicU64>,
}

impl LogQueue {
    /// Queues a record; the sends that follow wait for it (★).
    pub fn persist(&mut self, record: Record) {
        self.barrier.persist();
        // A send fails only when the thread has stopped the validator already.
        let _ = self.urgent.send(Urgent::Record(record));
    }

    /// Lets a send wait for the records before it, or gives it back to be sent at once.
    pub fn hold_back(&mut self, outgoing: Outgoing) -> Option<Outgoing> {
        match self.barrier.way(outgoing.lane) {
            Way::AtOnce => Some(outgoing),
            Way::BehindTheLog => {
                let _ = self.urgent.send(Urgent::Send(outgoing));
                None
            }
        }
    }

    /// Lets a task of the execution wait for the records before it (★: a state must not know what the log
    /// forgot), or gives it back to be done at once.
    pub fn hold_task(&mut self, task: Task) -> Option<Task> {
        if mutants::active(Mutant::HostExecutesEarly) || self.barrier.passage() == Way::AtOnce {
            return Some(task);
        }
        let _ = self.urgent.send(Urgent::Task(task));
        None
    }

    /// Queues a decided height, among the records. Nothing waits for it.
    pub fn append(&mut self, record: DecidedRecord) {
        let _ = self.urgent.send(Urgent::Decided(record));
    }

    /// Queues a body.
    pub fn store(&mut self, body: Arc<Body>) {
        self.queue(body.raw.len(), Bulk::Body(body));
    }

    /// Queues a read behind everything queued before it.
    pub fn read(&mut self, request: ReadRequest) {
        self.queue(0, Bulk::Read(request));
    }

    /// Queues what may be given up, behind the bodies queued before it.
    pub fn release(&mut self, release: Release) {
        self.queue(0, Bulk::Release(release));
    }

    /// Bytes of bodies that wait to be written.
    #[must_use]
    pub fn backlog_bytes(&self) -> u64 {
        self.backlog.load(Ordering::Relaxed)
    }

    /// For whoever shows it.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        Backlog(Arc::clone(&self.backlog))
    }

    fn queue(&mut self, bytes: usize, item: Bulk) {
        self.backlog.fetch_add(bytes as u64, Ordering::Relaxed);
        let _ = self.bulk.send(item);
    }
}

/// The log thread's end.
pub struct LogThread {
    device: Box<dyn Device>,
    outlet: Box<dyn Outlet>,
    urgent: Receiver<Urgent>,
    bulk: Receiver<Bulk>,
    released: Released,
    backlog: Arc<AtomicU64>,
    releases_early: bool,
}

/// What is written and released together.
#[derive(Default)]
struct Group {
    urgent: Vec<Urgent>,
    bulk: Vec<Bulk>,
    bulk_bytes: usize,
}

/// Both ends.
///
/// The queues are not bounded themselves: what can be in them is. Records and sends come one round
/// at a time, and the machine thread takes no bulk events while [`LogQueue::backlog_bytes`] is high.
#[must_use]
pub fn log_thread(device: Box<dyn Device>, outlet: Box<dyn Outlet>) -> (LogQueue, LogThread) {
    let (urgent, urgent_in) = unbounded();
    let (bulk, bulk_in) = unbounded();
    let (barrier, released) = barrier();
    let backlog = Arc::new(AtomicU64::new(0));
    let queue = LogQueue { urgent, bulk, barrier, backlog: Arc::clone(&backlog) };
    let releases_early = mutants::active(Mutant::HostSendsEarly);
    let (urgent, bulk) = (urgent_in, bulk_in);
    (queue, LogThread { device, outlet, urgent, bulk, released, backlog, releases_early })
}

impl LogThread {
    /// Runs until the queue's other end is dropped and everything in it is written.
    ///
    /// # Errors
    /// The first failure of the disk. Nothing that waited for the failed group was released.
    pub fn run(mut self) -> Result<(), StorageError> {
        while let Some(group) = self.next_group() {
            self.carry_out(group)?;
        }
        Ok(())
    }

    /// Waits for something and takes everything queued, up to the bound on bulk.
    fn next_group(&mut self) -> Option<Group> {
        let mut group = Group::default();
        while group.is_empty() {
            if !self.wait(&mut group) {
                return None;
            }
        }
        group.urgent.extend(self.urgent.try_iter());
        while group.bulk_bytes < GROUP_BULK_BYTES_MAX
            && let Ok(item) = self.bulk.try_recv()
        {
            group.add_bulk(item);
        }
        Some(group)
    }

    /// Blocks until either queue has something; `false` when both have ended.
    fn wait(&mut self, group: &mut Group) -> bool {
        let mut select = Select::new();
        let urgent = select.recv(&self.urgent);
        select.recv(&self.bulk);
        let ready = select.select();
        let ended = if ready.index() == urgent {
            ready.recv(&self.urgent).map(|item| group.urgent.push(item)).is_err()
        } else {
            ready.recv(&self.bulk).map(|item| group.add_bulk(item)).is_err()
        };
        // Both ends are dropped together, but each queue may still hold something.
        if ended && self.urgent.is_empty() && self.bulk.is_empty() {
            return false;
        }
        if ended {
            self.silence_the_ended();
        }
        true
    }

    fn silence_the_ended(&mut self) {
        if self.urgent.is_empty() {
            self.urgent = never();
        } else if self.bulk.is_empty() {
            self.bulk = never();
        }
    }

    /// What is urgent first, with a sync of its own: a vote waits for its record's log and not for the
    /// bodies' as well.
    fn carry_out(&mut self, group: Group) -> Result<(), StorageError> {
        let Group { urgent, bulk, bulk_bytes } = group;
        if !urgent.is_empty() {
            self.write(urgent.iter().filter_map(Urgent::entry))?;
            if self.releases_early {
                self.release(urgent);
                self.device.commit()?;
            } else {
                self.device.commit()?;
                self.release(urgent);
            }
        }
        if !bulk.is_empty() {
            self.write(bulk.iter().filter_map(Bulk::entry))?;
            self.device.commit()?;
            self.answer(bulk);
            self.backlog.fetch_sub(bulk_bytes as u64, Ordering::Relaxed);
        }
        self.outlet.committed(self.device.stats());
        Ok(())
    }

    fn write(&mut self, mut entries: impl Iterator<Item = Entry>) -> Result<(), StorageError> {
        entries.try_for_each(|entry| self.device.write(&entry))
    }

    /// Durable: sends first, since somebody waits for them; the count last, so that nothing
    /// overtakes them.
    fn release(&mut self, urgent: Vec<Urgent>) {
        let mut count = 0;
        for item in urgent {
            match item {
                Urgent::Record(_) => count += 1,
                Urgent::Decided(_) => {}
                Urgent::Send(outgoing) => {
                    count += 1;
                    self.outlet.send(outgoing);
                }
                Urgent::Task(task) => {
                    count += 1;
                    self.outlet.execute(task);
                }
            }
        }
        self.released.done(count);
    }

    fn answer(&mut self, bulk: Vec<Bulk>) {
        for item in bulk {
            match item {
                Bulk::Body(body) => self.outlet.stored(body.reference),
                Bulk::Read(request) => self.outlet.read(request),
                Bulk::Release(_) => {}
            }
        }
    }
}

impl Urgent {
    fn entry(&self) -> Option<Entry> {
        match self {
            Self::Record(record) => Some(Entry::Record(record.clone())),
            Self::Decided(record) => Some(Entry::Decided(record.clone())),
            Self::Send(_) | Self::Task(_) => None,
        }
    }
}

impl Bulk {
    fn entry(&self) -> Option<Entry> {
        match self {
            Self::Body(body) => Some(Entry::Body(Arc::clone(body))),
            Self::Release(release) => Some(Entry::Release(release.clone())),
            Self::Read(_) => None,
        }
    }
}

impl Group {
    fn is_empty(&self) -> bool {
        self.urgent.is_empty() && self.bulk.is_empty()
    }

    fn add_bulk(&mut self, item: Bulk) {
        self.bulk_bytes += match &item {
            Bulk::Body(body) => body.raw.len(),
            Bulk::Read(_) | Bulk::Release(_) => 0,
        };
        self.bulk.push(item);
    }
}

#[cfg(test)]
mod tests;
