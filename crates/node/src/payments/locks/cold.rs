//! The cold part of the set of locked inputs: runs on disk.

use quorate_crypto::Digest;
use quorate_payments::{ColdSet, Locked, LookupFailed, OutputId, TxId};
use quorate_storage::{RUN_KEY_BYTES, RUN_VALUE_BYTES, RunItem, Runs};
use std::sync::Arc;

const HASH_BYTES: usize = 32;

/// Runs as the set asks them.
#[derive(Debug)]
pub(super) struct ColdRuns(pub(super) Arc<Runs>);

impl ColdSet for ColdRuns {
    fn get(&self, input: OutputId) -> Result<Option<Locked>, LookupFailed> {
        let found = self.0.get(&key(input)).map_err(|error| LookupFailed(error.to_string()))?;
        Ok(found.map(|value| locked(&value)))
    }

    fn len(&self) -> u64 {
        self.0.len()
    }
}

/// An input and what it is locked for, as they stand in a run.
pub(in crate::payments) fn item(input: OutputId, locked: Locked) -> RunItem {
    let mut value = [0; RUN_VALUE_BYTES];
    value[..HASH_BYTES].copy_from_slice(&locked.tx.0.0);
    value[HASH_BYTES..].copy_from_slice(&locked.sequence.to_le_bytes());
    (key(input), value)
}

/// Bytes in the order of inputs.
pub(in crate::payments) fn key(input: OutputId) -> [u8; RUN_KEY_BYTES] {
    let mut key = [0; RUN_KEY_BYTES];
    key[..HASH_BYTES].copy_from_slice(&input.tx.0.0);
    key[HASH_BYTES..].copy_from_slice(&input.index.to_be_bytes());
    key
}

/// The input of a key.
pub(super) fn input(key: &[u8; RUN_KEY_BYTES]) -> OutputId {
    let (tx, index) = key.split_first_chunk().expect("34 bytes");
    let index = u16::from_be_bytes(index.try_into().expect("2 bytes"));
    OutputId { tx: TxId(Digest(*tx)), index }
}

/// What a value says that an input is locked for.
pub(in crate::payments) fn locked(value: &[u8; RUN_VALUE_BYTES]) -> Locked {
    let (tx, sequence) = value.split_first_chunk().expect("40 bytes");
    let sequence = u64::from_le_bytes(sequence.try_into().expect("8 bytes"));
    Locked { tx: TxId(Digest(*tx)), sequence }
}
