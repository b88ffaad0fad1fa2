//! Pairs as a table: for a terminal, and for a page.

use super::{Pair, Ratios, meets};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use quorate_report::text::{markdown_table, milliseconds, thousands};

const HEADER: [&str; 13] = [
    "n", "disk", "delay", "offered", "tx/s", "model", "ratio", "p50 ms", "model", "ratio", "cores",
    "model", "ratio",
];

/// The pairs as a table for a terminal; `!` is behind a ratio that misses the goal.
#[must_use]
pub fn table(pairs: &[Pair]) -> String {
    let mut table = Table::new();
    table.load_preset(NOTHING);
    table.set_header(HEADER);
    for pair in pairs {
        table.add_row(cells(pair, |ratio| format!("{ratio:.2}!")));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        if index != 1 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The pairs as a table in Markdown; a ratio that misses the goal is bold.
#[must_use]
pub fn markdown(pairs: &[Pair]) -> String {
    let row = |pair| cells(pair, |ratio| format!("**{ratio:.2}**")).into();
    markdown_table(&HEADER.map(str::to_owned), pairs.iter().map(row))
}

fn cells(pair: &Pair, missed: impl Fn(f64) -> String) -> [String; 13] {
    let setup = &pair.real.setup;
    let number = |model: bool, name: &str| {
        let record = if model { &pair.model } else { &pair.real };
        record.measured.get(name).copied()
    };
    let shown = |value: Option<f64>, show: fn(f64) -> String| value.map_or("-".to_owned(), show);
    let tps = |model| shown(number(model, "committed_tps"), |tps| thousands(tps as u64));
    let ms = |model| shown(number(model, "latency_client_p50_ms"), milliseconds);
    let cores = |model| shown(number(model, "cpu_cores"), |cores| format!("{cores:.2}"));
    let judged = |ratio: Option<f64>| match ratio {
        Some(ratio) if meets(ratio) => format!("{ratio:.2}"),
        Some(ratio) => missed(ratio),
        None => "-".to_owned(),
    };
    let Ratios { throughput, latency, cores: busy } = pair.ratios();
    [
        setup.validators.to_string(),
        setup.durability.to_string(),
        format!("{} ms", setup.delay_ms),
        thousands(setup.rate),
        tps(false),
        tps(true),
        judged(throughput),
        ms(false),
        ms(true),
        judged(latency),
        cores(false),
        cores(true),
        shown(busy, |ratio| format!("{ratio:.2}")),
    ]
}
