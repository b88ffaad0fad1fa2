//! The tables of a page.

use super::Run;
use super::figures::{self, Figure};
use super::settings::{differing, flatten};
use crate::chart::escape;
use crate::text::{grouped, thousands};
use std::fmt::Write;

/// A table: its columns' headings, and rows of cells that are HTML already.
pub(crate) fn table(class: &str, headings: &[String], rows: &[(String, Vec<String>)]) -> String {
    let mut out = format!("<div class=\"scroll\"><table class=\"{class}\"><thead><tr>");
    for heading in headings {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(heading));
    }
    out.push_str("</tr></thead><tbody>\n");
    for (class, cells) in rows {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let _ = write!(out, "<tr{class}>");
        for (index, cell) in cells.iter().enumerate() {
            let tag = if index == 0 { "th scope=\"row\"" } else { "td" };
            let end = if index == 0 { "th" } else { "td" };
            let _ = write!(out, "<{tag}>{cell}</{end}>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    out
}

fn headings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// Every figure of every run; with several, how each differs from the first.
pub(super) fn figures(runs: &[Run]) -> String {
    let (first, rest) = runs.split_first().expect("a page shows at least one run");
    let mut columns = headings(&["figure", "unit"]);
    columns.extend(runs.iter().map(|run| match rest {
        [] => "value".to_owned(),
        _ => run.label.clone(),
    }));
    for run in rest {
        let of = if rest.len() > 1 { format!("{}: ", run.label) } else { String::new() };
        columns.extend([format!("{of}difference"), format!("{of}ratio")]);
    }
    let row = |figure: Figure| {
        let mut cells = vec![escape(figure.name), escape(figure.unit)];
        cells.extend(runs.iter().map(|run| figure.text(&run.report)));
        for run in rest {
            cells.push(figure.difference(&first.report, &run.report));
            cells.push(ratio(&figure, first, run));
        }
        (String::new(), cells)
    };
    let rows: Vec<_> = figures::all().into_iter().map(row).collect();
    table("figures", &columns, &rows)
}

fn ratio(figure: &Figure, first: &Run, run: &Run) -> String {
    let Some(ratio) = figure.ratio(&first.report, &run.report) else { return "-".to_owned() };
    let (class, word) = match figure.improved(ratio) {
        Some(true) => ("better", " better"),
        Some(false) => ("worse", " worse"),
        None => ("", ""),
    };
    format!("<span class=\"{class}\">×{ratio:.2}{word}</span>")
}

/// What a run is judged by; nothing where there is nothing to be said.
pub(super) fn beside(run: &Run) -> String {
    let figures = run.report.beside.figures();
    if figures.is_empty() {
        return String::new();
    }
    let row = |(name, text): &(&str, String)| (String::new(), vec![escape(name), escape(text)]);
    let rows: Vec<_> = figures.iter().map(row).collect();
    let of = format!("beside the figures of {}", run.label);
    table("settings", &[of, String::new()], &rows)
}

/// A run's validators.
pub(super) fn validators(run: &Run) -> String {
    let columns = headings(&[
        "validator",
        "state",
        "committed (tx/s)",
        "height",
        "view",
        "CPU (s)",
        "memory, at most (MiB)",
        "sent (MiB)",
    ]);
    let row = |validator: &crate::bench::report::ValidatorReport| {
        let state = match validator.since_s {
            Some(second) => format!("{} at {second} s", validator.state),
            None => validator.state.clone(),
        };
        let committed =
            validator.committed_tps.map_or("-".to_owned(), |tps| thousands(tps.round() as u64));
        let class = if validator.state == "healthy" { "" } else { "event" };
        let cells = vec![
            validator.id.to_string(),
            escape(&state),
            committed,
            thousands(validator.height),
            thousands(validator.view),
            format!("{:.1}", validator.cpu_seconds),
            format!("{:.1}", validator.rss_mb_max),
            format!("{:.1}", validator.bytes_sent as f64 / 1_048_576.0),
        ];
        (class.to_owned(), cells)
    };
    let rows: Vec<_> = run.report.validators.iter().map(row).collect();
    table("validators", &columns, &rows)
}

/// Every setting of every run under its group; what differs is marked.
pub(super) fn settings(runs: &[Run]) -> String {
    let all: Vec<_> = runs.iter().map(|run| flatten(&run.report.config)).collect();
    let different = differing(&all);
    let mut paths: Vec<String> = all.iter().flat_map(|rows| rows.keys().cloned()).collect();
    paths.sort();
    paths.dedup();
    let mut columns = headings(&["setting"]);
    columns.extend(runs.iter().map(|run| match runs {
        [_] => "value".to_owned(),
        _ => run.label.clone(),
    }));
    let row = |path: &&String| {
        let differs = different.contains(path);
        let mut cells = vec![escape(path)];
        let value = |rows: &std::collections::BTreeMap<String, String>| {
            let text = rows.get(*path).map_or("-", String::as_str);
            escape(&if *path == "seed" { text.to_owned() } else { grouped(text) })
        };
        cells.extend(all.iter().map(value));
        let class = if differs { "differs" } else { "" };
        (class.to_owned(), cells)
    };
    let mut out = String::new();
    for (title, holds) in GROUPS {
        let rows: Vec<_> = paths.iter().filter(|path| holds(path)).map(|path| row(&path)).collect();
        if !rows.is_empty() {
            let _ = writeln!(out, "<div class=\"group\"><h3>{title}</h3>");
            out.push_str(&table("settings", &columns, &rows));
            out.push_str("</div>\n");
        }
    }
    out
}

type Group = (&'static str, fn(&str) -> bool);

const GROUPS: [Group; 3] = [
    ("Run", |path| !path.starts_with("settings.") && !path.starts_with("machine.")),
    ("Validators", |path| path.starts_with("settings.")),
    ("Machine and binary", |path| path.starts_with("machine.")),
];
