//! The log thread: group commit, and what it releases (`quorate_engine::host`).
//!
//! Urgent entries and bulk take turns, each with a sync of its own: a vote never waits for
//! megabytes of bodies queued before it.
//!
//! A small group that nothing is ahead of is written by the machine thread itself, where the device
//! says that this takes microseconds: waking the log thread for it, and being woken for the answer,
//! takes longer ([`LogQueue::submit`], ADR 49).
//!
//! Any error is final (★): nothing behind it is released, the thread ends, the validator stops.
//! A write that finds no room is none: the device waits for it, and with it what is behind.

use parking_lot::{Condvar, Mutex};
use quorate_engine::Frame;
use quorate_engine::host::{
    Barrier, EntryClass, GROUP_BULK_BYTES_MAX, Gated, GroupCommit, LogEntry, barrier,
};
use quorate_storage::{Journal, JournalStats, StorageError};
use quorate_types::machine::{Entry, ReadRequest, Task};
use quorate_types::{BodyRef, Lane, Recipients};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most bytes of bodies in a group that the machine thread writes itself.
const AT_ONCE_BYTES_MAX: usize = 16 * 1024;

/// A message on its way, encoded once for all that it goes to.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Peers or the client that it goes to.
    pub to: Recipients,
    /// Stream that it goes in.
    pub lane: Lane,
    /// Encoded message with its length.
    pub frame: Frame,
}

/// A device that the log thread writes on: a [`Journal`], or a slow or broken one in tests.
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

    /// Counts of what was done since it was opened.
    fn stats(&self) -> JournalStats;

    /// Returns `true` if a group of so many bytes is a matter of microseconds, and finds room.
    fn is_quick(&self, _bytes: usize) -> bool {
        false
    }

    /// Ends it, after the last group.
    ///
    /// # Errors
    /// When the disk failed.
    fn close(&mut self) -> Result<(), StorageError> {
        Ok(())
    }
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

    fn is_quick(&self, bytes: usize) -> bool {
        Self::is_quick(self, bytes)
    }
}

/// Outlet of the log thread: the lanes and the other threads.
pub trait Outlet: Send {
    /// Hands a message to its lanes.
    fn send(&self, outgoing: Outgoing);
    /// Hands a task to the execution thread.
    fn execute(&self, task: Task);
    /// Tells the machine that a body is durable.
    fn stored(&self, body: BodyRef);
    /// Hands a read to its thread; everything written before it can be read.
    fn read(&self, request: ReadRequest);
    /// Notes that a group is durable.
    fn committed(&self, stats: JournalStats);
}

/// Bytes that wait for the log thread. Cloning shares the count.
#[derive(Clone, Debug)]
pub struct Backlog(Arc<AtomicU64>);

impl Backlog {
    /// Bytes of bodies that wait to be written.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Something for the log thread, in the machine's order.
enum Queued {
    Entry(LogItem),
    Held(Leaving),
}

/// An entry, or a read of what was written before it.
enum LogItem {
    Write(Entry),
    Read(ReadRequest),
}

/// A send or a task that waits for records, encoded already.
enum Leaving {
    Send(Outgoing),
    Task(Task),
}

/// What both threads share: the queue, and whose turn it is to write.
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    writer: Mutex<LogWriter>,
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Queued>,
    /// Either thread writes what it took off the queue: what comes now is behind that.
    is_writing: bool,
    /// Nothing comes any more.
    is_closed: bool,
    /// What the machine thread's writing failed of, for the log thread to end with.
    failed: Option<StorageError>,
}

/// The machine thread's end. When it is dropped, the log thread finishes what is queued and ends.
pub struct LogQueue {
    shared: Arc<Shared>,
    barrier: Barrier,
    backlog: Arc<AtomicU64>,
}

impl LogQueue {
    /// The front half of the barrier that the log thread opens.
    pub fn barrier(&mut self) -> &mut Barrier {
        &mut self.barrier
    }

    /// Queues an entry for the next group.
    pub fn write(&mut self, entry: Entry) {
        self.backlog.fetch_add(entry.bulk_bytes() as u64, Ordering::Relaxed);
        self.queue(Queued::Entry(LogItem::Write(entry)));
    }

    /// Queues what must wait for the records before it (★).
    pub fn hold(&mut self, gated: Gated) {
        let leaving = match gated {
            Gated::Send { to, lane, message } => {
                Leaving::Send(Outgoing { to, lane, frame: message.frame() })
            }
            Gated::Task(task) => Leaving::Task(task),
        };
        self.queue(Queued::Held(leaving));
    }

    /// Queues a read behind everything queued before it.
    pub fn read(&mut self, request: ReadRequest) {
        self.queue(Queued::Entry(LogItem::Read(request)));
    }

    /// Bytes of bodies that wait to be written.
    #[must_use]
    pub fn backlog_bytes(&self) -> u64 {
        self.backlog.load(Ordering::Relaxed)
    }

    /// Handle on the bytes that wait, for metrics.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        Backlog(Arc::clone(&self.backlog))
    }

    /// Has written what was queued since the last time: by this thread, if it `may_write`, nothing
    /// is ahead of it and it is quick, or else by the log thread. To be called before this thread
    /// waits for anything.
    pub fn submit(&mut self, may_write: bool) {
        let mut queue = self.shared.queue.lock();
        if queue.items.is_empty() {
            return;
        }
        if !may_write || queue.is_writing || !self.shared.is_quick(&queue.items) {
            drop(queue);
            self.shared.changed.notify_one();
            return;
        }
        queue.is_writing = true;
        let items = std::mem::take(&mut queue.items);
        drop(queue);
        let written = self.shared.writer.lock().write_at_once(items);
        let mut queue = self.shared.queue.lock();
        match written {
            Ok(()) => queue.is_writing = false,
            // It stays this thread's turn: nothing more is written.
            Err(error) => {
                queue.failed = Some(error);
                self.shared.changed.notify_one();
            }
        }
    }

    fn queue(&mut self, queued: Queued) {
        self.shared.queue.lock().items.push_back(queued);
    }
}

impl Drop for LogQueue {
    fn drop(&mut self) {
        self.shared.queue.lock().is_closed = true;
        self.shared.changed.notify_one();
    }
}

impl Shared {
    /// Returns `true` if these can be written while somebody waits.
    fn is_quick(&self, items: &VecDeque<Queued>) -> bool {
        let is_small = |queued: &Queued| {
            !matches!(queued, Queued::Entry(LogItem::Write(Entry::Release(_)) | LogItem::Read(_)))
        };
        let bytes = items.iter().map(Queued::bulk_bytes).sum();
        bytes <= AT_ONCE_BYTES_MAX
            && items.iter().all(is_small)
            && self.writer.try_lock().is_some_and(|writer| writer.device.is_quick(bytes))
    }

    /// Waits until something is queued and it is the log thread's turn; takes it. `None` when
    /// nothing comes any more.
    fn begin_turn(&self) -> Result<Option<VecDeque<Queued>>, StorageError> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(error) = queue.failed.take() {
                return Err(error);
            }
            if !queue.is_writing && !queue.items.is_empty() {
                queue.is_writing = true;
                return Ok(Some(std::mem::take(&mut queue.items)));
            }
            if queue.is_closed && queue.items.is_empty() {
                return Ok(None);
            }
            self.changed.wait(&mut queue);
        }
    }

    /// Takes what was queued meanwhile.
    fn take_more(&self) -> VecDeque<Queued> {
        std::mem::take(&mut self.queue.lock().items)
    }

    fn end_turn(&self) {
        self.queue.lock().is_writing = false;
    }
}

/// The log thread's end.
pub struct LogThread {
    shared: Arc<Shared>,
}

/// Writer of groups, in the hands of the thread whose turn it is.
struct LogWriter {
    device: Box<dyn Device>,
    outlet: Box<dyn Outlet>,
    log: GroupCommit<LogItem, Leaving>,
    backlog: Arc<AtomicU64>,
}

/// Both ends of the queue to the log.
///
/// The queue is not bounded itself: what can be in it is. Records and sends come one round at a
/// time, and the machine thread takes no bulk events while [`LogQueue::backlog_bytes`] is high.
#[must_use]
pub fn log_thread(device: Box<dyn Device>, outlet: Box<dyn Outlet>) -> (LogQueue, LogThread) {
    let (barrier, log) = barrier();
    let backlog = Arc::new(AtomicU64::new(0));
    let writer = LogWriter { device, outlet, log, backlog: Arc::clone(&backlog) };
    let (queue, changed) = (Mutex::default(), Condvar::new());
    let shared = Arc::new(Shared { queue, changed, writer: Mutex::new(writer) });
    (LogQueue { shared: Arc::clone(&shared), barrier, backlog }, LogThread { shared })
}

impl LogThread {
    /// Runs until the queue's other end is dropped and everything in it is written.
    ///
    /// # Errors
    /// The first failure of the disk. Nothing that waited for the failed group was released.
    pub fn run(self) -> Result<(), StorageError> {
        while let Some(mut queued) = self.shared.begin_turn()? {
            while self.write(queued)? {
                queued = self.shared.take_more();
            }
            self.shared.end_turn();
        }
        self.shared.writer.lock().device.close()
    }

    /// Writes one group; `true` if there is more.
    fn write(&self, queued: VecDeque<Queued>) -> Result<bool, StorageError> {
        let mut writer = self.shared.writer.lock();
        writer.take(queued);
        writer.write_group()?;
        Ok(!writer.log.is_empty())
    }
}

impl LogWriter {
    fn take(&mut self, queued: VecDeque<Queued>) {
        for item in queued {
            match item {
                Queued::Entry(item) => self.log.push(item),
                Queued::Held(leaving) => self.log.hold(leaving),
            }
        }
        let outlet = &self.outlet;
        self.log.release_ready(|leaving| leaving.leave(outlet.as_ref()));
    }

    /// Writes what was queued as one group.
    fn write_at_once(&mut self, queued: VecDeque<Queued>) -> Result<(), StorageError> {
        self.take(queued);
        match self.log.begin() {
            Some(items) => write(items, self.device.as_mut())?,
            None => return Ok(()),
        }
        self.finish_group()
    }

    fn write_group(&mut self) -> Result<(), StorageError> {
        match self.log.begin_in_turn(GROUP_BULK_BYTES_MAX) {
            Some(items) => write(items, self.device.as_mut())?,
            None => return Ok(()),
        }
        self.finish_group()
    }

    /// Makes the group durable that was written, and releases what waited for it.
    fn finish_group(&mut self) -> Result<(), StorageError> {
        self.device.commit()?;
        let outlet = self.outlet.as_ref();
        let written = self.log.finish(|leaving| leaving.leave(outlet));
        let mut bytes = 0;
        for item in written {
            bytes += item.bulk_bytes() as u64;
            match item {
                LogItem::Write(Entry::Body(body)) => outlet.stored(body.reference),
                LogItem::Write(_) => {}
                LogItem::Read(request) => outlet.read(request),
            }
        }
        self.backlog.fetch_sub(bytes, Ordering::Relaxed);
        outlet.committed(self.device.stats());
        Ok(())
    }
}

fn write(items: &[LogItem], device: &mut dyn Device) -> Result<(), StorageError> {
    let entries = items.iter().filter_map(|item| match item {
        LogItem::Write(entry) => Some(entry),
        LogItem::Read(_) => None,
    });
    entries.into_iter().try_for_each(|entry| device.write(entry))
}

impl Queued {
    fn bulk_bytes(&self) -> usize {
        match self {
            Self::Entry(item) => item.bulk_bytes(),
            Self::Held(_) => 0,
        }
    }
}

impl Leaving {
    fn leave(self, outlet: &dyn Outlet) {
        match self {
            Self::Send(outgoing) => outlet.send(outgoing),
            Self::Task(task) => outlet.execute(task),
        }
    }
}

impl LogEntry for LogItem {
    fn class(&self) -> EntryClass {
        match self {
            Self::Write(entry) => entry.class(),
            Self::Read(_) => EntryClass::Bulk,
        }
    }

    fn bulk_bytes(&self) -> usize {
        match self {
            Self::Write(entry) => entry.bulk_bytes(),
            Self::Read(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests;
