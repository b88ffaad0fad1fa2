//! Files of secrets: private, durable, never overwritten by accident.

use super::{KeyFileError, failed, malformed};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Longest key file read, in bytes.
pub(super) const FILE_BYTES_MAX: u64 = 4096;

/// Writes a new file and makes it durable.
pub(super) fn create(path: &Path, text: &str) -> Result<(), KeyFileError> {
    let mut file = create_private(path).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => KeyFileError::Exists { path: path.to_owned() },
        _ => failed("creating", path, source),
    })?;
    file.write_all(text.as_bytes()).map_err(|e| failed("writing", path, e))?;
    file.sync_all().map_err(|e| failed("syncing", path, e))?;
    sync_directory(path).map_err(|e| failed("syncing the directory of", path, e))
}

/// Replaces a file by way of another beside it, so that a crash leaves the one or the other whole.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), KeyFileError> {
    let fresh = beside(path);
    create(&fresh, text)?;
    std::fs::rename(&fresh, path).map_err(|e| failed("replacing", path, e))?;
    sync_directory(path).map_err(|e| failed("syncing the directory of", path, e))
}

/// Reads a file that only its owner may read.
pub(super) fn read(path: &Path) -> Result<Zeroizing<String>, KeyFileError> {
    let file = File::open(path).map_err(|e| failed("opening", path, e))?;
    refuse_shared(&file, path)?;
    // Room for the largest file at once: growing would leave copies of the secrets behind.
    let mut text = Zeroizing::new(String::with_capacity(FILE_BYTES_MAX as usize + 1));
    file.take(FILE_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(|e| failed("reading", path, e))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(malformed(path, format!("it exceeds {FILE_BYTES_MAX} bytes")));
    }
    Ok(text)
}

/// Path that a file's successor is written to: the same name with `.new` behind it.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

#[cfg(unix)]
pub(super) fn create_private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
pub(super) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

fn refuse_shared(file: &File, path: &Path) -> Result<(), KeyFileError> {
    match shared_mode(file, 0o077).map_err(|e| failed("inspecting", path, e))? {
        Some(_) if is_handed_over(file).map_err(|e| failed("inspecting", path, e))? => Ok(()),
        Some(mode) => Err(KeyFileError::Permissions { path: path.to_owned(), mode }),
        None => Ok(()),
    }
}

/// Tells whether root keeps a file for a group that may read it, and nobody may write: so a cluster
/// mounts a secret for a user that is not root.
#[cfg(unix)]
fn is_handed_over(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let found = file.metadata()?;
    Ok(found.uid() == 0 && found.mode() & 0o7777 == 0o440)
}

#[cfg(not(unix))]
fn is_handed_over(_: &File) -> io::Result<bool> {
    Ok(false)
}

/// A file's permission bits, if any of the `forbidden` ones is set; `None` where the system has
/// none. Asks the open file, not its name: a name can be made to mean another file in between.
///
/// # Errors
/// When the system does not say.
pub fn shared_mode(file: &File, forbidden: u32) -> io::Result<Option<u32>> {
    #[cfg(unix)]
    let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata()?.permissions()) & 0o7777;
    #[cfg(not(unix))]
    let (_, mode) = (file, 0);
    Ok((mode & forbidden != 0).then_some(mode))
}

pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(directory)?.sync_all()
}
