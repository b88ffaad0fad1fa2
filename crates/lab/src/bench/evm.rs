//! Loads of the EVM ledger: made ones and recorded ones, and what one machine alone does with them.

use super::error::BenchError;
use crate::load::MixPlan;
use bytes::Bytes;
use quorate_crypto::IdentitySecret;
use quorate_ledger::evm::{Evm, Genesis, GenesisError};
use quorate_report::results::bounds::Unreplicated;
use quorate_storage::{DiskStore, Executor, ExecutorConfig, Owner};
use quorate_types::machine::Block;
use quorate_types::{Body, Height, NetworkId, Outcome, Payload, ReplicaId, Request, Service};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Bytes of transactions that go through the order together where a trace is replayed (paper 002,
/// §IX).
pub(super) const CHUNK_BYTES: usize = 12 * 1024;

/// So many transactions are about as long, and share a request.
pub(super) const CHUNK_TRANSACTIONS: usize = 50;

/// Transactions that one machine alone is measured with.
const MEASURED: usize = 12_000;

/// Transactions that somebody recorded, with what their chain begins with.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Genesis of the chain.
    pub genesis: Genesis,
    /// The transactions in their order.
    pub transactions: Vec<Bytes>,
}

/// Reason for which there is no trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Path of the file.
        path: String,
        /// Error of the system.
        source: std::io::Error,
    },
    /// A line is no transaction's bytes.
    #[error("{path}, line {line}: not a transaction in hexadecimal")]
    Line {
        /// Path of the file.
        path: String,
        /// Number of the line, from 1.
        line: usize,
    },
    /// There is no transaction.
    #[error("{path} holds no transactions")]
    Empty {
        /// Path of the file.
        path: String,
    },
    /// The genesis is none.
    #[error(transparent)]
    Genesis(#[from] GenesisError),
}

impl Trace {
    /// Reads a file with a signed transaction in hexadecimal on each line, and the genesis file of
    /// its chain. Empty lines and those that begin with `#` are left out.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn load(path: &Path, genesis: &Path) -> Result<Self, TraceError> {
        let shown = path.display().to_string();
        let text = fs::read_to_string(path);
        let text = text.map_err(|source| TraceError::Read { path: shown.clone(), source })?;
        let mut transactions = Vec::new();
        for (line, content) in (1..).zip(text.lines().map(str::trim)) {
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let bytes = hex::decode(content.strip_prefix("0x").unwrap_or(content));
            let wrong = |_| TraceError::Line { path: shown.clone(), line };
            transactions.push(bytes.map_err(wrong)?.into());
        }
        if transactions.is_empty() {
            return Err(TraceError::Empty { path: shown });
        }
        Ok(Self { genesis: Genesis::load(genesis)?, transactions })
    }
}

/// Measures one core with these transactions and no replication, the state in a new folder below
/// `folder`.
///
/// # Errors
/// When the state cannot be kept there.
pub(super) fn unreplicated(
    genesis: &Genesis,
    transactions: impl Iterator<Item = Bytes>,
    folder: &Path,
) -> Result<Unreplicated, BenchError> {
    let folder = tempfile::tempdir_in(folder)
        .map_err(|source| BenchError::System { what: "keep a state", source })?;
    let failed = |error: quorate_storage::StorageError| BenchError::Client(error.to_string());
    let service = Evm::new(genesis.clone());
    let preparation = service.preparation().expect("senders are recovered ahead");
    let store = DiskStore::open(&folder.path().join("state"), &Owner::nobody()).map_err(failed)?;
    let (mut executor, _) =
        Executor::open(Box::new(store), Box::new(service), ExecutorConfig::default())
            .map_err(failed)?;
    let (mut recovering, mut executing, mut refused, mut count) = (0.0, 0.0, 0, 0);
    for (sequence, chunk) in (0..).zip(chunks(transactions)) {
        recovering += timed(|| chunk.iter().for_each(|bytes| preparation.prepare(bytes))).1;
        let block = block(sequence, &chunk);
        let (executed, seconds) = timed(|| executor.execute(&block));
        let executed = executed.map_err(failed)?;
        executing += seconds;
        count += chunk.len() as u64;
        let results = executed.answers.iter().flat_map(|answer| answer.results.iter());
        refused += results.filter(|result| matches!(result, Outcome::Refused(_))).count() as u64;
    }
    let (durable, seconds) = timed(|| executor.make_durable());
    durable.map_err(failed)?;
    executing += seconds;
    let each = |seconds: f64| seconds * 1e6 / count.max(1) as f64;
    Ok(Unreplicated {
        transactions: count,
        refused,
        recover_us: each(recovering),
        execute_us: each(executing),
    })
}

/// As [`unreplicated`], with the beginning of a made load.
///
/// # Errors
/// When the state cannot be kept.
pub(super) fn unreplicated_mix(
    plan: MixPlan,
    seed: u64,
    folder: &Path,
) -> Result<Unreplicated, BenchError> {
    let mut mix = plan.start(seed);
    let genesis = mix.genesis();
    let transactions: Vec<Bytes> = (0..MEASURED).map(|_| mix.next_transaction()).collect();
    unreplicated(&genesis, transactions.into_iter(), folder)
}

/// Transactions that are at most 12 KB together, or one that is longer.
fn chunks(transactions: impl Iterator<Item = Bytes>) -> impl Iterator<Item = Vec<Bytes>> {
    let mut rest = transactions.peekable();
    std::iter::from_fn(move || {
        let mut chunk: Vec<Bytes> = rest.next().into_iter().collect();
        let mut bytes = chunk.first()?.len();
        while let Some(next) = rest.next_if(|next| {
            bytes + next.len() <= CHUNK_BYTES && chunk.len() < Request::OPERATIONS_MAX
        }) {
            bytes += next.len();
            chunk.push(next);
        }
        Some(chunk)
    })
}

fn block(sequence: u64, operations: &[Bytes]) -> Block {
    let client = IdentitySecret::from_seed([1; 32]);
    let request = Request::sign(&client, NetworkId([0; 32]), sequence, operations);
    let body = Arc::new(Body::seal(ReplicaId(0), sequence, &[request.expect("within limits")]));
    let payload = Payload::new(Height(sequence + 1), 1_000 * sequence, vec![body.reference]);
    Block { payload, bodies: vec![body], decided: Bytes::from_static(b"decided") }
}

/// Result of some work, and its processor time in seconds, with all threads: the state's
/// checkpoints have their own, and nothing else is at work.
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let before = processor_seconds();
    let done = work();
    (done, processor_seconds() - before)
}

fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_read_line_by_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let (trace, genesis) = (folder.path().join("trace"), folder.path().join("genesis.json"));
        let mut mix = MixPlan { accounts: 3, ..MixPlan::default() }.start(1);
        fs::write(&genesis, mix.genesis().to_json()).expect("writes");
        let transactions: Vec<Bytes> = (0..120).map(|_| mix.next_transaction()).collect();
        let lines: Vec<String> = transactions.iter().map(hex::encode).collect();
        fs::write(&trace, format!("# recorded\n\n0x{}\n", lines.join("\n"))).expect("writes");
        let loaded = Trace::load(&trace, &genesis).expect("reads");
        assert_eq!(loaded.transactions, transactions);

        let alone =
            unreplicated(&loaded.genesis, loaded.transactions.iter().cloned(), folder.path());
        let alone = alone.expect("measures");
        assert_eq!((alone.transactions, alone.refused), (120, 0));
        let backwards = loaded.transactions.into_iter().rev();
        let alone = unreplicated(&loaded.genesis, backwards, folder.path());
        assert!(alone.expect("measures").refused > 0, "order matters");

        fs::write(&trace, "zz").expect("writes");
        let error = Trace::load(&trace, &genesis).expect_err("no hexadecimal").to_string();
        assert!(error.ends_with("line 1: not a transaction in hexadecimal"), "{error}");
        fs::write(&trace, "# nothing").expect("writes");
        let error = Trace::load(&trace, &genesis).expect_err("nothing").to_string();
        assert!(error.ends_with("holds no transactions"), "{error}");
    }

    #[test]
    fn chunks_are_of_12_kilobytes() {
        let transactions = (0..100).map(|index| Bytes::from(vec![0; 200 + index]));
        let chunks: Vec<_> = chunks(transactions).collect();
        let lengths = |chunk: &Vec<Bytes>| chunk.iter().map(Bytes::len).sum::<usize>();
        assert!(chunks.iter().all(|chunk| lengths(chunk) <= CHUNK_BYTES));
        assert!(chunks[..chunks.len() - 1].iter().all(|chunk| lengths(chunk) > CHUNK_BYTES - 400));
        assert_eq!(chunks.iter().map(Vec::len).sum::<usize>(), 100);
        let long = vec![Bytes::from(vec![0; 20_000]); 2];
        assert_eq!(self::chunks(long.into_iter()).count(), 2);
    }
}
