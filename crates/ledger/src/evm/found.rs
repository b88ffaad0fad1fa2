//! Transactions and logs as they are found, with their places in the chain.

use super::history::{self, StoredBlock, StoredLog, StoredTransaction, TransactionLocation};
use super::stored;
use alloy_primitives::B256;
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_types::service::{State, StateError};

/// Most logs of one answer.
pub const LOGS_MAX: usize = 10_000;

/// Most bytes of the logs of one answer: of their data, and 256 for each.
pub const LOGS_BYTES_MAX: usize = 4 << 20;

/// Bytes that a log counts for beside its data: its topics, and where it was logged.
const LOG_BYTES: usize = 256;

/// A transaction that was asked for, with its block.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct FoundTransaction {
    /// Location of the transaction in the chain.
    pub location: TransactionLocation,
    /// Block that holds the transaction.
    pub block: StoredBlock,
    /// Transaction with its result.
    pub transaction: StoredTransaction,
}

/// A log with its place.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct FoundLog {
    /// Height of the log's block.
    pub height: u64,
    /// Hash of the log's block.
    pub block: B256,
    /// Its block's time, in seconds.
    pub timestamp: u64,
    /// Hash of the log's transaction.
    pub transaction: B256,
    /// Its transaction's index in the block.
    pub transaction_index: u32,
    /// Its own index in the block.
    pub index: u32,
    /// Log as the contract emitted it.
    pub log: StoredLog,
}

/// Logs that were found so far, within the bounds of an answer.
#[derive(Default)]
pub(super) struct FoundLogs {
    pub(super) logs: Vec<FoundLog>,
    bytes: usize,
}

impl FoundLogs {
    /// Adds one; `false` where there is no room for it.
    pub(super) fn push(&mut self, log: FoundLog) -> bool {
        self.bytes += LOG_BYTES + log.log.data.len();
        let fits = self.logs.len() < LOGS_MAX && self.bytes <= LOGS_BYTES_MAX;
        if fits {
            self.logs.push(log);
        }
        fits
    }
}

/// The transaction at a place where there is one.
pub(super) fn find_at(
    state: &dyn State,
    location: TransactionLocation,
) -> Result<FoundTransaction, StateError> {
    let block = history::block(state, location.height)?.ok_or_else(stored::damaged)?;
    let transaction = history::transaction(state, location)?.ok_or_else(stored::damaged)?;
    Ok(FoundTransaction { location, block, transaction })
}
