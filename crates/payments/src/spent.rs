//! What an authority has locked: each input with the one transaction that it voted for.
//!
//! The set only grows. It is in memory, as a map that threads which check orders may look into while
//! the authority's own thread adds to it; what survives a crash is the log of [`Lock`]s that its
//! host keeps.

use crate::{Core, OutputId, TxId};
use borsh::{BorshDeserialize, BorshSerialize};
use dashmap::DashMap;
use quorate_crypto::Digest;
use quorate_crypto::mutants::{self, Mutant};

/// What an authority promises to keep (★): that it votes for no other transaction that takes these inputs.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Lock {
    /// The authority's own count of its locks, from 0.
    pub sequence: u64,
    /// The transaction that it voted for.
    pub core: Core,
}

/// What an input is locked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locked {
    /// The transaction.
    pub tx: TxId,
    /// Which lock it was.
    pub sequence: u64,
}

/// What is known of a transaction's inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// None of them is locked.
    Free,
    /// All of them are locked for this transaction: it was voted for.
    Mine,
    /// This one is locked for another transaction.
    Taken(OutputId, Locked),
}

/// The locked inputs.
#[derive(Debug, Default)]
pub struct SpentSet {
    inputs: DashMap<OutputId, Locked>,
}

impl SpentSet {
    /// None, with room for this many before memory is asked for again.
    #[must_use]
    pub fn with_capacity(inputs: usize) -> Self {
        Self { inputs: DashMap::with_capacity(inputs) }
    }

    /// What is known of a transaction's inputs, all together.
    #[must_use]
    pub fn standing(&self, id: TxId, locks: &[OutputId]) -> Standing {
        let found: Vec<_> = locks.iter().map(|lock| (lock, self.get(*lock))).collect();
        let taken = found.iter().find_map(|(lock, locked)| {
            locked.filter(|locked| locked.tx != id).map(|locked| (**lock, locked))
        });
        if let Some((lock, locked)) = taken {
            return Standing::Taken(lock, locked);
        }
        if found.iter().all(|(_, locked)| locked.is_some()) {
            Standing::Mine
        } else {
            Standing::Free
        }
    }

    /// What an input is locked for.
    #[must_use]
    pub fn get(&self, input: OutputId) -> Option<Locked> {
        self.inputs.get(&key(input)).map(|entry| *entry)
    }

    /// Locks one input. An input that is locked stays as it is.
    pub fn insert(&self, input: OutputId, locked: Locked) {
        self.inputs.entry(key(input)).or_insert(locked);
    }

    /// Takes a recovered lock in.
    pub fn restore(&self, lock: &Lock) {
        let locked = Locked { tx: lock.core.id, sequence: lock.sequence };
        for input in &lock.core.locks {
            self.insert(*input, locked);
        }
    }

    /// How many inputs are locked.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// Hands out every entry, in no order; those added meanwhile may be among them.
    pub fn visit(&self, mut visit: impl FnMut(OutputId, Locked)) {
        for entry in &self.inputs {
            visit(*entry.key(), *entry.value());
        }
    }
}

/// Paper 003 knows an output by the name that whoever made it picked.
fn key(input: OutputId) -> OutputId {
    if mutants::active(Mutant::PayLockByName) {
        return OutputId { tx: TxId(Digest::ZERO), index: input.index };
    }
    input
}

#[cfg(test)]
mod tests;
