//! State that an archive's entries add up to, in files of some megabytes and a manifest: the newest
//! complete one.
//!
//! A checkpoint counts once its manifest is durable, and that is written last; only then does the
//! one before go, and may the archive give entries up. Parts without a manifest are remains of a
//! crash, and removed.

use crate::disk::Disk;
use crate::{Owner, StorageError};
use quorate_crypto::{Digest, hash_parts};
use std::io;

const MANIFEST: &str = "checkpoint-";
const UNNAMED: &str = "unnamed";
const PART: &str = "part-";
const PART_BYTES: usize = 8 * 1024 * 1024;
const HASH_BYTES: usize = 32;

/// Format of a manifest's file, written at its start with the owner. The first had neither.
const FORMAT: u32 = 2;

/// One directory of checkpoints.
pub struct Checkpoints {
    disk: Box<dyn Disk>,
    owner: Owner,
    latest: Option<Manifest>,
}

/// Header of a complete checkpoint: the entries that it covers, and its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Manifest {
    sequence: u64,
    parts: u32,
}

impl Checkpoints {
    /// Finds the newest complete checkpoint, and removes everything else.
    ///
    /// # Errors
    /// When it is not `owner`'s, the disk fails, or a manifest is damaged.
    pub fn open(disk: Box<dyn Disk>, owner: &Owner) -> Result<Self, StorageError> {
        let names = disk.list().map_err(|error| failed(&*disk, "list", MANIFEST, &error))?;
        let newest = names.iter().rfind(|name| name.starts_with(MANIFEST));
        let latest = newest.map(|name| Manifest::read(&*disk, name, owner)).transpose()?;
        let mut checkpoints = Self { disk, owner: owner.clone(), latest };
        checkpoints.remove_others()?;
        Ok(checkpoints)
    }

    /// Number of entries that the newest one covers; 0 without one.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.latest.map_or(0, |manifest| manifest.sequence)
    }

    /// About how many bytes the newest one has, rounded up to whole parts.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.latest.map_or(0, |manifest| u64::from(manifest.parts) * PART_BYTES as u64)
    }

    /// Hands the newest one's bytes to `visit`, a part at a time, as they were written: no item is
    /// cut.
    ///
    /// # Errors
    /// When the disk fails, or a part is damaged.
    pub fn read(
        &self,
        mut visit: impl FnMut(&[u8]) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let Some(manifest) = self.latest else { return Ok(()) };
        for number in 0..manifest.parts {
            let name = part_name(manifest.sequence, number);
            let bytes = read_file(&*self.disk, &name)?;
            let sound = bytes.split_at_checked(HASH_BYTES).filter(|(hash, content)| {
                part_hash(manifest.sequence, number, content).0 == **hash
            });
            let (_, content) = sound.ok_or_else(|| damaged(&*self.disk, &name))?;
            visit(content)?;
        }
        Ok(())
    }

    /// Writes a checkpoint that covers the first `sequence` entries, and removes the one before.
    /// `fill` pushes the items.
    ///
    /// # Errors
    /// When the disk fails; the one before then stays.
    pub fn write(
        &mut self,
        sequence: u64,
        fill: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let disk = &mut *self.disk;
        let mut writer = CheckpointWriter { disk, sequence, parts: 0, buffer: Vec::new() };
        fill(&mut writer)?;
        writer.flush()?;
        let manifest = Manifest { sequence, parts: writer.parts };
        self.sync()?;
        let name = manifest.name();
        // Under its name only when it is whole: a crash leaves no half of one.
        let written =
            self.disk.write(UNNAMED, &[self.owner.record(FORMAT), manifest.encode()].concat());
        let named = written.and_then(|()| self.disk.rename(UNNAMED, &name));
        named.map_err(|error| failed(&*self.disk, "write", &name, &error))?;
        self.sync()?;
        self.latest = Some(manifest);
        self.remove_others()
    }

    fn sync(&mut self) -> Result<(), StorageError> {
        let synced = self.disk.sync_directory();
        synced.map_err(|error| failed(&*self.disk, "sync the directory of", MANIFEST, &error))
    }

    fn remove_others(&mut self) -> Result<(), StorageError> {
        let names = self.disk.list();
        let names = names.map_err(|error| failed(&*self.disk, "list", MANIFEST, &error))?;
        for name in names {
            let is_ours = name.starts_with(MANIFEST) || name.starts_with(PART) || name == UNNAMED;
            if is_ours && !self.latest.is_some_and(|manifest| manifest.has(&name)) {
                let removed = self.disk.remove(&name);
                removed.map_err(|error| failed(&*self.disk, "remove", &name, &error))?;
            }
        }
        Ok(())
    }
}

/// Takes a checkpoint's items.
pub struct CheckpointWriter<'a> {
    disk: &'a mut dyn Disk,
    sequence: u64,
    parts: u32,
    buffer: Vec<u8>,
}

impl CheckpointWriter<'_> {
    /// The next item, of kilobytes at most.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn push(&mut self, item: &[u8]) -> Result<(), StorageError> {
        if self.buffer.len() + item.len() > PART_BYTES {
            self.flush()?;
        }
        self.buffer.extend_from_slice(item);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StorageError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let content = std::mem::replace(&mut self.buffer, Vec::with_capacity(PART_BYTES));
        let hash = part_hash(self.sequence, self.parts, &content);
        let name = part_name(self.sequence, self.parts);
        let written = self.disk.write(&name, &[&hash.0[..], &content].concat());
        written.map_err(|error| failed(self.disk, "write", &name, &error))?;
        self.parts += 1;
        Ok(())
    }
}

impl Manifest {
    fn name(&self) -> String {
        format!("{MANIFEST}{:020}", self.sequence)
    }

    fn has(&self, name: &str) -> bool {
        name == self.name() || name.starts_with(&format!("{PART}{:020}-", self.sequence))
    }

    fn encode(&self) -> Vec<u8> {
        let content = [&self.sequence.to_le_bytes()[..], &self.parts.to_le_bytes()].concat();
        [&hash_parts("quorate v1 checkpoint manifest", &[&content]).0[..], &content].concat()
    }

    fn read(disk: &dyn Disk, name: &str, owner: &Owner) -> Result<Self, StorageError> {
        let file = read_file(disk, name)?;
        let bytes = owner.strip(&disk.locate(name), FORMAT, &file)?;
        let parse = || {
            let content = bytes.get(HASH_BYTES..)?;
            let (sequence, rest) = content.split_first_chunk()?;
            let (parts, _) = rest.split_first_chunk()?;
            let sequence = u64::from_le_bytes(*sequence);
            Some(Self { sequence, parts: u32::from_le_bytes(*parts) })
        };
        let sound =
            parse().filter(|manifest| manifest.encode() == bytes && manifest.name() == name);
        sound.ok_or_else(|| damaged(disk, name))
    }
}

fn part_name(sequence: u64, number: u32) -> String {
    format!("{PART}{sequence:020}-{number:06}")
}

fn part_hash(sequence: u64, number: u32, content: &[u8]) -> Digest {
    let place = [&sequence.to_le_bytes()[..], &number.to_le_bytes()].concat();
    hash_parts("quorate v1 checkpoint part", &[&place, content])
}

fn read_file(disk: &dyn Disk, name: &str) -> Result<Vec<u8>, StorageError> {
    let read = || -> io::Result<Vec<u8>> {
        let file = disk.open(name)?;
        let length = usize::try_from(file.length()?).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        file.read_at(0, &mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|error| failed(disk, "read", name, &error))
}

fn damaged(disk: &dyn Disk, name: &str) -> StorageError {
    let reason = "the checkpoint is not what was written".to_owned();
    StorageError::Corrupt { file: disk.locate(name), offset: 0, reason }
}

fn failed(disk: &dyn Disk, action: &'static str, name: &str, error: &io::Error) -> StorageError {
    StorageError::io(action, disk.locate(name), error)
}

impl std::fmt::Debug for Checkpoints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Checkpoints(up to {})", self.sequence())
    }
}

#[cfg(test)]
mod tests;
