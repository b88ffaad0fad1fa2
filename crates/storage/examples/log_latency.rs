//! Cost of a commit on the disk under a directory.
//!
//! ```text
//! cargo run --release -p quorate-storage --example log_latency -- [directory]
//! ```
//!
//! First the journal: a group of one small record, with and without the second copy of promises,
//! and of one body, each committed; and what a guard beside the key adds. Then the file system
//! alone, to show what zeroing ahead is for: the same write and sync into blocks that were written
//! before, into blocks that were not, and at the end of a growing file.

use quorate_storage::{Disk, Durability, Entry, Journal, LogConfig, Owner, RealDisk, Safeguards};
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
        for is_copied in [false, true] {
            journal(&directory, durability, is_copied)?;
        }
    }
    for bytes in [200, 8 * 1024, 128 * 1024] {
        groups(&directory, bytes)?;
    }
    let slots = fresh(&directory, "slots")?;
    measure("a slot of 512 B in place, hashed, no sync", 100_000, |n| {
        let mut slot = [7; 512];
        let hash = quorate_crypto::hash(&slot[32..]);
        slot[..32].copy_from_slice(&hash.0);
        Ok(slots.write_all_at(&slot, n % 2 * 4_096)?)
    })?;
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

fn journal(
    directory: &Path,
    durability: Durability,
    is_copied: bool,
) -> Result<(), Box<dyn std::error::Error>> {
    let config = LogConfig { durability, ..LogConfig::default() };
    let name = if is_copied { "copied" } else { "single" };
    let disk = |part| RealDisk::open(&directory.join(format!("{durability}-{name}-{part}")));
    let (log, bodies) = (Box::new(disk("log")?), Box::new(disk("bodies")?));
    let mut safeguards = Safeguards::default();
    if is_copied {
        safeguards.copy = Some(Box::new(disk("promises")?));
    }
    let owner = Owner::nobody();
    let (mut journal, _, _) = Journal::open_guarded(log, bodies, &owner, config, None, safeguards)?;
    let record = Record { kind: RecordKind::Safety, bytes: vec![7; SMALL_BYTES].into() };
    measure(&format!("journal, record of 256 B, {durability}, {name}"), 2_000, |_| {
        journal.write(&Entry::Record(record.clone()))?;
        Ok(journal.commit()?)
    })?;
    if is_copied {
        return Ok(());
    }
    let raw = bytes::Bytes::from(vec![7; LARGE_BYTES]);
    measure(&format!("journal, body of 512 KiB, {durability}"), 300, |n| {
        let reference = BodyRef { author: ReplicaId(0), sequence: n, ..body_reference() };
        let body = Body { reference, raw: raw.clone(), requests: Vec::new() };
        journal.write(&Entry::Body(Arc::new(body)))?;
        Ok(journal.commit()?)
    })
}

/// A mebibyte of bodies in one group, not synced: what it costs the processor.
fn groups(directory: &Path, bytes: usize) -> Result<(), Box<dyn std::error::Error>> {
    let config = LogConfig { durability: Durability::Os, ..LogConfig::default() };
    let disk = |part| RealDisk::open(&directory.join(format!("{bytes}-{part}")));
    let (log, bodies) = (Box::new(disk("log")?.without_zeroing()), disk("bodies")?);
    let bodies = Box::new(bodies.without_zeroing());
    let (mut journal, _) = Journal::open(log, bodies, &Owner::nobody(), config, None)?;
    let raw = bytes::Bytes::from(vec![7; bytes]);
    let count = (1024 * 1024 / bytes) as u64;
    measure(&format!("journal, {count} bodies of {bytes} B, not synced"), 100, |n| {
        for sequence in n * count..(n + 1) * count {
            let reference = BodyRef { sequence, ..body_reference() };
            let body = Body { reference, raw: raw.clone(), requests: Vec::new() };
            journal.write(&Entry::Body(Arc::new(body)))?;
        }
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
