//! Snapshots as a disk has them, for whoever reads them and changes nothing: the validator that
//! took them is stopped, and may be the last of its network.

use super::files::{
    chunk_name, format_of, former_chunk_name, height_of, manifest_name, read_chunk, read_whole,
};
use crate::disk::Disk;
use crate::owner::OwnerRecord;
use crate::{Owner, StorageError};
use bytes::Bytes;
use quorate_types::{Height, Manifest, NetworkId};

/// Snapshots of one network in a folder, whoever took them.
pub struct KeptSnapshots {
    disk: Box<dyn Disk>,
    network: NetworkId,
    /// Heights of the manifests, newest first.
    heights: Vec<Height>,
}

impl KeptSnapshots {
    /// Looks into a folder.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn open(disk: Box<dyn Disk>, network: NetworkId) -> Result<Self, StorageError> {
        let failed = |error| StorageError::io("list", disk.locate("snapshot-*"), &error);
        let names = disk.list().map_err(failed)?;
        let mut heights: Vec<Height> = names.iter().filter_map(|name| height_of(name)).collect();
        heights.sort_unstable();
        heights.reverse();
        Ok(Self { disk, network, heights })
    }

    /// Heights that have a manifest, newest first.
    #[must_use]
    pub fn heights(&self) -> &[Height] {
        &self.heights
    }

    /// The manifest of a height, and who took the snapshot; `None` where the file is damaged.
    ///
    /// # Errors
    /// [`StorageError::Foreign`] when it is of another network, [`StorageError::Format`] when
    /// another version wrote it; others when the disk fails.
    pub fn manifest(&self, height: Height) -> Result<Option<(Owner, Manifest)>, StorageError> {
        let name = manifest_name(height);
        let file = read_whole(self.disk.as_ref(), &name)?;
        let Some((record, bytes)) = OwnerRecord::split(&file) else { return Ok(None) };
        let format = format_of(&record);
        let owner = record.owner_in(&self.disk.locate(&name), format, self.network)?;
        let manifest = Manifest::decode(bytes).filter(|found| found.header.height == height);
        Ok(manifest.map(|manifest| (owner, manifest)))
    }

    /// A chunk of a snapshot, under the name that it has or had in the format before; `None` where
    /// it is damaged or gone.
    #[must_use]
    pub fn chunk(&self, manifest: &Manifest, index: u32) -> Option<Bytes> {
        let expected = manifest.chunks.get(index as usize)?;
        let former = former_chunk_name(manifest.header.height, index);
        let names = [chunk_name(expected), former];
        names.iter().find_map(|name| read_chunk(self.disk.as_ref(), name, expected).ok())
    }
}
