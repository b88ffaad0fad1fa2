//! What a wallet keeps durably.

use quorate_payments::{Coin, Core, Origin, OutputId, Source, Transaction, TxCertificate, TxId};
use quorate_types::NetworkId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Reason that a coin is not to be spent, beside payments that take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// No quorum told its state since the wallet was made again.
    Unasked,
    /// Authorities are locked for a transaction that takes it, and that cannot be finished.
    Locked,
}

/// What a wallet keeps durably; a copy of it is a backup.
#[derive(Clone, Debug, Default)]
pub(super) struct Book {
    /// Coins that no transaction is known to have spent for good.
    pub(super) coins: BTreeMap<OutputId, Coin>,
    pub(super) holds: BTreeMap<OutputId, Hold>,
    /// Transactions that are not known to be over.
    pub(super) stored: BTreeMap<TxId, Arc<Transaction>>,
    /// Transactions that authorities refused for locks or decisions, until all their coins are
    /// released.
    pub(super) blocked: BTreeMap<TxId, Arc<Transaction>>,
    /// Certificates of own transactions, to be shown where a coin of theirs is under release.
    pub(super) certified: BTreeMap<TxId, (Core, TxCertificate)>,
    pub(super) spent: BTreeSet<OutputId>,
    pub(super) serial: u64,
    /// Transactions whose coins came in, and which no quorum has a record of.
    pub(super) unrecorded: BTreeSet<TxId>,
    /// The wallet was made again once: nothing is spent unasked.
    pub(super) is_restored: bool,
    /// Records of a quorum were not taken in since.
    pub(super) is_recovering: bool,
}

impl Book {
    /// A coin comes in; `false` if it was there before.
    pub(super) fn add(&mut self, coin: Coin, is_asked: bool) -> bool {
        if self.coins.contains_key(&coin.id) || self.spent.contains(&coin.id) {
            return false;
        }
        if !is_asked {
            self.holds.insert(coin.id, Hold::Unasked);
        }
        self.coins.insert(coin.id, coin);
        true
    }

    /// Coins that may be spent: nothing is held against them, and no payment takes them.
    pub(super) fn free(&self) -> impl Iterator<Item = &Coin> {
        let promised: BTreeSet<OutputId> = self.taken().collect();
        let is_free =
            move |coin: &&Coin| !self.holds.contains_key(&coin.id) && !promised.contains(&coin.id);
        self.coins.values().filter(is_free)
    }

    fn taken(&self) -> impl Iterator<Item = OutputId> {
        self.stored.values().flat_map(|tx| tx.locks())
    }

    /// Coins whose states are to be asked for.
    pub(super) fn unasked(&self) -> Vec<OutputId> {
        let promised: BTreeSet<OutputId> = self.taken().collect();
        let open = self
            .holds
            .iter()
            .filter(|(coin, hold)| **hold == Hold::Unasked && !promised.contains(coin));
        open.map(|(coin, _)| *coin).collect()
    }

    /// A transaction is final: it took its coins for good.
    pub(super) fn end(
        &mut self,
        network: NetworkId,
        tx: &Transaction,
        certificate: &TxCertificate,
    ) {
        let core = tx.core(network);
        self.stored.remove(&core.id);
        self.blocked.remove(&core.id);
        if !matches!(tx.source, Source::Issue { .. }) {
            for spent in &core.locks {
                self.coins.remove(spent);
                self.holds.remove(spent);
                self.spent.insert(*spent);
            }
        }
        self.certified.insert(core.id, (core, certificate.clone()));
        let spent = &self.spent;
        self.blocked.retain(|_, tx| tx.locks().iter().any(|coin| !spent.contains(coin)));
    }

    /// A transaction will not be finished as things are: its coins are to be released.
    pub(super) fn block(&mut self, id: TxId) {
        let Some(tx) = self.stored.remove(&id) else { return };
        if matches!(tx.source, Source::Issue { .. }) {
            return;
        }
        for coin in tx.locks() {
            if self.coins.contains_key(&coin) {
                self.holds.insert(coin, Hold::Locked);
            }
        }
        if tx.locks().iter().any(|coin| !self.spent.contains(coin)) {
            self.blocked.insert(id, tx);
        }
    }

    /// Coins to be released, with their proofs: those that are locked, and all inputs of what is
    /// blocked, for a transaction is decided at all of its coins.
    pub(super) fn locked(&self) -> BTreeMap<OutputId, Coin> {
        let blocked = self.blocked.values().flat_map(|tx| tx.spent_coins());
        let held = self.holds.iter().filter(|(_, hold)| **hold == Hold::Locked);
        let held = held.filter_map(|(coin, _)| self.coins.get(coin).cloned());
        blocked.chain(held).map(|coin| (coin.id, coin)).collect()
    }

    /// Takes in a transaction of this key that authorities keep: its coins are known then, too.
    pub(super) fn regain(&mut self, id: TxId, tx: Transaction) {
        let is_known = self.stored.contains_key(&id)
            || self.blocked.contains_key(&id)
            || self.certified.contains_key(&id);
        if is_known {
            return;
        }
        for coin in tx.spent_coins() {
            self.add(coin, false);
        }
        let taken: BTreeSet<OutputId> = self.taken().chain(self.spent.iter().copied()).collect();
        let is_free = tx.locks().iter().all(|coin| !taken.contains(coin));
        if let Source::Issue { serial } = tx.source {
            self.serial = self.serial.max(serial);
        }
        self.stored.insert(id, Arc::new(tx));
        if !is_free {
            self.block(id);
        }
    }
}

/// Certificates that coins show of the transactions that made them.
pub(super) fn certificates(coins: &[Coin]) -> impl Iterator<Item = (TxId, &TxCertificate)> {
    coins.iter().filter_map(|coin| match &coin.origin {
        Origin::Certified(proof) => Some((coin.id.tx, &proof.certificate)),
        Origin::Genesis => None,
    })
}
