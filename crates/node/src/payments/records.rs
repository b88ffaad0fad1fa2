//! Records that wallets keep with one shard of an authority: a store beside the locks.
//!
//! A record is stored for the key that its channel proved, once, and stays until that key asks to
//! remove it. Each key has room for so many bytes; a payment whose record does not fit is voted for
//! all the same, and its wallet cannot get it back from here.
//!
//! ```text
//! key ‖ 0                          bytes that the key's records take
//! key ‖ 1 ‖ kind ‖ transaction     one record
//! ```

use super::server::Arrived;
use parking_lot::Mutex;
use quorate_crypto::IdentityKey;
use quorate_payments::{RecordName, WalletRecord};
use quorate_storage::{DiskStore, Owner, StorageError, Store, Transaction};
use quorate_types::service::KeyRange;
use std::ops::ControlFlow;
use std::path::Path;

/// Bytes of records in one reply, if the first alone is not larger.
const PAGE_BYTES: usize = 1024 * 1024;

const TOTAL: u8 = 0;
const RECORD: u8 = 1;

/// Records of all keys of a shard.
pub(super) struct Records {
    store: Mutex<DiskStore>,
    /// Most bytes of one key's records.
    bytes_max: u64,
}

/// Change to a key's records, with the room that its frame takes until it is durable.
pub(super) struct Change {
    owner: IdentityKey,
    action: Action,
    /// Ticket and number of the request, where it was one.
    pub(super) asked: Option<(u64, u64)>,
    _arrived: Arrived,
}

/// Action on a key's records.
pub(super) enum Action {
    /// Store these bytes under a name that has none yet.
    Store(RecordName, Vec<u8>),
    /// Remove the records of these names.
    Remove(Vec<RecordName>),
}

impl Change {
    /// A change for the key that sent `arrived` (★).
    pub(super) fn new(arrived: Arrived, action: Action, asked: Option<(u64, u64)>) -> Self {
        Self { owner: arrived.from, action, asked, _arrived: arrived }
    }
}

impl Records {
    /// Opens the records of `owner`, an authority's shard, in a file.
    ///
    /// # Errors
    /// When they are somebody else's, or the disk fails.
    pub(super) fn open(path: &Path, owner: &Owner, bytes_max: u64) -> Result<Self, StorageError> {
        Ok(Self { store: Mutex::new(DiskStore::open(path, owner)?), bytes_max })
    }

    /// Makes changes durable, in one transaction; tells of each whether there was room.
    ///
    /// # Errors
    /// When the disk fails.
    pub(super) fn apply(&self, changes: &[Change]) -> Result<Vec<bool>, StorageError> {
        let mut store = self.store.lock();
        let mut transaction = store.begin()?;
        let mut done = Vec::with_capacity(changes.len());
        for change in changes {
            done.push(self.change(&mut *transaction, change)?);
        }
        transaction.commit(true)?;
        Ok(done)
    }

    fn change(&self, store: &mut dyn Transaction, change: &Change) -> Result<bool, StorageError> {
        let total_key = [&change.owner.0[..], &[TOTAL]].concat();
        let stored = store.get(&total_key)?;
        let before = stored.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
        let mut total = before;
        match &change.action {
            Action::Store(name, bytes) => {
                let key = record_key(change.owner, name);
                if store.get(&key)?.is_some() {
                    return Ok(true);
                }
                total = total.saturating_add(size(&key, bytes));
                if total > self.bytes_max {
                    return Ok(false);
                }
                store.put(&key, bytes)?;
            }
            Action::Remove(names) => {
                for name in names {
                    let key = record_key(change.owner, name);
                    if let Some(bytes) = store.get(&key)? {
                        total = total.saturating_sub(size(&key, &bytes));
                        store.delete(&key)?;
                    }
                }
            }
        }
        if total != before {
            store.put(&total_key, &total.to_le_bytes())?;
        }
        Ok(true)
    }

    /// Records of a key behind a name, as many as one reply takes, and whether others follow.
    ///
    /// # Errors
    /// When the disk fails, or a record does not decode.
    pub(super) fn page(
        &self,
        owner: IdentityKey,
        after: Option<RecordName>,
    ) -> Result<(Vec<WalletRecord>, bool), StorageError> {
        let view = self.store.lock().view()?;
        let from = match after {
            // The first key behind it.
            Some(name) => [&record_key(owner, &name)[..], &[0]].concat(),
            None => [&owner.0[..], &[RECORD]].concat(),
        };
        let to = [&owner.0[..], &[RECORD + 1]].concat();
        let (mut records, mut bytes, mut more) = (Vec::new(), 0, false);
        let mut damaged = false;
        view.range(KeyRange { from: &from, to: Some(&to) }, &mut |_, value| {
            if !records.is_empty() && bytes + value.len() > PAGE_BYTES {
                more = true;
                return ControlFlow::Break(());
            }
            bytes += value.len();
            match borsh::from_slice(value) {
                Ok(record) => records.push(record),
                Err(_) => damaged = true,
            }
            ControlFlow::Continue(())
        })?;
        if damaged {
            return Err(StorageError::StateDamaged { entry: "wallet's record" });
        }
        Ok((records, more))
    }
}

fn record_key(owner: IdentityKey, name: &RecordName) -> Vec<u8> {
    let name = borsh::to_vec(name).expect("encoding into memory cannot fail");
    [&owner.0[..], &[RECORD], &name].concat()
}

/// Bytes that a record takes of its key's room.
fn size(key: &[u8], bytes: &[u8]) -> u64 {
    (key.len() + bytes.len()) as u64
}

#[cfg(test)]
mod tests;
