//! Blocks that are not, called one after the other (`eth_simulateV1`).

use super::arguments::Arguments;
use super::context::Context;
use super::convert;
use super::dry_runs::{call, overrides};
use super::error::{self, Failure};
use super::module::{Module, Registered, computing};
use alloy_primitives::Bytes;
use alloy_rpc_types_eth::simulate::{
    SimBlock, SimCallResult, SimulateError, SimulatePayload, SimulatedBlock as ShownBlock,
};
use alloy_rpc_types_eth::{Block, Log, TransactionRequest};
use quorate_ledger::evm::{
    CallResult, Called, FoundLog, Query, SIMULATED_BLOCKS_MAX, Simulated, SimulatedBlock,
    SimulatedCall, SimulationFailure, SimulationResult,
};

/// Code of a call that stops for another reason than a revert.
const HALTED: i32 = -32_015;

/// Code of a simulation of too many blocks.
const TOO_MANY_BLOCKS: i32 = -38_026;

/// Most calls of a simulation.
const CALLS_MAX: usize = 5_000;

pub(super) fn register(module: &mut Module) -> Registered {
    computing(module, "eth_simulateV1", simulate)
}

fn simulate(
    context: &Context,
    mut arguments: Arguments<'_>,
) -> Result<Vec<ShownBlock<Block>>, Failure> {
    let payload: SimulatePayload = arguments.next()?;
    let at = context.chain.state(arguments.optional()?)?;
    let whole = payload.return_full_transactions;
    let simulated = simulated(payload)?;
    let results: Result<Vec<SimulationResult>, SimulationFailure> =
        context.chain.query_at(at, &Query::Simulate(simulated))?;
    let results = results.map_err(|failure| error::of_code(failure.code, failure.message))?;
    results.into_iter().map(|result| shown(result, whole)).collect()
}

fn simulated(payload: SimulatePayload) -> Result<Simulated, Failure> {
    let blocks = payload.block_state_calls;
    if blocks.is_empty() {
        return Err(error::invalid("empty input"));
    }
    if blocks.len() as u64 > SIMULATED_BLOCKS_MAX {
        return Err(error::of_code(TOO_MANY_BLOCKS, "too many blocks"));
    }
    if blocks.iter().map(|block| block.calls.len()).sum::<usize>() > CALLS_MAX {
        return Err(error::invalid(format!("at most {CALLS_MAX} calls are simulated")));
    }
    Ok(Simulated {
        blocks: blocks.into_iter().map(block).collect::<Result<_, _>>()?,
        validation: payload.validation,
        trace_transfers: payload.trace_transfers,
    })
}

fn block(block: SimBlock) -> Result<SimulatedBlock, Failure> {
    let overrides = overrides(block.state_overrides, block.block_overrides)?;
    let calls = block.calls.into_iter().map(simulated_call).collect::<Result<_, _>>()?;
    Ok(SimulatedBlock { overrides, calls })
}

fn simulated_call(request: TransactionRequest) -> Result<SimulatedCall, Failure> {
    let nonce = request.nonce;
    let price = request.gas_price.or(request.max_fee_per_gas).unwrap_or_default();
    let priority = request.max_priority_fee_per_gas.unwrap_or_default();
    // A legacy price is paid whole.
    let priority = if request.gas_price.is_some() { price } else { priority };
    Ok(SimulatedCall { call: call(request)?, nonce, fees: (price, priority) })
}

fn shown(
    SimulationResult { found, calls }: SimulationResult,
    whole: bool,
) -> Result<ShownBlock<Block>, Failure> {
    let header = convert::header(&found.block)?;
    let mut results = Vec::with_capacity(calls.len());
    for ((transaction_index, stored), result) in (0..).zip(&found.transactions).zip(calls) {
        let logs = (stored.logs_before..).zip(&stored.logs).map(|(index, log)| FoundLog {
            height: header.inner.number,
            block: found.block.hash,
            timestamp: header.inner.timestamp,
            transaction: stored.hash,
            transaction_index,
            index,
            log: log.clone(),
        });
        results.push(call_result(result, convert::logs(&logs.collect::<Vec<_>>())));
    }
    Ok(ShownBlock { inner: convert::block(found, whole)?, calls: results })
}

fn call_result(CallResult { called, gas_used }: CallResult, logs: Vec<Log>) -> SimCallResult {
    let failure = error::of_call(&called);
    let (status, is_revert) = (failure.is_none(), matches!(called, Called::Reverted { .. }));
    let return_data = match called {
        Called::Success { output, .. } | Called::Reverted { output } => output,
        Called::Halted { .. } | Called::Invalid { .. } => Bytes::new(),
    };
    let error = failure.map(|failure| SimulateError {
        code: if is_revert { failure.code() } else { HALTED },
        message: failure.message().to_owned(),
        data: is_revert.then(|| return_data.clone()),
    });
    SimCallResult { return_data, logs, gas_used, max_used_gas: None, status, error }
}
