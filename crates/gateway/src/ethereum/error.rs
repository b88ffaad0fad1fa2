//! Errors as Ethereum's tools know them.

#![expect(clippy::needless_pass_by_value, reason = "these are what map_err is given")]

use alloy_primitives::{Bytes, U256};
use jsonrpsee::types::ErrorObjectOwned;
use jsonrpsee::types::error::{INTERNAL_ERROR_CODE, INVALID_PARAMS_CODE};
use quorate_ledger::evm::{Called, TransactionError};
use quorate_node::ReadingError;
use quorate_node::http_access::Refused;

/// An error of a call.
pub(super) type Failure = ErrorObjectOwned;

/// A transaction or question that cannot be served, with nothing wrong in its form.
const SERVER_ERROR: i32 = -32_000;

/// Code of an error that names something absent.
const NOT_FOUND: i32 = -32_001;

/// Code of an error that passes: there is no state to read for a moment.
const UNAVAILABLE: i32 = -32_002;

/// Code of an error that passes when calls are fewer (EIP-1474).
const TOO_MANY: i32 = -32_005;

/// Code of a call that its sender may not make (EIP-1193).
const UNAUTHORISED: i32 = 4_100;

/// The machine reverted; the data say why.
const REVERTED: i32 = 3;

/// An error with a code of its own.
pub(super) fn of_code(code: i32, reason: impl ToString) -> Failure {
    Failure::owned::<()>(code, reason.to_string(), None)
}

pub(super) fn invalid(reason: impl ToString) -> Failure {
    of_code(INVALID_PARAMS_CODE, reason)
}

pub(super) fn server(reason: impl ToString) -> Failure {
    of_code(SERVER_ERROR, reason)
}

pub(super) fn not_found(reason: impl ToString) -> Failure {
    of_code(NOT_FOUND, reason)
}

pub(super) fn between_runs() -> Failure {
    let text = "the validator goes on to its network's next epoch: try again in a moment";
    of_code(UNAVAILABLE, text)
}

/// Returns `true` for [`between_runs`].
pub(super) fn passes(failure: &Failure) -> bool {
    failure.code() == UNAVAILABLE
}

pub(super) fn too_many(sender: &str) -> Failure {
    let text = format!("{sender} sends more calls than it may: try again in a second");
    of_code(TOO_MANY, text)
}

pub(super) fn refused(refused: Refused) -> Failure {
    match refused {
        Refused::TooMany(_) => too_many("this token"),
        Refused::NoToken | Refused::ReadOnly => of_code(UNAUTHORISED, refused),
    }
}

pub(super) fn internal(reason: impl ToString) -> Failure {
    of_code(INTERNAL_ERROR_CODE, reason)
}

pub(super) fn reading(error: ReadingError) -> Failure {
    match error {
        ReadingError::NotKept { .. } | ReadingError::Refused(_) => server(error),
        ReadingError::State(_) => internal(error),
    }
}

/// Error of bytes that are no transaction of this chain: in no form, or in one that is not taken.
pub(super) fn no_transaction(error: TransactionError) -> Failure {
    match error {
        TransactionError::Form(_) => invalid(error),
        _ => server(error),
    }
}

/// Error of a call that does not succeed; `None` if it does.
pub(super) fn of_call(called: &Called) -> Option<Failure> {
    match called {
        Called::Success { .. } => None,
        Called::Reverted { output } => Some(reverted(output)),
        Called::Halted { reason } => Some(server(reason)),
        Called::Invalid { reason } => Some(server(reason)),
    }
}

fn reverted(output: &Bytes) -> Failure {
    let message = match text(output).or_else(|| panic(output)) {
        Some(reason) => format!("execution reverted: {reason}"),
        None => "execution reverted".to_owned(),
    };
    Failure::owned(REVERTED, message, Some(output))
}

/// The text of `Error(string)`, which `require` and `revert` of Solidity give.
fn text(output: &[u8]) -> Option<String> {
    let rest = output.strip_prefix(&[0x08, 0xc3, 0x79, 0xa0])?;
    let length = u32::from_be_bytes(*rest.get(60..64)?.first_chunk()?) as usize;
    let text = rest.get(64..)?.get(..length)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// What `Panic(uint256)` says, which Solidity's own checks give, in Geth's words.
fn panic(output: &[u8]) -> Option<String> {
    let word = output.strip_prefix(&[0x4e, 0x48, 0x7b, 0x71])?.first_chunk::<32>()?;
    let code = U256::from_be_bytes(*word);
    let reason = match u8::try_from(code).ok() {
        Some(0x00) => "generic panic",
        Some(0x01) => "assert(false)",
        Some(0x11) => "arithmetic underflow or overflow",
        Some(0x12) => "division or modulo by zero",
        Some(0x21) => "enum overflow",
        Some(0x22) => "invalid encoded storage byte array accessed",
        Some(0x31) => "out-of-bounds array access; popping on an empty array",
        Some(0x32) => "out-of-bounds access of an array or bytesN",
        Some(0x41) => "out of memory",
        Some(0x51) => "uninitialized function",
        _ => return Some(format!("unknown panic code: {code:#x}")),
    };
    Some(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_that_is_read_is_no_invalid_parameter() {
        let code = |error| no_transaction(error).code();
        assert_eq!(code(TransactionError::Form("it is empty".into())), INVALID_PARAMS_CODE);
        assert_eq!(code(TransactionError::Kind(3)), SERVER_ERROR);
    }

    #[test]
    fn a_reverts_text_is_shown_and_anything_else_is_data() {
        let word = |value: u8| [&[0; 31][..], &[value]].concat();
        let output =
            [&[0x08, 0xc3, 0x79, 0xa0][..], &word(32), &word(5), b"stop!", &[0; 27]].concat();
        let failure = reverted(&Bytes::from(output.clone()));
        assert_eq!((failure.code(), failure.message()), (3, "execution reverted: stop!"));
        assert_eq!(failure.data().expect("data").get(), format!("\"0x{}\"", hex::encode(&output)));
        let panic = |code| Bytes::from([&[0x4e, 0x48, 0x7b, 0x71][..], &word(code)].concat());
        assert_eq!(reverted(&panic(1)).message(), "execution reverted: assert(false)");
        assert_eq!(reverted(&panic(2)).message(), "execution reverted: unknown panic code: 0x2");
        for cut in 0..output.len() - 27 {
            assert_eq!(
                reverted(&Bytes::copy_from_slice(&output[..cut])).message(),
                "execution reverted"
            );
        }
    }
}
