//! A directory in memory that can lose what was not synced.

use super::{Disk, DiskFile};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Disks write sectors whole; between two of them a write can be torn anywhere.
const SECTOR: u64 = 512;

/// A deterministic disk. Cloning gives another handle to the same contents, so a test keeps one and
/// pulls the plug on the other.
///
/// A write is in the file at once and durable after a sync of the file; a name is durable after a
/// sync of the directory. Nothing is allocated for bytes that nobody wrote.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk {
    directory: Arc<Mutex<Directory>>,
}

#[derive(Debug, Default)]
struct Directory {
    files: BTreeMap<String, Arc<MemoryFile>>,
    durable: BTreeMap<String, Arc<MemoryFile>>,
}

#[derive(Debug)]
struct MemoryFile {
    length: u64,
    content: Mutex<Content>,
}

/// The bytes as they are read now, and how to take the unsynced writes back.
#[derive(Clone, Debug, Default)]
struct Content {
    bytes: Vec<u8>,
    unsynced: Vec<Write>,
}

#[derive(Clone, Debug)]
struct Write {
    offset: usize,
    before: Vec<u8>,
    after: Vec<u8>,
}

/// A write that a crash may take back, whole or in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsyncedWrite {
    /// Name of the file written to.
    pub file: String,
    /// Offset in the file at which it begins.
    pub offset: u64,
    /// Number of bytes that it has.
    pub bytes: usize,
}

impl MemoryDisk {
    /// A disk without files.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The power fails: `lose` is asked once for every unsynced sector of 512 bytes, file by file
    /// in the order of their names and write by write in the order in which they were made. Every
    /// unsynced name is lost, every unsynced removal undone. What survived is durable.
    ///
    /// Files that are still open afterwards belong to the time before: drop them first.
    pub fn crash(&self, lose: &mut dyn FnMut() -> bool) {
        self.crash_with(&mut |write| {
            let mut survives = Vec::new();
            for sector in sectors(write.offset, write.bytes) {
                if !lose() {
                    survives.push(sector);
                }
            }
            survives
        });
    }

    /// The power fails, and `survives` says of every unsynced write which parts of it, counted from
    /// its first byte, reached the disk. Names as in [`MemoryDisk::crash`].
    pub fn crash_with(&self, survives: &mut dyn FnMut(&UnsyncedWrite) -> Vec<Range<usize>>) {
        let mut directory = self.directory.lock();
        directory.files = directory.durable.clone();
        for (name, file) in &directory.files {
            file.content.lock().crash(name, survives);
        }
    }

    /// Returns `true` if anything written or removed is not yet durable.
    #[cfg(test)]
    pub(crate) fn has_unsynced(&self) -> bool {
        let directory = self.directory.lock();
        let same_names = directory.files.len() == directory.durable.len()
            && directory
                .files
                .iter()
                .zip(&directory.durable)
                .all(|(a, b)| a.0 == b.0 && Arc::ptr_eq(a.1, b.1));
        !same_names || directory.files.values().any(|file| !file.content.lock().unsynced.is_empty())
    }

    /// Another disk with what can be read of this one now, all of it durable.
    #[must_use]
    pub fn copy(&self) -> Self {
        let files: BTreeMap<_, _> = self
            .directory
            .lock()
            .files
            .iter()
            .map(|(name, file)| {
                let bytes = file.content.lock().bytes.clone();
                let content = Mutex::new(Content { bytes, unsynced: Vec::new() });
                (name.clone(), Arc::new(MemoryFile { length: file.length, content }))
            })
            .collect();
        let directory = Directory { durable: files.clone(), files };
        Self { directory: Arc::new(Mutex::new(directory)) }
    }

    /// Another disk in the same state, what is unsynced included: one moment can be crashed in many
    /// ways.
    #[must_use]
    pub fn fork(&self) -> Self {
        let directory = self.directory.lock();
        let mut forks: Vec<(*const MemoryFile, Arc<MemoryFile>)> = Vec::new();
        // A file under both its names, the present and the durable one, stays one file.
        let mut fork = |file: &Arc<MemoryFile>| {
            let known = forks.iter().find(|(from, _)| *from == Arc::as_ptr(file));
            if let Some((_, fork)) = known {
                return Arc::clone(fork);
            }
            let content = Mutex::new(file.content.lock().clone());
            let fork = Arc::new(MemoryFile { length: file.length, content });
            forks.push((Arc::as_ptr(file), Arc::clone(&fork)));
            fork
        };
        let mut fork_all = |names: &BTreeMap<String, Arc<MemoryFile>>| {
            names.iter().map(|(name, file)| (name.clone(), fork(file))).collect()
        };
        let (files, durable) = (fork_all(&directory.files), fork_all(&directory.durable));
        Self { directory: Arc::new(Mutex::new(Directory { files, durable })) }
    }

    /// Writes that a crash may take back now, file by file in the order of their names and write by
    /// write in the order in which they were made, be the names themselves durable or not.
    #[must_use]
    pub fn unsynced(&self) -> Vec<UnsyncedWrite> {
        let directory = self.directory.lock();
        let mut all = Vec::new();
        for (name, file) in &directory.files {
            let content = file.content.lock();
            all.extend(content.unsynced.iter().map(|write| write.shown(name)));
        }
        all
    }

    /// Changes one bit of what is stored, as a decaying disk does. Past the end nothing happens.
    pub fn flip(&self, name: &str, offset: u64, bit: u8) {
        if let Some(file) = self.directory.lock().files.get(name)
            && offset < file.length
        {
            let mut content = file.content.lock();
            let at = index(offset);
            content.reach(at + 1);
            content.bytes[at] ^= 1 << (bit % 8);
        }
    }
}

impl Content {
    fn reach(&mut self, end: usize) {
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
    }

    fn write(&mut self, offset: usize, after: &[u8]) {
        let end = offset + after.len();
        self.reach(end);
        let before = self.bytes[offset..end].to_vec();
        self.bytes[offset..end].copy_from_slice(after);
        self.unsynced.push(Write { offset, before, after: after.to_vec() });
    }

    fn crash(&mut self, name: &str, survives: &mut dyn FnMut(&UnsyncedWrite) -> Vec<Range<usize>>) {
        let writes = std::mem::take(&mut self.unsynced);
        for write in writes.iter().rev() {
            let end = write.offset + write.before.len();
            self.bytes[write.offset..end].copy_from_slice(&write.before);
        }
        for write in &writes {
            for part in survives(&write.shown(name)) {
                let at = write.offset + part.start..write.offset + part.end;
                self.bytes[at].copy_from_slice(&write.after[part]);
            }
        }
    }
}

impl Write {
    fn shown(&self, file: &str) -> UnsyncedWrite {
        let (offset, bytes) = (self.offset as u64, self.after.len());
        UnsyncedWrite { file: file.to_owned(), offset, bytes }
    }
}

impl Disk for MemoryDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.directory.lock().files.keys().cloned().collect())
    }

    fn create(&mut self, name: &str, bytes: u64) -> io::Result<Arc<dyn DiskFile>> {
        let file = Arc::new(MemoryFile { length: bytes, content: Mutex::default() });
        self.directory.lock().files.insert(name.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.directory.lock().files.get(name).cloned();
        Ok(file.ok_or(io::ErrorKind::NotFound)?)
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let mut directory = self.directory.lock();
        let file = directory.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        directory.files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        let removed = self.directory.lock().files.remove(name);
        removed.map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync_directory(&mut self) -> io::Result<()> {
        let mut directory = self.directory.lock();
        directory.durable = directory.files.clone();
        Ok(())
    }

    fn locate(&self, name: &str) -> String {
        format!("memory:{name}")
    }
}

impl DiskFile for MemoryFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.length)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if offset + buffer.len() as u64 > self.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let content = self.content.lock();
        let start = index(offset).min(content.bytes.len());
        let end = (start + buffer.len()).min(content.bytes.len());
        let written = &content.bytes[start..end];
        buffer[..written.len()].copy_from_slice(written);
        buffer[written.len()..].fill(0);
        Ok(())
    }

    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        assert!(offset + bytes as u64 <= self.length, "files keep the length they were made with");
        let mut content = self.content.lock();
        let mut at = index(offset);
        for part in parts {
            content.write(at, part);
            at += part.len();
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.content.lock().unsynced.clear();
        Ok(())
    }
}

fn index(offset: u64) -> usize {
    usize::try_from(offset).expect("a file in memory is addressable")
}

/// The sectors that a write touches, as ranges of the write.
fn sectors(offset: u64, bytes: usize) -> impl Iterator<Item = Range<usize>> {
    let end = offset + bytes as u64;
    let first = offset / SECTOR;
    let last = end.div_ceil(SECTOR);
    (first..last).map(move |sector| {
        let from = (sector * SECTOR).max(offset) - offset;
        let to = ((sector + 1) * SECTOR).min(end) - offset;
        index(from)..index(to)
    })
}
