//! Lines of runs as a table: medians, and behind them each run.

use crate::run::{Kind, Line};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

pub(crate) fn print(files: &[PathBuf]) {
    let mut rows: BTreeMap<(u64, u64, Kind), Vec<Line>> = BTreeMap::new();
    for file in files {
        for line in fs::read_to_string(file).expect("a file of lines").lines() {
            let line: Line = serde_json::from_str(line).expect("a line of a run");
            let row = (line.accounts, line.of_height, line.tree);
            rows.entry(row).or_default().push(line);
        }
    }
    println!(
        "| accounts | transfers a height | tree | user µs a transfer | bytes written a transfer \
         | nodes a transfer, bytes | memory, bytes an account | made anew, s |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for ((accounts, of_height, tree), lines) in &rows {
        let of = |figure: fn(&Line) -> f64| median(lines.iter().map(figure));
        let each: Vec<String> = lines.iter().map(|line| format!("{:.1}", line.user_us)).collect();
        let nodes = match of(|line| line.nodes) {
            0.0 => "–".into(),
            nodes => format!("{nodes:.1}, {:.0}", of(|line| line.node_bytes)),
        };
        let rebuilt = lines.iter().filter_map(|line| line.rebuilt_s);
        let rebuilt = match rebuilt.clone().next() {
            None => "–".into(),
            Some(_) => format!("{:.1}", median(rebuilt)),
        };
        println!(
            "| {accounts} | {of_height} | {} | {:.1} ({}) | {:.0} | {nodes} | {:.0} | {rebuilt} |",
            serde_json::to_value(tree).expect("a name").as_str().expect("a name"),
            of(|line| line.user_us),
            each.join(", "),
            of(|line| line.written_bytes),
            of(|line| line.memory_bytes),
        );
    }
}

fn median(samples: impl Iterator<Item = f64>) -> f64 {
    let mut samples: Vec<f64> = samples.collect();
    samples.sort_unstable_by(f64::total_cmp);
    samples[samples.len() / 2]
}
