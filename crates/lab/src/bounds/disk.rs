//! Speed of a disk, measured in under two seconds.

use quorate_report::results::bounds::DiskSpeed;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes written at a time, as a log under load does.
const PORTION_BYTES: usize = 1024 * 1024;
/// The file is as large as this; it is overwritten from the front, as a recycled log is.
const PORTIONS: usize = 64;
/// A record: what is synced on its own when little is going on.
const RECORD_BYTES: usize = 4096;
/// Time for each of the three parts. Whatever was begun is finished.
const TIMEOUT: Duration = Duration::from_millis(500);
/// Syncs timed at least, however slow.
const SYNCS_MIN: usize = 5;

/// A small file in which one record at a time is written and synced, over the one before.
pub(crate) struct SyncProbe {
    file: File,
    record: Vec<u8>,
}

impl SyncProbe {
    /// A temporary file in `folder`, with a record in it.
    pub(crate) fn new(folder: &Path) -> io::Result<Self> {
        let record = (0..RECORD_BYTES as u32).map(|n| noise(n) as u8).collect();
        let mut probe = Self { file: tempfile::tempfile_in(folder)?, record };
        // The first write takes space, which later ones do not.
        probe.time()?;
        Ok(probe)
    }

    /// Time of writing a record and syncing it.
    pub(crate) fn time(&mut self) -> io::Result<Duration> {
        self.file.seek(SeekFrom::Start(0))?;
        timed_sync(&mut self.file, &self.record)
    }
}

/// Measures the disk that holds `folder`, with a temporary file in it.
///
/// # Errors
/// When the file cannot be made or written.
pub fn measure(folder: &Path) -> io::Result<DiskSpeed> {
    let mut file = tempfile::tempfile_in(folder)?;
    // Not zeroes: a file system may compress those away.
    let portion: Vec<u8> = (0..PORTION_BYTES as u32).map(|n| noise(n) as u8).collect();
    let unsynced_mb_s = bandwidth(&mut file, &portion, false)?;
    file.sync_all()?;
    let synced_mb_s = bandwidth(&mut file, &portion, true)?;
    let mut syncs = sync_times(&mut file, &portion[..RECORD_BYTES])?;
    syncs.sort_unstable();
    let at = |share: f64| {
        let index = ((syncs.len() - 1) as f64 * share).round() as usize;
        syncs[index].as_secs_f64() * 1_000.0
    };
    Ok(DiskSpeed { unsynced_mb_s, synced_mb_s, sync_p50_ms: at(0.5), sync_p99_ms: at(0.99) })
}

/// Time between two syncs that end, of so many files at once in `folder`, each with a record
/// written and synced by a thread of its own.
///
/// # Errors
/// When a file cannot be made or written.
pub(crate) fn sync_at_once(folder: &Path, files: usize) -> io::Result<Duration> {
    let probes = (0..files).map(|_| SyncProbe::new(folder)).collect::<io::Result<Vec<_>>>()?;
    let began = Instant::now();
    let syncs = |mut probe: SyncProbe| {
        let mut syncs = 0;
        while syncs < SYNCS_MIN || began.elapsed() < TIMEOUT {
            probe.time()?;
            syncs += 1;
        }
        io::Result::Ok(syncs)
    };
    let done = std::thread::scope(|scope| {
        let threads: Vec<_> =
            probes.into_iter().map(|probe| scope.spawn(move || syncs(probe))).collect();
        let ends = threads.into_iter().map(|thread| thread.join().expect("it does not panic"));
        ends.sum::<io::Result<usize>>()
    })?;
    Ok(began.elapsed().div_f64(done as f64))
}

/// Bandwidth in megabytes a second.
fn bandwidth(file: &mut File, portion: &[u8], synced: bool) -> io::Result<f64> {
    file.seek(SeekFrom::Start(0))?;
    let began = Instant::now();
    let mut written = 0;
    while written < PORTIONS && (written == 0 || began.elapsed() < TIMEOUT) {
        file.write_all(portion)?;
        if synced {
            file.sync_data()?;
        }
        written += 1;
    }
    let megabytes = (written * portion.len()) as f64 / 1e6;
    Ok(megabytes / began.elapsed().as_secs_f64().max(1e-9))
}

fn sync_times(file: &mut File, record: &[u8]) -> io::Result<Vec<Duration>> {
    file.seek(SeekFrom::Start(0))?;
    let began = Instant::now();
    let mut times = Vec::new();
    while times.len() < SYNCS_MIN || began.elapsed() < TIMEOUT {
        times.push(timed_sync(file, record)?);
    }
    Ok(times)
}

fn timed_sync(file: &mut File, record: &[u8]) -> io::Result<Duration> {
    let before = Instant::now();
    file.write_all(record)?;
    file.sync_data()?;
    Ok(before.elapsed())
}

/// Bytes that do not repeat.
fn noise(n: u32) -> u32 {
    (n.wrapping_mul(0x9e37_79b1) ^ n >> 7).wrapping_mul(0x85eb_ca6b) >> 13
}

#[cfg(test)]
mod tests {
    use super::{measure, sync_at_once};
    use std::io;
    use std::path::Path;

    #[test]
    fn a_disk_has_speeds_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let speed = measure(folder.path()).expect("a disk");
        assert!(speed.unsynced_mb_s > 0.0 && speed.synced_mb_s > 0.0, "{speed:?}");
        assert!(speed.sync_p50_ms > 0.0 && speed.sync_p99_ms >= speed.sync_p50_ms, "{speed:?}");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn syncs_of_several_files_are_counted_together() {
        let folder = tempfile::tempdir().expect("a folder");
        let shared = sync_at_once(folder.path(), 3).expect("a disk");
        assert!(!shared.is_zero(), "{shared:?}");
        assert!(sync_at_once(Path::new("/nowhere/at/all"), 2).is_err());
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let error = measure(Path::new("/nowhere/at/all")).expect_err("no such folder");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
