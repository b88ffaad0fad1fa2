//! Small files that are replaced as a whole.

use quorate_storage::open_when_possible;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

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

/// Makes the names in a file's folder durable.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    open_when_possible(|| File::open(folder))?.sync_all()
}
