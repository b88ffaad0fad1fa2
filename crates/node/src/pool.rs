//! The pool: checks what arrived before any machine sees it, and combines shares.
//!
//! ```text
//! readers ──▶ urgent ──▶ 1 thread  ──▶ machine (urgent)   Combine, votes, proposals, certificates
//!         └─▶ bulk   ──▶ N threads ──▶ machine (bulk)     bodies, blocks, requests
//! ```
//!
//! One connection's frames stay in order: it is always the same thread that checks them, or, while
//! that has nothing to do, whoever read the frame: what is urgent or small then wakes no thread
//! (ADR 49). A vote
//! never waits for a body. The queues are bounded by what each connection may have under way
//! ([`Delivery::permit`]), and peers share them fairly ([`FairQueue`](quorate_engine::FairQueue),
//! ★): a peer that sends faster than we check waits for itself alone. Whoever sends what no correct
//! peer sends, or shares that are refused alone, is cut off for a while and checked last after it.

mod queue;

use crate::clock::Clock;
use crate::metrics::{Metrics, lane_name};
use crate::threads::{Worker, give_way};
use bytes::Bytes;
use queue::{CheckQueue, Pushed, Stopwatch, Work};
use quorate_engine::{Budget, Incoming, Verdict, Verifier, is_urgent};
use quorate_types::machine::{CombineJob, CombineOutcome};
use quorate_types::{Lane, Peer, Rejected, ReplicaId, Verified};
use std::fmt::{self, Display};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, OwnedSemaphorePermit};

/// Longest content of a body, block or request that its reader checks itself.
const INLINE_BYTES_MAX: usize = 4 * 1024;

/// A frame as it came from an authenticated connection.
#[derive(Debug)]
pub struct Delivery {
    /// Peer at the other end, as TLS proved it.
    pub from: Peer,
    /// Lane that the frame came by.
    pub lane: Lane,
    /// Tag and what follows.
    pub content: Bytes,
    /// Receiver of the message once it is checked.
    pub sink: Arc<dyn MessageSink>,
    /// Notification that cuts the connection.
    pub cut: Arc<Notify>,
    /// Time at which the frame was complete.
    pub received: Instant,
    /// Share of the connection's bounds that the frame takes; given back once it is checked and
    /// passed on.
    pub permit: Permit,
}

/// Share of the bounds on frames under way; given back when dropped.
#[derive(Debug)]
pub struct Permit {
    _own: Option<OwnedSemaphorePermit>,
    _common: Option<OwnedSemaphorePermit>,
}

impl Permit {
    /// Permit of a frame: its part of the connection's bound, and of the one that all clients have
    /// together.
    #[must_use]
    pub fn new(own: Option<OwnedSemaphorePermit>, common: Option<OwnedSemaphorePermit>) -> Self {
        Self { _own: own, _common: common }
    }
}

/// Sink of checked messages. It may block: only the thread that checks for the same peers waits.
pub trait MessageSink: Send + Sync + std::fmt::Debug {
    /// A checked message. `false`: nobody listens any more.
    fn message(&self, from: Peer, urgent: bool, message: Verified<Incoming>) -> bool;

    /// Tells whether it takes messages without blocking for now. One that cannot tell is given
    /// messages by the pool's threads alone.
    fn has_room(&self, _urgent: bool) -> bool {
        false
    }

    /// Tells whether a frame's content is worth checking. Other frames are dropped.
    fn wants(&self, _content: &[u8]) -> bool {
        true
    }
}

/// Sink of combined certificates. `false`: the receiver has ended.
pub type Combiner = Arc<dyn Fn(CombineOutcome) -> bool + Send + Sync>;

type Queue = CheckQueue<Box<Delivery>>;

/// The queues of the pool. Cloning shares them; the threads end when all clones are dropped.
#[derive(Clone, Debug)]
pub struct Pool(Arc<Queues>);

struct Queues {
    urgent: Checker,
    bulk: Vec<Checker>,
}

impl fmt::Debug for Queues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Queues")
    }
}

impl Drop for Queues {
    fn drop(&mut self) {
        self.all().for_each(Queue::close);
    }
}

impl Queues {
    fn all(&self) -> impl Iterator<Item = &Queue> {
        std::iter::once(&self.urgent).chain(&self.bulk).map(|checker| checker.own.as_ref())
    }
}

impl Pool {
    /// The queues, and what each thread is to run: one for what is urgent and `bulk_threads` for
    /// the rest.
    #[must_use]
    pub fn new(
        verifier: &Arc<Verifier>,
        metrics: &Arc<Metrics>,
        combined: &Combiner,
        bulk_threads: usize,
    ) -> (Self, Vec<Worker>) {
        let clock = Clock::start();
        let urgent = Arc::new(Queue::new(clock, Some(Budget::URGENT)));
        let bulk: Vec<_> =
            (0..bulk_threads.max(1)).map(|_| Arc::new(Queue::new(clock, None))).collect();
        let all: Arc<[_]> = std::iter::once(&urgent).chain(&bulk).cloned().collect();
        let checker = |own: &Arc<Queue>| Checker {
            verifier: Arc::clone(verifier),
            metrics: Arc::clone(metrics),
            combined: Arc::clone(combined),
            own: Arc::clone(own),
            all: Arc::clone(&all),
        };
        let urgent = checker(&urgent);
        let bulk: Vec<_> = bulk.iter().map(checker).collect();
        let first = urgent.clone();
        let mut workers: Vec<Worker> = vec![Box::new(move || first.run(true))];
        for checker in bulk.clone() {
            workers.push(Box::new(move || {
                give_way();
                checker.run(false);
            }));
        }
        (Self(Arc::new(Queues { urgent, bulk })), workers)
    }

    /// As [`Pool::new`], for hosts without shares to combine.
    #[must_use]
    pub fn without_combining(
        verifier: &Arc<Verifier>,
        metrics: &Arc<Metrics>,
        bulk_threads: usize,
    ) -> (Self, Vec<Worker>) {
        let combined: Combiner = Arc::new(|_| true);
        Self::new(verifier, metrics, &combined, bulk_threads)
    }

    /// Queues a frame to be checked; `false` when nothing is taken from its sender now.
    pub fn deliver(&self, delivery: Delivery) -> bool {
        let (checker, _) = self.checker_of(&delivery);
        checker.own.push(delivery.from, Box::new(delivery))
    }

    /// As [`Pool::deliver`]; but what is urgent or small is checked before this returns, and passed
    /// on, while the thread that would do so has nothing to do.
    pub fn check_or_deliver(&self, delivery: Delivery) -> bool {
        let (checker, urgent) = self.checker_of(&delivery);
        let is_short = urgent || delivery.content.len() <= INLINE_BYTES_MAX;
        if !is_short || !delivery.sink.has_room(urgent) {
            return checker.own.push(delivery.from, Box::new(delivery));
        }
        match checker.own.push_or_take(delivery.from, Box::new(delivery)) {
            Pushed::Refused => false,
            Pushed::Queued => true,
            Pushed::Taken(delivery, _turn) => {
                checker.check(*delivery, urgent, &mut Stopwatch::default());
                true
            }
        }
    }

    /// The one for this frame, and whether that is the one for what is urgent.
    fn checker_of(&self, delivery: &Delivery) -> (&Checker, bool) {
        if is_urgent(delivery.lane, &delivery.content) {
            return (&self.0.urgent, true);
        }
        let bulk = &self.0.bulk;
        (&bulk[shard(delivery.from, delivery.lane, bulk.len())], false)
    }

    /// Queues shares to be combined, ahead of everything else.
    pub fn combine(&self, job: CombineJob) {
        self.0.urgent.own.combine(job);
    }

    /// Returns `true` if nothing is taken from this peer now, for what it sent before.
    #[must_use]
    pub fn is_barred(&self, peer: Peer) -> bool {
        self.0.urgent.own.is_barred(peer)
    }

    /// Lengths of its queues, for whoever shows them.
    #[must_use]
    pub fn backlog(&self) -> CheckBacklog {
        CheckBacklog(Arc::downgrade(&self.0))
    }
}

/// Lengths of a pool's queues. It does not keep the pool's threads alive.
#[derive(Clone, Debug)]
pub struct CheckBacklog(Weak<Queues>);

impl CheckBacklog {
    /// Number of frames that wait: those ahead of bodies and requests, and the others.
    #[must_use]
    pub fn waiting(&self) -> [(&'static str, usize); 2] {
        let (urgent, bulk) = self.0.upgrade().map_or((0, 0), |queues| {
            (queues.urgent.own.len(), queues.bulk.iter().map(|checker| checker.own.len()).sum())
        });
        [("urgent-checks", urgent), ("bulk-checks", bulk)]
    }
}

fn shard(from: Peer, lane: Lane, shards: usize) -> usize {
    let mut hasher = DefaultHasher::new();
    (from, lane).hash(&mut hasher);
    usize::try_from(hasher.finish() % shards as u64).expect("less than the number of shards")
}

/// What one thread of the pool checks, and whoever takes its place while it has nothing to do.
#[derive(Clone)]
struct Checker {
    verifier: Arc<Verifier>,
    metrics: Arc<Metrics>,
    combined: Combiner,
    own: Arc<Queue>,
    /// The queues of all threads: what one finds out about a peer holds in all of them.
    all: Arc<[Arc<Queue>]>,
}

impl Checker {
    /// Works until the pool is gone or nobody listens any more.
    fn run(&self, urgent: bool) {
        let mut stopwatch = Stopwatch::default();
        while let Some(work) = self.own.next() {
            let goes_on = match work {
                Work::Combine(job) => self.combine(&job),
                Work::Check(delivery) => self.check(*delivery, urgent, &mut stopwatch),
            };
            if !goes_on {
                return;
            }
        }
    }

    fn combine(&self, job: &CombineJob) -> bool {
        let outcome = job.run();
        for signer in &outcome.combined.bad {
            let member =
                ReplicaId(u16::try_from(*signer).expect("a committee's indices are 16 bits"));
            self.hold_against(Peer::Replica(member), &"a share of it does not verify");
        }
        (self.combined)(outcome)
    }

    /// `false`: nobody listens any more.
    fn check(&self, delivery: Delivery, urgent: bool, stopwatch: &mut Stopwatch) -> bool {
        let Delivery { from, lane, content, sink, cut, received, permit } = delivery;
        if urgent {
            self.metrics.check_waited(from, received.elapsed());
        }
        let wanted = sink.wants(&content);
        stopwatch.lap();
        let checked = if wanted { Some(self.verify(content, from)) } else { None };
        self.own.charge(from, stopwatch.lap(), Verdict::Sound);
        match checked {
            Some(Ok(message)) => {
                let listens = sink.message(from, urgent, message);
                drop(permit);
                listens
            }
            Some(Err(reason)) => {
                self.refuse(from, lane, &reason, &cut);
                true
            }
            None => true,
        }
    }

    /// A panic in here is our defect, but one that a single frame of a single peer may provoke: it
    /// costs that frame, not the validator.
    fn verify(&self, content: Bytes, from: Peer) -> Result<Verified<Incoming>, Rejected> {
        let check = AssertUnwindSafe(|| Verified::<Incoming>::check(content, from, &self.verifier));
        catch_unwind(check).unwrap_or_else(|_| {
            tracing::error!(?from, "checking a message panicked: please report this defect");
            Err(Rejected::Malformed("checking it panicked".into()))
        })
    }

    fn refuse(&self, from: Peer, lane: Lane, reason: &Rejected, cut: &Notify) {
        if let Some(unlogged) = self.metrics.rejected(from, reason)
            && let Peer::Replica(member) = from
        {
            let lane = lane_name(lane);
            tracing::warn!(%member, lane, %reason, unlogged, "a member sent a message that is refused");
        }
        if reason.is_fault() {
            if !matches!(from, Peer::Replica(_)) {
                self.metrics.cut("client-message-refused");
            }
            self.hold_against(from, reason);
            cut.notify_one();
        }
    }

    /// Takes nothing more from this peer for a while.
    fn hold_against(&self, from: Peer, reason: &dyn Display) {
        let fault = |queue: &Arc<Queue>| queue.charge(from, Duration::ZERO, Verdict::Faulty);
        let barred = self.all.iter().filter_map(fault).max().unwrap_or_default();
        self.metrics.barred(from);
        if let Peer::Replica(member) = from {
            let barred_ms = barred.as_millis();
            tracing::warn!(%member, %reason, barred_ms, "a member is cut off for a while");
        }
    }
}

#[cfg(test)]
mod tests;
