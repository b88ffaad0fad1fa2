//! Blocks that are not: calls one after the other on a state, with what is taken for granted before
//! each block (`eth_simulateV1` of Ethereum's execution-apis).

mod transfers;

use super::call::{Call, access_list, called};
use super::execution::{
    self, Environment, ExecutedBlock, configuration_of, hash_of, transaction_gas_max,
};
use super::genesis::TRANSACTION_GAS_MAX;
use super::history::{self, FoundBlock, StoredBlock};
use super::overrides::Overrides;
use super::stored::damaged;
use super::transaction::Recovered;
use super::world::{Codes, ReadError, World};
use super::{Called, Genesis, StoredLog};
use alloy_consensus::{
    Header, SignableTransaction, TxEip1559, TxEip2930, TxEip7702, TxEnvelope, TxLegacy,
};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, B256, Bytes, Signature, U256, keccak256};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_types::service::{State, StateError};
use revm::context::result::{EVMError, ExecutionResult, InvalidTransaction};
use revm::context::{BlockEnv, CfgEnv, Context};
use revm::{ExecuteCommitEvm, InspectCommitEvm, MainBuilder, MainContext};
use std::cell::RefCell;
use std::collections::BTreeMap;
use transfers::TransferLogs;

/// Most blocks of a simulation.
pub const SIMULATED_BLOCKS_MAX: u64 = 256;

/// Most gas of all calls of a simulation, and of calls that are traced one on the other.
pub const SIMULATED_GAS_MAX: u64 = 10 * TRANSACTION_GAS_MAX;

/// Most bytes that its calls return and log.
const BYTES_MAX: usize = 16 << 20;

/// Seconds between two blocks, unless they are told.
const BLOCK_TIME: u64 = 12;

/// Blocks to simulate after the newest of a state.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Simulated {
    /// Blocks in ascending order.
    pub blocks: Vec<SimulatedBlock>,
    /// Calls are checked as transactions are: nonces, fees and who may send.
    pub validation: bool,
    /// Each transfer of ether leaves a log, of the address `0xeeee…`.
    pub trace_transfers: bool,
}

/// A block to simulate.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SimulatedBlock {
    /// What is different in it from what its parent leaves.
    pub overrides: Overrides,
    /// Calls in their order.
    pub calls: Vec<SimulatedCall>,
}

/// A call of a simulated block.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SimulatedCall {
    /// What it does, and pays.
    pub call: Call,
    /// Its nonce; by default its sender's.
    pub nonce: Option<u64>,
}

/// Result of a simulated block.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SimulationResult {
    /// The block, with its calls as transactions that nobody signed. Its state root is that of the
    /// block that the simulation began with.
    pub found: FoundBlock,
    /// Results of its calls.
    pub calls: Vec<CallResult>,
}

/// Result of a simulated call.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct CallResult {
    /// What it comes to.
    pub called: Called,
    /// Logs that it emits, with its transfers of ether among them where they are asked for.
    pub logs: Vec<StoredLog>,
    /// Gas that it uses.
    pub gas_used: u64,
    /// Gas that it has used before some was given back.
    pub max_used_gas: u64,
}

/// Reason for which nothing was simulated.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SimulationFailure {
    /// Code of JSON-RPC, of those that execution-apis names.
    pub code: i32,
    /// Reason as Ethereum's tools know it.
    pub message: String,
}

impl SimulationFailure {
    /// The last block would be too far from the one that the simulation begins with.
    #[must_use]
    pub fn too_many_blocks() -> Self {
        Self::new(-38_026, "too many blocks")
    }

    fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// A transaction that is not valid where it stands.
    fn of(invalid: &InvalidTransaction, message: String) -> Self {
        use InvalidTransaction as Invalid;
        let code = match invalid {
            Invalid::NonceTooLow { .. } => -38_010,
            Invalid::NonceTooHigh { .. } => -38_011,
            Invalid::GasPriceLessThanBasefee => -38_012,
            Invalid::CallGasCostMoreThanGasLimit { .. }
            | Invalid::GasFloorMoreThanGasLimit { .. } => -38_013,
            Invalid::LackOfFundForMaxFee { .. } => -38_014,
            Invalid::CallerGasLimitMoreThanBlock => -38_015,
            Invalid::CreateInitCodeSizeLimit => -38_025,
            Invalid::PriorityFeeGreaterThanMaxFee => -32_602,
            _ => -32_603,
        };
        Self { code, message }
    }
}

/// What ends a simulation.
enum Stop {
    State(StateError),
    Failure(SimulationFailure),
}

impl From<StateError> for Stop {
    fn from(error: StateError) -> Self {
        Self::State(error)
    }
}

impl From<SimulationFailure> for Stop {
    fn from(failure: SimulationFailure) -> Self {
        Self::Failure(failure)
    }
}

/// Simulates blocks after the newest of a state.
///
/// # Errors
/// When the state cannot be read.
pub(super) fn simulate(
    world: (&Genesis, &Codes),
    state: &dyn State,
    simulated: &Simulated,
) -> Result<Result<Vec<SimulationResult>, SimulationFailure>, StateError> {
    match blocks(world, state, simulated) {
        Ok(results) => Ok(Ok(results)),
        Err(Stop::Failure(failure)) => Ok(Err(failure)),
        Err(Stop::State(error)) => Err(error),
    }
}

fn blocks(
    (genesis, codes): (&Genesis, &Codes),
    state: &dyn State,
    simulated: &Simulated,
) -> Result<Vec<SimulationResult>, Stop> {
    let meta = history::meta(state)?.ok_or_else(damaged)?;
    let base = history::block(state, meta.height)?.ok_or_else(damaged)?.header()?;
    let hashes = RefCell::new(BTreeMap::from([(meta.height, meta.hash)]));
    let hash_at = |height| match hashes.borrow().get(&height) {
        Some(hash) => Ok(*hash),
        None => hash_of(state, height),
    };
    let mut chain = Chain {
        genesis,
        world: World::new(state, codes, &hash_at),
        parent: (base.number, base.timestamp, meta.hash),
        passed_on: (base.gas_limit, base.beneficiary),
        state_root: base.state_root,
        gas_left: SIMULATED_GAS_MAX,
        bytes_left: BYTES_MAX,
        of: simulated,
    };
    let mut results = Vec::new();
    for block in &simulated.blocks {
        let number =
            block.overrides.block.number.map_or(chain.parent.0 + 1, |at| at.saturating_to());
        if number <= chain.parent.0 {
            let text = format!("block numbers must be in order: {number} <= {}", chain.parent.0);
            return Err(SimulationFailure::new(-38_020, text).into());
        }
        if number - base.number > SIMULATED_BLOCKS_MAX {
            return Err(SimulationFailure::too_many_blocks().into());
        }
        let between = SimulatedBlock::default();
        while chain.parent.0 + 1 < number {
            results.push(chain.append(&between)?);
            hashes.borrow_mut().insert(chain.parent.0, chain.parent.2);
        }
        results.push(chain.append(block)?);
        hashes.borrow_mut().insert(chain.parent.0, chain.parent.2);
    }
    Ok(results)
}

/// Blocks that were simulated so far.
struct Chain<'a> {
    genesis: &'a Genesis,
    world: World<'a>,
    /// Number, time and hash of the last one.
    parent: (u64, u64, B256),
    /// Gas limit of the last one, and who gets its tips: the next has them too, unless told.
    passed_on: (u64, Address),
    state_root: B256,
    gas_left: u64,
    bytes_left: usize,
    of: &'a Simulated,
}

impl Chain<'_> {
    fn append(&mut self, block: &SimulatedBlock) -> Result<SimulationResult, Stop> {
        let (number, time, parent) = self.parent;
        let at = block.overrides.block.time.unwrap_or(time.saturating_add(BLOCK_TIME));
        if at <= time {
            let text = format!("block timestamps must be in order: {at} <= {time}");
            return Err(SimulationFailure::new(-38_021, text).into());
        }
        if at > u64::MAX / 1_000 {
            let text = format!("block timestamp {at} is beyond what blocks count");
            return Err(SimulationFailure::new(-32_602, text).into());
        }
        let environment = Environment { height: number + 1, proposed_at_ms: at * 1_000, parent };
        let mut env = environment.block(self.genesis);
        (env.gas_limit, env.beneficiary) = self.passed_on;
        env.prevrandao = Some(B256::ZERO);
        if !self.of.validation {
            env.basefee = 0;
        }
        block.overrides.block.apply(&mut env);
        self.passed_on = (env.gas_limit, env.beneficiary);
        block.overrides.apply(&mut self.world)?;
        let (mut executed, mut calls) = (ExecutedBlock::default(), Vec::new());
        for call in &block.calls {
            calls.push(self.call(&env, call, &mut executed)?);
        }
        let header = Header {
            beneficiary: env.beneficiary,
            gas_limit: env.gas_limit,
            base_fee_per_gas: Some(env.basefee),
            mix_hash: env.prevrandao.unwrap_or_default(),
            extra_data: Bytes::new(),
            ..executed.header(&environment, self.genesis, self.state_root)
        };
        let block = StoredBlock::of(&header, &executed.included);
        self.parent = (number + 1, at, block.hash);
        let found = FoundBlock { block, transactions: executed.included };
        Ok(SimulationResult { found, calls })
    }

    fn call(
        &mut self,
        block: &BlockEnv,
        simulated: &SimulatedCall,
        executed: &mut ExecutedBlock,
    ) -> Result<CallResult, Stop> {
        let configuration = self.configuration(block, &simulated.call);
        let fork = self.genesis.forks.at(block.timestamp.saturating_to());
        let call = &simulated.call;
        let room = (block.gas_limit - executed.gas_used().min(block.gas_limit)).min(self.gas_left);
        let gas = call.gas.unwrap_or(room.min(transaction_gas_max(fork)));
        if gas > room || room == 0 {
            let text = format!("block gas limit reached: {gas} > {room}");
            return Err(SimulationFailure::new(-38_015, text).into());
        }
        let account = self.world.account(call.from)?;
        let nonce = simulated.nonce.unwrap_or(account.nonce);
        let raw = unsigned(call, (nonce, gas), self.genesis.chain_id);
        let hash = keccak256(&raw);
        let transaction = Recovered::known(&raw, call.from, hash)?;
        let (result, transfers) = self.run(&transaction, configuration, block)?;
        let (gas_used, (called, refunded)) = (result.tx_gas_used(), called(result.clone()));
        executed.include(raw, &transaction, result, block.basefee);
        let logged = || executed.included.last().map_or_else(Vec::new, |last| last.logs.clone());
        let logs = transfers.unwrap_or_else(logged);
        let called = CallResult { called, logs, gas_used, max_used_gas: gas_used + refunded };
        self.gas_left = self.gas_left.saturating_sub(gas_used);
        self.take_bytes(&called)?;
        Ok(called)
    }

    /// Runs a call on what those before it left, with its logs and transfers where they are asked
    /// for.
    fn run(
        &mut self,
        transaction: &Recovered,
        configuration: CfgEnv,
        block: &BlockEnv,
    ) -> Result<(ExecutionResult, Option<Vec<StoredLog>>), Stop> {
        let tx = transaction.env();
        let (gas, from) = (tx.gas_limit, tx.caller);
        let context = Context::mainnet()
            .with_db(&mut self.world)
            .with_cfg(configuration)
            .with_block(block.clone());
        let (result, transfers) = if self.of.trace_transfers {
            let mut evm = context.build_mainnet_with_inspector(TransferLogs::default());
            let result = evm.inspect_tx_commit(tx);
            (result, Some(evm.inspector.into_logs()))
        } else {
            (context.build_mainnet().transact_commit(tx), None)
        };
        match result {
            Ok(result) => Ok((result, transfers)),
            Err(EVMError::Database(ReadError(error))) => Err(error.into()),
            Err(error) => {
                let message = execution::said(&error, gas, from);
                Err(match &error {
                    EVMError::Transaction(invalid) => SimulationFailure::of(invalid, message),
                    _ => SimulationFailure::new(-32_603, message),
                }
                .into())
            }
        }
    }

    /// Takes what a call returns and logs off what all may.
    fn take_bytes(&mut self, of: &CallResult) -> Result<(), SimulationFailure> {
        let output = match &of.called {
            Called::Success { output, .. } | Called::Reverted { output } => output.len(),
            Called::Halted { .. } | Called::Invalid { .. } => 0,
        };
        let bytes = output + of.logs.iter().map(|log| 256 + log.data.len()).sum::<usize>();
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or_else(|| {
            let text = format!("more than {} MiB returned and logged", BYTES_MAX >> 20);
            SimulationFailure::new(-32_000, text)
        })?;
        Ok(())
    }

    fn configuration(&self, block: &BlockEnv, call: &Call) -> CfgEnv {
        let mut configuration = configuration_of(self.genesis, block);
        let is_lax = !self.of.validation;
        configuration.disable_nonce_check |= is_lax;
        configuration.disable_base_fee = is_lax && call.is_free();
        // Whatever has code may send, as in Geth.
        configuration.disable_eip3607 = true;
        configuration
    }
}

/// A call as a transaction with no signature, of the kind that its fields say.
fn unsigned(call: &Call, (nonce, gas_limit): (u64, u64), chain_id: u64) -> Bytes {
    let (to, value, input) = (call.kind(), call.value, call.data.clone());
    let access_list = access_list(call);
    let (max_fee_per_gas, gas_price) = (call.max_fee, call.max_fee);
    let max_priority_fee_per_gas = call.priority_fee.unwrap_or(gas_price);
    let nobody = Signature::new(U256::ZERO, U256::ZERO, false);
    let envelope: TxEnvelope = match (call.to, call.priority_fee) {
        (Some(to), _) if !call.authorizations.is_empty() => TxEip7702 {
            chain_id,
            nonce,
            gas_limit,
            max_fee_per_gas,
            max_priority_fee_per_gas,
            to,
            value,
            access_list,
            authorization_list: call.authorizations.clone(),
            input,
        }
        .into_signed(nobody)
        .into(),
        (_, None) if access_list.0.is_empty() => {
            let chain_id = Some(chain_id);
            let legacy = TxLegacy { chain_id, nonce, gas_price, gas_limit, to, value, input };
            legacy.into_signed(nobody).into()
        }
        (_, None) => {
            TxEip2930 { chain_id, nonce, gas_price, gas_limit, to, value, access_list, input }
                .into_signed(nobody)
                .into()
        }
        (_, Some(_)) => TxEip1559 {
            chain_id,
            nonce,
            gas_limit,
            max_fee_per_gas,
            max_priority_fee_per_gas,
            to,
            value,
            access_list,
            input,
        }
        .into_signed(nobody)
        .into(),
    };
    envelope.encoded_2718().into()
}
