//! Whole files of runs, and what is said of those that are gone or changed.

use crate::StorageError;
use crate::disk::Disk;
use std::io;

/// All of a file.
pub(super) fn read_file(disk: &dyn Disk, name: &str) -> Result<Vec<u8>, StorageError> {
    let read = || -> io::Result<Vec<u8>> {
        let file = disk.open(name)?;
        let length = usize::try_from(file.length()?).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        file.read_at(0, &mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|error| missing(disk.locate(name), &error))
}

/// ★ A file that is gone is damage, not an empty one.
pub(super) fn missing(place: String, error: &io::Error) -> StorageError {
    match error.kind() {
        io::ErrorKind::NotFound => damaged(place, 0, "it is missing"),
        _ => StorageError::io("read", place, error),
    }
}

/// Damage in a file.
pub(super) fn damaged(file: String, offset: u64, reason: &str) -> StorageError {
    StorageError::Corrupt { file, offset, reason: reason.to_owned() }
}
