//! What a load has: coins, payments under way, and what goes back to the wallet. All of it follows
//! from the entries of its journal.

use super::PayLoadError;
use super::payers::Payers;
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::IdentityKey;
use quorate_payments::{Coin, OutputId, PayReceipt, PaymentOutcome, Transaction, TxId};
use quorate_types::NetworkId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Entry of a load's journal.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) enum Entry {
    /// The first one: whose load it is.
    Founded {
        /// Network that it pays in.
        network: NetworkId,
        /// Key of the wallet that everything goes back to.
        wallet: IdentityKey,
        /// Number of payers.
        payers: u32,
    },
    /// The wallet paid coins to the hub.
    Funded(PayReceipt),
    /// A payer signed a transaction, which nobody was shown yet.
    Begun(Transaction),
    /// The outcome of a transaction is known.
    Ended(TxId, PaymentOutcome),
    /// The wallet took these coins in.
    Returned(Vec<OutputId>),
}

/// Coins and payments of a load.
pub(super) struct Book {
    network: NetworkId,
    wallet: IdentityKey,
    /// Coins of the payers that nothing spends, in the order in which they came.
    free: BTreeMap<u64, Coin>,
    arrivals: BTreeMap<OutputId, u64>,
    arrived: u64,
    under_way: BTreeMap<TxId, Arc<Transaction>>,
    /// Coins that were paid back, and that the wallet did not take in yet.
    returning: BTreeMap<OutputId, Coin>,
    fundings: u64,
}

impl Book {
    pub(super) fn new(network: NetworkId, wallet: IdentityKey) -> Self {
        Self {
            network,
            wallet,
            free: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            arrived: 0,
            under_way: BTreeMap::new(),
            returning: BTreeMap::new(),
            fundings: 0,
        }
    }

    /// Takes in what the journal has of it, in its order.
    pub(super) fn apply(&mut self, entry: Entry, payers: &Payers) {
        match entry {
            Entry::Founded { .. } => {}
            Entry::Funded(receipt) => {
                self.fundings += 1;
                receipt.coins.into_iter().for_each(|coin| self.take_in(coin, payers));
            }
            Entry::Begun(transaction) => {
                for input in transaction.locks() {
                    if let Some(arrival) = self.arrivals.remove(&input) {
                        self.free.remove(&arrival);
                    }
                }
                self.under_way.insert(transaction.id(self.network), Arc::new(transaction));
            }
            Entry::Ended(tx, outcome) => {
                let ended = self.under_way.remove(&tx);
                if let (Some(transaction), PaymentOutcome::Certified(certificate)) =
                    (ended, outcome)
                {
                    let coins = transaction.coins(self.network, &certificate);
                    coins.into_iter().for_each(|coin| self.take_in(coin, payers));
                }
            }
            Entry::Returned(coins) => coins.iter().for_each(|coin| {
                self.returning.remove(coin);
            }),
        }
    }

    fn take_in(&mut self, coin: Coin, payers: &Payers) {
        if coin.output.owner == self.wallet {
            self.returning.insert(coin.id, coin);
        } else if payers.number(&coin.output.owner).is_some() {
            self.arrivals.insert(coin.id, self.arrived);
            self.free.insert(self.arrived, coin);
            self.arrived += 1;
        }
    }

    /// The coin that has been free for the longest.
    pub(super) fn oldest(&self) -> Option<&Coin> {
        self.free.values().next()
    }

    /// Coins of the payers that nothing spends.
    pub(super) fn free(&self) -> impl Iterator<Item = &Coin> {
        self.free.values()
    }

    /// Transactions whose outcome is not known.
    pub(super) fn under_way(&self) -> &BTreeMap<TxId, Arc<Transaction>> {
        &self.under_way
    }

    /// Number of times that the wallet paid.
    pub(super) fn fundings(&self) -> u64 {
        self.fundings
    }

    /// Receipts for the wallet, of what it did not take in yet.
    pub(super) fn receipts(&self) -> Vec<PayReceipt> {
        let mut by_transaction: BTreeMap<TxId, Vec<Coin>> = BTreeMap::new();
        for coin in self.returning.values() {
            by_transaction.entry(coin.id.tx).or_default().push(coin.clone());
        }
        by_transaction.into_values().map(|coins| PayReceipt { coins, memo: None }).collect()
    }
}

/// An entry as it stands in the journal.
pub(super) fn decode(number: u64, bytes: &[u8]) -> Result<Entry, PayLoadError> {
    borsh::from_slice(bytes).map_err(|_| PayLoadError::Entry(number))
}
