//! Ethereum's machine on a replicated, authenticated state.
//!
//! * **Operations** are Ethereum's own signed transactions: legacy (EIP-155), EIP-2930, EIP-1559,
//!   and EIP-7702 from the [second version](Evm::VERSIONS) on.
//!   Who signed the request that executed one does not matter. Each comes to a
//!   [`TransactionResult`]; one that is invalid where it stands is refused with the reason, and
//!   changes nothing.
//! * **Blocks**: each height is one, and final. Its hash is Ethereum's, over a header with
//!   Ethereum's own roots of transactions and receipts; its state root is that of the
//!   [map](crate::map).
//! * **The service's root** is `H(root of the map ‖ hash of the newest block)`: a certificate of a
//!   height covers the state and, through the hashes of parents, every transaction, receipt and log
//!   before.
//! * **Queries** ([`Query`]) are answered from views of the state, beside execution. Proofs
//!   ([`ProofOf`]) are answered in between heights, with a certificate; of the newest block, and
//!   where [`Service::keep_provable`] says so of the last ones before it.
//!
//! The machine is `revm`; who signed is recovered with `libsecp256k1`, ahead of execution. ADR 27
//! has the alternatives. Source: paper 002, §IV and §IX.

mod call;
pub mod conformance;
mod execution;
mod fork;
mod found;
mod genesis;
mod history;
mod index;
pub mod mix;
mod overrides;
mod proof;
mod query;
mod result;
mod senders;
mod signer;
mod simulate;
mod stored;
mod token;
mod touched;
mod trace;
mod transaction;
mod under_way;
mod world;

pub use alloy_genesis::GenesisAccount;
pub use alloy_primitives::{Address, U256};
pub use call::{Call, CallBlock, Called, DryRun};
pub use fork::{Fork, ForkSchedule, UnknownFork};
pub use found::{FoundLog, FoundTransaction, LOGS_BYTES_MAX, LOGS_MAX};
pub use genesis::{Genesis, GenesisError, HISTORY_BLOCKS, TRANSACTION_GAS_MAX};
pub use history::{FoundBlock, StoredBlock, StoredLog, StoredTransaction, TransactionLocation};
pub use index::{
    HOLDERS_MAX, HolderKey, HolderPage, IndexQuery, LogLocation, PAGE_MAX, TransactionPage,
    TransferPage, TransfersOf,
};
pub use overrides::{AccountOverride, BlockOverride, Overrides};
pub use proof::{
    AccountProof, PROVEN_BLOCKS_MAX, PROVEN_SLOTS_MAX, ProofFailure, ProofOf, verify_account,
};
pub use query::{BlockAt, Head, LOG_BLOCKS_MAX, LogFilter, LogPage, Query};
pub use result::TransactionResult;
pub use signer::Signer;
pub use simulate::{
    CallResult, SIMULATED_BLOCKS_MAX, SIMULATED_GAS_MAX, Simulated, SimulatedBlock, SimulatedCall,
    SimulationFailure, SimulationResult,
};
pub use trace::{Accessed, ReplayParts, TRACE_BYTES_MAX, TraceBlock, TraceForm};
pub use transaction::{ChainRules, Recovered, TRANSACTION_BYTES_MAX, TransactionError, address};
pub use under_way::{Arrivals, PendingTransaction, UnderWayQuery};
pub use world::{Account, account_key, slot_key};

use crate::map::{Tree, entries};
use alloy_primitives::B256;
use execution::{Candidate, Environment, ExecutedBlock};
use history::Meta;
use query::EvmReader;
use quorate_crypto::{Digest, hash_parts};
use quorate_types::Versions;
use quorate_types::service::{
    Admission, BlockContext, Operation, Outcome, Preparation, Proven, Reader, Remembered, Service,
    State, StateError,
};
use senders::Senders;
use std::mem;
use std::sync::Arc;
use under_way::UnderWay;
use world::Changes;

/// The service. In memory it keeps the upper part of its map's tree, and senders recovered ahead.
#[derive(Debug)]
pub struct Evm {
    genesis: Arc<Genesis>,
    tree: Tree,
    newest: Option<Meta>,
    senders: Arc<Senders>,
    reader: Arc<EvmReader>,
}

impl Evm {
    /// Name of the service in a configuration file.
    pub const NAME: &'static str = "evm";
    /// Versions of its rules that are here: the second has delegations (EIP-7702), and the forks
    /// that a genesis names.
    pub const VERSIONS: Versions = Versions::new(1, genesis::DELEGATIONS);

    /// A ledger that begins with this.
    #[must_use]
    pub fn new(genesis: Genesis) -> Self {
        let genesis = Arc::new(genesis);
        let (senders, reader) = Self::by_version(&genesis, 1);
        Self { senders, reader, genesis, tree: Tree::default(), newest: None }
    }

    fn by_version(genesis: &Arc<Genesis>, version: u64) -> (Arc<Senders>, Arc<EvmReader>) {
        let (rules, under_way) = (genesis.rules(version), Arc::<UnderWay>::default());
        let senders = Senders::new(rules, Arc::clone(&under_way));
        let reader = EvmReader::new(Arc::clone(genesis), rules, under_way);
        (Arc::new(senders), Arc::new(reader))
    }

    fn newest(&self) -> Result<&Meta, StateError> {
        self.newest.as_ref().ok_or_else(stored::damaged)
    }

    /// Writes what changed, and follows it with the tree.
    fn settle(&mut self, state: &mut dyn State, changes: Changes) -> Result<(), StateError> {
        changes.write(state)?.finish(&mut self.tree)
    }

    fn candidate(&self, operation: &Operation<'_>) -> Candidate {
        let raw = alloy_primitives::Bytes::from(operation.bytes.clone());
        Candidate { read: self.senders.take(&raw), raw }
    }

    fn append(
        &mut self,
        state: &mut dyn State,
        environment: &Environment,
        mut executed: ExecutedBlock,
    ) -> Result<Vec<Outcome>, StateError> {
        self.settle(state, mem::take(&mut executed.changes))?;
        if let Some(entries) = state.index_entries() {
            index::add_block(entries, environment.height, &executed);
        }
        let header = executed.header(environment, &self.genesis, B256::from(self.tree.root().0));
        let history = self.genesis.history_blocks;
        self.newest = Some(history::append(state, &header, &executed.included, history)?);
        Ok(executed.outcomes)
    }
}

impl Service for Evm {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn versions(&self) -> Versions {
        self.genesis.versions()
    }

    fn execute_by(&mut self, version: u64) {
        (self.senders, self.reader) = Self::by_version(&self.genesis, version);
    }

    fn genesis(&mut self, state: &mut dyn State) -> Result<(), StateError> {
        let mut changes = Changes::default();
        for (address, account) in &self.genesis.accounts {
            changes.put(*address, account);
        }
        self.settle(state, changes)?;
        let root = B256::from(self.tree.root().0);
        let header = execution::genesis_header(&self.genesis, root);
        self.newest = Some(history::append(state, &header, &[], self.genesis.history_blocks)?);
        Ok(())
    }

    fn preparation(&self) -> Option<Arc<dyn Preparation>> {
        Some(Arc::clone(&self.senders) as Arc<dyn Preparation>)
    }

    fn admission(&self) -> Option<Arc<dyn Admission>> {
        Some(Arc::new(Self::new(Genesis::clone(&self.genesis))))
    }

    fn reader(&self) -> Option<Arc<dyn Reader>> {
        Some(Arc::clone(&self.reader) as Arc<dyn Reader>)
    }

    /// Accounts, storage, and which block is the newest: the rest is never changed.
    fn remembered(&self) -> Option<Remembered> {
        Some(|key| entries::is_entry(key) || history::is_meta(key))
    }

    fn limit_cache(&mut self, bytes: u64) {
        self.tree.limit_leaves(bytes);
    }

    fn keep_provable(&mut self, bytes: u64) {
        self.tree.keep_versions(usize::try_from(bytes).unwrap_or(usize::MAX));
    }

    fn open(&mut self, state: &dyn State) -> Result<(), StateError> {
        self.tree = self.tree.reopened(state)?;
        self.newest = history::meta(state)?;
        self.senders.under_way().begin_at(self.newest.as_ref().map_or(0, |meta| meta.height));
        Ok(())
    }

    /// Everything that is short enough: what it is shows when it is executed, once its sender is
    /// known.
    fn admit(&self, operation: Operation<'_>) -> Result<(), String> {
        let fits = operation.bytes.len() <= TRANSACTION_BYTES_MAX;
        if fits { Ok(()) } else { Err(TransactionError::TooLong.to_string()) }
    }

    fn execute(
        &mut self,
        state: &mut dyn State,
        block: BlockContext,
        operations: &[Operation<'_>],
    ) -> Result<Vec<Outcome>, StateError> {
        let newest = self.newest()?;
        assert_eq!(block.height.0, newest.height + 1, "each height is a block");
        let environment = execution::next(newest, block.proposed_at_ms);
        let candidates: Vec<_> =
            operations.iter().map(|operation| self.candidate(operation)).collect();
        let came = self.senders.under_way().named(&candidates);
        let codes = &self.reader.codes;
        let executed = execution::execute(state, codes, &self.genesis, &environment, candidates)?;
        self.senders.under_way().executed(&came, &executed.included);
        self.append(state, &environment, executed)
    }

    fn root(&self, _: &dyn State) -> Result<Digest, StateError> {
        Ok(proof::root(&self.tree.root(), &self.newest()?.hash))
    }

    fn is_whole(&self, state: &dyn State) -> Result<bool, StateError> {
        entries::are_whole(state)
    }

    fn query(&self, state: &dyn State, query: &[u8]) -> Result<Result<Proven, String>, StateError> {
        match ProofOf::decode(query) {
            Ok(of) => proof::prove(&self.tree, self.newest()?, state, &of),
            Err(error) => Ok(Err(error)),
        }
    }
}

fn service_root(map: &Digest, newest: &B256) -> Digest {
    hash_parts("quorate v1 evm root", &[&map.0, &newest[..]])
}

#[cfg(test)]
mod tests;
