//! Messages between payers and authorities. An order is the encoding of a
//! [`Transaction`](crate::Transaction) as it is.

use crate::release::Decision;
use crate::{Core, Invalid, OutputId, TxId, Vote};
use borsh::{BorshDeserialize, BorshSerialize};

/// An authority's answer to an order.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Answer {
    /// Transaction that the answer is about.
    pub tx: TxId,
    /// Verdict of the authority.
    pub verdict: Verdict,
}

/// Verdict of an authority on a transaction.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Verdict {
    /// The authority votes for the transaction.
    Vote(Vote),
    /// An input is locked for another transaction of the same payer, which this is.
    Locked {
        /// Input that is locked.
        input: OutputId,
        /// Transaction that the input is locked for: with the refused one, proof that its payer
        /// signed two. `None` where the authority has pruned it since.
        first: Option<Box<Core>>,
    },
    /// The transaction breaks this rule.
    Invalid(Invalid),
    /// The authority has too much to do: ask again later.
    Busy,
    /// An input is under release, or a refund of it not decided, as far as the authority followed
    /// the order: ask again later.
    Undecided {
        /// Input whose release is not decided.
        input: OutputId,
    },
    /// The release of an input ended otherwise: the transaction will never be voted for.
    Released {
        /// Input whose release ended.
        input: OutputId,
        /// What it ended with.
        decision: Decision,
    },
    /// The authority's epoch has ended: the next one's authorities vote.
    Closed,
}

/// Largest order: inputs with the largest certificates that a network of hundreds makes.
pub const ORDER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Largest encoding of an answer, in bytes.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Largest request of a wallet, in bytes: the largest order and a note.
pub const REQUEST_BYTES_MAX: usize = ORDER_BYTES_MAX + 16 * 1024;

/// Largest reply to a wallet, in bytes: one record of the largest order, at least.
pub const REPLY_BYTES_MAX: usize = ORDER_BYTES_MAX + 64 * 1024;

#[cfg(test)]
mod tests;
