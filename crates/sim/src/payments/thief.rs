//! Owners that sign whatever may bring them money, show it to whom they like, and collect the
//! votes.

mod borders;
mod releases;

pub(super) use borders::Leak;

use super::payer::genesis_coins;
use quorate_crypto::{Bitmap, IdentityKey, IdentitySecret};
use quorate_deterministic::Rng;
use quorate_payments::release::ReleaseStep;
use quorate_payments::{
    Answer, Coin, Network, Origin, Output, Source, Transaction, TxCertificate, TxId, Verdict, Vote,
};
use quorate_types::ReplicaId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a thief does.
#[derive(Debug)]
pub(super) enum Act {
    /// Shows a transaction to some.
    Show(Arc<Transaction>),
    /// Shows each authority one of these, or none.
    Split(Vec<Arc<Transaction>>),
    /// Has a step ordered.
    Submit(Box<ReleaseStep>),
    /// Signs a transaction that nobody is shown.
    Sign(Arc<Transaction>),
    /// Has a change of the authorities ordered that it alone consents to.
    Usurp,
}

/// A thief, and what it has.
#[derive(Debug)]
pub(super) struct Thief {
    network: Arc<Network>,
    /// Number of the epoch that it collects votes of.
    pub(super) epoch: usize,
    /// Voting keys of epochs that have ended.
    leaks: Vec<Leak>,
    /// Set where the authorities change in this run.
    sees_changes: bool,
    secret: IdentitySecret,
    coins: Vec<Coin>,
    /// Another's coins that it heard of.
    heard: Vec<Coin>,
    attempts: BTreeMap<TxId, Attempt>,
    pub(super) certified: u64,
}

#[derive(Debug)]
struct Attempt {
    tx: Arc<Transaction>,
    votes: BTreeMap<ReplicaId, Vote>,
    certificate: Option<TxCertificate>,
}

impl Thief {
    pub(super) fn new(network: &Arc<Network>, secret: IdentitySecret, sees_changes: bool) -> Self {
        let coins = genesis_coins(network, secret.public()).collect();
        Self {
            network: Arc::clone(network),
            epoch: 0,
            leaks: Vec::new(),
            sees_changes,
            secret,
            coins,
            heard: Vec::new(),
            attempts: BTreeMap::new(),
            certified: 0,
        }
    }

    pub(super) fn secret(&self) -> &IdentitySecret {
        &self.secret
    }

    pub(super) fn owner(&self) -> IdentityKey {
        self.secret.public()
    }

    /// Somebody paid somebody: either may be of use.
    pub(super) fn hear(&mut self, coin: &Coin) {
        let own = coin.output.owner == self.owner();
        let coins = if own { &mut self.coins } else { &mut self.heard };
        coins.push(coin.clone());
    }

    /// Makes something up; what it shows next, new or not.
    pub(super) fn act(&mut self, others: &[IdentityKey], rng: &mut Rng) -> Vec<Act> {
        if !self.attempts.is_empty() && rng.one_in(3) {
            let known = self.attempts.values().map(|attempt| Arc::clone(&attempt.tx));
            return known.map(Act::Show).collect();
        }
        if self.sees_changes && rng.one_in(2) {
            return self.misuse_borders(others, rng);
        }
        if rng.one_in(3) {
            return self.misuse_releases(others, rng);
        }
        let made = self.make(others, rng);
        made.into_iter().map(|tx| Act::Show(self.attempt(tx))).collect()
    }

    fn attempt(&mut self, tx: Transaction) -> Arc<Transaction> {
        let tx = Arc::new(tx);
        let (votes, certificate) = (BTreeMap::new(), None);
        let attempt = Attempt { tx: Arc::clone(&tx), votes, certificate };
        self.attempts.entry(tx.id(self.network.id())).or_insert(attempt);
        tx
    }

    fn spend(&self, coins: &[Coin], outputs: Vec<Output>) -> Transaction {
        Transaction::spend(&self.network, &self.secret, coins, outputs)
    }

    fn make(&self, others: &[IdentityKey], rng: &mut Rng) -> Vec<Transaction> {
        if self.coins.is_empty() {
            return Vec::new();
        }
        let coin = rng.choose(&self.coins).clone();
        let value = coin.output.value;
        let to = |owner: IdentityKey, value: u64| Output { owner, value };
        let mine = |value| to(self.owner(), value);
        let victim = *rng.choose(others);
        match rng.below(10) {
            // Two or three over one coin.
            0 | 1 => {
                let second = rng.choose(&self.coins).clone();
                let both = if second.id == coin.id { value } else { value + second.output.value };
                let mut pair = vec![coin.clone(), second];
                pair.dedup_by_key(|coin| coin.id);
                vec![
                    self.spend(std::slice::from_ref(&coin), vec![to(victim, value)]),
                    self.spend(&[coin], vec![mine(value)]),
                    self.spend(&pair, vec![mine(both)]),
                ]
            }
            // The same outputs for different coins of one worth.
            2 => {
                let alike = self.coins.iter().filter(|other| other.output.value == value);
                alike
                    .take(3)
                    .map(|coin| self.spend(std::slice::from_ref(coin), vec![mine(value)]))
                    .collect()
            }
            3 => vec![self.spend(&[coin], vec![mine(value + 1)])],
            4 => vec![self.spend(&[coin], vec![mine(u64::MAX), mine(value + 1)])],
            5 => vec![self.spend(&[coin.clone(), coin], vec![mine(2 * value)])],
            6 => self.steal(rng).into_iter().collect(),
            7 => vec![self.forge(coin, rng)],
            8 => {
                let outputs = vec![mine(1_000)];
                vec![Transaction::issue(&self.network, &self.secret, rng.below(9), outputs)]
            }
            _ => vec![self.spend(&[coin], vec![to(victim, value)])],
        }
    }

    /// Another's coin, under its own signature.
    fn steal(&self, rng: &mut Rng) -> Option<Transaction> {
        let coin = self.heard.get(rng.index(self.heard.len().max(1)))?;
        let outputs = vec![Output { owner: self.owner(), value: coin.output.value }];
        let mut tx = self.spend(std::slice::from_ref(coin), outputs);
        if rng.coin() {
            tx.payer = coin.output.owner;
            tx.signature = self.spend(&self.coins[..1], vec![self.coins[0].output]).signature;
        }
        Some(tx)
    }

    /// Spends a coin of a transaction that nobody voted for, or one that is worth more than it is.
    fn forge(&self, coin: Coin, rng: &mut Rng) -> Transaction {
        let value = coin.output.value;
        let certificate =
            self.coins.iter().chain(&self.heard).find_map(|coin| match &coin.origin {
                Origin::Certified(proof) => Some(proof.certificate.clone()),
                Origin::Genesis => None,
            });
        let Some(certificate) = certificate else {
            return self.spend(&[coin], vec![Output { owner: self.owner(), value: value + 1 }]);
        };
        let rich = Output { owner: self.owner(), value: 5_000 };
        let unseen = self.spend(&[coin], vec![rich]);
        let mut made = unseen.coins(self.network.id(), &certificate).remove(0);
        if rng.coin() {
            // A real transaction's coin, with a worth of its own.
            let real =
                self.coins.iter().chain(&self.heard).find(|coin| coin.origin != Origin::Genesis);
            made = Coin { output: rich, ..real.expect("it had the certificate").clone() };
        }
        self.spend(&[made], vec![rich])
    }

    /// Takes an answer in: a certificate, where the votes are enough by now.
    pub(super) fn on_answer(
        &mut self,
        from: ReplicaId,
        answer: Answer,
    ) -> Option<(TxId, TxCertificate, Vec<Coin>)> {
        let Verdict::Vote(vote) = answer.verdict else { return None };
        let attempt = self.attempts.get_mut(&answer.tx)?;
        attempt.votes.insert(from, vote);
        if attempt.certificate.is_some() {
            return None;
        }
        let votes: Vec<_> = attempt.votes.iter().map(|(one, vote)| (*one, vote.clone())).collect();
        let suspects = Bitmap::new(self.network.committee().size());
        let counted = self.network.votes().count(answer.tx, &votes, &suspects);
        let certificate = counted.certificate?;
        attempt.certificate = Some(certificate.clone());
        self.certified += 1;
        let coins = attempt.tx.coins(self.network.id(), &certificate);
        let spent = attempt.tx.locks();
        if matches!(attempt.tx.source, Source::Spend(_)) {
            // Spent coins are tried again now and then.
            self.coins.retain(|coin| !spent.contains(&coin.id) || coin.id.index.is_multiple_of(3));
        }
        Some((answer.tx, certificate, coins))
    }
}
