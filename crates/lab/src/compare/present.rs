//! A comparison as a table, and as an experiment whose page shows it.

use super::advice::{interval, name};
use super::{Comparison, ComparisonSpec, Finding};
use crate::experiment::{Experiment, Record};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use quorate_report::text::{milliseconds, thousands};
use std::fmt::Write;

/// The table behind the recommendation, for a terminal.
#[must_use]
pub fn table(comparison: &Comparison) -> String {
    let mut table = Table::new();
    table.load_preset(NOTHING);
    table.set_header([
        "n",
        "votes",
        "takes tx/s",
        "bound",
        "idle ms",
        "at tx/s",
        "p50 ms",
        "p99 ms",
        "busiest %",
        "cert. B",
    ]);
    let advised = |one: &Finding| {
        let of_size = comparison.advice.iter().find(|advice| advice.validators == one.validators);
        of_size.is_some_and(|advice| advice.candidate == Some(one.candidate))
    };
    for one in &comparison.findings {
        let ms = |value: Option<f64>| value.map_or("-".to_owned(), milliseconds);
        let mark = if advised(one) { " ◀" } else { "" };
        table.add_row([
            one.validators.to_string(),
            format!("{}{mark}", name(one.candidate)),
            interval(one),
            one.bound.clone().unwrap_or_else(|| "-".to_owned()),
            ms(Some(one.idle_ms).filter(|idle| idle.is_finite())),
            thousands(one.common_rate),
            ms(one.latency_ms),
            ms(one.latency_p99_ms),
            ms(one.cpu_share),
            thousands(one.certificate_bytes as u64),
        ]);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        if index != 1 && index != 3 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// An experiment whose page shows the comparison, and its results: every point, and one more for
/// each finding with what the search found.
///
/// # Panics
/// Never: the file is written here, and a test reads it.
#[must_use]
pub fn experiment(spec: &ComparisonSpec, comparison: &Comparison) -> (Experiment, Vec<Record>) {
    let mut text = FILE.to_owned();
    for size in &spec.sizes {
        let _ = write!(
            text,
            "[[figure]]\nname = \"n{size}\"\ntitle = \"n = {size}: latency over throughput\"\n\
             note = \"Every point of the searches, in the order of the load.\"\n\
             x = \"committed_tps\"\ny = \"{}\"\ny_scale = \"log\"\nseries = [\"scheme\", \"verify\"]\n\
             where = {{ validators = {size} }}\n",
            latency_of(comparison),
        );
    }
    let mut experiment = Experiment::parse("compare", &text).expect("a file that a test reads");
    experiment.notes = comparison.advice.iter().map(|advice| advice.line.clone()).collect();
    let mut records = comparison.records.clone();
    let of = |finding: &Finding| {
        let same = |record: &&Record| {
            record.setup.validators == finding.validators
                && record.setup.scheme == finding.candidate.scheme
                && record.setup.settings.verify == finding.candidate.verify
        };
        let mut record = comparison.records.iter().find(same)?.clone();
        record.measured = numbers(finding);
        // No point of its own: no rate decided it.
        record.setup.rate = 0;
        Some(record)
    };
    records.extend(comparison.findings.iter().filter_map(of));
    (experiment, records)
}

fn latency_of(comparison: &Comparison) -> &'static str {
    let one = "latency_one_p50_ms";
    let known = comparison.records.iter().any(|record| record.measured.contains_key(one));
    if known { one } else { "latency_client_p50_ms" }
}

fn numbers(finding: &Finding) -> std::collections::BTreeMap<String, f64> {
    let pairs = [
        ("knee_tps", Some(finding.knee_tps)),
        ("limit_tps", finding.limit_tps),
        ("idle_p50_ms", Some(finding.idle_ms).filter(|ms| ms.is_finite())),
        ("common_p50_ms", finding.latency_ms),
        ("common_p99_ms", finding.latency_p99_ms),
        ("common_busiest_share", finding.cpu_share),
        ("certificate_bytes", Some(finding.certificate_bytes)),
    ];
    let known = pairs.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    known.collect()
}

const FILE: &str = r#"
id = "compare"
title = "Which scheme fits this committee"
shows = """
For each size and each way of voting, the highest rate that is kept up with: at least 92 % of it committed, at a median \
latency of at most twice that under little load. Points are short; such a rate is known to within 8 %. Then all are held \
against one another at one rate: the one asked for, or half of what the weakest of the better half takes."""

[preset.default]

[[figure]]
name = "knee"
title = "The highest rate that is kept up with"
note = "By committee size."
x = "validators"
y = "knee_tps"
series = ["scheme", "verify"]

[[figure]]
name = "latency"
title = "Median latency at the common rate"
note = "Each size has its own common rate, so that lines are held against one another and not along themselves."
x = "validators"
y = "common_p50_ms"
series = ["scheme", "verify"]

[[figure]]
name = "processor"
title = "Load of the busiest validator's processor at the common rate"
note = "Share of its cores."
x = "validators"
y = "common_busiest_share"
series = ["scheme", "verify"]

[[figure]]
name = "certificate"
title = "Bytes of a certificate"
note = "The last one of each committee."
x = "validators"
y = "certificate_bytes"
y_scale = "log"
series = ["scheme"]
where = { rate = 0 }
"#;
