//! Results of transactions that took their place in a block, as their clients' receipts prove them.

use alloy_primitives::{Address, B256};
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use quorate_types::Outcome;

/// Result of a transaction. One that was invalid where it stood is an [`Outcome::Refused`] with the
/// reason in plain text, and is in no block.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct TransactionResult {
    /// Hash of the transaction, as Ethereum names it.
    pub transaction: B256,
    /// Its index in the block of its height.
    pub index: u32,
    /// Set if it took effect; otherwise only its gas was paid for.
    pub success: bool,
    /// Gas that it used.
    pub gas_used: u64,
    /// The contract that it created.
    pub created: Option<Address>,
    /// Reason of a failure: the beginning of what a revert returned, or the name of what stopped
    /// it.
    pub reason: Bytes,
}

impl TransactionResult {
    pub(super) fn outcome(&self) -> Outcome {
        Outcome::Applied(super::stored::encode(self).into())
    }

    /// Reads what an applied operation came to.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        Self::try_from_slice(bytes).ok()
    }
}
