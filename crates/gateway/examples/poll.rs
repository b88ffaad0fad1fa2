//! A service of one's own: a poll, replicated by four validators in this process.
//!
//! `cargo run --release -p quorate-gateway --example poll`

use bytes::Bytes;
use quorate_crypto::{Digest, KeyCache, hash_parts};
use quorate_engine::{Settings, reject_answers};
use quorate_gateway::Connection;
use quorate_node::config::load_committee;
use quorate_node::{NodeConfig, Testnet, TestnetPlan, Validator};
use quorate_types::service::{
    BlockContext, KeyRange, Operation, Outcome, Service, State, StateError,
};
use quorate_types::{Committee, ReplicaId};
use std::error::Error;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Each client has one vote; the result of a vote is how many its choice has.
struct Poll;

const CHOICES: [&[u8]; 3] = [b"tea", b"coffee", b"water"];

fn count(state: &dyn State, choice: &[u8]) -> Result<u64, StateError> {
    let bytes = state.get(&[b"c", choice].concat())?.unwrap_or_else(|| vec![0; 8]);
    Ok(u64::from_le_bytes(bytes.try_into().expect("written below")))
}

impl Service for Poll {
    fn name(&self) -> &'static str {
        "poll"
    }

    /// Admits votes for a known choice, whatever the state is.
    fn admit(&self, operation: Operation<'_>) -> Result<(), String> {
        let is_choice = CHOICES.contains(&operation.bytes.as_ref());
        is_choice.then_some(()).ok_or_else(|| "choose tea, coffee or water".to_owned())
    }

    fn execute(
        &mut self,
        state: &mut dyn State,
        _: BlockContext,
        operations: &[Operation<'_>],
    ) -> Result<Vec<Outcome>, StateError> {
        let mut outcomes = Vec::new();
        for operation in operations {
            let voter = [b"v", &operation.client.0.0[..]].concat();
            if state.get(&voter)?.is_some() {
                outcomes.push(Outcome::Refused(Bytes::from("you have voted")));
                continue;
            }
            let votes = count(state, operation.bytes)? + 1;
            state.put(&voter, operation.bytes)?;
            state.put(&[b"c", operation.bytes.as_ref()].concat(), &votes.to_le_bytes())?;
            outcomes.push(Outcome::Applied(Bytes::copy_from_slice(&votes.to_le_bytes())));
        }
        Ok(outcomes)
    }

    /// A hash over everything: fine for a small state. The key-value store keeps a tree instead.
    fn root(&self, state: &dyn State) -> Result<Digest, StateError> {
        let mut entries = Vec::new();
        state.scan(KeyRange::ALL, &mut |key, value| {
            entries.extend([key.to_vec(), value.to_vec()]);
            ControlFlow::Continue(())
        })?;
        let parts: Vec<&[u8]> = entries.iter().map(Vec::as_slice).collect();
        Ok(hash_parts("an example's poll", &parts))
    }
}

async fn vote(committee: Arc<Committee>, choice: &'static str) -> Result<(), Box<dyn Error>> {
    // A connection has a key of its own: it is a voter.
    let config = Connection::config(Arc::clone(&committee), ReplicaId(0), reject_answers);
    let voter = Connection::open(&config)?;
    let done = voter.execute(Bytes::from(choice)).await?;
    let (receipt, _) = done.receipt.ok_or("certificates are on")?;
    receipt.verify(&committee)?;
    println!("{choice}: {:?} at {}, proven", done.outcome, done.height);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("quorate-poll-{}", std::process::id()));
    let settings = Settings { execution_certificates: true, ..Settings::default() };
    let service = "poll".to_owned();
    let plan = TestnetPlan { service, base_port: 7_900, settings, ..TestnetPlan::default() };
    let testnet = Testnet::create(&folder, &plan)?;
    let mut validators = Vec::new();
    for config in &testnet.configs {
        validators.push(Validator::start(&NodeConfig::load(config)?, Box::new(Poll))?);
    }
    let committee = Arc::new(load_committee(&testnet.committee, KeyCache::On)?);
    let runtime = tokio::runtime::Runtime::new()?;
    for choice in ["tea", "coffee", "tea", "soup"] {
        runtime.block_on(vote(Arc::clone(&committee), choice))?;
    }
    drop(validators);
    Ok(std::fs::remove_dir_all(folder)?)
}
