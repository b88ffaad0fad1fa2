//! Cost of a commit on the disk under a directory.
//!
//! ```text
//! cargo run --release -p quorate-storage --example log_latency -- [directory]
//! ```
//!
//! First the journal: a group of one small record, and of one body, each committed. Then the file
//! system alone, to show what zeroing ahead is for: the same write and sync into blocks that were
//! written before, into blocks that were not, and at the end of a growing file.

use quorate_storage::{Disk, Durability, Entry, Journal, LogConfig, Owner, RealDisk};
use quorate_types::machine::{Record, RecordKind};
use quorate_types::{Body, BodyRef, ReplicaId};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const SMALL_BYTES: usize = 256;
const LARGE_BYTES: usize = 512 * 1024;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let base = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = base.join(format!("quorate-log-latency-{}", std::process::id()));
    println!("{:<44} {:>9} {:>9} {:>9}", "", "median", "p99", "max");
    for durability in [Durability::Fsync, Durability::Os] {
        journal(&directory, durability)?;
    }
    let mut disk = RealDisk::open(&directory.join("segments"))?;
    let bytes = LogConfig::default().segment_bytes;
    measure("a new segment, zeroed", 20, |n| {
        disk.create(&n.to_string(), bytes)?;
        Ok(())
    })?;
    files(&directory)?;
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

fn journal(directory: &Path, durability: Durability) -> Result<(), Box<dyn std::error::Error>> {
    let config = LogConfig { durability, ..LogConfig::default() };
    let disk = RealDisk::open(&directory.join(durability.to_string()))?;
    let bodies = RealDisk::open(&directory.join(format!("{durability}-bodies")))?;
    let (mut journal, _) =
        Journal::open(Box::new(disk), Box::new(bodies), &Owner::nobody(), config, None)?;
    let record = Record { kind: RecordKind::Safety, bytes: vec![7; SMALL_BYTES].into() };
    measure(&format!("journal, record of 256 B, {durability}"), 2_000, |_| {
        journal.write(&Entry::Record(record.clone()))?;
        Ok(journal.commit()?)
    })?;
    let raw = bytes::Bytes::from(vec![7; LARGE_BYTES]);
    measure(&format!("journal, body of 512 KiB, {durability}"), 300, |n| {
        let reference = BodyRef { author: ReplicaId(0), sequence: n, ..body_reference() };
        let body = Body { reference, raw: raw.clone(), requests: Vec::new() };
        journal.write(&Entry::Body(Arc::new(body)))?;
        Ok(journal.commit()?)
    })
}

fn body_reference() -> BodyRef {
    BodyRef { author: ReplicaId(0), sequence: 0, digest: quorate_crypto::Digest::ZERO }
}

fn files(directory: &Path) -> Result<(), Box<dyn std::error::Error>> {
    for (bytes, times) in [(SMALL_BYTES, 1_000_u64), (LARGE_BYTES, 200)] {
        let total = bytes as u64 * times;
        let data = vec![7; bytes];
        let written = fresh(directory, "written")?;
        for n in 0..times {
            written.write_all_at(&vec![0; bytes], n * bytes as u64)?;
        }
        written.sync_all()?;
        let sparse = fresh(directory, "sparse")?;
        sparse.set_len(total)?;
        sparse.sync_all()?;
        let growing = fresh(directory, "growing")?;
        for (name, file) in
            [("zeroed before", written), ("sparse, of full length", sparse), ("growing", growing)]
        {
            measure(&format!("file {name}, {bytes} B and a sync"), times, |n| {
                file.write_all_at(&data, n * bytes as u64)?;
                Ok(file.sync_data()?)
            })?;
        }
    }
    Ok(())
}

fn fresh(directory: &Path, name: &str) -> std::io::Result<File> {
    OpenOptions::new().create(true).truncate(true).write(true).open(directory.join(name))
}

fn measure(
    name: &str,
    times: u64,
    mut run: impl FnMut(u64) -> Result<(), Box<dyn std::error::Error>>,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut took = Vec::new();
    for n in 0..times {
        let start = Instant::now();
        run(n)?;
        took.push(start.elapsed());
    }
    took.sort_unstable();
    let at = |part: usize| microseconds(took[(took.len() * part / 100).min(took.len() - 1)]);
    println!("{name:<44} {:>9} {:>9} {:>9}", at(50), at(99), at(100));
    Ok(())
}

fn microseconds(span: Duration) -> String {
    format!("{} µs", span.as_micros())
}
