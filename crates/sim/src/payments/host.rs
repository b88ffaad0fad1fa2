//! An authority's shard: its machine, its log of promises, what waits for the disk, and what it
//! learned of the committee's order.

mod border;
mod following;
mod wallets;

pub(super) use border::{Readings, sign_closing, sorted};

use quorate_crypto::{Digest, IdentityKey, KeyFile};
use quorate_deterministic::Rng;
use quorate_engine::host::{Barrier, HeldBack};
use quorate_payments::change::{Inheritance, Inherited};
use quorate_payments::release::{Held, Report};
use quorate_payments::{
    Answer, Authority, AuthorityEffect, AuthorityEvent, CheckedOrder, Equivocation, Lock, Network,
    OrderVerifier, Orders, OutputId, ReleaseEntry, SignJob, SpentSet, Transaction, WalletRecord,
    WalletReply, check_orders,
};
use quorate_types::{Machine, ReplicaId, Time, Verified};
use std::collections::BTreeMap;
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
    /// Reply to the request of this number, to whoever's endpoint is the ticket.
    Reply(u64, u64, WalletReply),
    /// Have a report ordered.
    Report(OutputId, Held),
    /// Have everything reported that it locked in the epoch that ends for this network file.
    Closed(Digest),
    /// Keep a proof of misbehaviour.
    Evidence(Box<Equivocation>),
}

/// Entry of a host's log.
#[derive(Clone, Debug)]
enum LogEntry {
    Lock(Lock),
    Release(ReleaseEntry),
    /// Record of a wallet, by the wallet's key.
    Record(IdentityKey, Box<WalletRecord>),
}

/// Place of an authority in one epoch.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    /// Number of the epoch, from 0.
    pub(super) epoch: usize,
    /// Index among the epoch's authorities.
    pub(super) index: usize,
    pub(super) keys: KeyFile,
    pub(super) network: Arc<Network>,
}

/// Host of one shard of an authority.
#[derive(Debug)]
pub(super) struct AuthorityHost {
    /// Number of the authority over all epochs.
    pub(super) authority: usize,
    pub(super) shard: u16,
    /// Place in the epoch that it serves, or served last; none before its first, and once its disks
    /// are lost.
    seat: Option<Seat>,
    /// What it inherits of the epochs before.
    inherited: Arc<dyn Inherited>,
    readings: Vec<Readings>,
    /// Set once its disks and keys are lost.
    pub(super) is_lost: bool,
    /// Its log: what is durable, then what was written and may be lost.
    log: Vec<LogEntry>,
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
    spent: Arc<SpentSet>,
    machine: Authority,
    inbox: Vec<(u64, Transaction)>,
    barrier: Barrier,
    /// Requests that may show a promise. Several syncs may be under way, so no group commit is
    /// around them: what is counted is the log's entries since the start.
    held: HeldBack<HostRequest>,
    /// Number of items that wait in `held`.
    waiting: usize,
    /// Entries in the log at the start.
    began_with: usize,
    /// Changes of the committee's order that it executed since the start.
    followed: usize,
    /// True while the next change is on its way.
    is_following: bool,
    /// Reports that the committee has not counted, as far as is known.
    reports: BTreeMap<OutputId, Report>,
    /// True until the report of its locks counts, once it has closed.
    must_report: bool,
}

impl Seat {
    pub(super) fn id(&self) -> ReplicaId {
        ReplicaId(u16::try_from(self.index).expect("few"))
    }
}

impl AuthorityHost {
    /// Host of an authority with this place in the founding epoch, if it has one.
    pub(super) fn new(authority: usize, shard: u16, seat: Option<Seat>) -> Self {
        let mut host = Self {
            authority,
            shard,
            seat,
            inherited: Arc::new(Inheritance::default()),
            readings: Vec::new(),
            is_lost: false,
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

    pub(super) fn seat(&self) -> Option<&Seat> {
        self.seat.as_ref()
    }

    /// Network of the epoch that it serves.
    ///
    /// # Panics
    /// When it serves none.
    fn network(&self) -> &Arc<Network> {
        &self.seat.as_ref().expect("it runs, or ran").network
    }

    /// Epoch that it serves.
    pub(super) fn epoch(&self) -> Option<usize> {
        self.seat.as_ref().map(|seat| seat.epoch)
    }

    pub(super) fn is_up(&self) -> bool {
        self.running.is_some()
    }

    fn locks(&self) -> impl Iterator<Item = &Lock> {
        self.log.iter().filter_map(|entry| match entry {
            LogEntry::Lock(lock) => Some(lock),
            _ => None,
        })
    }

    /// Begins with what the log has: what is under release, then locks, as a real one does.
    pub(super) fn start(&mut self) {
        let Some(Seat { network, .. }) = self.seat.clone().filter(|_| !self.is_up()) else {
            return;
        };
        let spent = Arc::new(SpentSet::default().after(Arc::clone(&self.inherited)));
        for entry in &self.log {
            if let LogEntry::Release(entry) = entry {
                spent.frozen().apply(*entry);
            }
        }
        self.locks().for_each(|lock| spent.lock(lock));
        self.durable = self.log.len();
        let machine = Authority::new(&network, Arc::clone(&spent), self.locks().count() as u64);
        let (barrier, held) = Barrier::around();
        self.running = Some(Running {
            verifier: OrderVerifier::new(network, self.shard, Arc::clone(&spent)),
            spent,
            machine,
            inbox: Vec::new(),
            barrier,
            held,
            waiting: 0,
            began_with: self.log.len(),
            followed: 0,
            is_following: false,
            reports: BTreeMap::new(),
            must_report: false,
        });
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

    /// Looks at what came, on the pool; the record of what is valid is written before its lock.
    pub(super) fn look(&mut self) -> Option<(Verified<Orders>, Vec<HostRequest>)> {
        let running = self.running.as_mut()?;
        let arrived = std::mem::take(&mut running.inbox);
        let orders = check_orders(arrived.clone(), &running.verifier);
        let is_kept = |checked: &CheckedOrder| {
            matches!(checked, CheckedOrder::Valid(_) | CheckedOrder::Repeated(_))
        };
        let valid = arrived.into_iter().zip(orders.iter()).filter(|(_, one)| is_kept(one));
        let valid: Vec<Transaction> = valid.map(|((_, tx), _)| tx).collect();
        let new = valid.into_iter().filter(|tx| !self.has_sent(tx));
        let records = new.map(wallets::sent).collect();
        let requests = self.append(records);
        Some((orders, requests))
    }

    /// Adds entries to the log, and asks for a sync if there are any.
    fn append(&mut self, entries: Vec<LogEntry>) -> Vec<HostRequest> {
        let Some(running) = &mut self.running else { return Vec::new() };
        if entries.is_empty() {
            return Vec::new();
        }
        entries.iter().for_each(|_| running.barrier.persist());
        self.log.extend(entries);
        vec![HostRequest::Sync(self.log.len())]
    }

    /// A lock as it is read back.
    pub(super) fn read(&self, sequence: u64) -> Option<Lock> {
        self.locks().find(|lock| lock.sequence == sequence).cloned()
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
        running.held.durable_up_to(since_start as u64, |request| requests.push(request));
        running.waiting -= requests.len();
        requests
    }

    fn drain(&mut self) -> Vec<HostRequest> {
        let (mut requests, mut leaving) = (Vec::new(), Vec::new());
        while let Some(effect) = self.running.as_mut().and_then(|one| one.machine.poll()) {
            match effect {
                AuthorityEffect::Persist(locks) => {
                    requests.extend(self.append(locks.into_iter().map(LogEntry::Lock).collect()));
                }
                AuthorityEffect::PersistReleases(entries) => {
                    let entries = entries.into_iter().map(LogEntry::Release).collect();
                    requests.extend(self.append(entries));
                }
                AuthorityEffect::Sign(job) => requests.push(HostRequest::Sign(job)),
                AuthorityEffect::Read(sequence) => requests.push(HostRequest::Read(sequence)),
                AuthorityEffect::Evidence(proof) => requests.push(HostRequest::Evidence(proof)),
                AuthorityEffect::Answer { ticket, answer } => {
                    leaving.extend(self.leave(HostRequest::Send(ticket, answer)));
                }
                AuthorityEffect::Report(coin, held) => {
                    leaving.extend(self.leave(HostRequest::Report(coin, held)));
                }
                AuthorityEffect::Closed(next) => {
                    leaving.extend(self.leave(HostRequest::Closed(next)));
                }
                AuthorityEffect::Stop(failed) => unreachable!("all is in memory: {failed}"),
            }
        }
        requests.append(&mut leaving);
        requests
    }

    /// Has something leave behind all that was written, at once where that is durable.
    fn leave(&mut self, request: HostRequest) -> Option<HostRequest> {
        let running = self.running.as_mut()?;
        if !running.barrier.must_wait() {
            return Some(request);
        }
        let since_start = self.log.len() - running.began_with;
        running.held.hold(since_start as u64, request);
        running.waiting += 1;
        None
    }
}
