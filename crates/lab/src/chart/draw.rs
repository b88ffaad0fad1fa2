//! From plots to SVG.

use super::frame::{Frame, TEXT, class_of};
use super::svg::{escape, px, text, wrap};
use super::{LIGHT_STYLE, Look, Plot, STYLE, Series, Size, dots, labels};
use std::fmt::Write;

/// Room around a chart that stands alone, in pixels.
const MARGIN: f64 = 16.0;

/// Room for a chart's title and below the chart, in pixels.
const PANEL: f64 = 40.0;

/// How far the axes of these charts must be indented to begin under one another, in pixels.
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
    let mut out = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\" aria-label=\"{}\">\n",
        escape(&format!("{}. {}", plot.title, plot.note)),
    );
    panel(&mut out, plot, &frame, 0.0, 0.0);
    out.push_str("</svg>\n");
    out
}

/// Charts under one another as a file of their own, with a heading, background and style.
#[must_use]
pub fn standalone(heading: &str, lines: &[String], plots: &[Plot], size: Size) -> String {
    styled(STYLE, heading, lines, plots, size)
}

/// The same on a light background, whatever its reader prefers: for documents.
#[must_use]
pub fn standalone_light(heading: &str, lines: &[String], plots: &[Plot], size: Size) -> String {
    styled(LIGHT_STYLE, heading, lines, plots, size)
}

fn styled(style: &str, heading: &str, lines: &[String], plots: &[Plot], size: Size) -> String {
    let inner = size.width - 2.0 * MARGIN;
    let lines: Vec<String> = lines.iter().flat_map(|line| wrap(line, TEXT, inner)).collect();
    let head = if heading.is_empty() { 0.0 } else { 30.0 } + 18.0 * lines.len() as f64;
    let left = indent(plots, size);
    let frames: Vec<_> = plots.iter().map(|p| Frame::new(p, inner, size.height, left)).collect();
    let panels: f64 = frames.iter().map(|frame| frame.height + PANEL).sum();
    let (width, height) = (px(size.width), px(head + panels + 2.0 * MARGIN));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart alone\" \
         viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n\
         <title>{}</title>\n<style>{style}</style>\n\
         <rect class=\"ground\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n",
        escape(heading),
        px(size.width - 1.0),
        px(head + panels + 2.0 * MARGIN - 1.0),
    );
    let mut y = MARGIN;
    if !heading.is_empty() {
        text(&mut out, "heading", "start", (MARGIN, y + 16.0), heading);
        y += 30.0;
    }
    for line in &lines {
        text(&mut out, "small", "start", (MARGIN, y + 8.0), line);
        y += 18.0;
    }
    for (plot, frame) in plots.iter().zip(&frames) {
        text(&mut out, "title", "start", (MARGIN, y + 18.0), &plot.title);
        panel(&mut out, plot, frame, MARGIN, y + 28.0);
        y += frame.height + PANEL;
    }
    out.push_str("</svg>\n");
    out
}

fn panel(out: &mut String, plot: &Plot, frame: &Frame<'_>, x: f64, y: f64) {
    let place = if x == 0.0 && y == 0.0 {
        String::new()
    } else {
        format!(" transform=\"translate({} {})\"", px(x), px(y))
    };
    let _ = writeln!(out, r#"<g class="panel" {}{place}>"#, frame.readout());
    frame.draw_under(out);
    if let Some(heat) = &plot.heat {
        heat.draw(out, frame);
    }
    for series in &plot.series {
        draw_series(out, frame, series);
    }
    for dots in &plot.dots {
        dots::draw(out, frame, dots);
    }
    labels::draw(out, frame, &plot.dots);
    frame.draw_over(out);
    out.push_str("</g>\n");
}

fn draw_series(out: &mut String, frame: &Frame<'_>, series: &Series) {
    let (class, name) = (class_of(series), escape(&series.name));
    let path = match series.look {
        Look::Steps => steps(frame, &series.points),
        _ => polyline(frame, &series.points),
    };
    if !path.is_empty() {
        let _ = writeln!(out, r#"<path class="{class}" data-name="{name}" d="{path}"/>"#);
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
