//! Queries of the chain, answered from a view of the state beside execution.

use super::call::{Call, CallBlock, DryRun, Simulation};
use super::found::{FoundLog, FoundLogs, FoundTransaction, LOGS_BYTES_MAX, LOGS_MAX, find_at};
use super::history::{self, FoundBlock, StoredBlock, StoredLog};
use super::index::{self, IndexQuery};
use super::overrides::Overrides;
use super::simulate::{self, Simulated};
use super::trace::{self, TraceBlock, TraceForm};
use super::under_way::{UnderWay, UnderWayQuery};
use super::world::{self, Account, Codes};
use super::{ChainRules, Genesis, stored};
use alloy_primitives::{Address, B256, Bloom, BloomInput, U256};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_types::service::{Reader, State, StateError};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Most blocks that one query about logs may span.
pub const LOG_BLOCKS_MAX: u64 = 100_000;

/// Query of the chain, answered by every member from its own state.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Query {
    /// The newest block: a [`Head`].
    Head,
    /// A block: an `Option<`[`FoundBlock`]`>`.
    Block {
        /// Block by height or by hash.
        at: BlockAt,
        /// Set to get its transactions too, where they are kept.
        transactions: bool,
    },
    /// A transaction by its hash: an `Option<`[`FoundTransaction`]`>`.
    Transaction(B256),
    /// An account: an [`Account`], the empty one where there is none.
    Account(Address),
    /// An account's code: `Bytes`.
    Code(Address),
    /// Storage slots: a `Vec<U256>`.
    Slots(Vec<(Address, U256)>),
    /// Dry run of a transaction in a block: a [`Called`](super::Called).
    Call(DryRun),
    /// Gas that a transaction needs to succeed: a `Result<u64, `[`Called`](super::Called)`>`, whose
    /// error is its result with all the gas there is.
    Estimate(DryRun),
    /// Accounts and slots that a dry run touches, beside its sender, what it calls and what is
    /// always at hand: an [`Accessed`](super::Accessed).
    AccessList(DryRun),
    /// Trace of a dry run: JSON.
    TraceCall(DryRun, TraceForm),
    /// Traces of dry runs, each on what those before it left: JSON.
    TraceCalls(Vec<(Call, TraceForm)>, CallBlock),
    /// Traces of a block's transactions, put to the state after the block before it: JSON.
    TraceBlock(TraceBlock),
    /// Blocks that are not, after the newest: a `Result<Vec<`[`SimulationResult`]`>,
    /// `[`SimulationFailure`]`>`.
    ///
    /// [`SimulationResult`]: super::SimulationResult
    /// [`SimulationFailure`]: super::SimulationFailure
    Simulate(Simulated),
    /// Logs that contracts emitted: a `Vec<`[`FoundLog`]`>`.
    Logs(LogFilter),
    /// Logs from an index in the filter's first block on, however many there are: a [`LogPage`].
    LogPage {
        /// Filter that they pass.
        filter: LogFilter,
        /// Index in the first block of the first log that is wanted.
        from: u32,
    },
    /// Transactions that are taken, by the version that executes: [`ChainRules`].
    Rules,
    /// Transactions that came here and are not executed yet.
    UnderWay(UnderWayQuery),
    /// Query of the index beside the state.
    Index(IndexQuery),
}

/// Name of a block in a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum BlockAt {
    /// Name by the block's height.
    Height(u64),
    /// Name by the block's hash.
    Hash(B256),
}

/// Newest block of the chain, by height and hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Head {
    /// Height of the newest block.
    pub height: u64,
    /// Hash of the newest block.
    pub hash: B256,
    /// The oldest block whose transactions are kept.
    pub oldest: u64,
}

/// Filter of logs. Empty lists let all pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LogFilter {
    /// The first block, and the last.
    pub heights: (u64, u64),
    /// Addresses of contracts, any of which may have logged it.
    pub addresses: Vec<Address>,
    /// Topics that may stand in each place.
    pub topics: Vec<Vec<B256>>,
}

/// Logs in their order, as many as an answer holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LogPage {
    /// Logs that pass the filter.
    pub logs: Vec<FoundLog>,
    /// Height of the next that passes, and its index there; `None` at the end.
    pub next: Option<(u64, u32)>,
}

impl LogFilter {
    /// Returns `true` if a log passes the filter.
    #[must_use]
    pub fn passes(&self, log: &StoredLog) -> bool {
        let is_asked = self.addresses.is_empty() || self.addresses.contains(&log.address);
        let topic = |(index, any): (usize, &Vec<B256>)| {
            any.is_empty() || log.topics.get(index).is_some_and(|topic| any.contains(topic))
        };
        is_asked && self.topics.iter().enumerate().all(topic)
    }

    /// Blooms that a block's filter must hold: of each list one.
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

    fn find(self, state: &dyn State) -> Result<Result<Vec<FoundLog>, String>, StateError> {
        let page = match self.page(state, 0)? {
            Ok(page) => page,
            Err(reason) => return Ok(Err(reason)),
        };
        Ok(match page.next {
            None => Ok(page.logs),
            Some(_) if page.logs.len() == LOGS_MAX => {
                Err(format!("query returned more than {LOGS_MAX} results"))
            }
            Some(_) => Err(format!("query returned more than {LOGS_BYTES_MAX} bytes")),
        })
    }

    /// The logs from an index in the first block on, as many as an answer holds. One fits always: a
    /// transaction's gas bounds its data.
    fn page(
        mut self,
        state: &dyn State,
        first: u32,
    ) -> Result<Result<LogPage, String>, StateError> {
        let newest = history::meta(state)?.map_or(0, |meta| meta.height);
        self.heights.1 = self.heights.1.min(newest);
        let (from, to) = self.heights;
        if to.saturating_sub(from) >= LOG_BLOCKS_MAX {
            return Ok(Err(format!("query exceeds max block range {LOG_BLOCKS_MAX}")));
        }
        let (blooms, mut found) = (self.blooms(), FoundLogs::default());
        for height in self.heights(state)? {
            let Some(block) = history::block(state, height)? else { continue };
            let bloom = block.header()?.logs_bloom;
            let holds = |one: &Bloom| bloom.contains(one);
            if !blooms.iter().all(|any| any.iter().any(holds)) {
                continue;
            }
            for log in self.passing(state, &block)? {
                if height == from && log.index < first {
                    continue;
                }
                let place = (height, log.index);
                if !found.push(log) {
                    return Ok(Ok(LogPage { logs: found.logs, next: Some(place) }));
                }
            }
        }
        Ok(Ok(LogPage { logs: found.logs, next: None }))
    }

    /// The logs of a block that pass.
    fn passing(
        &self,
        state: &dyn State,
        block: &StoredBlock,
    ) -> Result<impl Iterator<Item = FoundLog>, StateError> {
        let (header, hash) = (block.header()?, block.hash);
        let (height, timestamp) = (header.number, header.timestamp);
        let transactions = history::transactions(state, height, block.transactions)?;
        let located = (0..).zip(transactions).flat_map(move |(transaction_index, from)| {
            let transaction = from.hash;
            (from.logs_before..).zip(from.logs).map(move |(index, log)| FoundLog {
                height,
                block: hash,
                timestamp,
                transaction,
                transaction_index,
                index,
                log,
            })
        });
        Ok(located.filter(|found| self.passes(&found.log)))
    }
}

impl Query {
    /// The bytes of this query.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        stored::encode(self)
    }
}

/// Reader that answers queries from views of the state.
#[derive(Debug)]
pub(super) struct EvmReader {
    genesis: Arc<Genesis>,
    rules: ChainRules,
    pub(super) codes: Codes,
    under_way: Arc<UnderWay>,
}

impl Reader for EvmReader {
    fn query(
        &self,
        state: &dyn State,
        query: &[u8],
    ) -> Result<Result<bytes::Bytes, String>, StateError> {
        match Query::try_from_slice(query) {
            Ok(query) => self.answer(state, query),
            Err(error) => Ok(Err(format!("this is no question: {error}"))),
        }
    }
}

type Answer = Result<Result<bytes::Bytes, String>, StateError>;

fn answer(content: &impl BorshSerialize) -> Answer {
    Ok(Ok(stored::encode(content).into()))
}

impl EvmReader {
    pub(super) fn new(genesis: Arc<Genesis>, rules: ChainRules, under_way: Arc<UnderWay>) -> Self {
        Self { genesis, rules, codes: Codes::default(), under_way }
    }

    fn simulation<'a>(
        &'a self,
        state: &'a dyn State,
        DryRun { block, overrides, .. }: &'a DryRun,
    ) -> Result<Simulation<'a>, StateError> {
        Simulation::new((&self.genesis, &self.codes), state, *block, overrides)
    }

    fn answer(&self, state: &dyn State, query: Query) -> Answer {
        match query {
            Query::Head => answer(&head(state)?),
            Query::Block { at, transactions } => answer(&find_block(state, at, transactions)?),
            Query::Transaction(hash) => answer(&find_transaction(state, hash)?),
            Query::Account(at) => answer(&account(state, at)?),
            Query::Code(at) => answer(&world::code(state, account(state, at)?.code_hash)?),
            Query::Slots(slots) => {
                let value = |(at, slot)| world::slot(state, at, slot);
                answer(&slots.into_iter().map(value).collect::<Result<Vec<U256>, _>>()?)
            }
            Query::Call(run) => answer(&self.simulation(state, &run)?.call(&run.call)?),
            Query::Estimate(run) => answer(&self.simulation(state, &run)?.estimate(&run.call)?),
            Query::AccessList(run) => {
                let accessed = trace::accessed(&self.simulation(state, &run)?, &run.call)?;
                accessed.map_or_else(|reason| Ok(Err(reason)), |accessed| answer(&accessed))
            }
            Query::TraceCall(run, form) => {
                trace::call(&self.simulation(state, &run)?, &run.call, &form)
            }
            Query::TraceCalls(calls, block) => {
                let (world, as_it_is) = ((&*self.genesis, &self.codes), Overrides::default());
                trace::calls(&Simulation::new(world, state, block, &as_it_is)?, &calls)
            }
            Query::TraceBlock(of) => trace::block((&self.genesis, &self.codes), state, &of),
            Query::Simulate(simulated) => {
                answer(&simulate::simulate((&self.genesis, &self.codes), state, &simulated)?)
            }
            Query::Rules => answer(&self.rules),
            Query::UnderWay(query) => Ok(Ok(self.under_way.answer(&query).into())),
            Query::Logs(filter) => match filter.find(state)? {
                Ok(found) => answer(&found),
                Err(error) => Ok(Err(error)),
            },
            Query::LogPage { filter, from } => match filter.page(state, from)? {
                Ok(page) => answer(&page),
                Err(error) => Ok(Err(error)),
            },
            Query::Index(query) => self.answer_by_index(state, query),
        }
    }

    fn answer_by_index(&self, state: &dyn State, query: IndexQuery) -> Answer {
        let (genesis, codes) = (&self.genesis, &self.codes);
        let index = state.index().filter(|index| index.known_after().is_some());
        let Some(index) = index else {
            return match query {
                IndexQuery::Begins => answer(&None::<u64>),
                _ => Ok(Err("this validator keeps no index: it has no archive".into())),
            };
        };
        let reading = index::Reading { genesis, codes, state, index };
        match query {
            IndexQuery::Begins => answer(&reading.begins()?),
            IndexQuery::Transactions { account, beyond, order, most } => {
                answer(&reading.transactions(account, beyond, order, most)?)
            }
            IndexQuery::Creation(contract) => answer(&reading.creation(contract)?),
            IndexQuery::Transfers { of, before, most } => {
                answer(&reading.transfers(of, before, most)?)
            }
            IndexQuery::Holders { token, after, most } => {
                answer(&reading.holders(token, after, most)?)
            }
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
    let location = history::location_of(state, hash)?;
    location.map(|location| find_at(state, location)).transpose()
}
