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

/// Most calls that are run one after the other.
pub(super) const CALLS_MAX: usize = 5_000;

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
        let SimulationFailure { code, message } = SimulationFailure::too_many_blocks();
        return Err(error::of_code(code, message));
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
    Ok(SimulatedCall { call: call(request)?, nonce })
}

fn shown(
    SimulationResult { found, calls }: SimulationResult,
    whole: bool,
) -> Result<ShownBlock<Block>, Failure> {
    let header = convert::header(&found.block)?;
    let (mut results, mut first) = (Vec::with_capacity(calls.len()), 0);
    for ((transaction_index, stored), mut result) in (0..).zip(&found.transactions).zip(calls) {
        let logs = std::mem::take(&mut result.logs);
        let logs = (first..).zip(logs).map(|(index, log)| FoundLog {
            height: header.inner.number,
            block: found.block.hash,
            timestamp: header.inner.timestamp,
            transaction: stored.hash,
            transaction_index,
            index,
            log,
        });
        let logs: Vec<FoundLog> = logs.collect();
        first += u32::try_from(logs.len()).map_err(error::internal)?;
        results.push(call_result(result, convert::logs(&logs)));
    }
    Ok(ShownBlock { inner: convert::block(found, whole)?, calls: results })
}

fn call_result(result: CallResult, logs: Vec<Log>) -> SimCallResult {
    let CallResult { called, gas_used, max_used_gas, .. } = result;
    let failure = error::of_call(&called);
    let status = failure.is_none();
    // A revert's data are its error's alone.
    let (return_data, data) = match called {
        Called::Success { output, .. } => (output, None),
        Called::Reverted { output } => (Bytes::new(), Some(output)),
        Called::Halted { .. } | Called::Invalid { .. } => (Bytes::new(), None),
    };
    let error = failure.map(|failure| SimulateError {
        code: if data.is_some() { failure.code() } else { HALTED },
        message: failure.message().to_owned(),
        data,
    });
    let max_used_gas = Some(max_used_gas);
    SimCallResult { return_data, logs, gas_used, max_used_gas, status, error }
}
