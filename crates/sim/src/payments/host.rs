//! An authority's shard: its machine, its log of locks, and what waits for the disk.

use crate::dice::Dice;
use quorate_crypto::KeyFile;
use quorate_payments::{
    Answer, Authority, AuthorityEffect, AuthorityEvent, Equivocation, Lock, Network, OrderVerifier,
    Orders, SignJob, SpentSet, Transaction, look,
};
use quorate_types::{Machine, ReplicaId, Time, Verified};
use std::collections::VecDeque;
use std::sync::Arc;

/// What a host asks of the world.
#[derive(Debug)]
pub(super) enum Demand {
    /// Sync the log up to here.
    Sync(usize),
    /// Vote on the pool.
    Sign(SignJob),
    /// Read a lock back.
    Read(u64),
    /// Send an answer to whoever's endpoint is the ticket.
    Send(u64, Answer),
    /// Keep a proof.
    Evidence(Box<Equivocation>),
}

/// A shard's host.
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
    /// How long syncs take, and until when they are as slow.
    pub(super) slow: Option<(u64, Time)>,
}

#[derive(Debug)]
struct Running {
    verifier: OrderVerifier,
    machine: Authority,
    inbox: Vec<(u64, Transaction)>,
    /// Answers, each with how much of the log must be durable first.
    held: VecDeque<(usize, u64, Answer)>,
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
        self.log.iter().for_each(|lock| spent.restore(lock));
        self.durable = self.log.len();
        let network = Arc::clone(&self.network);
        let verifier = OrderVerifier::new(network, self.shard, Arc::clone(&spent));
        let machine = Authority::new(&self.network, spent, self.log.len() as u64);
        let (inbox, held) = (Vec::new(), VecDeque::new());
        self.running = Some(Running { verifier, machine, inbox, held });
    }

    /// Loses everything but the log; of what was not synced, a part may be there.
    pub(super) fn crash(&mut self, dice: &mut Dice) {
        self.life += 1;
        self.running = None;
        let unsynced = self.log.len() - self.durable;
        let kept = if dice.one_in(5) { dice.index(unsynced + 1) } else { 0 };
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
        Some(look(std::mem::take(&mut running.inbox), &running.verifier))
    }

    /// A lock as it is read back.
    pub(super) fn read(&self, sequence: u64) -> Option<Lock> {
        self.log.iter().find(|lock| lock.sequence == sequence).cloned()
    }

    pub(super) fn handle(&mut self, now: Time, event: AuthorityEvent) -> Vec<Demand> {
        let Some(running) = &mut self.running else { return Vec::new() };
        running.machine.handle(now, event);
        self.drain()
    }

    pub(super) fn on_timeout(&mut self, now: Time) -> Vec<Demand> {
        let Some(running) = &mut self.running else { return Vec::new() };
        running.machine.handle_timeout(now);
        self.drain()
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.running.as_ref()?.machine.next_timeout()
    }

    /// The log is durable up to here: what waited for that leaves.
    pub(super) fn on_synced(&mut self, up_to: usize) -> Vec<Demand> {
        self.durable = self.durable.max(up_to);
        self.drain()
    }

    fn drain(&mut self) -> Vec<Demand> {
        let Some(running) = &mut self.running else { return Vec::new() };
        let mut demands = Vec::new();
        while let Some(effect) = running.machine.poll() {
            match effect {
                AuthorityEffect::Persist(locks) => {
                    self.log.extend(locks);
                    demands.push(Demand::Sync(self.log.len()));
                }
                AuthorityEffect::Sign(job) => demands.push(Demand::Sign(job)),
                AuthorityEffect::Read(sequence) => demands.push(Demand::Read(sequence)),
                AuthorityEffect::Answer { ticket, answer } => {
                    running.held.push_back((self.log.len(), ticket, answer));
                }
                AuthorityEffect::Evidence(proof) => demands.push(Demand::Evidence(proof)),
            }
        }
        while running.held.front().is_some_and(|(needs, ..)| *needs <= self.durable) {
            let (_, ticket, answer) = running.held.pop_front().expect("just seen");
            demands.push(Demand::Send(ticket, answer));
        }
        demands
    }
}
