//! Methods that run a transaction which nobody signed, and keep nothing of it.

use super::arguments::Arguments;
use super::context::Context;
use super::error::{self, Failure, internal, invalid};
use super::module::{Module, Registered, computing};
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::map::{B256HashMap, HashMap};
use alloy_primitives::{Address, B256, Bytes, U64};
use alloy_rpc_types_eth::state::{AccountOverride as GivenAccount, StateOverride};
use alloy_rpc_types_eth::{AccessListResult, BlockOverrides, TransactionRequest};
use quorate_ledger::evm::{
    Accessed, AccountOverride, BlockOverride, Call, Called, DryRun, Overrides, Query,
};
use quorate_types::Height;

/// Most accounts, and slots of all of them, that a call takes for other than they are.
const OVERRIDDEN_MAX: usize = 10_000;

/// Most delegations of a call, each of which has whose it is recovered (EIP-7702): the gas of a
/// transaction pays for so many.
const AUTHORIZATIONS_MAX: usize = 1_200;

pub(super) fn register(module: &mut Module) -> Registered {
    computing(module, "eth_call", |context, arguments| {
        let (at, run) = dry_run(context, arguments)?;
        match context.chain.query_at(at, &Query::Call(run))? {
            Called::Success { output, .. } => Ok(output),
            called => Err(failed(&called)),
        }
    })?;
    computing(module, "eth_estimateGas", |context, arguments| {
        let (at, run) = dry_run(context, arguments)?;
        let estimate: Result<u64, Called> = context.chain.query_at(at, &Query::Estimate(run))?;
        estimate.map(U64::from).map_err(|called| failed(&called))
    })?;
    computing(module, "eth_createAccessList", |context, arguments| {
        let (at, run) = dry_run(context, arguments)?;
        let Accessed { list, called, gas_used } =
            context.chain.query_at(at, &Query::AccessList(run))?;
        let item = |(address, storage_keys)| AccessListItem { address, storage_keys };
        let access_list = AccessList(list.into_iter().map(item).collect());
        let error = error::of_call(&called).map(|failure| failure.message().to_owned());
        Ok(AccessListResult {
            access_list,
            gas_used: alloy_primitives::U256::from(gas_used),
            error,
        })
    })
}

fn failed(called: &Called) -> Failure {
    error::of_call(called).unwrap_or_else(|| internal("it succeeds, and has no estimate"))
}

/// A transaction, the block that it is to take part in, and what is different there; with the
/// height of the state that it runs on.
fn dry_run(
    context: &Context,
    mut arguments: Arguments<'_>,
) -> Result<(Option<Height>, DryRun), Failure> {
    let call = call(arguments.next()?)?;
    let (at, block) = context.chain.call_block(arguments.optional()?)?;
    let (accounts, of_block) = (arguments.optional()?, arguments.optional()?);
    Ok((at, DryRun { call, block, overrides: overrides(accounts, of_block)? }))
}

/// A transaction as a caller describes it.
pub(super) fn call(request: TransactionRequest) -> Result<Call, Failure> {
    let (max_fee, priority_fee) = fees(&request)?;
    let data = request.input.try_into_unique_input().map_err(invalid)?.unwrap_or_default();
    let access_list = request.access_list.unwrap_or_default().0.into_iter();
    let authorizations = request.authorization_list.unwrap_or_default();
    if authorizations.len() > AUTHORIZATIONS_MAX {
        let text = format!("a call brings at most {AUTHORIZATIONS_MAX} authorizations");
        return Err(invalid(text));
    }
    Ok(Call {
        from: request.from.unwrap_or_default(),
        to: request.to.and_then(|to| to.to().copied()),
        gas: request.gas,
        max_fee,
        priority_fee,
        value: request.value.unwrap_or_default(),
        data,
        access_list: access_list.map(|item| (item.address, item.storage_keys)).collect(),
        authorizations,
    })
}

/// Wei that a caller names for a unit of gas, and those for whoever proposes. One that names none
/// has nothing paid.
fn fees(request: &TransactionRequest) -> Result<(u128, Option<u128>), Failure> {
    let (most, priority) = (request.max_fee_per_gas, request.max_priority_fee_per_gas);
    match request.gas_price {
        Some(_) if most.is_some() || priority.is_some() => {
            Err(invalid("both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified"))
        }
        Some(price) => Ok((price, None)),
        None => Ok((most.unwrap_or_default(), Some(priority.unwrap_or_default()))),
    }
}

/// What a caller has taken for granted.
pub(super) fn overrides(
    accounts: Option<StateOverride>,
    block: Option<BlockOverrides>,
) -> Result<Overrides, Failure> {
    let accounts = accounts.unwrap_or_default();
    let slots = |of: &Option<B256HashMap<B256>>| of.as_ref().map_or(0, HashMap::len);
    let named = |with: &GivenAccount| 1 + slots(&with.state) + slots(&with.state_diff);
    if accounts.values().map(named).sum::<usize>() > OVERRIDDEN_MAX {
        let text = format!("at most {OVERRIDDEN_MAX} accounts and slots are overridden");
        return Err(invalid(text));
    }
    let accounts = accounts.into_iter().map(account).collect::<Result<_, _>>()?;
    Ok(Overrides { accounts, block: of_block(&block.unwrap_or_default())? })
}

fn account(
    (address, given): (Address, GivenAccount),
) -> Result<(Address, AccountOverride), Failure> {
    if given.move_precompile_to.is_some() {
        return Err(invalid("precompiles are not moved"));
    }
    if given.state.is_some() && given.state_diff.is_some() {
        return Err(invalid(format!("account {address} has both 'state' and 'stateDiff'")));
    }
    // Else it is no delegation (EIP-7702), and nothing that a machine would run.
    let is_odd =
        |code: &Bytes| code.starts_with(&[0xef, 0x01]) && (code.len() != 23 || code[2] != 0);
    if given.code.as_ref().is_some_and(is_odd) {
        return Err(invalid(format!("the code of account {address} is none")));
    }
    let sorted = |slots: B256HashMap<B256>| {
        let mut slots: Vec<(B256, B256)> = slots.into_iter().collect();
        slots.sort();
        slots
    };
    let with = AccountOverride {
        nonce: given.nonce,
        balance: given.balance,
        code: given.code,
        storage: given.state.map(sorted),
        slots: given.state_diff.map(sorted).unwrap_or_default(),
    };
    Ok((address, with))
}

fn of_block(given: &BlockOverrides) -> Result<BlockOverride, Failure> {
    let is_other = given.difficulty.is_some() || given.blob_base_fee.is_some();
    if is_other || given.block_hash.as_ref().is_some_and(|hashes| !hashes.is_empty()) {
        return Err(invalid("difficulty, blobBaseFee and blockHash of a block are not overridden"));
    }
    let base_fee = given.base_fee.map(u64::try_from).transpose();
    Ok(BlockOverride {
        number: given.number,
        time: given.time,
        gas_limit: given.gas_limit,
        coinbase: given.coinbase,
        random: given.random,
        base_fee: base_fee.map_err(|_| invalid("a base fee is below 2^64"))?,
    })
}
