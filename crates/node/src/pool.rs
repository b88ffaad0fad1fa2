//! The pool: checks what arrived before any machine sees it, and combines shares.
//!
//! ```text
//! readers ──▶ urgent ──▶ 1 thread  ──▶ machine (urgent)     votes, proposals, certificates; Combine first
//!         └─▶ bulk   ──▶ N threads ──▶ machine (bulk)       bodies, blocks, requests
//! ```
//!
//! One connection's frames stay in order: it is always the same thread that checks them. A vote never
//! waits for a body. The queues are bounded by what each connection may have under way
//! ([`Delivery::permit`]): a peer that sends faster than we check waits for itself alone.

use crate::metrics::{Metrics, lane_name};
use crate::threads::give_way;
use crate::transport::frames::Permit;
use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender, select, unbounded};
use quorate_engine::{Incoming, Verifier};
use quorate_types::machine::{CombineJob, CombineOutcome};
use quorate_types::{Lane, Peer, Rejected, Verified};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tokio::sync::Notify;

/// A frame as it came from an authenticated connection.
pub struct Delivery {
    /// Who is at the other end.
    pub from: Peer,
    /// Which stream.
    pub lane: Lane,
    /// Tag and what follows.
    pub content: Bytes,
    /// Where it goes once it is checked.
    pub inlet: Arc<dyn Inlet>,
    /// Cuts the connection.
    pub cut: Arc<Notify>,
    /// What the frame takes of its connection's share of the queues; given back once it is checked
    /// and handed on.
    pub permit: Permit,
}

/// Where checked messages go. May block: only the thread that checks for the same peers waits.
pub trait Inlet: Send + Sync + std::fmt::Debug {
    /// A checked message. `false`: nobody listens any more.
    fn message(&self, from: Peer, urgent: bool, message: Verified<Incoming>) -> bool;

    /// Whether a frame's content is worth checking. What is not is dropped.
    fn wants(&self, _content: &[u8]) -> bool {
        true
    }
}

/// Where combined certificates go. `false`: nobody listens any more.
pub type Combiner = Arc<dyn Fn(CombineOutcome) -> bool + Send + Sync>;

/// The queues of the pool. Cloning shares them; the threads end when all clones are dropped.
#[derive(Clone, Debug)]
pub struct Pool {
    urgent: Sender<Delivery>,
    combine: Sender<CombineJob>,
    bulk: Arc<[Sender<Delivery>]>,
}

/// One thread's work, to be run on it.
pub type Worker = Box<dyn FnOnce() + Send>;

impl Pool {
    /// The queues, and what each thread is to run: one for what is urgent and `bulk_threads` for the
    /// rest.
    #[must_use]
    pub fn new(
        verifier: &Arc<Verifier>,
        metrics: &Arc<Metrics>,
        combined: Combiner,
        bulk_threads: usize,
    ) -> (Self, Vec<Worker>) {
        let checker = Checker { verifier: Arc::clone(verifier), metrics: Arc::clone(metrics) };
        let (urgent, urgent_in) = unbounded();
        let (combine, combine_in) = unbounded();
        let first = checker.clone();
        let mut workers: Vec<Worker> =
            vec![Box::new(move || first.run_urgent(&urgent_in, &combine_in, &*combined))];
        let mut bulk = Vec::with_capacity(bulk_threads);
        for _ in 0..bulk_threads.max(1) {
            let (sender, receiver) = unbounded();
            let checker = checker.clone();
            bulk.push(sender);
            workers.push(Box::new(move || {
                give_way();
                checker.run_bulk(&receiver);
            }));
        }
        (Self { urgent, combine, bulk: bulk.into() }, workers)
    }

    /// Queues a frame to be checked.
    pub fn deliver(&self, delivery: Delivery) {
        let queue = if is_urgent(&delivery) {
            &self.urgent
        } else {
            &self.bulk[shard(delivery.from, delivery.lane, self.bulk.len())]
        };
        // Fails only when the host stops.
        let _ = queue.send(delivery);
    }

    /// Queues shares to be combined, ahead of everything else.
    pub fn combine(&self, job: CombineJob) {
        let _ = self.combine.send(job);
    }
}

/// Tags whose frames carry bodies or requests, each with many signatures to check: whatever lane a
/// member puts them in, they stay out of the votes' way.
const BULKY: [u8; 4] = [2, 3, 7, 8];

fn is_urgent(delivery: &Delivery) -> bool {
    let lane = matches!(delivery.lane, Lane::Votes | Lane::Consensus);
    lane && !delivery.content.first().is_some_and(|tag| BULKY.contains(tag))
}

fn shard(from: Peer, lane: Lane, shards: usize) -> usize {
    let mut hasher = DefaultHasher::new();
    (from, lane).hash(&mut hasher);
    usize::try_from(hasher.finish() % shards as u64).expect("less than the number of shards")
}

#[derive(Clone)]
struct Checker {
    verifier: Arc<Verifier>,
    metrics: Arc<Metrics>,
}

impl Checker {
    fn run_urgent(
        &self,
        frames: &Receiver<Delivery>,
        jobs: &Receiver<CombineJob>,
        combined: &dyn Fn(CombineOutcome) -> bool,
    ) {
        loop {
            // A job completes a quorum: it goes before votes that are not needed any more.
            while let Ok(job) = jobs.try_recv() {
                if !combined(job.run()) {
                    return;
                }
            }
            let goes_on = select! {
                recv(jobs) -> job => job.is_ok_and(|job| combined(job.run())),
                recv(frames) -> frame => frame.is_ok_and(|frame| self.check(frame, true)),
            };
            if !goes_on {
                return;
            }
        }
    }

    fn run_bulk(&self, frames: &Receiver<Delivery>) {
        while let Ok(frame) = frames.recv() {
            if !self.check(frame, false) {
                return;
            }
        }
    }

    /// `false`: nobody listens any more.
    fn check(&self, delivery: Delivery, urgent: bool) -> bool {
        let Delivery { from, lane, content, inlet, cut, permit } = delivery;
        if !inlet.wants(&content) {
            return true;
        }
        match self.verify(content, from) {
            Ok(message) => {
                let listens = inlet.message(from, urgent, message);
                drop(permit);
                listens
            }
            Err(reason) => {
                self.refuse(from, lane, &reason, &cut);
                true
            }
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
        if !matches!(from, Peer::Replica(_)) && !reason.is_innocent() {
            self.metrics.cut("client-message-refused");
            cut.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;
