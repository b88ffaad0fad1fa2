//! State of a wallet, replayed from its file: coins, payments, and the order in which they came.
//!
//! A [`WalletState`] is made from [`Record`]s alone, whether they were just written or are read
//! again: so a wallet that was killed and one that went on are the same.

mod folding;
mod releases;

pub(super) use folding::Newest;

use super::archive::ArchivePoint;
use super::held::{Held, Hold};
use super::notes::ReceivedNote;
use super::payment::{Entry, Incoming, Order, Payment, PaymentState};
use super::record::Record;
use super::request::{Request, RequestId, RequestPayment, RequestTerms, reference};
use quorate_crypto::IdentityKey;
use quorate_crypto::mutants::{self, Mutant};
use quorate_payments::{
    Coin, Origin, OutputId, PayReceipt, PaymentOutcome, Source, Transaction, TxId,
};
use quorate_types::NetworkId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A payment that begins, or that began before the book was made again.
struct Begin {
    by: Option<String>,
    order: Order,
    key: Option<String>,
    transaction: Transaction,
    at_ms: u64,
    is_regained: bool,
}

/// Coins, payments and their order. Of what is in the archive it knows nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WalletState {
    pub(super) owner: Option<IdentityKey>,
    pub(super) network: Option<NetworkId>,
    pub(super) coins: BTreeMap<OutputId, Held>,
    /// Outputs that this wallet spent, which are never taken in again, by the payment that spent
    /// them.
    spent: BTreeMap<OutputId, TxId>,
    /// Lines of the history that are not in the archive, by their numbers.
    pub(super) entries: BTreeMap<u64, Entry>,
    /// Number of the next line.
    line_next: u64,
    payments: BTreeMap<TxId, u64>,
    keys: BTreeMap<String, TxId>,
    requests: Vec<Request>,
    request_ids: BTreeMap<RequestId, usize>,
    /// The number of the next issue.
    pub(super) serial_next: u64,
    /// True once the book was made again.
    pub(super) is_restored: bool,
    /// True while the records of authorities are to be taken in before anything is paid.
    pub(super) is_recovery_due: bool,
    /// Payments whose change another wallet of this key may have spent: those from before the book
    /// was made again, and those that a release ended.
    doubtful: BTreeSet<TxId>,
    /// Transactions whose receipts no quorum has recorded yet.
    pub(super) unstored: BTreeSet<TxId>,
    /// Archive that the book goes on from, if it was folded.
    pub(super) archive: Option<ArchivePoint>,
    /// Length of the archive whose records each authority removed.
    pub(super) removed: BTreeMap<IdentityKey, u64>,
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
                let begin = Begin { by: None, order, key, transaction, at_ms, is_regained: false };
                return self.begin(begin);
            }
            Record::BegunBy { by, order, key, transaction, at_ms } => {
                let by = Some(by);
                return self.begin(Begin {
                    by,
                    order,
                    key,
                    transaction,
                    at_ms,
                    is_regained: false,
                });
            }
            Record::Regained { by, order, key, transaction, at_ms } => {
                return self.begin(Begin { by, order, key, transaction, at_ms, is_regained: true });
            }
            Record::Restored { at_ms } => self.restore(at_ms),
            Record::Recovered { .. } => self.is_recovery_due = false,
            Record::Asked { free, taken, .. } => self.learn(&free, &taken),
            Record::Stored(receipts) => self.unstored.retain(|tx| !receipts.contains(tx)),
            Record::Ended { tx, outcome, at_ms } => return self.end(tx, outcome, at_ms),
            Record::Requested { id, terms } => return self.request_payment(id, terms),
            Record::Cancelled { id, at_ms } => return self.cancel(id, at_ms),
            Record::ReleaseAsked { coins, .. } => return self.ask_release(&coins),
            Record::ReleaseDecided { decided, .. } => return self.decide(&decided),
            Record::Folded(folded) => return self.unfold(folded),
            Record::Coin(held) => drop(self.coins.insert(held.coin.id, held)),
            Record::Line(line) => return self.keep(line),
            Record::Request(request) => return self.keep_request(request),
            Record::Spent { coins, .. } => self.lose(coins),
            Record::Removed { authority, archive_bytes } => {
                self.removed.insert(authority, archive_bytes);
            }
        }
        Ok(())
    }

    /// Tells whether a coin is or was here, as far as the book knows.
    pub(super) fn knows(&self, id: &OutputId) -> bool {
        self.coins.contains_key(id) || self.spent.contains_key(id)
    }

    /// Tells whether a coin of a transaction is here, unspent.
    pub(super) fn has_coin_of(&self, tx: TxId) -> bool {
        let place = |index| OutputId { tx, index };
        self.coins.range(place(0)..=place(u16::MAX)).next().is_some()
    }

    /// Coins that can be spent (★): none whose state was not asked for since the book was made
    /// again, and none that is or was under release.
    pub(super) fn free(&self) -> impl Iterator<Item = &Coin> {
        self.unreleased(|hold| {
            let is_unasked = hold == Hold::Unasked && mutants::active(Mutant::PaySpendUnasked);
            hold == Hold::Free || is_unasked
        })
    }

    /// Coins whose state is to be asked for.
    pub(super) fn unasked(&self) -> impl Iterator<Item = &Coin> {
        self.unreleased(|hold| hold == Hold::Unasked)
    }

    fn unreleased(&self, is_wanted: impl Fn(Hold) -> bool) -> impl Iterator<Item = &Coin> {
        let is_wanted = move |held: &&Held| held.release.is_none() && is_wanted(held.hold);
        self.coins.values().filter(is_wanted).map(|held| &held.coin)
    }

    /// Note for the record of coins that came in.
    pub(super) fn received_note(&self, tx: TxId) -> ReceivedNote {
        let incoming = self.entries.values().find_map(|entry| match entry {
            Entry::Incoming(incoming) if incoming.tx == tx => Some(incoming),
            _ => None,
        });
        let memo = incoming.and_then(|incoming| incoming.memo.clone());
        ReceivedNote { memo, at_ms: incoming.map_or(0, |incoming| incoming.at_ms) }
    }

    /// Tells whether a transaction that was sent before fits what is known: no other one holds or
    /// spent a coin of it. A refund was made when it was decided, so that no other one counts.
    pub(super) fn can_regain(&self, transaction: &Transaction, tx: TxId) -> bool {
        let is_refund = matches!(transaction.source, Source::Refund(_));
        let is_open = |input: &OutputId| match self.coins.get(input) {
            Some(held) => is_refund || held.yields_to(tx),
            None => self.spent.get(input).is_none_or(|spender| *spender == tx),
        };
        match transaction.source {
            Source::Spend(_) | Source::Refund(_) => transaction.locks().iter().all(is_open),
            Source::Issue { .. } => true,
        }
    }

    pub(super) fn payment(&self, tx: TxId) -> Option<&Payment> {
        match &self.entries[self.payments.get(&tx)?] {
            Entry::Payment(payment) => Some(payment),
            Entry::Incoming(_) => None,
        }
    }

    pub(super) fn payment_of_key(&self, key: &str) -> Option<&Payment> {
        self.payment(*self.keys.get(key)?)
    }

    pub(super) fn payments(&self) -> impl Iterator<Item = &Payment> {
        self.entries.values().filter_map(|entry| match entry {
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
            memo: receipt.memo,
            at_ms,
        };
        // Before all that is known of the wallet is back, nothing says that they are new (★).
        if !self.is_recovery_due || mutants::active(Mutant::PayRequestUnrecovered) {
            self.settle_request(&incoming);
        }
        if first.origin != Origin::Genesis {
            self.unstored.insert(incoming.tx);
        }
        self.enter(Entry::Incoming(incoming));
        let hold = if self.is_restored { Hold::Unasked } else { Hold::Free };
        self.add(receipt.coins, hold);
    }

    /// Adds a line to the history.
    fn enter(&mut self, entry: Entry) -> u64 {
        let number = self.line_next;
        self.line_next += 1;
        self.entries.insert(number, entry);
        number
    }

    /// Notes that a request is paid, by coins of which all are new here (★).
    fn settle_request(&mut self, incoming: &Incoming) {
        let memo = incoming.memo.as_ref().map_or("", |memo| &memo.text);
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

    fn add(&mut self, coins: Vec<Coin>, hold: Hold) {
        for coin in coins {
            if !self.knows(&coin.id) {
                self.coins.insert(coin.id, Held::new(coin, hold));
            }
        }
    }

    fn restore(&mut self, at_ms: u64) {
        (self.is_restored, self.is_recovery_due) = (true, true);
        self.doubtful.extend(self.payments.keys());
        for held in self.coins.values_mut() {
            if held.release.is_none() && matches!(held.hold, Hold::Free | Hold::Stuck(_)) {
                held.hold = Hold::Unasked;
            }
        }
        // Numbers below may have been used by what the book does not know; time goes on by fewer.
        self.serial_next = self.serial_next.max(at_ms);
    }

    fn learn(&mut self, free: &[OutputId], taken: &[(OutputId, TxId)]) {
        let free = free.iter().map(|id| (id, Hold::Free));
        let taken = taken.iter().map(|(id, tx)| (id, Hold::Stuck(*tx)));
        for (id, hold) in free.chain(taken) {
            if let Some(held) = self.coins.get_mut(id).filter(|held| held.hold == Hold::Unasked) {
                held.hold = hold;
            }
        }
    }

    fn begin(&mut self, begin: Begin) -> Result<(), &'static str> {
        let Begin { by, order, key, transaction, at_ms, is_regained } = begin;
        let network = self.network.ok_or("it has a payment before its network")?;
        let tx = transaction.id(network);
        let is_refund = matches!(transaction.source, Source::Refund(_));
        if let Source::Issue { serial } = transaction.source {
            self.serial_next = self.serial_next.max(serial.saturating_add(1));
        } else {
            if is_regained {
                // What a quorum was locked for had a record after all.
                self.spent.retain(|_, spender| *spender != tx);
                self.add(transaction.spent_coins(), Hold::Unasked);
            }
            for input in transaction.locks() {
                let is_open = |held: &&mut Held| match is_refund {
                    true => is_regained || held.is_refunded(),
                    false => held.yields_to(tx),
                };
                let held = self.coins.get_mut(&input).filter(is_open);
                held.ok_or("a payment takes a coin that is not free")?.hold = Hold::Reserved(tx);
            }
        }
        if is_regained || is_refund {
            self.doubtful.insert(tx);
        }
        if let Some(key) = &key {
            self.keys.insert(key.clone(), tx);
        }
        let state = PaymentState::Begun;
        let transaction = Arc::new(transaction);
        let payment = Payment { id: tx, order, key, by, transaction, begun_ms: at_ms, state };
        let number = self.enter(Entry::Payment(Box::new(payment)));
        self.payments.insert(tx, number);
        Ok(())
    }

    fn end(&mut self, tx: TxId, outcome: PaymentOutcome, at_ms: u64) -> Result<(), &'static str> {
        let network = self.network.ok_or("it has a payment before its network")?;
        let at = *self.payments.get(&tx).ok_or("a payment ends that did not begin")?;
        let Some(Entry::Payment(payment)) = self.entries.get_mut(&at) else {
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
        let is_doubtful = self.doubtful.contains(&tx);
        let known = if is_doubtful { Hold::Unasked } else { Hold::Free };
        match outcome {
            PaymentOutcome::Certified(certificate) => {
                for input in inputs {
                    self.coins.remove(&input);
                    self.spent.insert(input, tx);
                }
                let mut coins = transaction.coins(network, &certificate);
                coins.retain(|coin| Some(coin.output.owner) == self.owner);
                self.add(coins, known);
            }
            // No honest authority voted for what one found invalid: its inputs are not locked.
            PaymentOutcome::Refused(_) => self.hold(tx, &inputs, known),
            PaymentOutcome::Conflicting(_) | PaymentOutcome::Released(..) => {
                self.hold(tx, &inputs, Hold::Frozen(tx));
            }
        }
        Ok(())
    }

    /// Ends what a payment holds: a refund may have taken a coin of it meanwhile.
    fn hold(&mut self, tx: TxId, inputs: &[OutputId], hold: Hold) {
        for input in inputs {
            let held = self.coins.get_mut(input);
            if let Some(held) = held.filter(|held| held.hold == Hold::Reserved(tx)) {
                held.hold = hold;
            }
        }
    }
}
