//! Axes that hold all points with their error bars.

use super::{Figure, Scale};
use crate::experiment::metrics::{self, Metric};
use quorate_report::chart::{Axis, Dot, Dots, Kind};

/// Both axes of a figure.
pub(super) fn of(figure: &Figure, dots: &[Dots]) -> (Axis, Axis) {
    let [x, y] = figure.axes();
    let x = axis(x, figure.x_label.as_ref(), figure.x_scale, figure.x_max, dots, |dot| dot.x);
    // No more than all is ever answered.
    let all = (figure.kind == super::Kind::Cumulative).then_some(100.0);
    let y_max = figure.y_max.or(all);
    let y = axis(y, figure.y_label.as_ref(), figure.y_scale, y_max, dots, |dot| dot.y);
    (x, y)
}

fn axis(
    metric: Option<&'static Metric>,
    label: Option<&String>,
    scale: Scale,
    max: Option<f64>,
    dots: &[Dots],
    value: fn(&Dot) -> (f64, f64),
) -> Axis {
    let unit = metric.map_or("", |metric| metric.unit);
    let text = label.cloned().or_else(|| metric.map(metrics::label)).unwrap_or_default();
    let text = if scale == Scale::Log { format!("{text}, logarithmic") } else { text };
    let shown = |edge: &f64| max.is_none_or(|max| *edge <= max);
    let edges = dots.iter().flat_map(|dots| &dots.points).flat_map(|dot| {
        let (mean, deviation) = value(dot);
        [mean - deviation, mean, mean + deviation]
    });
    let edges = edges.filter(shown);
    let axis = match scale {
        Scale::Linear => Axis::from_zero(&text, unit, edges.map(|edge| 1.04 * edge)),
        Scale::Log => {
            // The lower end of a bar that reaches zero has no place on this axis.
            let axis = Axis::log(&text, unit, edges.filter(|edge| *edge > 0.0));
            Axis::exact(&text, unit, Kind::Log, axis.low / 1.15, axis.high * 1.3)
        }
    };
    match max {
        Some(max) => Axis::exact(&text, unit, axis.kind, axis.low, max),
        None => axis,
    }
}
