//! Figures that the system keeps of this process and of files.

use rustix::fs::{Advice, fadvise};
use rustix::time::{ClockId, clock_gettime};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Processor seconds of all threads, in user and in system mode.
pub(crate) fn processor_seconds() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

/// Processor seconds of the calling thread, in user and in system mode.
pub(crate) fn thread_seconds() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Bytes that this process had written to devices: pages of files count when they become dirty,
/// direct writes at once.
pub(crate) fn written_bytes() -> u64 {
    field("/proc/self/io", "write_bytes:")
}

/// Most memory that was resident, in bytes. Pages of files that the system caches are not in it.
pub(crate) fn peak_memory() -> u64 {
    field("/proc/self/status", "VmHWM:") << 10
}

fn field(file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(file).expect("a file of proc");
    let rest = text.lines().find_map(|line| line.strip_prefix(name)).expect("a known field");
    rest.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}

/// Bytes that the files of a folder take on the disk.
pub(crate) fn disk_bytes(folder: &Path) -> u64 {
    let mut bytes = 0;
    for_each_file(folder, &mut |path| {
        bytes += fs::metadata(path).map_or(0, |data| data.blocks() * 512);
    });
    bytes
}

/// Has the system forget the content of a folder's files, once it is on the disk.
pub(crate) fn forget_pages(folder: &Path) {
    for_each_file(folder, &mut |path| {
        let file = File::open(path).expect("opens");
        file.sync_all().expect("syncs");
        fadvise(&file, 0, None, Advice::DontNeed).expect("takes advice");
    });
}

fn for_each_file(folder: &Path, visit: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() { for_each_file(&path, visit) } else { visit(&path) }
    }
}

/// The element below which `part` of all are, in a slice that is sorted by this; 0 of an empty one.
pub(crate) fn quantile(samples: &mut [f64], part: f64) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    let last = samples.len().saturating_sub(1);
    samples.get((last as f64 * part).round() as usize).copied().unwrap_or(0.0)
}
