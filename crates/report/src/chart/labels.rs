//! Names beside the last points of lines, where there is room for them.

use super::dots::{self, Dots, RADIUS};
use super::frame::Frame;
use super::svg::{group, text, text_width};

/// Size of the names, in pixels.
const SIZE: f64 = 12.0;
/// Points of a line, from its end, that its name may stand beside.
const ENDS: usize = 3;
/// Length of the pieces of lines that names keep off, in pixels.
const PIECE: f64 = 6.0;

/// A rectangle that is taken: left, top, right, bottom.
#[derive(Clone, Copy, Debug)]
struct Space {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Space {
    fn meets(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

/// Places for a name, seen from its point: its anchor, and its baseline's offset.
const PLACES: [(&str, f64, f64); 10] = [
    ("start", 9.0, 4.0),
    ("end", -9.0, 4.0),
    ("middle", 0.0, -9.0),
    ("middle", 0.0, 18.0),
    ("start", 9.0, -8.0),
    ("start", 9.0, 16.0),
    ("end", -9.0, -8.0),
    ("end", -9.0, 16.0),
    ("start", 9.0, -20.0),
    ("end", -9.0, -20.0),
];

/// Writes the name of each line at its end, or further back where the end is crowded: off all lines
/// if that can be, and where nothing is free it is left to the legend.
pub(super) fn draw(out: &mut String, frame: &Frame<'_>, all: &[Dots]) {
    let mut taken: Vec<Space> = all.iter().flat_map(|dots| spots(frame, dots)).collect();
    let trails: Vec<Space> = all.iter().flat_map(|dots| trail(frame, dots)).collect();
    for dots in all.iter().filter(|dots| !dots.name.is_empty()) {
        let places = places(frame, dots);
        let free = |place: &&Place| !taken.iter().any(|other| other.meets(&place.space));
        let clear = |place: &&Place| !trails.iter().any(|other| other.meets(&place.space));
        let found = places.iter().filter(free).find(clear).or_else(|| places.iter().find(free));
        let Some(place) = found else { continue };
        group(out, &dots::class(dots), |out| {
            text(out, "direct", place.anchor, place.baseline, &dots.name);
        });
        taken.push(place.space);
    }
}

/// Somewhere a name may be written.
struct Place {
    anchor: &'static str,
    baseline: (f64, f64),
    space: Space,
}

/// All places inside the axes at the last points of a line, the best first.
fn places(frame: &Frame<'_>, dots: &Dots) -> Vec<Place> {
    let ends = dots.points.iter().rev().take(ENDS);
    // Published points are larger.
    let farther = if dots.dashes.is_none() { 1.3 } else { 1.0 };
    let around = |dot: &dots::Dot| {
        let at = (frame.x(dot.x.0), frame.y(dot.y.0));
        PLACES.map(|(anchor, dx, dy)| {
            let baseline = (at.0 + farther * dx, at.1 + dy);
            Place { anchor, baseline, space: space(&dots.name, anchor, baseline) }
        })
    };
    let inside = |place: &Place| {
        let Space { left, top, right, bottom } = place.space;
        left >= frame.left
            && right <= frame.right + 10.0
            && top >= frame.top
            && bottom <= frame.bottom
    };
    ends.flat_map(around).filter(inside).collect()
}

/// Spaces that a line covers, in short pieces.
fn trail(frame: &Frame<'_>, dots: &Dots) -> Vec<Space> {
    if dots.dashes.is_none() {
        return Vec::new();
    }
    let at = |dot: &dots::Dot| (frame.x(dot.x.0), frame.y(dot.y.0));
    let piece = |pair: &[dots::Dot]| {
        let (from, to) = (at(&pair[0]), at(&pair[1]));
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let steps = (length / PIECE).ceil().max(1.0) as usize;
        (0..=steps)
            .map(|step| {
                let share = step as f64 / steps as f64;
                let (x, y) = (from.0 + share * (to.0 - from.0), from.1 + share * (to.1 - from.1));
                Space { left: x - 1.0, top: y - 1.0, right: x + 1.0, bottom: y + 1.0 }
            })
            .collect::<Vec<_>>()
    };
    dots.points.windows(2).flat_map(piece).collect()
}

fn spots(frame: &Frame<'_>, dots: &Dots) -> Vec<Space> {
    let spot = |dot: &dots::Dot| {
        let (x, y) = (frame.x(dot.x.0), frame.y(dot.y.0));
        let reach = RADIUS + 1.0;
        Space { left: x - reach, top: y - reach, right: x + reach, bottom: y + reach }
    };
    dots.points.iter().map(spot).collect()
}

fn space(words: &str, anchor: &str, baseline: (f64, f64)) -> Space {
    let width = text_width(words, SIZE);
    let left = match anchor {
        "start" => baseline.0,
        "end" => baseline.0 - width,
        _ => baseline.0 - width / 2.0,
    };
    Space { left, top: baseline.1 - SIZE + 1.0, right: left + width, bottom: baseline.1 + 3.0 }
}
