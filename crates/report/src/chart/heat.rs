//! Counts by cell: how many operations took how long, and when.

use super::frame::Frame;
use super::svg::{push, px, rect, text};
use crate::text::thousands;
use maud::html;

/// Number of shades told apart.
const LEVELS: u32 = 10;

/// Counts by cell. Cells without a count are not in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Heat {
    /// Unit of the counts, for the key.
    pub counted: String,
    /// Cells with a count, in any order.
    pub cells: Vec<Cell>,
}

/// One cell of a heat map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Its left and right edge.
    pub x: (f64, f64),
    /// Its lower and upper edge.
    pub y: (f64, f64),
    /// Count of the cell; at least one.
    pub count: u64,
}

impl Heat {
    /// The most that one cell holds.
    fn most(&self) -> u64 {
        self.cells.iter().map(|cell| cell.count).max().unwrap_or(1).max(1)
    }

    /// From 0 to the last level, by the logarithm of the count: a rare slow operation must be seen.
    fn level(&self, count: u64) -> u32 {
        let share = (count.max(1) as f64).ln() / (self.most() as f64 + 1.0).ln();
        ((share * f64::from(LEVELS)) as u32).min(LEVELS - 1)
    }

    /// The cells, one path a shade.
    pub(super) fn draw(&self, out: &mut String, frame: &Frame<'_>) {
        for level in 0..LEVELS {
            let cells = self.cells.iter().filter(|cell| self.level(cell.count) == level);
            let path: String = cells.map(|cell| outline(frame, cell)).collect();
            if !path.is_empty() {
                push(out, &html! { path class={ "heat h" (level) } d=(path) {} });
            }
        }
    }

    /// The key: all shades, and what the ends mean. Its right end is at `right`.
    pub(super) fn draw_key(&self, out: &mut String, right: f64, baseline: f64) {
        const STEP: f64 = 11.0;
        let most = thousands(self.most());
        let counted = format!("{most} {}", self.counted);
        let begin = right - super::svg::text_width(&counted, 12.0) - f64::from(LEVELS) * STEP - 6.0;
        text(out, "small", "end", (begin - 6.0, baseline), "1");
        for level in 0..LEVELS {
            let at = (begin + f64::from(level) * STEP, baseline - 9.0);
            rect(out, &format!("heat h{level}"), at, (STEP, 10.0), "");
        }
        text(out, "small", "end", (right, baseline), &counted);
    }
}

fn outline(frame: &Frame<'_>, cell: &Cell) -> String {
    let (left, right) = (frame.x(cell.x.0), frame.x(cell.x.1));
    let (bottom, top) = (frame.y(cell.y.0), frame.y(cell.y.1));
    // A hair wider than the cell, or the background shines through between neighbours.
    let (width, height) = (right - left + 0.2, bottom - top + 0.2);
    if width <= 0.3 || height <= 0.3 {
        return String::new();
    }
    format!("M{} {}h{}v{}h-{}z", px(left), px(top), px(width), px(height), px(width))
}
