//! Export of the newest certified snapshot in the data folder of a validator that does not run.
//!
//! **Certified** is a snapshot whose header members signed: so many that one is honest, in the
//! certificate that `data_dir/proofs` has of its height; or a quorum, which handed over to the next
//! epoch with it. What this disk executed beyond it has nobody's word but its own.

use super::{RescueError, StateFile, StateProofs};
use crate::epochs::read_steps;
use quorate_crypto::KeyCache;
use quorate_storage::{DiskStore, Executor, KeptSnapshots, Owner, RealDisk, StorageError};
use quorate_types::{
    CertifiedBy, Committee, CommitteeFile, ExportedState, HandedOver, Height, Manifest,
};
use std::path::Path;

/// A state that was exported.
#[derive(Clone, Debug)]
pub struct Exported {
    /// Description of it, as the file has it.
    pub state: ExportedState,
    /// Whose signatures hold over its root.
    pub by: CertifiedBy,
    /// Height that this disk's own state came to, durably; `None` where that cannot be read.
    pub executed: Option<Height>,
}

/// Writes the newest certified snapshot in a data folder into a new file. `first` is the committee
/// file that founded the network.
///
/// # Errors
/// [`RescueError::Running`], [`RescueError::NothingCertified`] and others, each a sentence.
pub fn export(data_dir: &Path, first: &CommitteeFile, out: &Path) -> Result<Exported, RescueError> {
    let folder = data_dir.join("snapshots");
    if !folder.is_dir() {
        return Err(RescueError::NoSnapshots(data_dir.to_owned()));
    }
    let disk = RealDisk::open(&folder).map_err(|error| match error {
        StorageError::InUse { .. } => RescueError::Running(data_dir.to_owned()),
        error => error.into(),
    })?;
    let committee = Committee::load(first, KeyCache::On)?;
    let snapshots = KeptSnapshots::open(Box::new(disk), committee.network())?;
    let search = Search {
        proofs: StateProofs::of(data_dir),
        steps: steps_in(data_dir)?,
        snapshots,
        committee,
    };
    let mut looked_at = Vec::new();
    for height in search.snapshots.heights() {
        match search.certified(*height)? {
            Ok(certified) => return search.write(certified, data_dir, out),
            Err(reason) => looked_at.push(format!("{height} {reason}")),
        }
    }
    if looked_at.is_empty() {
        return Err(RescueError::NoSnapshots(data_dir.to_owned()));
    }
    let (folder, looked_at) = (data_dir.to_owned(), looked_at.join(", "));
    Err(RescueError::NothingCertified { folder, looked_at })
}

/// Hand-overs of the network that this disk knows.
fn steps_in(data_dir: &Path) -> Result<Vec<HandedOver>, RescueError> {
    let folder = data_dir.join("epochs");
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    Ok(read_steps(&folder)?)
}

/// What a data folder has of snapshots, and of what proves them.
struct Search {
    snapshots: KeptSnapshots,
    proofs: StateProofs,
    steps: Vec<HandedOver>,
    committee: Committee,
}

/// A state that is certified, by whom, and who took the snapshot.
struct Certified {
    state: ExportedState,
    by: CertifiedBy,
    owner: Owner,
    /// Bytes of each chunk.
    lengths: Vec<u32>,
}

/// The same, or why it is none.
type Verdict = Result<Certified, String>;

impl Search {
    /// Whether the snapshot of this height is whole and certified.
    fn certified(&self, height: Height) -> Result<Verdict, RescueError> {
        let Some((owner, manifest)) = self.snapshots.manifest(height)? else {
            return Ok(Err("is damaged".into()));
        };
        let Some(lengths) = self.lengths(&manifest) else {
            return Ok(Err("is damaged".into()));
        };
        let is_end = self.steps.iter().any(|step| step.header == manifest.header);
        let certificate = self.proofs.read(height).filter(|_| !is_end);
        let (network, steps) = (self.committee.network(), self.steps.clone());
        let state = ExportedState { network, steps, manifest, certificate };
        let checked = state.check(self.committee.clone(), KeyCache::On);
        Ok(match checked {
            Ok((_, by)) => Ok(Certified { state, by, owner, lengths }),
            Err(error) => Err(format!("is not ({error})")),
        })
    }

    /// Bytes of each chunk, if all are whole.
    fn lengths(&self, manifest: &Manifest) -> Option<Vec<u32>> {
        let chunks = (0..).take(manifest.chunks.len());
        let length = |index| u32::try_from(self.snapshots.chunk(manifest, index)?.len()).ok();
        chunks.map(length).collect()
    }

    /// Writes one into a new file. Its chunks are read a second time: one that fails by then ends
    /// it, and no part of a state is left.
    fn write(
        &self,
        certified: Certified,
        data_dir: &Path,
        out: &Path,
    ) -> Result<Exported, RescueError> {
        let Certified { state, by, owner, lengths } = certified;
        let chunks = (0..).zip(&lengths).map(|(index, length)| {
            let chunk = self.snapshots.chunk(&state.manifest, index);
            let chunk = chunk.filter(|chunk| chunk.len() == *length as usize);
            let (folder, height) = (data_dir.to_owned(), state.manifest.header.height);
            chunk.ok_or(RescueError::Decayed { folder, height })
        });
        StateFile::write(out, (&state, &lengths), chunks)?;
        let executed = executed_height(data_dir, &owner);
        Ok(Exported { state, by, executed })
    }
}

/// Height of the state beside the snapshots.
fn executed_height(data_dir: &Path, owner: &Owner) -> Option<Height> {
    let path = data_dir.join("state");
    let store = DiskStore::is_at(&path).then(|| DiskStore::open(&path, owner).ok()).flatten()?;
    Executor::height_in(&store).ok().flatten()
}
