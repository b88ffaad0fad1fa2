//! A small network with its keys, authorities as their hosts drive them, and people with names.

use crate::ReleaseEntry;
use crate::change::{Change, Inherited, LockEntry};
use crate::release::{Held, Report};
use crate::{
    Answer, Authority, AuthorityEffect, AuthorityEntry, AuthorityEvent, Coin, Endowment,
    Equivocation, Lock, Network, NetworkFile, OrderVerifier, Output, OutputId, PayScheme, SpentSet,
    Transaction, TxCertificate, Verdict, Vote, check_orders,
};
use quorate_crypto::{Bitmap, Digest, IdentityKey, IdentitySecret, KeyFile};
use quorate_types::{Epoch, Groups, Machine, ReplicaId, Time, Weights, deal_keys};
use std::sync::Arc;

pub(crate) const ISSUER: u8 = 100;
pub(crate) const ALICE: u8 = 101;
pub(crate) const BOB: u8 = 102;
pub(crate) const MALLORY: u8 = 103;

pub(crate) fn secret(person: u8) -> IdentitySecret {
    IdentitySecret::from_seed([person; 32])
}

pub(crate) fn key(person: u8) -> IdentityKey {
    secret(person).public()
}

pub(crate) fn to(person: u8, value: u64) -> Output {
    Output { owner: key(person), value }
}

/// A network and the secrets of its authorities.
pub(crate) struct TestNetwork {
    pub(crate) file: NetworkFile,
    pub(crate) keys: Vec<KeyFile>,
    pub(crate) network: Arc<Network>,
}

impl TestNetwork {
    /// Four authorities under plain signatures, one shard; Alice has 10, 20 and 30, Mallory 5 and
    /// 7.
    pub(crate) fn new() -> Self {
        Self::with(PayScheme::Plain, 4, 1)
    }

    pub(crate) fn with(scheme: PayScheme, authorities: u8, shards: u16) -> Self {
        let (file, keys) = file(scheme, authorities, shards);
        let network = Arc::new(Network::load(&file).expect("a sound file"));
        Self { file, keys, network }
    }

    /// The network of the next epoch, in which these authorities are replaced, and the change to
    /// it.
    pub(crate) fn next(&self, replaced: &[usize]) -> (Self, Change) {
        let mut file = self.file.next_epoch(self.network.id());
        let mut keys = self.keys.clone();
        for one in replaced {
            let seed = [u8::try_from(50 + *one).expect("few"); 32];
            keys[*one] = KeyFile::from_seed(self.file.scheme.keys(), &seed);
            let addresses = self.file.authorities[*one].addresses.clone();
            file.authorities[*one] = AuthorityEntry::new(&keys[*one].public(), addresses);
        }
        let mut change = Change::draft(file.clone());
        keys.iter().for_each(|keys| change.sign(&self.network, &keys.identity));
        let network = self.network.succeed(&change).expect("all have signed");
        (Self { file, keys, network: Arc::new(network) }, change)
    }

    /// Coins that a person was endowed with in the genesis.
    pub(crate) fn endowed(&self, person: u8) -> Vec<Coin> {
        let outputs = self.network.genesis_outputs();
        let own = outputs.filter(|(_, output)| output.owner == key(person));
        own.map(|(id, output)| Coin { id, output, origin: crate::Origin::Genesis }).collect()
    }

    pub(crate) fn spend(&self, person: u8, coins: &[Coin], outputs: &[Output]) -> Transaction {
        Transaction::spend(&self.network, &secret(person), coins, outputs.to_vec())
    }

    pub(crate) fn issue(&self, serial: u64, outputs: &[Output]) -> Transaction {
        Transaction::issue(&self.network, &secret(ISSUER), serial, outputs.to_vec())
    }

    /// An authority's vote, whatever it is for.
    pub(crate) fn vote(&self, authority: usize, tx: &Transaction) -> Vote {
        let id = tx.id(self.network.id());
        let mut votes =
            self.network.votes().sign(&self.keys[authority].voting, replica(authority), &[id]);
        votes.remove(0)
    }

    /// A certificate by these authorities, if they are enough.
    pub(crate) fn certificate_by(
        &self,
        tx: &Transaction,
        authorities: impl IntoIterator<Item = usize>,
    ) -> Option<TxCertificate> {
        let votes: Vec<_> =
            authorities.into_iter().map(|one| (replica(one), self.vote(one, tx))).collect();
        let suspects = Bitmap::new(self.keys.len());
        self.network.votes().count(tx.id(self.network.id()), &votes, &suspects).certificate
    }

    pub(crate) fn quorum(&self) -> usize {
        usize::try_from(self.network.committee().quorum()).expect("few")
    }

    pub(crate) fn certificate(&self, tx: &Transaction) -> TxCertificate {
        self.certificate_by(tx, 0..self.quorum()).expect("a quorum's votes")
    }

    /// Outputs of a transaction, certified.
    pub(crate) fn coins(&self, tx: &Transaction) -> Vec<Coin> {
        tx.coins(self.network.id(), &self.certificate(tx))
    }

    pub(crate) fn hosts(&self) -> Vec<AuthorityHost> {
        (0..self.keys.len()).map(|one| AuthorityHost::new(self, one, 0)).collect()
    }
}

pub(crate) fn replica(index: usize) -> ReplicaId {
    ReplicaId(u16::try_from(index).expect("few"))
}

pub(crate) fn file(scheme: PayScheme, authorities: u8, shards: u16) -> (NetworkFile, Vec<KeyFile>) {
    let mut keys: Vec<KeyFile> =
        (0..authorities).map(|one| KeyFile::from_seed(scheme.keys(), &[one + 1; 32])).collect();
    let groups = (scheme == PayScheme::BlsThreshold).then(|| {
        let dealing = deal_keys(&Weights::equal(keys.len()), &[9; 32]).expect("equal weights");
        for (keys, dealt) in keys.iter_mut().zip(dealing.secrets) {
            keys.voting = dealt;
        }
        Groups::from(&dealing.groups)
    });
    let entry = |(number, keys): (usize, &KeyFile)| {
        let addresses = (0..shards).map(|shard| format!("a{number}.example:{shard}"));
        AuthorityEntry::new(&keys.public(), addresses.collect())
    };
    let endow = |(person, value): (u8, u64)| Endowment { owner: key(person).to_string(), value };
    let genesis = [(ALICE, 10), (ALICE, 20), (ALICE, 30), (MALLORY, 5), (MALLORY, 7)];
    let file = NetworkFile {
        name: "test".into(),
        network: None,
        epoch: Epoch(3),
        scheme,
        shards,
        issuer: key(ISSUER).to_string(),
        groups,
        genesis: genesis.into_iter().map(endow).collect(),
        authorities: keys.iter().enumerate().map(entry).collect(),
    };
    (file, keys)
}

/// An authority's shard with a host that carries out every effect at once, and counts them.
pub(crate) struct AuthorityHost {
    network: Arc<Network>,
    keys: KeyFile,
    index: usize,
    shard: u16,
    pub(crate) log: Vec<Lock>,
    pub(crate) releases: Vec<ReleaseEntry>,
    /// What it asked to have ordered.
    pub(crate) reports: Vec<(OutputId, Held)>,
    /// How often it asked to have its locks reported.
    pub(crate) closed: usize,
    pub(crate) spent: Arc<SpentSet>,
    pub(crate) verifier: OrderVerifier,
    pub(crate) machine: Authority,
    pub(crate) evidence: Vec<Equivocation>,
}

impl AuthorityHost {
    pub(crate) fn new(testnet: &TestNetwork, index: usize, shard: u16) -> Self {
        let network = Arc::clone(&testnet.network);
        Self::recovered(network, testnet.keys[index].clone(), (index, shard), <_>::default())
    }

    /// An authority that begins with what an epoch left.
    pub(crate) fn after(testnet: &TestNetwork, index: usize, left: Arc<dyn Inherited>) -> Self {
        let mut host = Self::new(testnet, index, 0);
        let spent = Arc::new(SpentSet::default().after(left));
        let network = Arc::clone(&testnet.network);
        host.verifier = OrderVerifier::new(network, 0, Arc::clone(&spent));
        host.machine = Authority::new(&testnet.network, Arc::clone(&spent), 0);
        host.spent = spent;
        host
    }

    /// It executes the change; what it locked, as it reports it.
    pub(crate) fn close(&mut self) -> Vec<LockEntry> {
        let before = self.closed;
        self.machine.handle(Time(0), AuthorityEvent::Close(Digest::ZERO));
        assert!(self.answers().is_empty() && self.closed == before + 1);
        let mut all = Vec::new();
        let kept = self.spent.move_out(u64::MAX, |locked| {
            all.extend_from_slice(locked);
            Err(())
        });
        assert_eq!(kept, Err(()), "they stay where they are");
        let closing = self.spent.closing().expect("all is in memory");
        let entry = |(input, locked)| closing.entry(input, locked);
        let locked = all.into_iter().filter_map(entry);
        let mut entries: Vec<LockEntry> = locked.chain(closing.decided()).collect();
        entries.sort_unstable();
        entries.dedup();
        entries
    }

    fn recovered(
        network: Arc<Network>,
        keys: KeyFile,
        (index, shard): (usize, u16),
        (log, releases): (Vec<Lock>, Vec<ReleaseEntry>),
    ) -> Self {
        let spent = Arc::new(SpentSet::default());
        releases.iter().for_each(|entry| spent.frozen().apply(*entry));
        log.iter().for_each(|lock| spent.lock(lock));
        let verifier = OrderVerifier::new(Arc::clone(&network), shard, Arc::clone(&spent));
        let machine = Authority::new(&network, Arc::clone(&spent), log.len() as u64);
        let (reports, evidence) = (Vec::new(), Vec::new());
        Self {
            network,
            keys,
            index,
            shard,
            log,
            releases,
            reports,
            closed: 0,
            spent,
            verifier,
            machine,
            evidence,
        }
    }

    /// It loses everything but what is durable.
    pub(crate) fn restart(self) -> Self {
        let place = (self.index, self.shard);
        Self::recovered(self.network, self.keys, place, (self.log, self.releases))
    }

    /// It executes a freeze or decisions; its new reports, signed.
    pub(crate) fn execute(&mut self, ordered: AuthorityEvent) -> Vec<Report> {
        self.machine.handle(Time(0), ordered);
        assert!(self.answers().is_empty());
        let sign = |(coin, held)| {
            Report::sign(&self.network, &self.keys.identity, replica(self.index), coin, held)
        };
        std::mem::take(&mut self.reports).into_iter().map(sign).collect()
    }

    /// Shows it orders together; its answers in the order in which they leave.
    pub(crate) fn show(&mut self, orders: &[&Transaction]) -> Vec<(u64, Answer)> {
        let orders = (0..).zip(orders.iter().map(|tx| (*tx).clone())).collect();
        let looked = check_orders(orders, &self.verifier);
        self.machine.handle(Time(0), AuthorityEvent::Orders(looked));
        // Whatever waits for company waits no longer than this.
        let mut answers = self.answers();
        self.machine.handle_timeout(Time(1_000_000));
        answers.extend(self.answers());
        answers
    }

    pub(crate) fn verdict(&mut self, order: &Transaction) -> Verdict {
        let mut answers = self.show(&[order]);
        assert_eq!(answers.len(), 1, "one order, one answer");
        answers.remove(0).1.verdict
    }

    fn answers(&mut self) -> Vec<(u64, Answer)> {
        let mut answers = Vec::new();
        while let Some(effect) = self.machine.poll() {
            match effect {
                AuthorityEffect::Persist(locks) => self.log.extend(locks),
                AuthorityEffect::PersistReleases(entries) => self.releases.extend(entries),
                AuthorityEffect::Report(coin, held) => self.reports.push((coin, held)),
                AuthorityEffect::Closed(_) => self.closed += 1,
                AuthorityEffect::Sign(job) => {
                    let signed = job.run(&self.network, &self.keys.voting, replica(self.index));
                    self.machine.handle(Time(0), AuthorityEvent::Signed(signed));
                }
                AuthorityEffect::Read(sequence) => {
                    let lock = self.log.iter().find(|lock| lock.sequence == sequence).cloned();
                    self.machine.handle(Time(0), AuthorityEvent::Read { sequence, lock });
                }
                AuthorityEffect::Answer { ticket, answer } => answers.push((ticket, answer)),
                AuthorityEffect::Evidence(proof) => self.evidence.push(*proof),
                AuthorityEffect::Stop(failed) => panic!("{failed}"),
            }
        }
        answers
    }
}

/// Shows a transaction to these authorities and counts their votes.
pub(crate) fn certify(
    testnet: &TestNetwork,
    hosts: &mut [AuthorityHost],
    shown_to: &[usize],
    tx: &Transaction,
) -> Votes {
    let vote = |one: &usize| match hosts[*one].verdict(tx) {
        Verdict::Vote(vote) => Some((replica(*one), vote)),
        _ => None,
    };
    Votes { id: tx.id(testnet.network.id()), votes: shown_to.iter().filter_map(vote).collect() }
}

/// Votes for a name.
pub(crate) struct Votes {
    pub(crate) id: crate::TxId,
    pub(crate) votes: Vec<(ReplicaId, Vote)>,
}

impl Votes {
    pub(crate) fn certificate(&self, testnet: &TestNetwork) -> Option<TxCertificate> {
        let suspects = Bitmap::new(testnet.keys.len());
        testnet.network.votes().count(self.id, &self.votes, &suspects).certificate
    }
}

/// A name that nothing has.
pub(crate) fn nowhere() -> OutputId {
    OutputId { tx: crate::TxId(quorate_crypto::hash(b"nowhere")), index: 0 }
}
