//! From a disk of a network that lost more members than it tolerates to the members of a new one.
//!
//! ```text
//!  data_dir/snapshots ┐
//!  data_dir/proofs    ├─ export ─▶ file ─ check ─▶ committee file ─ import ─▶ data_dir/founded
//!  data_dir/epochs    ┘           (state)         (`from_state`)             and the state
//! ```
//!
//! All of it is done by people, with validators that do not run. Nothing in here signs anything.

mod check;
mod export;
mod founded;
mod import;
mod proofs;
mod state_file;

pub use check::{CheckedState, check};
pub use export::{Exported, export};
pub(crate) use founded::Founded;
pub use import::import;
pub use proofs::ProofOutlet;
pub(crate) use proofs::StateProofs;
pub use state_file::StateFile;

use crate::config::UPGRADE;
use crate::{ConfigError, NodeError};
use quorate_storage::StorageError;
use quorate_types::{CommitteeError, ExportedStateError, FromState, Height, LacksVersion};
use std::io;
use std::path::PathBuf;

/// Reason that a state is not exported, not believed or not begun with. Each message is for an
/// operator.
#[derive(Debug, thiserror::Error)]
pub enum RescueError {
    /// The program lacks the version by which the state was executed, or is to be.
    #[error("{0}: {UPGRADE}")]
    LacksVersion(#[from] LacksVersion),
    /// No validator had its data there.
    #[error("{folder} has no snapshots: it is no validator's data folder, or none was ever taken (`snapshot_every`)", folder = .0.display())]
    NoSnapshots(PathBuf),
    /// The folder is locked by the process that writes to it.
    #[error("the validator of {folder} is running: stop it first, and copy the folder before anything else is done with it", folder = .0.display())]
    Running(PathBuf),
    /// There are snapshots, and no proof of any.
    #[error("no snapshot in {folder} is certified: {looked_at}; nothing is exported, for nobody but this disk says what is in them", folder = folder.display())]
    NothingCertified {
        /// Folder of the data.
        folder: PathBuf,
        /// What was found of each.
        looked_at: String,
    },
    /// A chunk was whole, and is not any more.
    #[error("{folder} gave back the snapshot at {height} once and not again: its disk fails, nothing was exported; copy the folder to another disk and export from there", folder = folder.display())]
    Decayed {
        /// Folder of the data.
        folder: PathBuf,
        /// Height that the snapshot is of.
        height: Height,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    File {
        /// Operation on the file, as a verb for the message.
        action: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A file that holds no state.
    #[error("{path} is no state that `quorate state export` wrote: {problem}", path = path.display())]
    Form {
        /// Path of the file.
        path: PathBuf,
        /// Difference from that form.
        problem: &'static str,
    },
    /// A chunk is not the one that the file's own beginning names.
    #[error("{path} was changed or is damaged: chunk {index} of {chunks} is not what its beginning names; take another copy", path = path.display())]
    Chunk {
        /// Path of the file.
        path: PathBuf,
        /// Number of the chunk, from 1 on.
        index: usize,
        /// Number of all.
        chunks: usize,
    },
    /// The certificate or a hand-over does not hold.
    #[error("the state in {path} is not believed: {source}", path = path.display())]
    Refused {
        /// Path of the file.
        path: PathBuf,
        /// Rule that it breaks.
        source: Box<ExportedStateError>,
    },
    /// The content does not come to the root that is certified.
    #[error("the state in {path} is not the one that was certified: it does not come to the root of {height}", path = path.display())]
    OtherRoot {
        /// Path of the file.
        path: PathBuf,
        /// Height that the root is of.
        height: Height,
    },
    /// A network that begins with nothing.
    #[error("{path} founds a network that begins with no state (it has no section `from_state`): there is nothing to import", path = path.display())]
    FromNothing {
        /// Path of the committee file.
        path: PathBuf,
    },
    /// Another state than the committee file names.
    #[error("the state in {path} is that {}; {committee} founds its network on that {}", of(found), of(named), path = path.display(), committee = committee.display())]
    OtherState {
        /// Path of the state's file.
        path: PathBuf,
        /// Path of the committee file.
        committee: PathBuf,
        /// State in the file.
        found: Box<FromState>,
        /// State that was expected.
        named: Box<FromState>,
    },
    /// The folder has begun something.
    #[error("{folder} is not empty: a state is imported once, into the data folder of a validator that never ran; name a new one in `data_dir`", folder = .0.display())]
    Begun(PathBuf),
    /// The committee file is refused.
    #[error(transparent)]
    Committee(#[from] CommitteeError),
    /// The configuration or the committee file is refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A store failed, or is somebody else's.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Hand-overs or keys are refused.
    #[error(transparent)]
    Node(#[from] NodeError),
}

/// A state in words.
fn of(state: &FromState) -> String {
    let FromState { network, height, snapshot, .. } = state;
    format!("of network {network} at {height}, snapshot {}", snapshot.to_hex())
}

impl RescueError {
    /// For `map_err`: a file could not be read or written.
    fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}

#[cfg(test)]
mod tests;
