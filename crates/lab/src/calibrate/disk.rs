//! The log, its disk, and the state store.

use super::{figures, line};
use crate::bounds::DiskSpeed;
use bytes::Bytes;
use quorate_crypto::{Digest, IdentitySecret};
use quorate_ledger::Noop;
use quorate_sim::priced::{ExecutionPrices, HashPrices, LogPrices};
use quorate_storage::{
    DiskStore, Durability, Entry, Executor, ExecutorConfig, Journal, LogConfig, RealDisk,
    StorageError,
};
use quorate_types::machine::{Block, Record, RecordKind};
use quorate_types::{Body, ChainId, Height, Payload, ReplicaId, Request};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Groups written of each kind.
const GROUPS: u32 = 48;
/// Heights executed of each kind.
const HEIGHTS: u64 = 64;

pub(super) fn log(folder: &Path, hash: &HashPrices) -> Result<LogPrices, super::CalibrateError> {
    let speed = DiskSpeed::measure(folder)?;
    let record = || {
        let bytes = Bytes::from_static(&[7; 200]);
        Entry::Record(Record { kind: RecordKind::Safety, bytes })
    };
    let body = body(0, 1_000, 500);
    let folder = tempfile::tempdir_in(folder)?;
    let mut journal = open(folder.path())?;
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
        disk_mb_s: figures(speed.synced_mb_s),
    })
}

fn open(folder: &Path) -> Result<Journal, super::CalibrateError> {
    let disk = |name: &str| {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder).map_err(super::CalibrateError::Io)?;
        RealDisk::open(&folder).map(RealDisk::without_zeroing).map_err(super::CalibrateError::from)
    };
    let config = LogConfig { durability: Durability::Os, ..LogConfig::default() };
    let (journal, _) =
        Journal::open(Box::new(disk("log")?), Box::new(disk("bodies")?), config, None)?;
    Ok(journal)
}

/// The median of writing a group, without a sync, in microseconds.
fn group(journal: &mut Journal, entries: &dyn Fn(u64) -> Vec<Entry>) -> Result<f64, StorageError> {
    let mut times = Vec::new();
    for number in 0..GROUPS {
        let entries = entries(u64::from(number) + 1);
        let began = Instant::now();
        for entry in &entries {
            journal.write(entry)?;
        }
        journal.commit()?;
        times.push(began.elapsed().as_secs_f64() * 1e6);
    }
    Ok(median(times))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// A body of requests of one client with so many operations of 512 bytes together.
fn body(first: u64, operations: usize, per_request: usize) -> Body {
    let secret = IdentitySecret::from_seed([1; 32]);
    let chain = ChainId([0; 32]);
    let per_request = per_request.min(Request::OPERATIONS_MAX);
    let operation = Bytes::from_static(&[7; 512]);
    let mut left = operations;
    let mut requests = Vec::new();
    while left > 0 {
        let count = left.min(per_request);
        left -= count;
        let sequence = first + requests.len() as u64;
        let operations = vec![operation.clone(); count];
        requests.push(Request::sign(&secret, chain, sequence, &operations).expect("within limits"));
    }
    Body::seal(ReplicaId(0), first, &requests)
}

fn renumbered(body: &Body, sequence: u64) -> Body {
    let mut body = body.clone();
    body.reference.sequence = sequence;
    body
}

pub(super) fn execution(folder: &Path) -> Result<ExecutionPrices, super::CalibrateError> {
    let folder = tempfile::tempdir_in(folder)?;
    let measure = |name: &str, requests: usize, each: usize| {
        execute(&folder.path().join(name), requests, each)
    };
    let (few, many) = (measure("few", 2, 2)?, measure("many", 26, 2)?);
    let full = measure("full", 2, 200)?;
    let operation_us = ((full - few) / (2.0 * 198.0)).max(0.0);
    let (block_us, request_us) = line((2.0, few), (26.0, many));
    Ok(ExecutionPrices {
        block_us,
        request_us: figures((request_us - 2.0 * operation_us).max(0.0)),
        operation_us: figures(operation_us),
    })
}

/// The median of executing a height with so many requests of so many operations, in microseconds.
fn execute(folder: &Path, requests: usize, each: usize) -> Result<f64, super::CalibrateError> {
    let store = DiskStore::open(folder)?;
    let config = ExecutorConfig { durable_every: 1 << 20, durable_bytes: 1 << 40 };
    let (mut executor, _) = Executor::open(Box::new(store), Box::new(Noop), config)?;
    let mut times = Vec::new();
    for height in 1..=HEIGHTS {
        let first = (height - 1) * requests as u64;
        let body = Arc::new(body(first, requests * each, each));
        let payload = Payload::new(Height(height), height, vec![body.reference]);
        let decided = Bytes::from_static(&[7; 1_000]);
        let block = Block { payload, bodies: vec![body], decided };
        let began = Instant::now();
        let executed = executor.execute(&block)?;
        times.push(began.elapsed().as_secs_f64() * 1e6);
        debug_assert_ne!(executed.root(), Digest::ZERO);
    }
    Ok(median(times))
}
