//! Figures of a row: the columns of every table.

use crate::experiment::Record;
use quorate_report::text::{milliseconds, thousands};

/// A column, and the numbers that may stand in it.
pub(super) struct Figure {
    /// Heading of the column.
    pub(super) heading: &'static str,
    /// Name in a goal; empty where the unit says enough.
    pub(super) short: &'static str,
    /// Unit in a goal.
    pub(super) unit: &'static str,
    /// Names of the metrics; a row has one of them at most.
    names: &'static [&'static str],
    /// A number as text.
    pub(super) text: fn(f64) -> String,
}

/// All of them, in the order of the columns. The first is the rate by which rows are compared.
pub(super) const FIGURES: [Figure; 8] = [
    Figure {
        heading: "tx/s",
        short: "",
        unit: "tx/s",
        names: &["committed_tps", "per_core_tps", "goodput_tps"],
        text: whole,
    },
    Figure {
        heading: "p50 ms",
        short: "p50",
        unit: "ms",
        names: &["latency_client_p50_ms", "paid_p50_ms"],
        text: milliseconds,
    },
    Figure {
        heading: "p99 ms",
        short: "p99",
        unit: "ms",
        names: &["latency_client_p99_ms", "paid_p99_ms"],
        text: milliseconds,
    },
    Figure {
        heading: "cores",
        short: "",
        unit: "cores",
        names: &["cpu_cores"],
        text: |cores| format!("{cores:.2}"),
    },
    Figure {
        heading: "µs/height",
        short: "",
        unit: "µs a height",
        names: &["height_us"],
        text: whole,
    },
    Figure {
        heading: "disk B/tx",
        short: "",
        unit: "bytes to disk a tx",
        names: &["written_bytes_per_tx"],
        text: whole,
    },
    Figure {
        heading: "bound",
        short: "bound",
        unit: "tx/s",
        names: &["machine_bound_tps", "bound_tps"],
        text: whole,
    },
    Figure {
        heading: "of it %",
        short: "",
        unit: "% of the bound",
        names: &["bound_share"],
        text: whole,
    },
];

impl Figure {
    /// Name and value of the number that a row has in this column.
    pub(super) fn of(&self, record: &Record) -> Option<(&'static str, f64)> {
        let value = |name: &&'static str| Some((*name, *record.measured.get(*name)?));
        self.names.iter().find_map(value)
    }

    /// The number as text, `-` where there is none.
    pub(super) fn cell(&self, record: &Record) -> String {
        self.of(record).map_or("-".to_owned(), |(_, value)| (self.text)(value))
    }

    /// Tells whether a metric stands in this column.
    pub(super) fn has(&self, metric: &str) -> bool {
        self.names.contains(&metric)
    }
}

/// Place of the column that a metric stands in; those without one come last.
pub(super) fn place(metric: &str) -> usize {
    FIGURES.iter().position(|figure| figure.has(metric)).unwrap_or(FIGURES.len())
}

/// The column that a metric stands in.
pub(super) fn named(metric: &str) -> Option<&'static Figure> {
    FIGURES.iter().find(|figure| figure.has(metric))
}

/// Rate of a row, in operations per second.
pub(super) fn rate(record: &Record) -> Option<f64> {
    FIGURES[0].of(record).map(|(_, rate)| rate)
}

fn whole(value: f64) -> String {
    thousands(value.round() as u64)
}
