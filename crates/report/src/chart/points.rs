//! Points of a series in a plot, with error bars and the line through them.

use super::dots::{Dot, Dots, Marker, RADIUS, class, spot, trail_class};
use super::frame::Frame;
use super::svg::{group, push, px};
use maud::html;
use std::fmt::Write;

/// Half of an error bar's end, in pixels.
const CAP: f64 = 3.5;
/// Bars below lines below points.
pub(super) fn draw(out: &mut String, frame: &Frame<'_>, dots: &Dots) {
    group(out, &format!("dots {}", class(dots)), |out| {
        trail(out, frame, dots);
        for dot in &dots.points {
            bars(out, frame, dot);
        }
        for dot in &dots.points {
            let at = (frame.x(dot.x.0), frame.y(dot.y.0));
            let marker = if dot.is_doubtful { Marker::Doubtful } else { dots.marker };
            spot(out, marker, at, &dot.says);
        }
    });
}

fn trail(out: &mut String, frame: &Frame<'_>, dots: &Dots) {
    let Some(dashes) = dots.dashes.filter(|_| dots.points.len() > 1) else { return };
    let mut path = String::new();
    for (index, dot) in dots.points.iter().enumerate() {
        let step = if index == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{step}{} {}", px(frame.x(dot.x.0)), px(frame.y(dot.y.0)));
    }
    push(out, &html! { path class=(trail_class(dashes)) data-name=(dots.name) d=(path) {} });
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
    push(out, &html! { path.bar fill="none" d=(path) {} });
}
