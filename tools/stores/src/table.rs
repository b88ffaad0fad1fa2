//! Lines of JSON as tables in Markdown.

use crate::run::Line;
use crate::uring::{LogRow, SocketsRow};
use serde::Deserialize;
use std::fs;
use std::path::PathBuf;

/// A line of either command.
#[derive(Deserialize)]
#[serde(untagged)]
enum Any {
    Run(Box<Line>),
    Log(LogRow),
    Sockets(SocketsRow),
}

/// Prints a table for each kind of line that is in the files.
pub(crate) fn print(files: &[PathBuf]) {
    let (mut runs, mut log, mut sockets) = (Vec::new(), Vec::new(), Vec::new());
    for file in files {
        let text = fs::read_to_string(file).expect("a file of lines");
        for line in text.lines() {
            match serde_json::from_str(line).expect("a line that this program printed") {
                Any::Run(line) => runs.push(line),
                Any::Log(row) => log.push(row.cells()),
                Any::Sockets(row) => sockets.push(row.cells()),
            }
        }
    }
    table(&UPDATES, runs.iter().flat_map(|line| updates(line)));
    table(&READS, runs.iter().map(|line| reads(line)));
    table(&LogRow::HEADS, log.into_iter());
    table(&SocketsRow::HEADS, sockets.into_iter());
}

const UPDATES: [&str; 10] = [
    "keys × bytes",
    "store",
    "checkpoint",
    "µs an update: read + write",
    "bytes an update",
    "checkpoint p50 ms",
    "max ms",
    "disk MB",
    "peak MB",
    "updates",
];

const READS: [&str; 7] = [
    "keys × bytes",
    "store",
    "get, cold, µs",
    "warm",
    "16 entries, µs",
    "open, stopped, s",
    "killed, s",
];

fn table(heads: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return;
    }
    println!("\n| {} |\n|{}", heads.join(" | "), "---|".repeat(heads.len()));
    rows.for_each(|cells| println!("| {} |", cells.join(" | ")));
}

fn subject(line: &Line) -> [String; 2] {
    let subject = &line.subject;
    let size = format!("10^{} × {}", subject.keys.ilog10(), subject.value_bytes);
    [size, subject.store.name()]
}

fn updates(line: &Line) -> impl Iterator<Item = Vec<String>> {
    line.updates.iter().map(|of| {
        let mut cells = subject(line).to_vec();
        let both = of.read_us + of.write_us;
        cells.extend([
            of.checkpoint.to_string(),
            format!("{both:.1}: {:.1} + {:.1}", of.read_us, of.write_us),
            format!("{:.0}", of.written_bytes),
            format!("{:.1}", of.p50_ms),
            format!("{:.0}", of.max_ms),
            format!("{:.0}", of.disk_mb),
            format!("{:.0}", of.peak_mb),
            of.updates.to_string(),
        ]);
        cells
    })
}

fn reads(line: &Line) -> Vec<String> {
    let mut cells = subject(line).to_vec();
    let reads = &line.reads;
    let killed: Vec<_> = line.killed_open_s.iter().map(|s| format!("{s:.3}")).collect();
    cells.extend([
        format!("{:.1}", reads.get_cold_us),
        format!("{:.1}", reads.get_warm_us),
        reads.scan_us.map_or("–".to_owned(), |us| format!("{us:.1}")),
        format!("{:.3}", reads.open_s),
        killed.join(", "),
    ]);
    cells
}
