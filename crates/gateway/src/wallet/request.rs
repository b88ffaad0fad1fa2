//! A request for payment: its name, its terms, and how it stands.

use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::IdentityKey;
use quorate_payments::TxId;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// Name of a request: 8 random bytes, shown as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct RequestId([u8; 8]);

impl RequestId {
    pub(super) fn new(bytes: [u8; 8]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestId({self})")
    }
}

impl FromStr for RequestId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 8];
        let is_small = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        let read = hex::decode_to_slice(text, &mut bytes).is_ok() && is_small;
        read.then_some(Self(bytes)).ok_or("a request is named by 16 hexadecimal digits")
    }
}

/// A request for payment to this wallet. Times are in milliseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Request {
    /// Its name, which is its reference in the payer's memo.
    pub id: RequestId,
    /// Content, which does not change.
    pub terms: RequestTerms,
    /// Payment of it, once there is one.
    pub paid: Option<RequestPayment>,
    /// Time at which it was cancelled.
    pub cancelled_ms: Option<u64>,
}

/// Content of a request.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct RequestTerms {
    /// Value to be paid, in the smallest unit, at least 1.
    pub value: u64,
    /// Memo, without the reference.
    pub memo: Option<String>,
    /// Name of whoever made it, where there are names.
    pub by: Option<String>,
    /// Time at which it was made.
    pub made_ms: u64,
    /// Time from which it is not open any more.
    pub expires_ms: u64,
}

/// Payment of a request.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct RequestPayment {
    /// Transaction that paid it.
    pub tx: TxId,
    /// Key of the payer.
    pub payer: Option<IdentityKey>,
    /// Value that came in, in the smallest unit; at least the one that was asked for.
    pub value: u64,
    /// Time at which it came in, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// State of a request at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestState {
    /// Nothing came in for it yet.
    Open,
    /// It was paid, in time or not.
    Paid,
    /// Its time is over.
    Expired,
    /// Whoever made it wants it no more.
    Cancelled,
}

impl fmt::Display for RequestState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Paid => "paid",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        })
    }
}

impl Request {
    /// Memo that the payer is to sign: its own, and the reference.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.terms.memo {
            Some(memo) => format!("{memo} #{}", self.id),
            None => format!("#{}", self.id),
        }
    }

    /// State at a time, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn state(&self, now_ms: u64) -> RequestState {
        if self.paid.is_some() {
            RequestState::Paid
        } else if self.cancelled_ms.is_some() {
            RequestState::Cancelled
        } else if now_ms >= self.terms.expires_ms {
            RequestState::Expired
        } else {
            RequestState::Open
        }
    }
}

/// The reference at the end of a memo, if there is one.
pub(super) fn reference(memo: &str) -> Option<RequestId> {
    memo.rsplit_once('#')?.1.parse().ok()
}
