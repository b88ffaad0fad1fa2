//! The world of a run: what happens when, and who is told.

mod authorities;
mod borders;
mod payers;
mod progress;
mod releases;

use super::Report;
use super::books::{Books, Electorate, Violation, Voter};
use super::committee::Committee;
use super::host::{AuthorityHost, Seat};
use super::liar::{Behaviour, Seen};
use super::payer::{Mishap, Wallet};
use super::scenario::Scenario;
use super::test_network::TestNetwork;
use super::thief::Thief;
use crate::network::Network as Links;
use crate::trace::Trace;
use quorate_crypto::{Digest, IdentityKey, IdentitySecret};
use quorate_deterministic::{EventQueue, Rng};
use quorate_payments::change::Change;
use quorate_payments::release::Report as ReleaseReport;
use quorate_payments::{
    Answer, AuthorityEvent, Coin, Network, Numbered, PayerEvent, Transaction, WalletReply,
    WalletRequest,
};
use quorate_types::{Lane, ReplicaId, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Time after the faults at which each payer spends all that it has: it must be spendable by then.
const LAST_WISH: Duration = Duration::from_secs(60);

/// Time after the faults at which the owner of a copied wallet restores it, as it should have been.
const AMENDS: Duration = Duration::from_secs(20);

/// Content of a frame.
#[derive(Clone, Debug)]
enum Frame {
    Order(Arc<Transaction>),
    Answer(ReplicaId, Box<Answer>),
    Ask(Box<Numbered<WalletRequest>>),
    Reply(ReplicaId, Box<Numbered<WalletReply>>),
}

/// Something that comes back to an authority's host.
#[derive(Debug)]
enum HostEvent {
    Look,
    Machine(Box<AuthorityEvent>),
    Synced(usize),
    Timer,
    /// The next change of the committee's order, by its number.
    Follow(usize),
    /// Reports are submitted again that do not count yet.
    Resubmit,
    /// So is the one of all its locks.
    ReportLocks(Digest),
}

/// Something that comes back to a payer.
#[derive(Debug)]
enum PayerWork {
    Stored(Arc<Transaction>),
    Machine(PayerEvent),
    Timer,
    Look,
}

#[derive(Debug)]
enum SimEvent {
    /// A frame arrives, of the epoch of this number.
    Arrives {
        to: usize,
        from: usize,
        epoch: usize,
        frame: Frame,
    },
    Host {
        host: usize,
        life: u64,
        back: HostEvent,
    },
    Payer {
        payer: usize,
        life: u64,
        due: PayerWork,
    },
    Wish(usize),
    LastWish(usize),
    Crime(usize),
    Paid(Box<Coin>),
    Step(Vec<u8>),
    /// A step of the change that ends the epoch of this number.
    ChangeStep(usize, Vec<u8>),
    /// Operators have the change ordered that ends the epoch of this number.
    Change(usize),
    /// A host tries to begin the epoch of this number, or to read more reports of those before.
    Begin(usize, usize),
    /// An owner, by endpoint, follows to the epoch of this number.
    Enter(usize, usize),
    /// An authority loses its disks and keys.
    Lose(usize),
    Fault(usize),
    Restart(usize),
    BackUp(usize),
    PayerCrash(usize, Duration),
    Mishap(usize, Duration, Mishap),
    PayerRestart(usize),
    Calm,
}

/// Virtual time, authorities' hosts, the committee, payers and thieves.
#[derive(Debug)]
pub(super) struct World {
    scenario: Scenario,
    /// The network in each epoch, and the changes that lead from one to the next.
    epochs: Vec<TestNetwork>,
    changes: Vec<Change>,
    /// Number of changes that operators have submitted.
    submitted: usize,
    /// The network in its last epoch as somebody knows it who has nothing remembered.
    stranger: Network,
    now: Time,
    events: EventQueue<SimEvent>,
    links: Links,
    hosts: Vec<AuthorityHost>,
    /// Committees of all epochs: the first one orders releases, too.
    committees: Vec<Committee>,
    /// Chunks of closing reports by their roots, as whoever closed hands them out.
    chunks: BTreeMap<Digest, Vec<Vec<u8>>>,
    /// Roots of the reports that honest authorities' shards signed.
    reported: BTreeMap<(Voter, u16), Digest>,
    /// Epochs whose keys thieves have.
    leaked: BTreeSet<usize>,
    wallets: Vec<Wallet>,
    thieves: Vec<Thief>,
    /// What faulty authorities know together.
    seen: Seen,
    owners: Vec<IdentityKey>,
    books: Books,
    /// Coins that were handed over, for payees that lost them.
    receipts: Vec<Coin>,
    rng: Rng,
    trace: Trace,
    is_calm: bool,
    conflicts: u64,
    invalid: u64,
    steps_refused: u64,
    lost: u64,
}

type Verdicts = Result<(), Violation>;

impl World {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let Scenario { seed, scheme, authorities, shards, payers, thieves, .. } = scenario;
        let setup = TestNetwork::new(*seed, *scheme, *authorities, *shards, payers + thieves);
        let mut stranger = setup.stranger();
        let (mut epochs, mut changes) = (vec![setup], Vec::new());
        for members in scenario.epochs().into_iter().skip(1) {
            let (next, change) = epochs.last().expect("one is").next(*seed, members);
            stranger = stranger.succeed(&change).expect("all have signed");
            epochs.push(next);
            changes.push(change);
        }
        let setup = &epochs[0];
        let network = &setup.network;
        let host = |host: usize| {
            let (authority, shard) = place(host, *shards);
            AuthorityHost::new(authority, shard, seat(&epochs, 0, authority))
        };
        let secret = |owner: usize| setup.owners[owner].clone();
        let wallet =
            |owner: usize| Wallet::new(network, secret(owner), owner == 0, scenario.patience);
        let thief = |owner: usize| Thief::new(network, secret(owner), !changes.is_empty());
        let is_faulty = |one: &usize| scenario.behaviours[*one] != Behaviour::Honest;
        let electorate = |epoch: &TestNetwork| {
            let faulty = epoch.members.iter().enumerate().filter(|(_, one)| is_faulty(one));
            Electorate { size: epoch.members.len(), faulty: faulty.map(|(at, _)| at).collect() }
        };
        let books = Books::new(
            network.issuer(),
            epochs.iter().map(electorate).collect(),
            network.genesis_outputs().collect(),
        );
        let links = Links::new(
            scenario.endpoints(),
            scenario.conditions.clone(),
            Rng::new(*seed, "payment links", 0),
        );
        let committee = |epoch: &TestNetwork| Committee::new(Arc::clone(&epoch.network));
        let mut world = Self {
            stranger,
            committees: epochs.iter().map(committee).collect(),
            chunks: BTreeMap::new(),
            reported: BTreeMap::new(),
            leaked: BTreeSet::new(),
            submitted: 0,
            now: Time::default(),
            events: EventQueue::default(),
            links,
            hosts: (0..scenario.hosts()).map(host).collect(),
            wallets: (0..*payers).map(wallet).collect(),
            thieves: (*payers..payers + thieves).map(thief).collect(),
            seen: Seen::default(),
            owners: setup.owners.iter().map(IdentitySecret::public).collect(),
            books,
            receipts: Vec::new(),
            rng: Rng::new(*seed, "payment world", 0),
            trace: Trace::default(),
            is_calm: false,
            conflicts: 0,
            invalid: 0,
            steps_refused: 0,
            lost: 0,
            scenario: scenario.clone(),
            epochs,
            changes,
        };
        world.plan();
        world
    }

    fn plan(&mut self) {
        let scenario = &self.scenario;
        let calm = Time::default() + scenario.fault_phase;
        let events = &mut self.events;
        let span = Duration::from_micros;
        for (at, payer) in &scenario.wishes {
            events.schedule(Time(*at), SimEvent::Wish(*payer));
        }
        for (at, thief) in &scenario.crimes {
            events.schedule(Time(*at), SimEvent::Crime(*thief));
        }
        for (number, (at, _)) in scenario.schedule.iter().enumerate() {
            events.schedule(*at, SimEvent::Fault(number));
        }
        for (at, payer, down) in &scenario.payer_crashes {
            events.schedule(Time(*at), SimEvent::PayerCrash(*payer, span(*down)));
        }
        for (at, payer) in &scenario.backups {
            events.schedule(Time(*at), SimEvent::BackUp(*payer));
        }
        for (at, payer, down, mishap) in &scenario.mishaps {
            events.schedule(Time(*at), SimEvent::Mishap(*payer, span(*down), *mishap));
            if *mishap == Mishap::Copied {
                let amends = SimEvent::Mishap(*payer, span(*down), Mishap::Restored);
                events.schedule(calm + AMENDS, amends);
            }
        }
        for (epoch, change) in scenario.changes.iter().enumerate() {
            events.schedule(Time(change.at_us), SimEvent::Change(epoch));
            if let Some((authority, at)) = change.lost {
                events.schedule(Time(at), SimEvent::Lose(authority));
            }
        }
        events.schedule(calm, SimEvent::Calm);
        // One payment each that nothing disturbs: whoever lost all wishes to a crash pays at last.
        for payer in 0..self.wallets.len() {
            events.schedule(calm + Duration::from_millis(1), SimEvent::Wish(payer));
            events.schedule(calm + LAST_WISH, SimEvent::LastWish(payer));
        }
    }

    /// Until nothing is left to happen, or time is up.
    pub(super) fn run(&mut self) -> Verdicts {
        let end = Time::default() + self.scenario.fault_phase + self.scenario.liveness_bound;
        while let Some((at, what)) = self.events.pop() {
            if at > end {
                break;
            }
            self.now = at;
            self.apply(what)?;
        }
        self.progress()
    }

    pub(super) fn report(&self) -> Report {
        let sum = |count: fn(&Wallet) -> u64| self.wallets.iter().map(count).sum();
        Report {
            seed: self.scenario.seed,
            trace_hash: self.trace.hash(),
            events: self.trace.events(),
            virtual_time: self.now,
            certified: sum(|wallet| wallet.certified.len() as u64),
            thieves_certified: self.thieves.iter().map(|thief| thief.certified).sum(),
            conflicts: self.conflicts,
            invalid: self.invalid,
            frozen: self.releases().frozen().len() as u64,
            decided: self.decided(),
            refunded: sum(|wallet| wallet.refunded),
            lost: self.lost,
            tried: self.scenario.tried(),
            verdict: Ok(()),
        }
    }

    fn apply(&mut self, what: SimEvent) -> Verdicts {
        let (kind, at, content) = what.describe();
        self.trace.record(self.now, kind, at, &content);
        match what {
            SimEvent::Arrives { to, from, epoch, frame } => self.on_frame(to, from, epoch, frame),
            SimEvent::Host { host, life, back } => self.on_host(host, life, back),
            SimEvent::Payer { payer, life, due } => self.on_payer(payer, life, due),
            SimEvent::Wish(payer) => self.on_wish(payer, false),
            SimEvent::LastWish(payer) => self.on_wish(payer, true),
            SimEvent::Crime(thief) => self.on_crime(thief),
            SimEvent::Paid(coin) => self.on_paid(&coin),
            SimEvent::Step(bytes) => self.on_step(&bytes),
            SimEvent::ChangeStep(epoch, bytes) => self.on_change_step(epoch, &bytes),
            SimEvent::Change(epoch) => {
                self.on_change_due(epoch);
                Ok(())
            }
            SimEvent::Begin(host, epoch) => {
                self.on_begin(host, epoch);
                Ok(())
            }
            SimEvent::Enter(owner, epoch) => self.on_enter(owner, epoch),
            SimEvent::Lose(authority) => {
                self.on_lost(authority);
                Ok(())
            }
            SimEvent::Fault(number) => {
                self.on_fault(number);
                Ok(())
            }
            SimEvent::Restart(host) => {
                self.hosts[host].start();
                self.follow(host);
                Ok(())
            }
            SimEvent::BackUp(payer) => {
                self.wallets[payer].back_up();
                Ok(())
            }
            SimEvent::PayerCrash(payer, down) => {
                self.wallets[payer].crash();
                self.events.schedule(self.now + down, SimEvent::PayerRestart(payer));
                Ok(())
            }
            SimEvent::Mishap(payer, down, mishap) => {
                self.on_mishap(payer, down, mishap);
                Ok(())
            }
            SimEvent::PayerRestart(payer) => {
                self.wallets[payer].start(self.now);
                self.drain_payer(payer)
            }
            SimEvent::Calm => {
                self.on_calm();
                Ok(())
            }
        }
    }

    fn on_calm(&mut self) {
        self.is_calm = true;
        self.links.calm();
        for host in 0..self.hosts.len() {
            self.hosts[host].start();
            (self.hosts[host].slow, self.hosts[host].paused_until) = (None, self.now);
            self.follow(host);
        }
    }

    /// Channels are of one epoch: nobody takes in what is of another.
    fn on_frame(&mut self, to: usize, from: usize, epoch: usize, frame: Frame) -> Verdicts {
        if self.epoch_of(to) != Some(epoch) {
            return Ok(());
        }
        match frame {
            Frame::Order(tx) if to < self.hosts.len() => {
                self.on_order(to, from, &tx);
                Ok(())
            }
            Frame::Ask(request) if to < self.hosts.len() => self.on_request(to, from, *request),
            Frame::Answer(by, answer) => self.on_answer(to - self.hosts.len(), by, *answer),
            Frame::Reply(by, reply) => self.on_reply(to - self.hosts.len(), by, *reply),
            Frame::Order(_) | Frame::Ask(_) => unreachable!("these go to authorities"),
        }
    }

    /// Epoch that an endpoint is in, if it is in any.
    fn epoch_of(&self, endpoint: usize) -> Option<usize> {
        let Some(owner) = endpoint.checked_sub(self.hosts.len()) else {
            return self.hosts[endpoint].epoch();
        };
        let thief = |owner: usize| &self.thieves[owner - self.wallets.len()];
        Some(self.wallets.get(owner).map_or_else(|| thief(owner).epoch, |wallet| wallet.epoch))
    }

    fn send(&mut self, from: usize, to: usize, frame: &Frame) {
        let Some(epoch) = self.epoch_of(from) else { return };
        for at in self.links.route(self.now, from, to, Lane::Client) {
            let frame = frame.clone();
            self.events.schedule(at, SimEvent::Arrives { to, from, epoch, frame });
        }
    }

    /// The network as it was founded: names are the same in all epochs.
    fn founding(&self) -> &Arc<Network> {
        &self.epochs[0].network
    }

    /// The committee that orders releases.
    fn releases(&self) -> &Committee {
        &self.committees[0]
    }

    /// A host's place in its epoch.
    ///
    /// # Panics
    /// When it has none.
    fn seat(&self, host: usize) -> &Seat {
        self.hosts[host].seat().expect("it serves, or nothing comes to it")
    }

    fn soon(&mut self, most_us: u64) -> Time {
        self.now + self.rng.span(&(1..=most_us))
    }

    fn behaviour(&self, host: usize) -> Behaviour {
        self.scenario.behaviours[self.hosts[host].authority]
    }

    fn wallet_of(&self, owner: IdentityKey) -> Option<usize> {
        self.wallets.iter().position(|wallet| wallet.owner() == owner)
    }
}

impl SimEvent {
    /// For the trace: its kind, where, and something of its content.
    fn describe(&self) -> (u8, usize, [u8; 32]) {
        let nothing = [0; 32];
        let count = |number: u64| {
            let mut content = nothing;
            content[..8].copy_from_slice(&number.to_le_bytes());
            content
        };
        match self {
            Self::Arrives { to, frame, .. } => match frame {
                Frame::Order(tx) => (0, *to, tx.signature.0[..32].try_into().expect("half of 64")),
                Frame::Answer(_, answer) => (1, *to, answer.tx.0.0),
                Frame::Ask(request) => (15, *to, count(request.number)),
                Frame::Reply(_, reply) => (16, *to, count(reply.number)),
            },
            Self::Host { host, back, .. } => match back {
                HostEvent::Look => (2, *host, nothing),
                HostEvent::Machine(_) => (3, *host, nothing),
                HostEvent::Synced(_) => (4, *host, nothing),
                HostEvent::Timer => (5, *host, nothing),
                HostEvent::Follow(number) => (17, *host, count(*number as u64)),
                HostEvent::Resubmit => (18, *host, nothing),
                HostEvent::ReportLocks(_) => (23, *host, nothing),
            },
            Self::Payer { payer, .. } => (6, *payer, nothing),
            Self::Wish(payer) => (7, *payer, nothing),
            Self::Crime(thief) => (8, *thief, nothing),
            Self::Paid(coin) => (9, usize::from(coin.id.index), coin.id.tx.0.0),
            Self::Fault(number) => (10, *number, nothing),
            Self::Restart(host) => (11, *host, nothing),
            Self::PayerCrash(payer, _) => (12, *payer, nothing),
            Self::PayerRestart(payer) => (13, *payer, nothing),
            Self::Calm => (14, 0, nothing),
            Self::Step(bytes) => (19, bytes.len(), quorate_crypto::hash(bytes).0),
            Self::ChangeStep(epoch, bytes) => (24, *epoch, quorate_crypto::hash(bytes).0),
            Self::Change(epoch) => (25, *epoch, nothing),
            Self::Begin(host, epoch) => (26, *host, count(*epoch as u64)),
            Self::Enter(owner, epoch) => (27, *owner, count(*epoch as u64)),
            Self::Lose(authority) => (28, *authority, nothing),
            Self::BackUp(payer) => (20, *payer, nothing),
            Self::Mishap(payer, ..) => (21, *payer, nothing),
            Self::LastWish(payer) => (22, *payer, nothing),
        }
    }
}

/// Place of an authority in an epoch, if it has one.
fn seat(epochs: &[TestNetwork], epoch: usize, authority: usize) -> Option<Seat> {
    let network = &epochs[epoch];
    let index = network.members.iter().position(|one| *one == authority)?;
    let (keys, network) = (network.keys[index].clone(), Arc::clone(&network.network));
    Some(Seat { epoch, index, keys, network })
}

/// Splits a host's number into its authority and shard.
fn place(host: usize, shards: u16) -> (usize, u16) {
    let shards = usize::from(shards);
    (host / shards, u16::try_from(host % shards).expect("few"))
}
