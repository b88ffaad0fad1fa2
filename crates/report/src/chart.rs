//! Charts as SVG, drawn here so that a page needs nothing but itself.
//!
//! A [`Plot`] is data and labels. Drawing it is arithmetic: no fonts are measured, no script is
//! needed to read it, and colours are classes, so that one style sheet serves light and dark. Every
//! figure states its units on its axes. Text that came from outside is escaped where it is written.

mod dots;
mod draw;
mod frame;
mod heat;
mod labels;
mod plain;
mod points;
mod scale;
mod svg;

pub use dots::{Dot, Dots, Marker};
pub use draw::{indent, standalone, standalone_light, svg};
pub use heat::{Cell, Heat};
pub use scale::{Axis, Kind};

use std::borrow::Cow;

/// The style sheet of every chart: colours by class, for light and for dark.
pub const STYLE: &str = concat!(include_str!("chart/style.css"), include_str!("chart/dark.css"));

/// The same for light alone: figures that are put into documents do not change with their reader.
pub const LIGHT_STYLE: &str = include_str!("chart/style.css");

/// Number of colours before they repeat; series from then on are told apart by dashes.
pub const COLOURS: usize = 8;

/// Size of a chart, in CSS pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// From left to right.
    pub width: f64,
    /// From top to bottom, without legend and title.
    pub height: f64,
}

/// One chart: axes, what is drawn between them, and what is marked.
#[derive(Clone, Debug)]
pub struct Plot {
    /// A short name without spaces, by which the chart is asked for.
    pub name: Cow<'static, str>,
    /// Title above the chart.
    pub title: String,
    /// A sentence that says how to read it.
    pub note: String,
    /// From left to right.
    pub x: Axis,
    /// From bottom to top.
    pub y: Axis,
    /// Lines and areas, in drawing order.
    pub series: Vec<Series>,
    /// Counts by cell, drawn below the lines.
    pub heat: Option<Heat>,
    /// Moments with a name.
    pub marks: Vec<Mark>,
    /// Small marks along the lower edge, all of one kind.
    pub notches: Option<Notches>,
    /// A stretch of the x axis that does not count, and its name.
    pub shade: Option<(f64, f64, String)>,
    /// Points with error bars, drawn over everything else.
    pub dots: Vec<Dots>,
}

/// One line of a chart.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend; lines without one are not in it.
    pub name: String,
    /// Number of its colour, from 0; counted round.
    pub colour: usize,
    /// Style in which it is drawn.
    pub look: Look,
    /// Its points in ascending x; a gap where there is no y.
    pub points: Vec<(f64, Option<f64>)>,
}

/// Style of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Subject of the chart.
    Strong,
    /// Line that the subject is compared with.
    Plain,
    /// A second line of the same colour.
    Dashed,
    /// A third line of the same colour.
    Dotted,
    /// One of many lines of the same kind.
    Faint,
    /// A reference, in grey whatever its colour.
    Reference,
    /// Steps with the area below them filled: each point is the left end of a step.
    Steps,
}

/// A moment with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Position on the x axis.
    pub at: f64,
    /// Name, written beside its line.
    pub text: String,
}

/// Small marks along the lower edge.
#[derive(Clone, Debug, PartialEq)]
pub struct Notches {
    /// Name of their kind, for the legend.
    pub name: String,
    /// Position on the x axis, and the title for a reader who points at it.
    pub at: Vec<(f64, String)>,
}

#[cfg(test)]
mod tests;
