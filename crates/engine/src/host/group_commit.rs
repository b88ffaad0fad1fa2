//! The barrier's back half, beside the disk: groups of entries, and what waits for them.

use super::entries::{EntryClass, LogEntry};
use super::held_back::HeldBack;
use std::collections::VecDeque;

/// The queue in front of a log. `E` is what is written, `H` what is held back until then.
///
/// Entries queue up while a group is being synced; the next group takes them. One group is under
/// way at a time.
#[derive(Debug)]
pub struct GroupCommit<E, H> {
    /// Promises and what keeps its place among them.
    urgent: VecDeque<Queued<E>>,
    bulk: VecDeque<Queued<E>>,
    pushed: u64,
    under_way: Option<Group<E>>,
    /// The last group was urgent, in turns.
    bulk_next: bool,
    /// Promises that were pushed.
    promises: u64,
    held: HeldBack<H>,
}

/// An entry with its number among all that were pushed.
#[derive(Debug)]
struct Queued<E> {
    number: u64,
    entry: E,
}

#[derive(Debug)]
struct Group<E> {
    entries: Vec<E>,
    /// Promises that are durable when it is.
    promises: u64,
}

impl<E: LogEntry, H> GroupCommit<E, H> {
    pub(super) fn new(held: HeldBack<H>) -> Self {
        Self {
            urgent: VecDeque::new(),
            bulk: VecDeque::new(),
            pushed: 0,
            under_way: None,
            bulk_next: false,
            promises: 0,
            held,
        }
    }

    /// Queues an entry for the next group.
    pub fn push(&mut self, entry: E) {
        let class = entry.class();
        let queue = if class == EntryClass::Bulk { &mut self.bulk } else { &mut self.urgent };
        queue.push_back(Queued { number: self.pushed, entry });
        self.pushed += 1;
        if class == EntryClass::Barrier {
            self.promises += 1;
        }
    }

    /// Holds something back until all promises that were pushed before it are durable.
    pub fn hold(&mut self, item: H) {
        self.held.hold(self.promises, item);
    }

    /// Begins a group over everything that is queued, in the order in which it was pushed. `None`
    /// while one is under way, or when nothing is queued.
    pub fn begin(&mut self) -> Option<&[E]> {
        if self.under_way.is_some() || self.is_empty() {
            return None;
        }
        let entries = self.take_queued();
        Some(self.begin_group(entries, self.promises))
    }

    /// Begins a group as [`GroupCommit::begin`] does, but of either urgent entries or bulk: they
    /// take turns, and bulk stops at the first entry that brings it to `bulk_bytes_max`.
    ///
    /// A vote then waits for the group under way and its own, never for megabytes of bodies queued
    /// before it. That is no weaker than one queue: a body's durability is answered, not assumed.
    pub fn begin_in_turn(&mut self, bulk_bytes_max: usize) -> Option<&[E]> {
        if self.under_way.is_some() || self.is_empty() {
            return None;
        }
        let is_urgent = self.bulk.is_empty() || (!self.bulk_next && !self.urgent.is_empty());
        self.bulk_next = is_urgent;
        if is_urgent {
            let entries = self.urgent.drain(..).map(|queued| queued.entry).collect();
            return Some(self.begin_group(entries, self.promises));
        }
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while bytes < bulk_bytes_max
            && let Some(Queued { entry, .. }) = self.bulk.pop_front()
        {
            bytes += entry.bulk_bytes();
            entries.push(entry);
        }
        Some(self.begin_group(entries, self.held.durable()))
    }

    fn begin_group(&mut self, entries: Vec<E>, promises: u64) -> &[E] {
        &self.under_way.insert(Group { entries, promises }).entries
    }

    /// Takes the group under way as durable: passes what waited for it to `release`, in its order,
    /// and gives back the entries. Only after the last of them can anything leave at once again.
    ///
    /// # Panics
    /// When no group is under way.
    pub fn finish(&mut self, release: impl FnMut(H)) -> Vec<E> {
        let group = self.under_way.take().expect("one group is under way");
        self.held.durable_up_to(group.promises, release);
        group.entries
    }

    /// Releases what waits for no promise any more: it was held back while a group was being
    /// finished that was all it waited for. No sync is needed for it.
    pub fn release_ready(&mut self, release: impl FnMut(H)) {
        self.held.durable_up_to(self.held.durable(), release);
    }

    /// Takes what is queued and in no group, in the order in which it was pushed: of a host that
    /// loses its power.
    pub fn take_queued(&mut self) -> Vec<E> {
        let mut queued: Vec<_> = self.urgent.drain(..).chain(self.bulk.drain(..)).collect();
        queued.sort_unstable_by_key(|queued| queued.number);
        queued.into_iter().map(|queued| queued.entry).collect()
    }

    /// Returns `true` if nothing is queued for a next group.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.urgent.is_empty() && self.bulk.is_empty()
    }
}

#[cfg(test)]
mod tests;
