//! Everything around the data: axes, grid, marks, legend.

use super::dots::{self, Dots};
use super::svg::{line, rect, text, text_width};
use super::{COLOURS, Look, Plot, Series};
use crate::text::thousands;

/// Size of ticks' and legends' text, in pixels.
pub(super) const TEXT: f64 = 12.0;
/// Height of one line of legend or of moments' names.
const ROW: f64 = 17.0;
/// Room for tick texts and the label under the x axis.
const FOOT: f64 = 38.0;

/// Layout of a plot: positions of its values in the drawing.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    plot: &'a Plot,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    /// The whole drawing, below the data as well.
    pub(super) height: f64,
    legend: Vec<Vec<Entry>>,
    /// Texts of the marks, with the row in which each has room.
    mark_rows: Vec<usize>,
}

/// One entry of the legend.
#[derive(Clone, Debug)]
struct Entry {
    sample: Sample,
    words: String,
}

#[derive(Clone, Debug)]
enum Sample {
    Line(String),
    Area(String),
    Notch,
    Dots(Box<Dots>),
}

impl<'a> Frame<'a> {
    /// Room for the texts of a plot's y axis.
    pub(super) fn margin(plot: &Plot, height: f64) -> f64 {
        let widest = |texts: Vec<(f64, String)>| {
            texts.iter().map(|tick| text_width(&tick.1, TEXT)).fold(0.0, f64::max)
        };
        (widest(plot.y.ticks(tick_count(height, 44.0))) + 12.0).max(34.0)
    }

    /// Lays a plot out: `height` is that of the space between the axes, which begins at `left`.
    pub(super) fn new(plot: &'a Plot, width: f64, height: f64, left: f64) -> Self {
        let right = width - 14.0;
        let legend = legend(plot, width - 8.0);
        let mut frame = Self {
            plot,
            left,
            right,
            top: 0.0,
            bottom: 0.0,
            height: 0.0,
            legend,
            mark_rows: Vec::new(),
        };
        frame.mark_rows = frame.rows_of_marks();
        let rows = frame.mark_rows.iter().map(|row| row + 1).max().unwrap_or(0);
        frame.top = frame.above() + 9.0 + ROW * rows as f64;
        frame.bottom = frame.top + height;
        frame.height = frame.bottom + FOOT;
        frame
    }

    /// Position of a value of the x axis.
    pub(super) fn x(&self, value: f64) -> f64 {
        self.left + self.plot.x.share(value) * (self.right - self.left)
    }

    /// Position of a value of the y axis.
    pub(super) fn y(&self, value: f64) -> f64 {
        self.bottom - self.plot.y.share(value) * (self.bottom - self.top)
    }

    /// Draws everything under the data.
    pub(super) fn draw_under(&self, out: &mut String) {
        self.draw_shade(out);
        for (value, words) in self.plot.y.ticks(tick_count(self.bottom - self.top, 44.0)) {
            let y = self.y(value);
            line(out, "grid", (self.left, y), (self.right, y));
            text(out, "tick", "end", (self.left - 6.0, y + 4.0), &words);
        }
        for (value, words) in self.x_ticks() {
            let x = self.x(value);
            line(out, "grid", (x, self.top), (x, self.bottom));
            text(out, "tick", "middle", (x, self.bottom + 16.0), &words);
        }
    }

    /// Draws everything over the data.
    pub(super) fn draw_over(&self, out: &mut String) {
        line(out, "axis", (self.left, self.bottom), (self.right, self.bottom));
        let middle = f64::midpoint(self.left, self.right);
        text(out, "label", "middle", (middle, self.bottom + 33.0), &self.plot.x.label);
        let above = self.above();
        text(out, "label", "start", (2.0, above), &self.plot.y.label);
        if let Some(heat) = &self.plot.heat {
            let key = if self.key_apart() { above - ROW - 2.0 } else { above };
            heat.draw_key(out, self.right, key);
        }
        self.name_shade(out);
        self.draw_marks(out);
        self.draw_peaks(out);
        self.draw_notches(out);
        self.draw_legend(out);
    }

    /// Baseline of the y axis' label.
    fn above(&self) -> f64 {
        // The key of a heat map gets a row of its own where both do not fit into one.
        let key = if self.key_apart() { ROW } else { 0.0 };
        ROW * (self.legend.len() + 1) as f64 + key
    }

    fn key_apart(&self) -> bool {
        self.plot.heat.is_some() && self.right < 520.0
    }

    fn draw_shade(&self, out: &mut String) {
        let Some((from, to, name)) = &self.plot.shade else { return };
        let (left, right) = (self.x(*from), self.x(*to));
        if right - left < 1.0 {
            return;
        }
        rect(out, "shade", (left, self.top), (right - left, self.bottom - self.top), name);
    }

    fn name_shade(&self, out: &mut String) {
        if let (Some((_, _, name)), Some((begin, _))) = (&self.plot.shade, self.span_of_shade()) {
            text(out, "small inside", "start", (begin, self.top + 14.0), name);
        }
    }

    /// Left and right end of the shade's name; `None` where it does not fit.
    fn span_of_shade(&self) -> Option<(f64, f64)> {
        let (from, to, name) = self.plot.shade.as_ref()?;
        let (left, right, width) = (self.x(*from), self.x(*to), text_width(name, TEXT));
        (right - left > width + 6.0).then_some((left + 4.0, left + 4.0 + width))
    }

    /// Writes the values that do not fit between the axes at the upper edge, beside the lines that
    /// leave there, and below the shade's name where they would meet it.
    fn draw_peaks(&self, out: &mut String) {
        let mut peaks: Vec<(f64, f64)> =
            self.plot.series.iter().flat_map(|s| self.peaks(s)).collect();
        peaks.sort_by(|a, b| b.1.total_cmp(&a.1));
        let apart = |begin: f64, end: f64, other: (f64, f64)| begin > other.1 || end < other.0;
        let shade = self.span_of_shade();
        let mut taken: Vec<(f64, f64)> = Vec::new();
        for (at, value) in peaks {
            let words = format!("↑ {}", thousands(value.round() as u64));
            let (x, width) = (self.x(at) + 4.0, text_width(&words, TEXT) + 8.0);
            let begin = if x + width > self.right { x - width - 4.0 } else { x };
            let end = begin + width;
            if taken.iter().all(|other| apart(begin, end, *other)) {
                let is_free = shade.is_none_or(|name| apart(begin, end, name));
                let row = if is_free { 0.0 } else { ROW };
                text(out, "small inside", "start", (begin, self.top + 14.0 + row), &words);
                taken.push((begin, end));
            }
        }
    }

    /// The greatest value of each stretch that leaves the chart above, and where it is.
    fn peaks(&self, series: &Series) -> Vec<(f64, f64)> {
        let high = self.plot.y.high;
        let over = |point: &(f64, Option<f64>)| Some((point.0, point.1.filter(|y| *y > high)?));
        let stretches = series.points.split(|point| over(point).is_none());
        let greatest = |stretch: &[(f64, Option<f64>)]| {
            stretch.iter().filter_map(over).max_by(|a, b| a.1.total_cmp(&b.1))
        };
        stretches.filter_map(greatest).collect()
    }

    fn x_ticks(&self) -> Vec<(f64, String)> {
        let mut end = f64::MIN;
        let ticks = self.plot.x.ticks(tick_count(self.right - self.left, 62.0));
        // Texts of a bent axis can meet: those that would are left out.
        let fits = |tick: &(f64, String)| {
            let (middle, half) = (self.x(tick.0), text_width(&tick.1, TEXT) / 2.0);
            let free = middle - half > end + 4.0;
            if free {
                end = middle + half;
            }
            free
        };
        ticks.into_iter().filter(fits).collect()
    }

    fn rows_of_marks(&self) -> Vec<usize> {
        let mut ends: Vec<f64> = Vec::new();
        let row = |mark: &super::Mark| {
            let (begin, end) = self.span_of_mark(mark);
            let row = ends.iter().position(|&taken| taken + 8.0 < begin).unwrap_or(ends.len());
            if row == ends.len() {
                ends.push(end);
            }
            ends[row] = end;
            row
        };
        self.plot.marks.iter().map(row).collect()
    }

    /// Left and right end of a mark's name: right of its line, unless the edge is near.
    fn span_of_mark(&self, mark: &super::Mark) -> (f64, f64) {
        let (x, width) = (self.x(mark.at), text_width(&mark.text, TEXT));
        let begin = (x - 4.0).min(self.right - width).max(self.left);
        (begin, begin + width)
    }

    fn draw_marks(&self, out: &mut String) {
        let rows = self.mark_rows.iter().map(|row| row + 1).max().unwrap_or(0);
        for (mark, row) in self.plot.marks.iter().zip(&self.mark_rows) {
            let x = self.x(mark.at);
            let baseline = self.top - 6.0 - ROW * (rows - 1 - row) as f64;
            line(out, "mark", (x, baseline + 3.0), (x, self.bottom));
            text(out, "mark-name", "start", (self.span_of_mark(mark).0, baseline), &mark.text);
        }
    }

    fn draw_notches(&self, out: &mut String) {
        let Some(notches) = &self.plot.notches else { return };
        for (at, words) in &notches.at {
            rect(out, "notch", (self.x(*at) - 1.5, self.bottom - 8.0), (3.0, 8.0), words);
        }
    }

    fn draw_legend(&self, out: &mut String) {
        for (row, entries) in self.legend.iter().enumerate() {
            let baseline = ROW * (row + 1) as f64 - 5.0;
            let mut x = 2.0;
            for entry in entries {
                let middle = baseline - 4.0;
                match &entry.sample {
                    Sample::Line(class) => line(out, class, (x, middle), (x + 22.0, middle)),
                    Sample::Area(class) => rect(out, class, (x, middle - 5.0), (22.0, 9.0), ""),
                    Sample::Dots(kind) => dots::sample(out, kind, x, middle),
                    Sample::Notch => rect(out, "notch", (x + 9.0, middle - 5.0), (3.0, 9.0), ""),
                }
                text(out, "key", "start", (x + 27.0, baseline), &entry.words);
                x += entry.width();
            }
        }
    }

    /// Scale, pixels and values of both axes, from which a script finds values again.
    pub(super) fn readout(&self) -> [String; 2] {
        let axis = |axis: &super::Axis, from: f64, to: f64| {
            let kind = format!("{:?}", axis.kind).to_lowercase();
            format!("{kind} {from:.1} {to:.1} {} {} {}", axis.low, axis.high, axis.unit)
        };
        let x = axis(&self.plot.x, self.left, self.right);
        [x, axis(&self.plot.y, self.bottom, self.top)]
    }
}

impl Entry {
    fn width(&self) -> f64 {
        27.0 + text_width(&self.words, TEXT) + 16.0
    }
}

/// The classes of a line.
pub(super) fn class_of(series: &Series) -> String {
    let look = match series.look {
        Look::Strong => "strong",
        Look::Plain => "plain",
        Look::Dashed => "dashed",
        Look::Dotted => "dotted",
        Look::Faint => "faint",
        Look::Reference => return "line reference".to_owned(),
        Look::Steps => "steps",
    };
    let repeated = if series.colour >= COLOURS { " again" } else { "" };
    format!("line {look} c{}{repeated}", series.colour % COLOURS)
}

fn legend(plot: &Plot, width: f64) -> Vec<Vec<Entry>> {
    let named = plot.series.iter().filter(|series| !series.name.is_empty());
    let mut entries: Vec<Entry> = named
        .map(|series| Entry { sample: sample_of(series), words: series.name.clone() })
        .collect();
    if let Some(notches) = plot.notches.as_ref().filter(|notches| !notches.at.is_empty()) {
        entries.push(Entry { sample: Sample::Notch, words: notches.name.clone() });
    }
    for dots in plot.dots.iter().filter(|dots| !dots.name.is_empty()) {
        let sample = Sample::Dots(Box::new(Dots { points: Vec::new(), ..dots.clone() }));
        entries.push(Entry { sample, words: dots.name.clone() });
    }
    let mut rows: Vec<Vec<Entry>> = Vec::new();
    let mut used = f64::MAX;
    for entry in entries {
        if used + entry.width() > width {
            rows.push(Vec::new());
            used = 0.0;
        }
        used += entry.width();
        rows.last_mut().expect("a row was opened").push(entry);
    }
    rows
}

fn sample_of(series: &Series) -> Sample {
    let class = class_of(series);
    if series.look == Look::Steps { Sample::Area(class) } else { Sample::Line(class) }
}

fn tick_count(pixels: f64, each: f64) -> usize {
    (pixels / each).round().max(2.0) as usize
}
