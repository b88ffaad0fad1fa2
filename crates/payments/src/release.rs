//! Release of coins that their payments left locked, decided in an order (ADR 26).
//!
//! # Assumptions
//!
//! n authorities of whom faulty ones weigh F at most, and an order that all of them follow: that
//! of a committee. An authority that executes a freeze votes for nothing new over that coin any
//! more, durably, before it reports (★). A report is of what it was locked for then.
//!
//! # Specification
//!
//! ```text
//! free ──▶ frozen ──▶ n − f reports ──▶ decided: one transaction, or a refund
//!   Freeze   Report     │    ▲              ▲
//!                       └────┘              │
//!                  while two are possible   └── Certified, at any time
//! ```
//!
//! * **Possible** is a transaction while at each of its coins the authorities that reported it and
//!   those that reported nothing yet weigh q − F or more: so many honest ones may have voted for it
//!   that with the faulty it may be certified (★). It never becomes possible again.
//! * **Refund**: authorities of n − F reported, and nothing that takes the coin is possible. The
//!   coin goes back to its owner by a transaction of another name. The coin itself is never free
//!   again (★): votes from before would add up with later ones.
//! * **One transaction** is decided where it alone is possible, at *each* of its coins (★): its
//!   other inputs may be another's, which may have been certified. They have to be frozen too.
//! * **Certified**: whoever shows a certificate ends the matter at once.
//!
//! Authorities vote for what was decided, whatever they were locked for, and for nothing else.
//!
//! # Deviations from the design's first form
//!
//! * A freeze takes its owner's signature, or the proof that it signed two transactions: with one
//!   transaction alone every authority that is shown a payment could freeze it.
//! * Transactions of several inputs are decided for all of their coins together.

mod docket;
mod rules;
mod step;

pub use docket::{Docket, Known, MemoryDocket, Standing};
pub use rules::{Decided, Refusal, Releases};
pub use step::{Cause, Freeze, ReleaseStep, Report, StepError};

use crate::{Core, OutputId, TxId};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::IdentityKey;
use std::fmt;

/// End of a coin's release.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub enum Decision {
    /// The coin goes to this transaction, for which every authority votes.
    Spend(TxId),
    /// The coin goes back to its owner, by [`Transaction::refund`](crate::Transaction::refund).
    Refund,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spend(tx) => write!(f, "it goes to transaction {tx}"),
            Self::Refund => f.write_str("it goes back to its owner"),
        }
    }
}

/// Lock of a frozen coin, as an authority reports it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Held {
    /// It voted for nothing that takes the coin.
    Free,
    /// It voted for this.
    For(Core),
    /// It voted for this, and pruned the rest since. Nothing is decided for it until somebody shows
    /// the rest; with reports enough it is ruled out as any other.
    Pruned(TxId),
}

impl Held {
    /// Name of the transaction that the coin is locked for.
    #[must_use]
    pub fn tx(&self) -> Option<TxId> {
        match self {
            Self::Free => None,
            Self::For(core) => Some(core.id),
            Self::Pruned(tx) => Some(*tx),
        }
    }
}

/// Change by an ordered step, as those learn it who follow the order.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Ordered {
    /// Coins are frozen that were not before.
    Freeze {
        /// Owner of them all: the shard that votes for what it spends is the one that reports.
        owner: IdentityKey,
        /// Names of the coins.
        coins: Vec<OutputId>,
    },
    /// The releases of coins ended.
    Decided(Decided),
}

#[cfg(test)]
mod tests;
