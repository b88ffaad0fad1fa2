//! ADR 42 over several borders: random epochs of four to seven authorities, of which some are
//! Byzantine, each honest one with a reading of its own of every former epoch's reports. Keys of
//! former epochs are everybody's. No coin is taken twice over all of them together.

use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_crypto::{Digest, IdentityKey, Signature, hash};
use quorate_payments::change::{Inheritance, LockEntry};
use quorate_payments::{Core, CoreKind, Lock, LockStatus, OutputId, SpentSet, TxId};
use quorate_types::{ReplicaId, Weights};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const COINS: u64 = 3;
const TRANSACTIONS: u64 = 5;
const EPOCHS: usize = 3;
const STEPS: usize = 60;
const SEEDS: u64 = 300;

type Reports = BTreeMap<ReplicaId, Vec<LockEntry>>;

/// Draws from a seed.
struct Draw(Digest);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = hash(&self.0.0);
        u64::from_le_bytes(self.0.0[..8].try_into().expect("8 bytes")) % bound
    }

    fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).expect("few")
    }
}

/// An honest authority of one epoch.
struct Honest {
    /// Authorities whose reports it has read, by former epoch.
    read: Vec<BTreeSet<ReplicaId>>,
    locked: Vec<TxId>,
    /// Transactions whose outputs it voted to spend by a certificate of a former epoch.
    believed: BTreeSet<TxId>,
}

struct World {
    draw: Draw,
    weights: Weights,
    cores: BTreeMap<TxId, Core>,
    reports: Vec<Reports>,
    /// Transactions that took effect.
    effective: BTreeSet<TxId>,
    /// Those of them by the certificate of a former epoch.
    believed: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut draw = Draw(hash(&seed.to_le_bytes()));
        let weights = Weights::equal([4, 5, 7][draw.index(3)]);
        let cores = (0..TRANSACTIONS).map(|number| {
            let taken = (0..COINS).filter(|_| draw.below(2) == 0).collect::<Vec<_>>();
            let taken = if taken.is_empty() { vec![number % COINS] } else { taken };
            let core = core(number, &taken);
            (core.id, core)
        });
        let cores = cores.collect();
        let (reports, effective) = (Vec::new(), BTreeSet::new());
        Self { draw, weights, cores, reports, effective, believed: 0 }
    }

    fn honest(&self) -> usize {
        self.weights.members() - self.faulty()
    }

    fn faulty(&self) -> usize {
        usize::try_from(self.weights.faulty_max()).expect("few")
    }

    fn is_quorum(&self, honest: usize) -> bool {
        (honest + self.faulty()) as u64 >= self.weights.quorum()
    }

    fn some_transaction(&mut self) -> TxId {
        let at = self.draw.index(self.cores.len());
        *self.cores.keys().nth(at).expect("drawn below")
    }

    /// Some quorum of an epoch's reports, or more.
    fn some_reading(&mut self, weight: u64) -> BTreeSet<ReplicaId> {
        let mut read = BTreeSet::new();
        while (read.len() as u64) < weight {
            read.insert(replica(self.draw.index(self.weights.members())));
        }
        read
    }

    fn set(&self, one: &Honest) -> SpentSet {
        let mut left = Inheritance::default();
        for (reports, read) in self.reports.iter().zip(&one.read) {
            let read = reports.iter().filter(|(from, _)| read.contains(from));
            let read = read.map(|(from, locks)| (*from, locks.clone())).collect();
            left = left.after(&self.weights, &read).expect("a quorum");
        }
        let spent = SpentSet::default().after(Arc::new(left));
        for (sequence, tx) in (0..).zip(&one.locked) {
            spent.lock(&Lock { sequence, core: self.cores[tx].clone() });
        }
        spent
    }

    fn step(&mut self, one: &mut Honest) {
        let tx = self.some_transaction();
        match self.draw.below(4) {
            0 if !one.read.is_empty() => {
                let border = self.draw.index(one.read.len());
                one.read[border].insert(replica(self.draw.index(self.weights.members())));
            }
            1 if self.set(one).inherited().admits(tx) == Ok(true) => {
                one.believed.insert(tx);
            }
            _ if self.set(one).status(&self.cores[&tx]) == Ok(LockStatus::Free) => {
                one.locked.push(tx);
            }
            _ => {}
        }
    }

    fn epoch(&mut self) {
        let quorum = self.weights.quorum();
        let borders = self.reports.len();
        let begin = |world: &mut Self| Honest {
            read: (0..borders).map(|_| world.some_reading(quorum)).collect(),
            locked: Vec::new(),
            believed: BTreeSet::new(),
        };
        let mut honest: Vec<Honest> = (0..self.honest()).map(|_| begin(self)).collect();
        for _ in 0..STEPS {
            let at = self.draw.index(honest.len());
            let mut one = honest.swap_remove(at);
            self.step(&mut one);
            honest.push(one);
        }
        for tx in self.cores.keys().copied().collect::<Vec<_>>() {
            let count = |voted: fn(&Honest, &TxId) -> bool| {
                honest.iter().filter(|one| voted(one, &tx)).count()
            };
            let is_believed = self.is_quorum(count(|one, tx| one.believed.contains(tx)));
            self.believed += usize::from(is_believed);
            if is_believed || self.is_quorum(count(|one, tx| one.locked.contains(tx))) {
                self.effective.insert(tx);
            }
        }
        self.close(&honest);
    }

    fn close(&mut self, honest: &[Honest]) {
        let mut reports = Reports::new();
        for (at, one) in honest.iter().enumerate() {
            let taken = |tx: &TxId| self.cores[tx].locks.clone().into_iter();
            let entries = one.locked.iter().flat_map(|tx| taken(tx).map(|input| (*tx, input)));
            reports.insert(replica(at), sorted(entries.collect()));
        }
        for liar in honest.len()..self.weights.members() {
            let mut lies = Vec::new();
            for _ in 0..self.draw.below(5) {
                let tx = self.some_transaction();
                // As it is, but for a coin too many or too few, now and then.
                let mut taken = self.cores[&tx].locks.clone();
                match self.draw.below(4) {
                    0 => drop(taken.pop()),
                    1 => taken.push(coin(self.draw.below(COINS))),
                    _ => {}
                }
                lies.extend(taken.into_iter().map(|input| (tx, input)));
            }
            reports.insert(replica(liar), sorted(lies));
        }
        self.reports.push(reports);
    }

    fn is_two(&self) -> bool {
        let mut taken = BTreeSet::new();
        let coins = self.effective.iter().flat_map(|tx| &self.cores[tx].locks);
        coins.into_iter().any(|coin| !taken.insert(*coin))
    }
}

fn sorted(mut entries: Vec<LockEntry>) -> Vec<LockEntry> {
    entries.sort_unstable();
    entries.dedup();
    entries
}

fn replica(index: usize) -> ReplicaId {
    ReplicaId(u16::try_from(index).expect("few"))
}

fn coin(number: u64) -> OutputId {
    OutputId { tx: TxId(hash(&[b"coin ", &number.to_le_bytes()[..]].concat())), index: 0 }
}

fn core(number: u64, taken: &[u64]) -> Core {
    let mut locks: Vec<OutputId> = taken.iter().map(|one| coin(*one)).collect();
    locks.sort_unstable();
    Core {
        id: TxId(hash(&number.to_le_bytes())),
        payer: IdentityKey([1; 32]),
        locks,
        kind: CoreKind::Spend,
        outputs: Digest::ZERO,
        signature: Signature([0; 64]),
    }
}

#[test]
fn no_coin_is_taken_twice_over_several_borders() {
    let (mut effective, mut believed) = (0, 0);
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        for _ in 0..EPOCHS {
            world.epoch();
            assert!(!world.is_two(), "seed {seed}: {:?}", world.effective);
        }
        effective += world.effective.len();
        believed += world.believed;
    }
    assert!(effective > 0 && believed > 0, "{effective} took effect, {believed} by a former epoch");
}

#[test]
fn broken_rules_are_noticed() {
    use Mutant::{PayAdmitOnOneReport, PayForgetEarlierBorders, PayUnionTakesOne, PayUnionUnheard};
    let broken = [PayAdmitOnOneReport, PayForgetEarlierBorders, PayUnionTakesOne, PayUnionUnheard];
    for rule in broken {
        assert_noticed(rule, no_coin_is_taken_twice_over_several_borders);
    }
}
