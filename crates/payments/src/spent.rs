//! Set of the inputs that an authority has locked, each with the one transaction that it voted for.
//!
//! The set only grows. It has two parts: the *hot* one, a map in memory with what was locked since
//! the last move, which the threads that check orders read while the authority's own thread adds to
//! it; and the *cold* one behind [`ColdSet`], for a host to keep on disk. What survives a crash is
//! the log of [`Lock`]s and the cold part.
//!
//! # Why no locked input ever looks free
//!
//! * A look-up asks the hot part first, then the cold one; a move makes entries findable in the
//!   cold part before it takes them out of the hot one (★, [`SpentSet::move_out`]). Whoever misses
//!   an entry in the first finds it in the second.
//! * A look-up that fails is an error, and no answer (★, [`LookupFailed`]).

mod closing;

pub use closing::ClosingLocks;
pub(crate) use closing::released;

use crate::change::{Inheritance, Inherited};
use crate::frozen::{Frozen, Standing};
use crate::lookup::LookupFailed;
use crate::release::Decision;
use crate::{Core, CoreKind, OutputId, TxId};
use borsh::{BorshDeserialize, BorshSerialize};
use papaya::HashMap;
use quorate_crypto::Digest;
use quorate_crypto::mutants::{self, Mutant};
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

/// Promise that an authority keeps (★): it votes for no other transaction that takes these inputs.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Lock {
    /// The authority's own count of its locks, from 0.
    pub sequence: u64,
    /// The transaction that it voted for.
    pub core: Core,
}

impl Lock {
    /// Sequence number in the place of one: an earlier epoch locked the input, without a lock here.
    pub const INHERITED: u64 = u64::MAX;
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
    /// Not all of them are locked for it, and the epoch has ended.
    Closed,
}

/// Locked inputs outside the hot part: on disk, in a host. Read by several threads at once.
pub trait ColdSet: Send + Sync + fmt::Debug {
    /// Transaction that an input is locked for; `None` where it is certain that this part has none.
    ///
    /// # Errors
    /// When it cannot be told.
    fn get(&self, input: OutputId) -> Result<Option<Locked>, LookupFailed>;

    /// Number of its inputs.
    fn len(&self) -> u64;

    /// Returns `true` without any.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Cold part of a set that is all in memory.
#[derive(Debug)]
struct Nothing;

impl ColdSet for Nothing {
    fn get(&self, _input: OutputId) -> Result<Option<Locked>, LookupFailed> {
        Ok(None)
    }

    fn len(&self) -> u64 {
        0
    }
}

/// Set of locked inputs. Readers never wait for the thread that adds; for one that freezes a coin,
/// which is rare, as long as that takes.
#[derive(Debug)]
pub struct SpentSet {
    hot: HashMap<Key, Locked, Seed>,
    cold: Arc<dyn ColdSet>,
    frozen: Frozen,
    inherited: Arc<dyn Inherited>,
}

impl Default for SpentSet {
    fn default() -> Self {
        Self {
            hot: HashMap::default(),
            cold: Arc::new(Nothing),
            frozen: Frozen::default(),
            inherited: Arc::new(Inheritance::default()),
        }
    }
}

impl SpentSet {
    /// An empty set in memory, with room for this many before memory is asked for again. Where a
    /// host serves strangers, the seed is drawn anew for each process and told to nobody;
    /// [`SpentSet::default`] has one that all know.
    #[must_use]
    pub fn new(inputs: usize, seed: [u64; 2]) -> Self {
        let hot = HashMap::builder().capacity(inputs).hasher(Seed(seed)).build();
        Self { hot, ..Self::default() }
    }

    /// The same, with what `cold` has.
    #[must_use]
    pub fn over(self, cold: Arc<dyn ColdSet>) -> Self {
        Self { cold, ..self }
    }

    /// The same, with what earlier epochs left.
    #[must_use]
    pub fn after(self, inherited: Arc<dyn Inherited>) -> Self {
        Self { inherited, ..self }
    }

    /// What earlier epochs left.
    #[must_use]
    pub fn inherited(&self) -> &dyn Inherited {
        &*self.inherited
    }

    /// Coins under release, which are not voted over whether locked or free.
    #[must_use]
    pub fn frozen(&self) -> &Frozen {
        &self.frozen
    }

    /// Lock status of a transaction's inputs, all together.
    ///
    /// # Errors
    /// When one of them cannot be looked up.
    pub fn status(&self, core: &Core) -> Result<LockStatus, LookupFailed> {
        let status = self.open_status(core)?;
        let is_new = matches!(status, LockStatus::Free | LockStatus::Due);
        let votes_on = mutants::active(Mutant::PayVoteAfterClosing);
        let is_late = is_new && self.frozen.is_closed() && !votes_on;
        Ok(if is_late { LockStatus::Closed } else { status })
    }

    /// The same, as long as the epoch lasts.
    fn open_status(&self, core: &Core) -> Result<LockStatus, LookupFailed> {
        Ok(match self.frozen.standing(core) {
            Standing::Lost(coin, decision) => LockStatus::Released(coin, decision),
            Standing::Due { followed: true } => LockStatus::Own,
            Standing::Due { followed: false } if mutants::active(Mutant::PayTrustDecision) => {
                LockStatus::Own
            }
            Standing::Due { followed: false } => LockStatus::Due,
            Standing::Untouched | Standing::Frozen(_) if core.kind == CoreKind::Refund => {
                self.refund_status(core)?
            }
            Standing::Untouched => self.locked(core.id, &core.locks)?,
            Standing::Frozen(coin) => match self.locked(core.id, &core.locks)? {
                LockStatus::Free if !self.is_reported_for(core)? => LockStatus::Undecided(coin),
                locked => locked,
            },
        })
    }

    /// Returns `true` if every frozen input was reported as this transaction's: an earlier epoch
    /// locked it so, and it may be voted for here as if it had been before.
    fn is_reported_for(&self, core: &Core) -> Result<bool, LookupFailed> {
        for lock in core.locks.iter().filter(|lock| self.frozen.contains(**lock)) {
            if self.get(*lock)?.is_none_or(|locked| locked.tx != core.id) {
                return Ok(mutants::active(Mutant::PayVoteOverFrozen));
            }
        }
        Ok(true)
    }

    /// A refund is for what was decided, and nothing else: here, or in an earlier epoch.
    fn refund_status(&self, core: &Core) -> Result<LockStatus, LookupFailed> {
        let coin = core.locks[0];
        Ok(match self.own(coin)? {
            Some(locked) if locked.tx == core.id => LockStatus::Own,
            None if self.inherited.candidates(coin)? == [released(coin)] => LockStatus::Free,
            _ => LockStatus::Undecided(coin),
        })
    }

    /// The same, whatever is under release.
    ///
    /// # Errors
    /// When one of them cannot be looked up.
    pub fn locked(&self, id: TxId, locks: &[OutputId]) -> Result<LockStatus, LookupFailed> {
        let mut free = false;
        for lock in locks {
            match self.own(*lock)? {
                None => match self.inherited.candidates(*lock)?[..] {
                    [] => free = true,
                    // Its lock was an earlier epoch's: here it was not checked yet (★).
                    [tx] if tx == id => free = !mutants::active(Mutant::PayTrustInherited),
                    [tx] => return Ok(LockStatus::Taken(*lock, Locked::inherited(tx))),
                    [..] => return Ok(LockStatus::Undecided(*lock)),
                },
                Some(locked) if locked.tx == id => {}
                Some(locked) => return Ok(LockStatus::Taken(*lock, locked)),
            }
        }
        Ok(if free { LockStatus::Free } else { LockStatus::Own })
    }

    /// Transaction that an input is locked for, if it is locked: here, or by an earlier epoch.
    ///
    /// # Errors
    /// When that cannot be told.
    pub fn get(&self, input: OutputId) -> Result<Option<Locked>, LookupFailed> {
        Ok(match self.own(input)? {
            None => match self.inherited.candidates(input)?[..] {
                [tx] => Some(Locked::inherited(tx)),
                _ => None,
            },
            own => own,
        })
    }

    /// Returns `true` if several transactions may have taken the input in an earlier epoch, and
    /// none was voted for here since.
    ///
    /// # Errors
    /// When that cannot be told.
    pub fn is_contested(&self, input: OutputId) -> Result<bool, LookupFailed> {
        Ok(self.own(input)?.is_none() && self.inherited.candidates(input)?.len() > 1)
    }

    /// Transaction that an input was locked for in this epoch.
    fn own(&self, input: OutputId) -> Result<Option<Locked>, LookupFailed> {
        let key = key(input);
        // Copied, so that nothing is pinned while the disk is read.
        let hot = self.hot.pin().get(&key).copied();
        if hot.is_some() || mutants::active(Mutant::PayIgnoreCold) {
            return Ok(hot);
        }
        match self.cold.get(key.0) {
            Err(_) if mutants::active(Mutant::PayFailedIsFree) => Ok(None),
            found => found,
        }
    }

    /// Locks one input in the hot part. One that is locked there stays as it is; whoever locks has
    /// asked for the [status](SpentSet::status) before.
    pub fn insert(&self, input: OutputId, locked: Locked) {
        self.hot.pin().get_or_insert(key(input), locked);
    }

    /// Locks all inputs of a lock, new or recovered.
    pub fn lock(&self, lock: &Lock) {
        let locked = Locked { tx: lock.core.id, sequence: lock.sequence };
        // What was decided for it says so by itself, and what it was locked for stays as it is.
        let due = self.frozen.follow(&lock.core);
        for input in lock.core.locks.iter().filter(|input| !due.contains(input)) {
            self.insert(*input, locked);
        }
        if !due.is_empty() {
            self.insert(mark(lock.core.id), locked);
        }
        // At a start, the decision is known before the locks that it found.
        for input in due.iter().filter(|input| self.own(**input) == Ok(None)) {
            self.insert(*input, locked);
        }
    }

    /// Moves what the first `sequence` locks came to out of the hot part (★: and nothing later,
    /// which may not be durable). `keep` is given it in the order of its keys; when it returns, the
    /// cold part has it durably. Others read and lock meanwhile, and never wait.
    ///
    /// # Errors
    /// What `keep` fails with; the hot part then has all that it had.
    pub fn move_out<E>(
        &self,
        sequence: u64,
        keep: impl FnOnce(&[(OutputId, Locked)]) -> Result<(), E>,
    ) -> Result<(), E> {
        let pin = self.hot.pin();
        let settled = pin.iter().filter(|(_, locked)| locked.sequence < sequence);
        let mut moved: Vec<(OutputId, Locked)> =
            settled.map(|(key, locked)| (key.0, *locked)).collect();
        drop(pin);
        moved.sort_unstable_by_key(|(input, _)| *input);
        if mutants::active(Mutant::PayForgetBeforeKept) {
            self.forget(&moved);
        }
        keep(&moved)?;
        self.forget(&moved);
        Ok(())
    }

    /// A pin for each: what is removed is freed as it goes.
    fn forget(&self, moved: &[(OutputId, Locked)]) {
        for (input, _) in moved {
            self.hot.pin().remove(&Key(*input));
        }
    }

    /// Number of locked inputs. Those that move may count twice meanwhile.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.hot_len() as u64 + self.cold.len()
    }

    /// Number of those in memory.
    #[must_use]
    pub fn hot_len(&self) -> usize {
        self.hot.len()
    }

    /// Returns `true` while no input is locked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Locked {
    fn inherited(tx: TxId) -> Self {
        Self { tx, sequence: Lock::INHERITED }
    }
}

/// Name in the place of an input, by which a transaction is found that a release gave its inputs.
/// It is no output's: transactions have fewer.
fn mark(tx: TxId) -> OutputId {
    OutputId { tx, index: u16::MAX }
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
