//! The latencies of a point that its result keeps: for heat maps and cumulative figures.

use quorate_report::results::LatencyGrid;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Most intervals that are kept: a figure is a few hundred pixels wide, and a page holds all
/// results.
const INTERVALS_MAX: usize = 120;

/// Latencies over time and by percentile, small enough to stand in a line of results: some
/// kilobytes, at most some tens of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// By when operations were due, the warm-up included, in at most 120 intervals.
    pub over_time: LatencyGrid,
    /// Of the operations that count and were answered: the latency in milliseconds that 0, 1, 2 …
    /// 100 per cent of them did not exceed. Empty when there were none.
    pub percentiles_ms: Vec<f64>,
}

impl Kept {
    /// The name under which a result's details hold it.
    pub const NAME: &str = "latencies";

    /// Of a grid, and of a distribution as [`crate::load::Latencies`] has it.
    #[must_use]
    pub fn new(grid: &LatencyGrid, distribution_us: &[(u64, u64)]) -> Self {
        let over_time = grid.coarser(grid.intervals.len().div_ceil(INTERVALS_MAX));
        Self { over_time, percentiles_ms: percentiles_ms(distribution_us) }
    }

    /// Those in the details of a result, if it keeps them.
    #[must_use]
    pub fn of(details: &Value) -> Option<Self> {
        serde_json::from_value(details.get(Self::NAME)?.clone()).ok()
    }
}

fn percentiles_ms(distribution_us: &[(u64, u64)]) -> Vec<f64> {
    let total: u64 = distribution_us.iter().map(|entry| entry.1).sum();
    let (mut entries, mut seen) = (distribution_us.iter(), 0);
    let mut value_us = 0;
    let mut percentiles = Vec::new();
    for percent in 0..=100 {
        let wanted = (total * percent).div_ceil(100).max(1);
        while seen < wanted {
            let Some(&(us, count)) = entries.next() else { return percentiles };
            (value_us, seen) = (us, seen + count);
        }
        percentiles.push(value_us as f64 / 1_000.0);
    }
    percentiles
}

#[cfg(test)]
mod tests {
    use super::Kept;
    use quorate_report::results::LatencyGrid;

    #[test]
    fn percentiles_are_those_of_operations() {
        let kept = Kept::new(&LatencyGrid::default(), &[(1_000, 90), (5_000, 9), (70_000, 1)]);
        let at = |percent: usize| kept.percentiles_ms[percent];
        assert_eq!(kept.percentiles_ms.len(), 101);
        assert_eq!(
            (at(0), at(1), at(90), at(91), at(99), at(100)),
            (1.0, 1.0, 1.0, 5.0, 5.0, 70.0)
        );
        let one = Kept::new(&LatencyGrid::default(), &[(2_000, 1)]);
        assert_eq!(one.percentiles_ms, [2.0; 101]);
        assert!(Kept::new(&LatencyGrid::default(), &[]).percentiles_ms.is_empty());
    }

    /// The worst: a long run, each of whose intervals has latencies of all kinds.
    #[test]
    fn what_is_kept_is_small() {
        let mut grid = LatencyGrid::default();
        for due_ms in (0..600_000).step_by(100) {
            (0..60).for_each(|step| grid.record(due_ms, 1_000 << (step / 4), 123));
        }
        let kept = Kept::new(&grid, &[(1_234, 7), (98_765, 1_000)]);
        assert!(kept.over_time.intervals.len() <= 120);
        let text = serde_json::to_string(&kept).unwrap();
        assert!(text.len() < 40_000, "{} bytes", text.len());
        let counts = |grid: &LatencyGrid| -> u64 {
            (0..grid.intervals.len()).map(|index| grid.count(index)).sum()
        };
        assert_eq!(counts(&kept.over_time), counts(&grid), "and whole");
    }
}
