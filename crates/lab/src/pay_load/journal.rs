//! Journal of a load: entries are made durable in groups, by a thread of its own.

use super::PayLoadError;
use super::book::{Entry, decode};
use quorate_crypto::IdentityKey;
use quorate_storage::{Archive, LogConfig, Owner, RealDisk, StorageError};
use quorate_types::NetworkId;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use tokio::sync::oneshot;

/// Most entries of one group.
const GROUP_MAX: usize = 4_096;

/// The journal, open for more. Its folder is locked against other processes.
pub(super) struct Journal {
    entries: Sender<Appended>,
    writer: JoinHandle<Result<(), PayLoadError>>,
}

struct Appended {
    entry: Vec<u8>,
    /// Hears that the entry is durable; dropped where it cannot be.
    durable: oneshot::Sender<()>,
}

impl Journal {
    /// Opens or begins a journal of this key, and hands every entry to `visit`, in order.
    ///
    /// # Errors
    /// When the disk fails, it is another key's, or `visit` fails.
    pub(super) fn open(
        folder: &Path,
        (network, member): (NetworkId, IdentityKey),
        mut visit: impl FnMut(Entry) -> Result<(), PayLoadError>,
    ) -> Result<Self, PayLoadError> {
        let owner =
            Owner { network, member, protocol: "payments of a load".into(), ..Owner::nobody() };
        let mut refused = Ok(());
        let disk = RealDisk::open(folder).map_err(|error| match error {
            StorageError::InUse { directory } => PayLoadError::InUse(directory),
            error => error.into(),
        })?;
        let archive =
            Archive::open(Box::new(disk), &owner, LogConfig::default(), |number, bytes| {
                if refused.is_ok() {
                    refused = decode(number, bytes).and_then(&mut visit);
                }
                Ok(())
            })?;
        refused?;
        let (entries, received) = channel();
        let writer = thread::Builder::new().name("load-journal".into());
        let writer = writer.spawn(move || write(archive, &received));
        let writer = writer.map_err(PayLoadError::system("start a thread"))?;
        Ok(Self { entries, writer })
    }

    /// Adds an entry behind all others. What is returned hears when it is durable, and ends
    /// without that when the disk failed.
    pub(super) fn append(&self, entry: &Entry) -> oneshot::Receiver<()> {
        let (durable, heard) = oneshot::channel();
        let entry = borsh::to_vec(entry).expect("encoding into memory cannot fail");
        // Fails only when the writer has: whoever waits hears of it.
        let _ = self.entries.send(Appended { entry, durable });
        heard
    }

    /// Returns `true` once entries cannot be made durable any more.
    pub(super) fn has_failed(&self) -> bool {
        self.writer.is_finished()
    }

    /// Ends the journal: all entries are durable.
    ///
    /// # Errors
    /// When one was not made durable.
    pub(super) fn close(self) -> Result<(), PayLoadError> {
        drop(self.entries);
        self.writer.join().expect("the journal's thread does not panic")
    }
}

fn write(mut archive: Archive, entries: &Receiver<Appended>) -> Result<(), PayLoadError> {
    while let Ok(first) = entries.recv() {
        let group: Vec<Appended> =
            std::iter::once(first).chain(entries.try_iter().take(GROUP_MAX - 1)).collect();
        for one in &group {
            archive.append(&one.entry)?;
        }
        archive.commit()?;
        for one in group {
            let _ = one.durable.send(());
        }
    }
    Ok(())
}
