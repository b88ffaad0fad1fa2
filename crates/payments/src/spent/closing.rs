//! Locks as closing reports tell them, where releases decided.
//!
//! What was decided binds later epochs too: authorities of those may never have heard of it.
//!
//! * ★ A coin that goes back is reported under a name that no transaction has. Those who followed
//!   the decision weigh q − F where its refund is certified, so that nothing but that refund is
//!   voted for there.
//! * ★ A transaction that lost one of its coins is not told at any: with fewer inputs it would
//!   stand beside what it lost to. It can never be certified.
//! * A coin that goes to a transaction is told as that one's, by those who voted for it: others
//!   have not found it valid.

use super::{Locked, LookupFailed, SpentSet, mark};
use crate::change::LockEntry;
use crate::release::Decision;
use crate::{OutputId, TxId};
use quorate_crypto::hash_parts;
use quorate_crypto::mutants::{self, Mutant};
use std::collections::{BTreeMap, BTreeSet};

/// How a shard's closing report tells its locks.
#[derive(Debug, Default)]
pub struct ClosingLocks {
    /// Decided coins, each with what is told of it.
    decided: BTreeMap<OutputId, Option<LockEntry>>,
    /// Transactions that lost one of their coins.
    lost: BTreeSet<TxId>,
    /// Marks of transactions that a release gave coins, which are told themselves.
    marks: BTreeSet<OutputId>,
}

impl SpentSet {
    /// Returns how the closing report tells these locks.
    ///
    /// # Errors
    /// When a decided coin cannot be looked up.
    pub fn closing(&self) -> Result<ClosingLocks, LookupFailed> {
        let mut closing = ClosingLocks::default();
        if mutants::active(Mutant::PayCloseUndecided) {
            return Ok(closing);
        }
        for (coin, decision) in self.frozen.decisions() {
            let own = self.own(coin)?.map(|locked| locked.tx);
            let told = match decision {
                Decision::Refund => Some((released(coin), coin)),
                Decision::Spend(tx) => {
                    closing.marks.insert(mark(tx));
                    let is_voted_for = own == Some(tx) || self.own(mark(tx))?.is_some();
                    is_voted_for.then_some((tx, coin))
                }
            };
            closing.decided.insert(coin, told);
            let Some(own) = own else { continue };
            let is_refund = decision == Decision::Refund && self.own(mark(own))?.is_some();
            if decision != Decision::Spend(own) && !is_refund {
                closing.lost.insert(own);
            }
        }
        Ok(closing)
    }
}

impl ClosingLocks {
    /// Entry for an input that is locked; `None` where [`ClosingLocks::decided`] tells it, and for
    /// a transaction that lost a coin.
    #[must_use]
    pub fn entry(&self, input: OutputId, locked: Locked) -> Option<LockEntry> {
        let is_told = self.decided.contains_key(&input) || self.marks.contains(&input);
        (!is_told && !self.lost.contains(&locked.tx)).then_some((locked.tx, input))
    }

    /// Entries for coins that releases decided about.
    pub fn decided(&self) -> impl Iterator<Item = LockEntry> {
        self.decided.values().flatten().copied()
    }
}

/// Name in the place of a transaction's, for which a coin counts as locked that a release gave back
/// in an earlier epoch.
pub(crate) fn released(coin: OutputId) -> TxId {
    let index = coin.index.to_le_bytes();
    TxId(hash_parts("quorate v1 payments: given back", &[&coin.tx.0.0, &index]))
}
