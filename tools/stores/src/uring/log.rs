//! The log: a group of records, written in one call and synced.

use super::ring::Ring;
use crate::process::{processor_seconds, quantile};
use rustix::io::{ReadWriteFlags, pwritev, pwritev2};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{IoSlice, Write};
use std::path::Path;
use std::time::Instant;

/// Bytes of a segment, written as zeroes before it is used, as those of the log are.
const SEGMENT: usize = 64 << 20;

/// Bytes of groups that are measured, and how many of each in a turn.
const GROUPS: [(usize, usize); 3] = [(4 << 10, 400), (64 << 10, 200), (512 << 10, 100)];

/// Turns of each way, one after the other.
const TURNS: usize = 5;

/// A record has a header before its payload: two parts.
const HEADER: usize = 64;

/// Figures of one way to append groups of one size.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LogRow {
    group_bytes: usize,
    syncs: bool,
    way: String,
    /// A group, by the clock and of the processor, kernel threads for this process included.
    p50_us: f64,
    p99_us: f64,
    processor_us: f64,
}

impl LogRow {
    pub(crate) const HEADS: [&str; 6] =
        ["group, KiB", "sync", "way", "p50 µs", "p99 µs", "processor µs"];

    pub(crate) fn cells(&self) -> Vec<String> {
        vec![
            (self.group_bytes >> 10).to_string(),
            if self.syncs { "yes" } else { "no" }.to_owned(),
            self.way.clone(),
            format!("{:.0}", self.p50_us),
            format!("{:.0}", self.p99_us),
            format!("{:.1}", self.processor_us),
        ]
    }
}

pub(super) fn measure(folder: &Path) {
    let folder = tempfile::tempdir_in(folder).expect("a folder");
    let file = zeroes(&folder.path().join("segment"));
    let mut ring = Ring::new().expect("this system has io_uring");
    for (group_bytes, groups) in GROUPS {
        let content = vec![0x5a; group_bytes];
        let parts = [IoSlice::new(&content[..HEADER]), IoSlice::new(&content[HEADER..])];
        for syncs in [true, false] {
            let mut calls = |offset| {
                assert_eq!(pwritev(&file, &parts, offset).expect("writes"), group_bytes);
                if syncs {
                    file.sync_data().expect("syncs");
                }
            };
            let mut one_call = |offset| {
                let flags = if syncs { ReadWriteFlags::DSYNC } else { ReadWriteFlags::empty() };
                assert_eq!(pwritev2(&file, &parts, offset, flags).expect("writes"), group_bytes);
            };
            let mut submits = |offset| ring.append(&file, &parts, offset, syncs);
            let mut ways = [
                Way::new("pwritev, fdatasync", &mut calls),
                Way::new("pwritev2, RWF_DSYNC", &mut one_call),
                Way::new("io_uring, linked", &mut submits),
            ];
            for _ in 0..TURNS {
                ways.iter_mut().for_each(|way| way.take(groups, group_bytes));
            }
            ways.into_iter().for_each(|way| way.print(group_bytes, syncs));
        }
    }
}

/// A file of zeroes, durable.
fn zeroes(path: &Path) -> File {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).open(path).expect("opens");
    file.write_all(&vec![0; SEGMENT]).expect("writes");
    file.sync_all().expect("syncs");
    file
}

/// A way to append a group at an offset, and what it took.
struct Way<'a> {
    name: &'static str,
    append: &'a mut dyn FnMut(u64),
    us: Vec<f64>,
    processor: f64,
}

impl<'a> Way<'a> {
    fn new(name: &'static str, append: &'a mut dyn FnMut(u64)) -> Self {
        Self { name, append, us: Vec::new(), processor: 0.0 }
    }

    /// Appends groups from the segment's begin on, over and over.
    fn take(&mut self, groups: usize, group_bytes: usize) {
        let processor = processor_seconds();
        for group in 0..groups {
            let began = Instant::now();
            (self.append)((group * group_bytes % SEGMENT) as u64);
            self.us.push(began.elapsed().as_secs_f64() * 1e6);
        }
        self.processor += processor_seconds() - processor;
    }

    fn print(mut self, group_bytes: usize, syncs: bool) {
        let row = LogRow {
            group_bytes,
            syncs,
            way: self.name.to_owned(),
            processor_us: self.processor * 1e6 / self.us.len() as f64,
            p50_us: quantile(&mut self.us, 0.5),
            p99_us: quantile(&mut self.us, 0.99),
        };
        println!("{}", serde_json::to_string(&row).expect("figures"));
    }
}
