//! Keys of the map, and the encoding of its values.

use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::IdentityKey;
use quorate_payments::{OutputId, TxId};
use quorate_types::service::StateError;

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

pub(super) fn encode(value: &impl BorshSerialize) -> Vec<u8> {
    borsh::to_vec(value).expect("encoding into memory cannot fail")
}

/// A value that this service wrote.
pub(super) fn decode<T: BorshDeserialize>(bytes: &[u8]) -> Result<T, StateError> {
    T::try_from_slice(bytes).map_err(|_| crate::map::entries::damaged())
}
