//! Series of points: what was measured, in order, and what others published; and how one looks.

use super::COLOURS;
use super::svg::{group, line, push, px};
use maud::html;

/// Half of a marker's width, in pixels.
pub(super) const RADIUS: f64 = 4.4;
/// Number of patterns of dashes before they repeat; [`super::STYLE`] has a class for each but the
/// first.
const DASHES: usize = 5;

/// Points of one kind, and the line through them.
#[derive(Clone, Debug, PartialEq)]
pub struct Dots {
    /// Its name in the legend and at its end.
    pub name: String,
    /// Number of its colour, from 0; counted round.
    pub colour: usize,
    /// Look of its points.
    pub marker: Marker,
    /// Pattern of dashes of the line through the points, in their order; `None` for no line.
    pub dashes: Option<usize>,
    /// Points in the order of the line.
    pub points: Vec<Dot>,
}

/// A point, and how far it spreads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dot {
    /// On the x axis, and the standard deviation there; 0 where there is none.
    pub x: (f64, f64),
    /// On the y axis, and the standard deviation there.
    pub y: (f64, f64),
    /// It is in doubt: a cross is drawn in its marker's place.
    pub is_doubtful: bool,
    /// Title for a reader who points at it.
    pub says: String,
}

/// Look of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// One of five filled shapes, by number; counted round, hollow from the second round on.
    Shape(usize),
    /// A point that is in doubt: a cross, whatever its series.
    Doubtful,
    /// A published point: a large hollow star, which nothing of ours has.
    Paper,
    /// A published bound: the value lies below it.
    PaperBelow,
    /// A published bound: the value lies above it.
    PaperAbove,
}

impl Marker {
    fn is_published(self) -> bool {
        !matches!(self, Self::Shape(_) | Self::Doubtful)
    }
}

/// A sample for the legend, 22 pixels wide, with its middle at this height.
pub(super) fn sample(out: &mut String, dots: &Dots, left: f64, middle: f64) {
    group(out, &format!("dots {}", class(dots)), |out| {
        if let Some(dashes) = dots.dashes {
            line(out, &trail_class(dashes), (left, middle), (left + 22.0, middle));
        }
        spot(out, dots.marker, (left + 11.0, middle), "");
    });
}

/// The colour of a series' parts.
pub(super) fn class(dots: &Dots) -> String {
    format!("c{}", dots.colour % COLOURS)
}

/// The class of a line with this pattern of dashes.
pub(super) fn trail_class(dashes: usize) -> String {
    format!("trail dash{}", dashes % DASHES)
}

/// Draws one point; `says` is its title for a reader who points at it.
pub(super) fn spot(out: &mut String, marker: Marker, at: (f64, f64), says: &str) {
    let class = match marker {
        Marker::Shape(number) if number >= SHAPES.len() => "spot open",
        Marker::Shape(_) | Marker::Doubtful => "spot",
        _ => "paper",
    };
    let size = if marker.is_published() { 1.75 * RADIUS } else { RADIUS };
    let path = outline(shape(marker), at, size);
    let title = html! { @if !says.is_empty() { title { (says) } } };
    push(out, &html! { path class=(class) d=(path) { (title) } });
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
const CROSS: Shape = &[
    (-1.1, -0.7),
    (-0.7, -1.1),
    (0.0, -0.4),
    (0.7, -1.1),
    (1.1, -0.7),
    (0.4, 0.0),
    (1.1, 0.7),
    (0.7, 1.1),
    (0.0, 0.4),
    (-0.7, 1.1),
    (-1.1, 0.7),
    (-0.4, 0.0),
];
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
        Marker::Doubtful => CROSS,
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
