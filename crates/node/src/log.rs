//! The log thread: group commit, and what it releases (`quorate_engine::host`).
//!
//! Urgent entries and bulk take turns, each with a sync of its own: a vote never waits for
//! megabytes of bodies queued before it.
//!
//! Any error is final (★): nothing behind it is released, the thread ends, the validator stops.
//! A write that finds no room is none: the device waits for it, and with it what is behind.

use crate::receiving::next_of;
use crossbeam_channel::{Receiver, Sender, unbounded};
use quorate_engine::Frame;
use quorate_engine::host::{
    Barrier, EntryClass, GROUP_BULK_BYTES_MAX, Gated, GroupCommit, LogEntry, barrier,
};
use quorate_storage::{Journal, JournalStats, StorageError};
use quorate_types::machine::{Entry, ReadRequest, Task};
use quorate_types::{BodyRef, Lane, Recipients};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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

/// The machine thread's end. When it is dropped, the log thread finishes what is queued and ends.
pub struct LogQueue {
    queue: Sender<Queued>,
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

    fn queue(&mut self, queued: Queued) {
        // A send fails only when the thread has stopped the validator already.
        let _ = self.queue.send(queued);
    }
}

/// The log thread's end.
pub struct LogThread {
    device: Box<dyn Device>,
    outlet: Box<dyn Outlet>,
    queued: Receiver<Queued>,
    log: GroupCommit<LogItem, Leaving>,
    backlog: Arc<AtomicU64>,
}

/// Both ends of the queue to the log.
///
/// The queue is not bounded itself: what can be in it is. Records and sends come one round at a
/// time, and the machine thread takes no bulk events while [`LogQueue::backlog_bytes`] is high.
#[must_use]
pub fn log_thread(device: Box<dyn Device>, outlet: Box<dyn Outlet>) -> (LogQueue, LogThread) {
    let (queue, queued) = unbounded();
    let (barrier, log) = barrier();
    let backlog = Arc::new(AtomicU64::new(0));
    let thread = LogThread { device, outlet, queued, log, backlog: Arc::clone(&backlog) };
    (LogQueue { queue, barrier, backlog }, thread)
}

impl LogThread {
    /// Runs until the queue's other end is dropped and everything in it is written.
    ///
    /// # Errors
    /// The first failure of the disk. Nothing that waited for the failed group was released.
    pub fn run(mut self) -> Result<(), StorageError> {
        while self.fill() {
            self.write_group()?;
        }
        self.device.close()
    }

    /// Takes everything queued, and waits for something where there is nothing to write; `false`
    /// when that never comes.
    fn fill(&mut self) -> bool {
        if self.log.is_empty() {
            let Some(first) = next_of(&self.queued) else { return false };
            take(&mut self.log, first);
        }
        self.queued.try_iter().for_each(|queued| take(&mut self.log, queued));
        let outlet = &self.outlet;
        self.log.release_ready(|leaving| leaving.leave(outlet.as_ref()));
        true
    }

    fn write_group(&mut self) -> Result<(), StorageError> {
        let Some(items) = self.log.begin_in_turn(GROUP_BULK_BYTES_MAX) else { return Ok(()) };
        for item in items {
            if let LogItem::Write(entry) = item {
                self.device.write(entry)?;
            }
        }
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

fn take(log: &mut GroupCommit<LogItem, Leaving>, queued: Queued) {
    match queued {
        Queued::Entry(item) => log.push(item),
        Queued::Held(leaving) => log.hold(leaving),
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
