//! Rules of the chain, and when they change (`eth_config`, EIP-7910).

use super::context::Context;
use super::error::{Failure, server};
use super::module::{Module, Registered, method};
use alloy_eips::eip2124::ForkHash;
use alloy_eips::eip7840::BlobParams;
use alloy_eips::eip7910::{EthConfig, EthForkConfig};
use alloy_primitives::Bytes;
use quorate_ledger::evm::BlockAt;
use quorate_node::unix_ms;
use std::collections::BTreeMap;

pub(super) fn register(module: &mut Module) -> Registered {
    method(module, "eth_config", |context, _| config(context))
}

fn config(context: &Context) -> Result<EthConfig, Failure> {
    let first = context.chain.block(BlockAt::Height(0), false)?;
    let first = first.ok_or_else(|| server("the first block is not kept"))?.block.hash;
    let mut forks = Vec::new();
    let mut id = ForkHash::from(first);
    for (activation_time, fork) in context.genesis.forks.activations() {
        // The rules of the first block have its hash alone (EIP-6122).
        if activation_time > 0 {
            id += activation_time;
        }
        forks.push(EthForkConfig {
            activation_time,
            // Blobs are refused.
            blob_schedule: BlobParams {
                target_blob_count: 0,
                max_blob_count: 0,
                ..BlobParams::cancun()
            },
            chain_id: context.genesis.chain_id,
            fork_id: Bytes::copy_from_slice(&id.0),
            precompiles: fork.precompiles(),
            // Nothing runs before a block's transactions or after them.
            system_contracts: BTreeMap::new(),
        });
    }
    let now = unix_ms() / 1_000;
    let later = forks.split_off(forks.partition_point(|fork| fork.activation_time <= now));
    let current = forks.pop().ok_or_else(|| server("the chain has not begun"))?;
    Ok(EthConfig { current, next: later.first().cloned(), last: later.last().cloned() })
}
