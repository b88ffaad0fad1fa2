//! Group commit, and what waits for it: the host's side of the barrier (★, `types::machine`).
//!
//! Entries queue up while a group is being synced; the next group takes them. A send in a lane that
//! waits for records is held until the records persisted before it are durable.

use quorate_engine::Message;
use quorate_storage::Entry;
use quorate_types::machine::{DecidedRecord, Record, Release, Task};
use quorate_types::{Body, BodyRef, Recipients};
use std::collections::VecDeque;
use std::sync::Arc;

/// What waits for records to be durable.
pub(crate) enum Held {
    /// A message that may promise something.
    Send(Recipients, Box<Message>),
    /// Something for the execution.
    Task(Task),
}

/// The queue in front of a log. `S` is what is held back.
#[derive(Debug)]
pub(crate) struct Gate<S> {
    queued: VecDeque<Entry>,
    syncing: Option<Group>,
    /// Records asked for, and how many of them are durable.
    persisted: u64,
    durable: u64,
    /// Sends with the number of the record that they wait for.
    held: VecDeque<(u64, S)>,
    /// The last group was of records, in turns.
    bulk_next: bool,
}

/// What the sync under way makes durable.
#[derive(Debug)]
struct Group {
    persisted: u64,
    bodies: Vec<BodyRef>,
}

/// What a group that became durable lets go.
#[derive(Debug)]
pub(crate) struct Opened<S> {
    /// Sends, in their order.
    pub(crate) released: Vec<S>,
    /// Bodies that are stored now.
    pub(crate) stored: Vec<BodyRef>,
}

impl<S> Gate<S> {
    pub(crate) fn persist(&mut self, record: Record) {
        self.persisted += 1;
        self.queued.push_back(Entry::Record(record));
    }

    pub(crate) fn append(&mut self, record: DecidedRecord) {
        self.queued.push_back(Entry::Decided(record));
    }

    pub(crate) fn store(&mut self, body: Arc<Body>) {
        self.queued.push_back(Entry::Body(body));
    }

    pub(crate) fn release(&mut self, release: Release) {
        self.queued.push_back(Entry::Release(release));
    }

    /// Holds back what waits for records, or gives it back to leave at once.
    pub(crate) fn hold(&mut self, waiting: S) -> Option<S> {
        if self.persisted > self.durable {
            self.held.push_back((self.persisted, waiting));
            return None;
        }
        Some(waiting)
    }

    /// Begins a group over everything that is queued, unless one is under way or nothing is.
    pub(crate) fn begin(&mut self) -> Option<Vec<Entry>> {
        if self.syncing.is_some() || self.queued.is_empty() {
            return None;
        }
        let entries = self.take_queued();
        Some(self.begin_group(entries, self.persisted))
    }

    /// As [`Gate::begin`], but records and decided heights have groups of their own, and in turn with
    /// them bodies, of about so many bytes at most: a vote waits for its record's sync and not for
    /// megabytes (`node::log`).
    pub(crate) fn begin_in_turn(&mut self, bulk_bytes_max: usize) -> Option<Vec<Entry>> {
        if self.syncing.is_some() || self.queued.is_empty() {
            return None;
        }
        let (bulk, urgent): (Vec<_>, Vec<_>) = self.take_queued().into_iter().partition(is_bulk);
        let bulk_turn = urgent.is_empty() || (self.bulk_next && !bulk.is_empty());
        self.bulk_next = !bulk_turn;
        if !bulk_turn {
            self.queued.extend(bulk);
            return Some(self.begin_group(urgent, self.persisted));
        }
        let mut bytes = 0;
        let fits = |entry: &Entry| {
            let fits = bytes < bulk_bytes_max;
            if let Entry::Body(body) = entry {
                bytes += body.raw.len();
            }
            fits
        };
        let count = bulk.iter().map(fits).take_while(|fits| *fits).count();
        let mut bulk = bulk;
        let left = bulk.split_off(count);
        self.queued.extend(urgent.into_iter().chain(left));
        Some(self.begin_group(bulk, self.durable))
    }

    /// `persisted`: how many records are durable when it is.
    fn begin_group(&mut self, entries: Vec<Entry>, persisted: u64) -> Vec<Entry> {
        let bodies = entries.iter().filter_map(|entry| match entry {
            Entry::Body(body) => Some(body.reference),
            _ => None,
        });
        self.syncing = Some(Group { persisted, bodies: bodies.collect() });
        entries
    }

    /// What is queued and in no group; it leaves the queue.
    pub(crate) fn take_queued(&mut self) -> Vec<Entry> {
        self.queued.drain(..).collect()
    }

    /// The group under way is durable.
    ///
    /// # Panics
    /// When none is under way.
    pub(crate) fn finish(&mut self) -> Opened<S> {
        let group = self.syncing.take().expect("one sync is under way");
        self.durable = group.persisted;
        let ready = self.held.partition_point(|(record, _)| *record <= group.persisted);
        let released = self.held.drain(..ready).map(|(_, send)| send).collect();
        Opened { released, stored: group.bodies }
    }
}

impl<S> Default for Gate<S> {
    fn default() -> Self {
        Self {
            queued: VecDeque::new(),
            syncing: None,
            persisted: 0,
            durable: 0,
            held: VecDeque::new(),
            bulk_next: false,
        }
    }
}

fn is_bulk(entry: &Entry) -> bool {
    matches!(entry, Entry::Body(_) | Entry::Release(_))
}

#[cfg(test)]
mod tests;
