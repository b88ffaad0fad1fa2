//! Bytes that a disk was given to write, where the system tells.
//!
//! Of the whole device that holds a folder, whoever wrote them: the counters of a process
//! (`/proc/PID/io`) say how large the pieces of the cache are in which it changed something, and
//! those are up to megabytes where a file was written in large pieces before. A log that is zeroed
//! in advance showed fourteen times what its device was given (Linux 6.18, ext4).

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of a sector, as Linux counts them whatever the device has.
const SECTOR_BYTES: u64 = 512;

/// What a device had been given at one moment.
#[derive(Debug, Default)]
pub(crate) struct Written {
    counters: PathBuf,
    bytes: Option<u64>,
}

impl Written {
    /// By the device of this folder, until now.
    pub(crate) fn beneath(folder: &Path) -> Self {
        let device = fs::metadata(folder).map_or(0, |found| found.dev());
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let counters = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
        let bytes = written(&counters);
        Self { counters, bytes }
    }

    /// Bytes since then; `None` where nothing is told, as of a file system without a device.
    pub(crate) fn since(&self) -> Option<f64> {
        let bytes = written(&self.counters)?.checked_sub(self.bytes?)?;
        Some(bytes as f64)
    }
}

fn written(counters: &Path) -> Option<u64> {
    sectors(&fs::read_to_string(counters).ok()?).map(|sectors| sectors * SECTOR_BYTES)
}

/// The seventh of the numbers that Linux has of a block device.
fn sectors(counters: &str) -> Option<u64> {
    counters.split_whitespace().nth(6)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Written, sectors};
    use std::path::Path;

    #[test]
    fn sectors_are_the_seventh_number() {
        let text = "10802475 94856 155293338 8269129 14208575 984826 475652000 28357144 0 796296\n";
        assert_eq!(sectors(text), Some(475_652_000));
        assert_eq!((sectors(""), sectors("1 2 3 4 5 6 x")), (None, None));
    }

    #[test]
    fn nothing_is_known_of_what_has_no_device() {
        assert_eq!(Written::beneath(Path::new("/proc")).since(), None);
        assert_eq!(Written::default().since(), None);
    }
}
