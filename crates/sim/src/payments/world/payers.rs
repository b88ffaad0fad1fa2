//! What happens at payers and thieves.

use super::{Frame, PayerWork, SimEvent, Verdicts, World};
use crate::payments::books::Violation;
use crate::payments::payer::{Deed, Mishap};
use crate::payments::thief::Act;
use quorate_crypto::IdentityKey;
use quorate_payments::{
    Answer, Coin, Numbered, Origin, PayerEffect, PayerEvent, PaymentOutcome, Source, Transaction,
    TxId, WalletReply,
};
use quorate_types::ReplicaId;
use std::sync::Arc;
use std::time::Duration;

impl World {
    fn others(&self, me: IdentityKey) -> Vec<IdentityKey> {
        self.owners.iter().copied().filter(|owner| *owner != me).collect()
    }

    /// A payer pays something, or all that it has.
    pub(super) fn on_wish(&mut self, payer: usize, all: bool) -> Verdicts {
        let others = self.others(self.wallets[payer].owner());
        let wallet = &mut self.wallets[payer];
        let made = if all {
            wallet.pay_all(self.now, &others, &mut self.rng)
        } else {
            wallet.pay(self.now, &others, &mut self.rng)
        };
        if let Some(tx) = made {
            self.on_made(&tx)?;
        }
        self.drain_payer(payer)
    }

    fn on_made(&mut self, tx: &Transaction) -> Verdicts {
        self.books.on_transaction(tx.id(self.founding().id()), tx)
    }

    /// An honest owner shows a transaction: with no other one is it evidence against it (★). Who
    /// was made again knows all that a quorum can tell; a copy knows nothing.
    fn on_shown(&mut self, payer: usize, tx: &Transaction) -> Verdicts {
        let id = tx.id(self.founding().id());
        let (wallet, is_refund) = (&self.wallets[payer], matches!(tx.source, Source::Refund(_)));
        if !self.books.on_shown(id) || wallet.was_copied() || is_refund {
            return Ok(());
        }
        let is_known = |other: &TxId| wallet.mishaps.is_empty() || wallet.barred.contains(other);
        let is_evidence =
            |other: &TxId| *other != id && self.books.was_shown(*other) && is_known(other);
        let coins = tx.locks().into_iter();
        let others = coins.flat_map(|coin| self.books.spenders(coin, tx.payer));
        match others.into_iter().find(is_evidence) {
            Some(other) => {
                let text = format!("payer {payer} shows {id} over a coin of its {other}");
                Err(Violation { oracle: "evidence", text })
            }
            None => Ok(()),
        }
    }

    pub(super) fn on_mishap(&mut self, payer: usize, down: Duration, mishap: Mishap) {
        let owner = self.wallets[payer].owner();
        self.wallets[payer].suffer(self.now, mishap);
        let epoch = self.wallets[payer].epoch;
        self.wallets[payer].barred = self.books.well_known(epoch, owner);
        self.events.schedule(self.now + down, SimEvent::PayerRestart(payer));
        // Whoever paid shows its receipts again, but for what authorities keep.
        let lost = |coin: &&Coin| {
            coin.output.owner == owner && !self.wallets[payer].recorded.contains(&coin.id.tx)
        };
        let receipts: Vec<Coin> = self.receipts.iter().filter(lost).cloned().collect();
        for coin in receipts {
            let at = self.now + down + Duration::from_secs(1);
            self.events.schedule(at, SimEvent::Paid(Box::new(coin)));
        }
    }

    pub(super) fn on_payer(&mut self, payer: usize, life: u64, due: PayerWork) -> Verdicts {
        if self.wallets[payer].life != life {
            return Ok(());
        }
        let now = self.now;
        match due {
            PayerWork::Stored(tx) => self.wallets[payer].on_stored(now, &tx),
            PayerWork::Machine(event) => self.wallets[payer].handle(now, event),
            PayerWork::Timer => self.wallets[payer].on_timeout(now),
            PayerWork::Look => {
                let asks = self.committees[self.wallets[payer].epoch].has_releases();
                let deeds = self.wallets[payer].look(now, &self.committees[0], asks);
                self.perform(payer, deeds)?;
            }
        }
        self.drain_payer(payer)
    }

    pub(super) fn on_answer(&mut self, owner: usize, by: ReplicaId, answer: Answer) -> Verdicts {
        let Some(thief) = owner.checked_sub(self.wallets.len()) else {
            if !self.wallets[owner].is_up {
                return Ok(());
            }
            self.wallets[owner].handle(self.now, PayerEvent::Answer { from: by, answer });
            return self.drain_payer(owner);
        };
        let Some((id, certificate, coins)) = self.thieves[thief].on_answer(by, answer) else {
            return Ok(());
        };
        self.books.on_certificate(id, &certificate)?;
        self.hand_over(coins);
        Ok(())
    }

    pub(super) fn on_reply(
        &mut self,
        payer: usize,
        by: ReplicaId,
        reply: Numbered<WalletReply>,
    ) -> Verdicts {
        if !self.wallets[payer].is_up {
            return Ok(());
        }
        let deeds = self.wallets[payer].on_reply(self.now, by, reply);
        self.perform(payer, deeds)?;
        self.drain_payer(payer)
    }

    fn perform(&mut self, payer: usize, deeds: Vec<Deed>) -> Verdicts {
        let me = self.hosts.len() + payer;
        for deed in deeds {
            match deed {
                Deed::Ask(to, request) => {
                    let wallet = &self.wallets[payer];
                    let host = self.host_of(wallet.epoch, to, wallet.owner());
                    self.send(me, host, &Frame::Ask(Box::new(request)));
                }
                Deed::Submit(step) => self.submit(&step),
                Deed::Made(tx) => self.on_made(&tx)?,
                Deed::Paid(coins) => self.hand_over(coins),
            }
        }
        Ok(())
    }

    /// The shard of an authority that serves this key.
    fn host_of(&self, epoch: usize, authority: ReplicaId, owner: IdentityKey) -> usize {
        let shard = self.founding().shard_of(&owner);
        let authority = self.epochs[epoch].members[authority.index()];
        authority * usize::from(self.scenario.shards) + usize::from(shard)
    }

    pub(super) fn drain_payer(&mut self, payer: usize) -> Verdicts {
        let (me, life) = (self.hosts.len() + payer, self.wallets[payer].life);
        while let Some(effect) = self.wallets[payer].poll() {
            match effect {
                PayerEffect::Store(tx) => {
                    let at = self.soon(10_000);
                    let due = PayerWork::Stored(tx);
                    self.events.schedule(at, SimEvent::Payer { payer, life, due });
                }
                PayerEffect::Send { to, transaction } => {
                    self.on_shown(payer, &transaction)?;
                    let epoch = self.wallets[payer].epoch;
                    let host = self.host_of(epoch, to, transaction.payer);
                    self.send(me, host, &Frame::Order(transaction));
                }
                PayerEffect::Count(job) => {
                    let counted = job.run(self.wallets[payer].network());
                    let due = PayerWork::Machine(PayerEvent::Counted(job.tx, counted));
                    let at = self.soon(1_000);
                    self.events.schedule(at, SimEvent::Payer { payer, life, due });
                }
                PayerEffect::Done(id, outcome) => self.on_done(payer, id, outcome)?,
            }
        }
        if let Some(at) = self.wallets[payer].next_timeout() {
            let due = PayerWork::Timer;
            self.events.schedule(at.max(self.now), SimEvent::Payer { payer, life, due });
        }
        if let Some(after) = self.wallets[payer].begin_looking() {
            let due = PayerWork::Look;
            self.events.schedule(self.now + after, SimEvent::Payer { payer, life, due });
        }
        Ok(())
    }

    fn on_done(&mut self, payer: usize, id: TxId, outcome: PaymentOutcome) -> Verdicts {
        if let PaymentOutcome::Certified(certificate) = &outcome {
            self.books.on_certificate(id, certificate)?;
        }
        let done = self.wallets[payer].on_done(id, outcome);
        let coins = done.map_err(|text| Violation { oracle: "progress", text })?;
        self.hand_over(coins);
        Ok(())
    }

    /// Whoever is paid is told by whoever paid, not by an authority.
    fn hand_over(&mut self, coins: Vec<Coin>) {
        for coin in coins {
            let at = self.soon(5_000);
            self.receipts.push(coin.clone());
            self.events.schedule(at, SimEvent::Paid(Box::new(coin)));
        }
    }

    /// A certificate convinces whoever never heard of anything, and of nothing that is not so.
    pub(super) fn on_paid(&mut self, coin: &Coin) -> Verdicts {
        let believed = coin.check(&self.stranger);
        if believed.is_err() || !self.books.exists(coin.id) {
            let text = format!("{coin:?} is shown; a stranger says {believed:?}");
            return Err(Violation { oracle: "certificates", text });
        }
        self.thieves.iter_mut().for_each(|thief| thief.hear(coin));
        let Some(payee) = self.wallet_of(coin.output.owner) else { return Ok(()) };
        if let Origin::Certified(proof) = &coin.origin {
            let epoch = usize::try_from(proof.certificate.epoch.0).expect("few");
            self.on_enter(self.hosts.len() + payee, epoch)?;
        }
        self.wallets[payee].add(coin.clone());
        self.drain_payer(payee)
    }

    /// Each of what a thief makes goes to some of the hosts, of whatever shard.
    pub(super) fn on_crime(&mut self, thief: usize) -> Verdicts {
        let me = self.hosts.len() + self.wallets.len() + thief;
        let others = self.others(self.thieves[thief].owner());
        for act in self.thieves[thief].act(&others, &mut self.rng) {
            match act {
                Act::Show(tx) => self.show_to_some(me, &tx)?,
                Act::Split(rivals) => self.split(me, &rivals)?,
                Act::Submit(step) => self.submit(&step),
                Act::Sign(tx) => self.on_made(&tx)?,
                Act::Usurp => self.usurp(thief),
            }
        }
        Ok(())
    }

    /// One of them for each host, or none.
    fn split(&mut self, from: usize, rivals: &[Arc<Transaction>]) -> Verdicts {
        for tx in rivals {
            self.books.on_transaction(tx.id(self.founding().id()), tx)?;
        }
        for host in 0..self.hosts.len() {
            if let Some(tx) = rivals.get(self.rng.index(rivals.len() + 1)) {
                self.send(from, host, &Frame::Order(Arc::clone(tx)));
            }
        }
        Ok(())
    }

    fn show_to_some(&mut self, from: usize, tx: &Arc<Transaction>) -> Verdicts {
        self.books.on_transaction(tx.id(self.founding().id()), tx)?;
        let everybody = self.rng.one_in(3);
        for host in 0..self.hosts.len() {
            if everybody || self.rng.coin() {
                self.send(from, host, &Frame::Order(Arc::clone(tx)));
            }
        }
        Ok(())
    }
}
