//! Small files that are replaced as a whole.

use quorate_storage::open_when_possible;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Replaces a file, or makes it, durably and at once or not at all: by way of one beside it, with
/// `.new` behind its name, which an interrupted attempt leaves and the next one overwrites.
///
/// # Errors
/// When the system refuses; the file is then as it was.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    let fresh = Path::new(&fresh);
    let mut file = open_when_possible(|| File::create(fresh))?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(fresh, path)?;
    sync_folder_of(path)
}

/// Makes a file, durably and at once or not at all, unless there is one. Processes that share the
/// folder may make it at the same time: the first one's stays.
///
/// # Errors
/// When the system refuses.
pub fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    static ATTEMPTS: AtomicU64 = AtomicU64::new(0);
    let attempt = ATTEMPTS.fetch_add(1, Ordering::Relaxed);
    let mut own = path.as_os_str().to_owned();
    own.push(format!(".{}-{attempt}.new", std::process::id()));
    let own = Path::new(&own);
    let mut file = open_when_possible(|| File::create(own))?;
    file.write_all(content)?;
    file.sync_all()?;
    let named = std::fs::hard_link(own, path);
    std::fs::remove_file(own)?;
    match named {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => sync_folder_of(path),
    }
}

/// Makes the names in a file's folder durable.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    open_when_possible(|| File::open(folder))?.sync_all()
}
