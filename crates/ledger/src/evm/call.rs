//! Dry runs of transactions: their results, and the gas that they need.

use super::Genesis;
use super::execution::{self, Environment, configuration_of, hash_of, next, transaction_gas_max};
use super::history;
use super::overrides::Overrides;
use super::stored::damaged;
use super::transaction::{Recovered, authorization};
use super::world::{Codes, ReadError, World};
use alloy_consensus::Transaction as _;
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_eips::eip7702::SignedAuthorization;
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, TxKind, U256};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_types::service::{State, StateError};
use revm::context::either::Either;
use revm::context::result::{
    EVMError, ExecutionResult, HaltReason, InvalidTransaction as Invalid, ResultAndState,
};
use revm::context::{BlockEnv, CfgEnv, Context, TransactionType, TxEnv};
use revm::handler::MainnetContext;
use revm::{ExecuteEvm, InspectEvm, Inspector, MainBuilder, MainContext};

/// Gas that a callee gets with a value, and may not have used up (EIP-150).
const STIPEND: u64 = 2_300;

/// An estimate may be too high by one part in so many.
const TOLERANCE: u64 = 64;

/// Gas of a transaction that carries a value and nothing else.
const TRANSFER_GAS: u64 = 21_000;

/// Milliseconds after which an estimate is still enough.
const LATER_MS: u64 = 12_000;

/// A transaction that nobody signed; by default one of nobody that carries nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Call {
    /// Address that it is run for, as its sender.
    pub from: Address,
    /// Address that it calls; without, it creates a contract.
    pub to: Option<Address>,
    /// Most gas, of what any transaction may use; by default as much of it as its sender can pay
    /// for.
    pub gas: Option<u64>,
    /// Wei a unit of gas at most. Where it is 0, as by default, nothing is paid, whatever a block
    /// asks; else it is asked and paid as in a block.
    pub max_fee: u128,
    /// Wei of these for whoever proposes, at most; `None`: all of them (a legacy transaction, or
    /// EIP-2930).
    pub priority_fee: Option<u128>,
    /// Wei that it carries.
    pub value: U256,
    /// Input of the call.
    pub data: Bytes,
    /// Addresses and slots that it declares to touch (EIP-2930).
    pub access_list: Vec<(Address, Vec<B256>)>,
    /// Delegations that it brings (EIP-7702).
    pub authorizations: Vec<SignedAuthorization>,
}

impl Call {
    pub(super) fn kind(&self) -> TxKind {
        self.to.map_or(TxKind::Create, TxKind::Call)
    }

    /// Returns `true` if nothing is paid for its gas.
    pub(super) fn is_free(&self) -> bool {
        self.max_fee == 0 && self.priority_fee.unwrap_or_default() == 0
    }
}

impl From<&Recovered> for Call {
    /// What a signed transaction does, at whatever place among its sender's.
    fn from(of: &Recovered) -> Self {
        let tx = &of.envelope;
        let declared = tx.access_list().cloned().unwrap_or_default().0.into_iter();
        Self {
            from: of.sender,
            to: tx.to(),
            gas: Some(tx.gas_limit()),
            max_fee: tx.max_fee_per_gas(),
            priority_fee: tx.max_priority_fee_per_gas(),
            value: tx.value(),
            data: tx.input().clone(),
            access_list: declared.map(|item| (item.address, item.storage_keys)).collect(),
            authorizations: of.delegations().to_vec(),
        }
    }
}

/// A transaction that nobody signed, in a block, and what is taken for granted there.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct DryRun {
    /// Transaction to run; nothing of it is kept.
    pub call: Call,
    /// Block that it takes part in.
    pub block: CallBlock,
    /// What is different there from what the state has.
    pub overrides: Overrides,
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
        /// Reason as Ethereum's tools know it.
        reason: String,
    },
    /// The call cannot begin.
    Invalid {
        /// Reason as Ethereum's tools know it.
        reason: String,
    },
}

/// Block that a dry run takes part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum CallBlock {
    /// The block that would come next, at this time in milliseconds since the Unix epoch: what a
    /// transaction meets that is sent now.
    Next(u64),
    /// The newest block of the state that is read, with its own number and time: what a call names
    /// by a number or a hash.
    Newest,
}

/// What a run comes to.
struct Ran {
    called: Called,
    /// Gas that was given back.
    refunded: u64,
    /// More gas may mend it.
    lacks_gas: bool,
}

/// State, and the block whose transactions are run on it and not kept.
pub(super) struct Simulation<'a> {
    genesis: &'a Genesis,
    codes: &'a Codes,
    state: &'a dyn State,
    environment: Environment,
    overrides: &'a Overrides,
    /// `true` if the block is one that is yet to come, at this time or later.
    is_next: bool,
}

impl<'a> Simulation<'a> {
    /// A block on a state, and what is taken for granted there.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub(super) fn new(
        (genesis, codes): (&'a Genesis, &'a Codes),
        state: &'a dyn State,
        block: CallBlock,
        overrides: &'a Overrides,
    ) -> Result<Self, StateError> {
        let meta = history::meta(state)?.ok_or_else(damaged)?;
        let newest = history::block(state, meta.height)?.ok_or_else(damaged)?.header()?;
        let newest_ms = newest.timestamp * 1_000;
        let environment = match block {
            CallBlock::Next(at_ms) => next(&meta, at_ms.max(newest_ms)),
            CallBlock::Newest => Environment {
                height: meta.height,
                proposed_at_ms: newest_ms,
                parent: newest.parent_hash,
            },
        };
        let is_next = matches!(block, CallBlock::Next(_));
        Ok(Self { genesis, codes, state, environment, overrides, is_next })
    }

    /// Block as the machine takes it.
    fn block(&self) -> BlockEnv {
        let mut block = self.environment.block(self.genesis);
        self.overrides.block.apply(&mut block);
        block
    }

    /// Hash of a block before the one that is simulated.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub(super) fn hash_of(&self, height: u64) -> Result<B256, StateError> {
        hash_of(self.state, height)
    }

    /// State as the machine finds it, with the hashes of [`Simulation::hash_of`].
    ///
    /// # Errors
    /// When the state cannot be read.
    pub(super) fn world<'b>(
        &'b self,
        hashes: &'b dyn Fn(u64) -> Result<B256, StateError>,
    ) -> Result<World<'b>, StateError> {
        let mut world = World::new(self.state, self.codes, hashes);
        self.overrides.apply(&mut world)?;
        Ok(world)
    }

    /// Runs a transaction under an inspector and with at most so much gas; `show` makes something
    /// of it. Gives that, and what the transaction comes to.
    ///
    /// # Errors
    /// When the state cannot be read; the inner error says why the transaction does not begin, or
    /// is whatever `show` has.
    pub(super) fn inspect<'b, 'w, I, T>(
        &self,
        world: &'b mut World<'w>,
        (call, gas_max): (&Call, u64),
        inspector: I,
        show: impl FnOnce(&mut I, Inspected<'_, 'w>) -> Result<Result<T, String>, StateError>,
    ) -> Result<Result<(T, ResultAndState<HaltReason>), String>, StateError>
    where
        I: Inspector<MainnetContext<&'b mut World<'w>>>,
    {
        let gas = self.gas(world, call)?.min(gas_max);
        let (tx, block) = (self.env(call, gas), self.block());
        let mut evm = Context::mainnet()
            .with_db(world)
            .with_cfg(self.configuration(&block, call))
            .with_block(block.clone())
            .build_mainnet_with_inspector(inspector);
        let result = match evm.inspect_tx(tx.clone()) {
            Ok(result) => result,
            Err(EVMError::Database(ReadError(error))) => return Err(error),
            Err(error) => return Ok(Err(execution::said(&error, tx.gas_limit, call.from))),
        };
        let world = &mut *evm.ctx.journaled_state.database;
        let inspected = Inspected { tx: &tx, block: &block, result: &result, world };
        let shown = show(&mut evm.inspector, inspected)?;
        Ok(shown.map(|shown| (shown, result)))
    }

    /// Runs a transaction.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub(super) fn call(&self, call: &Call) -> Result<Called, StateError> {
        let hashes = |height| self.hash_of(height);
        let world = self.world(&hashes)?;
        let gas = self.gas(&world, call)?;
        Ok(self.run_on(world, call, gas)?.called)
    }

    /// Estimates the gas that a transaction needs, within a part in [`TOLERANCE`]; or gives its
    /// result with all that it may have. In a block that is yet to come it is enough at once and
    /// [`LATER_MS`] later: contracts that look at the time do more when some has passed.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub(super) fn estimate(&self, call: &Call) -> Result<Result<u64, Called>, StateError> {
        let now = match self.least_gas(call)? {
            Ok(gas) if self.is_next => gas,
            estimate => return Ok(estimate),
        };
        let later = self.later();
        if let Called::Success { .. } = later.run(call, now)?.called {
            return Ok(Ok(now));
        }
        // What fails by then, whatever it has, is not for want of gas.
        Ok(Ok(later.least_gas(call)?.map_or(now, |later| later.max(now))))
    }

    fn later(&self) -> Self {
        let mut environment = self.environment.clone();
        environment.proposed_at_ms += LATER_MS;
        Self { environment, ..*self }
    }

    fn least_gas(&self, call: &Call) -> Result<Result<u64, Called>, StateError> {
        let hashes = |height| self.hash_of(height);
        let Some(payable) = self.payable_gas(&self.world(&hashes)?, call)? else {
            let reason = "insufficient funds for transfer".to_owned();
            return Ok(Err(Called::Invalid { reason }));
        };
        let mut enough = call.gas.map_or(payable, |gas| gas.min(payable));
        if enough >= TRANSFER_GAS
            && self.is_plain_transfer(call)?
            && let Called::Success { .. } = self.run(call, TRANSFER_GAS)?.called
        {
            return Ok(Ok(TRANSFER_GAS));
        }
        let (gas_used, refunded) = match self.run(call, enough)? {
            Ran { called: Called::Success { gas_used, .. }, refunded, .. } => (gas_used, refunded),
            Ran { lacks_gas: true, .. } => {
                let reason = format!("gas required exceeds allowance ({enough})");
                return Ok(Err(Called::Invalid { reason }));
            }
            Ran { called, .. } => return Ok(Err(called)),
        };
        let mut too_little = gas_used - 1;
        let likely = (gas_used + refunded + STIPEND) * 64 / 63;
        let mut attempt = likely.min(enough);
        while enough - too_little > enough / TOLERANCE {
            match self.run(call, attempt)?.called {
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

    /// Nothing but a value, for an address without code.
    fn is_plain_transfer(&self, call: &Call) -> Result<bool, StateError> {
        let has_nothing_else = call.data.is_empty() && call.authorizations.is_empty();
        let (true, Some(to)) = (has_nothing_else, call.to) else { return Ok(false) };
        let hashes = |height| self.hash_of(height);
        Ok(self.world(&hashes)?.account(to)?.code_hash == KECCAK256_EMPTY)
    }

    fn configuration(&self, block: &BlockEnv, call: &Call) -> CfgEnv {
        let mut configuration = configuration_of(self.genesis, block);
        configuration.disable_nonce_check = true;
        configuration.disable_eip3607 = true;
        configuration.disable_base_fee = call.is_free();
        configuration.disable_block_gas_limit = true;
        configuration
    }

    /// Gas limit of a call: tools name more than any transaction may have where they mean all.
    /// Whoever cannot pay for any is to hear that, and not that it has too little.
    fn gas(&self, world: &World<'_>, call: &Call) -> Result<u64, StateError> {
        let most = self.most_gas();
        match call.gas {
            Some(gas) => Ok(gas.min(most)),
            None => {
                let payable = self.payable_gas(world, call)?;
                Ok(payable.filter(|gas| *gas >= TRANSFER_GAS).unwrap_or(most))
            }
        }
    }

    /// Gas that any transaction may have.
    fn most_gas(&self) -> u64 {
        transaction_gas_max(self.genesis.forks.at(self.block().timestamp.saturating_to()))
    }

    /// Gas that a call may have and that its sender can pay for, at the price that it names;
    /// `None` if nothing is left for gas beside the value.
    fn payable_gas(&self, world: &World<'_>, call: &Call) -> Result<Option<u64>, StateError> {
        let most = self.most_gas();
        if call.max_fee == 0 {
            return Ok(Some(most));
        }
        let balance = world.account(call.from)?.balance;
        let left = balance.checked_sub(call.value).filter(|left| !left.is_zero());
        let paid = left.map(|left| left / U256::from(call.max_fee));
        Ok(paid.map(|gas| gas.saturating_to::<u64>().min(most)))
    }

    fn env(&self, call: &Call, gas: u64) -> TxEnv {
        env(call, gas, self.genesis.chain_id)
    }

    /// Runs a call with so much gas.
    fn run(&self, call: &Call, gas: u64) -> Result<Ran, StateError> {
        let hashes = |height| self.hash_of(height);
        self.run_on(self.world(&hashes)?, call, gas)
    }

    /// As [`Simulation::run`], on a world of its own.
    fn run_on(&self, world: World<'_>, call: &Call, gas: u64) -> Result<Ran, StateError> {
        let block = self.block();
        let mut evm = Context::mainnet()
            .with_db(world)
            .with_cfg(self.configuration(&block, call))
            .with_block(block)
            .build_mainnet();
        match evm.transact_one(self.env(call, gas)) {
            Ok(result) => {
                let lacks_gas =
                    matches!(result, ExecutionResult::Halt { reason: HaltReason::OutOfGas(_), .. });
                let (called, refunded) = called(result);
                Ok(Ran { called, refunded, lacks_gas })
            }
            Err(EVMError::Database(ReadError(error))) => Err(error),
            Err(error) => {
                let lacks_gas = matches!(
                    error,
                    EVMError::Transaction(
                        Invalid::CallGasCostMoreThanGasLimit { .. }
                            | Invalid::GasFloorMoreThanGasLimit { .. }
                    )
                );
                let reason = execution::said(&error, gas, call.from);
                Ok(Ran { called: Called::Invalid { reason }, refunded: 0, lacks_gas })
            }
        }
    }
}

/// A transaction that was run and is not committed.
pub(super) struct Inspected<'a, 'w> {
    pub(super) tx: &'a TxEnv,
    pub(super) block: &'a BlockEnv,
    pub(super) result: &'a ResultAndState<HaltReason>,
    /// State before it.
    pub(super) world: &'a mut World<'w>,
}

/// What a call declares to touch, as the machine takes it.
pub(super) fn access_list(call: &Call) -> AccessList {
    let item = |(address, keys): &(_, Vec<B256>)| AccessListItem {
        address: *address,
        storage_keys: keys.clone(),
    };
    AccessList(call.access_list.iter().map(item).collect())
}

fn env(call: &Call, gas: u64, chain_id: u64) -> TxEnv {
    let access_list = access_list(call);
    let authorizations = call.authorizations.iter().map(authorization);
    let authorization_list: Vec<_> = authorizations.map(Either::Right).collect();
    let kind = match (authorization_list.is_empty(), call.priority_fee) {
        (false, _) => TransactionType::Eip7702,
        (true, Some(_)) => TransactionType::Eip1559,
        (true, None) if !access_list.0.is_empty() => TransactionType::Eip2930,
        (true, None) => TransactionType::Legacy,
    };
    TxEnv {
        tx_type: kind.into(),
        caller: call.from,
        gas_limit: gas,
        gas_price: call.max_fee,
        gas_priority_fee: call.priority_fee,
        kind: call.kind(),
        value: call.value,
        data: call.data.clone(),
        chain_id: Some(chain_id),
        access_list,
        authorization_list,
        ..TxEnv::default()
    }
}

pub(super) fn called(result: ExecutionResult) -> (Called, u64) {
    match result {
        ExecutionResult::Success { output, gas, .. } => {
            let (gas_used, refunded) = (gas.tx_gas_used(), gas.final_refunded());
            (Called::Success { output: output.into_data(), gas_used }, refunded)
        }
        ExecutionResult::Revert { output, .. } => (Called::Reverted { output }, 0),
        ExecutionResult::Halt { reason, .. } => (Called::Halted { reason: halted(&reason) }, 0),
    }
}

/// What stopped a call, in the words that Ethereum's tools know.
fn halted(reason: &HaltReason) -> String {
    let words = match reason {
        HaltReason::OutOfGas(_) => "out of gas",
        HaltReason::OpcodeNotFound | HaltReason::InvalidFEOpcode | HaltReason::NotActivated => {
            "invalid opcode"
        }
        HaltReason::InvalidJump => "invalid jump destination",
        HaltReason::OutOfOffset => "return data out of bounds",
        HaltReason::CreateCollision => "contract address collision",
        HaltReason::CreateContractSizeLimit => "max code size exceeded",
        HaltReason::CreateContractStartingWithEF => "invalid code: must not begin with 0xef",
        HaltReason::CreateInitCodeSizeLimit => "max initcode size exceeded",
        HaltReason::StateChangeDuringStaticCall | HaltReason::CallNotAllowedInsideStatic => {
            "write protection"
        }
        HaltReason::CallTooDeep => "max call depth exceeded",
        other => return other.to_string(),
    };
    words.to_owned()
}
