//! Rights at a wallet: what whoever shows a token may do.
//!
//! Every handler asks [`WalletGrant::check`], which is the one place where rights are decided.

use crate::rest::failure::Failure;
use crate::wallet::{Limits, Orderer};
use axum::http::StatusCode;
use quorate_node::http_access::{Granted, UserEntry};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Longest name of a user, in bytes: it is kept with each payment.
const NAME_BYTES_MAX: usize = 64;

/// Purpose of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// Look at everything: balance, history, payments, requests.
    Read,
    /// Make requests, see how they stand and take receipts in: a till's.
    Request,
    /// Pay up to limits, and see how these payments stand.
    Pay,
    /// All of these, and payments of any value.
    All,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Request => "request",
            Self::Pay => "pay",
            Self::All => "all",
        })
    }
}

impl FromStr for Right {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "read" => Ok(Self::Read),
            "request" => Ok(Self::Request),
            "pay" => Ok(Self::Pay),
            "all" => Ok(Self::All),
            other => Err(format!("'{other}' is none of 'read', 'request', 'pay' and 'all'")),
        }
    }
}

/// A user of a wallet, as the file states it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WalletUser {
    /// A name, which is kept with what the user orders: 1 to 64 bytes.
    pub name: String,
    /// BLAKE3 of the token, 64 hexadecimal digits.
    pub hash: String,
    /// Purpose of the token.
    pub right: Right,
    /// Most for one payment, in the smallest unit: of `pay`, which needs it, and of no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment_max: Option<u64>,
    /// Most within any 24 hours, in the smallest unit: of `pay`, which needs it, and of no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day_max: Option<u64>,
}

impl WalletUser {
    fn limits(&self) -> Option<Limits> {
        let (payment_max, day_max) = self.payment_max.zip(self.day_max)?;
        Some(Limits { payment_max, day_max })
    }
}

impl UserEntry for WalletUser {
    type Grant = WalletGrant;

    fn name(&self) -> &str {
        &self.name
    }

    fn hash(&self) -> &str {
        &self.hash
    }

    fn check(&self) -> Result<(), String> {
        if self.name.len() > NAME_BYTES_MAX || self.name.contains(char::is_control) {
            return Err(format!("a name has at most {NAME_BYTES_MAX} bytes, in one line"));
        }
        match (self.right, self.payment_max, self.day_max) {
            (Right::Pay, Some(1..), Some(1..)) => Ok(()),
            (Right::Pay, ..) => {
                Err("who may pay needs limits: payment_max and day_max, at least 1".to_owned())
            }
            (_, None, None) => Ok(()),
            (right, ..) => Err(format!("limits are of 'pay', and it may '{right}'")),
        }
    }

    fn grant(self) -> WalletGrant {
        let limits = self.limits();
        WalletGrant { name: self.name, right: Some(self.right), limits }
    }
}

/// Thing that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Look at balance and history.
    Look,
    /// Look at a payment.
    LookAtPayment,
    /// Look at requests.
    LookAtRequests,
    /// Make a request, or cancel one.
    Request,
    /// Take in any receipt of this wallet's; one that pays an open request is taken from everybody.
    Receive,
    /// Pay.
    Pay,
}

/// Things that whoever asks may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalletGrant {
    name: String,
    /// `None` of whoever shows no token.
    right: Option<Right>,
    limits: Option<Limits>,
}

impl Granted for WalletGrant {
    fn everything() -> Self {
        Self { name: String::new(), right: Some(Right::All), limits: None }
    }

    fn guest() -> Option<Self> {
        Some(Self { name: String::new(), right: None, limits: None })
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl WalletGrant {
    /// Decides whether the user may do this.
    pub(super) fn check(&self, action: Action) -> Result<(), Failure> {
        let Some(right) = self.right else { return Err(Failure::no_token()) };
        let is_allowed = match action {
            Action::Look => matches!(right, Right::Read | Right::All),
            Action::LookAtPayment => matches!(right, Right::Read | Right::Pay | Right::All),
            Action::LookAtRequests => matches!(right, Right::Read | Right::Request | Right::All),
            Action::Request | Action::Receive => matches!(right, Right::Request | Right::All),
            Action::Pay => matches!(right, Right::Pay | Right::All),
        };
        if is_allowed {
            return Ok(());
        }
        let error = format!("the token of '{}' is for '{right}', and not for this", self.name);
        Err(Failure::new(StatusCode::FORBIDDEN, error))
    }

    /// Tells whether the user sees what somebody of this name ordered: who only does, sees its own.
    pub(super) fn sees(&self, by: Option<&str>) -> bool {
        match self.right {
            Some(Right::Read | Right::All) => true,
            Some(Right::Request | Right::Pay) => by == Some(&self.name),
            None => false,
        }
    }

    /// Somebody with a name and limits; `None` where everybody is let in.
    pub(super) fn orderer(&self) -> Option<Orderer> {
        let orderer = || Orderer { name: self.name.clone(), limits: self.limits };
        (!self.name.is_empty()).then(orderer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_crypto::hash;

    fn user(right: Right, payment_max: Option<u64>, day_max: Option<u64>) -> WalletUser {
        let hash = hash(b"token").to_hex();
        WalletUser { name: "till".to_owned(), hash, right, payment_max, day_max }
    }

    #[test]
    fn each_right_is_for_its_own_and_nothing_else() {
        use Action::{Look, LookAtPayment, LookAtRequests, Pay, Receive, Request};
        let all = [Look, LookAtPayment, LookAtRequests, Request, Receive, Pay];
        for (right, allowed) in [
            (Right::Read, &[Look, LookAtPayment, LookAtRequests][..]),
            (Right::Request, &[LookAtRequests, Request, Receive]),
            (Right::Pay, &[LookAtPayment, Pay]),
            (Right::All, &all),
        ] {
            let grant = user(right, None, None).grant();
            for action in all {
                let found = grant.check(action).map_err(|failure| failure.status);
                let expected = allowed.contains(&action).then_some(());
                assert_eq!(found, expected.ok_or(StatusCode::FORBIDDEN), "{right} {action:?}");
            }
        }
        let guest = WalletGrant::guest().expect("a guest");
        for action in all {
            let refused = guest.check(action).expect_err("no token");
            assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{action:?}");
        }
    }

    #[test]
    fn a_till_and_a_payer_see_their_own() {
        for (right, sees_others) in
            [(Right::Read, true), (Right::All, true), (Right::Request, false), (Right::Pay, false)]
        {
            let grant = user(right, None, None).grant();
            assert!(grant.sees(Some("till")), "{right}");
            assert_eq!(grant.sees(Some("other")), sees_others, "{right}");
            assert_eq!(grant.sees(None), sees_others, "{right}");
        }
        assert!(!WalletGrant::guest().expect("a guest").sees(None));
    }

    #[test]
    fn limits_are_of_those_who_pay() {
        assert_eq!(user(Right::Pay, Some(5), Some(9)).check(), Ok(()));
        for right in [Right::Read, Right::Request, Right::All] {
            assert_eq!(user(right, None, None).check(), Ok(()));
            assert!(user(right, Some(1), None).check().is_err(), "{right}");
            assert!(user(right, None, Some(1)).check().is_err(), "{right}");
        }
        for (payment_max, day_max) in
            [(None, None), (Some(1), None), (None, Some(1)), (Some(0), Some(1)), (Some(1), Some(0))]
        {
            assert!(user(Right::Pay, payment_max, day_max).check().is_err());
        }
        for name in ["n".repeat(65), "two\nlines".to_owned()] {
            assert!(WalletUser { name, ..user(Right::Read, None, None) }.check().is_err());
        }
        let grant = user(Right::Pay, Some(5), Some(9)).grant();
        let limits = Limits { payment_max: 5, day_max: 9 };
        let orderer = Orderer { name: "till".to_owned(), limits: Some(limits) };
        assert_eq!(grant.orderer(), Some(orderer));
        assert_eq!(WalletGrant::everything().orderer(), None);
    }
}
