//! Results that are kept for repeats, and their bound.
//!
//! A session alone keeps at most twice its window of results, 8 MiB; sessions are as many as there
//! are keys. So all of them share a bound: beyond it the results of the sessions that were used
//! least recently are dropped, of a session all. Their numbers stay completed: a repeat of a
//! request takes no effect and gets no answer, as one that is older than the window.
//!
//! Every replica drops the same at the same height. What a session itself takes stays for ever,
//! some hundred bytes, as an account's nonce does in Ethereum: a signed request has no end, and
//! whoever forgot that it was executed would execute it again.

use super::session::{self, CompletedResult, Session};
use crate::StorageError;
use crate::store::Transaction;
use quorate_types::service::{KeyRange, StateError};
use quorate_types::{ClientId, Height, Request};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Bytes of kept results of all sessions together.
pub(super) const BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Begins the keys of sessions with results, in the order of their last use; alone, the key of the
/// bytes that all of them take.
const BY_USE: &[u8] = b"o";

/// A client's session with what its kept results take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClientEntry {
    pub(super) session: Session,
    /// Bytes of its results that are kept.
    kept: u64,
    /// Height of its last request while results are kept, else zero.
    used_at: Height,
}

impl ClientEntry {
    const BYTES: usize = 32;

    /// The client's entry; a new one where it has none.
    pub(super) fn load(
        client: ClientId,
        get: impl FnOnce(&[u8]) -> Result<Option<Vec<u8>>, StateError>,
    ) -> Result<Self, StorageError> {
        let Some(bytes) = get(&session::key(client))? else {
            return Ok(Self::default());
        };
        let damaged = |_| StorageError::StateDamaged { entry: "client session" };
        let bytes: [u8; Self::BYTES] = bytes.try_into().map_err(damaged)?;
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let session = Session { lowest: number(0), completed: number(8) };
        Ok(Self { session, kept: number(16), used_at: Height(number(24)) })
    }

    fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..16].copy_from_slice(&self.session.encode());
        bytes[16..24].copy_from_slice(&self.kept.to_le_bytes());
        bytes[24..].copy_from_slice(&self.used_at.0.to_le_bytes());
        bytes
    }

    /// Completes a request and keeps its result.
    pub(super) fn complete(
        &mut self,
        transaction: &mut dyn Transaction,
        request: &Request,
        result: &CompletedResult,
    ) -> Result<(), StateError> {
        let kept = result.kept();
        self.kept += kept.len() as u64;
        transaction.put(&session::result_key(request.client, request.sequence), &kept)?;
        let gone = self.session.mark(request.sequence);
        self.drop_results(transaction, request.client, gone)
    }

    fn drop_results(
        &mut self,
        transaction: &mut dyn Transaction,
        client: ClientId,
        sequences: impl Iterator<Item = u64>,
    ) -> Result<(), StateError> {
        for sequence in sequences {
            let key = session::result_key(client, sequence);
            if let Some(result) = transaction.get(&key)? {
                // A damaged figure is found by whoever drops all results.
                self.kept = self.kept.saturating_sub(result.len() as u64);
                transaction.delete(&key)?;
            }
        }
        Ok(())
    }
}

/// Stores the sessions that a height changed, and drops the results of others where all together
/// exceed `bytes_max`.
pub(super) fn store(
    transaction: &mut dyn Transaction,
    height: Height,
    changed: &BTreeMap<ClientId, ClientEntry>,
    bytes_max: u64,
) -> Result<(), StorageError> {
    let mut bytes = load_bytes(transaction)?;
    for (client, entry) in changed {
        let before = ClientEntry::load(*client, |key| transaction.get(key))?;
        bytes = bytes.saturating_sub(before.kept).saturating_add(entry.kept);
        if before.used_at != Height(0) {
            transaction.delete(&by_use(before.used_at, *client))?;
        }
        transaction.put(&by_use(height, *client), &[])?;
        let used = ClientEntry { used_at: height, ..*entry };
        transaction.put(&session::key(*client), &used.encode())?;
    }
    while bytes > bytes_max {
        bytes = bytes.saturating_sub(drop_least_recent(transaction)?);
    }
    Ok(transaction.put(BY_USE, &bytes.to_le_bytes())?)
}

/// Drops the results of the session that was used least recently; their bytes.
fn drop_least_recent(transaction: &mut dyn Transaction) -> Result<u64, StorageError> {
    let damaged = || StorageError::StateDamaged { entry: "order of sessions" };
    let client = least_recent(transaction)?.ok_or_else(damaged)?;
    let mut entry = ClientEntry::load(client, |key| transaction.get(key))?;
    transaction.delete(&by_use(entry.used_at, client))?;
    let bytes = entry.kept;
    entry.drop_results(transaction, client, entry.session.kept())?;
    entry.used_at = Height(0);
    transaction.put(&session::key(client), &entry.encode())?;
    if bytes == 0 || entry.kept != 0 {
        return Err(damaged());
    }
    Ok(bytes)
}

fn least_recent(transaction: &dyn Transaction) -> Result<Option<ClientId>, StateError> {
    let (from, to) = ([BY_USE, &[0]].concat(), [BY_USE[0] + 1]);
    let mut client = None;
    transaction.scan(KeyRange { from: &from, to: Some(&to) }, &mut |key, _| {
        client = key.last_chunk().copied().map(|id| ClientId(quorate_crypto::IdentityKey(id)));
        ControlFlow::Break(())
    })?;
    Ok(client)
}

fn load_bytes(transaction: &dyn Transaction) -> Result<u64, StorageError> {
    let Some(bytes) = transaction.get(BY_USE)? else { return Ok(0) };
    let damaged = |_| StorageError::StateDamaged { entry: "bytes of kept results" };
    bytes.try_into().map(u64::from_le_bytes).map_err(damaged)
}

fn by_use(height: Height, client: ClientId) -> Vec<u8> {
    [BY_USE, &height.0.to_be_bytes(), &client.0.0].concat()
}

#[cfg(test)]
mod tests;
