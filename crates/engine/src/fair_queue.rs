//! Queue in front of the checks, shared fairly by the peers whose messages wait in it.
//!
//! A message may cost its sender nothing and its receiver a pairing. In one line for all, whoever
//! sends two thousand such messages has everybody else's votes wait behind them. Here messages wait
//! by peer, and time is what the peers share.
//!
//! # Specification
//!
//! * **Order.** Each peer has a line of its own, first in, first out, and an account of the time
//!   that checking its messages took. The next message is of the peer whose account is lowest
//!   (start-time fair queueing: Goyal, Vin, Chen, SIGCOMM 1996, with the cost known only
//!   afterwards). A peer that comes back after a pause starts [`CREDIT`] below the lowest account
//!   in use and no lower: so one that needs less than its share is always ahead of one that takes
//!   what it can get, and waits for the one check that is under way.
//! * **Budget.** In a queue that has one, no peer has more than its [`Budget::share`] of the thread
//!   for longer than [`Budget::burst`], even while nobody else waits: processors are shared with
//!   other threads, and other validators.
//! * **Faults.** A message that no correct member sends ([`Verdict::Faulty`]) costs its sender
//!   [`BACKOFF`], doubled for each further one, up to [`BACKOFF_MAX`]: what waits of it is dropped,
//!   what comes until then is refused, and the host cuts its connections. As long as a fault is
//!   held against it, its messages are checked when no other member's wait, and what it missed so
//!   is not made good afterwards. The count of faults is halved for every [`FORGIVEN_AFTER`]
//!   without one.
//! * **Strangers**, which are clients and learners, have all together the share of one member, and
//!   no head start: however many keys somebody makes, members' bodies are checked beside requests.
//!
//! # Bounds
//!
//! What one peer has waiting is the host's to bound, by what it takes off a connection. Accounts
//! are those of members, of other peers while they have messages waiting, and of at most
//! [`STRANGERS_MAX`] that have none and a fault held against them.

use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{Peer, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Head start of a peer that comes back, over the peer that was served least among the others.
pub(crate) const CREDIT: Duration = Duration::from_millis(20);

/// Time for which nothing is taken from a peer after its first fault.
pub(crate) const BACKOFF: Duration = Duration::from_millis(250);

/// Longest time for which nothing is taken from a peer after a fault.
pub(crate) const BACKOFF_MAX: Duration = Duration::from_secs(60);

/// Time without another fault after which the count of a peer's faults is halved.
const FORGIVEN_AFTER: Duration = Duration::from_secs(120);

/// Most clients and learners whose faults are remembered: a key costs nothing.
pub(crate) const STRANGERS_MAX: usize = 1_024;

/// Most time of checks that one peer is given, whoever else waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Part of a thread's time in the long run: one in so many.
    pub share: u32,
    /// Time that may be used at once before the share binds.
    pub burst: Duration,
}

impl Budget {
    /// Budget of what is urgent: votes, proposals and certificates. Members of the largest
    /// committees need a twentieth of a thread, and half a second checks a window of certificates.
    pub const URGENT: Self = Self { share: 4, burst: Duration::from_millis(500) };
}

/// Outcome of a check, as far as it concerns the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Passed, or refused for what a correct peer may send: late, early, by another setting.
    Sound,
    /// Refused for what no correct peer sends.
    Faulty,
}

/// Messages that wait to be checked, by peer, and what their peers' messages have cost.
#[derive(Debug)]
pub struct FairQueue<T> {
    budget: Option<Budget>,
    accounts: BTreeMap<Peer, Account<T>>,
    members: Order,
    strangers: Order,
    /// Account of all strangers together among those of members, in nanoseconds.
    strangers_served: u64,
}

/// Peers that have messages waiting.
#[derive(Debug, Default)]
struct Order {
    /// Those that may be served, the next one first.
    ready: BTreeSet<Turn>,
    /// Those that used up their budget, by when they may go on.
    throttled: BTreeSet<(Time, Peer)>,
    /// Account of whoever was served last, in nanoseconds: near it begins who comes back.
    level: u64,
}

/// Place of a peer in the order: without faults first, then who was served least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    is_distrusted: bool,
    served: u64,
    peer: Peer,
}

#[derive(Debug)]
struct Account<T> {
    waiting: VecDeque<T>,
    /// Time of checks, in nanoseconds, as far as it counts against other peers of its kind.
    served: u64,
    /// Time of checks that the budget has not made good yet, as of `spent_at`.
    spent: Duration,
    spent_at: Time,
    faults: u32,
    /// Time of the last fault, or of the last halving of their count.
    fault_at: Time,
    /// Time until which nothing is taken from the peer.
    barred_until: Time,
}

impl<T> FairQueue<T> {
    /// An empty queue whose peers have this budget, if any.
    #[must_use]
    pub fn new(budget: Option<Budget>) -> Self {
        Self {
            budget,
            accounts: BTreeMap::new(),
            members: Order::default(),
            strangers: Order::default(),
            strangers_served: 0,
        }
    }

    /// Queues a message behind its sender's others.
    ///
    /// # Errors
    /// The message, when nothing is taken from the sender for its faults.
    pub fn push(&mut self, now: Time, from: Peer, message: T) -> Result<(), T> {
        if self.is_barred(now, from) {
            return Err(message);
        }
        let start = self.start_of(from);
        let account = self.accounts.entry(from).or_insert_with(|| Account::new(now));
        account.waiting.push_back(message);
        if account.waiting.len() == 1 {
            account.forgive(now);
            account.served = account.served.max(start);
            self.line_up(now, from);
        }
        Ok(())
    }

    /// Takes the next message, with its sender. Every one is to be followed by
    /// [`FairQueue::charge`].
    pub fn pop(&mut self, now: Time) -> Option<(Peer, T)> {
        self.end_throttling(now);
        let turn = self.next_turn()?;
        let account = self.accounts.get_mut(&turn.peer).expect("whoever waits has an account");
        account.served = turn.served;
        let message = account.waiting.pop_front().expect("it is ready");
        self.line_up(now, turn.peer);
        Some((turn.peer, message))
    }

    /// Moment at which a message may be taken that may not be taken now; `None` when nothing waits
    /// for that.
    #[must_use]
    pub fn next_ready(&self) -> Option<Time> {
        let first = |order: &Order| order.throttled.first().map(|(at, _)| *at);
        first(&self.members).into_iter().chain(first(&self.strangers)).min()
    }

    /// Charges a check that took `cost` to the sender of what was checked. Returns the moment until
    /// which nothing more is taken from it, if it was at fault.
    pub fn charge(
        &mut self,
        now: Time,
        from: Peer,
        cost: Duration,
        verdict: Verdict,
    ) -> Option<Time> {
        self.leave_line(from);
        let is_free = mutants::active(Mutant::ChecksCostNothing);
        let cost = if is_free { Duration::ZERO } else { cost };
        if is_stranger(from) {
            self.strangers_served = self.strangers_served.saturating_add(nanos(cost));
        }
        let share = self.budget.map_or(1, |budget| budget.share);
        let account = self.accounts.entry(from).or_insert_with(|| Account::new(now));
        account.served = account.served.saturating_add(nanos(cost));
        account.spend(now, cost, share);
        account.forgive(now);
        let barred = (verdict == Verdict::Faulty).then(|| account.bar(now));
        if barred.is_some() {
            account.waiting.clear();
        }
        self.line_up(now, from);
        self.forget_strangers(from);
        barred
    }

    /// Returns `true` if nothing is taken from this peer now.
    #[must_use]
    pub fn is_barred(&self, now: Time, peer: Peer) -> bool {
        self.accounts.get(&peer).is_some_and(|account| now < account.barred_until)
    }

    /// Number of messages that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.accounts.values().map(|account| account.waiting.len()).sum()
    }

    /// Returns `true` if no message waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.strangers.is_empty()
    }

    /// Number of accounts that are kept.
    #[cfg(test)]
    fn accounts(&self) -> usize {
        self.accounts.len()
    }

    /// Lowest account with which a peer comes back.
    fn start_of(&self, peer: Peer) -> u64 {
        if is_stranger(peer) {
            self.strangers.level
        } else {
            self.members.level.saturating_sub(nanos(CREDIT))
        }
    }

    /// Takes out whoever is to be served next: the first member, or the first stranger if all of
    /// them together were served less.
    fn next_turn(&mut self) -> Option<Turn> {
        let stranger = self
            .strangers
            .first()
            .map(|turn| self.members.caught_up(Turn { served: self.strangers_served, ..turn }));
        let is_stranger = match (self.members.first(), &stranger) {
            (Some(member), Some(stranger)) if stranger.is_distrusted && !member.is_distrusted => {
                false
            }
            // A member that was at fault once goes after other members, not after all clients.
            (Some(member), Some(stranger)) => stranger.served < member.served,
            (member, _) => member.is_none(),
        };
        match stranger.filter(|_| is_stranger) {
            Some(together) => {
                self.strangers_served = together.served;
                self.members.level = self.members.level.max(together.served);
                self.strangers.take_first()
            }
            None => self.members.take_first(),
        }
    }

    fn order_of(&mut self, peer: Peer) -> &mut Order {
        if is_stranger(peer) { &mut self.strangers } else { &mut self.members }
    }

    /// Puts a peer with messages into the order, or among those that wait for their budget.
    fn line_up(&mut self, now: Time, peer: Peer) {
        let Some(account) = self.accounts.get(&peer).filter(|it| !it.waiting.is_empty()) else {
            return;
        };
        let turn = account.turn(peer);
        let throttled = self.budget.and_then(|budget| account.throttled_until(now, budget));
        if is_stranger(peer) {
            self.catch_strangers_up();
        }
        let order = self.order_of(peer);
        match throttled {
            Some(until) => drop(order.throttled.insert((until, peer))),
            None => drop(order.ready.insert(turn)),
        }
    }

    /// Raises the account of all strangers to where members are, as one of them comes back: while
    /// one is ready that nothing is held against, it is there already.
    fn catch_strangers_up(&mut self) {
        self.strangers_served = self.strangers_served.max(self.members.level);
    }

    fn leave_line(&mut self, peer: Peer) {
        let Some(account) = self.accounts.get(&peer) else { return };
        let turn = account.turn(peer);
        let order = self.order_of(peer);
        order.ready.remove(&turn);
        order.throttled.retain(|(_, throttled)| *throttled != peer);
    }

    fn end_throttling(&mut self, now: Time) {
        if self.strangers.throttled.first().is_some_and(|(at, _)| *at <= now) {
            self.catch_strangers_up();
        }
        for order in [&mut self.members, &mut self.strangers] {
            while let Some((_, peer)) =
                order.throttled.first().copied().filter(|(at, _)| *at <= now)
            {
                order.throttled.pop_first();
                order.ready.insert(self.accounts[&peer].turn(peer));
            }
        }
    }

    /// Drops the account of a client or learner that nothing is held against, or, where it is idle
    /// and at fault, that of the one whose bar ends first when there are too many of them.
    fn forget_strangers(&mut self, peer: Peer) {
        let is_idle = |account: &Account<T>| account.waiting.is_empty();
        let account = self.accounts.get(&peer).filter(|it| is_stranger(peer) && is_idle(it));
        let Some(account) = account else { return };
        if account.faults == 0 {
            // Were it forgotten, many that come once each would always go first.
            self.strangers.level = self.strangers.level.max(account.served);
            self.accounts.remove(&peer);
        } else if self.accounts.len() > STRANGERS_MAX {
            let idle = self.accounts.iter().filter(|(peer, it)| is_stranger(**peer) && is_idle(it));
            let first = idle.clone().min_by_key(|(_, account)| account.barred_until);
            let first = first.map(|(peer, _)| *peer).filter(|_| idle.count() > STRANGERS_MAX);
            first.map(|peer| self.accounts.remove(&peer));
        }
    }
}

impl Order {
    fn first(&self) -> Option<Turn> {
        self.ready.first().map(|turn| self.caught_up(*turn))
    }

    fn take_first(&mut self) -> Option<Turn> {
        let turn = self.ready.pop_first()?;
        let turn = self.caught_up(turn);
        self.level = self.level.max(turn.served);
        Some(turn)
    }

    /// Raises the account of a peer that others went before for its faults: what it missed
    /// meanwhile is not made good.
    fn caught_up(&self, turn: Turn) -> Turn {
        let missed = if turn.is_distrusted { self.level } else { 0 };
        Turn { served: turn.served.max(missed), ..turn }
    }

    fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.throttled.is_empty()
    }
}

impl<T> Account<T> {
    fn new(now: Time) -> Self {
        Self {
            waiting: VecDeque::new(),
            served: 0,
            spent: Duration::ZERO,
            spent_at: now,
            faults: 0,
            fault_at: now,
            barred_until: now,
        }
    }

    fn turn(&self, peer: Peer) -> Turn {
        Turn { is_distrusted: self.faults > 0, served: self.served, peer }
    }

    /// Time of checks that its share of the time has not made good by now.
    fn unpaid(&self, now: Time, share: u32) -> Duration {
        self.spent.saturating_sub(now.since(self.spent_at) / share)
    }

    fn spend(&mut self, now: Time, cost: Duration, share: u32) {
        self.spent = self.unpaid(now, share).saturating_add(cost);
        self.spent_at = now;
    }

    /// Moment from which it may be served, when that is not now.
    fn throttled_until(&self, now: Time, budget: Budget) -> Option<Time> {
        let unpaid = self.unpaid(now, budget.share);
        let over = unpaid.checked_sub(budget.burst).filter(|over| !over.is_zero())?;
        Some(now + over.saturating_mul(budget.share))
    }

    fn bar(&mut self, now: Time) -> Time {
        self.forgive(now);
        let doubled = BACKOFF.saturating_mul(1 << self.faults.min(16));
        self.faults = self.faults.saturating_add(1);
        self.fault_at = now;
        self.barred_until = now + doubled.min(BACKOFF_MAX);
        self.barred_until
    }

    /// Halves the count of faults for each [`FORGIVEN_AFTER`] that passed since the last.
    fn forgive(&mut self, now: Time) {
        while self.faults > 0 && now.since(self.fault_at) >= FORGIVEN_AFTER {
            self.faults /= 2;
            self.fault_at = self.fault_at + FORGIVEN_AFTER;
        }
    }
}

fn is_stranger(peer: Peer) -> bool {
    !matches!(peer, Peer::Replica(_))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
