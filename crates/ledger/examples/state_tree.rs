//! Costs of the key-value service's tree: updates, proofs, memory, opening, snapshots.
//!
//! ```text
//! cargo run --release -p quorate-ledger --example state_tree -- \
//!     [most keys [directory [bytes of a value]]]
//! ```
//!
//! Keys of 32 bytes; values of 100 unless told otherwise; updates of random present keys, 1,000 a
//! block. `direct` is the service on a
//! transaction of a memory store; `memory` and `disk` are whole blocks through the executor,
//! sessions and commits included. Runs up to a million keys unless told otherwise; the disk is left
//! out above a million. Snapshots are of the same state after so many updates anywhere, or of keys
//! one after the other. Times are of the processor, as Linux counts them for the process, with all
//! of its threads: what else the machine does matters less. Waiting for a disk is not among them.
//! Bytes are those that went to the disk.

use bytes::Bytes;
use quorate_crypto::{Digest, IdentitySecret, hash};
use quorate_ledger::Kv;
use quorate_ledger::kv::{Operation, Query, Scan, Step, verify_answer};
use quorate_storage::{
    DiskStore, Executor, ExecutorConfig, MemoryStore, Owner, RealDisk, Snapshots, Store,
};
use quorate_types::machine::Block;
use quorate_types::service::{self, BlockContext, Proven, Service};
use quorate_types::{Body, ClientId, Height, NetworkId, Payload, ReplicaId, Request};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const BATCH: u64 = 1_000;
const BLOCKS: u64 = 200;
/// Operations of one request.
const REQUEST: usize = 200;
const PROOFS: u64 = 5_000;
const DISK_KEYS_MAX: u64 = 1_000_000;

type Fallible<T> = Result<T, Box<dyn Error>>;

fn main() -> Fallible<()> {
    let mut arguments = std::env::args().skip(1);
    let most = arguments.next().map_or(Ok(1_000_000), |most| most.parse())?;
    let base = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let value_bytes = arguments.next().map_or(Ok(100), |bytes| bytes.parse())?;
    for keys in [10_000, 100_000, 1_000_000, 10_000_000].into_iter().filter(|keys| *keys <= most) {
        println!("{keys} keys");
        let load = Load { keys, value_bytes };
        direct(load)?;
        through_executor("memory", Box::new(MemoryStore::new()), load)?;
        if keys <= DISK_KEYS_MAX {
            on_disk(&base, load)?;
            in_folder(&base, load)?;
        }
    }
    Ok(())
}

/// Keys that there are, and what is put under them.
#[derive(Clone, Copy)]
struct Load {
    keys: u64,
    value_bytes: usize,
}

fn direct(load: Load) -> Fallible<()> {
    let keys = load.keys;
    let mut store = MemoryStore::new();
    let mut kv = Kv::default();
    load.fill(|operations| execute(&mut store, &mut kv, operations))?;

    let blocks: Vec<Vec<Bytes>> = (0..BLOCKS).map(|block| load.updates(block)).collect();
    let start = processor_ns()?;
    for operations in &blocks {
        execute(&mut store, &mut kv, operations)?;
    }
    report("direct: an update", "µs", micros_since(start)? / (BLOCKS * BATCH) as f64);

    let start = processor_ns()?;
    let mut opened = Kv::default();
    let state = store.begin()?;
    opened.open(&*state)?;
    report("open", "s", micros_since(start)? / 1e6);
    let root = kv.root(&*state)?;
    assert_eq!(opened.root(&*state)?, root, "opening gives the same tree");
    report("memory", "bytes a key", opened.memory_bytes() as f64 / keys as f64);

    prove("present key", &kv, &*state, root, |n| Query::Get { key: key(random(n, keys)) })?;
    prove("absent key", &kv, &*state, root, |n| Query::Get { key: key(keys + n) })?;
    prove("range of 100", &kv, &*state, root, |n| {
        Query::Scan(Scan { from: key(keys + n), to: None, limit: 100 })
    })
}

fn prove(
    name: &str,
    kv: &Kv,
    state: &dyn service::State,
    root: Digest,
    query: impl Fn(u64) -> Query,
) -> Fallible<()> {
    let queries: Vec<Query> = (0..PROOFS).map(query).collect();
    let encoded: Vec<Bytes> = queries.iter().map(Query::encode).collect();
    let start = processor_ns()?;
    let proven = encoded.iter().map(|query| Ok(kv.query(state, query)??));
    let proven = proven.collect::<Fallible<Vec<Proven>>>()?;
    report(&format!("{name}: make"), "µs", micros_since(start)? / PROOFS as f64);
    let start = processor_ns()?;
    for (query, proven) in queries.iter().zip(&proven) {
        verify_answer(root, query, proven)?;
    }
    report(&format!("{name}: check"), "µs", micros_since(start)? / PROOFS as f64);
    let bytes: usize = proven.iter().map(|proven| proven.proof.len()).sum();
    report(&format!("{name}: proof"), "bytes", bytes as f64 / PROOFS as f64);
    Ok(())
}

fn on_disk(base: &Path, load: Load) -> Fallible<()> {
    let path = base.join(format!("quorate-state-tree-{}", std::process::id()));
    let open = || DiskStore::open(&path, &Owner::nobody());
    let result = through_executor("disk", Box::new(open()?), load)
        .and_then(|()| open_from_disk(Box::new(open()?)));
    std::fs::remove_dir_all(&path)?;
    result
}

fn open_from_disk(store: Box<dyn Store>) -> Fallible<()> {
    let start = processor_ns()?;
    Executor::open(store, Box::new(Kv::default()), ExecutorConfig::default())?;
    report("disk: open", "s", micros_since(start)? / 1e6);
    Ok(())
}

fn through_executor(name: &str, store: Box<dyn Store>, load: Load) -> Fallible<()> {
    let (mut executor, _) =
        Executor::open(store, Box::new(Kv::default()), ExecutorConfig::default())?;
    let mut height = 0;
    load.fill(|operations| {
        height += 1;
        execute_block(&mut executor, &block(height, 0, height - 1, operations), operations.len())
    })?;
    executor.make_durable()?;
    let block = |number| block(height + 1 + number, 1, number, &load.updates(number));
    let blocks: Vec<Block> = (0..BLOCKS).map(block).collect();
    let (start, written) = (processor_ns()?, bytes_written()?);
    for block in &blocks {
        execute_block(&mut executor, block, BATCH as usize)?;
    }
    executor.make_durable()?;
    let updates = (BLOCKS * BATCH) as f64;
    report(&format!("{name}: an update"), "µs", micros_since(start)? / updates);
    report(&format!("{name}: an update"), "bytes", (bytes_written()? - written) as f64 / updates);
    Ok(())
}

fn in_folder(base: &Path, load: Load) -> Fallible<()> {
    let folder = base.join(format!("quorate-snapshots-{}", std::process::id()));
    let result = take_snapshots(&folder, load);
    std::fs::remove_dir_all(&folder)?;
    result
}

/// Takes a snapshot of all, and then of what changed.
fn take_snapshots(folder: &Path, load: Load) -> Fallible<()> {
    let snapshots = Snapshots::open(Box::new(RealDisk::open(folder)?), &Owner::nobody())?;
    let (mut executor, _) = Executor::open(
        Box::new(MemoryStore::new()),
        Box::new(Kv::default()),
        ExecutorConfig::default(),
    )?;
    let mut height = 0;
    load.fill(|operations| {
        height += 1;
        execute_block(&mut executor, &block(height, 0, height - 1, operations), operations.len())
    })?;
    let mut ordered: Vec<u64> = (0..load.keys).collect();
    ordered.sort_by_cached_key(|n| key(*n));
    let mut blocks = 0;
    let mut take = |what: &str, updates: &[u64]| {
        for numbers in updates.chunks(BATCH as usize) {
            let operations = load.puts(numbers.iter().copied());
            let block = block(height + blocks + 1, 1, blocks, &operations);
            execute_block(&mut executor, &block, operations.len())?;
            blocks += 1;
        }
        let (start, written) = (processor_ns()?, bytes_written()?);
        executor.snapshot()?.write(&snapshots)?;
        let bytes = bytes_written()? - written;
        report(&format!("snapshot, {what}"), "ms", micros_since(start)? / 1e3);
        report(&format!("snapshot, {what}"), "MB", bytes as f64 / 1e6);
        Fallible::Ok(())
    };
    take("all new", &ordered[..1])?;
    for count in [1, 100, BATCH, 10 * BATCH] {
        let anywhere: Vec<u64> = (0..count).map(|draw| random(draw, load.keys)).collect();
        take(&format!("{count} anywhere"), &anywhere)?;
        take(&format!("{count} together"), &ordered[..count as usize])?;
    }
    Ok(())
}

/// Executes the next height, of which so many operations take effect.
fn execute_block(executor: &mut Executor, block: &Block, operations: usize) -> Fallible<()> {
    let executed = executor.execute(block)?;
    assert_eq!(executed.operations, operations as u64, "every request is its client's next");
    Ok(())
}

impl Load {
    /// Puts all keys, as many at a time as a request carries.
    fn fill(self, mut put: impl FnMut(&[Bytes]) -> Fallible<()>) -> Fallible<()> {
        const CHUNK: u64 = 800;
        (0..self.keys.div_ceil(CHUNK)).try_for_each(|chunk| {
            let numbers = chunk * CHUNK..self.keys.min((chunk + 1) * CHUNK);
            let steps: Vec<Step> = numbers.map(|n| Step::put(key(n), self.value(n))).collect();
            let operations =
                steps.chunks(100).map(|steps| Operation::batch(steps.to_vec()).encode());
            put(&operations.collect::<Vec<_>>())
        })
    }

    /// Values of present keys, to be replaced in one block.
    fn updates(self, block: u64) -> Vec<Bytes> {
        let numbers = block * BATCH..(block + 1) * BATCH;
        let put = |n| Operation::put(key(random(n, self.keys)), self.value(n + self.keys));
        numbers.map(|n| put(n).encode()).collect()
    }

    /// New values of these keys.
    fn puts(self, numbers: impl Iterator<Item = u64>) -> Vec<Bytes> {
        let put = |n| Operation::put(key(n), self.value(n + 2 * self.keys));
        numbers.map(|n| put(n).encode()).collect()
    }

    fn value(self, n: u64) -> Bytes {
        let mut value = vec![7; self.value_bytes];
        value[..8].copy_from_slice(&n.to_le_bytes());
        value.into()
    }
}

fn execute(store: &mut MemoryStore, kv: &mut Kv, operations: &[Bytes]) -> Fallible<()> {
    let client = ClientId(IdentitySecret::from_seed([1; 32]).public());
    let operations: Vec<service::Operation<'_>> =
        operations.iter().map(|bytes| service::Operation { client, bytes }).collect();
    let context = BlockContext { height: Height(1), proposed_at_ms: 0 };
    let mut state = store.begin()?;
    kv.execute(&mut *state, context, &operations)?;
    state.commit(true)?;
    Ok(())
}

/// A block of requests of several clients, from this one on: the next of each, of this number.
fn block(height: u64, first_client: u8, sequence: u64, operations: &[Bytes]) -> Block {
    let request = |(client, operations): (u8, &[Bytes])| {
        let secret = IdentitySecret::from_seed([client; 32]);
        let signed = Request::sign(&secret, NetworkId::default(), sequence, operations);
        signed.expect("within limits")
    };
    let chunks = operations.chunks(REQUEST);
    let requests: Vec<Request> = (first_client..).zip(chunks).map(request).collect();
    let body = Arc::new(Body::seal(ReplicaId(0), height, &requests));
    let payload = Payload::new(Height(height), height, vec![body.reference]);
    Block { payload, bodies: vec![body], decided: Bytes::from(vec![7; 500]) }
}

fn key(n: u64) -> Bytes {
    Bytes::copy_from_slice(&hash(&n.to_le_bytes()).0)
}

/// A number below `below`, by a draw's number.
fn random(draw: u64, below: u64) -> u64 {
    let bytes = hash(&[b"draw".as_slice(), &draw.to_le_bytes()].concat()).0;
    u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes")) % below
}

/// Processor time that this process has used so far, in nanoseconds.
fn processor_ns() -> Fallible<u64> {
    let used = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime))?;
    Ok(u64::try_from(used.as_nanos())?)
}

/// Bytes that this process has sent to disks so far.
fn bytes_written() -> Fallible<u64> {
    let figures = std::fs::read_to_string("/proc/self/io")?;
    let line = figures.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    Ok(line.ok_or("no figure of bytes written")?.parse()?)
}

fn micros_since(start: u64) -> Fallible<f64> {
    Ok((processor_ns()? - start) as f64 / 1e3)
}

fn report(what: &str, unit: &str, figure: f64) {
    println!("  {what:<26} {figure:>10.2} {unit}");
}
