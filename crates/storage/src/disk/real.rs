//! A directory of the operating system.

use super::{Disk, DiskFile, open_when_possible};
use crate::StorageError;
use rustix::io::{Errno, pwritev};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, IoSlice, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// The name of the file that is locked for as long as the directory is in use.
const LOCK: &str = "lock";

/// Zeroes are written in pieces of this size.
const ZERO_BYTES: usize = 1024 * 1024;

/// Number of pieces synced together: a sync of the log beside them waits for no more than that.
const ZERO_PIECES: usize = 4;

/// Most parts in one call, as Linux has it.
const PARTS_MAX: usize = 1_024;

/// A directory of its own on a real disk, locked against other processes.
///
/// New files are filled with zeroes before they are used. On ext4 a sync of a block that was
/// written before has only the data to flush; one of a fresh block commits the file system's own
/// journal too. Medians of `cargo run --release -p quorate-storage --example log_latency` on a
/// virtual machine with two cores and ext4, itself moderately busy:
///
/// | write and sync | 256 B | 512 KiB |
/// |---|---|---|
/// | blocks written before | 122 µs | 329 µs |
/// | blocks of a sparse file (256 B: every sixteenth write meets a fresh one) | 130 µs | 533 µs |
/// | at the end of a growing file | 202 µs | 722 µs |
/// | a journal's commit (checksums included) | 120 µs | 620 µs |
///
/// With all cores busy each is one turn of the scheduler, 4 ms there, whatever the file.
#[derive(Debug)]
pub struct RealDisk {
    directory: PathBuf,
    handle: File,
    preparing: Option<Preparing>,
    fill: Fill,
    _lock: File,
}

/// Way in which a new file comes to its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    /// Zeroes are written and synced: a later sync of what takes their place is cheap.
    Zeroes,
    /// Its length is set: nothing is written, or synced.
    Hole,
}

#[derive(Debug)]
struct Preparing {
    name: String,
    bytes: u64,
    thread: JoinHandle<io::Result<File>>,
}

impl RealDisk {
    /// Makes the directory if there is none, and locks it.
    ///
    /// # Errors
    /// [`StorageError::InUse`] when another process, or another `RealDisk` of this one, holds it;
    /// [`StorageError::Io`] when it cannot be made or opened.
    pub fn open(directory: &Path) -> Result<Self, StorageError> {
        let failed = |action| {
            let shown = directory.display().to_string();
            move |error: io::Error| StorageError::io(action, shown.clone(), &error)
        };
        fs::create_dir_all(directory).map_err(failed("create"))?;
        sync_parent(directory).map_err(failed("sync the parent of"))?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(directory.join(LOCK))
            .map_err(failed("lock"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StorageError::InUse { directory: directory.display().to_string() });
            }
            Err(TryLockError::Error(error)) => return Err(failed("lock")(error)),
        }
        let handle = File::open(directory).map_err(failed("open"))?;
        Ok(Self {
            directory: directory.to_path_buf(),
            handle,
            preparing: None,
            fill: Fill::Zeroes,
            _lock: lock,
        })
    }

    /// The same directory for a log that never syncs ([`crate::Durability::Os`]), or seldom: new
    /// files get their length and no content, since zeroes ahead of the data would only double what
    /// is written. Whoever needs the length durable syncs the file.
    #[must_use]
    pub fn without_zeroing(mut self) -> Self {
        self.fill = Fill::Hole;
        self
    }

    /// The prepared file, if it is the one asked for. Anything else that was being prepared is left
    /// to be overwritten.
    fn take_prepared(&mut self, name: &str, bytes: u64) -> Option<File> {
        let Preparing { name: ready, bytes: size, thread } = self.preparing.take()?;
        let file = thread.join().ok()?.ok()?;
        (ready == name && size == bytes).then_some(file)
    }
}

impl Drop for RealDisk {
    /// The lock must not be released while a thread still writes into the directory.
    fn drop(&mut self) {
        if let Some(preparing) = self.preparing.take() {
            let _ = preparing.thread.join();
        }
    }
}

impl Disk for RealDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in open_when_possible(|| fs::read_dir(&self.directory))? {
            if let Ok(name) = entry?.file_name().into_string()
                && name != LOCK
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn create(&mut self, name: &str, bytes: u64) -> io::Result<Arc<dyn DiskFile>> {
        let file = match self.take_prepared(name, bytes) {
            Some(file) => file,
            None => new_file(&self.directory.join(name), bytes, self.fill)?,
        };
        Ok(Arc::new(file))
    }

    fn prepare(&mut self, name: &str, bytes: u64) {
        if self.preparing.is_some() || self.fill == Fill::Hole {
            return;
        }
        let path = self.directory.join(name);
        let thread = thread::Builder::new()
            .name("log zeroing".into())
            .spawn(move || new_file(&path, bytes, Fill::Zeroes));
        // Without a thread the file is simply made when it is needed.
        self.preparing =
            thread.ok().map(|thread| Preparing { name: name.to_owned(), bytes, thread });
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let path = self.directory.join(name);
        let open = || OpenOptions::new().read(true).write(true).open(&path);
        Ok(Arc::new(open_when_possible(open)?))
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.directory.join(name);
        let mut file = open_when_possible(|| File::create(&path))?;
        file.write_all(bytes)?;
        file.sync_all().map_err(final_error)
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.directory.join(from), self.directory.join(to))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        fs::remove_file(self.directory.join(name))
    }

    fn sync_directory(&mut self) -> io::Result<()> {
        self.handle.sync_all().map_err(final_error)
    }

    fn locate(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }
}

impl DiskFile for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }

    /// In one call for so many parts: one for each would write the pages that two of them share
    /// twice.
    fn write_at(&self, mut offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let mut rest = &mut slices[..];
        // Empty ones are skipped, so that nothing written means that nothing can be.
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            match pwritev(self, &rest[..rest.len().min(PARTS_MAX)], offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    offset += written as u64;
                    IoSlice::advance_slices(&mut rest, written);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self).map_err(final_error)
    }
}

/// A new file that reads as zeroes; with [`Fill::Zeroes`] durable but for its name, and with room
/// for all that will take their place. Where there is none, nothing of it stays.
fn new_file(path: &Path, bytes: u64, fill: Fill) -> io::Result<File> {
    let file = open_when_possible(|| {
        OpenOptions::new().create(true).truncate(true).read(true).write(true).open(path)
    })?;
    let filled = match fill {
        Fill::Hole => file.set_len(bytes),
        Fill::Zeroes => fill_with_zeroes(&file, bytes),
    };
    filled.inspect_err(|_| drop(fs::remove_file(path)))?;
    Ok(file)
}

/// Writes a file of zeroes in the place of any other, durable but for its name.
pub(crate) fn write_zeroes(path: &Path, bytes: u64) -> io::Result<()> {
    new_file(path, bytes, Fill::Zeroes).map(drop)
}

fn fill_with_zeroes(file: &File, bytes: u64) -> io::Result<()> {
    let zeroes = vec![0; ZERO_BYTES];
    let mut offset = 0;
    for piece in 1.. {
        let left = usize::try_from(bytes - offset).unwrap_or(usize::MAX);
        if left == 0 {
            break;
        }
        let length = left.min(ZERO_BYTES);
        file.write_all_at(&zeroes[..length], offset)?;
        offset += length as u64;
        if piece % ZERO_PIECES == 0 {
            file.sync_data().map_err(final_error)?;
        }
    }
    file.sync_all().map_err(final_error)
}

/// ★ A sync that failed is final whatever it failed of: what it names is not looked at again, so
/// that nobody takes it for a write that found no room and may be repeated.
fn final_error(error: io::Error) -> io::Error {
    io::Error::other(error)
}

/// A directory just made is itself a name in its parent.
fn sync_parent(directory: &Path) -> io::Result<()> {
    let parent = directory.canonicalize()?.parent().map(Path::to_path_buf);
    parent.map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}
