//! Set of the inputs that an authority has locked, each with the one transaction that it voted for.
//!
//! The set only grows. It is in memory, as a map that the threads which check orders read
//! while the authority's own thread adds to it; what survives a crash is the log of [`Lock`]s that
//! its host keeps.

use crate::frozen::{Frozen, Standing};
use crate::release::Decision;
use crate::{Core, CoreKind, OutputId, TxId};
use borsh::{BorshDeserialize, BorshSerialize};
use papaya::HashMap;
use quorate_crypto::Digest;
use quorate_crypto::mutants::{self, Mutant};
use std::hash::{BuildHasher, Hash, Hasher};

/// Promise that an authority keeps (★): it votes for no other transaction that takes these inputs.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Lock {
    /// The authority's own count of its locks, from 0.
    pub sequence: u64,
    /// The transaction that it voted for.
    pub core: Core,
}

/// Transaction that holds an input, and the lock that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locked {
    /// Transaction that the input is locked for.
    pub tx: TxId,
    /// Sequence number of the lock.
    pub sequence: u64,
}

/// Lock status of a transaction's inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockStatus {
    /// None of them is locked.
    Free,
    /// All inputs are locked for this transaction: it was voted for.
    Own,
    /// This one is locked for another transaction.
    Taken(OutputId, Locked),
    /// They were decided for this transaction, which was not checked here since: to be checked, and
    /// voted for whatever they are locked for.
    Due,
    /// The release of this one is not decided, as far as is known here: nothing new is voted for
    /// over it.
    Undecided(OutputId),
    /// The release of this one ended otherwise.
    Released(OutputId, Decision),
}

/// Set of locked inputs. Readers take no mutex, and never wait for the thread that adds.
#[derive(Debug, Default)]
pub struct SpentSet {
    inputs: HashMap<Key, Locked, Seed>,
    frozen: Frozen,
}

impl SpentSet {
    /// An empty set, with room for this many before memory is asked for again. Where a host serves
    /// strangers, the seed is drawn anew for each process and told to nobody; [`SpentSet::default`]
    /// has one that all know.
    #[must_use]
    pub fn new(inputs: usize, seed: [u64; 2]) -> Self {
        let inputs = HashMap::builder().capacity(inputs).hasher(Seed(seed)).build();
        Self { inputs, frozen: Frozen::default() }
    }

    /// Coins under release, which are not voted over whether locked or free.
    #[must_use]
    pub fn frozen(&self) -> &Frozen {
        &self.frozen
    }

    /// Lock status of a transaction's inputs, all together.
    #[must_use]
    pub fn status(&self, core: &Core) -> LockStatus {
        match self.frozen.standing(core) {
            Standing::Lost(coin, decision) => LockStatus::Released(coin, decision),
            Standing::Due { followed: true } => LockStatus::Own,
            Standing::Due { followed: false } if mutants::active(Mutant::PayTrustDecision) => {
                LockStatus::Own
            }
            Standing::Due { followed: false } => LockStatus::Due,
            // A refund is for what was decided, and nothing else.
            Standing::Untouched | Standing::Frozen(_) if core.kind == CoreKind::Refund => {
                LockStatus::Undecided(core.locks[0])
            }
            Standing::Untouched => self.locked(core.id, &core.locks),
            Standing::Frozen(coin) => match self.locked(core.id, &core.locks) {
                LockStatus::Free if !mutants::active(Mutant::PayVoteOverFrozen) => {
                    LockStatus::Undecided(coin)
                }
                locked => locked,
            },
        }
    }

    fn locked(&self, id: TxId, locks: &[OutputId]) -> LockStatus {
        let found: Vec<_> = locks.iter().map(|lock| (lock, self.get(*lock))).collect();
        let taken = found.iter().find_map(|(lock, locked)| {
            locked.filter(|locked| locked.tx != id).map(|locked| (**lock, locked))
        });
        if let Some((lock, locked)) = taken {
            return LockStatus::Taken(lock, locked);
        }
        if found.iter().all(|(_, locked)| locked.is_some()) {
            LockStatus::Own
        } else {
            LockStatus::Free
        }
    }

    /// Transaction that an input is locked for, if it is locked.
    #[must_use]
    pub fn get(&self, input: OutputId) -> Option<Locked> {
        self.inputs.pin().get(&key(input)).copied()
    }

    /// Locks one input. An input that is locked stays as it is.
    pub fn insert(&self, input: OutputId, locked: Locked) {
        self.inputs.pin().get_or_insert(key(input), locked);
    }

    /// Locks all inputs of a lock, new or recovered.
    pub fn lock(&self, lock: &Lock) {
        let locked = Locked { tx: lock.core.id, sequence: lock.sequence };
        for input in &lock.core.locks {
            self.insert(*input, locked);
        }
        self.frozen.follow(&lock.core);
    }

    /// Number of locked inputs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Returns `true` while no input is locked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// Visits every entry, in no order; those added meanwhile may be among them. `visit` may
    /// take its time: nobody waits for it.
    pub fn visit(&self, mut visit: impl FnMut(OutputId, Locked)) {
        for (key, locked) in &self.inputs.pin() {
            visit(key.0, *locked);
        }
    }
}

/// Key of an input in the map. Paper 003 knows an output by a name that its payer picked: a mutant.
fn key(input: OutputId) -> Key {
    if mutants::active(Mutant::PayLockByName) {
        return Key(OutputId { tx: TxId(Digest::ZERO), index: input.index });
    }
    Key(input)
}

/// An input as the map has it. Its name is a hash already, of which eight bytes and the index say
/// enough where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key(OutputId);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let first = self.0.tx.0.0.first_chunk().expect("a name has 32 bytes");
        state.write_u64(u64::from_le_bytes(*first) ^ u64::from(self.0.index));
    }
}

/// Seed of the hash over names, which keeps places in the map unpredictable from outside.
///
/// Payers try names until they find what they like. Two with the same eight bytes take some 2³²
/// tries, four 2⁴⁸: such share a place under every seed, and lengthen a search by that many. To
/// crowd one place with names that differ one has to know the seed.
#[derive(Clone, Copy, Debug, Default)]
struct Seed([u64; 2]);

impl BuildHasher for Seed {
    type Hasher = KeyHasher;

    fn build_hasher(&self) -> KeyHasher {
        KeyHasher { seed: *self, place: 0 }
    }
}

/// Hash of one [`Key`] under a seed.
struct KeyHasher {
    seed: Seed,
    place: u64,
}

impl Hasher for KeyHasher {
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
