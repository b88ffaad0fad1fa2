//! An honest owner: a wallet around the payer's machine. What it stored survives a crash; what it
//! only meant to pay does not. Where its book is lost, or an older one is put in its place, it goes
//! on by the rules of wallets, or by none of them.

mod book;
mod borders;
mod recovery;
mod releases;

pub(super) use recovery::Deed;

use book::{Book, Hold};
use quorate_crypto::{IdentityKey, IdentitySecret};
use quorate_deterministic::Rng;
use quorate_payments::{
    Coin, Network, Output, OutputId, Payer, PayerEffect, PayerEvent, PaymentOutcome, Source,
    Transaction, TxCertificate, TxId, WalletReply, WalletRequest,
};
use quorate_types::{Machine, ReplicaId, Time};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// First wait before a wallet looks again after what it waits for; twice as long each time.
const LOOK_AFTER: Duration = Duration::from_millis(400);

/// Longest wait before it looks again.
const LOOK_AFTER_MAX: Duration = Duration::from_secs(4);

/// Loss of a wallet's book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mishap {
    /// All is lost but the key: the wallet is made again from what authorities keep.
    Lost,
    /// The last backup is restored, and the authorities are asked for the rest.
    Restored,
    /// The last backup goes on as if it were the wallet, which no rule allows: its owner spends
    /// twice without knowing.
    Copied,
}

impl Mishap {
    /// Every mishap, in the order in which tables list them.
    pub const ALL: [Self; 3] = [Self::Lost, Self::Restored, Self::Copied];

    /// Name for several of its kind, in statistics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost wallets",
            Self::Restored => "restored backups",
            Self::Copied => "copied wallets",
        }
    }
}

/// A question that all authorities are asked, and what they answered.
#[derive(Debug)]
struct Question {
    number: u64,
    request: WalletRequest,
    answers: BTreeMap<ReplicaId, WalletReply>,
    /// Time until which others are waited for, once a quorum answered.
    until: Option<Time>,
}

/// An owner and what is theirs.
#[derive(Debug)]
pub(super) struct Wallet {
    network: Arc<Network>,
    /// Number of the epoch that it knows as the one in force.
    pub(super) epoch: usize,
    secret: IdentitySecret,
    issues: bool,
    /// Asks for a release of what is under way for so long.
    patience: Duration,
    book: Book,
    backup: Book,
    /// Payments under way since when; those that are not stored yet among them.
    since: BTreeMap<TxId, Time>,
    unstored: BTreeMap<TxId, Arc<Transaction>>,
    questions: Vec<Question>,
    asked: u64,
    machine: Payer,
    pub(super) life: u64,
    pub(super) is_up: bool,
    look_after: Duration,
    is_look_due: bool,
    /// Mishaps so far, and the transactions that the wallet must not sign against since the last.
    pub(super) mishaps: BTreeSet<&'static str>,
    pub(super) barred: BTreeSet<TxId>,
    /// Transactions whose receipts a quorum recorded, over all lives.
    pub(super) recorded: BTreeSet<TxId>,
    /// Coins that it asked to have frozen, over all lives.
    pub(super) wished: BTreeSet<OutputId>,
    /// Certified payments and refunds, over all lives.
    pub(super) certified: BTreeSet<TxId>,
    pub(super) refunded: u64,
}

impl Wallet {
    pub(super) fn new(
        network: &Arc<Network>,
        secret: IdentitySecret,
        issues: bool,
        patience: Duration,
    ) -> Self {
        let coins = genesis_coins(network, secret.public()).map(|coin| (coin.id, coin)).collect();
        let book = Book { coins, ..Book::default() };
        Self {
            secret,
            issues,
            patience,
            backup: book.clone(),
            book,
            since: BTreeMap::new(),
            unstored: BTreeMap::new(),
            questions: Vec::new(),
            asked: 0,
            machine: Payer::new(Arc::clone(network)),
            network: Arc::clone(network),
            epoch: 0,
            life: 0,
            is_up: true,
            look_after: LOOK_AFTER,
            is_look_due: false,
            mishaps: BTreeSet::new(),
            barred: BTreeSet::new(),
            recorded: BTreeSet::new(),
            wished: BTreeSet::new(),
            certified: BTreeSet::new(),
            refunded: 0,
        }
    }

    pub(super) fn owner(&self) -> IdentityKey {
        self.secret.public()
    }

    /// Payments that are not over.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = (&TxId, &Arc<Transaction>)> {
        self.book.stored.iter().chain(&self.book.blocked)
    }

    /// Tells whether the machine has nothing under way but what is stored, and the wallet asks for
    /// nothing but, again and again, coins that it cannot spend.
    pub(super) fn is_idle(&self) -> bool {
        let is_asking = !self.questions.is_empty() && self.book.holds.is_empty();
        self.machine.under_way() <= self.book.stored.len() && !is_asking
    }

    /// Network of the epoch that it knows.
    pub(super) fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// What is held against a coin, in words.
    pub(super) fn obstacle(&self, coin: OutputId) -> String {
        let takes = |tx: &Transaction| tx.locks().contains(&coin);
        let taker = self.unfinished().find(|(_, tx)| takes(tx)).map(|(id, _)| *id);
        let (hold, mishaps) = (self.book.holds.get(&coin), &self.mishaps);
        format!("held as {hold:?}, waits for {taker:?}; after {mishaps:?}")
    }

    /// Coins that may be spent.
    pub(super) fn free(&self) -> BTreeSet<OutputId> {
        self.book.free().map(|coin| coin.id).collect()
    }

    /// Tells whether the wallet once went on from a copy, and may have signed anything twice.
    pub(super) fn was_copied(&self) -> bool {
        self.mishaps.contains(Mishap::Copied.name())
    }

    /// Somebody paid, and shows it.
    pub(super) fn add(&mut self, coin: Coin) {
        let (tx, is_asked) = (coin.id.tx, !self.book.is_restored);
        if self.book.add(coin, is_asked) {
            self.book.unrecorded.insert(tx);
            self.look_after = LOOK_AFTER;
        }
    }

    pub(super) fn crash(&mut self) {
        self.life += 1;
        self.is_up = false;
        self.is_look_due = false;
        self.since.clear();
        self.unstored.clear();
        self.questions.clear();
    }

    pub(super) fn back_up(&mut self) {
        self.backup = self.book.clone();
    }

    /// The book is lost, or replaced by the backup.
    pub(super) fn suffer(&mut self, now: Time, mishap: Mishap) {
        self.crash();
        self.mishaps.insert(mishap.name());
        self.book = match mishap {
            Mishap::Lost => self.fresh_book(),
            Mishap::Restored | Mishap::Copied => self.backup.clone(),
        };
        // Numbers below may have been used by what the book does not know.
        self.book.serial = self.book.serial.max(now.0);
        if mishap == Mishap::Copied {
            return;
        }
        (self.book.is_restored, self.book.is_recovering) = (true, true);
        let coins: Vec<OutputId> = self.book.coins.keys().copied().collect();
        self.book.holds.extend(coins.into_iter().map(|coin| (coin, Hold::Unasked)));
    }

    fn fresh_book(&self) -> Book {
        let coins = genesis_coins(&self.network, self.owner());
        Book { coins: coins.map(|coin| (coin.id, coin)).collect(), ..Book::default() }
    }

    /// Goes on with what it had stored.
    pub(super) fn start(&mut self, now: Time) {
        if self.is_up {
            return;
        }
        self.is_up = true;
        self.look_after = LOOK_AFTER;
        self.machine = Payer::new(Arc::clone(&self.network));
        self.resume(now);
    }

    /// Shows everything that is stored and not under way.
    fn resume(&mut self, now: Time) {
        for (id, tx) in &self.book.stored {
            if !self.since.contains_key(id) {
                self.since.insert(*id, now);
                self.machine.handle(now, PayerEvent::Pay(Arc::clone(tx)));
            }
        }
    }

    /// Pays somebody something, if there is anything to pay with.
    pub(super) fn pay(
        &mut self,
        now: Time,
        others: &[IdentityKey],
        rng: &mut Rng,
    ) -> Option<Arc<Transaction>> {
        if !self.is_up || self.book.is_recovering {
            return None;
        }
        let tx = if self.issues && rng.coin() {
            self.book.serial += 1;
            let outputs = vec![Output { owner: *rng.choose(others), value: rng.below(1_000) + 1 }];
            Transaction::issue(&self.network, &self.secret, self.book.serial, outputs)
        } else {
            let promised: BTreeSet<OutputId> =
                self.unstored.values().flat_map(|tx| tx.locks()).collect();
            let free = self.book.free().filter(|coin| !promised.contains(&coin.id));
            let coins: Vec<Coin> = free.take(rng.index(3) + 1).cloned().collect();
            let outputs = self.share_out(&coins, others, rng)?;
            Transaction::spend(&self.network, &self.secret, &coins, outputs)
        };
        Some(self.begin(now, tx))
    }

    /// Pays all that it has to somebody, or nothing while something is not there yet.
    pub(super) fn pay_all(
        &mut self,
        now: Time,
        others: &[IdentityKey],
        rng: &mut Rng,
    ) -> Option<Arc<Transaction>> {
        let coins: Vec<Coin> = self.book.free().take(Transaction::INPUTS_MAX).cloned().collect();
        let value = coins.iter().map(|coin| coin.output.value).sum();
        if !self.is_up || coins.is_empty() {
            return None;
        }
        let outputs = vec![Output { owner: *rng.choose(others), value }];
        let tx = Transaction::spend(&self.network, &self.secret, &coins, outputs);
        Some(self.begin(now, tx))
    }

    fn begin(&mut self, now: Time, tx: Transaction) -> Arc<Transaction> {
        let (id, tx) = (tx.id(self.network.id()), Arc::new(tx));
        self.since.insert(id, now);
        self.unstored.insert(id, Arc::clone(&tx));
        self.machine.handle(now, PayerEvent::Pay(Arc::clone(&tx)));
        tx
    }

    /// A part to somebody, sometimes a part to be redeemed, the rest back.
    fn share_out(
        &self,
        coins: &[Coin],
        others: &[IdentityKey],
        rng: &mut Rng,
    ) -> Option<Vec<Output>> {
        let total: u64 = coins.iter().map(|coin| coin.output.value).sum();
        if total == 0 {
            return None;
        }
        let paid = rng.below(total) + 1;
        let owner = if rng.one_in(8) { Output::BURNT } else { *rng.choose(others) };
        let back = Output { owner: self.owner(), value: total - paid };
        let outputs = [Output { owner, value: paid }, back];
        Some(outputs.into_iter().filter(|output| output.value > 0).collect())
    }

    /// Takes in that a transaction is stored: from here on it is never abandoned.
    pub(super) fn on_stored(&mut self, now: Time, tx: &Arc<Transaction>) {
        let id = tx.id(self.network.id());
        self.unstored.remove(&id);
        // Answers to what it showed in an earlier life, or the records of that, may have ended it
        // meanwhile. Its machine finishes what it began all the same.
        if self.since.contains_key(&id) && !self.book.certified.contains_key(&id) {
            self.book.stored.insert(id, Arc::clone(tx));
            if let Source::Issue { serial } = tx.source {
                self.book.serial = self.book.serial.max(serial);
            }
        }
        self.machine.handle(now, PayerEvent::Stored(id));
    }

    /// A payment is over: its coins, where it is certified. One that is not is to be released.
    pub(super) fn on_done(
        &mut self,
        id: TxId,
        outcome: PaymentOutcome,
    ) -> Result<Vec<Coin>, String> {
        self.since.remove(&id);
        let Some(tx) = self.book.stored.get(&id).cloned() else {
            // Its certificate came back from an authority meanwhile.
            let is_over = self.book.certified.contains_key(&id);
            return if is_over { Ok(Vec::new()) } else { Err(format!("{id} was never stored")) };
        };
        let is_expected = match &outcome {
            PaymentOutcome::Certified(_) => true,
            PaymentOutcome::Refused(_) => false,
            // After a border, what liars reported locks a coin until more reports are read.
            PaymentOutcome::Conflicting(proof) => {
                !self.mishaps.is_empty() || (self.epoch > 0 && proof.is_none())
            }
            PaymentOutcome::Released(..) => {
                tx.locks().iter().any(|coin| self.wished.contains(coin))
            }
        };
        if !is_expected {
            return Err(format!("an honest payment ended as {outcome:?}"));
        }
        let PaymentOutcome::Certified(certificate) = outcome else {
            self.book.block(id);
            self.look_after = LOOK_AFTER;
            return Ok(Vec::new());
        };
        Ok(self.end(&tx, &certificate))
    }

    fn end(&mut self, tx: &Transaction, certificate: &TxCertificate) -> Vec<Coin> {
        let network = self.network.id();
        self.book.end(network, tx, certificate);
        if self.certified.insert(tx.id(network)) {
            self.refunded += u64::from(matches!(tx.source, Source::Refund(_)));
        }
        tx.coins(network, certificate)
    }

    pub(super) fn handle(&mut self, now: Time, event: PayerEvent) {
        self.machine.handle(now, event);
    }

    pub(super) fn on_timeout(&mut self, now: Time) {
        self.machine.handle_timeout(now);
    }

    pub(super) fn poll(&mut self) -> Option<PayerEffect> {
        self.machine.poll()
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.machine.next_timeout()
    }
}

/// Coins that the network began with for an owner.
pub(super) fn genesis_coins(
    network: &Network,
    owner: IdentityKey,
) -> impl Iterator<Item = Coin> + '_ {
    let own = network.genesis_outputs().filter(move |(_, output)| output.owner == owner);
    own.map(|(id, output)| Coin { id, output, origin: quorate_payments::Origin::Genesis })
}
