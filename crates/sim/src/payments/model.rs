//! One authority's shard against plain maps: random transactions, valid and invalid in every way,
//! whose answers the model foretells. Signatures are stand-ins, so that a million take a minute at
//! most.

use super::books::Violation;
use super::test_network::TestNetwork;
use crate::mutants::{Active, Mutant};
use quorate_crypto::stand_in::StandIns;
use quorate_crypto::{Bitmap, Signature};
use quorate_deterministic::Rng;
use quorate_payments::{
    Authority, AuthorityEffect, AuthorityEvent, Coin, Input, Invalid, Lock, Locked, Network,
    OrderVerifier, Origin, Output, OutputId, PayScheme, Source, SpentSet, Transaction, TxId,
    Verdict, Vote, check_orders,
};
use quorate_types::{Machine, ReplicaId, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// So many that either shard has several whatever the seed.
const OWNERS: usize = 32;
const AUTHORITIES: usize = 4;

/// Coins to pay with, and spent ones to spend again, that are kept at hand.
const AT_HAND: usize = 2_000;

/// Number of answers, by kind.
pub type Tally = BTreeMap<&'static str, u64>;

/// Answer that the model expects.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Expected {
    Vote,
    Locked(OutputId, TxId),
    Invalid(Invalid),
}

/// The authority, its host, and what the model knows.
struct Scene {
    setup: TestNetwork,
    rng: Rng,
    spent: Arc<SpentSet>,
    verifier: OrderVerifier,
    machine: Authority,
    log: Vec<Lock>,
    /// The model: what each input went to.
    taken: BTreeMap<OutputId, TxId>,
    /// Owners of this shard, the issuer among them.
    here: Vec<usize>,
    /// Owners of the other.
    elsewhere: Vec<usize>,
    coins: Vec<(usize, Coin)>,
    used: Vec<(usize, Coin)>,
    recent: Vec<Transaction>,
    serial: u64,
    issued: u128,
    unspent: u128,
    redeemed: u128,
    tally: Tally,
}

/// Shows an authority so many transactions.
///
/// # Errors
/// The first answer that is not what the model foretells, or what does not add up in the end.
pub fn run(seed: u64, transactions: u64, mutant: Option<Mutant>) -> Result<Tally, Violation> {
    let _active = Active::set(mutant);
    let _stand_ins = StandIns::begin();
    let mut scene = Scene::new(seed);
    let mut shown = 0;
    while shown < transactions {
        let orders = scene.rng.below(16) + 1;
        scene.show(orders).map_err(|text| Violation { oracle: "model", text })?;
        shown += orders;
        // Rarer as the log grows, for each reads all of it.
        if scene.rng.one_in(200 + scene.log.len() as u64 / 16) {
            scene.restart();
        }
    }
    scene.add_up().map_err(|text| Violation { oracle: "model", text })?;
    Ok(scene.tally)
}

impl Scene {
    fn new(seed: u64) -> Self {
        let setup = TestNetwork::new(seed, PayScheme::Plain, AUTHORITIES, 2, OWNERS);
        let network = Arc::clone(&setup.network);
        let shard = network.shard_of(&network.issuer());
        let is_here = |owner: &usize| network.shard_of(&setup.owners[*owner].public()) == shard;
        let (here, elsewhere): (Vec<usize>, Vec<usize>) = (0..OWNERS).partition(is_here);
        let coin = |(id, output): (OutputId, Output)| {
            let owner = here.iter().find(|one| setup.owners[**one].public() == output.owner)?;
            Some((*owner, Coin { id, output, origin: Origin::Genesis }))
        };
        let coins: Vec<(usize, Coin)> = network.genesis_outputs().filter_map(coin).collect();
        let begun = coins.iter().map(|(_, coin)| u128::from(coin.output.value)).sum();
        let spent = Arc::new(SpentSet::default());
        Self {
            verifier: OrderVerifier::new(Arc::clone(&network), shard, Arc::clone(&spent)),
            machine: Authority::new(&network, Arc::clone(&spent), 0),
            spent,
            rng: Rng::new(seed, "payments model", 0),
            setup,
            log: Vec::new(),
            taken: BTreeMap::new(),
            here,
            elsewhere,
            coins,
            used: Vec::new(),
            recent: Vec::new(),
            serial: 0,
            issued: begun,
            unspent: begun,
            redeemed: 0,
            tally: Tally::new(),
        }
    }

    fn network(&self) -> Arc<Network> {
        Arc::clone(&self.setup.network)
    }

    fn restart(&mut self) {
        let network = self.network();
        self.spent = Arc::new(SpentSet::default());
        self.log.iter().for_each(|lock| self.spent.lock(lock));
        let shard = network.shard_of(&network.issuer());
        self.machine = Authority::new(&network, Arc::clone(&self.spent), self.log.len() as u64);
        self.verifier = OrderVerifier::new(network, shard, Arc::clone(&self.spent));
        *self.tally.entry("restarts").or_default() += 1;
    }

    /// Orders that come together, each with what the model says to it after those before it.
    fn show(&mut self, orders: u64) -> Result<(), String> {
        let network = self.setup.network.id();
        let mut batch = Vec::new();
        for ticket in 0..orders {
            let (tx, invalid) = self.make();
            let id = tx.id(network);
            let expected = match invalid {
                Some(invalid) => Expected::Invalid(invalid),
                None => self.judge(id, &tx),
            };
            batch.push((ticket, tx, id, expected));
        }
        let orders = batch.iter().map(|(ticket, tx, ..)| (*ticket, tx.clone())).collect();
        let looked = check_orders(orders, &self.verifier);
        self.machine.handle(Time::default(), AuthorityEvent::Orders(looked));
        let mut answers = self.drain();
        for (ticket, tx, id, expected) in batch {
            let (tx_of, verdict) =
                answers.remove(&ticket).ok_or_else(|| format!("no answer to {tx:?}"))?;
            if tx_of != id {
                return Err(format!("an answer about {tx_of} to {id}"));
            }
            self.compare(tx, id, &expected, &verdict)?;
        }
        if answers.is_empty() { Ok(()) } else { Err(format!("answers to nothing: {answers:?}")) }
    }

    /// The model itself: a valid transaction takes all of its inputs, or none.
    fn judge(&mut self, id: TxId, tx: &Transaction) -> Expected {
        let locks = tx.locks();
        for input in &locks {
            if let Some(other) = self.taken.get(input).filter(|other| **other != id) {
                return Expected::Locked(*input, *other);
            }
        }
        let given: u128 = tx.outputs.iter().map(|output| u128::from(output.value)).sum();
        let is_new = self.taken.insert(locks[0], id).is_none();
        self.taken.extend(locks.into_iter().map(|input| (input, id)));
        if is_new {
            let burnt = tx.outputs.iter().filter(|output| output.owner == Output::BURNT);
            let burnt: u128 = burnt.map(|output| u128::from(output.value)).sum();
            match &tx.source {
                Source::Issue { .. } => self.issued += given,
                Source::Spend(inputs) => {
                    self.unspent -= inputs.iter().map(|one| u128::from(one.value)).sum::<u128>();
                }
                Source::Refund(input) => self.unspent -= u128::from(input.value),
            }
            self.unspent += given - burnt;
            self.redeemed += burnt;
        }
        Expected::Vote
    }

    fn drain(&mut self) -> BTreeMap<u64, (TxId, Verdict)> {
        let mut answers = BTreeMap::new();
        while let Some(effect) = self.machine.poll() {
            match effect {
                AuthorityEffect::Persist(locks) => self.log.extend(locks),
                AuthorityEffect::Sign(job) => {
                    let secret = &self.setup.keys[0].voting;
                    let signed = job.run(&self.setup.network, secret, ReplicaId(0));
                    self.machine.handle(Time::default(), AuthorityEvent::Signed(signed));
                }
                AuthorityEffect::Read(sequence) => {
                    let at = usize::try_from(sequence).expect("in memory");
                    let lock = self.log.get(at).cloned();
                    let event = AuthorityEvent::Read { sequence, lock };
                    self.machine.handle(Time::default(), event);
                }
                AuthorityEffect::Answer { ticket, answer } => {
                    answers.insert(ticket, (answer.tx, answer.verdict));
                }
                AuthorityEffect::PersistReleases(_)
                | AuthorityEffect::Report(..)
                | AuthorityEffect::Closed(_) => {
                    unreachable!("no committee orders releases here")
                }
                AuthorityEffect::Evidence(_) => *self.tally.entry("proofs").or_default() += 1,
                AuthorityEffect::Stop(failed) => unreachable!("all is in memory: {failed}"),
            }
        }
        answers
    }

    fn compare(
        &mut self,
        tx: Transaction,
        id: TxId,
        expected: &Expected,
        verdict: &Verdict,
    ) -> Result<(), String> {
        let word = match (expected, verdict) {
            (Expected::Vote, Verdict::Vote(vote)) => {
                self.certify(&tx, id, vote)?;
                "votes"
            }
            (Expected::Locked(taken, other), Verdict::Locked { input, first: Some(first) })
                if taken == input && *other == first.id =>
            {
                "conflicts"
            }
            (Expected::Invalid(one), Verdict::Invalid(other)) if one == other => word_of(one),
            _ => return Err(format!("{verdict:?}, not {expected:?}, to {tx:?}")),
        };
        *self.tally.entry(word).or_default() += 1;
        keep(&mut self.recent, tx, &mut self.rng);
        Ok(())
    }

    /// Two others vote as well; the coins come to hand.
    fn certify(&mut self, tx: &Transaction, id: TxId, vote: &Vote) -> Result<(), String> {
        let network = self.network();
        let mut votes = vec![(ReplicaId(0), vote.clone())];
        for other in [ReplicaId(1), ReplicaId(2)] {
            let secret = &self.setup.keys[other.index()].voting;
            votes.push((other, network.votes().sign(secret, other, &[id]).remove(0)));
        }
        let counted = network.votes().count(id, &votes, &Bitmap::new(AUTHORITIES));
        let Some(certificate) = counted.certificate else {
            return Err(format!("votes for {id} are no certificate: {:?}", counted.bad));
        };
        for coin in tx.coins(network.id(), &certificate) {
            let owner_of = |one: &&usize| self.setup.owners[**one].public() == coin.output.owner;
            if let Some(owner) = self.here.iter().find(owner_of) {
                let is_free = !self.taken.contains_key(&coin.id);
                let shelf = if is_free { &mut self.coins } else { &mut self.used };
                keep(shelf, (*owner, coin), &mut self.rng);
            }
        }
        Ok(())
    }

    /// A transaction, and what is wrong with it but for its inputs being taken.
    fn make(&mut self) -> (Transaction, Option<Invalid>) {
        let kind = self.rng.below(40);
        if kind < 4 || self.coins.is_empty() {
            return (self.issue(0), None);
        }
        if kind < 7 && !self.recent.is_empty() {
            return self.repeat();
        }
        let at = self.rng.index(self.coins.len());
        let (owner, coin) = self.coins[at].clone();
        if self.taken.contains_key(&coin.id) {
            self.coins.swap_remove(at);
            return (self.issue(0), None);
        }
        if kind >= 20 {
            return (self.payment(at), None);
        }
        let spoilt = self.spoilt(kind, owner, &coin);
        spoilt.unwrap_or_else(|| (self.payment(at), None))
    }

    fn anybodys(&mut self, value: u64) -> Output {
        if self.rng.one_in(20) {
            return Output { owner: Output::BURNT, value };
        }
        let owner = self.rng.index(OWNERS);
        Output { owner: self.setup.owners[owner].public(), value }
    }

    fn issue(&mut self, back: u64) -> Transaction {
        if back == 0 {
            self.serial += 1;
        }
        let outputs = (0..=self.rng.below(3)).map(|_| self.rng.below(1_000) + 1);
        let outputs: Vec<u64> = outputs.collect();
        let outputs = outputs.into_iter().map(|value| self.anybodys(value)).collect();
        let serial = self.serial.saturating_sub(back);
        Transaction::issue(&self.setup.network, &self.setup.owners[0], serial, outputs)
    }

    /// Something that came before, from either side of valid.
    fn repeat(&mut self) -> (Transaction, Option<Invalid>) {
        let tx = self.rng.choose(&self.recent).clone();
        let is_sound = tx.check_form(&self.setup.network).is_ok();
        if is_sound && self.taken.get(&tx.locks()[0]) == Some(&tx.id(self.setup.network.id())) {
            return (tx, None);
        }
        (self.issue(0), None)
    }

    /// A coin or two to one or two.
    fn payment(&mut self, at: usize) -> Transaction {
        let (owner, coin) = self.coins.swap_remove(at);
        let is_other = |(other, second): &(usize, Coin)| *other == owner && second.id != coin.id;
        let second = self.coins.iter().position(is_other);
        let mut coins = vec![coin];
        if let Some(second) = second
            && self.rng.coin()
        {
            coins.push(self.coins.swap_remove(second).1);
        }
        let total: u64 = coins.iter().map(|coin| coin.output.value).sum();
        let part = self.rng.below(total) + 1;
        let mut outputs = vec![self.anybodys(part)];
        if part < total {
            outputs.push(self.anybodys(total - part));
        }
        let tx = self.sign(owner, &coins, outputs);
        for coin in coins {
            keep(&mut self.used, (owner, coin), &mut self.rng);
        }
        tx
    }

    fn sign(&self, owner: usize, coins: &[Coin], outputs: Vec<Output>) -> Transaction {
        Transaction::spend(&self.setup.network, &self.setup.owners[owner], coins, outputs)
    }

    /// One of the ways in which a transaction can be wrong; none where nothing fits at the moment.
    fn spoilt(
        &mut self,
        kind: u64,
        owner: usize,
        coin: &Coin,
    ) -> Option<(Transaction, Option<Invalid>)> {
        let value = coin.output.value;
        let one = std::slice::from_ref(coin);
        let (tx, invalid) = match kind {
            7 => {
                let (owner, used) = self.used.get(self.rng.index(self.used.len().max(1)))?.clone();
                let output = self.anybodys(used.output.value);
                (self.sign(owner, &[used], vec![output]), None)
            }
            8 => {
                let (owner, used) = self.used.get(self.rng.index(self.used.len().max(1)))?.clone();
                let free = self
                    .coins
                    .iter()
                    .find(|(other, free)| *other == owner && free.id != used.id)?
                    .1
                    .clone();
                let output = self.anybodys(used.output.value + free.output.value);
                (self.sign(owner, &[used, free], vec![output]), None)
            }
            9..=13 => self.spoilt_amounts(kind, owner, coin),
            14 => {
                let outputs = vec![self.anybodys(value)];
                let mut tx = self.sign(owner, one, outputs);
                tx.signature = Signature([self.rng.bytes32(); 2].concat().try_into().expect("64"));
                (tx, Some(Invalid::OwnerSignature))
            }
            15 => {
                let thief = *self.here.iter().find(|other| **other != owner)?;
                let outputs = vec![self.anybodys(value)];
                let reason = match coin.origin {
                    Origin::Genesis => Invalid::NotInGenesis(coin.id),
                    Origin::Certified(_) => Invalid::Path(coin.id),
                };
                (self.sign(thief, one, outputs), Some(reason))
            }
            16 => {
                let stranger = *self.elsewhere.first()?;
                let outputs = vec![self.anybodys(value)];
                let shard = self.setup.network.shard_of(&self.setup.owners[stranger].public());
                (self.sign(stranger, one, outputs), Some(Invalid::WrongShard(shard)))
            }
            17 => self.uncertified(owner, coin)?,
            18 => {
                let issuer = *self.here.iter().find(|other| **other != 0)?;
                let secret = &self.setup.owners[issuer];
                let (network, outputs) = (&self.setup.network, vec![coin.output]);
                let tx = Transaction::issue(network, secret, self.serial + 1, outputs);
                (tx, Some(Invalid::NotTheIssuer))
            }
            _ => {
                let back = self.rng.below(self.serial.min(50) + 1) + 1;
                (self.issue(back), None)
            }
        };
        Some((tx, invalid))
    }

    /// A transaction whose sums, inputs or outputs break a rule.
    fn spoilt_amounts(
        &mut self,
        kind: u64,
        owner: usize,
        coin: &Coin,
    ) -> (Transaction, Option<Invalid>) {
        let value = coin.output.value;
        let one = std::slice::from_ref(coin);
        match kind {
            9 => {
                let outputs = vec![self.anybodys(value + 1)];
                let reason = Invalid::Conservation { inputs: value, outputs: value + 1 };
                (self.sign(owner, one, outputs), Some(reason))
            }
            10 => {
                let outputs = vec![self.anybodys(u64::MAX), self.anybodys(value + 1)];
                (self.sign(owner, one, outputs), Some(Invalid::Overflow))
            }
            11 => {
                let outputs = vec![self.anybodys(value), self.anybodys(0)];
                (self.sign(owner, one, outputs), Some(Invalid::ZeroValue))
            }
            12 => {
                let twice = [coin.clone(), coin.clone()];
                let outputs = vec![self.anybodys(2 * value)];
                (self.sign(owner, &twice, outputs), Some(Invalid::InputOrder))
            }
            _ => {
                let output = self.anybodys(value);
                let (inputs, outputs) = (Some(Invalid::Inputs), Some(Invalid::Outputs));
                if self.rng.coin() {
                    (self.sign(owner, &[], vec![output]), inputs)
                } else {
                    (self.sign(owner, one, Vec::new()), outputs)
                }
            }
        }
    }

    /// An output of a transaction that nobody voted for, under another's certificate.
    fn uncertified(&mut self, owner: usize, coin: &Coin) -> Option<(Transaction, Option<Invalid>)> {
        let Origin::Certified(proof) = &coin.origin else { return None };
        let outputs = vec![Output { value: self.rng.bits() | 1, ..coin.output }];
        let input = Input { id: coin.id, value: coin.output.value, origin: Origin::Genesis };
        let source = Source::Spend(vec![input]);
        let unseen = Transaction { source, ..self.sign(owner, &[], outputs.clone()) };
        let made = unseen.coins(self.setup.network.id(), &proof.certificate);
        let id = made[0].id;
        Some((self.sign(owner, &made, outputs), Some(Invalid::Certificate(id))))
    }

    /// The authority's set is the model's, and money is where the model says.
    fn add_up(&self) -> Result<(), String> {
        if self.spent.len() != self.taken.len() as u64 {
            return Err(format!("{} locks, not {}", self.spent.len(), self.taken.len()));
        }
        for (input, id) in &self.taken {
            let locked: Option<Locked> = self.spent.get(*input).expect("it is all in memory");
            if locked.is_none_or(|locked| locked.tx != *id) {
                return Err(format!("{input} is locked for {locked:?}, not for {id}"));
            }
        }
        let Self { issued, unspent, redeemed, .. } = self;
        if unspent + redeemed == *issued {
            return Ok(());
        }
        Err(format!("{unspent} unspent and {redeemed} redeemed of {issued} issued"))
    }
}

fn word_of(invalid: &Invalid) -> &'static str {
    match invalid {
        Invalid::Malformed(_) => "malformed",
        Invalid::Inputs => "too few or many inputs",
        Invalid::Outputs => "too few or many outputs",
        Invalid::InputOrder => "duplicate inputs",
        Invalid::ZeroValue => "zero values",
        Invalid::Overflow => "overflows",
        Invalid::Conservation { .. } => "inflations",
        Invalid::OwnerSignature => "bad signatures",
        Invalid::NotTheIssuer => "foreign issues",
        Invalid::NotInGenesis(_) => "not in genesis",
        Invalid::Path(_) => "wrong paths",
        Invalid::Refund => "bad refunds",
        Invalid::Certificate(_) => "bad certificates",
        Invalid::WrongShard(_) => "wrong shards",
    }
}

/// Adds to a shelf that has room for so many: one that is there makes room.
fn keep<T>(shelf: &mut Vec<T>, item: T, rng: &mut Rng) {
    if shelf.len() < AT_HAND {
        shelf.push(item);
    } else {
        let at = rng.index(AT_HAND);
        shelf[at] = item;
    }
}
