//! Encoding of the entries in the state.

use borsh::{BorshDeserialize, BorshSerialize};
use quorate_types::service::StateError;

/// A key: what kind of thing, and which.
pub(super) fn key(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + parts.iter().map(|part| part.len()).sum::<usize>());
    key.push(kind);
    parts.iter().for_each(|part| key.extend_from_slice(part));
    key
}

pub(super) fn encode(content: &impl BorshSerialize) -> Vec<u8> {
    borsh::to_vec(content).expect("encoding into memory cannot fail")
}

pub(super) fn decode<T: BorshDeserialize>(bytes: &[u8]) -> Result<T, StateError> {
    T::try_from_slice(bytes).map_err(|_| damaged())
}

/// The state is not what the service left.
pub(super) fn damaged() -> StateError {
    StateError("the state of the EVM ledger is damaged".into())
}
