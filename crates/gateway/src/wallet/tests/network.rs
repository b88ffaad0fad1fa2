//! A payment network in this process: real authorities' machines, without sockets and disks.

use crate::wallet::{Authorities, PendingOutcome};
use parking_lot::Mutex;
use quorate_crypto::{IdentityKey, IdentitySecret, KeyFile, SchemeKind, VotingSecret};
use quorate_payments::{
    Answer, Authority, AuthorityEffect, AuthorityEntry, AuthorityEvent, Endowment, Lock, Network,
    NetworkFile, OrderVerifier, PayScheme, Payer, PayerEffect, PayerEvent, PaymentOutcome,
    SpentSet, Transaction, check_orders,
};
use quorate_types::{Epoch, Machine, ReplicaId, Time};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Later than every wait of an authority.
const LATER: Time = Time(1_000_000);

pub(crate) fn secret(seed: u8) -> IdentitySecret {
    IdentitySecret::from_seed([seed; 32])
}

pub(crate) fn key(seed: u8) -> IdentityKey {
    secret(seed).public()
}

/// Seed of the issuer's key.
pub(crate) const ISSUER: u8 = 100;

fn keys(index: u8) -> KeyFile {
    KeyFile::from_seed(SchemeKind::Ed25519, &[200 + index; 32])
}

/// Four authorities; genesis outputs by seed of their owner and value.
pub(crate) fn network(name: &str, genesis: &[(u8, u64)]) -> Arc<Network> {
    let entry = |index: u8| {
        let addresses = vec![format!("127.0.0.1:{}", 1 + u16::from(index))];
        AuthorityEntry::new(&keys(index).public(), addresses)
    };
    let endowment =
        |(owner, value): &(u8, u64)| Endowment { owner: key(*owner).to_string(), value: *value };
    let file = NetworkFile {
        name: name.to_owned(),
        epoch: Epoch(1),
        scheme: PayScheme::Plain,
        shards: 1,
        issuer: key(ISSUER).to_string(),
        groups: None,
        genesis: genesis.iter().map(endowment).collect(),
        authorities: (0..4).map(entry).collect(),
    };
    Arc::new(Network::load(&file).expect("a network"))
}

/// One authority with what it locked.
struct Host {
    machine: Authority,
    verifier: OrderVerifier,
    voting: VotingSecret,
    me: ReplicaId,
    locks: Vec<Lock>,
}

impl Host {
    fn new(network: &Arc<Network>, index: u8) -> Self {
        let spent = Arc::new(SpentSet::default());
        Self {
            machine: Authority::new(network, Arc::clone(&spent), 0),
            verifier: OrderVerifier::new(Arc::clone(network), 0, spent),
            voting: keys(index).voting,
            me: ReplicaId(u16::from(index)),
            locks: Vec::new(),
        }
    }

    fn ask(&mut self, transaction: &Transaction) -> Vec<Answer> {
        let orders = check_orders(vec![(0, transaction.clone())], &self.verifier);
        self.machine.handle(LATER, AuthorityEvent::Orders(orders));
        self.machine.handle_timeout(LATER);
        let mut answers = Vec::new();
        while let Some(effect) = self.machine.poll() {
            match effect {
                AuthorityEffect::Persist(locks) => self.locks.extend(locks),
                AuthorityEffect::Sign(job) => {
                    let signed = job.run(self.verifier.network(), &self.voting, self.me);
                    self.machine.handle(LATER, AuthorityEvent::Signed(signed));
                }
                AuthorityEffect::Read(sequence) => {
                    let lock = self.locks.iter().find(|lock| lock.sequence == sequence).cloned();
                    self.machine.handle(LATER, AuthorityEvent::Read { sequence, lock });
                }
                AuthorityEffect::Answer { answer, .. } => answers.push(answer),
                AuthorityEffect::Evidence(_) => {}
                AuthorityEffect::PersistReleases(_) | AuthorityEffect::Report(..) => {
                    unreachable!("no committee orders releases here")
                }
                AuthorityEffect::Stop(failed) => panic!("{failed}"),
            }
        }
        answers
    }
}

/// The authorities, some of them silent.
pub(crate) struct Local {
    network: Arc<Network>,
    hosts: Mutex<Vec<Host>>,
    silent: Mutex<BTreeSet<u16>>,
    /// Transactions that the authorities were shown, in order.
    shown: Mutex<Vec<Arc<Transaction>>>,
}

impl Local {
    pub(crate) fn new(network: &Arc<Network>) -> Arc<Self> {
        let hosts = (0..4).map(|index| Host::new(network, index)).collect();
        Arc::new(Self {
            network: Arc::clone(network),
            hosts: Mutex::new(hosts),
            silent: Mutex::default(),
            shown: Mutex::default(),
        })
    }

    /// Silences these authorities from now on.
    pub(crate) fn silence(&self, silent: &[u16]) {
        *self.silent.lock() = silent.iter().copied().collect();
    }

    /// Transactions that were shown, in order.
    pub(crate) fn shown(&self) -> Vec<Arc<Transaction>> {
        self.shown.lock().clone()
    }

    /// Outcome of a transaction now; `None` while too few answer.
    pub(crate) fn outcome(&self, transaction: &Arc<Transaction>) -> Option<PaymentOutcome> {
        self.shown.lock().push(Arc::clone(transaction));
        let mut payer = Payer::new(Arc::clone(&self.network));
        payer.handle(LATER, PayerEvent::Pay(Arc::clone(transaction)));
        while let Some(effect) = payer.poll() {
            match effect {
                PayerEffect::Store(stored) => {
                    let tx = stored.id(self.network.id());
                    payer.handle(LATER, PayerEvent::Stored(tx));
                }
                PayerEffect::Send { to, transaction } => {
                    for answer in self.ask(to, &transaction) {
                        payer.handle(LATER, PayerEvent::Answer { from: to, answer });
                    }
                }
                PayerEffect::Count(job) => {
                    let counted = job.run(&self.network);
                    payer.handle(LATER, PayerEvent::Counted(job.tx, counted));
                }
                PayerEffect::Done(_, outcome) => return Some(outcome),
            }
        }
        None
    }

    fn ask(&self, to: ReplicaId, transaction: &Transaction) -> Vec<Answer> {
        if self.silent.lock().contains(&to.0) {
            return Vec::new();
        }
        self.hosts.lock()[to.index()].ask(transaction)
    }
}

impl Authorities for Local {
    fn pay(&self, transaction: Arc<Transaction>) -> PendingOutcome<'_> {
        match self.outcome(&transaction) {
            Some(outcome) => Box::pin(std::future::ready(outcome)),
            None => Box::pin(std::future::pending()),
        }
    }
}
