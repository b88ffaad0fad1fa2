//! Snapshots on a disk: those taken here, and the chunks of one that is being fetched.
//!
//! | file | content |
//! |---|---|
//! | `snapshot-<height>-<chunk>` | a chunk |
//! | `snapshot-<height>` | owner and manifest, written last: without it there is no snapshot |
//! | `staged-<hash>` | a chunk of somebody else's, until one is installed |
//!
//! Every file is durable before the manifest's name is. What a crash left without a manifest is
//! removed at the next start, like everything older than the last two, and staged chunks that are
//! not whole: fetching goes on with the others.

mod kept;

pub use kept::KeptSnapshots;

use crate::disk::Disk;
use crate::{Owner, StorageError};
use bytes::Bytes;
use parking_lot::Mutex;
use quorate_crypto::{Digest, hash};
use quorate_types::machine::{ReadAnswer, ReadItem, StagedChunk};
use quorate_types::{Height, Manifest};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

/// Complete snapshots kept: a member that fetches one may finish while the next is taken.
const KEPT: usize = 2;

/// Format of a manifest's file, written at its start with the owner. The first had neither.
const FORMAT: u32 = 3;

/// A folder of snapshots. Cloning shares it, for the threads that take, read and install.
#[derive(Clone)]
pub struct Snapshots {
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    disk: Box<dyn Disk>,
    owner: Owner,
    complete: BTreeMap<Height, (Digest, Manifest)>,
    staged: BTreeSet<Digest>,
}

impl Snapshots {
    /// Opens the folder, and removes what is not part of a complete snapshot.
    ///
    /// # Errors
    /// When a snapshot is not `owner`'s, or the disk fails.
    pub fn open(disk: Box<dyn Disk>, owner: &Owner) -> Result<Self, StorageError> {
        let (complete, staged) = (BTreeMap::new(), BTreeSet::new());
        let mut shared = Shared { disk, owner: owner.clone(), complete, staged };
        let names = shared.list()?;
        for height in names.iter().filter_map(|name| height_of(name)) {
            if let Some(manifest) = shared.load(height, &names)? {
                shared.complete.insert(height, (manifest.digest(), manifest));
            }
        }
        shared.tidy()?;
        Ok(Self { shared: Arc::new(Mutex::new(shared)) })
    }

    /// The heights of the complete ones, oldest first.
    #[must_use]
    pub fn heights(&self) -> Vec<Height> {
        self.shared.lock().complete.keys().copied().collect()
    }

    /// A manifest or a chunk of a complete snapshot; `None` where there is none, or for other
    /// items.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn read(&self, item: &ReadItem) -> Result<Option<Bytes>, StorageError> {
        let mut shared = self.shared.lock();
        match item {
            ReadItem::Manifest(age) => {
                let found = shared.complete.values().rev().nth(usize::from(*age));
                Ok(found.map(|(_, manifest)| Bytes::from(manifest.encode())))
            }
            ReadItem::Chunk(digest, index) => {
                let found = shared.complete.iter().find(|(_, (known, _))| known == digest);
                let chunk = found.and_then(|(height, (_, manifest))| {
                    Some((*height, *manifest.chunks.get(*index as usize)?))
                });
                match chunk {
                    Some((height, chunk)) => shared.chunk(height, *index, chunk),
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
        let mut shared = self.shared.lock();
        shared.put(&staged_name(&chunk.hash), &chunk.bytes)?;
        shared.staged.insert(chunk.hash);
        Ok(())
    }

    /// The chunks that are staged.
    #[must_use]
    pub fn staged_chunks(&self) -> Vec<Digest> {
        self.shared.lock().staged.iter().copied().collect()
    }

    /// A staged chunk, as its manifest names it.
    pub(crate) fn staged(&self, chunk: &Digest) -> Result<Bytes, StorageError> {
        let bytes = self.shared.lock().content(&staged_name(chunk))?;
        let same = hash(&bytes) == *chunk;
        same.then_some(bytes).ok_or(StorageError::StateDamaged { entry: "staged chunk" })
    }

    /// Removes staged chunks that are not needed any more.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn unstage(&self, chunks: &[Digest]) -> Result<(), StorageError> {
        let mut shared = self.shared.lock();
        for chunk in chunks {
            if shared.staged.remove(chunk) {
                shared.remove(&staged_name(chunk))?;
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
        self.shared.lock().complete.get(&height).map(|(_, manifest)| manifest.clone())
    }

    pub(crate) fn begin(&self, height: Height) -> SnapshotWriter<'_> {
        SnapshotWriter { snapshots: self, height, open: Vec::new(), chunks: Vec::new() }
    }

    /// The chunks are durable; now the manifest, and then those that it replaces go.
    pub(crate) fn finish(&self, manifest: &Manifest) -> Result<(), StorageError> {
        let mut shared = self.shared.lock();
        shared.sync()?;
        let file = [shared.owner.record(FORMAT), manifest.encode()].concat();
        shared.put(&manifest_name(manifest.header.height), &file)?;
        shared.sync()?;
        shared.complete.insert(manifest.header.height, (manifest.digest(), manifest.clone()));
        shared.drop_old(KEPT)
    }

    /// Removes all but the newest: room is scarce.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn keep_newest(&self) -> Result<(), StorageError> {
        self.shared.lock().drop_old(1)
    }

    /// Bytes of the newest, at most; 0 before there is one.
    #[must_use]
    pub fn newest_bytes(&self) -> u64 {
        let shared = self.shared.lock();
        let newest = shared.complete.last_key_value();
        newest
            .map_or(0, |(_, (_, manifest))| (manifest.chunks.len() * Manifest::CHUNK_BYTES) as u64)
    }

    /// Removes what was written of one that will not be complete.
    pub(crate) fn abandon(&self, height: Height) -> Result<(), StorageError> {
        let mut shared = self.shared.lock();
        let names = shared.list()?;
        let chunk = format!("{}-", manifest_name(height));
        let is_part = |name: &&String| **name == manifest_name(height) || name.starts_with(&chunk);
        names.iter().filter(is_part).try_for_each(|name| shared.remove(name))
    }
}

/// Writes the chunks of one snapshot.
pub(crate) struct SnapshotWriter<'a> {
    snapshots: &'a Snapshots,
    height: Height,
    open: Vec<u8>,
    chunks: Vec<Digest>,
}

impl SnapshotWriter<'_> {
    /// Adds to the stream.
    pub(crate) fn put(&mut self, mut bytes: &[u8]) -> Result<(), StorageError> {
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
        let bytes = std::mem::take(&mut self.open);
        let index = u32::try_from(self.chunks.len()).expect("chunks are megabytes");
        self.chunks.push(hash(&bytes));
        self.snapshots.shared.lock().put(&chunk_name(self.height, index), &bytes)
    }
}

impl Shared {
    fn list(&self) -> Result<Vec<String>, StorageError> {
        let failed = |e: io::Error| StorageError::io("list", self.disk.locate("snapshot-*"), &e);
        self.disk.list().map_err(failed)
    }

    fn put(&mut self, name: &str, bytes: &[u8]) -> Result<(), StorageError> {
        let place = self.disk.locate(name);
        self.disk.write(name, bytes).map_err(|error| StorageError::io("write", place, &error))
    }

    fn sync(&mut self) -> Result<(), StorageError> {
        let place = self.disk.locate("snapshot-*");
        self.disk
            .sync_directory()
            .map_err(|error| StorageError::io("sync the directory of", place, &error))
    }

    fn content(&self, name: &str) -> Result<Bytes, StorageError> {
        read_whole(self.disk.as_ref(), name)
    }

    /// A chunk of a complete snapshot. One that is damaged or gone takes its snapshot with it:
    /// others have the like, and the next one is not far.
    fn chunk(
        &mut self,
        height: Height,
        index: u32,
        expected: Digest,
    ) -> Result<Option<Bytes>, StorageError> {
        let name = chunk_name(height, index);
        let reason = match self.content(&name) {
            Ok(bytes) if hash(&bytes) == expected => return Ok(Some(bytes)),
            Ok(_) => "its content has changed".to_owned(),
            Err(error) => error.to_string(),
        };
        let chunk = self.disk.locate(&name);
        tracing::warn!(chunk, reason, "a damaged snapshot is dropped");
        self.complete.remove(&height);
        self.remove(&manifest_name(height))?;
        Ok(None)
    }

    /// The manifest of this height, if it is whole and all its chunks are there.
    fn load(&self, height: Height, names: &[String]) -> Result<Option<Manifest>, StorageError> {
        let name = manifest_name(height);
        let file = self.content(&name)?;
        let bytes = self.owner.strip(&self.disk.locate(&name), FORMAT, &file)?;
        let Some(manifest) = Manifest::decode(bytes).filter(|m| m.header.height == height) else {
            return Ok(None);
        };
        let chunks = u32::try_from(manifest.chunks.len()).expect("limited");
        let is_there = |index| names.contains(&chunk_name(height, index));
        Ok((0..chunks).all(is_there).then_some(manifest))
    }

    /// Deletes all but the last so many. The manifest goes first: half a snapshot is none.
    fn drop_old(&mut self, kept: usize) -> Result<(), StorageError> {
        while self.complete.len() > kept {
            let Some((height, (_, manifest))) = self.complete.pop_first() else { break };
            self.remove(&manifest_name(height))?;
            for index in (0..).take(manifest.chunks.len()) {
                self.remove(&chunk_name(height, index))?;
            }
        }
        Ok(())
    }

    /// Removes what belongs to no complete snapshot, and what is staged and not whole.
    fn tidy(&mut self) -> Result<(), StorageError> {
        self.drop_old(KEPT)?;
        for name in self.list()? {
            let height = height_of(name.rsplit_once('-').map_or("", |(stem, _)| stem));
            let of = height.or_else(|| height_of(&name));
            let is_complete = of.is_some_and(|height| self.complete.contains_key(&height));
            let is_useless = match name.strip_prefix("staged-") {
                Some(_) => !self.take_stock(&name),
                None => name.starts_with("snapshot-") && !is_complete,
            };
            if is_useless {
                self.remove(&name)?;
            }
        }
        Ok(())
    }

    /// Returns `true` if a chunk that an earlier run staged is what its name says. One that cannot
    /// be read is not.
    fn take_stock(&mut self, name: &str) -> bool {
        let Ok(content) = self.content(name) else { return false };
        let found = hash(&content);
        let is_whole = staged_name(&found) == name;
        if is_whole {
            self.staged.insert(found);
        }
        is_whole
    }

    fn remove(&mut self, name: &str) -> Result<(), StorageError> {
        let place = self.disk.locate(name);
        self.disk.remove(name).map_err(|error| StorageError::io("remove", place, &error))
    }
}

/// All of a file.
fn read_whole(disk: &dyn Disk, name: &str) -> Result<Bytes, StorageError> {
    let read = || {
        let file = disk.open(name)?;
        let length = usize::try_from(file.length()?).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        file.read_at(0, &mut bytes)?;
        Ok(Bytes::from(bytes))
    };
    read().map_err(|error| StorageError::io("read", disk.locate(name), &error))
}

fn manifest_name(height: Height) -> String {
    format!("snapshot-{:012}", height.0)
}

fn chunk_name(height: Height, index: u32) -> String {
    format!("{}-{index:06}", manifest_name(height))
}

fn staged_name(chunk: &Digest) -> String {
    format!("staged-{}", chunk.to_hex())
}

/// The height in a manifest's name.
fn height_of(name: &str) -> Option<Height> {
    let height = Height(name.strip_prefix("snapshot-")?.parse().ok()?);
    (manifest_name(height) == name).then_some(height)
}

#[cfg(test)]
mod tests;
