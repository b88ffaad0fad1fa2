//! Load: how operations are offered.
//!
//! In an *open* loop they leave at their times, whether or not earlier ones were answered: evenly,
//! or as independent users would send them ([`Shape::Poisson`]). In a *closed* loop each session
//! has a fixed number under way and offers the next when one is answered: it measures what so many
//! waiting users get, and slows down with the committee.

mod closed;
mod config;
mod ether;
pub mod latencies;
pub mod measure;
mod mix;
mod open;
pub mod sessions;

use bytes::{Bytes, BytesMut};
use closed::ClosedLoop;
pub use config::{LoadConfig, SendTo, sessions_for};
pub use ether::{EtherMix, send_ether};
pub use latencies::Latencies;
use measure::{OperationResult, Recorder, Schedule};
pub use mix::MixPlan;
use open::{Arrivals, Pacer};
use parking_lot::Mutex;
use quorate_ledger::evm::mix::Mix;
use quorate_ledger::kv::Operation;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Moments at which operations are offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// At a fixed rate, one as long after the other.
    #[default]
    Fixed,
    /// At random moments, independent of each other, at a fixed rate on average.
    Poisson,
    /// As earlier ones are answered.
    Closed,
}

/// A name that no load has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no load '{0}': use fixed, poisson or closed")]
pub struct UnknownShape(String);

impl FromStr for Shape {
    type Err = UnknownShape;

    fn from_str(name: &str) -> Result<Self, UnknownShape> {
        match name {
            "fixed" => Ok(Self::Fixed),
            "poisson" => Ok(Self::Poisson),
            "closed" => Ok(Self::Closed),
            _ => Err(UnknownShape(name.to_owned())),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fixed => "fixed",
            Self::Poisson => "poisson",
            Self::Closed => "closed",
        })
    }
}

/// Destination of a load.
pub trait Target: Send {
    /// Number of sessions, at least one.
    fn sessions(&self) -> usize;

    /// Hands operations to a session, without waiting for anything; `false` when it took none.
    fn submit(&mut self, session: usize, operations: Operations) -> bool;
}

/// Operations with their marks.
pub type Operations = Vec<(u64, Bytes)>;

/// Outcome of one operation.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// Number of its session.
    pub session: usize,
    /// Mark of the operation.
    pub mark: u64,
    /// Result of the operation.
    pub result: OperationResult,
}

/// Source of the outcomes of operations.
pub trait Answers: Send {
    /// The next answer, or `None` when there was none within `timeout`.
    fn next(&mut self, timeout: Duration) -> Option<Answer>;
}

/// Interval at which the clock is read: operations due in between leave together.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// Parameters of the load to offer.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Moments at which operations are offered.
    pub shape: Shape,
    /// Operations per second in an open loop.
    pub rate: u64,
    /// Operations under way of each session in a closed loop.
    pub outstanding: u64,
    /// Content of the operations.
    pub content: Content,
    /// Bytes of each operation.
    pub operation_bytes: usize,
    /// Decides their bytes, and random moments.
    pub seed: u64,
    /// So many of them are made before the load starts, where making one costs a signature.
    pub ready: u64,
}

/// Content of operations, by the service that they are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Bytes drawn at random.
    Random,
    /// Puts of random bytes into the key-value store, under so many keys in random order. An
    /// operation has [`PUT_BYTES`] at least.
    Puts {
        /// Number of keys, at least 1.
        keys: u64,
    },
    /// Signed transactions of the EVM ledger.
    Transactions(MixPlan),
    /// Transfers of ether between accounts that were funded for the load.
    Ether,
    /// Transactions that somebody recorded.
    Recorded,
}

/// Bytes of a put without its value: the form, and a key of 12.
pub const PUT_BYTES: usize = 2 + 4 + 12 + 4;

/// The key with this number.
pub(crate) fn key_of(number: u64) -> String {
    format!("{number:012x}")
}

/// A running load. Dropping it stops it.
#[derive(Debug)]
pub struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts to offer `plan`, with its payload, to `target` on `schedule`, counting what `answers`
    /// says.
    pub fn start(
        schedule: Schedule,
        plan: Plan,
        payload: Payload,
        target: impl Target + 'static,
        answers: impl Answers + 'static,
        recorder: Arc<Mutex<Recorder>>,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut load = Self { stop, threads: Vec::new() };
        if plan.shape == Shape::Closed {
            let outstanding = plan.outstanding;
            let circle = ClosedLoop { schedule, payload, target, answers, recorder, outstanding };
            load.spawn(move |stop| circle.run(stop));
            return load;
        }
        let arrivals = Arrivals::new(&plan);
        let counting = Arc::clone(&recorder);
        let pacer = Pacer { schedule, arrivals, payload, target, recorder };
        load.spawn(move |stop| pacer.run(stop));
        load.spawn(move |stop| count(answers, &counting, stop));
        load
    }

    fn spawn(&mut self, work: impl FnOnce(&AtomicBool) + Send + 'static) {
        let stop = Arc::clone(&self.stop);
        self.threads.push(thread::spawn(move || work(&stop)));
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn count(mut answers: impl Answers, recorder: &Mutex<Recorder>, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let Some(answer) = answers.next(10 * TICK) else { continue };
        let mut recorder = recorder.lock();
        recorder.record(answer.mark, answer.result);
        while let Some(answer) = answers.next(Duration::ZERO) {
            recorder.record(answer.mark, answer.result);
        }
    }
}

/// Maker of transactions, one after the other.
pub trait Source: fmt::Debug + Send {
    /// The next transaction, signed and encoded.
    fn next_transaction(&mut self) -> Bytes;
}

impl Source for Mix {
    fn next_transaction(&mut self) -> Bytes {
        Self::next_transaction(self)
    }
}

/// The operations' bytes. Random ones are cheap, one fill for all that leave together; signed ones
/// are made ahead.
#[derive(Debug)]
pub struct Payload {
    random: ChaCha8Rng,
    content: Content,
    operation_bytes: usize,
    ready: VecDeque<Bytes>,
    source: Option<Box<dyn Source>>,
}

/// Most transactions that are made ahead: some 500 MB of them.
const READY_MAX: u64 = 2_000_000;

impl Payload {
    /// Content for a `plan`.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let Plan { content, operation_bytes, seed, .. } = *plan;
        if let Content::Transactions(mix) = content {
            return Self::made(plan, mix.start(seed));
        }
        let random = ChaCha8Rng::seed_from_u64(seed);
        Self { random, content, operation_bytes, ready: VecDeque::new(), source: None }
    }

    /// Transactions that somebody makes. Takes some 40 µs for each that is made ahead.
    #[must_use]
    pub fn made(plan: &Plan, mut source: impl Source + 'static) -> Self {
        let Plan { content, operation_bytes, seed, .. } = *plan;
        let random = ChaCha8Rng::seed_from_u64(seed);
        let ready = (0..plan.ready.min(READY_MAX)).map(|_| source.next_transaction()).collect();
        Self { random, content, operation_bytes, ready, source: Some(Box::new(source)) }
    }

    /// These, in their order, and nothing after them.
    #[must_use]
    pub fn recorded(plan: &Plan, operations: &[Bytes]) -> Self {
        let ready = operations.iter().cloned().collect();
        let random = ChaCha8Rng::seed_from_u64(plan.seed);
        Self { random, content: Content::Recorded, operation_bytes: 0, ready, source: None }
    }

    /// The next ones; fewer where no more were recorded.
    fn take(&mut self, count: usize) -> Vec<Bytes> {
        if self.content == Content::Recorded {
            return self.ready.drain(..count.min(self.ready.len())).collect();
        }
        if let Some(source) = &mut self.source {
            let next = || self.ready.pop_front().unwrap_or_else(|| source.next_transaction());
            return std::iter::repeat_with(next).take(count).collect();
        }
        let bytes = match self.content {
            Content::Puts { .. } => self.operation_bytes.saturating_sub(PUT_BYTES),
            _ => self.operation_bytes,
        };
        let mut buffer = BytesMut::zeroed(bytes * count);
        self.random.fill_bytes(&mut buffer);
        let mut rest = buffer.freeze();
        (0..count).map(|_| self.operation(rest.split_to(bytes))).collect()
    }

    fn operation(&mut self, random: Bytes) -> Bytes {
        match self.content {
            Content::Puts { keys } => {
                let key = key_of(self.random.next_u64() % keys);
                Operation::put(key, random).encode()
            }
            _ => random,
        }
    }
}

#[cfg(test)]
mod tests;
