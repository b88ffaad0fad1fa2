//! Requests that wait to be sealed into a body.
//!
//! A body is sealed when it is full, when its first request has waited for the batch delay, or at once
//! when nothing of this author is under way: light load pays no delay, heavy load fills bodies.

use quorate_types::{Body, ClientId, ReplicaId, Request, Time};
use std::collections::BTreeMap;
use std::time::Duration;

/// Author sequence numbers start anew, higher, with each start of the replica: the incarnation is the
/// upper part.
const INCARNATION_SHIFT: u32 = 40;

/// Why a request is not taken now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// Too much waits already.
    #[error("this validator holds as many undecided requests as it may: send slower, or elsewhere")]
    Full,
}

/// The open body, and what this author has under way.
#[derive(Debug)]
pub(crate) struct Mempool {
    author: ReplicaId,
    next_sequence: u64,
    limits: Limits,
    open: Vec<Request>,
    open_bytes: usize,
    open_since: Option<Time>,
    /// Requests in undecided bodies, the open one among them, with the bytes that this author took: a
    /// repeat is dropped.
    pending: BTreeMap<(ClientId, u64), usize>,
    pending_bytes: usize,
    /// Bodies sealed and not decided.
    under_way: usize,
}

/// When a body is full, how long it may stay open, and how much may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// A body with this many bytes is sealed.
    pub(crate) batch_bytes: usize,
    /// A body this old is sealed.
    pub(crate) batch_delay: Duration,
    /// Most bytes of undecided requests.
    pub(crate) bytes_max: usize,
}

impl Mempool {
    /// An empty one for the given start of the author.
    #[must_use]
    pub(crate) fn new(author: ReplicaId, incarnation: u64, limits: Limits) -> Self {
        Self {
            author,
            next_sequence: incarnation << INCARNATION_SHIFT,
            limits,
            open: Vec::new(),
            open_bytes: 0,
            open_since: None,
            pending: BTreeMap::new(),
            pending_bytes: 0,
            under_way: 0,
        }
    }

    /// Takes a request, once.
    ///
    /// # Errors
    /// When too much waits already.
    pub(crate) fn admit(&mut self, now: Time, request: Request) -> Result<(), Refusal> {
        if self.pending.contains_key(&(request.client, request.sequence)) {
            return Ok(());
        }
        let bytes = request.raw().len();
        if self.pending_bytes + bytes > self.limits.bytes_max {
            return Err(Refusal::Full);
        }
        self.pending.insert((request.client, request.sequence), bytes);
        self.pending_bytes += bytes;
        self.open_bytes += bytes;
        self.open.push(request);
        self.open_since.get_or_insert(now);
        Ok(())
    }

    /// The next body, if one is due.
    pub(crate) fn seal(&mut self, now: Time) -> Option<Body> {
        let waited = now >= self.due()?;
        let full = self.open_bytes >= self.limits.batch_bytes;
        if !(full || waited || self.under_way == 0) {
            return None;
        }
        let count = self.fitting();
        let requests: Vec<Request> = self.open.drain(..count).collect();
        self.open_bytes -= requests.iter().map(|r| r.raw().len()).sum::<usize>();
        self.open_since = (!self.open.is_empty()).then_some(now);
        let body = Body::seal(self.author, self.next_sequence, &requests);
        self.next_sequence += 1;
        self.under_way += 1;
        Some(body)
    }

    /// When the open body has waited long enough.
    #[must_use]
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.due()
    }

    /// Another author's body is stored here: what it carries need not be sealed again. It will be
    /// ordered, by this replica if by nobody else.
    pub(crate) fn note(&mut self, body: &Body) {
        for request in &body.requests {
            self.pending.entry((request.client, request.sequence)).or_insert(0);
        }
    }

    /// One of this author's bodies was decided: its requests wait no longer.
    pub(crate) fn decided(&mut self, body: &Body) {
        for request in &body.requests {
            let taken = self.pending.remove(&(request.client, request.sequence));
            self.pending_bytes -= taken.unwrap_or(0);
        }
        if body.reference.author == self.author {
            self.under_way = self.under_way.saturating_sub(1);
        }
    }

    /// Bytes of undecided requests.
    #[must_use]
    pub(crate) fn bytes(&self) -> usize {
        self.pending_bytes
    }

    fn due(&self) -> Option<Time> {
        Some(self.open_since? + self.limits.batch_delay)
    }

    /// How many of the open requests go into the next body: at least one, and no more than fill it.
    fn fitting(&self) -> usize {
        let mut bytes = 0;
        let fits = |request: &&Request| {
            bytes += request.raw().len();
            bytes <= self.limits.batch_bytes
        };
        self.open.iter().take_while(fits).count().max(1)
    }
}

#[cfg(test)]
mod tests;
