//! A state's file, checked as a whole and offline.

use super::{RescueError, StateFile};
use quorate_crypto::KeyCache;
use quorate_storage::{
    Executor, ExecutorConfig, MemoryDisk, MemoryStore, Owner, Snapshots, StorageError,
};
use quorate_types::machine::{Install, StagedChunk};
use quorate_types::{
    CertifiedBy, Committee, CommitteeFile, ExportedState, History, Service, put_in_force,
};
use std::path::Path;

/// A state that was checked.
#[derive(Debug)]
pub struct CheckedState {
    /// Network, height, root and proof, as the file says and as it was found to be.
    pub state: ExportedState,
    /// Epochs of its network, as far as the file leads.
    pub history: History,
    /// Whose signatures hold over its root.
    pub by: CertifiedBy,
    /// Number of clients of whom a request took effect.
    pub sessions: u64,
}

impl CheckedState {
    /// The committee file that was in force last, as far as the file leads from `first`.
    #[must_use]
    pub fn last_file<'a>(&'a self, first: &'a CommitteeFile) -> &'a CommitteeFile {
        last_file(&self.state, first)
    }
}

fn last_file<'a>(state: &'a ExportedState, first: &'a CommitteeFile) -> &'a CommitteeFile {
    state.steps.last().map_or(first, |step| &step.file)
}

/// Checks a file from a network's first committee file on: hand-overs, certificate, every chunk,
/// and that the state comes to the root, which `service` computes of it in memory.
///
/// # Errors
/// The first thing that does not hold.
pub fn check(
    path: &Path,
    first: &CommitteeFile,
    mut service: Box<dyn Service>,
) -> Result<CheckedState, RescueError> {
    let mut file = StateFile::open(path)?;
    let refused = |source| {
        let (path, source) = (path.to_owned(), Box::new(source));
        RescueError::Refused { path, source }
    };
    let committee = Committee::load(first, KeyCache::On)?;
    let (history, by) = file.state.check(committee, KeyCache::On).map_err(refused)?;
    let last = last_file(&file.state, first);
    put_in_force(service.as_mut(), last.settings.execution_version)?;
    let snapshots = Snapshots::open(Box::new(MemoryDisk::new()), &Owner::nobody())?;
    let store = Box::new(MemoryStore::new());
    let (executor, _) = Executor::open(store, service, ExecutorConfig::default())?;
    let executor = install(&mut file, executor, &snapshots)?;
    if !executor.is_whole()? {
        let height = file.state.manifest.header.height;
        return Err(RescueError::OtherRoot { path: path.to_owned(), height });
    }
    let sessions = executor.sessions()?;
    Ok(CheckedState { state: file.state, history, by, sessions })
}

/// Replaces the state of an executor by a file's.
pub(super) fn install(
    file: &mut StateFile,
    mut executor: Executor,
    snapshots: &Snapshots,
) -> Result<Executor, RescueError> {
    let hashes = file.state.manifest.chunks.clone();
    for hash in hashes {
        let bytes = file.next_chunk()?.expect("as many as are named");
        snapshots.stage(&StagedChunk { hash, bytes })?;
    }
    let manifest = file.state.manifest.clone();
    let height = manifest.header.height;
    let install = Install { manifest, decided: bytes::Bytes::new() };
    executor.install(&install, snapshots).map_err(|error| match error {
        StorageError::FalseSnapshot { .. } | StorageError::StateDamaged { .. } => {
            RescueError::OtherRoot { path: file.path().to_owned(), height }
        }
        error => error.into(),
    })?;
    snapshots.clear_staged()?;
    Ok(executor)
}
