//! A payment network in this process: real authorities' machines, without sockets and disks.

mod committee;

use crate::wallet::{Authorities, PendingOutcome, PendingReply};
use committee::Committee;
use parking_lot::Mutex;
use quorate_crypto::{IdentityKey, IdentitySecret, KeyFile, SchemeKind};
use quorate_payments::change::{Change, Inheritance, Inherited, LockEntry};
use quorate_payments::release::Report;
use quorate_payments::{
    Answer, Authority, AuthorityEffect, AuthorityEntry, AuthorityEvent, CoinStatus, Endowment,
    Lock, Network, NetworkFile, Note, OrderVerifier, OutputId, PayScheme, Payer, PayerEffect,
    PayerEvent, PaymentOutcome, RecordContent, RecordName, SpentSet, Transaction, TxId,
    WalletRecord, WalletReply, WalletRequest, check_orders,
};
use quorate_types::{Epoch, Machine, ReplicaId, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
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
    network_of(4, name, genesis)
}

/// As [`network`], of so many authorities.
pub(crate) fn network_of(authorities: u8, name: &str, genesis: &[(u8, u64)]) -> Arc<Network> {
    Arc::new(Network::load(&network_file(authorities, name, genesis)).expect("a network"))
}

/// The file of such a network.
pub(crate) fn network_file(authorities: u8, name: &str, genesis: &[(u8, u64)]) -> NetworkFile {
    let entry = |index: u8| {
        let addresses = vec![format!("127.0.0.1:{}", 1 + u16::from(index))];
        AuthorityEntry::new(&keys(index).public(), addresses)
    };
    let endowment =
        |(owner, value): &(u8, u64)| Endowment { owner: key(*owner).to_string(), value: *value };
    NetworkFile {
        name: name.to_owned(),
        network: None,
        epoch: Epoch(1),
        scheme: PayScheme::Plain,
        shards: 1,
        issuer: key(ISSUER).to_string(),
        groups: None,
        genesis: genesis.iter().map(endowment).collect(),
        authorities: (0..authorities).map(entry).collect(),
    }
}

/// The change to the epoch after the founding one, in which nothing else differs; all sign it.
pub(crate) fn change_of(network: &Network, founding: &NetworkFile) -> Change {
    let mut change = Change::draft(founding.next_epoch(network.id()));
    let size = u8::try_from(network.committee().size()).expect("few");
    (0..size).for_each(|index| change.sign(network, &keys(index).identity));
    change
}

/// One authority with what it locked.
struct Host {
    machine: Authority,
    spent: Arc<SpentSet>,
    verifier: OrderVerifier,
    keys: KeyFile,
    me: ReplicaId,
    /// Number of ordered events that it followed.
    followed: usize,
    reports: Vec<Report>,
    locks: Vec<Lock>,
    records: BTreeMap<(IdentityKey, RecordName), WalletRecord>,
    lie: Option<Lie>,
    has_evidence: bool,
}

/// Falsehood that an authority tells a wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    /// It has no records, and every coin is free.
    Omits,
    /// Its records have other notes, and their values are others.
    Alters,
    /// There are records of payments and of coins that never were, and every coin is taken.
    Invents,
}

impl Host {
    fn new(network: &Arc<Network>, index: u8, inherited: &Arc<dyn Inherited>) -> Self {
        let spent = Arc::new(SpentSet::default().after(Arc::clone(inherited)));
        Self {
            machine: Authority::new(network, Arc::clone(&spent), 0),
            verifier: OrderVerifier::new(Arc::clone(network), 0, Arc::clone(&spent)),
            spent,
            keys: keys(index),
            me: ReplicaId(u16::from(index)),
            followed: 0,
            reports: Vec::new(),
            locks: Vec::new(),
            records: BTreeMap::new(),
            lie: None,
            has_evidence: false,
        }
    }

    fn record(&mut self, transaction: &Transaction, note: Note) {
        let content = RecordContent::Sent(Box::new(transaction.clone()));
        let record = WalletRecord { content, note };
        let name = record.name(self.verifier.network()).expect("a transaction has a name");
        self.records.entry((transaction.payer, name)).or_insert(record);
    }

    fn reply(&mut self, from: IdentityKey, request: WalletRequest) -> WalletReply {
        if let Err(refusal) = request.check(self.verifier.network(), from) {
            return WalletReply::Refused(refusal);
        }
        match request {
            WalletRequest::Coins(inputs) => {
                WalletReply::Coins(inputs.iter().map(|input| self.state_of(*input)).collect())
            }
            WalletRequest::Records { .. } => {
                let own = self.records.iter().filter(|((owner, _), _)| *owner == from);
                let records = own.map(|(_, record)| record.clone()).collect();
                WalletReply::Records { records: self.belie(records), more: false }
            }
            WalletRequest::Store(record) => {
                let name = record.name(self.verifier.network()).expect("checked");
                self.records.entry((from, name)).or_insert(*record);
                WalletReply::Done
            }
            WalletRequest::Remove(names) => {
                for name in names {
                    self.records.remove(&(from, name));
                }
                WalletReply::Done
            }
            WalletRequest::Changes { .. } => unreachable!("all know the same"),
            WalletRequest::Counting(names) => {
                let counts = |tx| self.spent.inherited().admits(tx).expect("in memory");
                WalletReply::Counting(names.into_iter().map(counts).collect())
            }
            WalletRequest::Report(_) => WalletReply::Report(None),
        }
    }

    /// Its locks as it reports them at the end of its epoch.
    fn report(&self) -> (ReplicaId, Vec<LockEntry>) {
        let of = |lock: &Lock| {
            let tx = lock.core.id;
            lock.core.locks.clone().into_iter().map(move |input| (tx, input))
        };
        let mut entries: Vec<LockEntry> = self.locks.iter().flat_map(of).collect();
        entries.sort_unstable();
        (self.me, entries)
    }

    fn state_of(&self, input: OutputId) -> CoinStatus {
        let lock = self.locks.iter().find(|lock| lock.core.locks.contains(&input));
        match (self.lie, lock) {
            (None, None) if self.spent.frozen().contains(input) => CoinStatus::Frozen,
            (Some(Lie::Omits), _) | (None, None) => CoinStatus::Free,
            (None, Some(lock)) => {
                CoinStatus::Locked { tx: lock.core.id, core: Some(Box::new(lock.core.clone())) }
            }
            (Some(_), _) => {
                CoinStatus::Locked { tx: TxId(quorate_crypto::hash(b"none")), core: None }
            }
        }
    }

    fn belie(&self, mut records: Vec<WalletRecord>) -> Vec<WalletRecord> {
        match self.lie {
            None => {}
            Some(Lie::Omits) => records.clear(),
            Some(Lie::Alters) => {
                for record in &mut records {
                    record.note.reverse();
                    match &mut record.content {
                        RecordContent::Sent(transaction) => transaction.outputs[0].value += 1,
                        RecordContent::Received(coins) => coins[0].output.value += 1,
                    }
                }
            }
            Some(Lie::Invents) => {
                let invented = records.iter().cloned().map(|mut record| {
                    if let RecordContent::Sent(transaction) = &mut record.content {
                        transaction.outputs[0].owner = key(99);
                    }
                    record
                });
                let invented: Vec<_> = invented.collect();
                records = invented;
            }
        }
        records
    }

    fn ask(&mut self, transaction: &Transaction) -> Vec<Answer> {
        let orders = check_orders(vec![(0, transaction.clone())], &self.verifier);
        self.machine.handle(LATER, AuthorityEvent::Orders(orders));
        self.machine.handle_timeout(LATER);
        self.apply_effects()
    }

    fn follow(&mut self, event: AuthorityEvent) {
        self.followed += 1;
        self.machine.handle(LATER, event);
        assert!(self.apply_effects().is_empty());
    }

    fn apply_effects(&mut self) -> Vec<Answer> {
        let mut answers = Vec::new();
        while let Some(effect) = self.machine.poll() {
            match effect {
                AuthorityEffect::Persist(locks) => self.locks.extend(locks),
                AuthorityEffect::Sign(job) => {
                    let signed = job.run(self.verifier.network(), &self.keys.voting, self.me);
                    self.machine.handle(LATER, AuthorityEvent::Signed(signed));
                }
                AuthorityEffect::Read(sequence) => {
                    let lock = self.locks.iter().find(|lock| lock.sequence == sequence).cloned();
                    self.machine.handle(LATER, AuthorityEvent::Read { sequence, lock });
                }
                AuthorityEffect::Answer { answer, .. } => answers.push(answer),
                AuthorityEffect::Evidence(_) => self.has_evidence = true,
                AuthorityEffect::PersistReleases(_) => {}
                AuthorityEffect::Report(coin, held) => {
                    let (network, secret) = (self.verifier.network(), &self.keys.identity);
                    self.reports.push(Report::sign(network, secret, self.me, coin, held));
                }
                AuthorityEffect::Closed(_) => {
                    unreachable!("no epoch ends here")
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
    /// Key of whoever asks for records and states.
    asker: Mutex<IdentityKey>,
    /// Changes that the authorities know of.
    changes: Mutex<Vec<Change>>,
    committee: Mutex<Committee>,
    /// True while no authority removes records.
    refuses_removals: Mutex<bool>,
}

impl Local {
    pub(crate) fn new(network: &Arc<Network>) -> Arc<Self> {
        Self::after(network, Inheritance::default())
    }

    /// Authorities of an epoch that begins with what others left.
    pub(crate) fn after(network: &Arc<Network>, inherited: Inheritance) -> Arc<Self> {
        let size = u8::try_from(network.committee().size()).expect("few");
        let inherited: Arc<dyn Inherited> = Arc::new(inherited);
        let hosts = (0..size).map(|index| Host::new(network, index, &inherited)).collect();
        Arc::new(Self {
            network: Arc::clone(network),
            hosts: Mutex::new(hosts),
            silent: Mutex::default(),
            shown: Mutex::default(),
            asker: Mutex::new(key(1)),
            changes: Mutex::default(),
            committee: Mutex::default(),
            refuses_removals: Mutex::default(),
        })
    }

    /// Silences these authorities from now on.
    pub(crate) fn silence(&self, silent: &[u16]) {
        *self.silent.lock() = silent.iter().copied().collect();
    }

    /// Has requests come from this key.
    pub(crate) fn asked_by(&self, owner: u8) {
        *self.asker.lock() = key(owner);
    }

    /// Has all authorities know of a change.
    pub(crate) fn announce(&self, change: Change) {
        self.changes.lock().push(change);
    }

    /// What the next epoch inherits, by the reports of all authorities.
    pub(crate) fn left(&self) -> Inheritance {
        let reports = self.hosts.lock().iter().map(Host::report).collect();
        let weights = self.network.committee().weights();
        Inheritance::default().after(weights, &reports).expect("all reported")
    }

    /// Transactions that were shown, in order.
    pub(crate) fn shown(&self) -> Vec<Arc<Transaction>> {
        self.shown.lock().clone()
    }

    /// Has this authority lie to wallets.
    pub(crate) fn lie(&self, authority: usize, lie: Lie) {
        self.hosts.lock()[authority].lie = Some(lie);
    }

    /// Has all authorities leave requests to remove records unanswered, or not any more.
    pub(crate) fn refuse_removals(&self, refuses: bool) {
        *self.refuses_removals.lock() = refuses;
    }

    /// Removes records at one authority.
    pub(crate) fn remove_at(&self, authority: usize, owner: IdentityKey, names: &[RecordName]) {
        let request = WalletRequest::Remove(names.to_vec());
        assert_eq!(self.hosts.lock()[authority].reply(owner, request), WalletReply::Done);
    }

    /// Number of a key's records at each authority.
    pub(crate) fn records(&self, owner: IdentityKey) -> Vec<usize> {
        let of = |host: &Host| host.records.keys().filter(|(key, _)| *key == owner).count();
        self.hosts.lock().iter().map(of).collect()
    }

    /// Number of authorities that were shown two transactions over one coin.
    pub(crate) fn evidence(&self) -> usize {
        self.hosts.lock().iter().filter(|host| host.has_evidence).count()
    }

    /// Outcome of a transaction now; `None` while too few answer.
    pub(crate) fn outcome(&self, transaction: &Arc<Transaction>) -> Option<PaymentOutcome> {
        self.outcome_recorded(PayerEvent::Pay(Arc::clone(transaction)), transaction, &None)
    }

    /// The same, with a note that the authorities keep.
    pub(crate) fn outcome_with(
        &self,
        transaction: &Arc<Transaction>,
        note: Note,
    ) -> Option<PaymentOutcome> {
        let begin = PayerEvent::Pay(Arc::clone(transaction));
        self.outcome_recorded(begin, transaction, &Some(note))
    }

    fn outcome_recorded(
        &self,
        begin: PayerEvent,
        transaction: &Arc<Transaction>,
        note: &Option<Note>,
    ) -> Option<PaymentOutcome> {
        self.shown.lock().push(Arc::clone(transaction));
        let mut payer = Payer::new(Arc::clone(&self.network));
        payer.handle(LATER, begin);
        while let Some(effect) = payer.poll() {
            match effect {
                PayerEffect::Store(stored) => {
                    let tx = stored.id(self.network.id());
                    payer.handle(LATER, PayerEvent::Stored(tx));
                }
                PayerEffect::Send { to, transaction } => {
                    for answer in self.show(to, &transaction, note) {
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

    fn show(&self, to: ReplicaId, transaction: &Transaction, note: &Option<Note>) -> Vec<Answer> {
        if self.silent.lock().contains(&to.0) {
            return Vec::new();
        }
        let host = &mut self.hosts.lock()[to.index()];
        if let Some(note) = note {
            host.record(transaction, note.clone());
        }
        host.ask(transaction)
    }
}

/// What is there already, or never comes.
fn at_once<'a, T: Send + 'a>(known: Option<T>) -> Pin<Box<dyn Future<Output = T> + Send + 'a>> {
    match known {
        Some(known) => Box::pin(std::future::ready(known)),
        None => Box::pin(std::future::pending()),
    }
}

impl Authorities for Local {
    fn pay(&self, transaction: Arc<Transaction>, note: Note) -> PendingOutcome<'_> {
        let begin = PayerEvent::Pay(Arc::clone(&transaction));
        at_once(self.outcome_recorded(begin, &transaction, &Some(note)))
    }

    fn claim(&self, transaction: Arc<Transaction>, note: Note) -> PendingOutcome<'_> {
        let begin = PayerEvent::Claim(Arc::clone(&transaction));
        at_once(self.outcome_recorded(begin, &transaction, &Some(note)))
    }

    fn ask(&self, to: ReplicaId, request: WalletRequest) -> PendingReply<'_> {
        let is_refused =
            matches!(request, WalletRequest::Remove(_)) && *self.refuses_removals.lock();
        if is_refused || self.silent.lock().contains(&to.0) {
            return Box::pin(std::future::pending());
        }
        if let WalletRequest::Changes { after } = request {
            let mut changes = self.changes.lock().clone();
            changes.retain(|change| change.next.epoch > after);
            return Box::pin(std::future::ready(WalletReply::Changes(changes)));
        }
        let from = match &request {
            WalletRequest::Store(record) => match &record.content {
                RecordContent::Received(coins) => coins[0].output.owner,
                RecordContent::Sent(transaction) => transaction.payer,
            },
            _ => *self.asker.lock(),
        };
        Box::pin(std::future::ready(self.hosts.lock()[to.index()].reply(from, request)))
    }
}
