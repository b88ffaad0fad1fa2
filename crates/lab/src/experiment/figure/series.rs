//! Results sorted into lines and points.

use super::{Figure, Kind, Repeats, names};
use crate::experiment::statistics::Spread;
use crate::experiment::{Kept, Record, RunnerKind, metrics};
use quorate_report::text::thousands;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A line of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// Number of its colour, from 0: by the value of the first field that tells lines apart.
    pub colour: usize,
    /// Number of its marker, from 0: by the second, or the first where there is one.
    pub marker: usize,
    /// Number of its pattern of dashes, from 0: by the second.
    pub dashes: usize,
    /// Its points, in order.
    pub points: Vec<Point>,
}

/// The repeats of one setup.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Value on the x axis.
    pub x: Spread,
    /// Value on the y axis.
    pub y: Spread,
    /// One of its repeats is in doubt ([`Record::doubts`]).
    pub is_doubtful: bool,
    /// Sort key that gives its place in the line.
    along: f64,
}

/// The lines of a figure, in the order of their fields' values.
#[must_use]
pub fn lines(figure: &Figure, records: &[Record]) -> Vec<Line> {
    let lines = sorted(figure, records).into_iter();
    let lines = lines.map(|(places, records)| line(figure, &places, &records));
    lines.filter(|line| !line.points.is_empty()).collect()
}

/// The results that belong on a figure, in the order of its lines.
pub(super) fn in_order<'a>(figure: &Figure, records: &'a [Record]) -> Vec<&'a Record> {
    sorted(figure, records).into_values().flatten().collect()
}

/// Results by line: which value of each field that tells lines apart it has.
fn sorted<'a>(figure: &Figure, records: &'a [Record]) -> BTreeMap<Vec<usize>, Vec<&'a Record>> {
    let chosen: Vec<&Record> = records.iter().filter(|record| belongs(figure, record)).collect();
    let values: Vec<Vec<Value>> = figure
        .series
        .iter()
        .map(|field| distinct(chosen.iter().map(|record| field_of(record, field))))
        .collect();
    let mut lines: BTreeMap<Vec<usize>, Vec<&Record>> = BTreeMap::new();
    for record in chosen {
        let place = |(field, values): (&String, &Vec<Value>)| {
            let value = field_of(record, field);
            values.iter().position(|other| *other == value).unwrap_or(0)
        };
        let places = figure.series.iter().zip(&values).map(place).collect();
        lines.entry(places).or_default().push(record);
    }
    lines
}

fn line(figure: &Figure, places: &[usize], records: &[&Record]) -> Line {
    let place = |index: usize| places.get(index).copied();
    let mut points = points(figure, records);
    points.sort_by(|a, b| a.along.total_cmp(&b.along));
    Line {
        name: line_name(figure, records[0]),
        colour: place(0).unwrap_or(0),
        marker: place(1).or_else(|| place(0)).unwrap_or(0),
        dashes: place(1).or_else(|| place(0)).unwrap_or(0) + place(2).unwrap_or(0),
        points,
    }
}

pub(super) fn line_name(figure: &Figure, record: &Record) -> String {
    let name = names::line(record, figure.label.as_deref(), &figure.series);
    figure.rename.get(&name).cloned().unwrap_or(name)
}

fn points(figure: &Figure, records: &[&Record]) -> Vec<Point> {
    let repeats = repeats(records);
    let kept = repeats.values().filter(|records| keeps_up(figure, records));
    if figure.kind == Kind::Cumulative {
        return kept.flat_map(|records| cumulative(records)).collect();
    }
    let along = figure.along.clone().unwrap_or_else(|| {
        // A measured x has no order of its own: a curve that bends back is drawn by its load.
        let measured =
            metrics::find(&figure.x).is_some() && records[0].measured.contains_key("committed_tps");
        if measured { "rate".to_owned() } else { figure.x.clone() }
    });
    let point = |records: &Vec<&Record>| {
        let drawn = |name: &str| match figure.repeats {
            Repeats::Mean => Spread::of(&numbers(records, name)),
            Repeats::Lowest => Spread::lowest(&numbers(records, name)),
        };
        Some(Point {
            x: drawn(&figure.x)?,
            y: drawn(&figure.y)?,
            is_doubtful: records.iter().any(|record| !record.doubts().is_empty()),
            along: Spread::of(&numbers(records, &along)).map_or(0.0, |spread| spread.mean),
        })
    };
    kept.filter_map(point).collect()
}

/// Results of repeats, by point.
fn repeats<'a>(records: &[&'a Record]) -> BTreeMap<String, Vec<&'a Record>> {
    let mut repeats: BTreeMap<String, Vec<&Record>> = BTreeMap::new();
    for record in records {
        repeats.entry(record.setup.without_seed()).or_default().push(record);
    }
    repeats
}

fn numbers(records: &[&Record], name: &str) -> Vec<f64> {
    records.iter().filter_map(|record| record.number(name)).collect()
}

/// A point for each per cent of the answered operations: at which latency they were answered.
fn cumulative(records: &[&Record]) -> Vec<Point> {
    let kept: Vec<Kept> = records.iter().filter_map(|record| Kept::of(&record.details)).collect();
    let point = |percent: usize| {
        let ms = kept.iter().filter_map(|kept| kept.percentiles_ms.get(percent).copied());
        let share = percent as f64;
        let x = Spread::of(&ms.collect::<Vec<_>>())?;
        let y = Spread::of(&vec![share; x.count])?;
        Some(Point { x, y, is_doubtful: false, along: share })
    };
    (0..=100).filter_map(point).collect()
}

/// Tells whether the mean of a point's goodput is near enough to what was offered, where the figure
/// asks. One that has none is not judged.
fn keeps_up(figure: &Figure, records: &[&Record]) -> bool {
    let goodput = Spread::of(&numbers(records, "goodput_tps"));
    let (Some(within), Some(goodput)) = (figure.goodput_within, goodput) else { return true };
    let offered = records[0].setup.rate as f64;
    goodput.mean >= offered * (1.0 - within / 100.0)
}

/// Points that were dropped, for their goodput is too far below what was offered; nothing if there
/// are none.
#[must_use]
pub fn dropped(figure: &Figure, records: &[Record]) -> Option<String> {
    let within = figure.goodput_within?;
    let chosen: Vec<&Record> = records.iter().filter(|record| belongs(figure, record)).collect();
    let points = repeats(&chosen);
    let short = points.values().filter(|records| !keeps_up(figure, records));
    let named = by_line(figure, short.map(|records| records[0]), "at")?;
    Some(format!(
        "Dropped, for goodput is more than {} % below the offered rate: {named}.",
        super::number(within)
    ))
}

/// Points that the figure asks for and cannot draw, for nothing was committed there; nothing if
/// there are none.
#[must_use]
pub fn left_out(figure: &Figure, records: &[Record]) -> Option<String> {
    let empty = |record: &&Record| {
        record.number("committed_tps") == Some(0.0)
            && is_wanted(figure, record)
            && !belongs(figure, record)
    };
    let named = by_line(figure, records.iter().filter(empty), "of")?;
    Some(format!("Nothing was committed, so nothing is drawn: {named}."))
}

/// Results by the name of their line and their rate, as in `BLS (of 5 and of 10 tx/s)`; nothing of
/// none.
fn by_line<'a>(
    figure: &Figure,
    records: impl Iterator<Item = &'a Record>,
    word: &str,
) -> Option<String> {
    let mut rates: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    let mut unit = "tx/s";
    for record in records {
        if record.setup.runner == RunnerKind::Transport {
            unit = "messages/s";
        }
        rates.entry(line_name(figure, record)).or_default().insert(record.setup.rate);
    }
    let one = |(name, rates): (&String, &BTreeSet<u64>)| {
        let rates: Vec<String> = rates.iter().map(|rate| thousands(*rate)).collect();
        format!("{name} ({word} {} {unit})", rates.join(&format!(" and {word} ")))
    };
    let all: Vec<String> = rates.iter().map(one).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Tells whether a result is drawn: it has the quantities on the axes, and the values that the
/// figure asks for.
fn belongs(figure: &Figure, record: &Record) -> bool {
    let has = |name: &str| record.number(name).is_some();
    let drawn = match figure.kind {
        Kind::Lines => has(&figure.x) && has(&figure.y),
        Kind::Heat | Kind::Cumulative => record.details.get(Kept::NAME).is_some(),
    };
    drawn && is_wanted(figure, record)
}

/// Tells whether a result has the values that the figure asks for.
fn is_wanted(figure: &Figure, record: &Record) -> bool {
    let setup = record.setup.to_json();
    let meets = |(field, wanted): (&String, &toml::Value)| {
        let found = setup.get(field).unwrap_or(&Value::Null);
        match wanted {
            toml::Value::Array(any) if !found.is_array() => any.iter().any(|one| same(one, found)),
            one => same(one, found),
        }
    };
    figure.only.iter().all(meets)
}

fn same(wanted: &toml::Value, found: &Value) -> bool {
    let wanted = serde_json::to_value(wanted).unwrap_or(Value::Null);
    match (wanted.as_f64(), found.as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => wanted == *found,
    }
}

fn field_of(record: &Record, field: &str) -> Value {
    record.setup.to_json().get(field).cloned().unwrap_or(Value::Null)
}

/// Each value once: numbers in their order, Ed25519 before BLS, other texts as they sort.
fn distinct(values: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut distinct: Vec<Value> = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    let rank = |value: &Value| match value {
        Value::Number(number) => (number.as_f64().unwrap_or(0.0), String::new()),
        Value::String(text) if text == "ed25519" => (-1.0, String::new()),
        other => (0.0, other.to_string()),
    };
    distinct.sort_by(|a, b| {
        let (a, b) = (rank(a), rank(b));
        a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1))
    });
    distinct
}
