//! What a thief tries where the authorities change: certificates under the keys of an epoch that
//! has ended, two payments over one coin as it ends, a change that nobody else wants.

use super::{Act, Attempt, Thief};
use quorate_crypto::{Bitmap, IdentityKey, KeyFile};
use quorate_deterministic::Rng;
use quorate_payments::{Coin, Network, Output, Transaction, TxCertificate, TxId};
use quorate_types::ReplicaId;
use std::sync::Arc;

/// Voting keys of an epoch that has ended, all of them.
#[derive(Clone, Debug)]
pub(in crate::payments) struct Leak {
    pub(in crate::payments) network: Arc<Network>,
    pub(in crate::payments) keys: Vec<KeyFile>,
}

impl Leak {
    /// A certificate for whatever it is.
    fn certificate(&self, id: TxId) -> TxCertificate {
        let votes = self.network.votes();
        let vote = |(index, keys): (u16, &KeyFile)| {
            let voter = ReplicaId(index);
            (voter, votes.sign(&keys.voting, voter, &[id]).remove(0))
        };
        let signed: Vec<_> = (0..).zip(&self.keys).map(vote).collect();
        let counted = votes.count(id, &signed, &Bitmap::new(self.keys.len()));
        counted.certificate.expect("all keys are there")
    }
}

impl Thief {
    /// Collects votes of another epoch from now on.
    pub(in crate::payments) fn enter(&mut self, epoch: usize, network: &Arc<Network>) {
        (self.epoch, self.network) = (epoch, Arc::clone(network));
        self.attempts.values_mut().for_each(|attempt| attempt.votes.clear());
    }

    /// Has the keys of an epoch whose honest authorities have closed.
    pub(in crate::payments) fn learn(&mut self, leak: Leak) {
        self.leaks.push(leak);
    }

    pub(super) fn misuse_borders(&mut self, others: &[IdentityKey], rng: &mut Rng) -> Vec<Act> {
        if rng.one_in(16) {
            return vec![Act::Usurp];
        }
        if self.leaks.is_empty() || rng.one_in(4) {
            return self.halves(others, rng);
        }
        self.forge_past(others, rng)
    }

    /// Two payments over one coin, each for some.
    fn halves(&mut self, others: &[IdentityKey], rng: &mut Rng) -> Vec<Act> {
        let Some(coin) = self.coins.get(rng.index(self.coins.len().max(1))).cloned() else {
            return Vec::new();
        };
        let to = |owner| vec![Output { owner, value: coin.output.value }];
        let payees = [self.owner(), *rng.choose(others)];
        let rivals = payees.map(|payee| self.spend(std::slice::from_ref(&coin), to(payee)));
        vec![Act::Split(rivals.into_iter().map(|tx| self.attempt(tx)).collect())]
    }

    /// A transaction certified under leaked keys, and one that spends what it made.
    fn forge_past(&mut self, others: &[IdentityKey], rng: &mut Rng) -> Vec<Act> {
        let leak = rng.choose(&self.leaks).clone();
        let Some(parent) = self.past(rng) else { return Vec::new() };
        let network = self.network.id();
        let certificate = leak.certificate(parent.id(network));
        let own = |coin: &Coin| coin.output.owner == self.owner();
        let coins = parent.coins(network, &certificate).into_iter().filter(own);
        let coins: Vec<Coin> = coins.take(1).collect();
        let Some(coin) = coins.first() else { return vec![Act::Sign(Arc::new(parent))] };
        let owner = if rng.coin() { self.owner() } else { *rng.choose(others) };
        let onward = self.spend(&coins, vec![Output { owner, value: coin.output.value }]);
        let mut acts = vec![Act::Sign(Arc::new(parent.clone())), Act::Show(self.attempt(onward))];
        if rng.one_in(3) {
            acts.push(Act::Show(self.attempt(parent)));
        }
        acts
    }

    /// A transaction of an epoch that has ended: one that was tried, or one made up now.
    fn past(&self, rng: &mut Rng) -> Option<Transaction> {
        let tried: Vec<&Attempt> = self.attempts.values().collect();
        if !tried.is_empty() && rng.coin() {
            return Some((*rng.choose(&tried).tx).clone());
        }
        if rng.one_in(4) {
            return self.steal(rng);
        }
        let coin = self.coins.get(rng.index(self.coins.len().max(1)))?.clone();
        let value = if rng.coin() { coin.output.value } else { 5_000 };
        Some(self.spend(&[coin], vec![Output { owner: self.owner(), value }]))
    }
}
