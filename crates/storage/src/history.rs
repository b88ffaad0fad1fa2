//! The state as earlier heights left it: what keys were before they changed.
//!
//! ```text
//! height        4        5        6        7 (executed)
//! key a                  1 ─▶ 2            2 ─▶ 3
//! kept                   a@5 = 1           a@7 = 2
//! ```
//!
//! The value of `a` after height 5 is what is kept of its next change, at 7; after height 7, with
//! no later change, what the state has. So a state is read at any height from the oldest on, for
//! one look-up a key, and what never changes takes no room.
//!
//! Beside what was, a history keeps an index: entries by which the service's reader finds things of
//! each height again. They come and go with the heights that they are of.
//!
//! A history is a host's own affair: it is in no snapshot and under no root, members differ in how
//! much they keep, and one that fails ends without stopping the validator. It begins with the
//! state that it finds, and again wherever it lacks a height.

#[cfg(feature = "history")]
mod disk;

#[cfg(feature = "history")]
pub use disk::DiskHistory;

use parking_lot::RwLock;
use quorate_types::Height;
use quorate_types::service::{
    Index, IndexEntries, KeyRange, ScanOrder, State, StateError, Visitor,
};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;
use std::sync::Arc;

/// What a history keeps at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryConfig {
    /// Heights whose states are known, before the newest; `None`: all since it began.
    pub heights_max: Option<u64>,
    /// Bytes on disk; `None`: any number. [`HistoryConfig::HEIGHTS_MIN`] heights are kept in any
    /// case.
    pub bytes_max: Option<u64>,
}

impl HistoryConfig {
    /// Fewest heights that a history keeps, whatever they take.
    pub const HEIGHTS_MIN: u64 = 128;
}

/// Keys that changed at a height, each with the value that it had; `None` where it had none.
pub type Before = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// Values that keys of the state had, and the index of the same heights. Shared: an executor writes
/// it, readers on any thread read.
pub trait StateHistory: Index + Send + Sync + Debug {
    /// The oldest height whose state is known; `None` where none is.
    fn oldest(&self) -> Option<Height>;

    /// The state is that of this height: what is kept goes on from there, or begins there.
    fn begin(&self, height: Height);

    /// Keeps what the next height changed, and what it added to the index. One that is known
    /// already, as after a crash, is left as it is.
    fn record(&self, height: Height, before: Before, index: IndexEntries);

    /// Makes what was recorded durable. The state is made durable after it: so what a crash leaves
    /// of a history lacks no height of the state.
    fn make_durable(&self);

    /// What this key was before it first changed after `height`; `None` where it did not change.
    ///
    /// # Errors
    /// When it cannot be read.
    fn before_change(&self, key: &[u8], height: Height) -> Result<Option<Kept>, StateError>;

    /// Lets go of the disk: nothing is known from then on.
    fn close(&self);
}

/// A value that a key had; `None` where it had none.
pub type Kept = Option<Vec<u8>>;

/// The state as of a height that is over. It is read by key: of ranges it knows nothing.
pub(crate) struct PastState<'a> {
    pub(crate) newest: &'a dyn State,
    pub(crate) history: &'a dyn StateHistory,
    pub(crate) height: Height,
}

impl State for PastState<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        match self.history.before_change(key, self.height)? {
            Some(before) => Ok(before),
            None => self.newest.get(key),
        }
    }

    fn put(&mut self, _: &[u8], _: &[u8]) -> Result<(), StateError> {
        Err(StateError("a past state cannot be written".into()))
    }

    fn delete(&mut self, _: &[u8]) -> Result<(), StateError> {
        Err(StateError("a past state cannot be written".into()))
    }

    fn scan(&self, _: KeyRange<'_>, _: &mut Visitor<'_>) -> Result<(), StateError> {
        Err(StateError("a past state is read by key".into()))
    }
}

/// The end of a history that an executor wrote: the disk is free for the next one.
#[derive(Debug)]
pub(crate) struct Writing(pub(crate) Arc<dyn StateHistory>);

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What was recorded and is not durable yet: by key and height, and the index's.
#[derive(Debug, Default)]
struct Pending(BTreeMap<Vec<u8>, Kept>);

impl Pending {
    fn add(&mut self, height: Height, before: Before, index: IndexEntries) {
        let entries = before.into_iter().map(|(key, value)| (entry_key(&key, height), value));
        self.0.extend(entries);
        self.0.extend(index.into_iter().map(|(key, value)| (index_key(&key), Some(value))));
    }

    /// Entries of the index with keys between these, in an order.
    fn indexed(&self, (from, to): &IndexBounds, order: ScanOrder) -> IndexScan<'_> {
        let bounds = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
        let entries = self.0.range::<[u8], _>(bounds);
        let entry = |(key, value): (&Vec<u8>, &Kept)| {
            let value = value.clone().unwrap_or_default();
            Ok((key[INDEX.len()..].to_vec(), value))
        };
        match order {
            ScanOrder::Forward => Box::new(entries.map(entry)),
            ScanOrder::Backward => Box::new(entries.rev().map(entry)),
        }
    }

    fn before_change(&self, key: &[u8], height: Height) -> Option<Kept> {
        let (from, to) = entries_after(key, height);
        self.0.range(from..=to).next().map(|(_, value)| value.clone())
    }
}

/// Beginning of the keys of the index: no key of the state has so many bytes.
const INDEX: [u8; 4] = [0xff; 4];

fn index_key(key: &[u8]) -> Vec<u8> {
    [&INDEX, key].concat()
}

/// First key of a part of the index, and the first beyond it.
type IndexBounds = (Vec<u8>, Vec<u8>);

/// Bounds of these keys of the index; `None` where no key is among them.
fn index_bounds(keys: KeyRange<'_>) -> Option<IndexBounds> {
    keys.bounds()?;
    // No key of a service begins with so many bytes of ones.
    let end = || [&INDEX[..], &[0xff; 64]].concat();
    Some((index_key(keys.from), keys.to.map_or_else(end, index_key)))
}

/// Entries of the index, in order.
type IndexScan<'a> = Box<dyn Iterator<Item = Result<(Vec<u8>, Vec<u8>), StateError>> + 'a>;

/// Shows the entries of several scans in one order, the later scan's where they have the same key.
fn show_merged(
    scans: Vec<IndexScan<'_>>,
    order: ScanOrder,
    visit: &mut Visitor<'_>,
) -> Result<(), StateError> {
    let mut scans: Vec<_> = scans.into_iter().map(Iterator::peekable).collect();
    loop {
        let mut first: Option<Vec<u8>> = None;
        for scan in &mut scans {
            let Some(Ok((key, _))) = scan.peek() else { continue };
            if first.as_ref().is_none_or(|first| comes_before(key, first, order)) {
                first = Some(key.clone());
            }
        }
        let mut newest = None;
        for scan in &mut scans {
            let is_next = |entry: &Result<(Vec<u8>, Vec<u8>), _>| {
                entry.as_ref().map_or(true, |(key, _)| Some(key) == first.as_ref())
            };
            newest = scan.next_if(is_next).transpose()?.or(newest);
        }
        let Some((key, value)) = newest else { return Ok(()) };
        if visit(&key, &value).is_break() {
            return Ok(());
        }
    }
}

fn comes_before(key: &[u8], other: &[u8], order: ScanOrder) -> bool {
    let wanted = match order {
        ScanOrder::Forward => Ordering::Less,
        ScanOrder::Backward => Ordering::Greater,
    };
    key.cmp(other) == wanted
}

/// Key of what `key` was before a height: no key's entries lie between those of another.
fn entry_key(key: &[u8], height: Height) -> Vec<u8> {
    let length = key.len() as u64;
    [&length.to_be_bytes()[4..], key, &height.0.to_be_bytes()].concat()
}

/// The first and the last entry that a key may have of changes after `height`.
fn entries_after(key: &[u8], height: Height) -> (Vec<u8>, Vec<u8>) {
    (entry_key(key, height.next()), entry_key(key, Height(u64::MAX)))
}

/// A history in memory: all of it, as long as it is there.
#[derive(Debug, Default)]
pub struct MemoryHistory(RwLock<InMemory>);

#[derive(Debug, Default)]
struct InMemory {
    oldest: Option<Height>,
    newest: Height,
    entries: Pending,
}

impl StateHistory for MemoryHistory {
    fn oldest(&self) -> Option<Height> {
        self.0.read().oldest
    }

    fn begin(&self, height: Height) {
        let mut inner = self.0.write();
        if inner.oldest.is_none_or(|oldest| oldest > height || inner.newest < height) {
            *inner = InMemory { oldest: Some(height), newest: height, entries: Pending::default() };
        }
    }

    fn record(&self, height: Height, before: Before, index: IndexEntries) {
        let mut inner = self.0.write();
        if height > inner.newest {
            inner.newest = height;
            inner.entries.add(height, before, index);
        }
    }

    fn make_durable(&self) {}

    fn before_change(&self, key: &[u8], height: Height) -> Result<Option<Kept>, StateError> {
        Ok(self.0.read().entries.before_change(key, height))
    }

    fn close(&self) {
        *self.0.write() = InMemory::default();
    }
}

impl Index for MemoryHistory {
    fn known_after(&self) -> Option<Height> {
        self.oldest()
    }

    fn scan_index(
        &self,
        keys: KeyRange<'_>,
        order: ScanOrder,
        visit: &mut Visitor<'_>,
    ) -> Result<(), StateError> {
        let Some(bounds) = index_bounds(keys) else { return Ok(()) };
        show_merged(vec![self.0.read().entries.indexed(&bounds, order)], order, visit)
    }
}

#[cfg(test)]
mod tests;
