//! Keys of the map, and the encoding of its values.

use crate::map::entries;
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::IdentityKey;
use quorate_payments::{OutputId, TxId};
use quorate_types::Epoch;
use quorate_types::service::{State, StateError};

/// Number of things ordered so far, as eight bytes, the highest first.
pub(super) const COUNT: &[u8] = b"count";

pub(super) fn coin(coin: OutputId) -> Vec<u8> {
    [b"coin".as_slice(), &coin.tx.0.0, &coin.index.to_be_bytes()].concat()
}

pub(super) fn transaction(tx: TxId) -> Vec<u8> {
    [b"tx".as_slice(), &tx.0.0].concat()
}

pub(super) fn event(number: u64) -> Vec<u8> {
    [b"event".as_slice(), &number.to_be_bytes()].concat()
}

pub(super) fn owner(owner: &IdentityKey) -> Vec<u8> {
    [b"owner".as_slice(), &owner.0].concat()
}

/// Change that began an epoch.
pub(super) fn change(begun: Epoch) -> Vec<u8> {
    [b"change".as_slice(), &begun.0.to_be_bytes()].concat()
}

/// What was ordered of the end of an epoch.
pub(super) fn border(ended: Epoch) -> Vec<u8> {
    [b"border".as_slice(), &ended.0.to_be_bytes()].concat()
}

pub(super) fn encode(value: &impl BorshSerialize) -> Vec<u8> {
    borsh::to_vec(value).expect("encoding into memory cannot fail")
}

/// Value of a key in the map.
pub(super) fn get<T: BorshDeserialize>(
    state: &dyn State,
    key: &[u8],
) -> Result<Option<T>, StateError> {
    let entry = entries::get(state, key)?;
    let value = entry.as_deref().map(entries::decode).transpose()?;
    value.map(|(_, value)| decode(value)).transpose()
}

/// A value that this service wrote.
fn decode<T: BorshDeserialize>(bytes: &[u8]) -> Result<T, StateError> {
    T::try_from_slice(bytes).map_err(|_| entries::damaged())
}
