//! State of a wallet, replayed from its file: coins, payments, and the order in which they came.
//!
//! A [`WalletState`] is made from [`Record`]s alone, whether they were just written or are read
//! again: so a wallet that was killed and one that went on are the same.

use super::payment::{Entry, Incoming, Order, Payment, PaymentState};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::IdentityKey;
use quorate_payments::{Coin, OutputId, PayReceipt, PaymentOutcome, Source, Transaction, TxId};
use quorate_types::NetworkId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Record of the wallet's file, in order.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) enum Record {
    /// Key that the wallet belongs to. The first record, and the only one of its kind.
    Owner(IdentityKey),
    /// Network that it pays in; known when the wallet is first used.
    Network(NetworkId),
    /// Coins that were not known before, and who paid them. Checked before they were written.
    Received { receipt: PayReceipt, at_ms: u64 },
    /// A payment, before anybody was shown it (★): after a crash the same bytes are sent again, and
    /// a second transaction over the same coins is never made.
    Begun { order: Order, key: Option<String>, transaction: Transaction, at_ms: u64 },
    /// Outcome of a payment becomes known.
    Ended { tx: TxId, outcome: PaymentOutcome, at_ms: u64 },
}

/// A coin that was not spent, as far as this wallet knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) coin: Coin,
    pub(super) hold: Hold,
}

/// Claim on a coin that keeps it from being spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// Nothing holds the coin: it can be spent.
    Free,
    /// A payment that is not finished.
    Reserved(TxId),
    /// A payment that lost against another one of the same owner: some authorities are locked for
    /// either.
    Frozen(TxId),
}

/// Coins, payments and their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WalletState {
    pub(super) owner: Option<IdentityKey>,
    pub(super) network: Option<NetworkId>,
    pub(super) coins: BTreeMap<OutputId, Held>,
    /// Outputs that this wallet spent, which are never taken in again, by the payment that spent
    /// them.
    spent: BTreeMap<OutputId, TxId>,
    pub(super) entries: Vec<Entry>,
    payments: BTreeMap<TxId, usize>,
    keys: BTreeMap<String, TxId>,
    /// The number of the next issue.
    pub(super) serial_next: u64,
}

impl WalletState {
    /// Applies a record to the state.
    ///
    /// # Errors
    /// The contradiction: a file with such a record was not written by a wallet.
    pub(super) fn apply(&mut self, record: Record) -> Result<(), &'static str> {
        match record {
            Record::Owner(owner) if self.owner.is_none() => self.owner = Some(owner),
            Record::Owner(_) => return Err("it names its owner twice"),
            _ if self.owner.is_none() => return Err("it does not begin with its owner"),
            Record::Network(network) if self.network.is_none() => self.network = Some(network),
            Record::Network(_) => return Err("it names its network twice"),
            Record::Received { receipt, at_ms } => self.receive(receipt, at_ms),
            Record::Begun { order, key, transaction, at_ms } => {
                return self.begin(order, key, transaction, at_ms);
            }
            Record::Ended { tx, outcome, at_ms } => return self.end(tx, outcome, at_ms),
        }
        Ok(())
    }

    /// Tells whether a coin is or was here.
    pub(super) fn knows(&self, id: &OutputId) -> bool {
        self.coins.contains_key(id) || self.spent.contains_key(id)
    }

    pub(super) fn free(&self) -> impl Iterator<Item = &Coin> {
        self.coins.values().filter(|held| held.hold == Hold::Free).map(|held| &held.coin)
    }

    pub(super) fn payment(&self, tx: TxId) -> Option<&Payment> {
        match &self.entries[*self.payments.get(&tx)?] {
            Entry::Payment(payment) => Some(payment),
            Entry::Incoming(_) => None,
        }
    }

    pub(super) fn payment_of_key(&self, key: &str) -> Option<&Payment> {
        self.payment(*self.keys.get(key)?)
    }

    pub(super) fn payments(&self) -> impl Iterator<Item = &Payment> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Payment(payment) => Some(&**payment),
            Entry::Incoming(_) => None,
        })
    }

    fn receive(&mut self, receipt: PayReceipt, at_ms: u64) {
        let Some(first) = receipt.coins.first() else { return };
        let incoming = Incoming {
            tx: first.id.tx,
            payer: first.payer(),
            value: receipt.coins.iter().map(|coin| coin.output.value).sum(),
            memo: receipt.memo.map(|memo| memo.text),
            at_ms,
        };
        self.entries.push(Entry::Incoming(incoming));
        self.add(receipt.coins);
    }

    fn add(&mut self, coins: Vec<Coin>) {
        for coin in coins {
            if !self.knows(&coin.id) {
                self.coins.insert(coin.id, Held { coin, hold: Hold::Free });
            }
        }
    }

    fn begin(
        &mut self,
        order: Order,
        key: Option<String>,
        transaction: Transaction,
        at_ms: u64,
    ) -> Result<(), &'static str> {
        let network = self.network.ok_or("it has a payment before its network")?;
        let tx = transaction.id(network);
        if let Source::Issue { serial } = transaction.source {
            self.serial_next = self.serial_next.max(serial.saturating_add(1));
        } else {
            for input in transaction.locks() {
                let held = self.coins.get_mut(&input).filter(|held| held.hold == Hold::Free);
                held.ok_or("a payment takes a coin that is not free")?.hold = Hold::Reserved(tx);
            }
        }
        if let Some(key) = &key {
            self.keys.insert(key.clone(), tx);
        }
        self.payments.insert(tx, self.entries.len());
        let state = PaymentState::Begun;
        let transaction = Arc::new(transaction);
        let payment = Payment { id: tx, order, key, transaction, begun_ms: at_ms, state };
        self.entries.push(Entry::Payment(Box::new(payment)));
        Ok(())
    }

    fn end(&mut self, tx: TxId, outcome: PaymentOutcome, at_ms: u64) -> Result<(), &'static str> {
        let network = self.network.ok_or("it has a payment before its network")?;
        let at = *self.payments.get(&tx).ok_or("a payment ends that did not begin")?;
        let Entry::Payment(payment) = &mut self.entries[at] else {
            return Err("a payment ends that did not begin");
        };
        if payment.state != PaymentState::Begun {
            return Err("a payment ends twice");
        }
        let transaction = Arc::clone(&payment.transaction);
        payment.state = PaymentState::of(outcome.clone(), at_ms);
        let inputs = match transaction.source {
            Source::Spend(_) | Source::Refund(_) => transaction.locks(),
            Source::Issue { .. } => Vec::new(),
        };
        match outcome {
            PaymentOutcome::Certified(certificate) => {
                for input in inputs {
                    self.coins.remove(&input);
                    self.spent.insert(input, tx);
                }
                let mut coins = transaction.coins(network, &certificate);
                coins.retain(|coin| Some(coin.output.owner) == self.owner);
                self.add(coins);
            }
            // No honest authority voted for what one found invalid: its inputs are not locked.
            PaymentOutcome::Refused(_) => self.hold(&inputs, Hold::Free),
            PaymentOutcome::Conflicting(_) | PaymentOutcome::Released(..) => {
                self.hold(&inputs, Hold::Frozen(tx));
            }
        }
        Ok(())
    }

    fn hold(&mut self, inputs: &[OutputId], hold: Hold) {
        for input in inputs {
            if let Some(held) = self.coins.get_mut(input) {
                held.hold = hold;
            }
        }
    }
}
