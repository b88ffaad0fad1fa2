//! Questions about the chain, answered from a view of the state beside execution.

use super::history::{self, Place, StoredBlock, StoredLog, StoredTransaction};
use super::world::{self, Account, Codes};
use super::{Genesis, call, stored};
use alloy_primitives::{Address, B256, Bloom, BloomInput, Bytes, TxKind, U256};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_types::service::{Reader, State, StateError};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Most logs of one answer.
pub const LOGS_MAX: usize = 10_000;

/// Most blocks that one question about logs may span.
pub const LOG_BLOCKS_MAX: u64 = 100_000;

/// What can be asked.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Question {
    /// The newest block: a [`Head`].
    Head,
    /// A block: an `Option<`[`FoundBlock`]`>`.
    Block {
        /// Which.
        at: BlockAt,
        /// With its transactions, where they are kept.
        transactions: bool,
    },
    /// A transaction by its hash: an `Option<`[`FoundTransaction`]`>`.
    Transaction(B256),
    /// An account: an [`Account`], the empty one where there is none.
    Account(Address),
    /// An account's code: `Bytes`.
    Code(Address),
    /// A storage slot: a `U256`.
    Slot(Address, U256),
    /// What a transaction would come to after the newest block: a [`Called`].
    Call(Call),
    /// How much gas a transaction needs to succeed: a `Result<u64, `[`Called`]`>`, which is what it comes to
    /// with all the gas there is.
    Estimate(Call),
    /// What contracts logged: a `Vec<`[`FoundLog`]`>`.
    Logs(LogFilter),
}

/// How a block is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum BlockAt {
    /// By its height.
    Height(u64),
    /// By its hash.
    Hash(B256),
}

/// The newest block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Head {
    /// Its height.
    pub height: u64,
    /// Its hash.
    pub hash: B256,
    /// The oldest block whose transactions are kept.
    pub oldest: u64,
}

/// A block that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct FoundBlock {
    /// The block.
    pub block: StoredBlock,
    /// Its transactions; none where they are not kept any more, or were not asked for.
    pub transactions: Vec<StoredTransaction>,
}

/// A transaction that was asked for, with its block.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct FoundTransaction {
    /// Where it is.
    pub place: Place,
    /// Its block.
    pub block: StoredBlock,
    /// The transaction.
    pub transaction: StoredTransaction,
}

/// A transaction that nobody signed.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Call {
    /// Who would have sent it.
    pub from: Address,
    /// Whom it calls; without, it creates a contract.
    pub to: Option<Address>,
    /// Most gas; by default, and at most, as much as a transaction may use.
    pub gas: Option<u64>,
    /// Wei a unit of gas.
    pub gas_price: u128,
    /// Wei that it carries.
    pub value: U256,
    /// What it says.
    pub data: Bytes,
    /// What it says that it will touch (EIP-2930).
    pub access_list: Vec<(Address, Vec<B256>)>,
}

impl Call {
    pub(super) fn kind(&self) -> TxKind {
        self.to.map_or(TxKind::Create, TxKind::Call)
    }
}

/// What a call comes to.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Called {
    /// It succeeds.
    Success {
        /// What it returns; of a creation, the contract's code.
        output: Bytes,
        /// Gas that it uses.
        gas_used: u64,
    },
    /// It is reverted.
    Reverted {
        /// What the revert says.
        output: Bytes,
    },
    /// It stops otherwise.
    Halted {
        /// Why.
        reason: String,
    },
    /// It cannot begin.
    Invalid {
        /// Why.
        reason: String,
    },
}

/// Which logs. Empty lists let all pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LogFilter {
    /// The first block, and the last.
    pub heights: (u64, u64),
    /// Whose.
    pub addresses: Vec<Address>,
    /// For each place of a topic, what may stand there.
    pub topics: Vec<Vec<B256>>,
}

/// A log with its place.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct FoundLog {
    /// Its block's height.
    pub height: u64,
    /// Its block's hash.
    pub block: B256,
    /// Its block's time, in seconds.
    pub timestamp: u64,
    /// Its transaction's hash.
    pub transaction: B256,
    /// Its transaction's index in the block.
    pub transaction_index: u32,
    /// Its own index in the block.
    pub index: u32,
    /// What was logged.
    pub log: StoredLog,
}

impl LogFilter {
    /// Whether a log passes.
    #[must_use]
    pub fn passes(&self, log: &StoredLog) -> bool {
        let is_asked = self.addresses.is_empty() || self.addresses.contains(&log.address);
        let topic = |(index, any): (usize, &Vec<B256>)| {
            any.is_empty() || log.topics.get(index).is_some_and(|topic| any.contains(topic))
        };
        is_asked && self.topics.iter().enumerate().all(topic)
    }

    /// What each block's filter is asked for: of each list one must be there.
    fn blooms(&self) -> Vec<Vec<Bloom>> {
        let bloom = |bytes: &[u8]| Bloom::from(BloomInput::Raw(bytes));
        let addresses = self.addresses.iter().map(|address| bloom(&address[..])).collect();
        let topics = self.topics.iter();
        let topics = topics.map(|any| any.iter().map(|topic| bloom(&topic[..])).collect());
        std::iter::once(addresses).chain(topics).filter(|any: &Vec<_>| !any.is_empty()).collect()
    }

    /// The heights that may have one.
    fn heights(&self, state: &dyn State) -> Result<Vec<u64>, StateError> {
        let (from, to) = self.heights;
        if self.addresses.is_empty() {
            return Ok((from..=to).collect());
        }
        let mut heights = BTreeSet::new();
        for address in &self.addresses {
            heights.extend(history::logged(state, *address, (from, to), usize::MAX)?);
        }
        Ok(heights.into_iter().collect())
    }

    fn find(mut self, state: &dyn State) -> Result<Result<Vec<FoundLog>, String>, StateError> {
        let newest = history::meta(state)?.map_or(0, |meta| meta.height);
        self.heights.1 = self.heights.1.min(newest);
        let (from, to) = self.heights;
        if to.saturating_sub(from) >= LOG_BLOCKS_MAX {
            return Ok(Err(format!("query exceeds max block range {LOG_BLOCKS_MAX}")));
        }
        let mut found = Vec::new();
        let blooms = self.blooms();
        for height in self.heights(state)? {
            let Some(block) = history::block(state, height)? else { continue };
            let header = block.header()?;
            let holds = |one: &Bloom| header.logs_bloom.contains(one);
            if !blooms.iter().all(|any| any.iter().any(holds)) {
                continue;
            }
            for (at, transaction) in
                (0..).zip(history::transactions(state, height, block.transactions)?)
            {
                for (index, log) in (transaction.logs_before..).zip(transaction.logs) {
                    if self.passes(&log) {
                        found.push(FoundLog {
                            height,
                            block: block.hash,
                            timestamp: header.timestamp,
                            transaction: transaction.hash,
                            transaction_index: at,
                            index,
                            log,
                        });
                    }
                }
            }
            if found.len() > LOGS_MAX {
                return Ok(Err(format!("query returned more than {LOGS_MAX} results")));
            }
        }
        Ok(Ok(found))
    }
}

impl Question {
    /// The bytes of this question.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        stored::encode(self)
    }
}

/// Who answers.
#[derive(Debug)]
pub(super) struct EvmReader {
    pub(super) genesis: Arc<Genesis>,
    pub(super) codes: Codes,
}

impl Reader for EvmReader {
    fn query(
        &self,
        state: &dyn State,
        question: &[u8],
    ) -> Result<Result<bytes::Bytes, String>, StateError> {
        match Question::try_from_slice(question) {
            Ok(question) => self.answer(state, question),
            Err(error) => Ok(Err(format!("this is no question: {error}"))),
        }
    }
}

type Answer = Result<Result<bytes::Bytes, String>, StateError>;

fn answer(content: &impl BorshSerialize) -> Answer {
    Ok(Ok(stored::encode(content).into()))
}

impl EvmReader {
    fn answer(&self, state: &dyn State, question: Question) -> Answer {
        match question {
            Question::Head => answer(&head(state)?),
            Question::Block { at, transactions } => answer(&find_block(state, at, transactions)?),
            Question::Transaction(hash) => answer(&find_transaction(state, hash)?),
            Question::Account(at) => answer(&account(state, at)?),
            Question::Code(at) => answer(&world::code(state, account(state, at)?.code_hash)?),
            Question::Slot(at, slot) => answer(&world::slot(state, at, slot)?),
            Question::Call(call) => answer(&call::call(self, state, &call)?),
            Question::Estimate(call) => answer(&call::estimate(self, state, &call)?),
            Question::Logs(filter) => match filter.find(state)? {
                Ok(found) => answer(&found),
                Err(error) => Ok(Err(error)),
            },
        }
    }
}

fn account(state: &dyn State, at: Address) -> Result<Account, StateError> {
    Ok(world::account(state, at)?.unwrap_or_default())
}

pub(super) fn head(state: &dyn State) -> Result<Head, StateError> {
    let meta = history::meta(state)?.ok_or_else(stored::damaged)?;
    Ok(Head { height: meta.height, hash: meta.hash, oldest: meta.oldest })
}

fn find_block(
    state: &dyn State,
    at: BlockAt,
    transactions: bool,
) -> Result<Option<FoundBlock>, StateError> {
    let height = match at {
        BlockAt::Height(height) => Some(height),
        BlockAt::Hash(hash) => history::height_of(state, hash)?,
    };
    let Some(height) = height else { return Ok(None) };
    let Some(block) = history::block(state, height)? else { return Ok(None) };
    let count = if transactions { block.transactions } else { 0 };
    let transactions = history::transactions(state, height, count)?;
    Ok(Some(FoundBlock { block, transactions }))
}

fn find_transaction(state: &dyn State, hash: B256) -> Result<Option<FoundTransaction>, StateError> {
    let Some(place) = history::place_of(state, hash)? else { return Ok(None) };
    let block = history::block(state, place.height)?.ok_or_else(stored::damaged)?;
    let transaction = history::transaction(state, place)?.ok_or_else(stored::damaged)?;
    Ok(Some(FoundTransaction { place, block, transaction }))
}
