//! Evidence of double spends: kept on disk, and served at `/evidence`.

use parking_lot::Mutex;
use quorate_payments::{Equivocation, TxId};
use quorate_storage::{Archive, LogConfig, Owner, RealDisk, StorageError};
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

/// Most proofs that are served; older ones are on disk.
const SHOWN_MAX: usize = 256;

/// Bytes of proofs that are kept on disk.
const KEPT_BYTES: u64 = 64 * 1024 * 1024;

/// Newest proofs, which `/evidence` serves.
pub(super) type Shown = Arc<Mutex<VecDeque<Equivocation>>>;

/// Proofs of double spends on disk.
#[derive(Debug)]
pub(super) struct Evidence {
    archive: Archive,
    /// Second transactions that were proven already, as far as they are shown.
    known: BTreeSet<TxId>,
    shown: Shown,
}

impl Evidence {
    /// Opens the proofs of `owner` in a folder.
    ///
    /// # Errors
    /// When they are somebody else's, or the disk fails.
    pub(super) fn open(folder: &Path, owner: &Owner) -> Result<Self, StorageError> {
        let config = LogConfig {
            segment_bytes: 1024 * 1024,
            retention_bytes: KEPT_BYTES,
            ..LogConfig::default()
        };
        let shown = Shown::default();
        let mut known = BTreeSet::new();
        let archive =
            Archive::open(Box::new(RealDisk::open(folder)?), owner, config, |_, entry| {
                if let Ok(one) = borsh::from_slice(entry) {
                    show(&shown, &mut known, one);
                }
                Ok(())
            })?;
        Ok(Self { archive, known, shown })
    }

    pub(super) fn shown(&self) -> &Shown {
        &self.shown
    }

    /// Keeps a proof, unless it is known.
    ///
    /// # Errors
    /// When the disk fails.
    pub(super) fn keep(&mut self, one: Equivocation) -> Result<(), StorageError> {
        if self.known.contains(&one.second.id) {
            return Ok(());
        }
        self.archive.append(&borsh::to_vec(&one).expect("encoding into memory cannot fail"))?;
        self.archive.commit()?;
        self.archive.prune_below(self.archive.next())?;
        show(&self.shown, &mut self.known, one);
        Ok(())
    }
}

fn show(shown: &Shown, known: &mut BTreeSet<TxId>, one: Equivocation) {
    let mut shown = shown.lock();
    if shown.len() >= SHOWN_MAX
        && let Some(oldest) = shown.pop_front()
    {
        known.remove(&oldest.second.id);
    }
    known.insert(one.second.id);
    shown.push_back(one);
}
