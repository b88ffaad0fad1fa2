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
            Ok((state, by, owner)) => {
                let chunks =
                    (0..).map_while(|index| search.snapshots.chunk(&state.manifest, index));
                StateFile::write(out, &state, chunks)?;
                let executed = executed_height(data_dir, &owner);
                return Ok(Exported { state, by, executed });
            }
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

/// A state that is certified, by whom, and who took the snapshot; or why it is none.
type Verdict = Result<(ExportedState, CertifiedBy, Owner), String>;

impl Search {
    /// Whether the snapshot of this height is whole and certified.
    fn certified(&self, height: Height) -> Result<Verdict, RescueError> {
        let Some((owner, manifest)) = self.snapshots.manifest(height)? else {
            return Ok(Err("is damaged".into()));
        };
        if !self.is_whole(&manifest) {
            return Ok(Err("is damaged".into()));
        }
        let is_end = self.steps.iter().any(|step| step.header == manifest.header);
        let certificate = self.proofs.read(height).filter(|_| !is_end);
        let (network, steps) = (self.committee.network(), self.steps.clone());
        let state = ExportedState { network, steps, manifest, certificate };
        let checked = state.check(self.committee.clone(), KeyCache::On);
        Ok(match checked {
            Ok((_, by)) => Ok((state, by, owner)),
            Err(error) => Err(format!("is not ({error})")),
        })
    }

    fn is_whole(&self, manifest: &Manifest) -> bool {
        let mut indices = (0..).take(manifest.chunks.len());
        indices.all(|index| self.snapshots.chunk(manifest, index).is_some())
    }
}

/// Height of the state beside the snapshots.
fn executed_height(data_dir: &Path, owner: &Owner) -> Option<Height> {
    let path = data_dir.join("state");
    let store = path.is_file().then(|| DiskStore::open(&path, owner).ok()).flatten()?;
    Executor::height_in(&store).ok().flatten()
}
