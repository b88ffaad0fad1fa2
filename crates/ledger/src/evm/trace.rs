//! Traces: transactions run once more, and what they did on the way.
//!
//! The inspectors are those of `revm-inspectors`, whose traces have the form of Geth's and of
//! Erigon's. A budget runs beside them: a transaction may take millions of steps, and a trace of
//! them many times the memory of whoever makes it.

use super::Genesis;
use super::call::{Call, Called, Inspected, Simulation, called};
use super::execution::{self, ExecutionContext, configuration, hash_of, next};
use super::history::{self, FoundBlock, StoredBlock, StoredTransaction};
use super::stored::damaged;
use super::transaction::Recovered;
use super::world::{Codes, ReadError, World};
use alloy_consensus::Header;
use alloy_primitives::{Address, B256};
use alloy_rpc_types_trace::common::TraceResult;
use alloy_rpc_types_trace::geth::{GethDebugTracingOptions, GethTrace};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_types::service::{State, StateError};
use revm::context::result::EVMError;
use revm::context::{Context, ContextError, ContextTr};
use revm::interpreter::{CallInputs, CallOutcome, CreateInputs, CreateOutcome, Interpreter};
use revm::primitives::Log;
use revm::{ExecuteCommitEvm, InspectEvm, Inspector, MainBuilder, MainContext};
use revm_inspectors::access_list::AccessListInspector;
use revm_inspectors::tracing::{DebugInspector, DebugInspectorError, TransactionContext};

/// Most bytes of a trace, as they are reckoned while it is made: of its JSON, roughly.
pub const TRACE_BYTES_MAX: usize = 32 << 20;

/// Bytes of JSON that a step, a word of its stack, a frame and a log take.
const STEP_BYTES: usize = 130;
const WORD_BYTES: usize = 69;
const FRAME_BYTES: usize = 400;

/// Transactions of a block to be traced.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct TraceBlock {
    /// The block with its transactions: a view of the state before it does not have them.
    pub found: FoundBlock,
    /// Index of one transaction in it, whose trace is wanted alone; `None`: those of all, each with
    /// its hash.
    pub transaction: Option<u32>,
    /// Options of Geth's `debug_traceTransaction`, as JSON.
    pub options: Vec<u8>,
}

/// What a dry run touches.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Accessed {
    /// Addresses, each with its slots.
    pub list: Vec<(Address, Vec<B256>)>,
    /// What it comes to with that list declared.
    pub called: Called,
    /// Gas that it uses with that list declared.
    pub gas_used: u64,
}

/// JSON, or why there is none.
type Answer = Result<Result<bytes::Bytes, String>, StateError>;

/// Bytes of a trace that are left.
struct Budget {
    left: usize,
    /// Set where each step is part of the trace, with its stack unless that is left out.
    steps: Option<bool>,
    /// Steps that are recorded, where the caller wants no more.
    limit: Option<u64>,
}

impl Budget {
    fn of(options: &GethDebugTracingOptions) -> Self {
        let (config, is_log) = (&options.config, options.tracer.is_none());
        Self {
            left: TRACE_BYTES_MAX,
            steps: is_log.then(|| config.disable_stack != Some(true)),
            limit: config.limit.filter(|limit| *limit > 0),
        }
    }

    /// Takes so many bytes; ends the transaction where they are not there.
    fn take(&mut self, bytes: usize, context: &mut impl ContextTr) -> bool {
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or_default();
        if left.is_none() && context.error().is_ok() {
            let most = TRACE_BYTES_MAX >> 20;
            let reason =
                format!("the trace is larger than {most} MiB: leave out stacks, or limit it");
            *context.error() = Err(ContextError::Custom(reason));
        }
        left.is_some()
    }
}

impl<CTX: ContextTr> Inspector<CTX> for Budget {
    fn step(&mut self, interpreter: &mut Interpreter, context: &mut CTX) {
        let Some(with_stack) = self.steps else { return };
        if let Some(limit) = &mut self.limit {
            let Some(rest) = limit.checked_sub(1) else { return };
            *limit = rest;
        }
        let words = if with_stack { interpreter.stack.len() } else { 0 };
        if !self.take(STEP_BYTES + WORD_BYTES * words, context) {
            interpreter.halt_fatal();
        }
    }

    fn log(&mut self, context: &mut CTX, log: Log) {
        self.take(FRAME_BYTES + 2 * log.data.data.len(), context);
    }

    fn call(&mut self, context: &mut CTX, inputs: &mut CallInputs) -> Option<CallOutcome> {
        self.take(FRAME_BYTES + 2 * inputs.input.len(), context);
        None
    }

    fn call_end(&mut self, context: &mut CTX, _: &CallInputs, outcome: &mut CallOutcome) {
        self.take(2 * outcome.result.output.len(), context);
    }

    fn create(&mut self, context: &mut CTX, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
        self.take(FRAME_BYTES + 2 * inputs.init_code().len(), context);
        None
    }

    fn create_end(&mut self, context: &mut CTX, _: &CreateInputs, outcome: &mut CreateOutcome) {
        self.take(2 * outcome.result.output.len(), context);
    }
}

/// Inspector of a trace, within its budget.
type Tracer = (Budget, DebugInspector);

fn tracer(options: &[u8]) -> Result<Tracer, String> {
    let options: GethDebugTracingOptions =
        serde_json::from_slice(options).map_err(|error| format!("invalid tracer: {error}"))?;
    let budget = Budget::of(&options);
    let inspector = DebugInspector::new(options).map_err(|error| said(&error))?;
    Ok((budget, inspector))
}

fn said<E: std::fmt::Debug>(error: &DebugInspectorError<E>) -> String {
    match error {
        DebugInspectorError::InvalidTracerConfig => "invalid tracerConfig".into(),
        DebugInspectorError::UnsupportedTracer | DebugInspectorError::JsTracerNotEnabled => {
            "tracer not found: there are callTracer, prestateTracer, 4byteTracer, flatCallTracer, \
             muxTracer and noopTracer"
                .into()
        }
        other => format!("{other:?}"),
    }
}

/// The trace of a transaction that was run.
fn show(
    (_, inspector): &mut Tracer,
    at: Option<TransactionContext>,
    Inspected { tx, block, result, world }: Inspected<'_, '_>,
) -> Result<Result<GethTrace, String>, StateError> {
    match inspector.get_result(at, tx, block, result, world) {
        Ok(trace) => Ok(Ok(trace)),
        Err(DebugInspectorError::Database(ReadError(error))) => Err(error),
        Err(error) => Ok(Err(said(&error))),
    }
}

fn json(content: &impl serde::Serialize) -> Answer {
    let bytes = serde_json::to_vec(content).map_err(|error| StateError(error.to_string()))?;
    Ok(Ok(bytes.into()))
}

/// Traces a dry run.
///
/// # Errors
/// When the state cannot be read.
pub(super) fn call(simulation: &Simulation<'_>, call: &Call, options: &[u8]) -> Answer {
    let tracer = match tracer(options) {
        Ok(tracer) => tracer,
        Err(reason) => return Ok(Err(reason)),
    };
    let trace = simulation.inspect(call, tracer, |tracer, inspected| show(tracer, None, inspected));
    trace?.map_or_else(|reason| Ok(Err(reason)), |trace| json(&trace))
}

/// Accounts and slots that a dry run touches: run again with them until they are no more.
///
/// # Errors
/// When the state cannot be read.
pub(super) fn accessed(
    simulation: &Simulation<'_>,
    call: &Call,
) -> Result<Result<Accessed, String>, StateError> {
    /// Declared slots are cheaper, and with the gas that is left more may be touched.
    const ROUNDS_MAX: usize = 16;
    let mut declared = Call { access_list: Vec::new(), ..call.clone() };
    for _ in 0..ROUNDS_MAX {
        let run =
            simulation.inspect(&declared, AccessListInspector::default(), |found, inspected| {
                let touched = found.touched_slots().iter();
                let mut list: Vec<(Address, Vec<B256>)> = touched
                    .map(|(address, slots)| (*address, slots.iter().copied().collect()))
                    .collect();
                list.sort();
                let gas_used = inspected.result.result.tx_gas_used();
                let (called, _) = called(inspected.result.result.clone());
                Ok(Ok(Accessed { list, called, gas_used }))
            });
        let accessed = match run? {
            Ok(accessed) => accessed,
            Err(reason) => return Ok(Err(reason)),
        };
        if accessed.list == declared.access_list {
            return Ok(Ok(accessed));
        }
        declared.access_list = accessed.list;
    }
    Ok(Err("the access list does not come to rest".into()))
}

/// Traces transactions of a block, on the state after the block before.
///
/// # Errors
/// When the state cannot be read.
pub(super) fn block(
    (genesis, codes): (&Genesis, &Codes),
    state: &dyn State,
    of: &TraceBlock,
) -> Answer {
    let tracer = match tracer(&of.options) {
        Ok(tracer) => tracer,
        Err(reason) => return Ok(Err(reason)),
    };
    let meta = history::meta(state)?.ok_or_else(damaged)?;
    let FoundBlock { block, transactions } = &of.found;
    let header = block.header()?;
    if header.parent_hash != meta.hash {
        return Ok(Err(format!("block {} does not follow block {}", header.number, meta.height)));
    }
    let hashes = |height| hash_of(state, height);
    let environment = next(&meta, proposed_at_ms(&header)?);
    let context = ExecutionContext {
        configuration: configuration(genesis.chain_id),
        block: environment.block(genesis),
        hashes: &hashes,
    };
    let world = World::new(state, codes, context.hashes);
    let traces = match trace(context, world, tracer, (block, transactions, of.transaction))? {
        Ok(traces) => traces,
        Err(reason) => return Ok(Err(reason)),
    };
    match of.transaction {
        None => json(&traces),
        Some(_) => match traces.into_iter().next() {
            Some(TraceResult::Success { result, .. }) => json(&result),
            _ => Ok(Err("transaction not found".into())),
        },
    }
}

/// Time at which a block was proposed, as its execution took it.
fn proposed_at_ms(header: &Header) -> Result<u64, StateError> {
    let bytes = header.extra_data[..].try_into().map_err(|_| damaged())?;
    Ok(u64::from_be_bytes(bytes))
}

type Traces = Vec<TraceResult<GethTrace, String>>;

fn trace(
    context: ExecutionContext<'_>,
    world: World<'_>,
    tracer: Tracer,
    (block, transactions, only): (&StoredBlock, &[StoredTransaction], Option<u32>),
) -> Result<Result<Traces, String>, StateError> {
    let block_env = context.block.clone();
    let mut evm = Context::mainnet()
        .with_db(world)
        .with_cfg(context.configuration)
        .with_block(context.block)
        .build_mainnet_with_inspector(tracer);
    let mut traces = Vec::new();
    for (index, stored) in (0..).zip(transactions) {
        let tx = Recovered::stored(stored)?.env();
        let said = |error| match error {
            EVMError::Database(ReadError(error)) => Err(error),
            error => Ok(Err(execution::said(&error, stored.gas_used, stored.sender))),
        };
        if only.is_some_and(|only| only != index) {
            match evm.transact_commit(tx) {
                Ok(_) => continue,
                Err(error) => return said(error),
            }
        }
        let result = match evm.inspect_tx(tx.clone()) {
            Ok(result) => result,
            Err(error) => return said(error),
        };
        let at = TransactionContext {
            block_hash: Some(block.hash),
            tx_index: Some(index as usize),
            tx_hash: Some(stored.hash),
        };
        let world = &mut evm.ctx.journaled_state.database;
        let inspected = Inspected { tx: &tx, block: &block_env, result: &result, world };
        match show(&mut evm.inspector, Some(at), inspected)? {
            Ok(result) => {
                traces.push(TraceResult::Success { result, tx_hash: Some(stored.hash) });
            }
            Err(reason) => return Ok(Err(reason)),
        }
        if only == Some(index) {
            break;
        }
        let fused = evm.inspector.1.fuse();
        fused.map_err(|error| StateError(error.to_string()))?;
        evm.commit(result.state);
    }
    Ok(Ok(traces))
}
