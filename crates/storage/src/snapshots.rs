//! Snapshots on a disk: those taken here, and the chunks of one that is being fetched.
//!
//! | file | content |
//! |---|---|
//! | `chunk-<hash>` | a chunk, whichever snapshots name it |
//! | `snapshot-<height>` | owner and manifest, written last: without it there is no snapshot |
//! | `staged-<hash>` | a chunk of somebody else's, until one is installed |
//!
//! Snapshots share the chunks that they have in common (★): one that is there is not written again,
//! and one goes when no complete snapshot names it any more. `cut` says where a state is cut, so
//! that they have many in common.
//!
//! Every file is durable before the manifest's name is. What a crash left without a manifest is
//! removed at the next start, like everything older than the last two, and staged chunks that are
//! not whole: fetching goes on with the others. Chunks of the format before are renamed then.

mod cut;
mod files;
mod folder;
mod kept;

pub use kept::KeptSnapshots;

use crate::disk::Disk;
use crate::{Owner, StorageError};
use bytes::Bytes;
use files::staged_name;
use folder::Folder;
use parking_lot::Mutex;
use quorate_crypto::{Digest, hash};
use quorate_types::machine::{ReadAnswer, ReadItem, SnapshotsOnDisk, StagedChunk};
use quorate_types::{Height, Manifest};
use std::sync::Arc;

/// A folder of snapshots. Cloning shares it, for the threads that take, read and install. One
/// snapshot is taken at a time.
#[derive(Clone)]
pub struct Snapshots {
    folder: Arc<Mutex<Folder>>,
}

impl Snapshots {
    /// Opens the folder, and removes what is not part of a complete snapshot.
    ///
    /// # Errors
    /// When a snapshot is not `owner`'s, or the disk fails.
    pub fn open(disk: Box<dyn Disk>, owner: &Owner) -> Result<Self, StorageError> {
        Ok(Self { folder: Arc::new(Mutex::new(Folder::open(disk, owner)?)) })
    }

    /// The heights of the complete ones, oldest first.
    #[must_use]
    pub fn heights(&self) -> Vec<Height> {
        self.folder.lock().complete.keys().copied().collect()
    }

    /// The complete ones, as a machine is told of them.
    #[must_use]
    pub fn on_disk(&self) -> SnapshotsOnDisk {
        SnapshotsOnDisk { heights: self.heights(), newest_bytes: self.newest_bytes() }
    }

    /// A manifest or a chunk of a complete snapshot; `None` where there is none, or for other
    /// items.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn read(&self, item: &ReadItem) -> Result<Option<Bytes>, StorageError> {
        let mut folder = self.folder.lock();
        match item {
            ReadItem::Manifest(age) => {
                let found = folder.complete.values().rev().nth(usize::from(*age));
                Ok(found.map(|(_, manifest)| Bytes::from(manifest.encode())))
            }
            ReadItem::Chunk(digest, index) => {
                let found = folder.complete.iter().find(|(_, (known, _))| known == digest);
                let chunk = found.and_then(|(height, (_, manifest))| {
                    Some((*height, *manifest.chunks.get(*index as usize)?))
                });
                match chunk {
                    Some((height, chunk)) => folder.chunk(height, &chunk),
                    None => Ok(None),
                }
            }
            ReadItem::Body(_) | ReadItem::Decided(_) => Ok(None),
        }
    }

    /// Adds to a journal's answer what of it concerns snapshots.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn fill(&self, answer: &mut ReadAnswer) -> Result<(), StorageError> {
        for (item, bytes) in &mut answer.items {
            // Others are not looked for: the lock may be held by whoever writes a chunk.
            if bytes.is_none() && matches!(item, ReadItem::Manifest(_) | ReadItem::Chunk(..)) {
                *bytes = self.read(item)?;
            }
        }
        Ok(())
    }

    /// Keeps a chunk of a snapshot that is being fetched.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn stage(&self, chunk: &StagedChunk) -> Result<(), StorageError> {
        let mut folder = self.folder.lock();
        folder.put(&staged_name(&chunk.hash), &chunk.bytes)?;
        folder.staged.insert(chunk.hash);
        Ok(())
    }

    /// The chunks that are staged.
    #[must_use]
    pub fn staged_chunks(&self) -> Vec<Digest> {
        self.folder.lock().staged.iter().copied().collect()
    }

    /// A staged chunk, as its manifest names it.
    pub(crate) fn staged(&self, chunk: &Digest) -> Result<Bytes, StorageError> {
        let bytes = self.folder.lock().content(&staged_name(chunk))?;
        let same = hash(&bytes) == *chunk;
        same.then_some(bytes).ok_or(StorageError::StateDamaged { entry: "staged chunk" })
    }

    /// Removes staged chunks that are not needed any more.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn unstage(&self, chunks: &[Digest]) -> Result<(), StorageError> {
        let mut folder = self.folder.lock();
        for chunk in chunks {
            if folder.staged.remove(chunk) {
                folder.remove(&staged_name(chunk))?;
            }
        }
        Ok(())
    }

    /// Removes all of them, after an installation.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn clear_staged(&self) -> Result<(), StorageError> {
        self.unstage(&self.staged_chunks())
    }

    /// The complete one of this height.
    pub(crate) fn manifest(&self, height: Height) -> Option<Manifest> {
        self.folder.lock().complete.get(&height).map(|(_, manifest)| manifest.clone())
    }

    pub(crate) fn begin(&self, height: Height) -> SnapshotWriter<'_> {
        let chunks_max = self.folder.lock().begin();
        SnapshotWriter { snapshots: self, height, chunks_max, open: Vec::new(), chunks: Vec::new() }
    }

    /// The chunks were written; now the manifest is, and then what it replaces goes.
    pub(crate) fn finish(&self, manifest: &Manifest) -> Result<(), StorageError> {
        self.folder.lock().finish(manifest)
    }

    /// Removes all but the newest: room is scarce.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn keep_newest(&self) -> Result<(), StorageError> {
        self.folder.lock().drop_old(1)
    }

    /// Bytes of the newest; 0 before there is one.
    #[must_use]
    pub fn newest_bytes(&self) -> u64 {
        let folder = self.folder.lock();
        let newest = folder.complete.last_key_value();
        newest.map_or(0, |(_, (_, manifest))| folder.bytes_of(manifest))
    }

    /// Removes what was written of one that will not be complete.
    pub(crate) fn abandon(&self, height: Height) -> Result<(), StorageError> {
        self.folder.lock().abandon(height)
    }
}

/// Writes the chunks of one snapshot.
pub(crate) struct SnapshotWriter<'a> {
    snapshots: &'a Snapshots,
    height: Height,
    chunks_max: usize,
    open: Vec<u8>,
    chunks: Vec<Digest>,
}

impl SnapshotWriter<'_> {
    /// Adds an entry: its key's length (`u32`, little-endian), the key, the value's length and the
    /// value.
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        if cut::ends_before(self.open.len(), key, value) {
            self.close()?;
        }
        for part in [key, value] {
            let length = u32::try_from(part.len()).expect("keys and values are megabytes at most");
            self.add(&length.to_le_bytes())?;
            self.add(part)?;
        }
        Ok(())
    }

    fn add(&mut self, mut bytes: &[u8]) -> Result<(), StorageError> {
        while !bytes.is_empty() {
            let room = Manifest::CHUNK_BYTES - self.open.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.open.extend_from_slice(now);
            bytes = later;
            if self.open.len() == Manifest::CHUNK_BYTES {
                self.close()?;
            }
        }
        Ok(())
    }

    /// Ends the stream; the hashes of its chunks.
    pub(crate) fn chunks(mut self) -> Result<Vec<Digest>, StorageError> {
        if !self.open.is_empty() {
            self.close()?;
        }
        Ok(self.chunks)
    }

    fn close(&mut self) -> Result<(), StorageError> {
        if self.chunks.len() == self.chunks_max {
            let reason = "the state has more chunks than a manifest names";
            return Err(StorageError::NoSnapshot { height: self.height, reason });
        }
        let chunk = hash(&self.open);
        self.chunks.push(chunk);
        self.snapshots.folder.lock().keep(chunk, &self.open)?;
        self.open.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
