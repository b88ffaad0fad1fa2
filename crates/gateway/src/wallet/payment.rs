//! Payments and what else a wallet's history tells.

use super::book::Ending;
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::IdentityKey;
use quorate_payments::{
    Equivocation, Invalid, Memo, Outcome, Output, Transaction, TxCertificate, TxId,
};
use std::sync::Arc;

/// What the wallet's owner wants done.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Order {
    /// What is to happen.
    pub purpose: Purpose,
    /// What is said with it, to whoever gets the receipt; at most [`Memo::BYTES_MAX`] bytes. No authority
    /// sees it.
    pub memo: Option<String>,
}

/// What a payment is for. Values are in the smallest unit, at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Purpose {
    /// Coins of this wallet become somebody else's.
    Pay {
        /// Whose.
        payee: IdentityKey,
        /// How much.
        value: u64,
    },
    /// The issuer makes money.
    Issue {
        /// For whom; it may be for itself.
        payee: IdentityKey,
        /// How much.
        value: u64,
    },
    /// Coins are burnt; the issuer pays them out elsewhere.
    Redeem {
        /// How much.
        value: u64,
    },
    /// Many small coins become one.
    Consolidate,
}

impl Purpose {
    /// A word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pay { .. } => "pay",
            Self::Issue { .. } => "issue",
            Self::Redeem { .. } => "redeem",
            Self::Consolidate => "consolidate",
        }
    }
}

/// A payment that was begun: stored, and perhaps shown to authorities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    /// Its transaction's name.
    pub id: TxId,
    /// What was wanted.
    pub order: Order,
    /// The caller's name for it: the same one never begins a second payment.
    pub key: Option<String>,
    /// What is shown to authorities, always the same bytes.
    pub transaction: Arc<Transaction>,
    /// When it began, in milliseconds since the Unix epoch.
    pub begun_ms: u64,
    /// How it stands.
    pub state: PaymentState,
}

impl Payment {
    /// Who gets something of it.
    #[must_use]
    pub fn payee(&self) -> IdentityKey {
        match self.order.purpose {
            Purpose::Pay { payee, .. } | Purpose::Issue { payee, .. } => payee,
            Purpose::Redeem { .. } => Output::BURNT,
            Purpose::Consolidate => self.transaction.payer,
        }
    }

    /// How much they get.
    #[must_use]
    pub fn value(&self) -> u64 {
        let payee = self.payee();
        let theirs = self.transaction.outputs.iter().filter(|output| output.owner == payee);
        theirs.map(|output| output.value).sum()
    }
}

/// How a payment stands. Times are in milliseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaymentState {
    /// Its outcome is not known here: it is to be sent again.
    Begun,
    /// Final.
    Certified {
        /// A quorum's votes.
        certificate: Box<TxCertificate>,
        /// When.
        at_ms: u64,
    },
    /// It never will be, and its coins are free again.
    Refused {
        /// Why.
        reason: Invalid,
        /// When.
        at_ms: u64,
    },
    /// Another transaction of the same owner took one of its coins: they are frozen.
    Conflicting {
        /// The proof that the owner signed two, where an authority showed one.
        evidence: Option<Box<Equivocation>>,
        /// When.
        at_ms: u64,
    },
}

impl PaymentState {
    /// A word for it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Begun => "unfinished",
            Self::Certified { .. } => "certified",
            Self::Refused { .. } => "refused",
            Self::Conflicting { .. } => "conflicting",
        }
    }

    /// When it ended, if it did.
    #[must_use]
    pub fn ended_ms(&self) -> Option<u64> {
        match self {
            Self::Begun => None,
            Self::Certified { at_ms, .. }
            | Self::Refused { at_ms, .. }
            | Self::Conflicting { at_ms, .. } => Some(*at_ms),
        }
    }

    pub(super) fn of(ending: &Ending, at_ms: u64) -> Self {
        match ending.clone() {
            Ending::Certified(one) => Self::Certified { certificate: Box::new(one), at_ms },
            Ending::Refused(reason) => Self::Refused { reason, at_ms },
            Ending::Conflicting(evidence) => Self::Conflicting { evidence, at_ms },
        }
    }
}

impl From<Outcome> for Ending {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Certified(certificate) => Self::Certified(*certificate),
            Outcome::Refused(reason) => Self::Refused(reason),
            Outcome::Conflicting(evidence) => Self::Conflicting(evidence),
        }
    }
}

/// Coins that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Incoming {
    /// The transaction that made them.
    pub(super) tx: TxId,
    /// Who paid; `None` for what the network began with.
    pub(super) payer: Option<IdentityKey>,
    /// How much of it was new here.
    pub(super) value: u64,
    /// What the payer said.
    pub(super) memo: Option<String>,
    /// When it was taken in, in milliseconds since the Unix epoch.
    pub(super) at_ms: u64,
}

/// A line of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// Coins came in.
    Incoming(Incoming),
    /// A payment was begun.
    Payment(Box<Payment>),
}

impl Order {
    /// An order of at least 1 with a memo that fits.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        match self.purpose {
            Purpose::Pay { value: 0, .. }
            | Purpose::Issue { value: 0, .. }
            | Purpose::Redeem { value: 0 } => return Err("the value must be at least 1"),
            _ => {}
        }
        match &self.memo {
            Some(memo) if memo.len() > Memo::BYTES_MAX => Err("a memo has at most 1024 bytes"),
            _ => Ok(()),
        }
    }
}
