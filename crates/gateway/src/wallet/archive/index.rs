//! Index of a wallet's archive: where the line of a payment is, by its transaction, by the caller's
//! key for it, and by each coin that it spent.
//!
//! It is made from the archive alone, and made again where it is missing, damaged or ahead of it.

use crate::wallet::payment::{Entry, Line, PaymentState};
use quorate_crypto::{IdentityKey, hash_parts};
use quorate_payments::{OutputId, Source, TxId};
use quorate_storage::{
    Owner, RUN_KEY_BYTES, RUN_VALUE_BYTES, RealDisk, Role, RunItem, Runs, StorageError,
};
use quorate_types::NetworkId;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Stand for an output's index where a key names no output; no transaction has as many.
const PAYMENT: u16 = u16::MAX;
const CALLERS_KEY: u16 = u16::MAX - 1;

/// Items that are added at once while an index is made again.
const ITEMS: usize = 200_000;

type Key = [u8; RUN_KEY_BYTES];

/// Place of an archived payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Indexed {
    pub(super) tx: TxId,
    /// Offset of its line in the archive.
    pub(super) offset: u64,
}

/// Index of one archive, in a folder of its own.
#[derive(Debug)]
pub(super) struct ArchiveIndex {
    runs: Runs,
    folder: PathBuf,
}

impl ArchiveIndex {
    /// Opens the index of an archive that is `length` bytes long, or begins it.
    ///
    /// # Errors
    /// When another process has it, or the disk fails.
    pub(super) fn open(folder: PathBuf, owner: &Owner, length: u64) -> Result<Self, StorageError> {
        match open(&folder, owner) {
            Ok(runs) if runs.covered() <= length => Ok(Self { runs, folder }),
            Err(error @ StorageError::InUse { .. }) => Err(error),
            // Everything in it is in the archive.
            Ok(_) | Err(_) => {
                let removed = std::fs::remove_dir_all(&folder);
                let shown = || folder.display().to_string();
                removed.map_err(|error| StorageError::io("remove", shown(), &error))?;
                Ok(Self { runs: open(&folder, owner)?, folder })
            }
        }
    }

    /// Length of the archive as far as it is indexed, in bytes.
    pub(super) fn covered(&self) -> u64 {
        self.runs.covered()
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn payment(&self, tx: TxId) -> Result<Option<Indexed>, StorageError> {
        self.get(&key_of(tx, PAYMENT))
    }

    pub(super) fn payment_of_key(&self, key: &str) -> Result<Option<Indexed>, StorageError> {
        self.get(&callers_key(key))
    }

    /// Payment that spent an output.
    pub(super) fn spender(&self, id: &OutputId) -> Result<Option<Indexed>, StorageError> {
        self.get(&key_of(id.tx, id.index))
    }

    fn get(&self, key: &Key) -> Result<Option<Indexed>, StorageError> {
        Ok(self.runs.get(key)?.map(|value| {
            let (tx, offset) = value.split_first_chunk().expect("40 bytes");
            let offset = u64::from_le_bytes(offset.try_into().expect("8 bytes"));
            Indexed { tx: TxId(quorate_crypto::Digest(*tx)), offset }
        }))
    }

    /// Adds lines of the archive as `read` gives them with where the next one begins, up to its
    /// `end`.
    pub(super) fn extend<E: From<StorageError>>(
        &self,
        end: u64,
        read: impl Fn(u64) -> Result<(Line, u64), E>,
    ) -> Result<(), E> {
        let mut at = self.covered();
        while at < end {
            let mut items = BTreeMap::new();
            while at < end && items.len() < ITEMS {
                let (line, next) = read(at)?;
                for (key, value) in items_of(&line, at) {
                    // Two payments of one name: of copies of a wallet. The first one counts.
                    if self.runs.get(&key)?.is_none() {
                        items.entry(key).or_insert(value);
                    }
                }
                at = next;
            }
            self.runs.add(at, items.into_iter())?;
            while self.runs.is_merge_due() {
                self.runs.merge()?;
            }
        }
        Ok(())
    }
}

/// Owner of the index of an archive, which no other archive's is taken for.
pub(super) fn owner(member: IdentityKey, network: NetworkId, archive: &str) -> Owner {
    let protocol = format!("archive {archive}");
    Owner { network, member, role: Role::Wallet, protocol, formerly: Vec::new() }
}

fn open(folder: &Path, owner: &Owner) -> Result<Runs, StorageError> {
    let mut runs = Runs::open(Box::new(RealDisk::open(folder)?.without_zeroing()), owner)?;
    runs.sweep()?;
    Ok(runs)
}

fn items_of(line: &Line, offset: u64) -> Vec<RunItem> {
    let Entry::Payment(payment) = &line.entry else { return Vec::new() };
    let mut value = [0; RUN_VALUE_BYTES];
    value[..32].copy_from_slice(&payment.id.0.0);
    value[32..].copy_from_slice(&offset.to_le_bytes());
    let mut keys = vec![key_of(payment.id, PAYMENT)];
    keys.extend(payment.key.as_deref().map(callers_key));
    let is_spent = matches!(payment.state, PaymentState::Certified { .. })
        && !matches!(payment.transaction.source, Source::Issue { .. });
    if is_spent {
        let spent = payment.transaction.locks();
        keys.extend(spent.iter().map(|id| key_of(id.tx, id.index)));
    }
    keys.into_iter().map(|key| (key, value)).collect()
}

fn key_of(tx: TxId, index: u16) -> Key {
    let mut key = [0; RUN_KEY_BYTES];
    key[..32].copy_from_slice(&tx.0.0);
    key[32..].copy_from_slice(&index.to_le_bytes());
    key
}

fn callers_key(key: &str) -> Key {
    let name = hash_parts("quorate v1 wallet: a caller's key", &[key.as_bytes()]);
    key_of(TxId(name), CALLERS_KEY)
}
