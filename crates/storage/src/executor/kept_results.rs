//! Results that are kept for repeats, and their bound.
//!
//! A session alone keeps at most twice its window of results, 8 MiB; sessions are as many as there
//! are keys. So all of them share a bound: beyond it the results of the sessions that were used
//! least recently are dropped, of a session all, and where those keep too little for what a height
//! would keep, its own. Their numbers stay completed: a repeat of a request takes no effect and
//! gets no answer, as one that is older than the window.
//!
//! Every replica drops the same at the same height. What a session itself takes stays for ever,
//! some hundred bytes, as an account's nonce does in Ethereum: a signed request has no end, and
//! whoever forgot that it was executed would execute it again.

use super::session::{self, CompletedResult, Session};
use crate::StorageError;
use crate::store::Transaction;
use quorate_crypto::IdentityKey;
use quorate_types::service::{KeyRange, StateError};
use quorate_types::{ClientId, Height, Request};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Bytes of kept results of all sessions together.
pub(super) const BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Sessions whose results a height may drop, or twice as many as it changed where that is more:
/// what a height costs follows from what it orders, not from what was kept before it.
const DROPPED_MIN: usize = 256;
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

    /// Drops the results of these numbers.
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

/// Bytes that these keep.
pub(super) fn kept_by(clients: &BTreeMap<ClientId, ClientEntry>) -> u64 {
    clients.values().map(|entry| entry.kept).fold(0, u64::saturating_add)
}

/// Stores the sessions that a height changed, which kept so many bytes before it, and drops results
/// where all together exceed `bytes_max`.
pub(super) fn store(
    transaction: &mut dyn Transaction,
    height: Height,
    changed: &BTreeMap<ClientId, ClientEntry>,
    kept_before: u64,
    bytes_max: u64,
) -> Result<(), StorageError> {
    let others = load_bytes(transaction)?.saturating_sub(kept_before);
    let mut bytes = others.saturating_add(kept_by(changed));
    for (client, entry) in changed {
        if entry.used_at != Height(0) {
            transaction.delete(&by_use(entry.used_at, *client))?;
        }
        transaction.put(&by_use(height, *client), &[])?;
        let used = ClientEntry { used_at: height, ..*entry };
        transaction.put(&session::key(*client), &used.encode())?;
    }
    if bytes > bytes_max {
        bytes -= drop_sessions(transaction, changed, bytes - bytes_max)?;
    }
    Ok(transaction.put(BY_USE, &bytes.to_le_bytes())?)
}

/// Drops the results of sessions that keep so many bytes or more, if those that it may drop do;
/// returns how many.
///
/// The least recently used go first, but no more of them than a height may cost. Where that is not
/// enough, since many keep little and this height keeps much, what it has just kept goes, of those
/// that keep most.
fn drop_sessions(
    transaction: &mut dyn Transaction,
    changed: &BTreeMap<ClientId, ClientEntry>,
    excess: u64,
) -> Result<u64, StorageError> {
    let oldest = least_recent(transaction, DROPPED_MIN.max(2 * changed.len()))?;
    let mut largest: Vec<(u64, ClientId)> =
        changed.iter().map(|(client, entry)| (entry.kept, *client)).collect();
    largest.sort_unstable_by(|one, other| other.cmp(one));
    let mut dropped = 0;
    let newest = largest.into_iter().map(|(_, client)| client);
    for client in oldest.into_iter().chain(newest) {
        if dropped >= excess {
            break;
        }
        dropped += drop_session(transaction, client)?;
    }
    Ok(dropped)
}

/// Drops the results of a session; returns their bytes, none where it keeps none.
fn drop_session(transaction: &mut dyn Transaction, client: ClientId) -> Result<u64, StorageError> {
    let mut entry = ClientEntry::load(client, |key| transaction.get(key))?;
    let bytes = entry.kept;
    if entry.used_at == Height(0) {
        return Ok(0);
    }
    transaction.delete(&by_use(entry.used_at, client))?;
    entry.drop_results(transaction, client, entry.session.kept())?;
    entry.used_at = Height(0);
    transaction.put(&session::key(client), &entry.encode())?;
    if bytes == 0 || entry.kept != 0 {
        return Err(StorageError::StateDamaged { entry: "order of sessions" });
    }
    Ok(bytes)
}

/// The sessions with results that were used least recently, at most so many.
fn least_recent(transaction: &dyn Transaction, most: usize) -> Result<Vec<ClientId>, StateError> {
    let (from, to) = ([BY_USE, &[0]].concat(), [BY_USE[0] + 1]);
    let mut clients = Vec::new();
    transaction.scan(KeyRange { from: &from, to: Some(&to) }, &mut |key, _| {
        clients.extend(key.last_chunk().map(|id| ClientId(IdentityKey(*id))));
        if clients.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(clients)
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
