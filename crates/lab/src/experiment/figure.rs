//! From results to charts, by what an experiment's file says.

mod axes;
mod heat;
mod names;
mod series;

pub use series::{Line, Point, dropped, left_out, lines};

use super::Record;
use super::metrics::{self, Metric};
use quorate_report::chart::{Dot, Dots, Look, Marker, Plot, Series};
use quorate_report::text::{milliseconds, thousands};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Table;

/// One chart of an experiment, as its file says.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// A short name without spaces, for its file.
    pub name: String,
    /// Title above the figure.
    pub title: String,
    /// Note on how to read it.
    pub note: String,
    /// Form in which points are drawn.
    #[serde(default)]
    pub kind: Kind,
    /// Quantity on the x axis: a metric, or a number among the settings. Only lines say so.
    #[serde(default)]
    pub x: String,
    /// Quantity on the y axis. Only lines say so.
    #[serde(default)]
    pub y: String,
    /// Scale of x: `linear`, from zero, or `log`.
    #[serde(default)]
    pub x_scale: Scale,
    /// Scale of y, as of x.
    #[serde(default)]
    pub y_scale: Scale,
    /// The x axis' text; by default what is on it, with its unit.
    pub x_label: Option<String>,
    /// The y axis' text.
    pub y_label: Option<String>,
    /// Fields by which points are told apart: a line for each combination of their values. The
    /// first gives the colour, the second marker and dashes.
    #[serde(default)]
    pub series: Vec<String>,
    /// A line's name, with values of fields in braces, as in `{scheme}, n = {validators}`.
    pub label: Option<String>,
    /// Other names for lines, by the name that they would have.
    #[serde(default)]
    pub rename: BTreeMap<String, String>,
    /// The field in whose order a line goes through its points; by default what lies on x, or the
    /// rate where that is measured.
    pub along: Option<String>,
    /// Only points with these values; a list means any of its values.
    #[serde(default, rename = "where")]
    pub only: Table,
    /// Leaves out points whose goodput falls short of the offered rate by more than so many per
    /// cent, and names them in the note: what is offered more than it takes has no latency of its
    /// own, only one that grows for as long as the load lasts. Goodput above the rate is none:
    /// answers come in bursts, and the first one counts.
    pub goodput_within: Option<f64>,
    /// The greatest x shown; points beyond lie on the edge.
    pub x_max: Option<f64>,
    /// The greatest y shown.
    pub y_max: Option<f64>,
    /// Part of a point's repeats that is drawn.
    #[serde(default)]
    pub repeats: Repeats,
    /// Published values to stand beside the lines.
    #[serde(default)]
    pub paper: Vec<Published>,
}

impl Figure {
    /// The names of all fields.
    pub const FIELDS: [&'static str; 20] = [
        "name",
        "title",
        "note",
        "kind",
        "x",
        "y",
        "x_scale",
        "y_scale",
        "x_label",
        "y_label",
        "series",
        "label",
        "rename",
        "along",
        "where",
        "goodput_within",
        "x_max",
        "y_max",
        "repeats",
        "paper",
    ];

    /// The metrics on its axes.
    pub(crate) fn axes(&self) -> [Option<&'static Metric>; 2] {
        match self.kind {
            Kind::Lines => [metrics::on_axis(&self.x), metrics::on_axis(&self.y)],
            Kind::Cumulative => [Some(&metrics::ANSWERED_WITHIN), Some(&metrics::ANSWERED_SHARE)],
            Kind::Heat => [Some(&metrics::DUE), Some(&metrics::ANSWERED_WITHIN)],
        }
    }
}

/// Form in which points are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Lines through the points, each the mean of its repeats.
    #[default]
    Lines,
    /// For each point a panel that shows how many operations took how long over time, of its first
    /// repeat. Its points have `keep_latencies`.
    Heat,
    /// For each point a line: the share of the answered operations that had each latency or less,
    /// the mean of the repeats. Its points have `keep_latencies`.
    Cumulative,
}

/// Scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Evenly, and from zero on.
    #[default]
    Linear,
    /// By the logarithm of the value.
    Log,
}

/// Part of a point's repeats that is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repeats {
    /// Their mean, with the standard deviation.
    #[default]
    Mean,
    /// The lowest, for times of pure computation: whoever shares the machine makes them longer, and
    /// nobody makes them shorter.
    Lowest,
}

/// Points that somebody published.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Its name in the legend.
    pub name: String,
    /// The line of ours that it stands beside, and whose colour it has; by its name.
    pub beside: Option<String>,
    /// The points: x and y, in the axes' units.
    pub points: Vec<[f64; 2]>,
    /// Relation of y to the true value: `at`, `below` or `above`.
    #[serde(default)]
    pub bound: Bound,
    /// Source of the value, and the way in which it was read there.
    pub source: String,
}

impl Published {
    /// The names of all fields.
    pub const FIELDS: [&'static str; 5] = ["name", "beside", "points", "bound", "source"];
}

/// Relation of a published number to the true value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// It is the value.
    #[default]
    At,
    /// The value is lower.
    Below,
    /// The value is higher.
    Above,
}

/// The charts for which there are results, in the file's order; of heat maps one for each panel.
#[must_use]
pub fn plots(figure: &Figure, records: &[Record]) -> Vec<Plot> {
    match figure.kind {
        Kind::Heat => heat::panels(figure, records),
        Kind::Lines | Kind::Cumulative => plot(figure, records).into_iter().collect(),
    }
}

/// Note on points that are in doubt.
const IN_DOUBT: &str = "Crosses are in doubt, for what the table of doubts says.";

/// The lines in one chart, unless no result belongs on it.
fn plot(figure: &Figure, records: &[Record]) -> Option<Plot> {
    let lines = lines(figure, records);
    if lines.is_empty() {
        return None;
    }
    let mut dots: Vec<Dots> = lines.iter().map(|line| drawn(figure, line)).collect();
    let drawn = dots.clone();
    dots.extend(figure.paper.iter().map(|paper| published(paper, &drawn)));
    let (x, y) = axes::of(figure, &dots);
    let mut series = Vec::new();
    if figure.kind == Kind::Cumulative {
        // A hundred points of each line would hide it: it is drawn as one.
        series = lines.iter().map(cumulative).collect();
        dots.drain(..lines.len());
    }
    let crosses = lines.iter().flat_map(|line| &line.points).any(|point| point.is_doubtful);
    let crosses = crosses.then(|| IN_DOUBT.to_owned());
    let notes = [dropped(figure, records), left_out(figure, records), crosses];
    let notes: String = notes.into_iter().flatten().map(|text| format!(" {text}")).collect();
    Some(Plot {
        name: figure.name.clone().into(),
        title: figure.title.clone(),
        note: format!("{}{notes}", figure.note),
        x,
        y,
        series,
        heat: None,
        marks: Vec::new(),
        notches: None,
        shade: None,
        dots,
    })
}

fn cumulative(line: &Line) -> Series {
    let points = line.points.iter().map(|point| (point.x.mean, Some(point.y.mean)));
    Series {
        name: line.name.clone(),
        colour: line.colour,
        look: if line.dashes == 0 { Look::Strong } else { Look::Dashed },
        points: points.collect(),
    }
}

fn drawn(figure: &Figure, line: &Line) -> Dots {
    let [unit_x, unit_y] = figure.axes().map(|metric| metric.map_or("", |metric| metric.unit));
    let dot = |point: &series::Point| {
        let spread = |of: &super::statistics::Spread| (of.mean, of.deviation);
        let (x, y) = (spread(&point.x), spread(&point.y));
        let repeats = match (point.y.count, figure.repeats) {
            (1, _) => "one run".to_owned(),
            (count, Repeats::Mean) => format!("{count} runs"),
            (count, Repeats::Lowest) => format!("lowest of {count} runs"),
        };
        let says = format!(
            "{}: {} at {} ({repeats})",
            line.name,
            with_deviation(y, unit_y),
            with_deviation(x, unit_x),
        );
        Dot { x, y, is_doubtful: point.is_doubtful, says }
    };
    Dots {
        name: line.name.clone(),
        colour: line.colour,
        marker: Marker::Shape(line.marker),
        dashes: Some(line.dashes),
        points: line.points.iter().map(dot).collect(),
    }
}

fn published(paper: &Published, ours: &[Dots]) -> Dots {
    let beside = ours.iter().find(|dots| Some(&dots.name) == paper.beside.as_ref());
    let marker = match paper.bound {
        Bound::At => Marker::Paper,
        Bound::Below => Marker::PaperBelow,
        Bound::Above => Marker::PaperAbove,
    };
    let dot = |point: &[f64; 2]| Dot {
        x: (point[0], 0.0),
        y: (point[1], 0.0),
        is_doubtful: false,
        says: format!("{}: {}", paper.name, paper.source),
    };
    Dots {
        name: paper.name.clone(),
        // Grey where it stands beside nothing.
        colour: beside.map_or(6, |dots| dots.colour),
        marker,
        dashes: None,
        points: paper.points.iter().map(dot).collect(),
    }
}

fn with_deviation((mean, deviation): (f64, f64), unit: &str) -> String {
    let spread = if deviation > 0.0 { format!(" ± {}", number(deviation)) } else { String::new() };
    format!("{}{spread} {unit}", number(mean)).trim_end().to_owned()
}

/// A number for people: three digits, thousands separated.
#[must_use]
pub fn number(value: f64) -> String {
    if value < 0.0 {
        return format!("−{}", number(-value));
    }
    match value {
        whole if whole.fract() == 0.0 => thousands(whole as u64),
        small if small < 0.01 => format!("{small:.4}"),
        other => milliseconds(other),
    }
}
