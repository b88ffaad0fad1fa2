//! Costs of a transfer on the EVM ledger to one validator: its sender's recovery, and its
//! execution.
//!
//! ```text
//! cargo run --release -p quorate-ledger --example evm_transfers -- \
//!     [transfers [of a height [of a request [directory [archive [bytes for proofs]]]]]]
//! ```
//!
//! 20,000 signed transfers of a token between 4,000 accounts, 50 of a height, one of a request,
//! unless told otherwise. They go through the executor on a memory store, or on a disk store below
//! the directory, of which readers keep views of the last 16 heights, as in a validator. Then come
//! as many heights without transactions, which a committee that is not busy has as often. With an
//! archive the state of each height is kept, and balances at height 1 and at others are read, by
//! the clock. With bytes for proofs, accounts at past heights are proven as well, as far back as
//! they hold. Other times are of the processor, as Linux counts them for the process with all of
//! its threads, and by the clock. A run ends with the last height's root of the state: the same
//! before and after a change that keeps to the rules.

use bytes::Bytes;
use quorate_crypto::IdentitySecret;
use quorate_ledger::evm::mix::{Mix, Shape};
use quorate_ledger::evm::{Evm, ProofOf, Query};
use quorate_storage::history::{DiskHistory, HistoryConfig, StateHistory};
use quorate_storage::{
    DiskStore, Executor, ExecutorConfig, MemoryStore, Owner, Room, StateView, StorageError, Store,
};
use quorate_types::machine::Block;
use quorate_types::{Body, Height, NetworkId, Outcome, Payload, ReplicaId, Request, Service};
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ACCOUNTS: usize = 4_000;
/// Clients whose requests take turns.
const CLIENTS: u64 = 8;
/// Balances that are read at past heights.
const READS: u64 = 10_000;
/// Views that readers keep.
const VIEWS: usize = 16;

type Fallible<T> = Result<T, Box<dyn Error>>;

fn main() -> Fallible<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| arguments.get(at).map_or(Ok(default), |it| it.parse());
    let load = Load {
        transfers: number(0, 20_000)?,
        of_height: number(1, 50)?,
        of_request: number(2, 1)?,
        provable_bytes: number(5, 0)? as u64,
    };
    match arguments.get(3) {
        None => run(Box::new(MemoryStore::new()), (0, None), load),
        Some(directory) => {
            let name = format!("quorate-evm-transfers-{}", std::process::id());
            let path = Path::new(directory).join(name);
            let store = DiskStore::open(&path.join("state"), &Owner::nobody())?;
            let history = arguments.get(4).map(|_| archive(&path.join("archive"))).transpose()?;
            let result = run(Box::new(store), (VIEWS, history), load);
            std::fs::remove_dir_all(&path)?;
            result
        }
    }
}

/// An archive of all heights.
fn archive(folder: &Path) -> Result<Arc<DiskHistory>, StorageError> {
    let all = HistoryConfig { heights_max: None, bytes_max: None };
    let history = DiskHistory::open(folder, &Owner::nobody(), all, Room::unwatched())?;
    Ok(Arc::new(history))
}

/// Numbers of transfers: all, those of a height, and those of a request; and bytes for proofs.
#[derive(Clone, Copy)]
struct Load {
    transfers: usize,
    of_height: usize,
    of_request: usize,
    provable_bytes: u64,
}

fn run(
    store: Box<dyn Store>,
    (views_max, history): (usize, Option<Arc<DiskHistory>>),
    load: Load,
) -> Fallible<()> {
    let mut mix = Mix::new(7_770, Shape::Transfers, ACCOUNTS, 1);
    let mut service = Evm::new(mix.genesis());
    service.keep_provable(load.provable_bytes);
    let preparation = service.preparation().ok_or("senders are recovered ahead")?;
    let mut validator = Validator::open(store, service, views_max)?;
    if let Some(history) = &history {
        validator.executor.keep_history(Arc::clone(history) as Arc<dyn StateHistory>);
    }
    let transactions: Vec<Bytes> = (0..load.transfers).map(|_| mix.next_transaction()).collect();
    let mut requests = Requests::new();
    let blocks: Vec<Block> = (1..)
        .zip(transactions.chunks(load.of_height))
        .map(|(height, chunk)| block(height, &requests.carry(chunk, load.of_request)))
        .collect();

    let start = Start::now()?;
    transactions.iter().for_each(|transaction| preparation.prepare(transaction));
    report("recovery", &start, load.transfers)?;
    let start = Start::now()?;
    validator.execute(&blocks)?;
    report("execution", &start, load.transfers)?;
    let heights = blocks.len() as u64;
    if load.provable_bytes > 0 {
        validator.prove(&mix, heights)?;
    }
    let empty: Vec<Block> = (1..=heights).map(|n| block(heights + n, &[])).collect();
    let start = Start::now()?;
    validator.execute(&empty)?;
    report("empty height", &start, empty.len())?;
    let executed = validator.executor.executed().ok_or("heights were executed")?;
    println!("{}", executed.header.state);
    match history {
        Some(history) => validator.read(&history, &mix, heights),
        None => Ok(()),
    }
}

/// What executes in a validator.
struct Validator {
    executor: Executor,
    views: VecDeque<StateView>,
    views_max: usize,
}

impl Validator {
    fn open(store: Box<dyn Store>, service: Evm, views_max: usize) -> Result<Self, StorageError> {
        let (executor, _) = Executor::open(store, Box::new(service), ExecutorConfig::default())?;
        Ok(Self { executor, views: VecDeque::new(), views_max })
    }

    /// Executes heights, whose transactions all succeed, and makes them durable.
    fn execute(&mut self, blocks: &[Block]) -> Fallible<()> {
        for block in blocks {
            let executed = self.executor.execute(block)?;
            let mut results = executed.answers.iter().flat_map(|answer| answer.results.iter());
            assert!(results.all(|result| matches!(result, Outcome::Applied(_))));
            if self.views_max > 0 {
                self.views.truncate(self.views_max - 1);
                self.views.push_front(self.executor.view()?);
            }
        }
        Ok(self.executor.make_durable()?)
    }
}

impl Validator {
    /// Proves accounts at heights before the newest, as far back as there are proofs.
    fn prove(&self, mix: &Mix, newest: u64) -> Fallible<()> {
        let holders: Vec<_> = mix.genesis().accounts.keys().copied().collect();
        let mut times = Vec::new();
        for (back, holder) in (0..=newest).zip(holders.iter().cycle()) {
            let of = ProofOf { address: *holder, slots: Vec::new(), height: Some(newest - back) };
            let question = of.encode();
            let began = Instant::now();
            let result = self.executor.answer(&question)?.ok_or("heights were executed")?;
            if result.answer.is_err() {
                break;
            }
            times.push(began.elapsed());
        }
        let heights = times.len();
        let newest = times[0];
        times.sort();
        let (p50, p99) = (times[heights / 2], times[heights * 99 / 100]);
        println!("proofs of {heights} heights; the newest {newest:?}; p50 {p50:?}, p99 {p99:?}");
        Ok(())
    }

    /// Reads balances of tokens at past heights.
    fn read(&mut self, history: &DiskHistory, mix: &Mix, heights: u64) -> Fallible<()> {
        let view = self.executor.view()?;
        let reader = self.executor.reader().ok_or("it is read")?;
        let holders: Vec<_> = mix.genesis().accounts.keys().copied().collect();
        let mut times = Vec::new();
        for number in 0..READS {
            let height = if number == 0 { 1 } else { number * 7_919 % heights + 1 };
            let query = Query::Account(holders[number as usize % holders.len()]).encode();
            let began = Instant::now();
            let past = view.query_past(history, Height(height), reader.as_ref(), &query)?;
            times.push(began.elapsed());
            past?;
        }
        let first = times[0];
        times.sort();
        let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        let bytes = history.bytes() / heights;
        println!(
            "archive: {bytes} bytes a height; at height 1 {first:?}; p50 {p50:?}, p99 {p99:?}"
        );
        Ok(())
    }
}

/// Clients with the numbers of their requests.
struct Requests {
    clients: Vec<IdentitySecret>,
    made: u64,
}

impl Requests {
    fn new() -> Self {
        let client = |number: u64| IdentitySecret::from_seed([number as u8; 32]);
        Self { clients: (1..=CLIENTS).map(client).collect(), made: 0 }
    }

    /// Requests that carry these transactions, so many each.
    fn carry(&mut self, transactions: &[Bytes], each: usize) -> Vec<Request> {
        let carried = transactions.chunks(each).map(|operations| {
            let client = &self.clients[(self.made % CLIENTS) as usize];
            let sequence = self.made / CLIENTS;
            self.made += 1;
            let signed = Request::sign(client, NetworkId::default(), sequence, operations);
            signed.expect("within limits")
        });
        carried.collect()
    }
}

fn block(height: u64, requests: &[Request]) -> Block {
    let body = Arc::new(Body::seal(ReplicaId(0), height, requests));
    let (bodies, references) = match requests {
        [] => (Vec::new(), Vec::new()),
        _ => (vec![Arc::clone(&body)], vec![body.reference]),
    };
    let payload = Payload::new(Height(height), 10 * height, references);
    Block { payload, bodies, decided: Bytes::from(vec![7; 500]) }
}

/// Processor time that this process has used so far, in nanoseconds.
fn processor_ns() -> Fallible<u64> {
    let used = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime))?;
    Ok(u64::try_from(used.as_nanos())?)
}

/// The beginning of what is timed, by the processor and by the clock.
struct Start {
    processor_ns: u64,
    clock: Instant,
}

impl Start {
    fn now() -> Fallible<Self> {
        Ok(Self { processor_ns: processor_ns()?, clock: Instant::now() })
    }
}

fn report(what: &str, start: &Start, number: usize) -> Fallible<()> {
    let clock = start.clock.elapsed().as_secs_f64() * 1e6 / number as f64;
    let processor = (processor_ns()? - start.processor_ns) as f64 / 1e3 / number as f64;
    println!("{what:<14} {processor:>8.2} µs, {clock:>8.2} µs by the clock");
    Ok(())
}
