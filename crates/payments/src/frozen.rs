//! Coins under release at one authority: what it no longer votes over, and what it votes for
//! instead.
//!
//! With them stands whether its epoch has ended, when it votes over no coin any more.
//!
//! There are few, and most of the time none: a set beside the locked inputs, which is asked first.
//! What survives a crash is the log of [`ReleaseEntry`]s that its host keeps.

use crate::release::Decision;
use crate::{Core, CoreKind, OutputId};
use borsh::{BorshDeserialize, BorshSerialize};
use parking_lot::RwLock;
use quorate_crypto::mutants::{self, Mutant};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Promise of an authority about a coin under release (★).
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum ReleaseEntry {
    /// It votes for nothing over this coin that it had not locked before.
    Freeze(OutputId),
    /// It votes for what was decided of this coin, and for nothing else.
    Decide(OutputId, Decision),
    /// Its epoch has ended: it votes for nothing that it had not voted for before.
    Close,
}

/// Coins under release, and those whose release ended. Readers wait for nothing longer than the
/// insertion of an entry.
#[derive(Debug, Default)]
pub struct Frozen {
    coins: RwLock<BTreeMap<OutputId, Entry>>,
    is_closed: AtomicBool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    decision: Option<Decision>,
    /// True once the transaction that was decided for was voted for here since the start.
    followed: bool,
}

/// Standing of a transaction as its coins' releases have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// None of its coins was ever frozen.
    Untouched,
    /// This coin is frozen.
    Frozen(OutputId),
    /// All that was frozen of it was decided for it.
    Due {
        /// True if it was checked and locked already.
        followed: bool,
    },
    /// This coin was decided for something else.
    Lost(OutputId, Decision),
}

impl Frozen {
    /// Takes in an entry, new or recovered. A decision stays as it is.
    pub fn apply(&self, entry: ReleaseEntry) {
        let mut coins = self.coins.write();
        match entry {
            ReleaseEntry::Freeze(coin) => {
                coins.entry(coin).or_default();
            }
            ReleaseEntry::Decide(coin, decision) => {
                coins.entry(coin).or_default().decision.get_or_insert(decision);
            }
            ReleaseEntry::Close => self.is_closed.store(true, Ordering::Relaxed),
        }
    }

    /// Returns `true` once the authority votes for nothing new.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Returns `true` if the coin is or was under release.
    #[must_use]
    pub fn contains(&self, coin: OutputId) -> bool {
        self.coins.read().contains_key(&coin)
    }

    /// Decision about a coin, if one was made.
    #[must_use]
    pub fn decision(&self, coin: OutputId) -> Option<Decision> {
        self.coins.read().get(&coin)?.decision
    }

    /// Coins that were decided, in ascending order.
    pub(crate) fn decisions(&self) -> Vec<(OutputId, Decision)> {
        let coins = self.coins.read();
        coins.iter().filter_map(|(coin, entry)| Some((*coin, entry.decision?))).collect()
    }

    /// Notes that a transaction is locked; returns its coins that were decided for it.
    pub(crate) fn follow(&self, core: &Core) -> Vec<OutputId> {
        let Standing::Due { followed } = self.standing(core) else { return Vec::new() };
        let is_due = |coin: &OutputId| self.decision(*coin).is_some();
        let due: Vec<OutputId> = core.locks.iter().copied().filter(is_due).collect();
        if !followed {
            let mut coins = self.coins.write();
            for coin in &due {
                coins.entry(*coin).and_modify(|entry| entry.followed = true);
            }
        }
        due
    }

    pub(crate) fn standing(&self, core: &Core) -> Standing {
        let coins = self.coins.read();
        let mut standing = Standing::Untouched;
        for lock in &core.locks {
            let Some(entry) = coins.get(lock) else { continue };
            match entry.decision {
                Some(decision) if !is_for(decision, core) => {
                    return Standing::Lost(*lock, decision);
                }
                None => standing = Standing::Frozen(*lock),
                Some(_) if matches!(standing, Standing::Frozen(_)) => {}
                Some(_) => standing = Standing::Due { followed: entry.followed },
            }
        }
        standing
    }
}

/// Tells whether a decision is for this transaction (★).
fn is_for(decision: Decision, core: &Core) -> bool {
    match decision {
        Decision::Spend(tx) => core.id == tx,
        Decision::Refund => {
            core.kind == CoreKind::Refund || mutants::active(Mutant::PayRefundSetsFree)
        }
    }
}
