//! Points with error bars: what was measured, in order, and what others published.

use super::COLOURS;
use super::frame::Frame;
use super::svg::{escape, line, px};
use std::fmt::Write;

/// Half of a marker's width, in pixels.
pub(super) const RADIUS: f64 = 4.4;
/// Half of an error bar's end, in pixels.
const CAP: f64 = 3.5;
/// How many dashes lines have before they repeat; [`super::STYLE`] has a class for each but the first.
const DASHES: usize = 5;

/// Points of one kind, and the line through them.
#[derive(Clone, Debug, PartialEq)]
pub struct Dots {
    /// Its name in the legend and at its end.
    pub name: String,
    /// Which colour, from 0; counted round.
    pub colour: usize,
    /// How its points look.
    pub marker: Marker,
    /// Which dashes the line through them has, in the points' order; `None` for no line.
    pub dashes: Option<usize>,
    /// The points.
    pub points: Vec<Dot>,
}

/// A point, and how far it spreads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dot {
    /// On the x axis, and the standard deviation there; 0 where there is none.
    pub x: (f64, f64),
    /// On the y axis, and the standard deviation there.
    pub y: (f64, f64),
    /// What a reader who points at it is told.
    pub says: String,
}

/// How a point looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// One of five filled shapes, by number; counted round, hollow from the second round on.
    Shape(usize),
    /// A published point: a large hollow star, which nothing of ours has.
    Paper,
    /// A published bound: the value lies below it.
    PaperBelow,
    /// A published bound: the value lies above it.
    PaperAbove,
}

impl Marker {
    fn is_published(self) -> bool {
        !matches!(self, Self::Shape(_))
    }
}

/// Bars below lines below points.
pub(super) fn draw(out: &mut String, frame: &Frame<'_>, dots: &Dots) {
    let _ = writeln!(out, r#"<g class="dots {}">"#, class(dots));
    trail(out, frame, dots);
    for dot in &dots.points {
        bars(out, frame, dot);
    }
    for dot in &dots.points {
        let at = (frame.x(dot.x.0), frame.y(dot.y.0));
        spot(out, dots.marker, at, &dot.says);
    }
    out.push_str("</g>\n");
}

/// A sample for the legend, 22 pixels wide, with its middle at this height.
pub(super) fn sample(out: &mut String, dots: &Dots, left: f64, middle: f64) {
    let _ = writeln!(out, r#"<g class="dots {}">"#, class(dots));
    if let Some(dashes) = dots.dashes {
        line(out, &trail_class(dashes), (left, middle), (left + 22.0, middle));
    }
    spot(out, dots.marker, (left + 11.0, middle), "");
    out.push_str("</g>\n");
}

/// The colour of a series' parts.
pub(super) fn class(dots: &Dots) -> String {
    format!("c{}", dots.colour % COLOURS)
}

fn trail_class(dashes: usize) -> String {
    format!("trail dash{}", dashes % DASHES)
}

fn trail(out: &mut String, frame: &Frame<'_>, dots: &Dots) {
    let Some(dashes) = dots.dashes.filter(|_| dots.points.len() > 1) else { return };
    let mut path = String::new();
    for (index, dot) in dots.points.iter().enumerate() {
        let step = if index == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{step}{} {}", px(frame.x(dot.x.0)), px(frame.y(dot.y.0)));
    }
    let (class, name) = (trail_class(dashes), escape(&dots.name));
    let _ = writeln!(out, r#"<path class="{class}" data-name="{name}" d="{path}"/>"#);
}

/// One standard deviation to each side.
fn bars(out: &mut String, frame: &Frame<'_>, dot: &Dot) {
    let (x, y) = (frame.x(dot.x.0), frame.y(dot.y.0));
    let (left, right) = (frame.x(dot.x.0 - dot.x.1), frame.x(dot.x.0 + dot.x.1));
    let (top, bottom) = (frame.y(dot.y.0 + dot.y.1), frame.y(dot.y.0 - dot.y.1));
    // What lies within its marker would only blur it.
    if right - left > 2.0 * RADIUS {
        let ends =
            [left, right].map(|end| format!("M{} {}v{}", px(end), px(y - CAP), px(2.0 * CAP)));
        bar(out, &format!("M{} {}H{}{}", px(left), px(y), px(right), ends.concat()));
    }
    if bottom - top > 2.0 * RADIUS {
        let ends =
            [top, bottom].map(|end| format!("M{} {}h{}", px(x - CAP), px(end), px(2.0 * CAP)));
        bar(out, &format!("M{} {}V{}{}", px(x), px(top), px(bottom), ends.concat()));
    }
}

fn bar(out: &mut String, path: &str) {
    let _ = writeln!(out, r#"<path class="bar" fill="none" d="{path}"/>"#);
}

fn spot(out: &mut String, marker: Marker, at: (f64, f64), says: &str) {
    let class = match marker {
        Marker::Shape(number) if number >= SHAPES.len() => "spot open",
        Marker::Shape(_) => "spot",
        _ => "paper",
    };
    let size = if marker.is_published() { 1.75 * RADIUS } else { RADIUS };
    let path = outline(shape(marker), at, size);
    let _ = if says.is_empty() {
        writeln!(out, r#"<path class="{class}" d="{path}"/>"#)
    } else {
        writeln!(out, r#"<path class="{class}" d="{path}"><title>{}</title></path>"#, escape(says))
    };
}

/// Corners around a middle, in units of the marker's size; y grows downwards.
type Shape = &'static [(f64, f64)];

const SQUARE: Shape = &[(-0.86, -0.86), (0.86, -0.86), (0.86, 0.86), (-0.86, 0.86)];
const TRIANGLE: Shape = &[(0.0, -1.15), (1.05, 0.8), (-1.05, 0.8)];
const DIAMOND: Shape = &[(0.0, -1.2), (1.05, 0.0), (0.0, 1.2), (-1.05, 0.0)];
const POINTING_DOWN: Shape = &[(0.0, 1.15), (1.05, -0.8), (-1.05, -0.8)];
/// No corners: a circle.
const CIRCLE: Shape = &[];
const SHAPES: [Shape; 5] = [CIRCLE, SQUARE, TRIANGLE, DIAMOND, POINTING_DOWN];
const STAR: Shape = &[
    (0.0, -1.1),
    (0.26, -0.36),
    (1.05, -0.34),
    (0.42, 0.14),
    (0.65, 0.89),
    (0.0, 0.44),
    (-0.65, 0.89),
    (-0.42, 0.14),
    (-1.05, -0.34),
    (-0.26, -0.36),
];
const ARROW_DOWN: Shape = &[
    (-0.9, -0.7),
    (0.9, -0.7),
    (0.9, -0.35),
    (0.25, -0.35),
    (0.7, 0.2),
    (0.0, 1.1),
    (-0.7, 0.2),
    (-0.25, -0.35),
    (-0.9, -0.35),
];
const ARROW_UP: Shape = &[
    (-0.9, 0.7),
    (0.9, 0.7),
    (0.9, 0.35),
    (0.25, 0.35),
    (0.7, -0.2),
    (0.0, -1.1),
    (-0.7, -0.2),
    (-0.25, 0.35),
    (-0.9, 0.35),
];

fn shape(marker: Marker) -> Shape {
    match marker {
        Marker::Shape(number) => SHAPES[number % SHAPES.len()],
        Marker::Paper => STAR,
        Marker::PaperBelow => ARROW_DOWN,
        Marker::PaperAbove => ARROW_UP,
    }
}

fn outline(shape: Shape, at: (f64, f64), size: f64) -> String {
    if shape.is_empty() {
        let (left, y, r) = (px(at.0 - size), px(at.1), px(size));
        let width = px(2.0 * size);
        return format!("M{left} {y}a{r} {r} 0 1 0 {width} 0a{r} {r} 0 1 0 -{width} 0Z");
    }
    let corner = |(index, corner): (usize, &(f64, f64))| {
        let step = if index == 0 { 'M' } else { 'L' };
        format!("{step}{} {}", px(at.0 + size * corner.0), px(at.1 + size * corner.1))
    };
    shape.iter().enumerate().map(corner).collect::<String>() + "Z"
}
