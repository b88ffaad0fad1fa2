//! Encoding of keys and values in the state: under `k` ‖ key, the value's hash and then the value.

use super::bits::KEY_BYTES_MAX;
use super::hashes;
use quorate_crypto::Digest;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::service::{KeyRange, State, StateError};
use std::ops::ControlFlow;

const NAMESPACE: u8 = b'k';

/// Bytes that the state holds for a key.
pub(crate) fn encode(value: &[u8]) -> Vec<u8> {
    [&hashes::value(value).0, value].concat()
}

/// A value's hash, and the value.
///
/// # Errors
/// When it is too short to be an entry.
pub(crate) fn decode(entry: &[u8]) -> Result<(Digest, &[u8]), StateError> {
    let (hash, value) = entry.split_first_chunk().ok_or_else(damaged)?;
    Ok((Digest(*hash), value))
}

/// Returns `true` if a key of the state is that of an entry.
#[cfg(feature = "evm")]
pub(crate) fn is_entry(key: &[u8]) -> bool {
    key.first() == Some(&NAMESPACE)
}

/// The entry of a key, undecoded.
///
/// # Errors
/// When the state cannot be read.
pub(crate) fn get(state: &dyn State, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
    state.get(&state_key(key))
}

/// Sets or removes the entry of a key.
///
/// # Errors
/// When the state cannot be written.
pub(crate) fn set(
    state: &mut dyn State,
    key: &[u8],
    entry: Option<&[u8]>,
) -> Result<(), StateError> {
    match entry {
        Some(entry) => state.put(&state_key(key), entry),
        None => state.delete(&state_key(key)),
    }
}

/// Is shown a key with its value's hash and the value, and says whether it wants to see more.
pub(crate) type Visit<'a> = dyn FnMut(&[u8], Digest, &[u8]) -> ControlFlow<()> + 'a;

/// Shows these keys in order.
///
/// # Errors
/// When the state cannot be read, or holds what this service did not write.
pub(crate) fn scan(
    state: &dyn State,
    keys: KeyRange<'_>,
    visit: &mut Visit<'_>,
) -> Result<(), StateError> {
    let (from, to) = (state_key(keys.from), keys.to.map(state_key));
    let to = to.unwrap_or_else(|| vec![NAMESPACE + 1]);
    let mut failure = None;
    state.scan(KeyRange { from: &from, to: Some(&to) }, &mut |key, entry| {
        let key = &key[1..];
        match decode(entry) {
            Ok((hash, value)) if (1..=KEY_BYTES_MAX).contains(&key.len()) => {
                visit(key, hash, value)
            }
            Ok(_) => stop(&mut failure, damaged()),
            Err(error) => stop(&mut failure, error),
        }
    })?;
    failure.map_or(Ok(()), Err)
}

/// Returns `true` if every value is the one whose hash stands before it (★): the tree is made of
/// those hashes.
///
/// # Errors
/// When the state cannot be read, or holds what this service did not write.
pub(crate) fn are_whole(state: &dyn State) -> Result<bool, StateError> {
    let mut whole = true;
    scan(state, KeyRange::ALL, &mut |_, hash, value| {
        whole = hashes::value(value) == hash || mutants::active(Mutant::StateValueUnchecked);
        if whole { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(whole)
}

/// The state is not what the service left.
pub(crate) fn damaged() -> StateError {
    StateError("the state of the map is damaged".into())
}

fn stop(failure: &mut Option<StateError>, error: StateError) -> ControlFlow<()> {
    *failure = Some(error);
    ControlFlow::Break(())
}

fn state_key(key: &[u8]) -> Vec<u8> {
    let mut namespaced = Vec::with_capacity(1 + key.len());
    namespaced.push(NAMESPACE);
    namespaced.extend_from_slice(key);
    namespaced
}
