//! What an authority has locked: each input with the one transaction that it voted for.
//!
//! The set only grows. It is in memory, as a map that threads which check orders may look into while
//! the authority's own thread adds to it; what survives a crash is the log of [`Lock`]s that its
//! host keeps.

use crate::{Core, OutputId, TxId};
use borsh::{BorshDeserialize, BorshSerialize};
use papaya::HashMap;
use quorate_crypto::Digest;
use quorate_crypto::mutants::{self, Mutant};
use std::hash::{BuildHasher, Hash, Hasher};

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

/// The locked inputs. Looking takes no lock, whoever adds meanwhile.
#[derive(Debug, Default)]
pub struct SpentSet {
    inputs: HashMap<Key, Locked, Seed>,
}

impl SpentSet {
    /// None, with room for this many before memory is asked for again. Where a host serves strangers, the
    /// seed is drawn anew for each process and told to nobody; [`SpentSet::default`] has one that all
    /// know.
    #[must_use]
    pub fn new(inputs: usize, seed: [u64; 2]) -> Self {
        Self { inputs: HashMap::builder().capacity(inputs).hasher(Seed(seed)).build() }
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
        self.inputs.pin().get(&key(input)).copied()
    }

    /// Locks one input. An input that is locked stays as it is.
    pub fn insert(&self, input: OutputId, locked: Locked) {
        self.inputs.pin().get_or_insert(key(input), locked);
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

    /// Hands out every entry, in no order; those added meanwhile may be among them. `visit` may take its
    /// time: nobody waits for it.
    pub fn visit(&self, mut visit: impl FnMut(OutputId, Locked)) {
        for (key, locked) in &self.inputs.pin() {
            visit(key.0, *locked);
        }
    }
}

/// Paper 003 knows an output by the name that whoever made it picked.
fn key(input: OutputId) -> Key {
    if mutants::active(Mutant::PayLockByName) {
        return Key(OutputId { tx: TxId(Digest::ZERO), index: input.index });
    }
    Key(input)
}

/// An input as the map has it. Its name is a hash already, of which eight bytes and the index say enough where
/// it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key(OutputId);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let first = self.0.tx.0.0.first_chunk().expect("a name has 32 bytes");
        state.write_u64(u64::from_le_bytes(*first) ^ u64::from(self.0.index));
    }
}

/// Where names go, as nobody outside can tell.
///
/// Payers try names until they find what they like. Two with the same eight bytes take some 2³² tries, four
/// 2⁴⁸: such share a place under every seed, and lengthen a search by that many. To crowd one
/// place with names that differ one has to know the seed.
#[derive(Clone, Copy, Debug, Default)]
struct Seed([u64; 2]);

impl BuildHasher for Seed {
    type Hasher = Place;

    fn build_hasher(&self) -> Place {
        Place { seed: *self, place: 0 }
    }
}

/// The hash of one [`Key`].
struct Place {
    seed: Seed,
    place: u64,
}

impl Hasher for Place {
    fn write_u64(&mut self, word: u64) {
        let Seed([addend, factor]) = self.seed;
        let product = u128::from(word ^ addend) * u128::from(factor | 1);
        self.place = (product >> 64) as u64 ^ product as u64;
    }

    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("a key is one word");
    }

    fn finish(&self) -> u64 {
        self.place
    }
}

#[cfg(test)]
mod tests;
