//! Writing SVG: numbers, text, elements.

use maud::{Markup, PreEscaped, html};

/// Adds an element, on a line of its own.
pub(super) fn push(out: &mut String, element: &Markup) {
    out.push_str(&element.0);
    out.push('\n');
}

/// Adds a group of what `draw` adds.
pub(super) fn group(out: &mut String, class: &str, draw: impl FnOnce(&mut String)) {
    let mut inside = String::new();
    draw(&mut inside);
    push(out, &html! { g class=(class) { (PreEscaped(inside)) } });
}

/// A coordinate, to a tenth of a pixel.
pub(super) fn px(value: f64) -> String {
    let text = format!("{:.1}", if value.is_finite() { value } else { 0.0 });
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Probable width of a text, in pixels: no font is at hand to be measured.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    0.56 * size * text.chars().count() as f64
}

/// A text in lines that are probably not wider than that, broken between words.
pub(super) fn wrap(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(&format!("{line} {word}"), size) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A straight line between two points.
pub(super) fn line(out: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let (x1, y1, x2, y2) = (px(from.0), px(from.1), px(to.0), px(to.1));
    push(out, &html! { line class=(class) x1=(x1) y1=(y1) x2=(x2) y2=(y2) {} });
}

/// A text at its baseline. `anchor` is `start`, `middle` or `end`.
pub(super) fn text(out: &mut String, class: &str, anchor: &str, at: (f64, f64), words: &str) {
    let (x, y) = (px(at.0), px(at.1));
    push(out, &html! { text class=(class) text-anchor=(anchor) x=(x) y=(y) { (words) } });
}

/// A rectangle, with a title for those who point at it unless that is empty.
pub(super) fn rect(out: &mut String, class: &str, at: (f64, f64), size: (f64, f64), title: &str) {
    let (x, y, width, height) = (px(at.0), px(at.1), px(size.0.max(0.0)), px(size.1.max(0.0)));
    push(
        out,
        &html! {
            rect class=(class) x=(x) y=(y) width=(width) height=(height) {
                @if !title.is_empty() { title { (title) } }
            }
        },
    );
}
