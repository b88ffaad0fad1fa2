//! Result lines as a table in Markdown, for pages: what stands there is what the lines say.

use super::figure::number;
use super::statistics::Spread;
use super::{Record, Setup, metrics};
use quorate_report::text::{markdown_table, thousands};
use serde_json::Value;
use std::cmp::Ordering;

/// A table's rows, columns and what is left out.
#[derive(Clone, Debug, Default)]
pub struct TableSpec {
    /// Fields of a setup: the points that are alike in them are one row.
    pub rows: Vec<String>,
    /// Metrics, each a column: the mean of a row's points.
    pub columns: Vec<String>,
    /// Fields and the values that points must have in them.
    pub only: Vec<(String, String)>,
}

/// The table, rows by the values of their fields. Behind a mean is the standard deviation of its
/// repeats, `*` if a point was in doubt, and how many of them have the number where not all do; `-`
/// is nothing measured.
///
/// # Errors
/// A sentence that names a field or a metric that there is not, or a field in which the points of a
/// row differ, or says that no line is left.
pub fn tabulate(records: &[Record], spec: &TableSpec) -> Result<String, String> {
    let fields = Setup::fields();
    let named = spec.rows.iter().chain(spec.only.iter().map(|(field, _)| field));
    if let Some(unknown) = named.into_iter().find(|field| !fields.contains(field)) {
        return Err(format!("a setup has no field '{unknown}'"));
    }
    let metric = |name: &String| {
        let found = metrics::METRICS.iter().find(|metric| metric.name == name);
        found.ok_or_else(|| format!("there is no metric '{name}'"))
    };
    let columns = spec.columns.iter().map(metric).collect::<Result<Vec<_>, _>>()?;
    let rows = rows(records, spec);
    if rows.is_empty() {
        return Err("no line is of such a point".to_owned());
    }
    if let Some(field) = rows.iter().find_map(|(_, points)| differing(points)) {
        return Err(format!("points of one row differ in '{field}': name it in the rows"));
    }
    let metric_heads = columns.iter().map(|metric| match metric.unit {
        "" => metric.label.to_owned(),
        unit => format!("{}, {unit}", metric.label),
    });
    let heads: Vec<String> = spec.rows.iter().cloned().chain(metric_heads).collect();
    let rows = rows.into_iter().map(|(name, points)| {
        let cells = columns.iter().map(|metric| cell(&points, metric.name));
        name.iter().map(shown).chain(cells).collect()
    });
    Ok(markdown_table(&heads, rows))
}

/// The rows by the values of their fields, each with its points.
fn rows<'a>(records: &'a [Record], spec: &TableSpec) -> Vec<(Vec<Value>, Vec<&'a Record>)> {
    let mut rows: Vec<(Vec<Value>, Vec<&Record>)> = Vec::new();
    for record in records {
        let setup = record.setup.to_json();
        let of = |field: &String| setup[field.as_str()].clone();
        if !spec.only.iter().all(|(field, value)| plain(&of(field)) == *value) {
            continue;
        }
        let name: Vec<Value> = spec.rows.iter().map(of).collect();
        match rows.iter_mut().find(|(other, _)| *other == name) {
            Some((_, alike)) => alike.push(record),
            None => rows.push((name, vec![record])),
        }
    }
    rows.sort_by(|(one, _), (other, _)| in_order(one, other));
    rows
}

/// Order of rows: by number where both are numbers, else by their text.
fn in_order(one: &[Value], other: &[Value]) -> Ordering {
    let pairs = one.iter().zip(other);
    let each = pairs.map(|(one, other)| match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => one.total_cmp(&other),
        _ => plain(one).cmp(&plain(other)),
    });
    each.fold(Ordering::Equal, Ordering::then)
}

/// A field in which points differ that are to be repeats of one: any but the seed.
fn differing(points: &[&Record]) -> Option<String> {
    let (first, others) = points.split_first()?;
    let first = first.setup.to_json();
    let fields = first.as_object().into_iter().flatten().filter(|(field, _)| *field != "seed");
    let differs = |(field, value): &(&String, &Value)| {
        others.iter().any(|other| other.setup.to_json()[field.as_str()] != **value)
    };
    fields.into_iter().find(differs).map(|(field, _)| field.clone())
}

/// A row's cell: a mean, with what it varies by.
fn cell(points: &[&Record], metric: &str) -> String {
    let values: Vec<f64> = points.iter().filter_map(|point| point.number(metric)).collect();
    let Some(Spread { mean, deviation, count }) = Spread::of(&values) else {
        return "-".to_owned();
    };
    let rounded = |value: f64| if value >= 100.0 { value.round() } else { value };
    let spread =
        if count > 1 { format!(" ± {}", number(rounded(deviation))) } else { String::new() };
    let doubt = if points.iter().any(|point| !point.doubts().is_empty()) { "*" } else { "" };
    let all = points.len();
    let part = if count < all { format!(" ({count} of {all})") } else { String::new() };
    format!("{}{spread}{doubt}{part}", number(rounded(mean)))
}

/// A setting as a cell has it.
fn shown(value: &Value) -> String {
    value.as_u64().map_or_else(|| plain(value), thousands)
}

/// A setting as it is written in a file.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{TableSpec, tabulate};
    use crate::experiment::{Record, Setup, results};
    use serde_json::{Value, json};

    fn record(validators: u16, seed: u64, committed_tps: f64, doubts: &[&str]) -> Record {
        let setup = Setup { validators, seed, rate: 10_000, ..Setup::default() };
        Record {
            format: results::FORMAT,
            experiment: "A1".to_owned(),
            preset: "default".to_owned(),
            shard: None,
            key: setup.key(),
            setup,
            measured: [("committed_tps".to_owned(), committed_tps)].into(),
            failed: None,
            signatures: Default::default(),
            started: String::new(),
            wall_s: 1.0,
            machine: Value::Null,
            details: json!({ "doubts": doubts }),
        }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn repeats_are_a_mean_with_what_they_vary_by_and_a_doubt_is_marked() {
        let records = [
            record(4, 1, 9_900.0, &[]),
            record(10, 1, 9_000.0, &["the backlog grows"]),
            record(4, 2, 10_100.0, &[]),
        ];
        let spec = TableSpec {
            rows: names(&["validators", "rate"]),
            columns: names(&["committed_tps", "restart_s"]),
            only: Vec::new(),
        };
        let expected = "\
| validators | rate | committed throughput, tx/s | restart, s |
| --- | --- | --- | --- |
| 4 | 10,000 | 10,000 ± 141 | - |
| 10 | 10,000 | 9,000* | - |
";
        assert_eq!(tabulate(&records, &spec).expect("a table"), expected);
        let only = vec![("validators".to_owned(), "10".to_owned())];
        let one = tabulate(&records, &TableSpec { only, ..spec.clone() }).expect("a table");
        assert_eq!(one.lines().count(), 3, "{one}");
        let none = vec![("validators".to_owned(), "7".to_owned())];
        let refused = tabulate(&records, &TableSpec { only: none, ..spec.clone() });
        assert_eq!(refused.unwrap_err(), "no line is of such a point");
        let unknown = TableSpec { rows: names(&["validator"]), ..spec.clone() };
        assert_eq!(tabulate(&records, &unknown).unwrap_err(), "a setup has no field 'validator'");
        let unlike = TableSpec { rows: names(&["rate"]), ..spec.clone() };
        let refused = tabulate(&records, &unlike).unwrap_err();
        assert_eq!(refused, "points of one row differ in 'validators': name it in the rows");
        let mut failed = records[..2].to_vec();
        failed.push(Record { measured: Default::default(), ..records[2].clone() });
        let part = tabulate(&failed, &spec).expect("a table");
        assert!(part.contains("| 4 | 10,000 | 9,900 (1 of 2) | - |"), "{part}");
        let unknown = TableSpec { columns: names(&["tps"]), ..spec };
        assert_eq!(tabulate(&records, &unknown).unwrap_err(), "there is no metric 'tps'");
    }
}
