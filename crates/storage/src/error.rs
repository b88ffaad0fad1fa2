//! Errors between a replica and its disk.

use quorate_types::Height;
use quorate_types::service::StateError;
use std::io;

/// Begins what is said of a state's file that the system does not read or write, and of nothing
/// else.
pub(crate) const STATE_REFUSED: &str = "its file cannot be used";

/// Is all that is said of one that found no room.
pub(crate) const STATE_FULL: &str = "its file cannot be used: there is no room for it";

/// The environment failed. The replica stops; each message says what an operator can do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// Another process holds the directory.
    #[error(
        "{directory} is in use by another process; two validators on one directory would sign \
         against each other: stop the other one, or give this one a directory of its own"
    )]
    InUse {
        /// Directory that is held.
        directory: String,
    },
    /// The file system is full.
    #[error("no space left to {action} {file}: free some space, then start the replica again")]
    Full {
        /// Action that was tried, such as "write".
        action: &'static str,
        /// File that it was tried with.
        file: String,
    },
    /// The operating system refused.
    #[error(
        "cannot {action} {file}: {reason}; what was written last may be lost, so the replica \
         stops: check the disk, then start it again"
    )]
    Io {
        /// Action that was tried, such as "sync".
        action: &'static str,
        /// File that it was tried with.
        file: String,
        /// Reason that the system gave.
        reason: String,
    },
    /// The log gives back something else than was committed to it.
    #[error(
        "{file} is damaged at byte {offset}: {reason}; records that this replica relied on are \
         gone, so it must not sign again under its present key: replace the disk and rejoin with \
         a new key, or restore the file if a byte-for-byte copy exists"
    )]
    Corrupt {
        /// File that is damaged.
        file: String,
        /// Offset in the file at which the damage begins.
        offset: u64,
        /// Kind of the damage.
        reason: String,
    },
    /// The files are somebody else's.
    #[error(
        "{place} belongs to {owner}, and {claimant} wants it: nobody goes on from what somebody else promised. Put every folder back where it belongs, or correct what the configuration says of `data_dir`, `key`, committee or network, and protocol"
    )]
    Foreign {
        /// File, or folder, of somebody else.
        place: String,
        /// Role, key, network and protocol that its first record names.
        owner: String,
        /// The same of whoever was to open it.
        claimant: String,
    },
    /// The file was written by another version.
    #[error(
        "{file} has format {found}, this program reads format {expected}: use the version that wrote it"
    )]
    Format {
        /// File of the other version.
        file: String,
        /// Format that the file has.
        found: u32,
        /// Format that this version reads.
        expected: u32,
    },
    /// The state store failed.
    #[error("{0}; the replica stops")]
    State(#[from] StateError),
    /// The state store holds something that no executor wrote.
    #[error("the state store's entry {entry} does not decode: the store is damaged")]
    StateDamaged {
        /// Kind of the entry that is damaged.
        entry: &'static str,
    },
    /// A snapshot that was vouched for is not what it says.
    #[error(
        "the snapshot at {height}, which enough members named alike, does not come to the root that it names: more members are faulty than the committee tolerates; do not start this validator again before its operators have spoken to each other"
    )]
    FalseSnapshot {
        /// Height that the snapshot is of.
        height: Height,
    },
    /// A snapshot came to nothing, and nothing else is lost.
    #[error("there is no snapshot at {height}: {reason}")]
    NoSnapshot {
        /// Height that it was to be of.
        height: Height,
        /// What stood in its way.
        reason: &'static str,
    },
    /// The state store belongs to another service.
    #[error(
        "the state store holds the state of service {found:?} at {height}, not of {configured:?}: correct the configuration or use another directory"
    )]
    OtherService {
        /// Service whose state the store holds.
        found: String,
        /// Service that the configuration names.
        configured: String,
        /// Height that the other service came to.
        height: Height,
    },
}

impl StorageError {
    /// Returns `true` if it says that there was no room, whether or not what found none can be done
    /// again: a state store cannot go on after it.
    #[must_use]
    pub fn is_full(&self) -> bool {
        match self {
            Self::Full { .. } => true,
            Self::State(error) => error.0 == STATE_FULL,
            _ => false,
        }
    }

    /// Returns `true` if whoever takes a snapshot goes on without one after it.
    #[must_use]
    pub fn costs_a_snapshot(&self) -> bool {
        matches!(self, Self::Full { .. } | Self::NoSnapshot { .. })
    }

    /// Returns `true` if the state store is damaged: it is made again from the log and the other
    /// members by whoever starts without it.
    #[must_use]
    pub fn is_damaged_state(&self) -> bool {
        match self {
            // It was read, and the store or the service says that it is not what it was.
            Self::State(error) => !error.0.starts_with(STATE_REFUSED),
            Self::StateDamaged { .. } => true,
            _ => false,
        }
    }

    /// Error of the system when `action` was tried with `file`.
    #[must_use]
    pub fn io(action: &'static str, file: String, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::Full { action, file }
            }
            io::ErrorKind::ResourceBusy => Self::InUse { directory: file },
            _ => Self::Io { action, file, reason: error.to_string() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{STATE_FULL, STATE_REFUSED, StorageError};
    use crate::WantsRoom;
    use quorate_types::service::StateError;
    use std::io;

    fn of(kind: io::ErrorKind) -> StorageError {
        StorageError::io("write", "log-1".to_owned(), &kind.into())
    }

    /// What finds no room is told apart from what is broken, in both kinds of store.
    #[test]
    fn want_of_room_is_told_apart() {
        let state = |text: &str| StorageError::State(StateError(text.to_owned()));
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
            assert!(of(kind).is_full() && of(kind).wants_room(), "{kind:?}");
        }
        let broken = of(io::ErrorKind::BrokenPipe);
        assert!(!broken.is_full() && !broken.wants_room());
        assert!(matches!(broken, StorageError::Io { .. }), "{broken}");
        assert!(state(STATE_FULL).is_full() && !state(STATE_FULL).wants_room(), "it is over");
        assert!(!state(STATE_REFUSED).is_full());
        let busy = of(io::ErrorKind::ResourceBusy);
        assert_eq!(busy, StorageError::InUse { directory: "log-1".to_owned() });
    }

    /// A state that says other things than it did is made again; one whose file the system does
    /// not read is not.
    #[test]
    fn only_a_state_that_was_read_is_damaged() {
        let state = |text: &str| StorageError::State(StateError(text.to_owned()));
        assert!(state("its file is damaged (page 7)").is_damaged_state());
        assert!(StorageError::StateDamaged { entry: "session" }.is_damaged_state());
        for other in [state(STATE_FULL), state(STATE_REFUSED), of(io::ErrorKind::BrokenPipe)] {
            assert!(!other.is_damaged_state(), "{other}");
        }
    }
}
