//! Clients that record what they do and see.

use super::history::{Action, Call, CertifiedRead, End, History, Reply, Value};
use bytes::Bytes;
use quorate_deterministic::Rng;
use quorate_gateway::{ClientConfig, Completed, Connection, KvClient, KvError, check_answer};
use quorate_ledger::kv::{Operation, Output, StepOutput};
use quorate_types::{Committee, ReplicaId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Number of keys in use.
pub(crate) const KEYS: usize = 6;

/// Calls of every client after the faults. All of them must succeed.
pub(crate) const CALM_CALLS: usize = 20;

/// Calls that the impatient client leaves open before it ends: each makes the search for an order
/// longer.
const OPEN_MAX: usize = 12;

/// Rest of the impatient client before it begins, and after each call that it left open.
const REST: Duration = Duration::from_secs(1);

/// Values of one client, so that no two write the same.
const VALUES: u64 = 1_000_000;

/// One client, with a connection of its own.
pub(crate) struct Client {
    index: usize,
    kv: KvClient,
    began: Instant,
    rng: Rng,
    /// The last value it saw of each key.
    seen: [Value; KEYS],
    written: u64,
    history: History,
}

impl Client {
    pub(crate) fn new(
        index: usize,
        committee: &Arc<Committee>,
        timeout: Duration,
        seed: u64,
        began: Instant,
    ) -> Self {
        let first = u16::try_from(index % committee.size()).expect("few");
        let connection = Connection::open(&ClientConfig {
            call_timeout: timeout,
            retry_after: Duration::from_millis(500),
            ..Connection::config(Arc::clone(committee), ReplicaId(first), check_answer)
        });
        Self {
            index,
            kv: KvClient::new(connection.expect("a connection")),
            began,
            rng: Rng::new(seed, "client", index as u64),
            seen: [None; KEYS],
            written: 0,
            history: History::default(),
        }
    }

    /// Calls until `is_over`, and then some calls of each kind in calm, which must succeed.
    pub(crate) async fn run(mut self, is_over: Arc<AtomicBool>) -> History {
        while !is_over.load(Ordering::Relaxed) {
            self.do_something().await;
        }
        let before = self.failures();
        for _ in 0..CALM_CALLS {
            self.do_something().await;
        }
        assert_eq!(self.failures(), before, "client {} fails in calm", self.index);
        self.history
    }

    fn failures(&self) -> usize {
        self.history.open() + self.history.unread
    }

    /// Calls until `is_over` or too many calls are open, with a rest after each that is.
    pub(crate) async fn run_impatiently(mut self, is_over: Arc<AtomicBool>) -> History {
        let mut open = usize::MAX;
        while !is_over.load(Ordering::Relaxed) && self.history.open() < OPEN_MAX {
            if open != self.history.open() {
                tokio::time::sleep(REST).await;
            }
            open = self.history.open();
            self.do_something().await;
        }
        self.history
    }

    async fn do_something(&mut self) {
        let key = self.rng.index(KEYS);
        match self.rng.below(20) {
            0..=5 => self.call(key, Action::Get).await,
            6..=9 => {
                let value = self.new_value();
                self.call(key, Action::Put(value)).await;
            }
            10..=14 => {
                let (expected, new) = (self.seen[key], Some(self.new_value()));
                self.call(key, Action::Swap { expected, new }).await;
            }
            15..=16 => self.call(key, Action::Delete).await,
            _ => self.read_certified(key).await,
        }
        tokio::time::sleep(self.rng.span(&(0..=10_000))).await;
    }

    fn new_value(&mut self) -> u64 {
        self.written += 1;
        self.index as u64 * VALUES + self.written
    }

    async fn call(&mut self, key: usize, action: Action) {
        let invoked = self.began.elapsed();
        let result = self.kv.execute(&operation(key, action)).await;
        let returned = self.began.elapsed();
        let end = match result {
            Ok((output, done)) => Some(end(output, &done, returned)),
            Err(KvError::Call(_)) => None,
            Err(error) => panic!("{action:?} of key {key}: {error}"),
        };
        let call = Call { client: self.index, key, action, invoked, end };
        self.note(&call);
        self.history.calls.push(call);
    }

    fn note(&mut self, call: &Call) {
        match call.reply() {
            Some(Reply::Value(value) | Reply::NotSwapped { actual: value }) => {
                self.seen[call.key] = value;
            }
            Some(Reply::Done { .. } | Reply::Swapped) => {
                self.seen[call.key] = call.action.writes().flatten();
            }
            None => {}
        }
    }

    async fn read_certified(&mut self, key: usize) {
        let read = match self.kv.get_certified(name(key)).await {
            Ok(read) => read,
            Err(KvError::Call(_)) => {
                self.history.unread += 1;
                return;
            }
            Err(error) => panic!("a certified read of key {key}: {error}"),
        };
        let (value, height) = (read_value(read.value), read.height.0);
        let returned = self.began.elapsed();
        self.history.reads.push(CertifiedRead { key, returned, value, height });
    }
}

fn name(key: usize) -> Bytes {
    format!("key {key}").into()
}

fn operation(key: usize, action: Action) -> Operation {
    let key = name(key);
    match action {
        Action::Get => Operation::get(key),
        Action::Put(value) => Operation::put(key, text(value)),
        Action::Delete => Operation::delete(key),
        Action::Swap { expected, new } => {
            Operation::compare_and_swap(key, expected.map(text), new.map(text))
        }
    }
}

fn end(output: Output, done: &Completed, returned: Duration) -> End {
    let Output::Step(output) = output else { panic!("{output:?} is not of a step") };
    let reply = match output {
        StepOutput::Value(value) => Reply::Value(read_value(value)),
        StepOutput::Done { replaced } => Reply::Done { replaced },
        StepOutput::Swapped => Reply::Swapped,
        StepOutput::NotSwapped { actual } => Reply::NotSwapped { actual: read_value(actual) },
    };
    End { returned, reply, height: done.height.0, is_proven: done.receipt.is_some() }
}

fn text(value: u64) -> Bytes {
    value.to_string().into()
}

fn read_value(bytes: Option<Bytes>) -> Value {
    let read = |bytes: &Bytes| std::str::from_utf8(bytes).ok()?.parse().ok();
    bytes.map(|bytes| read(&bytes).unwrap_or_else(|| panic!("nobody wrote {bytes:?}")))
}
