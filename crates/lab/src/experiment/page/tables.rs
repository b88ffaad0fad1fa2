//! The tables under figures.

use crate::experiment::figure::{self, Bound, Figure, Kind, Line, Published};
use crate::experiment::{Record, metrics};
use maud::{Markup, html};
use quorate_report::page::tables::{Row, cell, table};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A figure's points, and the published ones beside them.
pub(super) fn figure(shown: &Figure, records: &[Record]) -> Markup {
    // Nobody reads the thousands of cells of a heat map: they are in the results.
    let lines = if shown.kind == Kind::Heat { Vec::new() } else { figure::lines(shown, records) };
    html! {
        @if shown.kind != Kind::Heat {
            (points(shown, &lines))
            @if !shown.paper.is_empty() { (published(shown, &lines)) }
        }
    }
}

fn points(shown: &Figure, lines: &[Line]) -> Markup {
    let [x, y] = headings(shown);
    let columns = ["line", &x, &y, "repeats"].map(str::to_owned);
    let row = |line: &Line| {
        let cells = |point: &figure::Point| {
            vec![
                cell(&line.name),
                cell(&with_deviation(point.x.mean, point.x.deviation)),
                cell(&with_deviation(point.y.mean, point.y.deviation)),
                cell(&point.y.count.to_string()),
            ]
        };
        line.points.iter().map(|point| ("", cells(point))).collect::<Vec<Row>>()
    };
    let rows: Vec<_> = lines.iter().flat_map(row).collect();
    html! {
        details {
            summary { "All points of this figure" }
            (table("figures points", &columns, &rows))
        }
    }
}

fn published(shown: &Figure, lines: &[Line]) -> Markup {
    let [x, y] = headings(shown);
    let columns =
        ["published", &x, &y, "ours, nearest by x", "where it was read"].map(str::to_owned);
    let row = |paper: &Published| {
        let cells = |point: &[f64; 2]| {
            vec![
                cell(&paper.name),
                cell(&figure::number(point[0])),
                cell(&format!("{}{}", bound(paper.bound), figure::number(point[1]))),
                cell(&nearest(paper, point, lines)),
                cell(&paper.source),
            ]
        };
        paper.points.iter().map(|point| ("", cells(point))).collect::<Vec<Row>>()
    };
    let rows: Vec<_> = shown.paper.iter().flat_map(row).collect();
    table("figures published", &columns, &rows)
}

fn bound(bound: Bound) -> &'static str {
    match bound {
        Bound::At => "",
        Bound::Below => "below ",
        Bound::Above => "above ",
    }
}

/// Our point nearest on the x axis, of the line that the published one stands beside.
fn nearest(paper: &Published, at: &[f64; 2], lines: &[Line]) -> String {
    let line = lines.iter().find(|line| Some(&line.name) == paper.beside.as_ref());
    let away = |point: &&figure::Point| (point.x.mean - at[0]).abs();
    let near = line.and_then(|line| line.points.iter().min_by(|a, b| away(a).total_cmp(&away(b))));
    near.map_or("-".to_owned(), |point| {
        let x = figure::number(point.x.mean);
        format!("{} at {x}", with_deviation(point.y.mean, point.y.deviation))
    })
}

fn with_deviation(mean: f64, deviation: f64) -> String {
    if deviation > 0.0 {
        format!("{} ± {}", figure::number(mean), figure::number(deviation))
    } else {
        figure::number(mean)
    }
}

/// Quantities on the axes, as headings of columns.
fn headings(shown: &Figure) -> [String; 2] {
    shown.axes().map(|metric| metric.map_or(String::new(), metrics::label))
}

/// Points at which nothing was measured, and why.
pub(super) fn failures(records: &[Record]) -> Markup {
    reasons(records, "Without a result", "why nothing was measured", |record| {
        record.failed.as_deref().into_iter().collect()
    })
}

/// Points whose numbers are in doubt, and why.
pub(super) fn doubts(records: &[Record]) -> Markup {
    reasons(records, "In doubt", "why", Record::doubts)
}

/// A section of points about which there is something to say, unless there are none.
fn reasons(
    records: &[Record],
    title: &str,
    heading: &str,
    of: impl Fn(&Record) -> Vec<&str>,
) -> Markup {
    let mut reasons: BTreeMap<(String, &str), usize> = BTreeMap::new();
    let vary = varying(records);
    for record in records {
        for reason in of(record) {
            *reasons.entry((described(record, &vary), reason)).or_default() += 1;
        }
    }
    let row = |((point, reason), times): (&(String, &str), &usize)| {
        ("event", vec![cell(point), cell(reason), cell(&times.to_string())])
    };
    let rows: Vec<_> = reasons.iter().map(row).collect();
    let columns = ["point", heading, "runs"].map(str::to_owned);
    html! {
        @if !rows.is_empty() {
            section { h2 { (title) } (table("settings", &columns, &rows)) }
        }
    }
}

fn described(record: &Record, vary: &BTreeSet<String>) -> String {
    let setup = record.setup.to_json();
    let said = |name: &String| format!("{name} {}", text(setup.get(name).unwrap_or(&Value::Null)));
    vary.iter().filter(|name| *name != "seed").map(said).collect::<Vec<_>>().join(", ")
}

/// Settings that all points have in common, and those that they vary.
pub(super) fn settings(records: &[Record]) -> Markup {
    let Some(first) = records.first() else { return html! {} };
    let vary = varying(records);
    let setups: Vec<Value> = records.iter().map(|record| record.setup.to_json()).collect();
    let values = |name: &String| {
        let mut seen: Vec<String> = Vec::new();
        for setup in &setups {
            let value = text(&setup[name]);
            if !seen.contains(&value) {
                seen.push(value);
            }
        }
        seen.sort_by(|a, b| match (a.parse::<f64>(), b.parse::<f64>()) {
            (Ok(a), Ok(b)) => a.total_cmp(&b),
            _ => a.cmp(b),
        });
        seen.join(", ")
    };
    let fields = first.setup.to_json();
    let names = fields.as_object().into_iter().flat_map(|fields| fields.keys());
    let row = |name: &String| {
        let class = if vary.contains(name) { "differs" } else { "" };
        (class, vec![cell(name), cell(&values(name))])
    };
    let rows: Vec<_> = names.map(row).collect();
    let columns = ["setting", "values"].map(str::to_owned);
    html! {
        section {
            h2 { "Configuration" }
            p { "What the points vary is marked." }
            (table("settings", &columns, &rows))
        }
    }
}

fn varying(records: &[Record]) -> BTreeSet<String> {
    let Some((first, rest)) = records.split_first() else { return BTreeSet::new() };
    let first = first.setup.to_json();
    let mut vary = BTreeSet::new();
    for record in rest {
        let other = record.setup.to_json();
        let fields = first.as_object().into_iter().flatten();
        vary.extend(fields.filter(|(name, value)| other[*name] != **value).map(|f| f.0.clone()));
    }
    vary
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
