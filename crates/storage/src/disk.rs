//! The file system as the log sees it: one flat directory of files of a fixed size.
//!
//! The trait is what the log needs and no more, so that a real directory, one in memory and a
//! faulty one can stand under the same log.

mod descriptor;
mod faulty;
mod memory;
mod real;
mod roomy;

pub use descriptor::open_when_possible;
pub use faulty::{Fault, Faults, FaultyDisk};
pub use memory::{MemoryDisk, UnsyncedWrite};
pub use real::RealDisk;
pub(crate) use real::write_zeroes;
pub use roomy::RoomyDisk;

use std::io;
use std::sync::Arc;

/// Directory of files that are written at their places and synced.
pub trait Disk: Send {
    /// The names of its files, sorted.
    ///
    /// # Errors
    /// When the directory cannot be read.
    fn list(&self) -> io::Result<Vec<String>>;

    /// A file of `bytes` zero bytes under `name`, in the place of any other. Its content and length
    /// are durable; its name is after the next [`Disk::sync_directory`].
    ///
    /// # Errors
    /// When it cannot be made.
    fn create(&mut self, name: &str, bytes: u64) -> io::Result<Arc<dyn DiskFile>>;

    /// A hint that [`Disk::create`] will be called with these arguments: whoever can makes the file
    /// ready in the background.
    fn prepare(&mut self, _name: &str, _bytes: u64) {}

    /// The file under `name`.
    ///
    /// # Errors
    /// When there is none or it cannot be opened.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// A file of exactly these bytes under `name`, in the place of any other. Its content and
    /// length are durable; its name is after the next [`Disk::sync_directory`].
    ///
    /// # Errors
    /// When it cannot be made or written.
    fn write(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let file = self.create(name, bytes.len() as u64)?;
        file.write_at(0, &[bytes])?;
        file.sync_data()
    }

    /// Gives a file another name, in the place of any that has it: after a crash the name is either
    /// file's. Durable after the next [`Disk::sync_directory`].
    ///
    /// # Errors
    /// When there is no such file or the name cannot be changed.
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file. Durable after the next [`Disk::sync_directory`].
    ///
    /// # Errors
    /// When there is none or it cannot be removed.
    fn remove(&mut self, name: &str) -> io::Result<()>;

    /// Makes every name made or removed before it durable.
    ///
    /// # Errors
    /// When the names may be lost.
    fn sync_directory(&mut self) -> io::Result<()>;

    /// `name` as an operator would look for it.
    fn locate(&self, name: &str) -> String;
}

/// One file. Shared between the writer and the threads that read back.
pub trait DiskFile: Send + Sync {
    /// Its length, fixed when it was made.
    ///
    /// # Errors
    /// When it cannot be asked for.
    fn length(&self) -> io::Result<u64>;

    /// Fills `buffer` from `offset`.
    ///
    /// # Errors
    /// When the file ends before the buffer is full, or cannot be read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Writes `parts` one after the other from `offset`. In the file afterwards, durable only after
    /// [`DiskFile::sync_data`].
    ///
    /// # Errors
    /// When something of it may not have been written.
    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()>;

    /// Makes everything written before it durable.
    ///
    /// # Errors
    /// When anything may be lost, for good: a second call would only say what happened since.
    fn sync_data(&self) -> io::Result<()>;
}

#[cfg(test)]
mod tests;
