//! The tables under figures.

use crate::chart::escape;
use crate::experiment::figure::{self, Bound, Figure, Kind, Line, Published};
use crate::experiment::{Record, metrics};
use crate::page::tables::table;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A figure's points, and the published ones beside them.
pub(super) fn figure(shown: &Figure, records: &[Record]) -> String {
    if shown.kind == Kind::Heat {
        // Nobody reads thousands of cells: they are in the results.
        return String::new();
    }
    let lines = figure::lines(shown, records);
    let mut out = points(shown, &lines);
    if !shown.paper.is_empty() {
        out.push_str(&published(shown, &lines));
    }
    out
}

fn points(shown: &Figure, lines: &[Line]) -> String {
    let [x, y] = headings(shown);
    let columns = ["line", &x, &y, "repeats"].map(str::to_owned);
    let row = |line: &Line| {
        let cells = |point: &figure::Point| {
            vec![
                escape(&line.name),
                with_deviation(point.x.mean, point.x.deviation),
                with_deviation(point.y.mean, point.y.deviation),
                point.y.count.to_string(),
            ]
        };
        line.points.iter().map(|point| (String::new(), cells(point))).collect::<Vec<_>>()
    };
    let rows: Vec<_> = lines.iter().flat_map(row).collect();
    format!(
        "<details><summary>All points of this figure</summary>{}</details>\n",
        table("figures points", &columns, &rows)
    )
}

fn published(shown: &Figure, lines: &[Line]) -> String {
    let [x, y] = headings(shown);
    let columns =
        ["published", &x, &y, "ours, nearest by x", "where it was read"].map(str::to_owned);
    let row = |paper: &Published| {
        let cells = |point: &[f64; 2]| {
            vec![
                escape(&paper.name),
                figure::number(point[0]),
                format!("{}{}", bound(paper.bound), figure::number(point[1])),
                nearest(paper, point, lines),
                escape(&paper.source),
            ]
        };
        paper.points.iter().map(|point| (String::new(), cells(point))).collect::<Vec<_>>()
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

/// What is on the axes, as columns are headed.
fn headings(shown: &Figure) -> [String; 2] {
    shown.axes().map(|metric| metric.map_or(String::new(), metrics::label))
}

/// Points at which nothing was measured, and why.
pub(super) fn failures(records: &[Record]) -> String {
    let mut reasons: BTreeMap<(String, &str), usize> = BTreeMap::new();
    let vary = varying(records);
    for record in records {
        if let Some(reason) = &record.failed {
            *reasons.entry((described(record, &vary), reason)).or_default() += 1;
        }
    }
    if reasons.is_empty() {
        return String::new();
    }
    let row = |((point, reason), times): (&(String, &str), &usize)| {
        ("event".to_owned(), vec![escape(point), escape(reason), times.to_string()])
    };
    let rows: Vec<_> = reasons.iter().map(row).collect();
    let columns = ["point", "why nothing was measured", "runs"].map(str::to_owned);
    format!("<section><h2>Without a result</h2>{}</section>\n", table("settings", &columns, &rows))
}

fn described(record: &Record, vary: &BTreeSet<String>) -> String {
    let setup = record.setup.to_json();
    let said = |name: &String| format!("{name} {}", text(setup.get(name).unwrap_or(&Value::Null)));
    vary.iter().filter(|name| *name != "seed").map(said).collect::<Vec<_>>().join(", ")
}

/// What all points have in common, and what they vary.
pub(super) fn settings(records: &[Record]) -> String {
    let Some(first) = records.first() else { return String::new() };
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
        (class.to_owned(), vec![escape(name), escape(&values(name))])
    };
    let rows: Vec<_> = names.map(row).collect();
    let columns = ["setting", "values"].map(str::to_owned);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<section><h2>Configuration</h2>\n<p>What the points vary is marked.</p>\n{}</section>",
        table("settings", &columns, &rows)
    );
    out
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
