//! A validator's chain as handlers read it.

use super::beside::Beside;
use super::error::{Failure, internal, invalid, not_found, reading};
use alloy_eips::{BlockId, BlockNumberOrTag};
use alloy_primitives::{Address, B256};
use alloy_rpc_types_eth::{Filter, FilterBlockOption};
use borsh::BorshDeserialize;
use bytes::Bytes;
use quorate_ledger::evm::{
    Account, BlockAt, CallBlock, FoundBlock, FoundLog, FoundTransaction, LogFilter, LogPage, Query,
    UnderWayQuery,
};
use quorate_node::unix_ms;
use quorate_types::Height;
use std::sync::Arc;

/// Most addresses and topics that a filter names.
const NAMED_MAX: usize = 1_000;

/// Queries of the validator's own state.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    pub(super) beside: Arc<Beside>,
}

impl Chain {
    /// Queries the newest state.
    pub(super) fn query<T: BorshDeserialize>(&self, query: &Query) -> Result<T, Failure> {
        self.query_at(None, query)
    }

    /// Queries the state after a height, or the newest.
    pub(super) fn query_at<T: BorshDeserialize>(
        &self,
        at: Option<Height>,
        query: &Query,
    ) -> Result<T, Failure> {
        T::try_from_slice(&self.answer(at, query)?).map_err(internal)
    }

    /// Answer to a query of the state after a height, or the newest, as it comes.
    pub(super) fn answer(&self, at: Option<Height>, query: &Query) -> Result<Bytes, Failure> {
        let answer = self.beside.read(|reading| reading.query(at, &query.encode()))?;
        answer.map_err(reading)
    }

    /// Newest height that is executed here.
    pub(super) fn newest(&self) -> u64 {
        self.beside.newest().0
    }

    /// The height that a name means.
    pub(super) fn height(&self, tag: BlockNumberOrTag) -> u64 {
        match tag {
            BlockNumberOrTag::Number(number) => number,
            BlockNumberOrTag::Earliest => 0,
            // What is executed here was decided, and nothing takes it back.
            BlockNumberOrTag::Latest
            | BlockNumberOrTag::Finalized
            | BlockNumberOrTag::Safe
            | BlockNumberOrTag::Pending => self.newest(),
        }
    }

    /// Height whose state a name means; `None` means the newest.
    pub(super) fn state(&self, at: Option<BlockId>) -> Result<Option<Height>, Failure> {
        match at {
            None => Ok(None),
            Some(BlockId::Number(BlockNumberOrTag::Number(number))) => Ok(Some(Height(number))),
            Some(BlockId::Number(BlockNumberOrTag::Earliest)) => Ok(Some(Height(0))),
            Some(BlockId::Number(_)) => Ok(None),
            Some(BlockId::Hash(hash)) => {
                let found = self.block(BlockAt::Hash(hash.block_hash), false)?;
                let found = found.ok_or_else(|| not_found("there is no block of this hash"))?;
                Ok(Some(Height(found.block.header().map_err(internal)?.number)))
            }
        }
    }

    /// State and block that a call takes part in: the block that would come now, unless it names
    /// one by its number or hash.
    pub(super) fn call_block(
        &self,
        at: Option<BlockId>,
    ) -> Result<(Option<Height>, CallBlock), Failure> {
        let state = self.state(at)?;
        let block = state.map_or_else(|| CallBlock::Next(unix_ms()), |_| CallBlock::Newest);
        Ok((state, block))
    }

    pub(super) fn block(
        &self,
        at: BlockAt,
        transactions: bool,
    ) -> Result<Option<FoundBlock>, Failure> {
        self.query(&Query::Block { at, transactions })
    }

    pub(super) fn block_by_tag(
        &self,
        tag: BlockNumberOrTag,
        transactions: bool,
    ) -> Result<Option<FoundBlock>, Failure> {
        self.block(BlockAt::Height(self.height(tag)), transactions)
    }

    /// A transaction with its block, by its hash.
    pub(super) fn transaction(&self, hash: B256) -> Result<Option<FoundTransaction>, Failure> {
        self.query(&Query::Transaction(hash))
    }

    pub(super) fn account(&self, at: Option<Height>, of: Address) -> Result<Account, Failure> {
        self.query_at(at, &Query::Account(of))
    }

    /// Asks of the transactions that are under way, here or elsewhere in the committee.
    pub(super) fn under_way<T: BorshDeserialize>(
        &self,
        query: UnderWayQuery,
    ) -> Result<T, Failure> {
        self.query(&Query::UnderWay(query))
    }

    /// A filter as the ledger knows it; `None` where it names a block that is not there.
    pub(super) fn filter(&self, filter: &Filter) -> Result<Option<LogFilter>, Failure> {
        check_filter(filter)?;
        let heights = match filter.block_option {
            FilterBlockOption::Range { from_block, to_block } => {
                let height = |tag: Option<BlockNumberOrTag>| self.height(tag.unwrap_or_default());
                let (from, to) = (height(from_block), height(to_block));
                if from > to && from_block.is_some_and(|tag| tag.is_number()) && to_block.is_some()
                {
                    return Err(invalid("invalid block range params"));
                }
                (from, to)
            }
            FilterBlockOption::AtBlockHash(hash) => {
                let Some(found) = self.block(BlockAt::Hash(hash), false)? else { return Ok(None) };
                let number = found.block.header().map_err(internal)?.number;
                (number, number)
            }
        };
        let topics = filter.topics.iter().map(|any| any.iter().copied().collect::<Vec<B256>>());
        let addresses = filter.address.iter().copied().collect();
        Ok(Some(LogFilter { heights, addresses, topics: topics.collect() }))
    }

    /// Logs from an index in the filter's first block on, as many as an answer holds.
    pub(super) fn log_page(&self, filter: LogFilter, from: u32) -> Result<LogPage, Failure> {
        self.query(&Query::LogPage { filter, from })
    }

    pub(super) fn logs(&self, filter: LogFilter) -> Result<Vec<FoundLog>, Failure> {
        self.query(&Query::Logs(filter))
    }
}

/// Refuses a filter that ends above the newest block: without the blocks up to there, what is found
/// would look like all that there is.
pub(super) fn check_end(filter: &Filter, newest: u64) -> Result<(), Failure> {
    if filter.get_to_block().is_some_and(|end| end > newest) {
        return Err(invalid("block range extends beyond current head block"));
    }
    Ok(())
}

/// Refuses a filter that takes too much to keep.
pub(super) fn check_filter(filter: &Filter) -> Result<(), Failure> {
    let topics: usize = filter.topics.iter().map(|any| any.iter().count()).sum();
    if filter.address.iter().count() + topics > NAMED_MAX {
        let text = format!("a filter names at most {NAMED_MAX} addresses and topics");
        return Err(invalid(text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_of_blocks_that_are_there() {
        let up_to = |tag: BlockNumberOrTag| check_end(&Filter::new().to_block(tag), 7);
        assert!(up_to(7.into()).is_ok());
        assert!(up_to(BlockNumberOrTag::Latest).is_ok());
        let refused = up_to(8.into()).expect_err("it is not there");
        assert_eq!(refused.message(), "block range extends beyond current head block");
    }

    #[test]
    fn a_filter_names_few() {
        let of = |addresses: u16, topics: u16| {
            let address = |number: u16| Address::left_padding_from(&number.to_be_bytes());
            let topic = |number: u16| B256::left_padding_from(&number.to_be_bytes());
            let filter = Filter::new().address((0..addresses).map(address).collect::<Vec<_>>());
            filter.topic2((0..topics).map(topic).collect::<Vec<_>>())
        };
        assert!(check_filter(&Filter::new()).is_ok());
        assert!(check_filter(&of(900, 100)).is_ok());
        assert!(check_filter(&of(900, 101)).is_err());
    }
}
