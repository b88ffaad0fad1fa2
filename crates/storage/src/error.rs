//! What can go wrong between a replica and its disk.

use quorate_types::Height;
use quorate_types::service::StateError;
use std::io;

/// The environment failed. The replica stops; each message says what an operator can do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// Another process holds the directory.
    #[error(
        "{directory} is in use by another process; two validators on one directory would sign \
         against each other: stop the other one, or give this one a directory of its own"
    )]
    InUse {
        /// The directory.
        directory: String,
    },
    /// The file system is full.
    #[error("no space left to {action} {file}: free some space, then start the replica again")]
    Full {
        /// What was tried.
        action: &'static str,
        /// With which file.
        file: String,
    },
    /// The operating system refused.
    #[error(
        "cannot {action} {file}: {reason}; what was written last may be lost, so the replica \
         stops: check the disk, then start it again"
    )]
    Io {
        /// What was tried.
        action: &'static str,
        /// With which file.
        file: String,
        /// The system's words.
        reason: String,
    },
    /// What the log gives back is not what was committed to it.
    #[error(
        "{file} is damaged at byte {offset}: {reason}; records that this replica relied on are \
         gone, so it must not sign again under its present key: replace the disk and rejoin with \
         a new key, or restore the file if a byte-for-byte copy exists"
    )]
    Corrupt {
        /// Which file.
        file: String,
        /// Where in it.
        offset: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The log was written by another version.
    #[error(
        "{file} has log format {found}, this program reads format {expected}: use the version that wrote it"
    )]
    Format {
        /// Which file.
        file: String,
        /// Its format.
        found: u32,
        /// Ours.
        expected: u32,
    },
    /// The state store failed.
    #[error("{0}; the replica stops: check the disk, then start it again")]
    State(#[from] StateError),
    /// The state store holds something that no executor wrote.
    #[error(
        "the state store's entry {entry} does not decode: the store is damaged; remove it and let the replica fetch the state from its peers"
    )]
    StateDamaged {
        /// Which entry.
        entry: &'static str,
    },
    /// A snapshot that was vouched for is not what it says.
    #[error(
        "the snapshot at {height}, which enough members named alike, does not come to the root that it names: more members are faulty than the committee tolerates; do not start this validator again before its operators have spoken to each other"
    )]
    FalseSnapshot {
        /// Of which height.
        height: Height,
    },
    /// The state store belongs to another service.
    #[error(
        "the state store holds the state of service {found:?} at {height}, not of {configured:?}: correct the configuration or use another directory"
    )]
    OtherService {
        /// Whose state it holds.
        found: String,
        /// Which service is configured.
        configured: String,
        /// How far it came.
        height: Height,
    },
}

impl StorageError {
    pub(crate) fn io(action: &'static str, file: String, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull => Self::Full { action, file },
            io::ErrorKind::ResourceBusy => Self::InUse { directory: file },
            _ => Self::Io { action, file, reason: error.to_string() },
        }
    }
}
