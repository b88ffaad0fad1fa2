//! Files of a snapshot folder, and which of them are needed.

use super::files::{
    CHUNK, FORMAT, FORMAT_WITHOUT_OWNER, STAGED, chunk_name, format_of, former_chunk_name,
    height_of, manifest_name, read_chunk, read_whole, staged_name,
};
use crate::disk::Disk;
use crate::owner::OwnerRecord;
use crate::{Owner, StorageError};
use bytes::Bytes;
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Digest, hash};
use quorate_types::{Height, Manifest};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Bound::{Excluded, Unbounded};

/// Complete snapshots kept: a member that fetches one may finish while the next is taken.
const KEPT: usize = 2;

/// Chunks that are read again while a snapshot is taken: some megabytes.
const READ_AGAIN: usize = 8;

/// What a folder has, and who owns it.
pub(super) struct Folder {
    disk: Box<dyn Disk>,
    owner: Owner,
    pub(super) complete: BTreeMap<Height, (Digest, Manifest)>,
    pub(super) staged: BTreeSet<Digest>,
    /// Chunks that were written whole, with their lengths. All that complete snapshots name are
    /// among them, but for such as turned out damaged when there was no room to write them anew.
    chunks: BTreeMap<Digest, u64>,
    /// Those that the snapshot being taken has so far.
    taken: BTreeSet<Digest>,
    /// Those that are read again before that snapshot relies on them.
    due: BTreeSet<Digest>,
    /// The last one whose turn it was.
    turn: Digest,
    /// Most chunks of a snapshot: a constant, but for tests.
    pub(super) chunks_max: usize,
}

impl Folder {
    /// Looks through a folder, and removes what is not part of a complete snapshot.
    pub(super) fn open(disk: Box<dyn Disk>, owner: &Owner) -> Result<Self, StorageError> {
        let mut folder = Self {
            disk,
            owner: owner.clone(),
            complete: BTreeMap::new(),
            staged: BTreeSet::new(),
            chunks: BTreeMap::new(),
            taken: BTreeSet::new(),
            due: BTreeSet::new(),
            turn: Digest::ZERO,
            chunks_max: Manifest::CHUNKS_MAX,
        };
        let names = folder.list()?;
        // All of them before anything is changed: they may be somebody else's.
        let heights = names.iter().filter_map(|name| height_of(name));
        let found: Result<Vec<_>, _> = heights.map(|height| folder.load(height)).collect();
        let found: Vec<(u32, Manifest)> = found?.into_iter().flatten().collect();
        folder.take_over(&found)?;
        let names = folder.rename_former(names.into_iter().collect(), &found)?;
        for (_, manifest) in found {
            folder.find(manifest, &names)?;
        }
        // Anywhere: a validator that restarts often gets to all of them, too.
        folder.turn = folder.complete.values().next_back().map_or(Digest::ZERO, |(name, _)| *name);
        folder.tidy()?;
        Ok(folder)
    }

    /// The manifest of this height and the format of its file, if that is whole.
    fn load(&self, height: Height) -> Result<Option<(u32, Manifest)>, StorageError> {
        let name = manifest_name(height);
        let file = self.content(&name)?;
        let (format, bytes) = match OwnerRecord::split(&file) {
            Some((record, bytes)) => {
                let format = format_of(&record);
                record.check(&self.disk.locate(&name), format, &self.owner)?;
                (format, bytes)
            }
            None => (FORMAT_WITHOUT_OWNER, &file[..]),
        };
        let manifest = Manifest::decode(bytes).filter(|found| found.header.height == height);
        Ok(manifest.map(|manifest| (format, manifest)))
    }

    /// Gives manifests that former versions wrote the present format, so that these versions refuse
    /// the folder from then on.
    fn take_over(&mut self, found: &[(u32, Manifest)]) -> Result<(), StorageError> {
        let former = found.iter().filter(|(format, _)| *format != FORMAT);
        let mut snapshots = 0;
        for (_, manifest) in former {
            let name = manifest_name(manifest.header.height);
            let new = format!("{name}.new");
            self.put(&new, &self.manifest_file(manifest))?;
            self.rename(&new, &name)?;
            snapshots += 1;
        }
        if snapshots == 0 {
            return Ok(());
        }
        tracing::info!(snapshots, "taken over from an earlier version");
        self.sync()
    }

    /// Gives chunks that have a former version's names those by which they are found and shared;
    /// the names of all files afterwards. What is interrupted is done at the next start.
    fn rename_former(
        &mut self,
        mut names: BTreeSet<String>,
        found: &[(u32, Manifest)],
    ) -> Result<BTreeSet<String>, StorageError> {
        let mut is_changed = false;
        for (_, manifest) in found {
            for (index, chunk) in (0..).zip(&manifest.chunks) {
                let former = former_chunk_name(manifest.header.height, index);
                let name = chunk_name(chunk);
                if names.contains(&former) && names.insert(name.clone()) {
                    self.rename(&former, &name)?;
                    is_changed = true;
                }
            }
        }
        if is_changed {
            self.sync()?;
        }
        Ok(names)
    }

    fn manifest_file(&self, manifest: &Manifest) -> Vec<u8> {
        [self.owner.record(FORMAT), manifest.encode()].concat()
    }

    /// Takes note of a snapshot, if all its chunks are there.
    fn find(&mut self, manifest: Manifest, names: &BTreeSet<String>) -> Result<(), StorageError> {
        let is_there = |chunk: &Digest| names.contains(&chunk_name(chunk));
        if !manifest.chunks.iter().all(is_there) {
            return Ok(());
        }
        for chunk in &manifest.chunks {
            if !self.chunks.contains_key(chunk) {
                let name = chunk_name(chunk);
                let failed = |error| StorageError::io("open", self.disk.locate(&name), &error);
                let bytes = self.disk.open(&name).and_then(|file| file.length()).map_err(failed)?;
                self.chunks.insert(*chunk, bytes);
            }
        }
        self.complete.insert(manifest.header.height, (manifest.digest(), manifest));
        Ok(())
    }

    /// Begins a snapshot; the most chunks that it may have. Some that are there are to be read
    /// again, in turn: what is shared from snapshot to snapshot would else decay unseen.
    pub(super) fn begin(&mut self) -> usize {
        self.taken.clear();
        let after = self.chunks.range((Excluded(self.turn), Unbounded));
        let before = self.chunks.range(..=self.turn);
        let in_turn = after.chain(before).map(|(chunk, _)| *chunk);
        let due: Vec<Digest> = in_turn.take(READ_AGAIN).collect();
        self.turn = due.last().copied().unwrap_or(Digest::ZERO);
        self.due = due.into_iter().collect();
        self.chunks_max
    }

    /// Keeps a chunk of the snapshot that is being taken, unless it is there already.
    pub(super) fn keep(&mut self, chunk: Digest, bytes: &[u8]) -> Result<(), StorageError> {
        if !self.has_whole(&chunk) {
            self.write_chunk(&chunk_name(&chunk), bytes)?;
            self.chunks.insert(chunk, bytes.len() as u64);
        }
        self.taken.insert(chunk);
        Ok(())
    }

    fn has_whole(&mut self, chunk: &Digest) -> bool {
        if !self.chunks.contains_key(chunk) || !self.due.remove(chunk) {
            return self.chunks.contains_key(chunk);
        }
        let read = read_chunk(self.disk.as_ref(), &chunk_name(chunk), chunk);
        let Err(reason) = read else { return true };
        tracing::warn!(%chunk, reason, "a damaged chunk of snapshots is written anew");
        self.chunks.remove(chunk);
        false
    }

    fn write_chunk(&mut self, name: &str, bytes: &[u8]) -> Result<(), StorageError> {
        if mutants::active(Mutant::CompleteBeforeChunks) {
            let place = self.disk.locate(name);
            let file = self.disk.create(name, bytes.len() as u64);
            let written = file.and_then(|file| file.write_at(0, &[bytes]));
            return written.map_err(|error| StorageError::io("write", place, &error));
        }
        self.put(name, bytes)
    }

    /// ★ The chunks are there and durable, and then the manifest is written; those before the last
    /// two go.
    pub(super) fn finish(&mut self, manifest: &Manifest) -> Result<(), StorageError> {
        let height = manifest.header.height;
        if !manifest.chunks.iter().all(|chunk| self.chunks.contains_key(chunk)) {
            let reason = "a chunk that it shares turned out damaged meanwhile";
            return Err(StorageError::NoSnapshot { height, reason });
        }
        self.sync()?;
        self.put(&manifest_name(height), &self.manifest_file(manifest))?;
        self.sync()?;
        self.complete.insert(height, (manifest.digest(), manifest.clone()));
        self.taken.clear();
        self.drop_old(KEPT)
    }

    /// Removes what was written of one that will not be complete.
    pub(super) fn abandon(&mut self, height: Height) -> Result<(), StorageError> {
        self.taken.clear();
        let name = manifest_name(height);
        if !self.complete.contains_key(&height) && self.list()?.contains(&name) {
            self.remove(&name)?;
            self.sync()?;
        }
        self.sweep()
    }

    /// A chunk of a complete snapshot. One that is damaged or gone takes with it (★) every snapshot
    /// that names it, and the next one writes it anew: others have the like, and that is not far.
    pub(super) fn chunk(
        &mut self,
        height: Height,
        chunk: &Digest,
    ) -> Result<Option<Bytes>, StorageError> {
        let name = chunk_name(chunk);
        let reason = match read_chunk(self.disk.as_ref(), &name, chunk) {
            Ok(bytes) => return Ok(Some(bytes)),
            Err(reason) => reason,
        };
        let place = self.disk.locate(&name);
        tracing::warn!(chunk = place, reason, "damaged: every snapshot that has it is dropped");
        let only_this = mutants::active(Mutant::KeepDamagedChunk).then_some(height);
        let names_it = |at: &Height, manifest: &Manifest| {
            only_this.map_or_else(|| manifest.chunks.contains(chunk), |this| this == *at)
        };
        let spoiled = self.complete.iter().filter(|(at, (_, manifest))| names_it(at, manifest));
        for height in spoiled.map(|(height, _)| *height).collect::<Vec<_>>() {
            self.complete.remove(&height);
            self.remove(&manifest_name(height))?;
        }
        // No manifest comes back that names a chunk while that is written anew.
        self.sync()?;
        if only_this.is_none() {
            self.chunks.remove(chunk);
            self.taken.remove(chunk);
        }
        self.sweep()?;
        Ok(None)
    }

    /// Deletes all but the last so many. The manifest goes first: half a snapshot is none.
    pub(super) fn drop_old(&mut self, kept: usize) -> Result<(), StorageError> {
        while self.complete.len() > kept {
            let Some((height, (_, manifest))) = self.complete.pop_first() else { break };
            self.remove(&manifest_name(height))?;
            // As in `chunk`: no manifest comes back that names what is written anew.
            self.sync()?;
            if mutants::active(Mutant::RemoveSharedChunks) {
                let chunks: BTreeSet<&Digest> = manifest.chunks.iter().collect();
                chunks.into_iter().try_for_each(|chunk| self.remove(&chunk_name(chunk)))?;
            }
            self.sweep()?;
        }
        Ok(())
    }

    /// Removes chunks that no complete snapshot names (★), nor the one that is being taken.
    fn sweep(&mut self) -> Result<(), StorageError> {
        let named = self.complete.values().flat_map(|(_, manifest)| &manifest.chunks);
        let needed: BTreeSet<String> = named.chain(&self.taken).map(chunk_name).collect();
        for name in self.list()? {
            if name.starts_with(CHUNK) && !needed.contains(&name) {
                self.remove(&name)?;
            }
        }
        self.chunks.retain(|chunk, _| needed.contains(&chunk_name(chunk)));
        Ok(())
    }

    /// Removes what belongs to no complete snapshot, and what is staged and not whole.
    fn tidy(&mut self) -> Result<(), StorageError> {
        self.drop_old(KEPT)?;
        self.sweep()?;
        for name in self.list()? {
            let height = height_of(&name);
            let is_complete = height.is_some_and(|height| self.complete.contains_key(&height));
            let is_useless = match name.strip_prefix(STAGED) {
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

    /// Bytes of a complete snapshot's chunks.
    pub(super) fn bytes_of(&self, manifest: &Manifest) -> u64 {
        manifest.chunks.iter().filter_map(|chunk| self.chunks.get(chunk)).sum()
    }

    fn list(&self) -> Result<Vec<String>, StorageError> {
        let failed = |e: io::Error| StorageError::io("list", self.disk.locate("snapshot-*"), &e);
        self.disk.list().map_err(failed)
    }

    pub(super) fn put(&mut self, name: &str, bytes: &[u8]) -> Result<(), StorageError> {
        let place = self.disk.locate(name);
        self.disk.write(name, bytes).map_err(|error| StorageError::io("write", place, &error))
    }

    fn sync(&mut self) -> Result<(), StorageError> {
        let place = self.disk.locate("snapshot-*");
        self.disk
            .sync_directory()
            .map_err(|error| StorageError::io("sync the directory of", place, &error))
    }

    pub(super) fn content(&self, name: &str) -> Result<Bytes, StorageError> {
        read_whole(self.disk.as_ref(), name)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), StorageError> {
        let place = self.disk.locate(from);
        self.disk.rename(from, to).map_err(|error| StorageError::io("rename", place, &error))
    }

    pub(super) fn remove(&mut self, name: &str) -> Result<(), StorageError> {
        let place = self.disk.locate(name);
        self.disk.remove(name).map_err(|error| StorageError::io("remove", place, &error))
    }
}
