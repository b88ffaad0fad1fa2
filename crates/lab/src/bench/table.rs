//! A report as text, at most a hundred columns wide.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use quorate_engine::ProtocolKind;
use quorate_report::Report;
use quorate_report::results::{CommittedBy, Measurement, ValidatorReport};
use quorate_report::text::{milliseconds, sparkline, thousands};
use quorate_types::Weights;
use serde_json::Value;

/// Longest row of bars.
const SECONDS_SHOWN_MAX: usize = 80;

/// Draws the report as text.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut text = head(report);
    if let Some(weights) = uneven_weights(report) {
        let (quorum, total, f) = (weights.quorum(), weights.total(), weights.faulty_max());
        text.push_str(&format!(
            "  weights       {weights} · a quorum is {quorum} of {total} · {f} may fail\n"
        ));
    }
    for (name, value) in figures(report) {
        text.push_str(&format!("  {name:<13} {value}\n"));
    }
    let tables = [loads(report), validators(report)].into_iter().filter(|table| !table.is_empty());
    for table in tables {
        text.push('\n');
        for line in table.lines() {
            text.push_str(&format!("  {}\n", line.trim_end()));
        }
    }
    if report.config["machine"]["optimised"] == false {
        text.push_str("\nThis binary is not optimised: build with --release for figures that mean something.\n");
    }
    text
}

/// What was measured, and where.
fn head(report: &Report) -> String {
    let setting = |path| report.setting(path);
    let course = format!("{} s after {} s of warm-up", setting("duration_s"), setting("warmup_s"));
    let (operations, service) = (operations(report), setting("service"));
    match &report.measurement {
        Measurement::Bench => format!(
            "{} validators · {} · {operations} · {} · {service} · {course}\n\
             {} cores, {}; validators and clients share them · quorate {}\n\n",
            setting("validators"),
            setting("scheme"),
            setting("durability"),
            setting("machine.cores"),
            setting("machine.cpu"),
            setting("machine.version"),
        ),
        Measurement::Load(origin) => format!(
            "{} · {operations} · {service} of {} validators · {course}\n{} · quorate {}\n\n",
            origin.name(),
            setting("validators"),
            origin.clock(),
            setting("machine.version"),
        ),
        Measurement::Merged(merged) => format!(
            "{} loads · {operations} · {service} of {} validators\n{}\n\n",
            merged.loads.len(),
            setting("validators"),
            merged.describe(),
        ),
    }
}

/// Weights of the members' votes, where they are not all the same.
fn uneven_weights(report: &Report) -> Option<Weights> {
    let each: Option<Vec<u64>> =
        report.config["weights"].as_array()?.iter().map(Value::as_u64).collect();
    Weights::new(each?).ok().filter(|weights| !weights.are_equal())
}

/// Content of the operations.
fn operations(report: &Report) -> String {
    match report.config["mix"].as_str() {
        Some(mix) => format!("{mix} transactions"),
        None => format!("{}-byte operations", report.setting("tx_bytes")),
    }
}

fn figures(report: &Report) -> Vec<(&'static str, String)> {
    let latency = report.latency_ms;
    let whole = |value: f64| thousands(value.round() as u64);
    let mut rows = vec![
        ("offered", format!("{} tx/s", whole(report.offered_tps))),
        committed(report),
        (
            "latency",
            format!(
                "p50 {} ms · p90 {} · p99 {} · max {} · mean {}",
                milliseconds(latency.p50),
                milliseconds(latency.p90),
                milliseconds(latency.p99),
                milliseconds(latency.max),
                milliseconds(latency.mean),
            ),
        ),
    ];
    if report.measurement == Measurement::Bench || report.bytes_per_tx.is_some() {
        rows.push(("network", network(report)));
    }
    rows.push(("CPU", cpu(report)));
    rows.extend(memory(report).map(|text| ("memory, disk", text)));
    rows.extend(consensus(report).map(|text| ("consensus", text)));
    if report.dropped + report.unanswered + report.refused > 0 {
        rows.push(("not done", not_done(report)));
    }
    rows.extend(report.beside.figures());
    if (1..=SECONDS_SHOWN_MAX).contains(&report.timeline.len()) {
        rows.push(("each second", each_second(report)));
    }
    rows
}

fn committed(report: &Report) -> (&'static str, String) {
    let rate = thousands(report.committed_tps.round() as u64);
    match report.committed_by {
        CommittedBy::Validators => ("committed", format!("{rate} tx/s on every healthy validator")),
        CommittedBy::Answers => {
            ("answered", format!("{rate} tx/s to clients of the load; no validator was looked at"))
        }
    }
}

fn cpu(report: &Report) -> String {
    let client = format!("client {:.1} s", report.client_cpu_seconds);
    let Some(seconds) = report.cpu_seconds else { return client };
    let cores = seconds / report.duration_s().max(1.0);
    format!("validators {seconds:.1} s ({cores:.2} cores) · {client}")
}

fn memory(report: &Report) -> Option<String> {
    let whole = |value: f64| thousands(value.round() as u64);
    let memory =
        report.rss_mb_max.map(|most| format!("{} MiB at most in one validator", whole(most)));
    let disk = report.disk_mb.map(|disk| format!("{} MiB on disk in all", whole(disk)));
    let parts: Vec<String> = memory.into_iter().chain(disk).collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

fn consensus(report: &Report) -> Option<String> {
    Some(format!(
        "{} view changes · {}certificate of {} bytes",
        report.view_changes?,
        paths(report),
        thousands(report.certificate_bytes?)
    ))
}

fn network(report: &Report) -> String {
    match report.bytes_per_tx {
        Some(bytes) => {
            format!("{} bytes sent by all validators for each tx", thousands(bytes.round() as u64))
        }
        None => "unknown".to_owned(),
    }
}

/// Shares of heights by their path, where there are two.
fn paths(report: &Report) -> String {
    let (fast, slow) = (report.fast_decisions.unwrap_or(0), report.slow_decisions.unwrap_or(0));
    if !has_fast_path(report) || fast + slow == 0 {
        return String::new();
    }
    let share = 100.0 * fast as f64 / (fast + slow) as f64;
    format!("{share:.1} % of heights decided fast · ")
}

fn has_fast_path(report: &Report) -> bool {
    let named = report.config["settings"]["protocol"].as_str();
    let protocol = named.and_then(|name| name.parse::<ProtocolKind>().ok());
    protocol.and_then(ProtocolKind::windowed_rules).is_some_and(|rules| rules.fast_path)
}

fn not_done(report: &Report) -> String {
    format!(
        "{} not taken by a full client · {} never answered · {} refused by the service",
        thousands(report.dropped),
        thousands(report.unanswered),
        thousands(report.refused)
    )
}

fn each_second(report: &Report) -> String {
    let measured = || report.timeline.iter().filter(|second| second.second > 0);
    let committed = || measured().map(|second| second.committed);
    format!(
        "{}  {} to {}",
        sparkline(committed().map(|count| count as f64)),
        thousands(committed().min().unwrap_or(0)),
        thousands(committed().max().unwrap_or(0)),
    )
}

/// The validators that were looked at; nothing where there were none.
fn validators(report: &Report) -> String {
    if report.validators.is_empty() {
        return String::new();
    }
    let mut table = plain(&["validator", "state", "committed/s", "height", "view"], &[1]);
    for validator in &report.validators {
        table.add_row(row(validator));
    }
    table.to_string()
}

/// The loads that were joined, each by its host's clock; nothing of a single one.
fn loads(report: &Report) -> String {
    let Measurement::Merged(merged) = &report.measurement else { return String::new() };
    let columns =
        ["load", "host", "offered/s", "answered/s", "p50 ms", "p99 ms", "answered", "lost"];
    let mut table = plain(&columns, &[1]);
    for load in &merged.loads {
        table.add_row(load.cells());
    }
    table.to_string()
}

/// A table without rules, whose columns are aligned to the right but for some.
pub(crate) fn plain(columns: &[&str], left: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING);
    table.set_header(columns);
    for column in table.column_iter_mut() {
        if !left.contains(&column.index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn row(validator: &ValidatorReport) -> [String; 5] {
    let state = match validator.since_s {
        Some(second) => format!("{} at {second} s", validator.state),
        None => validator.state.clone(),
    };
    let committed = validator.committed_tps.map_or("-".to_owned(), |tps| thousands(tps as u64));
    let (height, view) = (thousands(validator.height), thousands(validator.view));
    [validator.id.to_string(), state, committed, height, view]
}
