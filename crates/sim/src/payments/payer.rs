//! An honest owner: a wallet around the payer's machine. What it stored survives a crash; what it
//! only meant to pay does not.

use quorate_crypto::{IdentityKey, IdentitySecret};
use quorate_deterministic::Rng;
use quorate_payments::{
    Coin, Network, Output, OutputId, Payer, PayerEffect, PayerEvent, PaymentOutcome, Source,
    Transaction, TxId,
};
use quorate_types::{Machine, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An owner and what is theirs.
#[derive(Debug)]
pub(super) struct Wallet {
    network: Arc<Network>,
    secret: IdentitySecret,
    issues: bool,
    /// Durable: coins, and transactions that are not known to be certified.
    coins: BTreeMap<OutputId, Coin>,
    stored: BTreeMap<TxId, Arc<Transaction>>,
    serial: u64,
    /// Outputs that are being paid with, stored or not.
    promised: BTreeSet<OutputId>,
    machine: Payer,
    pub(super) life: u64,
    pub(super) is_up: bool,
    /// Stored transactions, over all lives, and those that became certificates.
    pub(super) begun: u64,
    pub(super) certified: u64,
}

impl Wallet {
    pub(super) fn new(network: &Arc<Network>, secret: IdentitySecret, issues: bool) -> Self {
        let coins = genesis_coins(network, secret.public()).map(|coin| (coin.id, coin)).collect();
        Self {
            secret,
            issues,
            coins,
            stored: BTreeMap::new(),
            serial: 0,
            promised: BTreeSet::new(),
            machine: Payer::new(Arc::clone(network)),
            network: Arc::clone(network),
            life: 0,
            is_up: true,
            begun: 0,
            certified: 0,
        }
    }

    pub(super) fn owner(&self) -> IdentityKey {
        self.secret.public()
    }

    /// Payments that were stored and are not over.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = &TxId> {
        self.stored.keys()
    }

    pub(super) fn add(&mut self, coin: Coin) {
        self.coins.insert(coin.id, coin);
    }

    pub(super) fn crash(&mut self) {
        self.life += 1;
        self.is_up = false;
    }

    /// Goes on with what it had stored.
    pub(super) fn start(&mut self, now: Time) {
        if self.is_up {
            return;
        }
        self.is_up = true;
        self.machine = Payer::new(Arc::clone(&self.network));
        self.promised = self.stored.values().flat_map(|tx| tx.locks()).collect();
        for tx in self.stored.values() {
            self.machine.handle(now, PayerEvent::Pay(Arc::clone(tx)));
        }
    }

    /// Pays somebody something, if there is anything to pay with.
    pub(super) fn pay(
        &mut self,
        now: Time,
        others: &[IdentityKey],
        rng: &mut Rng,
    ) -> Option<Arc<Transaction>> {
        if !self.is_up {
            return None;
        }
        let tx = if self.issues && rng.coin() {
            self.serial += 1;
            let outputs = vec![Output { owner: *rng.choose(others), value: rng.below(1_000) + 1 }];
            Transaction::issue(&self.network, &self.secret, self.serial, outputs)
        } else {
            let free = self.coins.values().filter(|coin| !self.promised.contains(&coin.id));
            let coins: Vec<Coin> = free.take(rng.index(3) + 1).cloned().collect();
            let outputs = self.share_out(&coins, others, rng)?;
            Transaction::spend(&self.network, &self.secret, &coins, outputs)
        };
        self.promised.extend(tx.locks());
        let tx = Arc::new(tx);
        self.machine.handle(now, PayerEvent::Pay(Arc::clone(&tx)));
        Some(tx)
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
        if self.stored.insert(id, Arc::clone(tx)).is_none() {
            self.begun += 1;
        }
        if let Source::Issue { serial } = tx.source {
            self.serial = self.serial.max(serial);
        }
        self.machine.handle(now, PayerEvent::Stored(id));
    }

    /// A payment is over: its coins, where it is certified.
    pub(super) fn on_done(
        &mut self,
        id: TxId,
        outcome: PaymentOutcome,
    ) -> Result<Vec<Coin>, String> {
        let PaymentOutcome::Certified(certificate) = outcome else {
            return Err(format!("an honest payment ended as {outcome:?}"));
        };
        let tx = self.stored.remove(&id).ok_or_else(|| format!("{id} was never stored"))?;
        for spent in tx.locks() {
            self.coins.remove(&spent);
        }
        self.certified += 1;
        Ok(tx.coins(self.network.id(), &certificate))
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
