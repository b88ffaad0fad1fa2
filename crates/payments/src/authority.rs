//! An authority: it locks the inputs of valid transactions, each once, and votes for them.
//!
//! Authorities never talk to each other. What makes a double spend impossible is that any two
//! quorums share an honest authority, and that an honest authority votes for one transaction an
//! input, for ever:
//!
//! * ★ All inputs of a transaction are judged and locked together, or none is.
//! * ★ The lock is durable before the vote leaves ([`AuthorityEffect::Persist`] is a barrier).
//! * A transaction that was voted for is voted for again, whenever it comes: its payer may have
//!   lost the answer. Paper 003 refuses it, and the money is stuck.
//! * A transaction whose input is taken is refused with the one that took it, signed by the same
//!   payer: with both, anybody can prove who tried to spend twice.
//! * A coin under [release](crate::release) is not voted over from its freeze on, but for what it
//!   was locked for before (★); the freeze is durable before the report of it leaves (★). Once
//!   something is decided, that is voted for after the same checks as any order (★), and nothing
//!   else.
//!
//! * Once the epoch has ended ([`change`](crate::change)) nothing new is voted for (★), durably
//!   before the report of all locks leaves (★). What an earlier epoch locked is checked like any
//!   order before it is voted for (★).
//!
//! # What the host owes it
//!
//! The contract of [`quorate_types::machine`], with these words: locks before anything else (the
//! [`SpentSet`] holds every lock before the machine is made); effects in order; nothing polled
//! after a `Persist` leaves before it is durable; a failed write stops the authority, and so does
//! [`AuthorityEffect::Stop`]; `Sign` and `Read` come back as events. An authority that lost its
//! locks must never vote again under its keys.

use crate::frozen::ReleaseEntry;
use crate::lookup::LookupFailed;
use crate::orders::{CheckedOrder, Orders};
use crate::release::{Decided, Held};
use crate::spent::{Lock, LockStatus, Locked, SpentSet};
use crate::wire::{Answer, Verdict};
use crate::{Core, CoreKind, Equivocation, Network, OutputId, TxId, Vote};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Digest, VotingSecret};
use quorate_types::{Machine, ReplicaId, Time, Verified};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Longest time that votes wait for others to be signed with.
const GATHER: Duration = Duration::from_millis(2);

/// Reads of older locks under way; beyond that payers are answered [`Verdict::Busy`].
const READS_MAX: usize = 256;

/// Input of an authority.
#[derive(Debug)]
pub enum AuthorityEvent {
    /// Orders that were checked off the machine.
    Orders(Verified<Orders>),
    /// The answer to [`AuthorityEffect::Sign`].
    Signed(Signed),
    /// The committee ordered that these coins are frozen. Told again, it reports them again.
    Freeze(Vec<OutputId>),
    /// The committee decided releases.
    Decided(Decided),
    /// The committee ordered the change that ends the epoch, to the network file of this digest.
    /// Told again, it reports again.
    Close(Digest),
    /// The answer to [`AuthorityEffect::Read`].
    Read {
        /// Sequence number of the lock.
        sequence: u64,
        /// Lock as it was stored; `None` where its evidence was pruned.
        lock: Option<Lock>,
    },
}

/// Effect that an authority requires of its host.
#[derive(Debug)]
pub enum AuthorityEffect {
    /// Make locks durable before anything that follows leaves (★).
    Persist(Vec<Lock>),
    /// Make entries about coins under release durable before anything that follows leaves (★).
    PersistReleases(Vec<ReleaseEntry>),
    /// Sign what a frozen coin is locked for, and have it ordered.
    Report(OutputId, Held),
    /// The authority has closed: sign the report of everything that it locked in this epoch, and
    /// have it ordered ([`change`](crate::change)), with the digest that it was told. No lock
    /// follows.
    Closed(Digest),
    /// Vote on the pool, then answer [`AuthorityEvent::Signed`]. Votes may be made before their
    /// locks are durable: they leave after.
    Sign(SignJob),
    /// Read a lock back, then answer [`AuthorityEvent::Read`].
    Read(u64),
    /// Answer the sender of the order with this ticket.
    Answer {
        /// Ticket that the order came with.
        ticket: u64,
        /// Answer for the payer.
        answer: Answer,
    },
    /// A payer signed two transactions over one input: keep the proof.
    Evidence(Box<Equivocation>),
    /// An input could not be looked up: stop, and hand nothing more in (★). It may be locked.
    Stop(LookupFailed),
}

/// Transactions to vote for, off the machine.
#[derive(Clone, Debug)]
pub struct SignJob {
    /// Transactions to vote for, each with the ticket of its order.
    pub orders: Vec<(u64, TxId)>,
}

impl SignJob {
    /// Signs the votes. Pure.
    #[must_use]
    pub fn run(self, network: &Network, secret: &VotingSecret, me: ReplicaId) -> Signed {
        let ids: Vec<TxId> = self.orders.iter().map(|(_, id)| *id).collect();
        let votes = network.votes().sign(secret, me, &ids);
        Signed { votes: self.orders.into_iter().zip(votes).collect() }
    }
}

/// Votes, each with its order's ticket.
#[derive(Clone, Debug)]
pub struct Signed {
    votes: Vec<((u64, TxId), Vote)>,
}

/// Machine of an authority: locks inputs, and votes.
#[derive(Debug)]
pub struct Authority {
    spent: Arc<SpentSet>,
    next: u64,
    /// Number of votes that are worth signing together.
    batch_size: usize,
    unsigned: Vec<(u64, TxId)>,
    sign_by: Option<Time>,
    /// Orders that came too late, by the lock that took their input.
    late: BTreeMap<u64, Vec<(u64, OutputId, Core)>>,
    /// Frozen coins to be reported once their lock is read, by the lock.
    reports: BTreeMap<u64, Vec<(OutputId, TxId)>>,
    effects: VecDeque<AuthorityEffect>,
}

impl Authority {
    /// An authority that locked what `spent` has; `next` is the number of its next lock.
    #[must_use]
    pub fn new(network: &Network, spent: Arc<SpentSet>, next: u64) -> Self {
        Self {
            spent,
            next,
            batch_size: network.votes().batch_size(),
            unsigned: Vec::new(),
            sign_by: None,
            late: BTreeMap::new(),
            reports: BTreeMap::new(),
            effects: VecDeque::new(),
        }
    }

    fn on_orders(&mut self, now: Time, orders: Verified<Orders>) {
        let mut locks = Vec::new();
        let begun = self.effects.len();
        for (ticket, looked) in orders.into_inner().into_vec() {
            match looked {
                CheckedOrder::Valid(core) => self.on_valid(ticket, core, &mut locks),
                CheckedOrder::Late(core) => self.on_unchecked(ticket, core),
                CheckedOrder::Repeated(tx) => self.on_again(ticket, tx),
                CheckedOrder::Invalid(tx, invalid) => {
                    self.answer(ticket, tx, Verdict::Invalid(invalid));
                }
                CheckedOrder::Unproven(tx, input) => {
                    self.answer(ticket, tx, Verdict::Undecided { input });
                }
                CheckedOrder::Unknown(failed) => {
                    self.effects.push_back(AuthorityEffect::Stop(failed));
                }
            }
        }
        if !locks.is_empty() && !mutants::active(Mutant::PayVoteBeforePersist) {
            // Before all that these orders came to: one of them may ask to read what another
            // locked.
            self.effects.insert(begun, AuthorityEffect::Persist(locks));
        }
        self.sign_if_due(now);
    }

    /// All inputs at once: every one is free, or locked for this transaction, or it is refused (★).
    fn on_valid(&mut self, ticket: u64, core: Core, locks: &mut Vec<Lock>) {
        let status = self.spent.status(&core);
        match status {
            _ if mutants::active(Mutant::PayNoLocks) => self.unsigned.push((ticket, core.id)),
            Ok(LockStatus::Free | LockStatus::Due) => {
                self.unsigned.push((ticket, core.id));
                locks.push(self.lock(core));
            }
            Ok(LockStatus::Own) => self.on_again(ticket, core.id),
            status => self.refuse(ticket, core, status),
        }
    }

    /// An order that was refused when it was looked at, so that its certificates were not. If it
    /// would be voted for now, it comes again.
    fn on_unchecked(&mut self, ticket: u64, core: Core) {
        let status = self.spent.status(&core);
        self.refuse(ticket, core, status);
    }

    fn refuse(&mut self, ticket: u64, core: Core, status: Result<LockStatus, LookupFailed>) {
        if mutants::active(Mutant::PayPartialLock) {
            self.lock(core.clone());
        }
        let verdict = match status {
            Err(failed) => return self.effects.push_back(AuthorityEffect::Stop(failed)),
            Ok(LockStatus::Taken(input, locked)) => {
                return self.on_late(ticket, input, locked, core);
            }
            Ok(LockStatus::Undecided(input)) => Verdict::Undecided { input },
            Ok(LockStatus::Released(input, decision)) => Verdict::Released { input, decision },
            Ok(LockStatus::Closed) => Verdict::Closed,
            Ok(LockStatus::Free | LockStatus::Own | LockStatus::Due) => Verdict::Busy,
        };
        self.answer(ticket, core.id, verdict);
    }

    fn on_again(&mut self, ticket: u64, tx: TxId) {
        if mutants::active(Mutant::PayRefuseRepeats) {
            return self.answer(ticket, tx, Verdict::Busy);
        }
        self.unsigned.push((ticket, tx));
    }

    fn lock(&mut self, core: Core) -> Lock {
        let lock = Lock { sequence: self.next, core };
        self.next += 1;
        self.spent.lock(&lock);
        lock
    }

    fn on_late(&mut self, ticket: u64, input: OutputId, locked: Locked, core: Core) {
        if locked.sequence == Lock::INHERITED {
            return self.answer(ticket, core.id, Verdict::Locked { input, first: None });
        }
        let waiting = self.late.values().map(Vec::len).sum::<usize>();
        if waiting >= READS_MAX {
            return self.answer(ticket, core.id, Verdict::Busy);
        }
        self.read(locked.sequence);
        self.late.entry(locked.sequence).or_default().push((ticket, input, core));
    }

    /// Has a lock read, unless it is being read.
    fn read(&mut self, sequence: u64) {
        if !self.late.contains_key(&sequence) && !self.reports.contains_key(&sequence) {
            self.effects.push_back(AuthorityEffect::Read(sequence));
        }
    }

    /// ★ Freezes first, for good; then reports, of every coin that was frozen before too. Once the
    /// epoch has ended nothing is reported (★): the next one may have given the coin away.
    fn on_freeze(&mut self, coins: Vec<OutputId>) {
        if self.spent.frozen().is_closed() && !mutants::active(Mutant::PayReportAfterClosing) {
            return;
        }
        let is_new = |coin: &OutputId| !self.spent.frozen().contains(*coin);
        let new = coins.iter().copied().filter(is_new);
        let entries = new.map(ReleaseEntry::Freeze).collect();
        self.promise(entries);
        for coin in coins {
            match self.spent.get(coin) {
                Err(failed) => return self.effects.push_back(AuthorityEffect::Stop(failed)),
                Ok(None) => self.report_unlocked(coin),
                Ok(Some(Locked { tx, sequence: Lock::INHERITED })) => {
                    self.effects.push_back(AuthorityEffect::Report(coin, Held::Pruned(tx)));
                }
                Ok(Some(Locked { tx, sequence })) => {
                    self.read(sequence);
                    self.reports.entry(sequence).or_default().push((coin, tx));
                }
            }
        }
    }

    /// Reports that a coin is free; nothing of one that may have been taken in an earlier epoch, by
    /// whatever of several (★).
    fn report_unlocked(&mut self, coin: OutputId) {
        let effect = match self.spent.is_contested(coin) {
            Err(failed) => AuthorityEffect::Stop(failed),
            Ok(true) if !mutants::active(Mutant::PayReleaseContested) => return,
            Ok(_) => AuthorityEffect::Report(coin, Held::Free),
        };
        self.effects.push_back(effect);
    }

    /// ★ Closes first, for good; then reports.
    fn on_close(&mut self, next: Digest) {
        if !self.spent.frozen().is_closed() {
            self.promise(vec![ReleaseEntry::Close]);
        }
        self.effects.push_back(AuthorityEffect::Closed(next));
    }

    /// What is decided after the closing report is not in it: it changes nothing any more.
    fn on_decided(&mut self, decided: Decided) {
        if self.spent.frozen().is_closed() {
            return;
        }
        let is_new = |(coin, _): &(OutputId, _)| self.spent.frozen().decision(*coin).is_none();
        let new = decided.into_iter().filter(is_new);
        let entries = new.map(|(coin, decision)| ReleaseEntry::Decide(coin, decision)).collect();
        self.promise(entries);
    }

    fn promise(&mut self, entries: Vec<ReleaseEntry>) {
        for entry in &entries {
            self.spent.frozen().apply(*entry);
        }
        let is_close = entries == [ReleaseEntry::Close];
        let skipped = if is_close {
            mutants::active(Mutant::PayCloseBeforePersist)
        } else {
            mutants::active(Mutant::PayReportBeforePersist)
        };
        if !entries.is_empty() && !skipped {
            self.effects.push_back(AuthorityEffect::PersistReleases(entries));
        }
    }

    fn on_read(&mut self, sequence: u64, lock: Option<&Lock>) {
        for (coin, tx) in self.reports.remove(&sequence).unwrap_or_default() {
            let held = lock.map_or(Held::Pruned(tx), |lock| Held::For(lock.core.clone()));
            self.effects.push_back(AuthorityEffect::Report(coin, held));
        }
        for (ticket, input, second) in self.late.remove(&sequence).unwrap_or_default() {
            let tx = second.id;
            let first = lock.map(|lock| Box::new(lock.core.clone()));
            // An earlier epoch's release gave the coin back: its refund is here, no proof.
            let is_refund = |core: &Core| core.kind == CoreKind::Refund;
            let spent = first.as_deref().filter(|first| !is_refund(first) && !is_refund(&second));
            if let Some(first) = spent.cloned() {
                let equivocation = Equivocation { first, second };
                self.effects.push_back(AuthorityEffect::Evidence(Box::new(equivocation)));
            }
            self.answer(ticket, tx, Verdict::Locked { input, first });
        }
    }

    fn answer(&mut self, ticket: u64, tx: TxId, verdict: Verdict) {
        self.effects.push_back(AuthorityEffect::Answer { ticket, answer: Answer { tx, verdict } });
    }

    /// Signs at once what nothing is gained by waiting for; else when there is enough, or after a
    /// while.
    fn sign_if_due(&mut self, now: Time) {
        if self.unsigned.is_empty() {
            return;
        }
        let due = *self.sign_by.get_or_insert(now + GATHER);
        if self.unsigned.len() >= self.batch_size || due <= now {
            self.sign_by = None;
            let orders = std::mem::take(&mut self.unsigned);
            self.effects.push_back(AuthorityEffect::Sign(SignJob { orders }));
        }
    }
}

impl Machine for Authority {
    type Input = AuthorityEvent;
    type Effect = AuthorityEffect;

    fn handle(&mut self, now: Time, input: AuthorityEvent) {
        match input {
            AuthorityEvent::Orders(orders) => self.on_orders(now, orders),
            AuthorityEvent::Signed(signed) => {
                for ((ticket, tx), vote) in signed.votes {
                    self.answer(ticket, tx, Verdict::Vote(vote));
                }
            }
            AuthorityEvent::Freeze(coins) => self.on_freeze(coins),
            AuthorityEvent::Decided(decided) => self.on_decided(decided),
            AuthorityEvent::Close(next) => self.on_close(next),
            AuthorityEvent::Read { sequence, lock } => self.on_read(sequence, lock.as_ref()),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.sign_if_due(now);
    }

    fn poll(&mut self) -> Option<AuthorityEffect> {
        self.effects.pop_front()
    }

    fn next_timeout(&self) -> Option<Time> {
        self.sign_by
    }
}

#[cfg(test)]
mod tests;
