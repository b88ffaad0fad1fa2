//! A call's parameters, one after the other; those at the end may be left out.

use super::error::{Failure, invalid};
use jsonrpsee::core::DeserializeOwned;
use jsonrpsee::types::params::ParamsSequence;
use jsonrpsee::types::{ErrorObjectOwned, Params};

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
        let read = self.rest.optional_next().map_err(|error| unreadable(self.read, &error));
        self.read += 1;
        read
    }
}

/// Says what is wrong with a parameter: the library keeps that apart from its message, where few
/// tools look.
fn unreadable(index: usize, error: &ErrorObjectOwned) -> Failure {
    let detail = error.data().and_then(|data| serde_json::from_str::<String>(data.get()).ok());
    invalid(format!("invalid argument {index}: {}", detail.as_deref().unwrap_or(error.message())))
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
        let message = failure(of(r#"[7, "0x12"]"#));
        assert!(message.starts_with("invalid argument 1: invalid string length"), "{message}");
    }
}
