//! Rights to the keys of the store: whose token may read or write which of them.
//!
//! Every operation and every read passes [`Grant::allows`], which is the one place where rights are
//! decided.

use super::failure::Failure;
use axum::http::StatusCode;
use bytes::Bytes;
use quorate_ledger::kv::{Operation, Scan, Step};
use quorate_node::http_access::{Granted, Rights, UserEntry};
use serde::{Deserialize, Serialize};

/// A user of the key-value gateway, as the file states it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// A name for people and limits.
    pub name: String,
    /// BLAKE3 of the token, 64 hexadecimal digits.
    pub hash: String,
    /// Things that it may do.
    pub rights: Rights,
    /// Beginning of every key that it may touch, as text; empty for all keys.
    #[serde(default)]
    pub prefix: String,
    /// Most requests a second, of which a second's worth may come at once; 0 for any number.
    #[serde(default)]
    pub requests_per_second: u64,
}

impl UserEntry for User {
    type Grant = Grant;

    fn name(&self) -> &str {
        &self.name
    }

    fn hash(&self) -> &str {
        &self.hash
    }

    fn requests_per_second(&self) -> u64 {
        self.requests_per_second
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    fn grant(self) -> Grant {
        Grant { name: self.name, rights: self.rights, prefix: self.prefix }
    }
}

/// Things that the owner of a token may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    name: String,
    rights: Rights,
    prefix: String,
}

impl Granted for Grant {
    fn everything() -> Self {
        Self { name: String::new(), rights: Rights::Write, prefix: String::new() }
    }

    fn guest() -> Option<Self> {
        None
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl Grant {
    /// Decides whether the user may do this.
    pub(super) fn allows(&self, operation: &Operation) -> Result<(), Failure> {
        match operation {
            Operation::Step(step) => self.allows_step(step),
            Operation::Batch(steps) => steps.iter().try_for_each(|step| self.allows_step(step)),
            Operation::Scan(scan) => self.allows_scan(scan),
        }
    }

    /// Decides whether the user may be shown a receipt: it has operations of others that shared the
    /// request, and so keys and values of all of them.
    pub(super) fn allows_receipt(&self, is_wanted: bool) -> Result<(), Failure> {
        if is_wanted && !self.prefix.is_empty() {
            return Err(self.refusal("a receipt shows operations of others: ask without it"));
        }
        Ok(())
    }

    fn allows_step(&self, step: &Step) -> Result<(), Failure> {
        let (key, changes) = match step {
            Step::Get { key } => (key, false),
            Step::Put { key, .. } | Step::Delete { key } | Step::CompareAndSwap { key, .. } => {
                (key, true)
            }
        };
        if !key.starts_with(self.prefix.as_bytes()) {
            return Err(self.refusal("this key does not begin with it"));
        }
        if changes && self.rights == Rights::Read {
            return Err(self.refusal("nothing may be changed with it"));
        }
        Ok(())
    }

    fn allows_scan(&self, scan: &Scan) -> Result<(), Failure> {
        if self.prefix.is_empty() {
            return Ok(());
        }
        let end = end_of(&self.prefix);
        let ends = scan.to.as_ref().is_some_and(|to| *to <= end);
        if scan.from.starts_with(self.prefix.as_bytes()) && ends {
            return Ok(());
        }
        let (from, to) = (hex::encode(&self.prefix), hex::encode(&end));
        Err(self.refusal(&format!("ask for keys within from={from}&to={to}")))
    }

    fn refusal(&self, reason: &str) -> Failure {
        let Self { name, rights, prefix } = self;
        let error = format!(
            "the token of '{name}' is for '{rights}' on keys that begin with '{prefix}': {reason}"
        );
        Failure::new(StatusCode::FORBIDDEN, error)
    }
}

/// First key beyond all that begin with a prefix. No byte of a text is the highest.
fn end_of(prefix: &str) -> Bytes {
    let mut end = prefix.as_bytes().to_vec();
    end.last_mut().into_iter().for_each(|last| *last += 1);
    end.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(rights: Rights, prefix: &'static str) -> Grant {
        Grant { name: "till".to_owned(), rights, prefix: prefix.to_owned() }
    }

    fn scan(from: &'static str, to: Option<&'static str>) -> Operation {
        Operation::Scan(Scan { from: from.into(), to: to.map(Bytes::from), limit: 1 })
    }

    #[test]
    fn who_may_read_changes_nothing_and_both_stay_within_their_prefix() {
        let steps = [
            (Step::get("a/1"), true),
            (Step::put("a/1", "v"), false),
            (Step::delete("a/1"), false),
            (Step::compare_and_swap("a/1", None, Some("v".into())), false),
        ];
        for (step, reads) in steps {
            let one = Operation::Step(step.clone());
            let both = Operation::batch([Step::get("a/0"), step]);
            for operation in [one, both] {
                assert_eq!(grant(Rights::Read, "a/").allows(&operation).is_ok(), reads);
                assert!(grant(Rights::Write, "a/").allows(&operation).is_ok());
                assert!(Grant::everything().allows(&operation).is_ok());
                let refused = grant(Rights::Write, "b/").allows(&operation).expect_err("another's");
                assert_eq!(refused.status, StatusCode::FORBIDDEN);
            }
        }
        let mixed = Operation::batch([Step::get("a/1"), Step::get("b/1")]);
        assert!(grant(Rights::Write, "a/").allows(&mixed).is_err());
    }

    #[test]
    fn a_scan_stays_within_the_prefix() {
        let user = grant(Rights::Read, "a/");
        for (operation, allowed) in [
            (scan("a/", Some("a0")), true),
            (scan("a/5", Some("a/7")), true),
            (scan("a/", None), false),
            (scan("", Some("a0")), false),
            (scan("a/", Some("a1")), false),
        ] {
            assert_eq!(user.allows(&operation).is_ok(), allowed, "{operation:?}");
        }
        let refused = user.allows(&scan("", None)).expect_err("too wide");
        assert!(refused.error.contains("from=612f&to=6130"), "{}", refused.error);
        assert!(grant(Rights::Read, "").allows(&scan("", None)).is_ok());
        assert_eq!(end_of("ä"), Bytes::from_static(&[0xc3, 0xa5]));
    }

    #[test]
    fn a_receipt_is_for_whoever_may_see_all_keys() {
        assert!(grant(Rights::Write, "a/").allows_receipt(true).is_err());
        assert!(grant(Rights::Write, "a/").allows_receipt(false).is_ok());
        assert!(grant(Rights::Read, "").allows_receipt(true).is_ok());
    }
}
