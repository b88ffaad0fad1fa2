//! What a transaction would come to, and how much gas it needs.

use super::execution::{configuration, next};
use super::genesis::TRANSACTION_GAS_MAX;
use super::history;
use super::question::{Call, Called, EvmReader};
use super::stored::damaged;
use super::world::{ReadError, World};
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::B256;
use quorate_types::service::{State, StateError};
use revm::context::result::{EVMError, ExecutionResult};
use revm::context::{Context, TxEnv};
use revm::{ExecuteEvm, MainBuilder, MainContext};

/// Gas that a callee gets with a value, and may not have used up (EIP-150).
const STIPEND: u64 = 2_300;

/// An estimate may be too high by one part in so many.
const TOLERANCE: u64 = 64;

/// What a transaction comes to after the newest block.
///
/// # Errors
/// When the state cannot be read.
pub(super) fn call(
    reader: &EvmReader,
    state: &dyn State,
    call: &Call,
) -> Result<Called, StateError> {
    Ok(run(reader, state, call, gas(call))?.0)
}

/// How much gas a transaction needs, within a part in [`TOLERANCE`]; or what it comes to with all that it may
/// have.
///
/// # Errors
/// When the state cannot be read.
pub(super) fn estimate(
    reader: &EvmReader,
    state: &dyn State,
    call: &Call,
) -> Result<Result<u64, Called>, StateError> {
    let mut enough = gas(call);
    let (Called::Success { gas_used, .. }, refunded) = run(reader, state, call, enough)? else {
        return run(reader, state, call, enough).map(|(called, _)| Err(called));
    };
    let mut too_little = gas_used - 1;
    let likely = (gas_used + refunded + STIPEND) * 64 / 63;
    let mut attempt = likely.min(enough);
    while enough - too_little > enough / TOLERANCE {
        match run(reader, state, call, attempt)?.0 {
            Called::Success { .. } => enough = attempt,
            _ => too_little = attempt,
        }
        if enough <= too_little + 1 {
            break;
        }
        attempt = too_little + (enough - too_little) / 2;
    }
    Ok(Ok(enough))
}

/// What a call may use: tools name more than any transaction may have where they mean all.
fn gas(call: &Call) -> u64 {
    call.gas.map_or(TRANSACTION_GAS_MAX, |gas| gas.min(TRANSACTION_GAS_MAX))
}

/// What it comes to with so much gas, and how much was refunded.
fn run(
    reader: &EvmReader,
    state: &dyn State,
    call: &Call,
    gas: u64,
) -> Result<(Called, u64), StateError> {
    let meta = history::meta(state)?.ok_or_else(damaged)?;
    let newest = history::block(state, meta.height)?.ok_or_else(damaged)?.header()?;
    let mut configuration = configuration(reader.genesis.chain_id);
    configuration.disable_nonce_check = true;
    configuration.disable_eip3607 = true;
    configuration.disable_base_fee = true;
    let hashes = |height| Ok(history::block(state, height)?.map_or(B256::ZERO, |block| block.hash));
    let mut evm = Context::mainnet()
        .with_db(World::new(state, &reader.codes, &hashes))
        .with_cfg(configuration)
        .with_block(next(&meta, newest.timestamp * 1_000).block(&reader.genesis))
        .build_mainnet();
    match evm.transact_one(env(call, gas, reader.genesis.chain_id)) {
        Ok(result) => Ok(called(result)),
        Err(EVMError::Database(ReadError(error))) => Err(error),
        Err(error) => Ok((Called::Invalid { reason: error.to_string() }, 0)),
    }
}

fn env(call: &Call, gas: u64, chain_id: u64) -> TxEnv {
    let item = |(address, keys): &(_, Vec<B256>)| AccessListItem {
        address: *address,
        storage_keys: keys.clone(),
    };
    let access_list = AccessList(call.access_list.iter().map(item).collect());
    TxEnv {
        tx_type: u8::from(!access_list.0.is_empty()),
        caller: call.from,
        gas_limit: gas,
        gas_price: call.gas_price,
        kind: call.kind(),
        value: call.value,
        data: call.data.clone(),
        chain_id: Some(chain_id),
        access_list,
        ..TxEnv::default()
    }
}

fn called(result: ExecutionResult) -> (Called, u64) {
    match result {
        ExecutionResult::Success { output, gas, .. } => {
            let (gas_used, refunded) = (gas.tx_gas_used(), gas.final_refunded());
            (Called::Success { output: output.into_data(), gas_used }, refunded)
        }
        ExecutionResult::Revert { output, .. } => (Called::Reverted { output }, 0),
        ExecutionResult::Halt { reason, .. } => {
            (Called::Halted { reason: format!("{reason:?}") }, 0)
        }
    }
}
