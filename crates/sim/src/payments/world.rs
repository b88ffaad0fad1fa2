//! The world of a run: what happens when, and who is told.

use super::Report;
use super::books::{Books, Violation};
use super::host::{AuthorityHost, HostRequest};
use super::liar::{self, Behaviour};
use super::payer::Wallet;
use super::scenario::Scenario;
use super::test_network::TestNetwork;
use super::thief::Thief;
use crate::faults::Fault;
use crate::network::Network as Links;
use crate::trace::Trace;
use quorate_crypto::{IdentityKey, IdentitySecret};
use quorate_deterministic::{EventQueue, Rng};
use quorate_payments::{
    Answer, AuthorityEvent, Coin, Network, PayerEffect, PayerEvent, PaymentOutcome, Transaction,
    TxId, Verdict,
};
use quorate_types::{Lane, ReplicaId, Time};
use std::sync::Arc;
use std::time::Duration;

/// Content of a frame.
#[derive(Clone, Debug)]
enum Frame {
    Order(Arc<Transaction>),
    Answer(ReplicaId, Box<Answer>),
}

/// Something that comes back to an authority's host.
#[derive(Debug)]
enum HostEvent {
    Look,
    Machine(Box<AuthorityEvent>),
    Synced(usize),
    Timer,
}

/// Something that comes back to a payer.
#[derive(Debug)]
enum PayerWork {
    Stored(Arc<Transaction>),
    Machine(PayerEvent),
    Timer,
}

#[derive(Debug)]
enum SimEvent {
    Arrives { to: usize, from: usize, frame: Frame },
    Host { host: usize, life: u64, back: HostEvent },
    Payer { payer: usize, life: u64, due: PayerWork },
    Wish(usize),
    Crime(usize),
    Paid(Box<Coin>),
    Fault(usize),
    Restart(usize),
    PayerCrash(usize, Duration),
    PayerRestart(usize),
    Calm,
}

/// Virtual time, authorities' hosts, payers and thieves.
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
    wallets: Vec<Wallet>,
    thieves: Vec<Thief>,
    owners: Vec<IdentityKey>,
    books: Books,
    rng: Rng,
    trace: Trace,
    conflicts: u64,
    invalid: u64,
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
        let wallet = |owner: usize| Wallet::new(network, setup.owners[owner].clone(), owner == 0);
        let thief = |owner: usize| Thief::new(network, setup.owners[owner].clone());
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
            network: Arc::clone(network),
            now: Time::default(),
            events: EventQueue::default(),
            links,
            hosts: (0..scenario.hosts()).map(host).collect(),
            wallets: (0..*payers).map(wallet).collect(),
            thieves: (*payers..payers + thieves).map(thief).collect(),
            owners: setup.owners.iter().map(IdentitySecret::public).collect(),
            books,
            rng: Rng::new(*seed, "payment world", 0),
            trace: Trace::default(),
            conflicts: 0,
            invalid: 0,
            scenario: scenario.clone(),
        };
        world.plan();
        world
    }

    fn plan(&mut self) {
        let Scenario { wishes, crimes, schedule, payer_crashes, fault_phase, .. } = &self.scenario;
        let events = &mut self.events;
        wishes.iter().for_each(|(at, payer)| events.schedule(*at, SimEvent::Wish(*payer)));
        crimes.iter().for_each(|(at, thief)| events.schedule(*at, SimEvent::Crime(*thief)));
        for (number, (at, _)) in schedule.iter().enumerate() {
            events.schedule(*at, SimEvent::Fault(number));
        }
        for (at, payer, down) in payer_crashes {
            events.schedule(*at, SimEvent::PayerCrash(*payer, *down));
        }
        events.schedule(Time::default() + *fault_phase, SimEvent::Calm);
        // One payment each that nothing disturbs: whoever lost all wishes to a crash pays at last.
        for payer in 0..self.wallets.len() {
            let at = Time::default() + *fault_phase + Duration::from_millis(1);
            events.schedule(at, SimEvent::Wish(payer));
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

    /// Nothing goes wrong any more, and f authorities at most are faulty: everything is certified.
    fn progress(&self) -> Verdicts {
        let stuck = |(payer, wallet): (usize, &Wallet)| {
            let open: Vec<String> = wallet.unfinished().map(TxId::to_string).collect();
            (!open.is_empty()).then(|| format!("payer {payer} waits for {}", open.join(", ")))
        };
        let stuck: Vec<String> = self.wallets.iter().enumerate().filter_map(stuck).collect();
        let (begun, certified) = self.wallets.iter().fold((0, 0), |(begun, certified), wallet| {
            (begun + wallet.begun, certified + wallet.certified)
        });
        if stuck.is_empty() && certified > 0 && begun == certified {
            return Ok(());
        }
        let text = format!("{certified} of {begun} certified; {}", stuck.join("; "));
        Err(Violation { oracle: "progress", text })
    }

    pub(super) fn report(&self) -> Report {
        Report {
            seed: self.scenario.seed,
            trace_hash: self.trace.hash(),
            events: self.trace.events(),
            virtual_time: self.now,
            certified: self.wallets.iter().map(|wallet| wallet.certified).sum(),
            thieves_certified: self.thieves.iter().map(|thief| thief.certified).sum(),
            conflicts: self.conflicts,
            invalid: self.invalid,
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
            SimEvent::Wish(payer) => self.on_wish(payer),
            SimEvent::Crime(thief) => self.on_crime(thief),
            SimEvent::Paid(coin) => self.on_paid(&coin),
            SimEvent::Fault(number) => {
                self.on_fault(number);
                Ok(())
            }
            SimEvent::Restart(host) => {
                self.hosts[host].start();
                Ok(())
            }
            SimEvent::PayerCrash(payer, down) => {
                self.wallets[payer].crash();
                self.events.schedule(self.now + down, SimEvent::PayerRestart(payer));
                Ok(())
            }
            SimEvent::PayerRestart(payer) => {
                self.wallets[payer].start(self.now);
                self.drain_payer(payer)
            }
            SimEvent::Calm => {
                self.links.calm();
                for host in &mut self.hosts {
                    host.start();
                    (host.slow, host.paused_until) = (None, self.now);
                }
                Ok(())
            }
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

    // Authorities.

    fn on_frame(&mut self, to: usize, from: usize, frame: Frame) -> Verdicts {
        match frame {
            Frame::Order(tx) if to < self.hosts.len() => {
                self.on_order(to, from, &tx);
                Ok(())
            }
            Frame::Answer(by, answer) => self.on_answer(to - self.hosts.len(), by, *answer),
            Frame::Order(_) => unreachable!("orders go to authorities"),
        }
    }

    fn on_order(&mut self, host: usize, from: usize, tx: &Transaction) {
        let behaviour = self.scenario.behaviours[self.hosts[host].authority];
        if behaviour != Behaviour::Honest {
            let AuthorityHost { keys, .. } = &self.hosts[host];
            let me = self.hosts[host].id();
            let answer = liar::answer(behaviour, &self.network, keys, me, tx, &mut self.rng);
            if let Some(answer) = answer {
                self.send(host, from, &Frame::Answer(me, Box::new(answer)));
            }
            return;
        }
        if self.hosts[host].on_order(from as u64, tx.clone()) {
            self.later(host, 2_000, HostEvent::Look);
        }
    }

    /// Comes back to a host that is still the same by then.
    fn later(&mut self, host: usize, most_us: u64, back: HostEvent) {
        let (at, life) = (self.soon(most_us), self.hosts[host].life);
        self.events.schedule(at, SimEvent::Host { host, life, back });
    }

    fn on_host(&mut self, host: usize, life: u64, back: HostEvent) -> Verdicts {
        if self.hosts[host].life != life {
            return Ok(());
        }
        let resumes = self.hosts[host].paused_until;
        if resumes > self.now {
            self.events.schedule(resumes, SimEvent::Host { host, life, back });
            return Ok(());
        }
        let now = self.now;
        let requests = match back {
            HostEvent::Look => {
                if let Some(orders) = self.hosts[host].look() {
                    self.later(
                        host,
                        1_000,
                        HostEvent::Machine(Box::new(AuthorityEvent::Orders(orders))),
                    );
                }
                return Ok(());
            }
            HostEvent::Machine(event) => self.hosts[host].handle(now, *event),
            HostEvent::Synced(up_to) => self.hosts[host].on_synced(up_to),
            HostEvent::Timer => self.hosts[host].on_timeout(now),
        };
        self.serve(host, requests)?;
        if let Some(at) = self.hosts[host].next_timeout() {
            self.events
                .schedule(at.max(now), SimEvent::Host { host, life, back: HostEvent::Timer });
        }
        Ok(())
    }

    fn serve(&mut self, host: usize, requests: Vec<HostRequest>) -> Verdicts {
        for request in requests {
            match request {
                HostRequest::Sync(up_to) => {
                    let slow = self.hosts[host].slow.filter(|(_, until)| *until > self.now);
                    let most_us = slow.map_or(5_000, |(sync_us, _)| sync_us);
                    self.later(host, most_us, HostEvent::Synced(up_to));
                }
                HostRequest::Sign(job) => {
                    let AuthorityHost { keys, .. } = &self.hosts[host];
                    let signed = job.run(&self.network, &keys.voting, self.hosts[host].id());
                    self.later(
                        host,
                        1_000,
                        HostEvent::Machine(Box::new(AuthorityEvent::Signed(signed))),
                    );
                }
                HostRequest::Read(sequence) => {
                    let lock = self.hosts[host].read(sequence);
                    let event = AuthorityEvent::Read { sequence, lock };
                    self.later(host, 3_000, HostEvent::Machine(Box::new(event)));
                }
                HostRequest::Send(ticket, answer) => self.answer(host, ticket, answer)?,
                HostRequest::Evidence(proof) => {
                    self.conflicts += 1;
                    if !proof.is_proven(&self.stranger) {
                        let text = format!("{proof:?} proves nothing");
                        return Err(Violation { oracle: "evidence", text });
                    }
                }
            }
        }
        Ok(())
    }

    fn answer(&mut self, host: usize, ticket: u64, answer: Answer) -> Verdicts {
        match &answer.verdict {
            Verdict::Vote(_) => self.books.on_vote(self.hosts[host].authority, answer.tx)?,
            Verdict::Invalid(_) => self.invalid += 1,
            Verdict::Locked { .. }
            | Verdict::Busy
            | Verdict::Undecided { .. }
            | Verdict::Released { .. } => {}
        }
        let by = self.hosts[host].id();
        let to = usize::try_from(ticket).expect("an endpoint");
        self.send(host, to, &Frame::Answer(by, Box::new(answer)));
        Ok(())
    }

    fn on_fault(&mut self, number: usize) {
        let now = self.now;
        match self.scenario.schedule[number].1.clone() {
            Fault::Partition { side, shape, lasts } => {
                self.links.partition(now, side, shape, lasts);
            }
            Fault::Clog { from, to, lasts } => self.links.clog(now, from, to, lasts),
            Fault::Pause { host, lasts } | Fault::Suspend { host, lasts } => {
                self.hosts[host].paused_until = now + lasts;
            }
            Fault::SlowDisk { host, sync_us, lasts } => {
                self.hosts[host].slow = Some((sync_us, now + lasts));
            }
            // A failed write or sync stops an authority, which then begins with what is durable.
            Fault::Crash { host, down }
            | Fault::DiskFails { host, down, .. }
            | Fault::ClockStep { host, down, .. } => self.crash(host, down),
            Fault::PowerCut { down } => {
                (0..self.hosts.len()).for_each(|host| self.crash(host, down));
            }
            // An authority that lost its locks never comes back; none is drawn.
            Fault::Wipe { .. }
            | Fault::WipeBodies { .. }
            | Fault::CopyDisk { .. }
            | Fault::PutBack { .. } => {}
        }
    }

    fn crash(&mut self, host: usize, down: Duration) {
        self.hosts[host].crash(&mut self.rng);
        self.events.schedule(self.now + down, SimEvent::Restart(host));
    }

    // Payers and thieves.

    fn on_wish(&mut self, payer: usize) -> Verdicts {
        let me = self.wallets[payer].owner();
        let others: Vec<_> = self.owners.iter().copied().filter(|owner| *owner != me).collect();
        if let Some(tx) = self.wallets[payer].pay(self.now, &others, &mut self.rng) {
            self.books.on_transaction(tx.id(self.network.id()), &tx)?;
        }
        self.drain_payer(payer)
    }

    fn on_payer(&mut self, payer: usize, life: u64, due: PayerWork) -> Verdicts {
        if self.wallets[payer].life != life {
            return Ok(());
        }
        match due {
            PayerWork::Stored(tx) => self.wallets[payer].on_stored(self.now, &tx),
            PayerWork::Machine(event) => self.wallets[payer].handle(self.now, event),
            PayerWork::Timer => self.wallets[payer].on_timeout(self.now),
        }
        self.drain_payer(payer)
    }

    fn on_answer(&mut self, owner: usize, by: ReplicaId, answer: Answer) -> Verdicts {
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

    fn drain_payer(&mut self, payer: usize) -> Verdicts {
        let (me, life) = (self.hosts.len() + payer, self.wallets[payer].life);
        while let Some(effect) = self.wallets[payer].poll() {
            match effect {
                PayerEffect::Store(tx) => {
                    let at = self.soon(10_000);
                    let due = PayerWork::Stored(tx);
                    self.events.schedule(at, SimEvent::Payer { payer, life, due });
                }
                PayerEffect::Send { to, transaction } => {
                    let shard = self.network.shard_of(&transaction.payer);
                    let host = to.index() * usize::from(self.scenario.shards) + usize::from(shard);
                    self.send(me, host, &Frame::Order(transaction));
                }
                PayerEffect::Count(job) => {
                    let counted = job.run(&self.network);
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
            self.events.schedule(at, SimEvent::Paid(Box::new(coin)));
        }
    }

    /// A certificate convinces whoever never heard of anything, and of nothing that is not so.
    fn on_paid(&mut self, coin: &Coin) -> Verdicts {
        let believed = coin.check(&self.stranger);
        if believed.is_err() || !self.books.exists(coin.id) {
            let text = format!("{coin:?} is shown; a stranger says {believed:?}");
            return Err(Violation { oracle: "certificates", text });
        }
        let payee = self.wallets.iter_mut().find(|one| one.owner() == coin.output.owner);
        if let Some(wallet) = payee {
            wallet.add(coin.clone());
        }
        self.thieves.iter_mut().for_each(|thief| thief.hear(coin));
        Ok(())
    }

    /// Each of what a thief makes goes to some of the hosts, of whatever shard.
    fn on_crime(&mut self, thief: usize) -> Verdicts {
        let me = self.hosts.len() + self.wallets.len() + thief;
        let own = self.thieves[thief].owner();
        let others: Vec<_> = self.owners.iter().copied().filter(|owner| *owner != own).collect();
        for tx in self.thieves[thief].act(&others, &mut self.rng) {
            self.books.on_transaction(tx.id(self.network.id()), &tx)?;
            let everybody = self.rng.one_in(3);
            for host in 0..self.hosts.len() {
                if everybody || self.rng.coin() {
                    self.send(me, host, &Frame::Order(Arc::clone(&tx)));
                }
            }
        }
        Ok(())
    }
}

impl SimEvent {
    /// For the trace: its kind, where, and something of its content.
    fn describe(&self) -> (u8, usize, [u8; 32]) {
        let nothing = [0; 32];
        match self {
            Self::Arrives { to, frame: Frame::Order(tx), .. } => {
                (0, *to, tx.signature.0[..32].try_into().expect("half of 64"))
            }
            Self::Arrives { to, frame: Frame::Answer(_, answer), .. } => (1, *to, answer.tx.0.0),
            Self::Host { host, back, .. } => match back {
                HostEvent::Look => (2, *host, nothing),
                HostEvent::Machine(_) => (3, *host, nothing),
                HostEvent::Synced(_) => (4, *host, nothing),
                HostEvent::Timer => (5, *host, nothing),
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
        }
    }
}

/// Splits a host's number into its authority and shard.
fn place(host: usize, shards: u16) -> (usize, u16) {
    let shards = usize::from(shards);
    (host / shards, u16::try_from(host % shards).expect("few"))
}
