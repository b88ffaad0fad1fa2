//! The log, its disk, and the state store.

use super::{figures, line};
use crate::bounds;
use crate::load::MixPlan;
use bytes::Bytes;
use quorate_crypto::{Digest, IdentitySecret};
use quorate_ledger::Noop;
use quorate_ledger::evm::Evm;
use quorate_ledger::evm::mix::Mix;
use quorate_ledger::kv::{Kv, Operation};
use quorate_model::{ExecutionPrices, HashPrices, LogPrices};
use quorate_storage::{
    DiskStore, Durability, Entry, Executor, ExecutorConfig, Journal, LogConfig, Owner, RealDisk,
    StorageError,
};
use quorate_types::machine::{Block, Record, RecordKind};
use quorate_types::service::{Preparation, Service};
use quorate_types::{Body, Height, NetworkId, Payload, ReplicaId, Request};
use rustix::time::{ClockId, clock_gettime};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Groups written of each kind.
const GROUPS: u32 = 48;
/// Logs that sync at once, to price syncs of several validators on one disk.
const LOGS: usize = 8;
/// Heights executed of each kind.
const HEIGHTS: u64 = 64;

pub(super) fn log(folder: &Path, hash: &HashPrices) -> Result<LogPrices, super::CalibrateError> {
    let speed = bounds::disk::measure(folder)?;
    let shared = bounds::disk::sync_at_once(folder, LOGS)?.as_secs_f64() * 1e6;
    let record = || {
        let bytes = Bytes::from_static(&[7; 200]);
        Entry::Record(Record { kind: RecordKind::Safety, bytes })
    };
    let body = body(0, &vec![nothing(); 1_000], 500);
    let folder = tempfile::tempdir_in(folder)?;
    let mut synced = open(&folder.path().join("synced"), Durability::Fsync)?;
    let sync_core_us = core_time(&mut synced, &|_| vec![record()])?;
    let mut journal = open(&folder.path().join("written"), Durability::Os)?;
    let one = group(&mut journal, &|_| vec![record()])?;
    let several = group(&mut journal, &|_| (0..5).map(|_| record()).collect())?;
    let large = group(&mut journal, &|number| {
        vec![record(), Entry::Body(Arc::new(renumbered(&body, number)))]
    })?;
    let entry_us = ((several - one) / 4.0).max(0.0);
    let byte_us = (large - one - entry_us).max(0.0) / body.raw.len() as f64;
    // Never less than the checksum.
    let byte_ns = (byte_us * 1e3).max(hash.byte_ns);
    Ok(LogPrices {
        group_us: figures((one - entry_us).max(0.0)),
        entry_us: figures(entry_us),
        byte_ns: figures(byte_ns),
        sync_us: figures(speed.sync_p50_ms * 1e3),
        sync_core_us: figures((sync_core_us - one).clamp(0.0, speed.sync_p50_ms * 1e3)),
        sync_shared_us: figures(shared.min(speed.sync_p50_ms * 1e3)),
        disk_mb_s: figures(speed.synced_mb_s),
    })
}

fn open(folder: &Path, durability: Durability) -> Result<Journal, super::CalibrateError> {
    let disk = |name: &str| {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder).map_err(super::CalibrateError::Io)?;
        RealDisk::open(&folder).map(RealDisk::without_zeroing).map_err(super::CalibrateError::from)
    };
    let config = LogConfig { durability, ..LogConfig::default() };
    let (journal, _) = Journal::open(
        Box::new(disk("log")?),
        Box::new(disk("bodies")?),
        &Owner::nobody(),
        config,
        None,
    )?;
    Ok(journal)
}

/// The median of writing a group, in microseconds.
fn group(journal: &mut Journal, entries: &dyn Fn(u64) -> Vec<Entry>) -> Result<f64, StorageError> {
    groups(journal, entries, || Duration::try_from(clock_gettime(ClockId::Monotonic)))
}

/// The median of a core's time of writing a group, in microseconds.
fn core_time(
    journal: &mut Journal,
    entries: &dyn Fn(u64) -> Vec<Entry>,
) -> Result<f64, StorageError> {
    groups(journal, entries, || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)))
}

/// The median of writing a group by a clock, in microseconds.
fn groups<E>(
    journal: &mut Journal,
    entries: &dyn Fn(u64) -> Vec<Entry>,
    clock: impl Fn() -> Result<Duration, E>,
) -> Result<f64, StorageError> {
    let mut times = Vec::new();
    for number in 0..GROUPS {
        let entries = entries(u64::from(number) + 1);
        let began = clock().unwrap_or_default();
        for entry in &entries {
            journal.write(entry)?;
        }
        journal.commit()?;
        let took = clock().unwrap_or_default().saturating_sub(began);
        times.push(took.as_secs_f64() * 1e6);
    }
    Ok(median(times))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// An operation of 512 bytes that asks for nothing.
fn nothing() -> Bytes {
    Bytes::from_static(&[7; 512])
}

/// A body of requests of one client.
fn body(first: u64, operations: &[Bytes], per_request: usize) -> Body {
    let secret = IdentitySecret::from_seed([1; 32]);
    let network = NetworkId([0; 32]);
    let per_request = per_request.min(Request::OPERATIONS_MAX);
    let requests = (first..).zip(operations.chunks(per_request)).map(|(sequence, operations)| {
        Request::sign(&secret, network, sequence, operations).expect("within limits")
    });
    let requests: Vec<_> = requests.collect();
    Body::seal(ReplicaId(0), first, &requests)
}

fn renumbered(body: &Body, sequence: u64) -> Body {
    let mut body = body.clone();
    body.reference.sequence = sequence;
    body
}

/// Keys that the key-value store holds when its puts are measured: enough for a tree of a real
/// depth.
const KEYS: u64 = 1 << 16;

pub(super) fn execution(folder: &Path) -> Result<ExecutionPrices, super::CalibrateError> {
    let folder = tempfile::tempdir_in(folder)?;
    let measure = |name: &str, requests: usize, each: usize| {
        execute(&folder.path().join(name), requests, each)
    };
    let (few, many) = (measure("few", 2, 2)?, measure("many", 26, 2)?);
    let full = measure("full", 2, 200)?;
    let operation_us = ((full - few) / (2.0 * 198.0)).max(0.0);
    let (block_us, request_us) = line((2.0, few), (26.0, many));
    let request_us = (request_us - 2.0 * operation_us).max(0.0);
    let mut store = PutTimer::new(&folder.path().join("kv"))?;
    let (one, ten) = (store.time(256)?, store.time(2_560)?);
    let (all_us, kv_put_us) = line((256.0, one - request_us), (2_560.0, ten - 10.0 * request_us));
    let (evm_us, evm_tx_us) = transactions(&folder.path().join("evm"), request_us)?;
    Ok(ExecutionPrices {
        block_us,
        request_us: figures(request_us),
        operation_us: figures(operation_us),
        kv_block_us: figures((all_us - block_us).max(0.0)),
        kv_put_us,
        evm_block_us: figures((evm_us - block_us).max(0.0)),
        evm_tx_us,
    })
}

/// Time of executing a height with so many requests of so many operations, in microseconds.
fn execute(folder: &Path, requests: usize, each: usize) -> Result<f64, super::CalibrateError> {
    let mut executor = open_store(folder, Box::new(Noop))?;
    let operations = vec![nothing(); requests * each];
    let mut times = Vec::new();
    for height in 1..=HEIGHTS {
        let body = body((height - 1) * requests as u64, &operations, each);
        times.push(time(&mut executor, height, body)?);
    }
    Ok(with_checkpoint(&mut executor, times)?)
}

/// The median of these heights' times, with the part that each has in the checkpoint of all. That
/// is written while others execute, and takes a processor and the disk all the same.
fn with_checkpoint(executor: &mut Executor, times: Vec<f64>) -> Result<f64, StorageError> {
    let (began, heights) = (Instant::now(), times.len() as f64);
    executor.make_durable()?;
    Ok(median(times) + began.elapsed().as_secs_f64() * 1e6 / heights)
}

/// Puts of random values under random keys.
struct PutTimer {
    executor: Executor,
    height: u64,
    requests: u64,
    keys: u64,
}

impl PutTimer {
    fn new(folder: &Path) -> Result<Self, super::CalibrateError> {
        let executor = open_store(folder, Box::new(Kv::default()))?;
        let mut timer = Self { executor, height: 0, requests: 0, keys: 0 };
        while timer.keys < KEYS {
            timer.put(4_096)?;
        }
        timer.executor.make_durable()?;
        Ok(timer)
    }

    /// Time of so many puts in one height, in microseconds.
    fn time(&mut self, puts: usize) -> Result<f64, super::CalibrateError> {
        let times: Result<Vec<f64>, _> = (0..HEIGHTS / 4).map(|_| self.put(puts)).collect();
        Ok(with_checkpoint(&mut self.executor, times?)?)
    }

    fn put(&mut self, puts: usize) -> Result<f64, super::CalibrateError> {
        let operation = |number: u64| {
            let drawn = quorate_crypto::hash(&number.to_be_bytes()).0;
            Operation::put(drawn[..16].to_vec(), drawn.to_vec()).encode()
        };
        let operations: Vec<Bytes> = (self.keys..).take(puts).map(operation).collect();
        let body = body(self.requests, &operations, 256);
        (self.height, self.keys) = (self.height + 1, self.keys + puts as u64);
        self.requests += body.requests.len() as u64;
        Ok(time(&mut self.executor, self.height, body)?)
    }
}

/// Cost of a height and of each transaction on the EVM ledger, requests apart, in microseconds.
fn transactions(folder: &Path, request_us: f64) -> Result<(f64, f64), super::CalibrateError> {
    let mut ledger = TransactionTimer::new(folder)?;
    // Whole hundreds: the mix creates, swaps and transfers in the same parts each time.
    let (few, many) = (ledger.time(100)?, ledger.time(1_000)?);
    let without = |took: f64, transactions: usize| {
        let requests = transactions / TRANSACTIONS_PER_REQUEST;
        (transactions as f64, took - requests as f64 * request_us)
    };
    Ok(line(without(few, 100), without(many, 1_000)))
}

/// Number that makes about 12 KB.
const TRANSACTIONS_PER_REQUEST: usize = 50;

/// Transactions of the mixed load, their senders recovered before.
struct TransactionTimer {
    executor: Executor,
    preparation: Arc<dyn Preparation>,
    mix: Mix,
    height: u64,
    requests: u64,
}

impl TransactionTimer {
    fn new(folder: &Path) -> Result<Self, super::CalibrateError> {
        let mix = MixPlan::default().start(1);
        let service = Evm::new(mix.genesis());
        let preparation = service.preparation().expect("senders are recovered ahead");
        let executor = open_store(folder, Box::new(service))?;
        let mut timer = Self { executor, preparation, mix, height: 0, requests: 0 };
        timer.apply(1_000)?;
        timer.executor.make_durable()?;
        Ok(timer)
    }

    /// Time of so many transactions in one height, in microseconds.
    fn time(&mut self, transactions: usize) -> Result<f64, super::CalibrateError> {
        let times: Result<Vec<f64>, _> =
            (0..HEIGHTS / 4).map(|_| self.apply(transactions)).collect();
        Ok(with_checkpoint(&mut self.executor, times?)?)
    }

    fn apply(&mut self, transactions: usize) -> Result<f64, super::CalibrateError> {
        let operations: Vec<Bytes> =
            (0..transactions).map(|_| self.mix.next_transaction()).collect();
        operations.iter().for_each(|operation| self.preparation.prepare(operation));
        let body = body(self.requests, &operations, TRANSACTIONS_PER_REQUEST);
        self.height += 1;
        self.requests += body.requests.len() as u64;
        Ok(time(&mut self.executor, self.height, body)?)
    }
}

fn open_store(folder: &Path, service: Box<dyn Service>) -> Result<Executor, StorageError> {
    let store = Box::new(DiskStore::open(folder, &Owner::nobody())?);
    let config = ExecutorConfig { durable_every: 1 << 20, durable_bytes: 1 << 40 };
    Ok(Executor::open(store, service, config)?.0)
}

/// Time of executing a height, in microseconds.
fn time(executor: &mut Executor, height: u64, body: Body) -> Result<f64, StorageError> {
    let payload = Payload::new(Height(height), height, vec![body.reference]);
    let decided = Bytes::from_static(&[7; 1_000]);
    let block = Block { payload, bodies: vec![Arc::new(body)], decided };
    let began = Instant::now();
    let executed = executor.execute(&block)?;
    let took = began.elapsed();
    debug_assert_ne!(executed.root(), Digest::ZERO);
    Ok(took.as_secs_f64() * 1e6)
}
