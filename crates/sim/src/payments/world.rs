//! The world of a run: what happens when, and who is told.

mod authorities;
mod payers;
mod progress;
mod releases;

use super::Report;
use super::books::{Books, Violation};
use super::committee::Committee;
use super::host::AuthorityHost;
use super::liar::{Behaviour, Seen};
use super::payer::{Mishap, Wallet};
use super::scenario::Scenario;
use super::test_network::TestNetwork;
use super::thief::Thief;
use crate::network::Network as Links;
use crate::trace::Trace;
use quorate_crypto::{IdentityKey, IdentitySecret};
use quorate_deterministic::{EventQueue, Rng};
use quorate_payments::release::Report as ReleaseReport;
use quorate_payments::{
    Answer, AuthorityEvent, Coin, Network, Numbered, PayerEvent, Transaction, WalletReply,
    WalletRequest,
};
use quorate_types::{Lane, ReplicaId, Time};
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
    Arrives { to: usize, from: usize, frame: Frame },
    Host { host: usize, life: u64, back: HostEvent },
    Payer { payer: usize, life: u64, due: PayerWork },
    Wish(usize),
    LastWish(usize),
    Crime(usize),
    Paid(Box<Coin>),
    Step(Vec<u8>),
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
    network: Arc<Network>,
    /// The network as somebody knows it who has nothing remembered.
    stranger: Network,
    now: Time,
    events: EventQueue<SimEvent>,
    links: Links,
    hosts: Vec<AuthorityHost>,
    committee: Committee,
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
        let network = &setup.network;
        let host = |host: usize| {
            let (authority, shard) = place(host, *shards);
            let keys = setup.keys[authority].clone();
            AuthorityHost::new(Arc::clone(network), authority, shard, keys)
        };
        let secret = |owner: usize| setup.owners[owner].clone();
        let wallet =
            |owner: usize| Wallet::new(network, secret(owner), owner == 0, scenario.patience);
        let thief = |owner: usize| Thief::new(network, secret(owner));
        let behaviour = scenario.behaviours.iter().enumerate();
        let faulty = behaviour.filter(|(_, one)| **one != Behaviour::Honest).map(|(at, _)| at);
        let books = Books::new(
            network.issuer(),
            *authorities,
            faulty.collect(),
            network.genesis_outputs().collect(),
        );
        let links = Links::new(
            scenario.endpoints(),
            scenario.conditions.clone(),
            Rng::new(*seed, "payment links", 0),
        );
        let mut world = Self {
            stranger: setup.stranger(),
            committee: Committee::new(setup.stranger()),
            network: Arc::clone(network),
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
            frozen: self.committee.frozen().len() as u64,
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
            SimEvent::Arrives { to, from, frame } => self.on_frame(to, from, frame),
            SimEvent::Host { host, life, back } => self.on_host(host, life, back),
            SimEvent::Payer { payer, life, due } => self.on_payer(payer, life, due),
            SimEvent::Wish(payer) => self.on_wish(payer, false),
            SimEvent::LastWish(payer) => self.on_wish(payer, true),
            SimEvent::Crime(thief) => self.on_crime(thief),
            SimEvent::Paid(coin) => self.on_paid(&coin),
            SimEvent::Step(bytes) => self.on_step(&bytes),
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

    fn on_frame(&mut self, to: usize, from: usize, frame: Frame) -> Verdicts {
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

    fn send(&mut self, from: usize, to: usize, frame: &Frame) {
        for at in self.links.route(self.now, from, to, Lane::Client) {
            let frame = frame.clone();
            self.events.schedule(at, SimEvent::Arrives { to, from, frame });
        }
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
            Self::BackUp(payer) => (20, *payer, nothing),
            Self::Mishap(payer, ..) => (21, *payer, nothing),
            Self::LastWish(payer) => (22, *payer, nothing),
        }
    }
}

/// Splits a host's number into its authority and shard.
fn place(host: usize, shards: u16) -> (usize, u16) {
    let shards = usize::from(shards);
    (host / shards, u16::try_from(host % shards).expect("few"))
}
