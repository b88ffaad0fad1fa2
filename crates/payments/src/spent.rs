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

/// Parts of the set. Each can be copied out in a millisecond or two while it has tens of thousands of inputs.
const PARTS: usize = 256;

/// The locked inputs, in parts by the first byte of their names.
#[derive(Debug)]
pub struct SpentSet {
    parts: Vec<DashMap<OutputId, Locked>>,
}

impl Default for SpentSet {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

impl SpentSet {
    /// None, with room for this many before memory is asked for again.
    #[must_use]
    pub fn with_capacity(inputs: usize) -> Self {
        let each = inputs.div_ceil(PARTS);
        let part = |_| DashMap::with_capacity_and_shard_amount(each, 2);
        Self { parts: (0..PARTS).map(part).collect() }
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
        let input = key(input);
        self.part(input).get(&input).map(|entry| *entry)
    }

    /// Locks one input. An input that is locked stays as it is.
    pub fn insert(&self, input: OutputId, locked: Locked) {
        let input = key(input);
        self.part(input).entry(input).or_insert(locked);
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
        self.parts.iter().map(DashMap::len).sum()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(DashMap::is_empty)
    }

    /// Hands out every entry, in no order; those added meanwhile may be among them. `visit` may take its
    /// time: a part is copied out before, so that whoever locks inputs does not wait for a disk.
    pub fn visit(&self, mut visit: impl FnMut(OutputId, Locked)) {
        for part in &self.parts {
            let entries: Vec<_> = part.iter().map(|entry| (*entry.key(), *entry.value())).collect();
            entries.into_iter().for_each(|(input, locked)| visit(input, locked));
        }
    }

    fn part(&self, input: OutputId) -> &DashMap<OutputId, Locked> {
        &self.parts[usize::from(input.tx.0.0[0])]
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
