//! Requests that wait to be sealed into a body.
//!
//! A body is sealed when it is full, when its first request has waited for the batch delay, or at
//! once when nothing of this author is under way: light load pays no delay, heavy load fills
//! bodies. On demand ([`Sealing`]) age makes none. While as much is under way as [`Flow`] allows,
//! requests wait; when too many wait, clients are told. What waits is shared among the clients: one
//! that sends more than its share when room is scarce is told first, and costs the others nothing.

mod open;

use crate::flow::Flow;
use crate::refusals::{Refusal, is_beyond_share};
use crate::{FlowControl, Sealing};
use open::Open;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{Available, Body, ClientId, ReplicaId, Request, Time};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

pub(crate) use open::Capacity;

/// Bytes that may wait to be sealed however small the window is.
const WAITING_MIN: usize = 512 * 1024;

/// The open body, and what this author has under way.
#[derive(Debug)]
pub(crate) struct Mempool {
    author: ReplicaId,
    next_sequence: u64,
    limits: Limits,
    open: Open,
    /// Set if some of the open requests are in another author's body.
    open_elsewhere: bool,
    /// Requests in bodies not executed yet, the open one among them: a repeat is dropped.
    pending: BTreeMap<(ClientId, u64), Pending>,
    pending_bytes: usize,
    /// Parts of `pending_bytes` by client.
    shares: BTreeMap<ClientId, usize>,
    flow: Flow,
    /// On demand: time before which nothing is sealed after a full body.
    rests_until: Time,
    /// Set while the disk is nearly full: nothing is taken, nothing sealed.
    is_closed: bool,
}

/// A request in a body that is not executed yet.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    /// Time at which this author took it, if it did.
    since: Option<Time>,
    /// The bytes of it that this author took.
    bytes: usize,
    /// Set if another author's body carries it.
    elsewhere: bool,
}

/// Limits of bodies: when one is full, how long it may stay open, and how much may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// A body that fills this is sealed.
    pub(crate) capacity: Capacity,
    /// A body this old is sealed; on demand, the time from one full body to the next.
    pub(crate) batch_delay: Duration,
    /// When a body is sealed that is not full.
    pub(crate) sealing: Sealing,
    /// Most bytes of requests that are not executed yet.
    pub(crate) bytes_max: usize,
    /// Most bytes of bodies under way.
    pub(crate) window_max: usize,
    /// Set if what another author's body carries is left out of the own ones.
    pub(crate) filters: bool,
    /// What bounds the bytes under way.
    pub(crate) flow_control: FlowControl,
    /// Time that bodies may wait under way, on top of what a decision takes, where delay bounds
    /// them.
    pub(crate) slack: Duration,
}

impl Mempool {
    /// An empty one for the given start of the author.
    #[must_use]
    pub(crate) fn new(author: ReplicaId, incarnation: u64, limits: Limits) -> Self {
        Self {
            author,
            next_sequence: incarnation << Available::SEQUENCE_BITS,
            limits,
            open: Open::default(),
            open_elsewhere: false,
            pending: BTreeMap::new(),
            pending_bytes: 0,
            shares: BTreeMap::new(),
            flow: match limits.flow_control {
                FlowControl::Delay => Flow::new(limits.window_max, limits.slack),
                FlowControl::Warm => Flow::warm(limits.window_max, limits.slack),
                FlowControl::Fixed => Flow::fixed(limits.window_max),
            },
            rests_until: Time::default(),
            is_closed: false,
        }
    }

    /// Takes and seals nothing from now on, or does so again. What waits goes on waiting.
    pub(crate) fn close(&mut self, is_closed: bool) {
        self.is_closed = is_closed;
    }

    /// Takes a request, once.
    ///
    /// # Errors
    /// When too much waits already, of everybody's or of this client's, or the disk is nearly full.
    pub(crate) fn admit(&mut self, now: Time, request: Request) -> Result<(), Refusal> {
        if self.pending.contains_key(&key(&request)) {
            return Ok(());
        }
        if self.is_closed {
            return Err(Refusal::Disk);
        }
        let bytes = request.raw().len();
        self.check_room(request.client, bytes)?;
        self.pending.insert(key(&request), Pending { since: Some(now), bytes, elsewhere: false });
        self.pending_bytes += bytes;
        *self.shares.entry(request.client).or_default() += bytes;
        self.open.push(now, request);
        Ok(())
    }

    /// Returns `true` if a request of this number is known here and not executed yet.
    #[must_use]
    pub(crate) fn is_pending(&self, client: ClientId, sequence: u64) -> bool {
        self.pending.contains_key(&(client, sequence))
    }

    /// The next body, if one is due.
    pub(crate) fn seal(&mut self, now: Time) -> Option<Body> {
        self.drop_open_elsewhere();
        let waited = now >= self.due()?;
        let capacity = self.capacity();
        let full = self.open.fills(capacity);
        if !(self.flow.is_idle() || (self.flow.has_room() && (full || waited))) {
            return None;
        }
        if self.limits.sealing == Sealing::Demand {
            if !full || now < self.rests_until {
                return None;
            }
            self.rests_until = now + self.limits.batch_delay;
        }
        Some(self.seal_open(now, capacity))
    }

    /// Seals what there is, on demand; the error is the time at which it may be.
    pub(crate) fn seal_on_demand(&mut self, now: Time) -> Result<Option<Body>, Time> {
        self.drop_open_elsewhere();
        if self.limits.sealing == Sealing::Delay || self.due().is_none() || !self.flow.has_room() {
            return Ok(None);
        }
        if now < self.rests_until {
            return Err(self.rests_until);
        }
        let capacity = self.capacity();
        Ok(Some(self.seal_open(now, capacity)))
    }

    fn seal_open(&mut self, now: Time, capacity: Capacity) -> Body {
        let requests = self.open.take(now, capacity);
        if mutants::active(Mutant::HotStuffDropBeyondBatch) {
            self.open = Open::default();
        }
        let body = Body::seal(self.author, self.next_sequence, &requests);
        self.flow.sealed(now, self.next_sequence, body.raw.len());
        self.next_sequence += 1;
        body
    }

    /// Time at which the open body has waited long enough, or, on demand, a full one may follow;
    /// `None` while the window, or the disk, is full.
    #[must_use]
    pub(crate) fn deadline(&self) -> Option<Time> {
        let is_awaited = self.limits.sealing == Sealing::Delay || self.open.fills(self.capacity());
        self.due().filter(|_| is_awaited && self.flow.has_room())
    }

    /// Room in the next body.
    fn capacity(&self) -> Capacity {
        self.limits.capacity.within(self.flow.window() / 2)
    }

    /// A body is stored here: what it carries need not be sealed again. It will be ordered, by this
    /// replica if by nobody else.
    pub(crate) fn note(&mut self, body: &Body) {
        let elsewhere = body.reference.author != self.author;
        if elsewhere && !self.limits.filters {
            return;
        }
        for request in &body.requests {
            let pending = self.pending.entry(key(request)).or_default();
            pending.elsewhere |= elsewhere;
            self.open_elsewhere |= elsewhere && pending.bytes > 0;
        }
    }

    /// Drops from the open body what others carry: of two members that got a request in time for
    /// neither to know of the other, the quicker one seals it.
    fn drop_open_elsewhere(&mut self) {
        if !std::mem::take(&mut self.open_elsewhere) {
            return;
        }
        let pending = &self.pending;
        self.open.retain(|request| pending.get(&key(request)).is_none_or(|one| !one.elsewhere));
    }

    /// A body was executed: its requests wait no longer. The times at which those arrived that this
    /// author took are returned.
    pub(crate) fn executed(&mut self, now: Time, body: &Body) -> Vec<Time> {
        let arrivals = self.forget_requests(body);
        if body.reference.author == self.author {
            self.flow.executed(now, body.reference.sequence);
        }
        arrivals
    }

    /// A view that began at `since` has timed out.
    pub(crate) fn view_timed_out(&mut self, since: Time, now: Time) {
        self.flow.view_timed_out(since, now);
    }

    /// A body was decided some time ago, while this replica was away: as [`Mempool::executed`], but
    /// how long it took says nothing.
    pub(crate) fn skipped(&mut self, body: &Body) {
        self.forget_requests(body);
        if body.reference.author == self.author {
            self.flow.forget(body.reference.sequence);
        }
    }

    fn forget_requests(&mut self, body: &Body) -> Vec<Time> {
        let mut arrivals = Vec::new();
        for request in &body.requests {
            let taken = self.pending.remove(&key(request)).unwrap_or_default();
            arrivals.extend(taken.since);
            self.release(request.client, taken.bytes);
        }
        arrivals
    }

    /// Bytes of requests that are not executed yet.
    #[must_use]
    pub(crate) fn bytes(&self) -> usize {
        self.pending_bytes
    }

    /// Room is scarce from half of the bound on: then nobody may have more than an equal share
    /// ([`is_beyond_share`]).
    fn check_room(&self, client: ClientId, bytes: usize) -> Result<(), Refusal> {
        let waiting_max = self.flow.window().max(WAITING_MIN).max(2 * self.limits.capacity.bytes);
        let most = self.limits.bytes_max.min(waiting_max + self.flow.window());
        if self.pending_bytes + bytes > most || self.open.bytes() + bytes > waiting_max {
            return Err(Refusal::Full);
        }
        match is_beyond_share(&self.shares, &client, bytes, (self.pending_bytes, most)) {
            true => Err(Refusal::Share),
            false => Ok(()),
        }
    }

    fn release(&mut self, client: ClientId, bytes: usize) {
        self.pending_bytes -= bytes;
        if let Entry::Occupied(mut share) = self.shares.entry(client) {
            *share.get_mut() -= bytes;
            if *share.get() == 0 {
                share.remove();
            }
        }
    }

    fn due(&self) -> Option<Time> {
        let since = self.open.since().filter(|_| !self.is_closed)?;
        Some(match self.limits.sealing {
            Sealing::Delay => since + self.limits.batch_delay,
            Sealing::Demand => self.rests_until,
        })
    }
}

fn key(request: &Request) -> (ClientId, u64) {
    (request.client, request.sequence)
}

#[cfg(test)]
mod tests;
