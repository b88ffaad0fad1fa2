//! A call's parameters, one after the other; those at the end may be left out.

use super::error::{Failure, invalid};
use alloy_primitives::{U64, U256};
use jsonrpsee::core::{DeserializeOwned, JsonRawValue};
use jsonrpsee::types::Params;
use jsonrpsee::types::params::ParamsSequence;
use serde::Deserialize;

/// Number, in decimal or hexadecimal.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Quantity {
    Number(u64),
    Text(U64),
}

impl Quantity {
    pub(super) fn number(self) -> u64 {
        match self {
            Self::Number(number) => number,
            Self::Text(number) => number.to(),
        }
    }
}

/// Parameters of a call that are not read yet.
#[derive(Debug)]
pub(super) struct Arguments<'a> {
    rest: ParamsSequence<'a>,
    /// Number of those that were.
    read: usize,
}

impl<'a> Arguments<'a> {
    pub(super) fn of(params: &'a Params<'_>) -> Self {
        Self { rest: params.sequence(), read: 0 }
    }

    pub(super) fn next<T: DeserializeOwned>(&mut self) -> Result<T, Failure> {
        let missing = format!("missing value for required argument {}", self.read);
        self.optional()?.ok_or_else(|| invalid(missing))
    }

    /// Reads a parameter that may be left out, or be null.
    pub(super) fn optional<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Failure> {
        let index = self.read;
        self.read += 1;
        let Some(given) = self.rest.optional_next::<&JsonRawValue>()? else { return Ok(None) };
        let read = if lacks_prefix(given.get()) {
            Err("hex string without 0x prefix".to_owned())
        } else {
            serde_json::from_str(given.get()).map_err(|error| without_place(&error))
        };
        read.map(Some).map_err(|reason| invalid(format!("invalid argument {index}: {reason}")))
    }
}

/// A slot of an account's storage, by at most 32 bytes of hexadecimal.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Slot(pub(super) U256);

impl TryFrom<String> for Slot {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.len() > "0x".len() + 64 {
            return Err(format!("storage key too long (want at most 32 bytes): {text:?}"));
        }
        text.parse().map(Self).map_err(|error| format!("{error} in storage key: {text:?}"))
    }
}

/// Returns `true` for an address, a hash or bytes that begin without 0x: whoever writes them so
/// has something else in mind, and other nodes refuse it.
fn lacks_prefix(given: &str) -> bool {
    let text = given.trim_matches('"');
    let is_text = given.len() > text.len();
    is_text && text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What is wrong with a parameter; its line and column tell nobody anything.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::Address;

    #[test]
    fn what_is_wrong_with_a_parameter_is_said() {
        let of = |text: &'static str| Params::new(Some(text));
        let failure = |params: Params<'_>| {
            let mut arguments = Arguments::of(&params);
            let _: u64 = arguments.next().expect("a number");
            arguments.next::<Address>().expect_err("no address").message().to_owned()
        };
        assert_eq!(failure(of("[7]")), "missing value for required argument 1");
        assert_eq!(failure(of("[7, null]")), "missing value for required argument 1");
        assert_eq!(failure(of(r#"[7, "0x12"]"#)), "invalid argument 1: invalid string length");
        let bare = failure(of(r#"[7, "7dcd17433742f4c0ca53122ab541d0ba67fc27df"]"#));
        assert_eq!(bare, "invalid argument 1: hex string without 0x prefix");
    }

    #[test]
    fn slots_have_at_most_32_bytes() {
        let slot = |text: String| serde_json::from_value::<Slot>(text.into()).map(|slot| slot.0);
        for (text, number) in [("0x1".to_owned(), 1), (format!("0x{:064x}", 7), 7)] {
            assert_eq!(slot(text).expect("a slot"), U256::from(number));
        }
        let refused = slot(format!("0x{:065x}", 7)).expect_err("33 bytes").to_string();
        assert!(refused.starts_with("storage key too long (want at most 32 bytes)"), "{refused}");
        let refused = slot("0xasdf".into()).expect_err("no hexadecimal").to_string();
        assert!(refused.ends_with("in storage key: \"0xasdf\""), "{refused}");
    }
}
