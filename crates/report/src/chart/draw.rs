//! From plots to SVG.

use super::frame::{Frame, TEXT, class_of};
use super::plain::plain;
use super::svg::{push, px, text, wrap};
use super::{LIGHT_STYLE, Look, Plot, STYLE, Series, Size, labels, points};
use crate::text::printable;
use maud::{PreEscaped, html};
use std::fmt::Write;

/// Room around a chart that stands alone, in pixels.
const MARGIN: f64 = 16.0;

/// Room below a chart, in pixels.
const BELOW: f64 = 12.0;

/// A kind of line above a chart; sizes in pixels.
#[derive(Clone, Copy)]
struct Line {
    class: &'static str,
    /// Size of its text.
    size: f64,
    /// From its top to its baseline.
    baseline: f64,
    /// From its top to the next line's.
    height: f64,
    /// Room after the last.
    after: f64,
}

const HEADING: Line =
    Line { class: "heading", size: 17.0, baseline: 16.0, height: 22.0, after: 8.0 };
const NOTE: Line = Line { class: "small", size: TEXT, baseline: 8.0, height: 18.0, after: 0.0 };
const TITLE: Line = Line { class: "title", size: 14.0, baseline: 18.0, height: 20.0, after: 8.0 };

/// Indent of the axes of these charts with which they begin under one another, in pixels.
#[must_use]
pub fn indent<'a>(plots: impl IntoIterator<Item = &'a Plot>, size: Size) -> f64 {
    let margins = plots.into_iter().map(|plot| Frame::margin(plot, size.height));
    margins.fold(0.0, f64::max)
}

/// A chart for a page that has [`STYLE`] already and gives it a title. Its axes begin at `indent`,
/// which [`indent`] tells.
#[must_use]
pub fn svg(plot: &Plot, size: Size, indent: f64) -> String {
    let frame = Frame::new(plot, size.width, size.height, indent);
    let (width, height) = (px(size.width), px(frame.height));
    let mut drawn = String::from("\n");
    panel(&mut drawn, plot, &frame, 0.0, 0.0);
    let label = format!("{}. {}", plot.title, plot.note);
    let image = html! {
        svg.chart viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height) role="img"
            aria-label=(label) { (PreEscaped(drawn)) }
    };
    printable(image.0 + "\n")
}

/// Charts under one another as a file of their own, with a heading, background and style.
#[must_use]
pub fn standalone(heading: &str, lines: &[String], plots: &[Plot], size: Size) -> String {
    styled(STYLE, heading, lines, plots, size)
}

/// The same on a light background, whatever its reader prefers, and without variables, which not
/// every viewer knows: for documents.
#[must_use]
pub fn standalone_light(heading: &str, lines: &[String], plots: &[Plot], size: Size) -> String {
    styled(&plain(LIGHT_STYLE), heading, lines, plots, size)
}

fn styled(style: &str, heading: &str, lines: &[String], plots: &[Plot], size: Size) -> String {
    let inner = size.width - 2.0 * MARGIN;
    let wrapped = |line: &str, one: Line| wrap(line, one.size, inner);
    let heading_lines = wrapped(heading, HEADING);
    let lines: Vec<String> = lines.iter().flat_map(|line| wrapped(line, NOTE)).collect();
    let left = indent(plots, size);
    let mut drawn = String::from("\n");
    let mut y = write_lines(&mut drawn, HEADING, MARGIN, &heading_lines);
    y = write_lines(&mut drawn, NOTE, y, &lines);
    for plot in plots {
        let frame = Frame::new(plot, inner, size.height, left);
        y = write_lines(&mut drawn, TITLE, y, &wrapped(&plot.title, TITLE));
        panel(&mut drawn, plot, &frame, MARGIN, y);
        y += frame.height + BELOW;
    }
    file(style, heading, drawn, Size { width: size.width, height: y + MARGIN })
}

/// Writes lines under one another, and returns where they end.
fn write_lines(drawn: &mut String, one: Line, top: f64, lines: &[String]) -> f64 {
    let mut y = top;
    for line in lines {
        text(drawn, one.class, "start", (MARGIN, y + one.baseline), line);
        y += one.height;
    }
    if lines.is_empty() { y } else { y + one.after }
}

/// A file of its own around what was drawn.
fn file(style: &str, heading: &str, drawn: String, size: Size) -> String {
    let (width, height) = (px(size.width), px(size.height));
    let (inner_width, inner_height) = (px(size.width - 1.0), px(size.height - 1.0));
    let image = html! {
        svg xmlns="http://www.w3.org/2000/svg" class="chart alone"
            viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height) role="img" {
            title { (heading) }
            style { (PreEscaped(style)) }
            rect.ground x="0.5" y="0.5" width=(inner_width) height=(inner_height) rx="8" {}
            (PreEscaped(drawn))
        }
    };
    printable(image.0 + "\n")
}

fn panel(out: &mut String, plot: &Plot, frame: &Frame<'_>, x: f64, y: f64) {
    let moved = x != 0.0 || y != 0.0;
    let place = moved.then(|| format!("translate({} {})", px(x), px(y)));
    let mut drawn = String::from("\n");
    frame.draw_under(&mut drawn);
    if let Some(heat) = &plot.heat {
        heat.draw(&mut drawn, frame);
    }
    for series in &plot.series {
        draw_series(&mut drawn, frame, series);
    }
    for dots in &plot.dots {
        points::draw(&mut drawn, frame, dots);
    }
    labels::draw(&mut drawn, frame, &plot.dots);
    frame.draw_over(&mut drawn);
    let [x, y] = frame.readout();
    push(out, &html! { g.panel data-x=(x) data-y=(y) transform=[place] { (PreEscaped(drawn)) } });
}

fn draw_series(out: &mut String, frame: &Frame<'_>, series: &Series) {
    let path = match series.look {
        Look::Steps => steps(frame, &series.points),
        _ => polyline(frame, &series.points),
    };
    if !path.is_empty() {
        let class = class_of(series);
        push(out, &html! { path class=(class) data-name=(series.name) d=(path) {} });
    }
}

/// A line through the points that there are; a lonely one becomes a dot.
fn polyline(frame: &Frame<'_>, points: &[(f64, Option<f64>)]) -> String {
    let finite = |value: &Option<f64>| value.filter(|value| value.is_finite());
    let mut path = String::new();
    let mut open = false;
    for (index, (x, y)) in points.iter().enumerate() {
        let Some(y) = finite(y) else {
            open = false;
            continue;
        };
        let (left, top) = (px(frame.x(*x)), px(frame.y(y)));
        let _ = write!(path, "{}{left} {top}", if open { 'L' } else { 'M' });
        let followed = points.get(index + 1).is_some_and(|next| finite(&next.1).is_some());
        if !open && !followed {
            path.push_str("h0.1");
        }
        open = true;
    }
    path
}

/// Steps down to the lower edge. The last point only ends the step before it.
fn steps(frame: &Frame<'_>, points: &[(f64, Option<f64>)]) -> String {
    let [first, ..] = points else { return String::new() };
    let mut path = format!("M{} {}", px(frame.x(first.0)), px(frame.bottom));
    for pair in points.windows(2) {
        let y = pair[0].1.filter(|value| value.is_finite()).map_or(frame.bottom, |y| frame.y(y));
        let _ = write!(path, "V{}H{}", px(y), px(frame.x(pair[1].0)));
    }
    let _ = write!(path, "V{}Z", px(frame.bottom));
    path
}
