//! A block's transactions, executed one after the other.

use super::genesis::TRANSACTION_GAS_MAX;
use super::history::{self, BloomHashes, FullReceipt, Meta, StoredTransaction};
use super::result::TransactionResult;
use super::touched::Touched;
use super::transaction::Recovered;
use super::world::{Changes, Codes, ReadError, World};
use super::{Fork, Genesis};
use alloy_consensus::constants::{EMPTY_OMMER_ROOT_HASH, EMPTY_WITHDRAWALS};
use alloy_consensus::proofs::ordered_trie_root_with_encoder;
use alloy_consensus::{Header, Transaction as _};
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_rlp::BufMut;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::Outcome;
use quorate_types::service::{REASON_BYTES_MAX, State, StateError};
use revm::context::result::{EVMError, ExecutionResult, InvalidTransaction};
use revm::context::{BlockEnv, CfgEnv, Context, ContextTr, TxEnv};
use revm::context_interface::Cfg as _;
use revm::context_interface::block::BlobExcessGasAndPrice;
use revm::handler::validation::{validate_env, validate_initial_tx_gas};
use revm::primitives::{eip7702, eip7825};
use revm::{ExecuteCommitEvm, MainBuilder, MainContext};
use std::convert::Infallible;
use std::fmt::Display;
use std::sync::Arc;

/// Environment of a block's transactions, known before any of them is executed.
#[derive(Clone, Debug)]
pub(super) struct Environment {
    pub(super) height: u64,
    pub(super) proposed_at_ms: u64,
    pub(super) parent: B256,
}

impl Environment {
    /// Value of PREVRANDAO: known as soon as the parent is, and no one's secret.
    fn randomness(&self) -> B256 {
        keccak256([&self.parent[..], &self.height.to_be_bytes()].concat())
    }

    /// Environment as the virtual machine takes it.
    pub(super) fn block(&self, genesis: &Genesis) -> BlockEnv {
        BlockEnv {
            number: U256::from(self.height),
            beneficiary: genesis.fees_to,
            timestamp: U256::from(self.proposed_at_ms / 1_000),
            gas_limit: genesis.gas_limit,
            basefee: genesis.base_fee,
            difficulty: U256::ZERO,
            prevrandao: Some(self.randomness()),
            blob_excess_gas_and_price: Some(BlobExcessGasAndPrice::new(0, 1)),
            ..BlockEnv::default()
        }
    }

    /// Header of the block, without its transactions' roots.
    fn header(&self, genesis: &Genesis, state_root: B256) -> Header {
        Header {
            parent_hash: self.parent,
            ommers_hash: EMPTY_OMMER_ROOT_HASH,
            beneficiary: genesis.fees_to,
            state_root,
            number: self.height,
            gas_limit: genesis.gas_limit,
            timestamp: self.proposed_at_ms / 1_000,
            extra_data: Bytes::copy_from_slice(&self.proposed_at_ms.to_be_bytes()),
            mix_hash: self.randomness(),
            base_fee_per_gas: Some(genesis.base_fee),
            withdrawals_root: Some(EMPTY_WITHDRAWALS),
            blob_gas_used: Some(0),
            excess_blob_gas: Some(0),
            parent_beacon_block_root: Some(B256::ZERO),
            ..Header::default()
        }
    }
}

/// The machine's configuration for a block of a chain.
pub(super) fn configuration_of(genesis: &Genesis, block: &BlockEnv) -> CfgEnv {
    let fork = genesis.forks.at(block.timestamp.saturating_to());
    configuration(genesis.chain_id, fork)
}

/// The machine's configuration for a chain by these rules.
pub(super) fn configuration(chain_id: u64, fork: Fork) -> CfgEnv {
    let mut configuration = CfgEnv::new_with_spec(fork.spec());
    configuration.chain_id = chain_id;
    configuration.tx_gas_limit_cap = Some(transaction_gas_max(fork));
    configuration.tx_chain_id_check = !mutants::active(Mutant::EvmAnyChain);
    configuration.disable_nonce_check = mutants::active(Mutant::EvmAnyNonce);
    configuration
}

/// Most gas of a transaction by these rules.
pub(super) fn transaction_gas_max(fork: Fork) -> u64 {
    match fork {
        Fork::Osaka => TRANSACTION_GAS_MAX.min(eip7825::TX_GAS_LIMIT_CAP),
        _ => TRANSACTION_GAS_MAX,
    }
}

impl Recovered {
    /// Checks that a block of this chain, at this time in milliseconds since the Unix epoch, can
    /// hold it at all, whatever its sender's account is: its kind, fees, gas and length.
    ///
    /// # Errors
    /// Why not, in the words that Ethereum's tools know.
    pub fn check_terms(&self, genesis: &Genesis, at_ms: u64) -> Result<(), String> {
        check_terms(self.terms(), genesis, at_ms)
    }
}

/// Checks a transaction before any account is looked at: its fees, its gas and its length, in the
/// words that Ethereum's tools know.
///
/// # Errors
/// Why no block of this chain will hold it.
fn check_terms(tx: TxEnv, genesis: &Genesis, at_ms: u64) -> Result<(), String> {
    let environment = Environment { height: 0, proposed_at_ms: at_ms, parent: B256::ZERO };
    let (gas, block) = (tx.gas_limit, environment.block(genesis));
    let configuration = configuration_of(genesis, &block);
    let (rules, gas_max) = (configuration.spec, configuration.tx_gas_limit_cap());
    let mut context = Context::mainnet().with_cfg(configuration).with_block(block).with_tx(tx);
    let from = context.tx().caller;
    let said = |error: EVMError<Infallible>| said(&error, gas, from);
    validate_env(&mut context).map_err(said)?;
    validate_initial_tx_gas(context.tx(), rules, false, false, gas_max, None)
        .map(drop)
        .map_err(|error| said(error.into()))
}

/// Why a transaction with so much gas, of this sender, does not begin: in the words that Ethereum's
/// tools know.
pub(super) fn said<E: Display>(error: &EVMError<E>, gas: u64, from: Address) -> String {
    use InvalidTransaction as Invalid;
    let EVMError::Transaction(invalid) = error else { return error.to_string() };
    match invalid {
        Invalid::CallGasCostMoreThanGasLimit { initial_gas: least, .. }
        | Invalid::GasFloorMoreThanGasLimit { gas_floor: least, .. } => {
            format!("intrinsic gas too low: gas {gas}, minimum needed {least}")
        }
        Invalid::GasPriceLessThanBasefee => "max fee per gas less than block base fee".into(),
        Invalid::PriorityFeeGreaterThanMaxFee => {
            "max priority fee per gas higher than max fee per gas".into()
        }
        Invalid::TxGasLimitGreaterThanCap { cap, .. } => {
            format!("exceeds the gas limit of a transaction, {cap}")
        }
        Invalid::LackOfFundForMaxFee { fee, balance } => format!(
            "insufficient funds for gas * price + value: address {from} have {balance} want {fee}"
        ),
        Invalid::CreateInitCodeSizeLimit => "max initcode size exceeded".into(),
        other => other.to_string(),
    }
}

/// Result of executing a block's transactions.
#[derive(Debug, Default)]
pub(super) struct ExecutedBlock {
    pub(super) outcomes: Vec<Outcome>,
    pub(super) included: Vec<StoredTransaction>,
    /// What each of those that are included touched.
    pub(super) touched: Vec<Touched>,
    pub(super) changes: Changes,
    gas_used: u64,
    logs: u32,
}

/// A transaction with its bytes, unless it is none.
pub(super) struct Candidate {
    pub(super) raw: Bytes,
    pub(super) read: Result<Arc<Recovered>, super::TransactionError>,
}

/// Configuration that transactions are executed under.
pub(super) struct ExecutionContext<'a> {
    pub(super) configuration: CfgEnv,
    pub(super) block: BlockEnv,
    /// The hashes of blocks, for BLOCKHASH.
    pub(super) hashes: &'a dyn Fn(u64) -> Result<B256, StateError>,
}

/// Executes the transactions of a chain's block.
///
/// # Errors
/// When the state cannot be read.
pub(super) fn execute(
    state: &dyn State,
    codes: &Codes,
    genesis: &Genesis,
    environment: &Environment,
    candidates: Vec<Candidate>,
) -> Result<ExecutedBlock, StateError> {
    let block = environment.block(genesis);
    let configuration = configuration_of(genesis, &block);
    let context =
        ExecutionContext { configuration, block, hashes: &|height| hash_of(state, height) };
    execute_under(context, state, codes, candidates)
}

/// Executes transactions in order. One that is invalid where it stands changes nothing, and its
/// outcome says why.
///
/// # Errors
/// When the state cannot be read.
pub(super) fn execute_under(
    context: ExecutionContext<'_>,
    state: &dyn State,
    codes: &Codes,
    candidates: Vec<Candidate>,
) -> Result<ExecutedBlock, StateError> {
    let BlockEnv { gas_limit, basefee: base_fee, beneficiary: fees_to, .. } = context.block;
    let mut evm = Context::mainnet()
        .with_db(World::new(state, codes, context.hashes))
        .with_cfg(context.configuration)
        .with_block(context.block)
        .build_mainnet();
    let mut executed = ExecutedBlock::default();
    for Candidate { raw, read } in candidates {
        let transaction = match read {
            Ok(transaction) => transaction,
            Err(error) => {
                executed.refuse(&error.to_string());
                continue;
            }
        };
        let tx = paid_env(&evm.ctx.journaled_state.database, &transaction)?;
        let is_room = tx.gas_limit <= gas_limit - executed.gas_used;
        if !is_room && !mutants::active(Mutant::EvmUnboundedBlock) {
            executed.refuse("exceeds block gas limit");
            continue;
        }
        match evm.transact_commit(tx) {
            Ok(result) => {
                executed.include(raw, &transaction, result, base_fee);
                let touched = evm.ctx.journaled_state.database.take_touched();
                executed.touched.push(touched.of(&transaction, fees_to));
            }
            Err(EVMError::Database(ReadError(error))) => return Err(error),
            Err(EVMError::Transaction(invalid)) => executed.refuse(&invalid.to_string()),
            Err(error) => executed.refuse(&error.to_string()),
        }
    }
    executed.changes = evm.ctx.journaled_state.database.take_changes();
    Ok(executed)
}

/// A transaction as the machine takes it. Whose its delegations are is recovered where its sender
/// can pay for that: elsewhere it is refused before it comes to them.
fn paid_env(world: &World<'_>, transaction: &Recovered) -> Result<TxEnv, StateError> {
    let count = transaction.delegations().len() as u64;
    let account = world.account(transaction.sender)?;
    let tx = &transaction.envelope;
    let is_paid = tx.nonce() == account.nonce
        && transaction.cost() <= account.balance
        && tx.gas_limit() / eip7702::PER_EMPTY_ACCOUNT_COST >= count;
    Ok(if is_paid { transaction.env() } else { transaction.terms() })
}

/// The hash of a block, for BLOCKHASH.
pub(super) fn hash_of(state: &dyn State, height: u64) -> Result<B256, StateError> {
    Ok(history::block(state, height)?.map_or(B256::ZERO, |block| block.hash))
}

impl ExecutedBlock {
    /// Gas that its transactions used.
    pub(super) fn gas_used(&self) -> u64 {
        self.gas_used
    }

    fn refuse(&mut self, reason: &str) {
        self.outcomes.push(Outcome::Refused(bytes::Bytes::copy_from_slice(reason.as_bytes())));
    }

    /// Takes a transaction that was executed.
    pub(super) fn include(
        &mut self,
        raw: Bytes,
        transaction: &Recovered,
        result: ExecutionResult,
        base_fee: u64,
    ) {
        let gas_used = result.tx_gas_used();
        self.gas_used += gas_used;
        let (success, created) = (result.is_success(), result.created_address());
        let outcome = TransactionResult {
            transaction: transaction.hash(),
            index: u32::try_from(self.included.len()).expect("operations are counted in 32 bits"),
            success,
            gas_used,
            created,
            reason: reason(&result),
        };
        // What fails logs nothing, whatever an inspector has put there.
        let logs = if success { result.into_logs() } else { Vec::new() };
        let logs: Vec<_> = logs.into_iter().map(Into::into).collect();
        let logs_before = self.logs;
        self.logs += u32::try_from(logs.len()).expect("gas bounds the logs");
        self.outcomes.push(outcome.outcome());
        self.included.push(StoredTransaction {
            raw,
            hash: transaction.hash(),
            sender: transaction.sender,
            success,
            gas_used,
            cumulative_gas: self.gas_used,
            gas_price: history::gas_price(&transaction.envelope, base_fee),
            created,
            logs,
            logs_before,
        });
    }

    /// The header of the block that these make.
    pub(super) fn header(
        &self,
        environment: &Environment,
        genesis: &Genesis,
        state_root: B256,
    ) -> Header {
        let mut hashes = BloomHashes::default();
        let receipts = self.included.iter().map(|included| included.receipt_by(&mut hashes));
        let receipts: Vec<_> = receipts.collect();
        let raw = |transaction: &StoredTransaction, buffer: &mut Vec<u8>| {
            buffer.put_slice(&transaction.raw);
        };
        Header {
            transactions_root: ordered_trie_root_with_encoder(&self.included, raw),
            receipts_root: receipts_root(&self.included, &receipts),
            logs_bloom: history::bloom(&receipts),
            gas_used: self.gas_used,
            ..environment.header(genesis, state_root)
        }
    }
}

/// Reason that a failed transaction gives.
fn reason(result: &ExecutionResult) -> bytes::Bytes {
    match result {
        ExecutionResult::Success { .. } => bytes::Bytes::new(),
        ExecutionResult::Revert { output, .. } => {
            bytes::Bytes::copy_from_slice(&output[..output.len().min(REASON_BYTES_MAX)])
        }
        ExecutionResult::Halt { reason, .. } => format!("{reason:?}").into(),
    }
}

/// Ethereum's root over receipts: each is encoded after its transaction's type.
fn receipts_root(transactions: &[StoredTransaction], receipts: &[FullReceipt]) -> B256 {
    let pairs: Vec<_> = transactions.iter().zip(receipts).collect();
    ordered_trie_root_with_encoder(&pairs, |(transaction, receipt), mut buffer| {
        history::put_receipt(transaction, receipt, &mut buffer);
    })
}

/// Header of the first block.
pub(super) fn genesis_header(genesis: &Genesis, state_root: B256) -> Header {
    let proposed_at_ms = genesis.timestamp * 1_000;
    let environment = Environment { height: 0, proposed_at_ms, parent: B256::ZERO };
    Header { extra_data: genesis.extra_data.clone(), ..environment.header(genesis, state_root) }
}

/// The block that would follow the newest.
pub(super) fn next(meta: &Meta, proposed_at_ms: u64) -> Environment {
    Environment { height: meta.height + 1, proposed_at_ms, parent: meta.hash }
}
