//! Methods that trace: those of Geth (`debug_`) and of Erigon (`trace_`), and a chain's bytes as
//! they are hashed.

mod filter;

use super::arguments::Arguments;
use super::context::Context;
use super::dry_runs::{call, overrides};
use super::error::{Failure, internal, invalid, server};
use super::module::{Module, Registered, computing, method};
use alloy_eips::BlockId;
use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_eth::Index;
use jsonrpsee::core::{DeserializeOwned, JsonRawValue};
use quorate_ledger::evm::{BlockAt, DryRun, FoundBlock, Overrides, Query, TraceBlock, TraceForm};
use quorate_types::Height;
use serde::Deserialize;
use serde_json::{Value, json};

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
        traces.into_iter().map(Replayed::named).collect::<Result<Vec<Value>, _>>()
    })?;
    computing(module, "trace_call", |context, mut arguments| {
        let call = call(arguments.next()?)?;
        let form = replay(&arguments.next::<Vec<String>>()?)?;
        let (at, block) = context.chain.call_block(arguments.optional()?)?;
        let run = DryRun { call, block, overrides: Overrides::default() };
        shown(context, at, &Query::TraceCall(run, form))
    })
}

/// A transaction's replay in a block's.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Replayed {
    tx_hash: B256,
    result: Value,
}

impl Replayed {
    fn named(self) -> Result<Value, Failure> {
        let Value::Object(mut result) = self.result else {
            return Err(internal("a replay is an object"));
        };
        result.insert("transactionHash".into(), json!(self.tx_hash));
        Ok(Value::Object(result))
    }
}

/// What is asked of a replay.
fn replay(types: &[String]) -> Result<TraceForm, Failure> {
    let (mut trace, mut state_diff) = (false, false);
    for kind in types {
        match kind.as_str() {
            "trace" => trace = true,
            "stateDiff" => state_diff = true,
            "vmTrace" => {
                let text = "there is no vmTrace: the steps are in debug_traceTransaction";
                return Err(invalid(text));
            }
            other => return Err(invalid(format!("there is trace and stateDiff, not '{other}'"))),
        }
    }
    Ok(TraceForm::Replay { trace, state_diff })
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
