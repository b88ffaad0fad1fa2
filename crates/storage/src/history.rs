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
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::iter::Peekable;
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

    /// Keeps what the next height changed, and what it added to the index; in memory, so that
    /// whoever executes waits for no disk. One that is known already, as after a crash, is left as
    /// it is.
    fn record(&self, height: Height, before: Before, index: IndexEntries);

    /// Bytes of memory, about, of what was recorded since it was last begun to be made durable.
    fn pending_bytes(&self) -> u64;

    /// Makes what was recorded durable; on any thread, one at a time. The state is made durable
    /// after it: so what a crash leaves of a history lacks no height of the state.
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

/// What a height changed, and what it added to the index.
#[derive(Debug)]
struct Recorded {
    height: Height,
    before: Before,
    index: IndexEntries,
}

impl Recorded {
    /// Bytes of memory that it takes, about.
    fn bytes(&self) -> u64 {
        let value = |value: &Kept| value.as_ref().map_or(0, Vec::len);
        let before = self.before.iter().map(|(key, kept)| key.len() + value(kept));
        let index = self.index.iter().map(|(key, value)| key.len() + value.len());
        before.chain(index).map(|bytes| bytes as u64 + RECORDED_BYTES).sum()
    }
}

/// Bytes of memory that an entry takes beside its key and value.
const RECORDED_BYTES: u64 = 64;

/// Heights that were recorded and are not durable yet, in their order. Nobody changes one, so that
/// whoever reads or writes them holds up nobody who adds one. Cheap to clone.
#[derive(Clone, Debug, Default)]
struct Pending {
    heights: VecDeque<Arc<Recorded>>,
    /// Bytes of those that nobody has begun to write.
    bytes: u64,
}

impl Pending {
    fn add(&mut self, recorded: Recorded) {
        self.bytes += recorded.bytes();
        self.heights.push_back(Arc::new(recorded));
    }

    /// All of it, to be written. It stays until it is forgotten.
    fn begin_writing(&mut self) -> Self {
        self.bytes = 0;
        self.clone()
    }

    /// Entries of the index with keys in this range, of each height that has some.
    fn indexed<'a>(
        &'a self,
        keys: KeyRange<'a>,
        order: ScanOrder,
    ) -> impl Iterator<Item = IndexScan<'a>> {
        let bounds = keys.bounds();
        let of = move |recorded: &'a Arc<Recorded>| {
            let mut entries = recorded.index.range::<[u8], _>(bounds?).peekable();
            entries.peek()?;
            let entries = entries.map(|(key, value)| Ok((key.clone(), value.clone())));
            let scan: IndexScan<'a> = match order {
                ScanOrder::Forward => Box::new(entries),
                ScanOrder::Backward => Box::new(entries.rev()),
            };
            Some(scan)
        };
        self.heights.iter().filter_map(of)
    }

    fn before_change(&self, key: &[u8], height: Height) -> Option<Kept> {
        let later = self.heights.partition_point(|recorded| recorded.height <= height);
        self.heights.range(later..).find_map(|recorded| recorded.before.get(key).cloned())
    }
}

/// Entries of an index, in order.
type IndexScan<'a> = Box<dyn Iterator<Item = Result<(Vec<u8>, Vec<u8>), StateError>> + 'a>;

/// Shows the entries of several scans in one order, the last scan's where they have the same key.
fn show_merged(
    scans: Vec<IndexScan<'_>>,
    order: ScanOrder,
    visit: &mut Visitor<'_>,
) -> Result<(), StateError> {
    let mut scans: Vec<_> = scans.into_iter().map(Iterator::peekable).collect();
    while let Some(first) = first_of(&mut scans, order) {
        let Some((key, mut value)) = scans[first].next().transpose()? else { break };
        for later in &mut scans[first + 1..] {
            let is_same = |entry: &Result<(Vec<u8>, Vec<u8>), StateError>| {
                entry.as_ref().is_ok_and(|(other, _)| *other == key)
            };
            if let Some(Ok((_, newer))) = later.next_if(is_same) {
                value = newer;
            }
        }
        if visit(&key, &value).is_break() {
            break;
        }
    }
    Ok(())
}

/// The scan that has what comes first, or an error; of those with the same key the first. `None`
/// where all have ended.
fn first_of(scans: &mut [Peekable<IndexScan<'_>>], order: ScanOrder) -> Option<usize> {
    let mut first: Option<(usize, &[u8])> = None;
    for (index, scan) in scans.iter_mut().enumerate() {
        let Some(next) = scan.peek() else { continue };
        let Ok((key, _)) = next else { return Some(index) };
        if first.is_none_or(|(_, first)| comes_before(key, first, order)) {
            first = Some((index, key));
        }
    }
    first.map(|(index, _)| index)
}

fn comes_before(key: &[u8], other: &[u8], order: ScanOrder) -> bool {
    let wanted = match order {
        ScanOrder::Forward => Ordering::Less,
        ScanOrder::Backward => Ordering::Greater,
    };
    key.cmp(other) == wanted
}

/// A history in memory: all of it, as long as it is there.
#[derive(Debug, Default)]
pub struct MemoryHistory(RwLock<InMemory>);

#[derive(Debug, Default)]
struct InMemory {
    oldest: Option<Height>,
    newest: Height,
    recorded: Pending,
}

impl StateHistory for MemoryHistory {
    fn oldest(&self) -> Option<Height> {
        self.0.read().oldest
    }

    fn begin(&self, height: Height) {
        let mut inner = self.0.write();
        if inner.oldest.is_none_or(|oldest| oldest > height || inner.newest < height) {
            *inner = InMemory { oldest: Some(height), newest: height, ..InMemory::default() };
        }
    }

    fn record(&self, height: Height, before: Before, index: IndexEntries) {
        let mut inner = self.0.write();
        if height > inner.newest {
            inner.newest = height;
            inner.recorded.add(Recorded { height, before, index });
        }
    }

    fn pending_bytes(&self) -> u64 {
        self.0.read().recorded.bytes
    }

    fn make_durable(&self) {
        // It has no disk: what is to be written is let go of.
        drop(self.0.write().recorded.begin_writing());
    }

    fn before_change(&self, key: &[u8], height: Height) -> Result<Option<Kept>, StateError> {
        Ok(self.0.read().recorded.before_change(key, height))
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
        let recorded = self.0.read().recorded.clone();
        show_merged(recorded.indexed(keys, order).collect(), order, visit)
    }
}

#[cfg(test)]
mod tests;
