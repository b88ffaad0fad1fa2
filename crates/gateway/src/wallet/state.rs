//! State of a wallet, replayed from its file: coins, payments, and the order in which they came.
//!
//! A [`WalletState`] is made from [`Record`]s alone, whether they were just written or are read
//! again: so a wallet that was killed and one that went on are the same.

use super::payment::{Entry, Incoming, Order, Payment, PaymentState};
use super::request::{Request, RequestId, RequestPayment, RequestTerms, reference};
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
    /// As [`Record::Begun`], with the name of whoever ordered it.
    BegunBy { by: String, order: Order, key: Option<String>, transaction: Transaction, at_ms: u64 },
    /// A request for payment is made. What pays it is a [`Record::Received`].
    Requested { id: RequestId, terms: RequestTerms },
    /// A request is cancelled.
    Cancelled { id: RequestId, at_ms: u64 },
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
    requests: Vec<Request>,
    request_ids: BTreeMap<RequestId, usize>,
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
                return self.begin(None, order, key, transaction, at_ms);
            }
            Record::BegunBy { by, order, key, transaction, at_ms } => {
                return self.begin(Some(by), order, key, transaction, at_ms);
            }
            Record::Ended { tx, outcome, at_ms } => return self.end(tx, outcome, at_ms),
            Record::Requested { id, terms } => return self.request_payment(id, terms),
            Record::Cancelled { id, at_ms } => return self.cancel(id, at_ms),
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
        self.settle_request(&incoming);
        self.entries.push(Entry::Incoming(incoming));
        self.add(receipt.coins);
    }

    /// Notes that a request is paid, by coins of which all are new here (★).
    fn settle_request(&mut self, incoming: &Incoming) {
        let memo = incoming.memo.as_deref().unwrap_or_default();
        let Some(id) = self.requested_by(memo).map(|request| request.id) else { return };
        let request = &mut self.requests[self.request_ids[&id]];
        if request.paid.is_none() && incoming.value >= request.terms.value {
            let Incoming { tx, payer, value, at_ms, .. } = *incoming;
            request.paid = Some(RequestPayment { tx, payer, value, at_ms });
        }
    }

    /// Request whose memo this is, to the letter.
    pub(super) fn requested_by(&self, memo: &str) -> Option<&Request> {
        self.request(reference(memo)?).filter(|request| request.text() == memo)
    }

    pub(super) fn request(&self, id: RequestId) -> Option<&Request> {
        self.request_ids.get(&id).map(|at| &self.requests[*at])
    }

    pub(super) fn requests(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter()
    }

    fn request_payment(&mut self, id: RequestId, terms: RequestTerms) -> Result<(), &'static str> {
        if self.request_ids.insert(id, self.requests.len()).is_some() {
            return Err("two requests have one name");
        }
        self.requests.push(Request { id, terms, paid: None, cancelled_ms: None });
        Ok(())
    }

    fn cancel(&mut self, id: RequestId, at_ms: u64) -> Result<(), &'static str> {
        let at = *self.request_ids.get(&id).ok_or("a request is cancelled that was not made")?;
        self.requests[at].cancelled_ms = Some(at_ms);
        Ok(())
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
        by: Option<String>,
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
        let payment = Payment { id: tx, order, key, by, transaction, begun_ms: at_ms, state };
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
            Source::Spend(_) => transaction.locks(),
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
            PaymentOutcome::Conflicting(_) => self.hold(&inputs, Hold::Frozen(tx)),
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
