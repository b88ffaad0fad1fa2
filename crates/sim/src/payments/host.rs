//! An authority's shard: its machine, its log of locks, and what waits for the disk.

use quorate_crypto::KeyFile;
use quorate_deterministic::Rng;
use quorate_engine::host::{Barrier, HeldBack};
use quorate_payments::{
    Answer, Authority, AuthorityEffect, AuthorityEvent, Equivocation, Lock, Network, OrderVerifier,
    Orders, SignJob, SpentSet, Transaction, check_orders,
};
use quorate_types::{Machine, ReplicaId, Time, Verified};
use std::sync::Arc;

/// Request of a host to the world.
#[derive(Debug)]
pub(super) enum HostRequest {
    /// Sync the log up to here.
    Sync(usize),
    /// Vote on the pool.
    Sign(SignJob),
    /// Read a lock back.
    Read(u64),
    /// Send an answer to whoever's endpoint is the ticket.
    Send(u64, Answer),
    /// Keep a proof of misbehaviour.
    Evidence(Box<Equivocation>),
}

/// Host of one shard of an authority.
#[derive(Debug)]
pub(super) struct AuthorityHost {
    pub(super) authority: usize,
    shard: u16,
    pub(super) keys: KeyFile,
    network: Arc<Network>,
    /// Its log: what is durable, then what was written and may be lost.
    log: Vec<Lock>,
    durable: usize,
    /// Counts its starts: what was asked for in an earlier life is answered in vain.
    pub(super) life: u64,
    running: Option<Running>,
    pub(super) paused_until: Time,
    /// Duration of syncs in microseconds, and the time until which they are as slow.
    pub(super) slow: Option<(u64, Time)>,
}

#[derive(Debug)]
struct Running {
    verifier: OrderVerifier,
    machine: Authority,
    inbox: Vec<(u64, Transaction)>,
    barrier: Barrier,
    /// Answers with their tickets. Several syncs may be under way, so no group commit is around
    /// them: what is counted is the log's locks since the start.
    held: HeldBack<(u64, Answer)>,
    /// Locks in the log at the start.
    began_with: usize,
}

impl AuthorityHost {
    pub(super) fn new(network: Arc<Network>, authority: usize, shard: u16, keys: KeyFile) -> Self {
        let mut host = Self {
            authority,
            shard,
            keys,
            network,
            log: Vec::new(),
            durable: 0,
            life: 0,
            running: None,
            paused_until: Time::default(),
            slow: None,
        };
        host.start();
        host
    }

    pub(super) fn id(&self) -> ReplicaId {
        ReplicaId(u16::try_from(self.authority).expect("few"))
    }

    pub(super) fn is_up(&self) -> bool {
        self.running.is_some()
    }

    /// Begins with what the log has.
    pub(super) fn start(&mut self) {
        if self.is_up() {
            return;
        }
        let spent = Arc::new(SpentSet::default());
        self.log.iter().for_each(|lock| spent.lock(lock));
        self.durable = self.log.len();
        let network = Arc::clone(&self.network);
        let verifier = OrderVerifier::new(network, self.shard, Arc::clone(&spent));
        let machine = Authority::new(&self.network, spent, self.log.len() as u64);
        let (barrier, held) = Barrier::around();
        let (inbox, began_with) = (Vec::new(), self.log.len());
        self.running = Some(Running { verifier, machine, inbox, barrier, held, began_with });
    }

    /// Loses everything but the log; of what was not synced, a part may be there.
    pub(super) fn crash(&mut self, rng: &mut Rng) {
        self.life += 1;
        self.running = None;
        let unsynced = self.log.len() - self.durable;
        let kept = if rng.one_in(5) { rng.index(unsynced + 1) } else { 0 };
        self.log.truncate(self.durable + kept);
    }

    /// Takes an order in; true where nothing looks at the others yet.
    pub(super) fn on_order(&mut self, ticket: u64, tx: Transaction) -> bool {
        let Some(running) = &mut self.running else { return false };
        running.inbox.push((ticket, tx));
        running.inbox.len() == 1
    }

    /// Looks at what came, on the pool.
    pub(super) fn look(&mut self) -> Option<Verified<Orders>> {
        let running = self.running.as_mut()?;
        Some(check_orders(std::mem::take(&mut running.inbox), &running.verifier))
    }

    /// A lock as it is read back.
    pub(super) fn read(&self, sequence: u64) -> Option<Lock> {
        self.log.iter().find(|lock| lock.sequence == sequence).cloned()
    }

    pub(super) fn handle(&mut self, now: Time, event: AuthorityEvent) -> Vec<HostRequest> {
        let Some(running) = &mut self.running else { return Vec::new() };
        running.machine.handle(now, event);
        self.drain()
    }

    pub(super) fn on_timeout(&mut self, now: Time) -> Vec<HostRequest> {
        let Some(running) = &mut self.running else { return Vec::new() };
        running.machine.handle_timeout(now);
        self.drain()
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.running.as_ref()?.machine.next_timeout()
    }

    /// Takes the log as durable up to here: what waited for that leaves.
    pub(super) fn on_synced(&mut self, up_to: usize) -> Vec<HostRequest> {
        self.durable = self.durable.max(up_to);
        let Some(running) = &mut self.running else { return Vec::new() };
        let mut requests = Vec::new();
        let since_start = self.durable - running.began_with;
        running.held.durable_up_to(since_start as u64, |(ticket, answer)| {
            requests.push(HostRequest::Send(ticket, answer));
        });
        requests
    }

    fn drain(&mut self) -> Vec<HostRequest> {
        let Some(running) = &mut self.running else { return Vec::new() };
        let (mut requests, mut answers) = (Vec::new(), Vec::new());
        while let Some(effect) = running.machine.poll() {
            match effect {
                AuthorityEffect::Persist(locks) => {
                    locks.iter().for_each(|_| running.barrier.persist());
                    self.log.extend(locks);
                    requests.push(HostRequest::Sync(self.log.len()));
                }
                AuthorityEffect::Sign(job) => requests.push(HostRequest::Sign(job)),
                AuthorityEffect::Read(sequence) => requests.push(HostRequest::Read(sequence)),
                AuthorityEffect::Answer { ticket, answer } if running.barrier.must_wait() => {
                    let since_start = self.log.len() - running.began_with;
                    running.held.hold(since_start as u64, (ticket, answer));
                }
                AuthorityEffect::Answer { ticket, answer } => {
                    answers.push(HostRequest::Send(ticket, answer));
                }
                AuthorityEffect::Evidence(proof) => requests.push(HostRequest::Evidence(proof)),
                AuthorityEffect::PersistReleases(_) | AuthorityEffect::Report(..) => {
                    unreachable!("no committee orders releases here")
                }
                AuthorityEffect::Stop(failed) => unreachable!("all is in memory: {failed}"),
            }
        }
        requests.append(&mut answers);
        requests
    }
}
