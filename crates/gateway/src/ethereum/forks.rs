//! Rules of the chain, and when they change (`eth_config`, EIP-7910).

use super::context::Context;
use super::error::{Failure, server};
use super::module::{Module, Registered, method};
use alloy_eips::eip2124::ForkHash;
use alloy_eips::eip7840::BlobParams;
use alloy_eips::eip7910::{EthConfig, EthForkConfig};
use alloy_primitives::{B256, Bytes};
use quorate_ledger::evm::{BlockAt, Fork, ForkSchedule, Genesis};
use quorate_node::unix_ms;
use std::collections::BTreeMap;

pub(super) fn register(module: &mut Module) -> Registered {
    method(module, "eth_config", |context, _| config(context))
}

fn config(context: &Context) -> Result<EthConfig, Failure> {
    let first = context.chain.block(BlockAt::Height(0), false)?;
    let first = first.ok_or_else(|| server("the first block is not kept"))?.block.hash;
    let Genesis { chain_id, forks, .. } = *context.genesis;
    at(unix_ms() / 1_000, all(first, chain_id, forks))
}

/// Rules of a chain with this first block, in the order in which they come.
fn all(first: B256, chain_id: u64, forks: ForkSchedule) -> Vec<EthForkConfig> {
    let mut id = ForkHash::from(first);
    let rules = |(activation_time, fork): (u64, Fork)| {
        // The rules of the first block have its hash alone (EIP-6122).
        if activation_time > 0 {
            id += activation_time;
        }
        EthForkConfig {
            activation_time,
            // Blobs are refused.
            blob_schedule: BlobParams {
                target_blob_count: 0,
                max_blob_count: 0,
                ..BlobParams::cancun()
            },
            chain_id,
            fork_id: Bytes::copy_from_slice(&id.0),
            precompiles: fork.precompiles(),
            // Nothing runs before a block's transactions or after them.
            system_contracts: BTreeMap::new(),
        }
    };
    forks.activations().into_iter().map(rules).collect()
}

/// Rules at a time, with those that come next and those that come last.
fn at(now: u64, mut forks: Vec<EthForkConfig>) -> Result<EthConfig, Failure> {
    let later = forks.split_off(forks.partition_point(|fork| fork.activation_time <= now));
    let current = forks.pop().ok_or_else(|| server("the chain has not begun"))?;
    Ok(EthConfig { current, next: later.first().cloned(), last: later.last().cloned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::b256;

    /// Of the test network Hoodi, whose rules were Cancun's from its first block on (EIP-7910).
    #[test]
    fn ids_of_rules_are_those_of_other_nodes() {
        let first = b256!("bbe312868b376a3001692a646dd2d7d1e4406380dfd86b98aa8a34d1557c971b");
        let forks = ForkSchedule { prague: Some(1_742_999_832), osaka: None };
        let all = all(first, 560_048, forks);
        assert_eq!(all[1].fork_id.to_string(), "0x0929e24e");
    }

    #[test]
    fn rules_that_come_are_told_before_they_do() {
        let forks = ForkSchedule { prague: Some(100), osaka: Some(200) };
        let times = |now| {
            let EthConfig { current, next, last } =
                at(now, all(B256::ZERO, 7, forks)).expect("it has begun");
            let time = |fork: Option<EthForkConfig>| fork.map(|fork| fork.activation_time);
            (current.activation_time, time(next), time(last))
        };
        assert_eq!(times(99), (0, Some(100), Some(200)));
        assert_eq!(times(100), (100, Some(200), Some(200)));
        assert_eq!(times(200), (200, None, None));
    }
}
