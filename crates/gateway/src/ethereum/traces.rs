//! Methods that trace: those of Geth (`debug_`) and of Erigon (`trace_`), and a chain's bytes as
//! they are hashed.

mod filter;

use super::arguments::Arguments;
use super::context::Context;
use super::dry_runs::{call, overrides};
use super::error::{Failure, internal, invalid, no_transaction, server};
use super::module::{Module, Registered, computing, method};
use super::simulate::CALLS_MAX;
use alloy_eips::BlockId;
use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_eth::{Index, TransactionRequest};
use jsonrpsee::core::{DeserializeOwned, JsonRawValue};
use quorate_ledger::evm::{
    BlockAt, Call, DryRun, FoundBlock, Overrides, Query, Recovered, ReplayParts, TraceBlock,
    TraceForm,
};
use quorate_node::unix_ms;
use quorate_types::Height;
use serde::Deserialize;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A trace, in JSON.
pub(super) type Trace = Box<JsonRawValue>;

/// Traces of one transaction of a block.
#[derive(Deserialize)]
struct OfOne {
    result: Vec<Trace>,
}

pub(super) fn register(module: &mut Module) -> Registered {
    computing(module, "debug_traceTransaction", |context, mut arguments| {
        let (hash, options) = (arguments.next()?, options(&mut arguments)?);
        of_transaction(context, hash, geth(&options))
    })?;
    for name in ["debug_traceBlockByNumber", "debug_traceBlockByHash"] {
        computing(module, name, |context, mut arguments| {
            let (found, options) = (found(context, &mut arguments)?, options(&mut arguments)?);
            trace(context, found, None, geth(&options))
        })?;
    }
    computing(module, "debug_traceCall", |context, mut arguments| {
        let call = call(arguments.next()?)?;
        let (at, block) = context.chain.call_block(arguments.optional()?)?;
        let mut options = options(&mut arguments)?;
        if options.get("txIndex").is_some_and(|index| !index.is_null()) {
            return Err(invalid("txIndex is not supported: calls run after the block's last one"));
        }
        let accounts = part(&mut options, "stateOverrides")?;
        let overrides = overrides(accounts, part(&mut options, "blockOverrides")?)?;
        let run = DryRun { call, block, overrides };
        shown(context, at, &Query::TraceCall(run, geth(&options)))
    })?;
    erigon(module)?;
    raw(module)
}

/// Methods of `trace_`.
fn erigon(module: &mut Module) -> Registered {
    computing(module, "trace_transaction", |context, mut arguments| {
        of_transaction(context, arguments.next()?, flat())
    })?;
    computing(module, "trace_get", |context, mut arguments| {
        let (hash, path) = (arguments.next()?, arguments.next::<Vec<Index>>()?);
        let traces = of_transaction(context, hash, flat())?;
        let traces: Vec<Trace> = serde_json::from_str(traces.get()).map_err(internal)?;
        let path: Vec<usize> = path.into_iter().map(usize::from).collect();
        for trace in traces {
            if filter::Located::read(&trace)?.trace_address == path {
                return Ok(Some(trace));
            }
        }
        Ok(None)
    })?;
    computing(module, "trace_block", |context, mut arguments| {
        flat_of_block(context, found(context, &mut arguments)?)
    })?;
    computing(module, "trace_filter", |context, mut arguments| {
        filter::filter(context, &arguments.next()?)
    })?;
    computing(module, "trace_replayTransaction", |context, mut arguments| {
        let hash = arguments.next()?;
        of_transaction(context, hash, replay(&arguments.next::<Vec<String>>()?)?)
    })?;
    computing(module, "trace_replayBlockTransactions", |context, mut arguments| {
        let found = found(context, &mut arguments)?;
        let traces = trace(context, found, None, replay(&arguments.next::<Vec<String>>()?)?)?;
        let traces: Vec<Replayed> = serde_json::from_str(traces.get()).map_err(internal)?;
        traces.into_iter().map(Replayed::named).collect::<Result<Vec<_>, _>>()
    })?;
    computing(module, "trace_call", |context, mut arguments| {
        let call = call(arguments.next()?)?;
        let form = replay(&arguments.next::<Vec<String>>()?)?;
        let (at, block) = context.chain.call_block(arguments.optional()?)?;
        let run = DryRun { call, block, overrides: Overrides::default() };
        shown(context, at, &Query::TraceCall(run, form))
    })?;
    computing(module, "trace_callMany", |context, mut arguments| {
        let calls: Vec<(TransactionRequest, Vec<String>)> = arguments.next()?;
        if calls.len() > CALLS_MAX {
            return Err(invalid(format!("at most {CALLS_MAX} calls are traced")));
        }
        let (at, block) = context.chain.call_block(arguments.optional()?)?;
        let calls = calls.into_iter().map(|(request, types)| Ok((call(request)?, replay(&types)?)));
        let calls = calls.collect::<Result<_, Failure>>()?;
        shown(context, at, &Query::TraceCalls(calls, block))
    })?;
    computing(module, "trace_rawTransaction", |context, mut arguments| {
        let raw: Bytes = arguments.next()?;
        let form = replay(&arguments.next::<Vec<String>>()?)?;
        let rules = context.chain.query(&Query::Rules)?;
        let transaction = Recovered::read(&raw, rules).map_err(no_transaction)?;
        // What no block would take is not shown as if one did.
        transaction.check_terms(&context.genesis, unix_ms()).map_err(server)?;
        let (at, block) = context.chain.call_block(None)?;
        let (call, overrides) = (Call::from(&transaction), Overrides::default());
        shown(context, at, &Query::TraceCall(DryRun { call, block, overrides }, form))
    })
}

/// A transaction's replay in a block's.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Replayed {
    tx_hash: B256,
    result: BTreeMap<String, Trace>,
}

impl Replayed {
    fn named(mut self) -> Result<BTreeMap<String, Trace>, Failure> {
        let hash = to_raw_value(&self.tx_hash).map_err(internal)?;
        self.result.insert("transactionHash".into(), hash);
        Ok(self.result)
    }
}

/// What is asked of a replay.
fn replay(types: &[String]) -> Result<TraceForm, Failure> {
    let mut parts = ReplayParts::default();
    for kind in types {
        match kind.as_str() {
            "trace" => parts.trace = true,
            "stateDiff" => parts.state_diff = true,
            "vmTrace" => parts.vm_trace = true,
            other => {
                let text = format!("there are trace, stateDiff and vmTrace, not '{other}'");
                return Err(invalid(text));
            }
        }
    }
    Ok(TraceForm::Replay(parts))
}

/// Calls of a block's transactions, one after the other.
fn flat_of_block(context: &Context, found: FoundBlock) -> Result<Vec<Trace>, Failure> {
    let traces = trace(context, found, None, flat())?;
    let traces: Vec<OfOne> = serde_json::from_str(traces.get()).map_err(internal)?;
    Ok(traces.into_iter().flat_map(|of_one| of_one.result).collect())
}

/// Bytes as they are hashed.
fn raw(module: &mut Module) -> Registered {
    method(module, "debug_getRawHeader", |context, mut arguments| {
        Ok(at(context, arguments.next()?, false)?.block.header)
    })?;
    method(module, "debug_getRawBlock", |context, mut arguments| {
        found(context, &mut arguments)?.encoded().map_err(internal)
    })?;
    computing(module, "debug_getRawReceipts", |context, mut arguments| {
        let found = found(context, &mut arguments)?;
        let receipt = |stored: &quorate_ledger::evm::StoredTransaction| stored.encoded_receipt();
        Ok(found.transactions.iter().map(receipt).collect::<Vec<Bytes>>())
    })?;
    method(module, "debug_getRawTransaction", |context, mut arguments| {
        let found = context.chain.transaction(arguments.next()?)?;
        Ok(found.map_or_else(Bytes::new, |found| found.transaction.raw))
    })
}

/// Options of a trace, or the default ones.
fn options(arguments: &mut Arguments<'_>) -> Result<Value, Failure> {
    Ok(arguments.optional()?.unwrap_or_else(|| json!({})))
}

pub(super) fn geth(options: &Value) -> TraceForm {
    TraceForm::Geth(options.to_string().into())
}

/// What Erigon calls traces.
pub(super) fn flat() -> TraceForm {
    geth(&json!({ "tracer": "flatCallTracer" }))
}

/// Takes one of the options of a call's trace.
fn part<T: DeserializeOwned>(options: &mut Value, name: &str) -> Result<Option<T>, Failure> {
    let Some(part) = options.as_object_mut().and_then(|options| options.remove(name)) else {
        return Ok(None);
    };
    serde_json::from_value(part).map_err(|error| invalid(format!("invalid {name}: {error}")))
}

/// The block that the next argument names, with its transactions.
fn found(context: &Context, arguments: &mut Arguments<'_>) -> Result<FoundBlock, Failure> {
    at(context, arguments.next()?, true)
}

fn at(context: &Context, at: BlockId, transactions: bool) -> Result<FoundBlock, Failure> {
    let found = match at {
        BlockId::Number(tag) => context.chain.block_by_tag(tag, transactions)?,
        BlockId::Hash(hash) => context.chain.block(BlockAt::Hash(hash.block_hash), transactions)?,
    };
    let found = found.ok_or_else(|| server("block not found"))?;
    if transactions && found.transactions.len() != found.block.transactions as usize {
        return Err(server("the transactions of this block are not kept any more"));
    }
    Ok(found)
}

pub(super) fn of_transaction(
    context: &Context,
    hash: B256,
    form: TraceForm,
) -> Result<Trace, Failure> {
    let found = context.chain.transaction(hash)?.ok_or_else(|| server("transaction not found"))?;
    let block = at(context, BlockId::number(found.location.height), true)?;
    trace(context, block, Some(found.location.index), form)
}

/// Traces a block's transactions, or one of them, on the state before the block.
fn trace(
    context: &Context,
    found: FoundBlock,
    transaction: Option<u32>,
    form: TraceForm,
) -> Result<Trace, Failure> {
    let height = found.block.header().map_err(internal)?.number;
    let before = height.checked_sub(1).ok_or_else(|| server("genesis is not traceable"))?;
    let of = TraceBlock { found, transaction, form };
    shown(context, Some(Height(before)), &Query::TraceBlock(of))
}

fn shown(context: &Context, at: Option<Height>, query: &Query) -> Result<Trace, Failure> {
    let trace = context.chain.answer(at, query)?;
    let text = String::from_utf8(trace.into()).map_err(internal)?;
    JsonRawValue::from_string(text).map_err(internal)
}
