//! Traces: transactions run once more, and what they did on the way.
//!
//! The inspectors are those of `revm-inspectors`, whose traces have the form of Geth's and of
//! Erigon's. A budget runs beside them: a transaction may take millions of steps, and a trace of
//! them many times the memory of whoever makes it.

use super::Genesis;
use super::call::{Call, Called, Inspected, Simulation, access_list, called};
use super::execution::{self, ExecutionContext, configuration_of, hash_of, next};
use super::history::{self, FoundBlock, StoredBlock, StoredTransaction};
use super::simulate::SIMULATED_GAS_MAX;
use super::stored::damaged;
use super::transaction::Recovered;
use super::world::{Codes, ReadError, World};
use alloy_consensus::Header;
use alloy_primitives::map::HashSet;
use alloy_primitives::{Address, B256, U256};
use alloy_rpc_types_trace::common::TraceResult;
use alloy_rpc_types_trace::geth::{GethDebugTracingOptions, GethDefaultTracingOptions};
use alloy_rpc_types_trace::parity::TraceType;
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_types::service::{State, StateError};
use revm::bytecode::opcode::{self, OpCode};
use revm::context::either::Either;
use revm::context::result::EVMError;
use revm::context::{Context, ContextError, ContextTr};
use revm::interpreter::interpreter_types::{Jumps, MemoryTr, ReturnData};
use revm::interpreter::{CallInputs, CallOutcome, CreateInputs, CreateOutcome, Interpreter};
use revm::primitives::Log;
use revm::{DatabaseCommit, ExecuteCommitEvm, InspectEvm, Inspector, MainBuilder, MainContext};
use revm_inspectors::access_list::AccessListInspector;
use revm_inspectors::tracing::{
    DebugInspector, DebugInspectorError, TraceLimits, TracingInspector, TracingInspectorConfig,
    TransactionContext,
};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::{io, mem};

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
    /// Form of the traces.
    pub form: TraceForm,
}

/// Form of a trace, in which it is shown as JSON.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum TraceForm {
    /// Geth's, by the options of its `debug_traceTransaction`, as JSON.
    Geth(Vec<u8>),
    /// Erigon's, of its `trace_replayTransaction`: what the transaction returns, and what is asked
    /// for.
    Replay(ReplayParts),
}

/// Parts of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ReplayParts {
    /// Calls, with what each returns.
    pub trace: bool,
    /// Accounts and slots, with their values before and after.
    pub state_diff: bool,
    /// Steps of the machine, with what each pushes and writes, and the code that they are of.
    pub vm_trace: bool,
}

impl ReplayParts {
    fn types(self) -> HashSet<TraceType> {
        let types = [
            (self.trace, TraceType::Trace),
            (self.state_diff, TraceType::StateDiff),
            (self.vm_trace, TraceType::VmTrace),
        ];
        types.into_iter().filter_map(|(is_asked, kind)| is_asked.then_some(kind)).collect()
    }
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
    /// Steps of the trace, where it has some.
    steps: Option<Steps>,
    /// Calls and logs are part of the trace.
    has_frames: bool,
}

/// What a step is shown with.
enum Shown {
    /// What Geth's options say.
    Options(GethDefaultTracingOptions),
    /// What it pushes; what it writes to memory is reckoned where it is recorded.
    Pushed,
}

/// Steps of a trace.
struct Steps {
    shows: Shown,
    /// Steps of this transaction that were recorded.
    recorded: u64,
    /// Slots of this transaction that were used so far, all of which each step that uses one shows.
    slots: BTreeMap<Address, BTreeSet<U256>>,
}

impl Budget {
    fn of(recorder: &Recorder, left: usize) -> Self {
        let shows = match recorder {
            Either::Left(DebugInspector::Default(_, shows)) => Some(Shown::Options(*shows)),
            Either::Right(replay) => replay.config().record_steps.then_some(Shown::Pushed),
            Either::Left(_) => None,
        };
        let steps = shows.map(|shows| Steps { shows, recorded: 0, slots: BTreeMap::new() });
        let has_frames = match recorder {
            Either::Left(DebugInspector::CallTracer(_, config)) => {
                config.only_top_call != Some(true)
            }
            Either::Left(DebugInspector::FlatCallTracer(_)) | Either::Right(_) => true,
            Either::Left(_) => false,
        };
        Self { left, steps, has_frames }
    }

    /// The next transaction begins: what is left is left.
    fn next(&mut self) {
        if let Some(steps) = &mut self.steps {
            (steps.recorded, steps.slots) = (0, BTreeMap::new());
        }
    }

    /// Takes so many bytes; ends the transaction where they are not there.
    fn take(&mut self, bytes: usize, context: &mut impl ContextTr) -> bool {
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or_default();
        if left.is_none() && context.error().is_ok() {
            *context.error() = Err(ContextError::Custom(too_large()));
        }
        left.is_some()
    }

    fn take_frame(&mut self, bytes: usize, context: &mut impl ContextTr) {
        if self.has_frames {
            self.take(bytes, context);
        }
    }
}

fn too_large() -> String {
    format!(
        "the trace is larger than {} MiB: have it show less, or limit it",
        TRACE_BYTES_MAX >> 20
    )
}

impl Steps {
    /// Bytes of the step that comes, if it is recorded.
    fn bytes(&mut self, interpreter: &Interpreter) -> usize {
        let code = interpreter.bytecode.opcode();
        let shows = match self.shows {
            Shown::Options(shows) => shows,
            Shown::Pushed => {
                let pushed = OpCode::new(code).map_or(0, |code| code.outputs());
                return STEP_BYTES + WORD_BYTES * usize::from(pushed);
            }
        };
        if shows.limit.is_some_and(|limit| limit > 0 && self.recorded >= limit) {
            return 0;
        }
        self.recorded += 1;
        let stack = &interpreter.stack;
        let mut bytes = STEP_BYTES;
        if shows.disable_stack != Some(true) {
            bytes += WORD_BYTES * stack.len();
        }
        if shows.enable_memory.unwrap_or(shows.disable_memory == Some(false)) {
            bytes += WORD_BYTES * interpreter.memory.size().div_ceil(32);
        }
        if shows.enable_return_data.unwrap_or(shows.disable_return_data == Some(false)) {
            bytes += 2 * interpreter.return_data.buffer().len();
        }
        let is_of_slot = matches!(code, opcode::SLOAD | opcode::SSTORE);
        if shows.disable_storage != Some(true)
            && is_of_slot
            && let Ok(slot) = stack.peek(0)
        {
            let slots = self.slots.entry(interpreter.input.target_address).or_default();
            slots.insert(slot);
            bytes += 2 * WORD_BYTES * slots.len();
        }
        bytes
    }
}

impl<CTX: ContextTr> Inspector<CTX> for Budget {
    fn step(&mut self, interpreter: &mut Interpreter, context: &mut CTX) {
        let bytes = self.steps.as_mut().map_or(0, |steps| steps.bytes(interpreter));
        if !self.take(bytes, context) {
            interpreter.halt_fatal();
        }
    }

    fn log(&mut self, context: &mut CTX, log: Log) {
        self.take_frame(FRAME_BYTES + 2 * log.data.data.len(), context);
    }

    fn call(&mut self, context: &mut CTX, inputs: &mut CallInputs) -> Option<CallOutcome> {
        self.take_frame(FRAME_BYTES + 2 * inputs.input.len(), context);
        None
    }

    fn call_end(&mut self, context: &mut CTX, _: &CallInputs, outcome: &mut CallOutcome) {
        self.take_frame(2 * outcome.result.output.len(), context);
    }

    fn create(&mut self, context: &mut CTX, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
        self.take_frame(FRAME_BYTES + 2 * inputs.init_code().len(), context);
        None
    }

    fn create_end(&mut self, context: &mut CTX, _: &CreateInputs, outcome: &mut CreateOutcome) {
        self.take_frame(2 * outcome.result.output.len(), context);
    }
}

/// JSON that grows to so many bytes and no further.
struct Bounded {
    json: Vec<u8>,
    left: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left =
            self.left.checked_sub(bytes.len()).ok_or_else(|| io::Error::other(too_large()))?;
        self.json.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A trace as JSON, of at most so many bytes.
fn written(trace: &impl serde::Serialize, left: usize) -> Result<Box<RawValue>, String> {
    let mut bounded = Bounded { json: Vec::new(), left };
    serde_json::to_writer(&mut bounded, trace).map_err(|_| too_large())?;
    let text = String::from_utf8(bounded.json).expect("JSON is text");
    Ok(RawValue::from_string(text).expect("it was just written"))
}

/// Inspector of a trace: Geth's, or Erigon's.
type Recorder = Either<DebugInspector, TracingInspector>;

/// Inspector of a trace, within its budget.
type Tracer = (Budget, Recorder);

/// An inspector for a trace of at most so many bytes.
fn tracer(form: &TraceForm, left: usize) -> Result<Tracer, String> {
    let recorder = match form {
        TraceForm::Geth(options) => Either::Left(geth(options)?),
        TraceForm::Replay(parts) => Either::Right(replay(*parts)),
    };
    Ok((Budget::of(&recorder, left), recorder))
}

fn geth(options: &[u8]) -> Result<DebugInspector, String> {
    let options: GethDebugTracingOptions =
        serde_json::from_slice(options).map_err(|error| format!("invalid tracer: {error}"))?;
    let inspector = DebugInspector::new(options).map_err(|error| said(&error))?;
    match &inspector {
        DebugInspector::Default(..)
        | DebugInspector::CallTracer(..)
        | DebugInspector::PreStateTracer(..)
        | DebugInspector::FourByte(_)
        | DebugInspector::FlatCallTracer(_)
        | DebugInspector::Noop(_) => Ok(inspector),
        // What they record is not reckoned here.
        _ => Err(NO_TRACER.to_owned()),
    }
}

fn replay(parts: ReplayParts) -> TracingInspector {
    let config = TracingInspectorConfig::from_parity_config(&parts.types());
    // Each byte is two of JSON.
    let recorded = TraceLimits::default().set_max_recorded_bytes(Some(TRACE_BYTES_MAX / 2));
    TracingInspector::new(config).with_limits(recorded)
}

const NO_TRACER: &str = "tracer not found: there are callTracer, prestateTracer, 4byteTracer, \
                         flatCallTracer and noopTracer";

fn said<E: std::fmt::Debug>(error: &DebugInspectorError<E>) -> String {
    match error {
        DebugInspectorError::InvalidTracerConfig => "invalid tracerConfig".into(),
        DebugInspectorError::UnsupportedTracer | DebugInspectorError::JsTracerNotEnabled => {
            NO_TRACER.into()
        }
        other => format!("{other:?}"),
    }
}

/// The trace of a transaction that was run. The recorder is left as it was before the run.
fn show(
    ((budget, recorder), form): (&mut Tracer, &TraceForm),
    at: Option<TransactionContext>,
    Inspected { tx, block, result, world }: Inspected<'_, '_>,
    left: usize,
) -> Result<Result<Box<RawValue>, String>, StateError> {
    budget.next();
    let inspector = match (recorder, form) {
        (Either::Left(inspector), _) => inspector,
        (Either::Right(recorded), TraceForm::Replay(parts)) => {
            let recorded = mem::replace(recorded, replay(*parts));
            if recorded.limit_exceeded() {
                return Ok(Err(too_large()));
            }
            let traces = recorded.into_parity_builder();
            let traces = traces.into_trace_results_with_state(result, &parts.types(), &*world);
            return traces.map(|traces| written(&traces, left)).map_err(|ReadError(error)| error);
        }
        (Either::Right(_), TraceForm::Geth(_)) => unreachable!("Geth's forms have its inspectors"),
    };
    let trace = match inspector.get_result(at, tx, block, result, world) {
        Ok(trace) => written(&trace, left),
        Err(DebugInspectorError::Database(ReadError(error))) => return Err(error),
        Err(error) => return Ok(Err(said(&error))),
    };
    inspector.fuse().map_err(|error| StateError(error.to_string()))?;
    Ok(trace)
}

fn json(content: &impl serde::Serialize) -> Answer {
    let bytes = serde_json::to_vec(content).map_err(|error| StateError(error.to_string()))?;
    Ok(Ok(bytes.into()))
}

/// Traces a dry run.
///
/// # Errors
/// When the state cannot be read.
pub(super) fn call(simulation: &Simulation<'_>, call: &Call, form: &TraceForm) -> Answer {
    match traces_of(simulation, std::iter::once((call, form)))? {
        Ok(traces) => json(&traces[0]),
        Err(reason) => Ok(Err(reason)),
    }
}

/// Traces dry runs, each on what those before it left.
///
/// # Errors
/// When the state cannot be read.
pub(super) fn calls(simulation: &Simulation<'_>, calls: &[(Call, TraceForm)]) -> Answer {
    match traces_of(simulation, calls.iter().map(|(call, form)| (call, form)))? {
        Ok(traces) => json(&traces),
        Err(reason) => Ok(Err(reason)),
    }
}

fn traces_of<'a>(
    simulation: &Simulation<'_>,
    calls: impl Iterator<Item = (&'a Call, &'a TraceForm)>,
) -> Result<Result<Vec<Box<RawValue>>, String>, StateError> {
    let hashes = |height| simulation.hash_of(height);
    let mut world = simulation.world(&hashes)?;
    let (mut traces, mut left, mut gas_left) = (Vec::new(), TRACE_BYTES_MAX, SIMULATED_GAS_MAX);
    for (call, form) in calls {
        // What one question has run, and all that it has read, is bounded by gas.
        if gas_left == 0 {
            return Ok(Err(format!("these calls use more than {SIMULATED_GAS_MAX} gas")));
        }
        let tracer = match tracer(form, left) {
            Ok(tracer) => tracer,
            Err(reason) => return Ok(Err(reason)),
        };
        let run = simulation.inspect(&mut world, (call, gas_left), tracer, |tracer, inspected| {
            show((tracer, form), None, inspected, left)
        });
        let (trace, came): (Box<RawValue>, _) = match run? {
            Ok(run) => run,
            Err(reason) => return Ok(Err(reason)),
        };
        left -= trace.get().len();
        gas_left = gas_left.saturating_sub(came.result.tx_gas_used());
        traces.push(trace);
        world.commit(came.state);
    }
    Ok(Ok(traces))
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
    let hashes = |height| simulation.hash_of(height);
    let mut declared = call.clone();
    for _ in 0..ROUNDS_MAX {
        // What was touched once stays: so it comes to rest.
        let known = AccessListInspector::new(access_list(&declared));
        let mut world = simulation.world(&hashes)?;
        let run =
            simulation.inspect(&mut world, (&declared, u64::MAX), known, |found, inspected| {
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
            Ok((accessed, _)) => accessed,
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
    let tracer = match tracer(&of.form, TRACE_BYTES_MAX) {
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
    let block_env = environment.block(genesis);
    let configuration = configuration_of(genesis, &block_env);
    let context = ExecutionContext { configuration, block: block_env, hashes: &hashes };
    let world = World::new(state, codes, context.hashes);
    let traced = (block, &transactions[..], of.transaction);
    let traces = match trace(context, world, (tracer, &of.form), traced)? {
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

type Traces = Vec<TraceResult<Box<RawValue>, String>>;

fn trace(
    context: ExecutionContext<'_>,
    world: World<'_>,
    (tracer, form): (Tracer, &TraceForm),
    (block, transactions, only): (&StoredBlock, &[StoredTransaction], Option<u32>),
) -> Result<Result<Traces, String>, StateError> {
    let block_env = context.block.clone();
    let mut evm = Context::mainnet()
        .with_db(world)
        .with_cfg(context.configuration)
        .with_block(context.block)
        .build_mainnet_with_inspector(tracer);
    let (mut traces, mut left) = (Vec::new(), TRACE_BYTES_MAX);
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
        match show((&mut evm.inspector, form), Some(at), inspected, left)? {
            Ok(result) => {
                left -= result.get().len();
                traces.push(TraceResult::Success { result, tx_hash: Some(stored.hash) });
            }
            Err(reason) => return Ok(Err(reason)),
        }
        if only == Some(index) {
            break;
        }
        evm.commit(result.state);
    }
    Ok(Ok(traces))
}
