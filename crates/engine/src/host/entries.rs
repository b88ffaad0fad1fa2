//! Kinds of entries, as far as group commit tells them apart.

use quorate_types::machine::Entry;

/// Place of an entry in a log's queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryClass {
    /// A promise: what follows waits until it is durable. Small and urgent.
    Barrier,
    /// Keeps its place among the promises, which may rely on it; nothing waits for it.
    Ordered,
    /// Long and not urgent: bodies and what is released, in groups of their own.
    Bulk,
}

/// An entry that a [`GroupCommit`](super::group_commit::GroupCommit) can queue.
pub trait LogEntry {
    /// Its place in the queues.
    fn class(&self) -> EntryClass;

    /// Bytes that it counts for in a group of bulk; 0 for what is short.
    fn bulk_bytes(&self) -> usize;
}

impl LogEntry for Entry {
    fn class(&self) -> EntryClass {
        match self {
            Self::Record(_) => EntryClass::Barrier,
            Self::Decided(_) => EntryClass::Ordered,
            Self::Body(_) | Self::Release(_) => EntryClass::Bulk,
        }
    }

    fn bulk_bytes(&self) -> usize {
        match self {
            Self::Body(body) => body.raw.len(),
            Self::Record(_) | Self::Decided(_) | Self::Release(_) => 0,
        }
    }
}
