//! What travels between payers and authorities. An order is the encoding of a
//! [`Transaction`](crate::Transaction) as it is.

use crate::{Core, Invalid, OutputId, TxId, Vote};
use borsh::{BorshDeserialize, BorshSerialize};

/// An authority's answer to an order.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Answer {
    /// Which transaction.
    pub tx: TxId,
    /// What the authority says of it.
    pub verdict: Verdict,
}

/// What an authority says of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Verdict {
    /// It votes for it.
    Vote(Vote),
    /// An input is locked for another transaction of the same payer, which this is.
    Locked {
        /// Which input.
        input: OutputId,
        /// What it is locked for: with the refused one, proof that its payer signed two. `None` where the
        /// authority gave it up since.
        first: Option<Box<Core>>,
    },
    /// It is invalid.
    Invalid(Invalid),
    /// The authority has too much to do: ask again later.
    Busy,
}

/// Largest order: inputs with the largest certificates that a network of hundreds makes.
pub const ORDER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Largest answer.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests;
