//! Rate at which the executor brings requests into a store.
//!
//! ```text
//! cargo run --release -p quorate-storage --example execution_rate -- [directory]
//! ```
//!
//! The service does nothing, so this is the price of exactly once: sessions, kept results and the
//! transaction. Requests carry 16 operations of 64 bytes, blocks 100 requests of as many clients.

use bytes::Bytes;
use quorate_crypto::{Digest, IdentitySecret};
use quorate_storage::{DiskStore, Executor, ExecutorConfig, MemoryStore, Owner, Store};
use quorate_types::machine::Block;
use quorate_types::service::{BlockContext, Operation, Outcome, Service, State, StateError};
use quorate_types::{Body, Height, NetworkId, Payload, ReplicaId, Request};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

const CLIENTS: u16 = 100;
const OPERATIONS: usize = 16;
const HEIGHTS: u64 = 300;

struct Nothing;

impl Service for Nothing {
    fn name(&self) -> &'static str {
        "nothing"
    }

    fn admit(&self, _: Operation<'_>) -> Result<(), String> {
        Ok(())
    }

    fn execute(
        &mut self,
        _: &mut dyn State,
        _: BlockContext,
        operations: &[Operation<'_>],
    ) -> Result<Vec<Outcome>, StateError> {
        Ok(vec![Outcome::Applied(Bytes::new()); operations.len()])
    }

    fn root(&self, _: &dyn State) -> Result<Digest, StateError> {
        Ok(Digest::ZERO)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let base = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let path = base.join(format!("quorate-execution-rate-{}", std::process::id()));
    let blocks: Vec<Block> = (1..=HEIGHTS).map(block).collect();
    run("memory", Box::new(MemoryStore::new()), &blocks)?;
    run("disk", Box::new(DiskStore::open(&path, &Owner::nobody())?), &blocks)?;
    std::fs::remove_dir_all(&path)?;
    Ok(())
}

fn run(
    name: &str,
    store: Box<dyn Store>,
    blocks: &[Block],
) -> Result<(), Box<dyn std::error::Error>> {
    let (mut executor, _) = Executor::open(store, Box::new(Nothing), ExecutorConfig::default())?;
    let (start, mut longest) = (Instant::now(), std::time::Duration::ZERO);
    for block in blocks {
        let start = Instant::now();
        executor.execute(block)?;
        longest = longest.max(start.elapsed());
    }
    let seconds = start.elapsed().as_secs_f64();
    let requests = HEIGHTS as f64 * f64::from(CLIENTS);
    println!(
        "{name:<8} {:>8.0} requests/s, {:>8.0} operations/s, {:.2} ms a block, longest {:.2} ms",
        requests / seconds,
        requests * OPERATIONS as f64 / seconds,
        seconds * 1e3 / HEIGHTS as f64,
        longest.as_secs_f64() * 1e3,
    );
    Ok(())
}

fn block(height: u64) -> Block {
    let operations = vec![Bytes::from(vec![7; 64]); OPERATIONS];
    let requests: Vec<Request> = (0..CLIENTS)
        .map(|client| {
            let mut seed = [0; 32];
            seed[..2].copy_from_slice(&client.to_le_bytes());
            let secret = IdentitySecret::from_seed(seed);
            Request::sign(&secret, NetworkId::default(), height - 1, &operations)
                .expect("within limits")
        })
        .collect();
    let body = Arc::new(Body::seal(ReplicaId(0), height, &requests));
    let payload = Payload::new(Height(height), height, vec![body.reference]);
    Block { payload, bodies: vec![body], decided: Bytes::from(vec![7; 500]) }
}
