//! Fees that blocks paid, for `eth_feeHistory`.

use super::arguments::Quantity;
use super::chain::Chain;
use super::error::{Failure, internal, invalid};
use alloy_consensus::Transaction as _;
use alloy_rpc_types_eth::FeeHistory;
use quorate_ledger::evm::{BlockAt, FoundBlock, StoredTransaction};

/// Most blocks of one answer.
const BLOCKS_MAX: u64 = 1_024;

/// Most percentiles of one question.
const PERCENTILES_MAX: usize = 100;

/// Fee history of the blocks up to `newest`: base fees, the share of the gas limit that was used,
/// and tips by percentiles of gas.
pub(super) fn history(
    chain: &Chain,
    count: Quantity,
    newest: u64,
    percentiles: Option<&[f64]>,
) -> Result<FeeHistory, Failure> {
    if newest > chain.newest() {
        return Err(invalid("request beyond head block"));
    }
    check_percentiles(percentiles.unwrap_or_default())?;
    let oldest = (newest + 1).saturating_sub(count.number().min(BLOCKS_MAX));
    let mut history = FeeHistory { oldest_block: oldest, ..FeeHistory::default() };
    let mut rewards = Vec::new();
    for height in oldest..=newest {
        let found = chain.block(BlockAt::Height(height), percentiles.is_some())?;
        let found = found.ok_or_else(|| internal(format!("block {height} is missing")))?;
        let header = found.block.header().map_err(internal)?;
        let base_fee = header.base_fee_per_gas.unwrap_or_default();
        history.base_fee_per_gas.push(base_fee.into());
        history.gas_used_ratio.push(header.gas_used as f64 / header.gas_limit as f64);
        if let Some(percentiles) = percentiles {
            rewards.push(at_percentiles(tips(&found, base_fee)?, percentiles));
        }
    }
    // Every block's base fee is the same, and so is the next one's.
    history.base_fee_per_gas.extend(history.base_fee_per_gas.last().copied());
    history.base_fee_per_blob_gas = vec![0; history.base_fee_per_gas.len()];
    history.blob_gas_used_ratio = vec![0.0; history.gas_used_ratio.len()];
    history.reward = percentiles.map(|_| rewards);
    Ok(history)
}

fn check_percentiles(all: &[f64]) -> Result<(), Failure> {
    if all.len() > PERCENTILES_MAX {
        return Err(invalid(format!("there are at most {PERCENTILES_MAX} percentiles")));
    }
    if !all.is_sorted() || !all.iter().all(|percentile| (0.0..=100.0).contains(percentile)) {
        return Err(invalid("percentiles are 0 to 100, each at least the one before"));
    }
    Ok(())
}

/// Effective tips of a block's transactions, each with the gas that paid it.
fn tips(found: &FoundBlock, base_fee: u64) -> Result<Vec<(u128, u64)>, Failure> {
    let tip = |stored: &StoredTransaction| {
        let envelope = stored.envelope().map_err(internal)?;
        let tip = envelope.effective_tip_per_gas(base_fee).unwrap_or_default();
        Ok((tip, stored.gas_used))
    };
    found.transactions.iter().map(tip).collect()
}

/// The tips that so much of the gas was paid at most; 0 where there was none.
fn at_percentiles(mut tips: Vec<(u128, u64)>, percentiles: &[f64]) -> Vec<u128> {
    tips.sort_unstable();
    let total: u64 = tips.iter().map(|(_, gas)| gas).sum();
    let at = |percentile: &f64| {
        let threshold = total as f64 * percentile / 100.0;
        let mut sum = 0.0;
        let reached = tips.iter().find(|(_, gas)| {
            sum += *gas as f64;
            sum >= threshold
        });
        reached.or(tips.last()).map_or(0, |(tip, _)| *tip)
    };
    percentiles.iter().map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_few_and_in_order() {
        assert!(check_percentiles(&[0.0, 50.0, 50.0, 100.0]).is_ok());
        let refused = [vec![2.0, 1.0], vec![-0.1], vec![100.1], vec![f64::NAN], vec![1.0; 101]];
        assert!(refused.iter().all(|all| check_percentiles(all).is_err()));
    }

    #[test]
    fn percentiles_are_weighed_by_gas() {
        let tips = vec![(5, 10), (1, 80), (9, 10)];
        assert_eq!(at_percentiles(tips, &[0.0, 50.0, 85.0, 100.0]), [1, 1, 5, 9]);
        assert_eq!(at_percentiles(Vec::new(), &[50.0]), [0]);
    }
}
