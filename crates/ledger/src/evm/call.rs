//! Dry runs of transactions: their results, and the gas that they need.

use super::Genesis;
use super::execution::{configuration, next};
use super::genesis::TRANSACTION_GAS_MAX;
use super::history;
use super::stored::damaged;
use super::world::{Codes, ReadError, World};
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_types::service::{State, StateError};
use revm::context::result::{EVMError, ExecutionResult};
use revm::context::{Context, TxEnv};
use revm::{ExecuteEvm, MainBuilder, MainContext};

/// Gas that a callee gets with a value, and may not have used up (EIP-150).
const STIPEND: u64 = 2_300;

/// An estimate may be too high by one part in so many.
const TOLERANCE: u64 = 64;

/// A transaction that nobody signed.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Call {
    /// Address that it is run for, as its sender.
    pub from: Address,
    /// Address that it calls; without, it creates a contract.
    pub to: Option<Address>,
    /// Most gas; by default, and at most, as much as a transaction may use.
    pub gas: Option<u64>,
    /// Wei a unit of gas.
    pub gas_price: u128,
    /// Wei that it carries.
    pub value: U256,
    /// Input of the call.
    pub data: Bytes,
    /// Addresses and slots that it declares to touch (EIP-2930).
    pub access_list: Vec<(Address, Vec<B256>)>,
}

impl Call {
    pub(super) fn kind(&self) -> TxKind {
        self.to.map_or(TxKind::Create, TxKind::Call)
    }
}

/// Result of a dry run.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Called {
    /// The call succeeds and returns.
    Success {
        /// Bytes that it returns; of a creation, the contract's code.
        output: Bytes,
        /// Gas that it uses.
        gas_used: u64,
    },
    /// The call is reverted by a contract.
    Reverted {
        /// Bytes that the revert returns.
        output: Bytes,
    },
    /// The call stops for another reason, such as a lack of gas.
    Halted {
        /// Reason as the virtual machine names it.
        reason: String,
    },
    /// The call cannot begin.
    Invalid {
        /// Reason as Ethereum's tools know it.
        reason: String,
    },
}

/// Runs a transaction after the newest block, and keeps nothing of it.
///
/// # Errors
/// When the state cannot be read.
pub(super) fn call(
    genesis: &Genesis,
    codes: &Codes,
    state: &dyn State,
    call: &Call,
) -> Result<Called, StateError> {
    Ok(run(genesis, codes, state, call, gas(call))?.0)
}

/// Estimates the gas that a transaction needs, within a part in [`TOLERANCE`]; or gives its result
/// with all that it may have.
///
/// # Errors
/// When the state cannot be read.
pub(super) fn estimate(
    genesis: &Genesis,
    codes: &Codes,
    state: &dyn State,
    call: &Call,
) -> Result<Result<u64, Called>, StateError> {
    let mut enough = gas(call);
    let (Called::Success { gas_used, .. }, refunded) = run(genesis, codes, state, call, enough)?
    else {
        return run(genesis, codes, state, call, enough).map(|(called, _)| Err(called));
    };
    let mut too_little = gas_used - 1;
    let likely = (gas_used + refunded + STIPEND) * 64 / 63;
    let mut attempt = likely.min(enough);
    while enough - too_little > enough / TOLERANCE {
        match run(genesis, codes, state, call, attempt)?.0 {
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

/// Gas limit of a call: tools name more than any transaction may have where they mean all.
fn gas(call: &Call) -> u64 {
    call.gas.map_or(TRANSACTION_GAS_MAX, |gas| gas.min(TRANSACTION_GAS_MAX))
}

/// Runs a call with so much gas; gives the result, and the gas refunded.
fn run(
    genesis: &Genesis,
    codes: &Codes,
    state: &dyn State,
    call: &Call,
    gas: u64,
) -> Result<(Called, u64), StateError> {
    let meta = history::meta(state)?.ok_or_else(damaged)?;
    let newest = history::block(state, meta.height)?.ok_or_else(damaged)?.header()?;
    let mut configuration = configuration(genesis.chain_id);
    configuration.disable_nonce_check = true;
    configuration.disable_eip3607 = true;
    configuration.disable_base_fee = true;
    let hashes = |height| Ok(history::block(state, height)?.map_or(B256::ZERO, |block| block.hash));
    let mut evm = Context::mainnet()
        .with_db(World::new(state, codes, &hashes))
        .with_cfg(configuration)
        .with_block(next(&meta, newest.timestamp * 1_000).block(genesis))
        .build_mainnet();
    match evm.transact_one(env(call, gas, genesis.chain_id)) {
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
