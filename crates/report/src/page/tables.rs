//! The tables of a page.

use super::Run;
use super::figures::{self, Figure};
use super::settings::{differing, flatten};
use crate::Report;
use crate::results::{Measurement, MergedLoad};
use crate::text::{grouped, thousands};
use maud::{Markup, html};

/// A row of a table: its class, if any, and its cells.
pub type Row = (&'static str, Vec<Markup>);

/// A table of the page: the headings of its columns, and its rows.
#[must_use]
pub fn table(class: &str, headings: &[String], rows: &[Row]) -> Markup {
    html! {
        div.scroll {
            table class=(class) {
                thead { tr { @for heading in headings { th scope="col" { (heading) } } } }
                tbody { @for row in rows { (table_row(row)) } }
            }
        }
        "\n"
    }
}

fn table_row((class, cells): &Row) -> Markup {
    let class = (!class.is_empty()).then_some(class);
    html! {
        "\n"
        tr class=[class] {
            @for (index, cell) in cells.iter().enumerate() {
                @if index == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
            }
        }
    }
}

/// A cell of plain text.
#[must_use]
pub fn cell(text: &str) -> Markup {
    html! { (text) }
}

fn headings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// Every figure of every run; with several, how each differs from the first.
pub(super) fn figures(runs: &[Run]) -> Markup {
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
        let mut cells = vec![cell(figure.name), cell(figure.unit)];
        cells.extend(runs.iter().map(|run| cell(&figure.text(&run.report))));
        for run in rest {
            cells.push(cell(&figure.difference(&first.report, &run.report)));
            cells.push(ratio(&figure, first, run));
        }
        ("", cells)
    };
    let rows: Vec<_> =
        figures::of(&runs.iter().map(|run| &run.report)).into_iter().map(row).collect();
    table("figures", &columns, &rows)
}

fn ratio(figure: &Figure, first: &Run, run: &Run) -> Markup {
    let Some(ratio) = figure.ratio(&first.report, &run.report) else { return cell("-") };
    let (class, word) = match figure.improved(ratio) {
        Some(true) => ("better", " better"),
        Some(false) => ("worse", " worse"),
        None => ("", ""),
    };
    html! { span class=(class) { (format!("×{ratio:.2}{word}")) } }
}

/// Figures that a run is judged by; `None` where there are none.
pub(super) fn beside(run: &Run) -> Option<Markup> {
    let figures = run.report.beside.figures();
    if figures.is_empty() {
        return None;
    }
    let row = |(name, text): &(&str, String)| ("", vec![cell(name), cell(text)]);
    let rows: Vec<_> = figures.iter().map(row).collect();
    let of = format!("beside the figures of {}", run.label);
    Some(table("settings", &[of, String::new()], &rows))
}

/// Table of the loads that were joined; `None` of anything else.
pub(super) fn loads(report: &Report) -> Option<Markup> {
    let Measurement::Merged(merged) = &report.measurement else { return None };
    let columns = headings(&[
        "load",
        "host",
        "offered (tx/s)",
        "answered (tx/s)",
        "median (ms)",
        "99 % (ms)",
        "operations answered",
        "lost",
        "clock",
    ]);
    let row = |load: &MergedLoad| {
        let clock = format!("of {}", load.origin.host);
        let cells = load.cells().into_iter().chain([clock]);
        (if load.lost > 0 { "event" } else { "" }, cells.map(|text| cell(&text)).collect())
    };
    let rows: Vec<Row> = merged.loads.iter().map(row).collect();
    Some(table("validators", &columns, &rows))
}

/// Table of a run's validators.
pub(super) fn validators(run: &Run) -> Markup {
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
    let row = |validator: &crate::results::ValidatorReport| {
        let state = match validator.since_s {
            Some(second) => format!("{} at {second} s", validator.state),
            None => validator.state.clone(),
        };
        let committed =
            validator.committed_tps.map_or("-".to_owned(), |tps| thousands(tps.round() as u64));
        let class = if validator.state == "healthy" { "" } else { "event" };
        let cells = [
            validator.id.to_string(),
            state,
            committed,
            thousands(validator.height),
            thousands(validator.view),
            format!("{:.1}", validator.cpu_seconds),
            format!("{:.1}", validator.rss_mb_max),
            format!("{:.1}", validator.bytes_sent as f64 / 1_048_576.0),
        ];
        (class, cells.iter().map(|text| cell(text)).collect())
    };
    let rows: Vec<_> = run.report.validators.iter().map(row).collect();
    table("validators", &columns, &rows)
}

/// Every setting of every run under its group; what differs is marked.
pub(super) fn settings(runs: &[Run]) -> Markup {
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
    let row = |path: &String| {
        let differs = different.contains(path);
        let mut cells = vec![cell(path)];
        let value = |rows: &std::collections::BTreeMap<String, String>| {
            let text = rows.get(path).map_or("-", String::as_str);
            cell(&if path == "seed" { text.to_owned() } else { grouped(text) })
        };
        cells.extend(all.iter().map(value));
        (if differs { "differs" } else { "" }, cells)
    };
    html! {
        @for (title, holds) in GROUPS {
            @let rows: Vec<Row> = paths.iter().filter(|path| holds(path)).map(row).collect();
            @if !rows.is_empty() {
                div.group { h3 { (title) } (table("settings", &columns, &rows)) }
            }
        }
    }
}

type Group = (&'static str, fn(&str) -> bool);

const GROUPS: [Group; 3] = [
    ("Run", |path| !path.starts_with("settings.") && !path.starts_with("machine.")),
    ("Validators", |path| path.starts_with("settings.")),
    ("Machine and binary", |path| path.starts_with("machine.")),
];
