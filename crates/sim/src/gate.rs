//! Group commit, and what waits for it: the host's side of the barrier (★, `types::machine`).
//!
//! Entries queue up while a group is being synced; the next group takes them. A send in a lane that
//! waits for records is held until the records persisted before it are durable.

use quorate_storage::Entry;
use quorate_types::machine::{DecidedRecord, Record, Release};
use quorate_types::{Body, BodyRef, Lane};
use std::collections::VecDeque;
use std::sync::Arc;

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

    /// Holds a send back, or gives it back to leave at once.
    pub(crate) fn hold(&mut self, lane: Lane, send: S) -> Option<S> {
        if self.persisted > self.durable && lane.waits_for_barrier() {
            self.held.push_back((self.persisted, send));
            return None;
        }
        Some(send)
    }

    /// Begins a group over everything that is queued, unless one is under way or nothing is.
    pub(crate) fn begin(&mut self) -> Option<Vec<Entry>> {
        self.begin_bounded(usize::MAX)
    }

    /// As [`Gate::begin`], but once the group's bodies have so many bytes the others wait for the next
    /// one. Records do not wait for bodies.
    pub(crate) fn begin_bounded(&mut self, bytes_max: usize) -> Option<Vec<Entry>> {
        if self.syncing.is_some() || self.queued.is_empty() {
            return None;
        }
        let mut bytes = 0;
        let mut entries = Vec::with_capacity(self.queued.len());
        let mut left = VecDeque::new();
        for entry in self.take_queued() {
            match &entry {
                Entry::Body(_) if bytes >= bytes_max => left.push_back(entry),
                Entry::Body(body) => {
                    bytes += body.raw.len();
                    entries.push(entry);
                }
                _ => entries.push(entry),
            }
        }
        self.queued = left;
        let bodies = entries.iter().filter_map(|entry| match entry {
            Entry::Body(body) => Some(body.reference),
            _ => None,
        });
        self.syncing = Some(Group { persisted: self.persisted, bodies: bodies.collect() });
        Some(entries)
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
        }
    }
}
