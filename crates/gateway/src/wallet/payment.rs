//! Payments and what else a wallet's history tells.

use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::IdentityKey;
use quorate_payments::release::Decision;
use quorate_payments::{
    Equivocation, Invalid, Memo, Output, OutputId, PaymentOutcome, Transaction, TxCertificate, TxId,
};
use std::sync::Arc;

/// Order of a wallet's owner for a payment.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Order {
    /// Purpose, with the payee and the value.
    pub purpose: Purpose,
    /// Memo for the payee, in the receipt; at most [`Memo::BYTES_MAX`] bytes. No authority sees it.
    pub memo: Option<String>,
}

/// Purpose of a payment. Values are in the smallest unit, at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Purpose {
    /// Coins of this wallet become somebody else's.
    Pay {
        /// Key that the coins will belong to.
        payee: IdentityKey,
        /// Value to pay, in the smallest unit.
        value: u64,
    },
    /// The issuer makes money.
    Issue {
        /// Key that gets the money; it may be the issuer itself.
        payee: IdentityKey,
        /// Value to issue, in the smallest unit.
        value: u64,
    },
    /// Coins are burnt; the issuer pays them out elsewhere.
    Redeem {
        /// Value to redeem, in the smallest unit.
        value: u64,
    },
    /// Many small coins become one.
    Consolidate,
    /// A coin comes back because its release was decided so.
    Refund,
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
            Self::Refund => "refund",
        }
    }
}

/// A payment that was begun: stored, and perhaps shown to authorities.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Payment {
    /// Identifier of its transaction.
    pub id: TxId,
    /// Order that it carries out.
    pub order: Order,
    /// The caller's name for it: the same one never begins a second payment.
    pub key: Option<String>,
    /// Name of whoever ordered it, where there are names.
    pub by: Option<String>,
    /// Transaction to show to authorities, always the same bytes.
    pub transaction: Arc<Transaction>,
    /// Time at which it began, in milliseconds since the Unix epoch.
    pub begun_ms: u64,
    /// State as far as it is stored here.
    pub state: PaymentState,
}

impl Payment {
    /// Key that gets the value: the payee, [`Output::BURNT`] for what is redeemed, this wallet's
    /// own for what is consolidated or comes back.
    #[must_use]
    pub fn payee(&self) -> IdentityKey {
        match self.order.purpose {
            Purpose::Pay { payee, .. } | Purpose::Issue { payee, .. } => payee,
            Purpose::Redeem { .. } => Output::BURNT,
            Purpose::Consolidate | Purpose::Refund => self.transaction.payer,
        }
    }

    /// Value that the payee gets, in the smallest unit.
    #[must_use]
    pub fn value(&self) -> u64 {
        let payee = self.payee();
        let theirs = self.transaction.outputs.iter().filter(|output| output.owner == payee);
        theirs.map(|output| output.value).sum()
    }
}

/// State of a payment. Times are in milliseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum PaymentState {
    /// The outcome is not known here: it is to be sent again.
    Begun,
    /// A quorum certified it, which is final.
    Certified {
        /// Votes of a quorum of authorities.
        certificate: Box<TxCertificate>,
        /// Time at which the certificate was stored.
        at_ms: u64,
    },
    /// The payment will never be certified, and its coins are free again.
    Refused {
        /// Rule that the transaction breaks.
        reason: Invalid,
        /// Time at which the refusal was stored.
        at_ms: u64,
    },
    /// Another transaction of the same owner took one of its coins: they are frozen.
    Conflicting {
        /// The proof that the owner signed two, where an authority showed one.
        evidence: Option<Box<Equivocation>>,
        /// Time at which the conflict was stored.
        at_ms: u64,
    },
    /// One of its coins was released otherwise, so that it will never be certified: its coins are
    /// frozen.
    Released {
        /// The coin whose release ended.
        coin: OutputId,
        /// What it ended with.
        decision: Decision,
        /// Time at which that was stored.
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
            Self::Released { .. } => "released",
        }
    }

    /// Time at which the outcome was stored; `None` while there is none.
    #[must_use]
    pub fn ended_ms(&self) -> Option<u64> {
        match self {
            Self::Begun => None,
            Self::Certified { at_ms, .. }
            | Self::Refused { at_ms, .. }
            | Self::Conflicting { at_ms, .. }
            | Self::Released { at_ms, .. } => Some(*at_ms),
        }
    }

    pub(super) fn of(outcome: PaymentOutcome, at_ms: u64) -> Self {
        match outcome {
            PaymentOutcome::Certified(certificate) => Self::Certified { certificate, at_ms },
            PaymentOutcome::Refused(reason) => Self::Refused { reason, at_ms },
            PaymentOutcome::Conflicting(evidence) => Self::Conflicting { evidence, at_ms },
            PaymentOutcome::Released(coin, decision) => Self::Released { coin, decision, at_ms },
        }
    }
}

/// Coins that came in.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) struct Incoming {
    /// The transaction that made them.
    pub(super) tx: TxId,
    /// Key of the payer; `None` for an output of the genesis.
    pub(super) payer: Option<IdentityKey>,
    /// Value that was new here, in the smallest unit.
    pub(super) value: u64,
    /// Memo that the payer signed.
    pub(super) memo: Option<Memo>,
    /// Time at which it was taken in, in milliseconds since the Unix epoch.
    pub(super) at_ms: u64,
}

/// A line of the history.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) enum Entry {
    /// Coins came in with a receipt.
    Incoming(Incoming),
    /// A payment was begun.
    Payment(Box<Payment>),
}

/// A line of the history with its place in it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) struct Line {
    /// Number of lines that began before it.
    pub(super) number: u64,
    pub(super) entry: Entry,
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
