//! Series out of results.

use crate::Report;
use crate::chart::{Cell, Heat};
use crate::results::LatencyGrid;

/// Most points or columns that are drawn over time: more would be narrower than a pixel.
const POINTS_MAX: usize = 400;

/// Points of a line: x, and y where there is one.
pub(super) type Points = Vec<(f64, Option<f64>)>;

/// Values at the middles of intervals, from the beginning of the load to the end of the window.
pub(super) fn over_time<T: Copy + Into<Option<f64>>>(
    report: &Report,
    interval_ms: u64,
    values: &[T],
) -> Points {
    let step = interval_ms as f64 / 1_000.0;
    let until = report.duration_s();
    let all = values
        .iter()
        .enumerate()
        .map(|(index, &value)| (step * (index as f64 + 0.5) - report.warmup_s(), value.into()));
    thinned(all.take_while(|point| point.0 <= until).collect())
}

/// Length over which compared rates are averaged, in milliseconds: lines that jump up and down with
/// every block hide one another.
const SMOOTH_MS: u64 = 500;

/// Each value as the mean of those around it.
pub(super) fn smoothed(values: &[Option<f64>], interval_ms: u64) -> Vec<Option<f64>> {
    let reach = (SMOOTH_MS / interval_ms.max(1) / 2) as usize;
    let mean = |index: usize| {
        let to = (index + reach + 1).min(values.len());
        let known: Vec<f64> =
            values[index.saturating_sub(reach)..to].iter().copied().flatten().collect();
        // Where it is itself unknown, what is around it does not make it known.
        values[index].map(|_| known.iter().sum::<f64>() / known.len() as f64)
    };
    (0..values.len()).map(mean).collect()
}

/// Values at the ends of seconds.
pub(super) fn each_second(report: &Report, values: &[Option<f64>]) -> Points {
    let seconds = report.timeline.iter().map(|second| second.second as f64);
    thinned(seconds.zip(values.iter().copied()).collect())
}

/// Fewer points, each the mean of as many, if there are too many to be told apart.
pub(super) fn thinned(points: Points) -> Points {
    let factor = points.len().div_ceil(POINTS_MAX).max(1);
    if factor == 1 {
        return points;
    }
    let mean = |chunk: &[(f64, Option<f64>)]| {
        let x = chunk.iter().map(|point| point.0).sum::<f64>() / chunk.len() as f64;
        let values: Vec<f64> = chunk.iter().filter_map(|point| point.1).collect();
        let y = values.iter().sum::<f64>() / values.len() as f64;
        (x, (!values.is_empty()).then_some(y))
    };
    points.chunks(factor).map(mean).collect()
}

/// The latency grid up to the end of the window, fit to be drawn.
pub(super) fn readable_grid(report: &Report) -> LatencyGrid {
    report.latency_over_time.readable(1_000.0 * (report.warmup_s() + report.duration_s()))
}

/// A quantile of the latency over time, in milliseconds.
pub(super) fn quantile(report: &Report, grid: &LatencyGrid, quantile: f64) -> Points {
    let step = grid.interval_ms as f64 / 1_000.0;
    let point = |index: usize| {
        let x = step * (index as f64 + 0.5) - report.warmup_s();
        (x, grid.quantile_ms(index..index + 1, quantile))
    };
    (0..grid.intervals.len()).map(point).collect()
}

/// The counts of a grid as cells; so many steps of latency make one cell. Time is counted from the
/// end of a warm-up of so many seconds.
pub fn heat(warmup_s: f64, grid: &LatencyGrid, steps: u16) -> Heat {
    let step = grid.interval_ms as f64 / 1_000.0;
    let mut cells: Vec<Cell> = Vec::new();
    for (index, entries) in grid.intervals.iter().enumerate() {
        let left = step * index as f64 - warmup_s;
        for cell in entries.chunk_by(|a, b| a.0 / steps == b.0 / steps) {
            let lower = cell[0].0 / steps * steps;
            let edges = (f64::from(lower), f64::from(lower) + f64::from(steps));
            cells.push(Cell {
                x: (left, left + step),
                y: (grid.edge_ms(edges.0), grid.edge_ms(edges.1)),
                count: cell.iter().map(|entry| u64::from(entry.1)).sum(),
            });
        }
    }
    Heat { counted: "operations a cell".to_owned(), cells }
}

/// Steps of latency to a factor of ten in the histogram.
const BARS_PER_DECADE: f64 = 20.0;

/// Percentage of the operations that count in each step of latency, in milliseconds; the last point
/// ends the last step.
pub(super) fn histogram(report: &Report) -> Points {
    let mut bars = std::collections::BTreeMap::new();
    let bar_of = |us: u64| ((us.max(1) as f64).log10() * BARS_PER_DECADE).floor() as i64;
    let total: u64 = report.latency_distribution_us.iter().map(|entry| entry.1).sum();
    for &(us, count) in &report.latency_distribution_us {
        *bars.entry(bar_of(us)).or_insert(0) += count;
    }
    let (Some(&first), Some(&last)) = (bars.keys().next(), bars.keys().next_back()) else {
        return Vec::new();
    };
    let edge = |bar: i64| 10_f64.powf(bar as f64 / BARS_PER_DECADE) / 1_000.0;
    let height = |bar: i64| bars.get(&bar).map_or(0.0, |&n| 100.0 * n as f64 / total as f64);
    let mut points: Points = (first..=last).map(|bar| (edge(bar), Some(height(bar)))).collect();
    points.push((edge(last + 1), None));
    points
}

/// Latency in milliseconds by the share of operations that did not exceed it.
pub(super) fn tail(report: &Report) -> Points {
    let total: u64 = report.latency_distribution_us.iter().map(|entry| entry.1).sum();
    let mut before = 0;
    let mut points = Points::new();
    for &(us, count) in &report.latency_distribution_us {
        let from = before as f64 / total as f64;
        before += count;
        // From the share below this value: the slowest of all lies at 100 %, which has no place.
        points.push((from, Some(us as f64 / 1_000.0)));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::{smoothed, thinned};

    #[test]
    fn means_are_over_the_half_second_around() {
        let values = [0.0, 10.0, 20.0, 30.0, 40.0, 100.0].map(Some);
        let smooth = smoothed(&values, 100);
        assert_eq!(smooth, [10.0, 15.0, 20.0, 40.0, 47.5, 170.0 / 3.0].map(Some));
        assert_eq!(smoothed(&values, 1_000), values, "nothing around is near enough");
        assert_eq!(smoothed(&[Some(1.0), None, Some(3.0)], 100), [Some(2.0), None, Some(2.0)]);
    }

    #[test]
    fn too_many_points_become_means() {
        let points: Vec<_> = (0..800).map(|x| (f64::from(x), Some(f64::from(x)))).collect();
        let thin = thinned(points);
        assert_eq!((thin.len(), thin[0], thin[399]), (400, (0.5, Some(0.5)), (798.5, Some(798.5))));
        let gaps = thinned((0..800).map(|x| (f64::from(x), None)).collect());
        assert!(gaps.iter().all(|point| point.1.is_none()));
    }
}
