//! Coins under release at an authority: on disk, and the way in and out for whoever follows the
//! order in which they are frozen and decided.

use borsh::BorshDeserialize;
use crossbeam_channel::{Receiver, Sender};
use quorate_crypto::Digest;
use quorate_payments::change::Closing;
use quorate_payments::release::{Decided, Report};
use quorate_payments::{AuthorityEvent, Frozen, OutputId, ReleaseEntry};
use quorate_storage::{Archive, LogConfig, Owner, RealDisk, StorageError};
use std::path::Path;

/// Entries about coins under release on disk: few, and kept for ever.
#[derive(Debug)]
pub(super) struct ReleaseLog {
    archive: Archive,
}

impl ReleaseLog {
    /// Opens the entries of `owner` in a folder, and applies them to `frozen`.
    ///
    /// # Errors
    /// When they are somebody else's or damaged, or the disk fails.
    pub(super) fn open(
        folder: &Path,
        owner: &Owner,
        frozen: &Frozen,
    ) -> Result<Self, StorageError> {
        let config = LogConfig { segment_bytes: 1024 * 1024, ..LogConfig::default() };
        let disk = RealDisk::open(folder)?;
        let archive = Archive::open(Box::new(disk), owner, config, |number, bytes| {
            let entry = ReleaseEntry::try_from_slice(bytes).map_err(|_| unreadable(number))?;
            frozen.apply(entry);
            Ok(())
        })?;
        Ok(Self { archive })
    }

    /// Number of entries so far.
    pub(super) fn next(&self) -> u64 {
        self.archive.next()
    }

    /// Makes entries durable.
    ///
    /// # Errors
    /// When the disk failed: for good.
    pub(super) fn keep(&mut self, entries: &[ReleaseEntry]) -> Result<(), StorageError> {
        for entry in entries {
            let bytes = borsh::to_vec(entry).expect("encoding into memory cannot fail");
            self.archive.append(&bytes)?;
        }
        self.archive.commit()
    }
}

fn unreadable(number: u64) -> StorageError {
    StorageError::Corrupt {
        file: "the coins under release".into(),
        offset: 0,
        reason: format!("entry {number} does not decode"),
    }
}

/// Way to an authority for whoever follows the committee's order: what is ordered goes in, what is
/// to be ordered comes out.
#[derive(Clone, Debug)]
pub struct ReleaseFeed {
    pub(super) events: Sender<AuthorityEvent>,
    pub(super) reports: Receiver<Report>,
    pub(super) closings: Receiver<Closing>,
}

impl ReleaseFeed {
    /// Has coins frozen, and reported: again, where they were before.
    pub fn freeze(&self, coins: Vec<OutputId>) {
        self.execute(AuthorityEvent::Freeze(coins));
    }

    /// Has decisions followed: their transactions are voted for from now on, whatever is locked.
    pub fn decided(&self, decided: Decided) {
        self.execute(AuthorityEvent::Decided(decided));
    }

    pub(super) fn execute(&self, event: AuthorityEvent) {
        // Fails only when the authority stops.
        let _ = self.events.send(event);
    }

    /// Has the authority close, as the epoch ends for the network file of this digest: it votes for
    /// nothing new any more, writes its report into the folder `report` of its data, and says so.
    pub fn close(&self, next: Digest) {
        let _ = self.events.send(AuthorityEvent::Close(next));
    }

    /// Closing reports to have ordered: each after the authority has closed, and its chunks are in
    /// place.
    #[must_use]
    pub fn closings(&self) -> &Receiver<Closing> {
        &self.closings
    }

    /// Reports to have ordered: each after its freeze is durable. Ends with the authority.
    #[must_use]
    pub fn reports(&self) -> &Receiver<Report> {
        &self.reports
    }
}
