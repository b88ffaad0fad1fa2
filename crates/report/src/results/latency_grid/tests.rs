use super::LatencyGrid;

fn grid(entries: &[(u64, u64)]) -> LatencyGrid {
    let mut grid = LatencyGrid::default();
    for &(due_ms, latency_us) in entries {
        grid.record(due_ms, latency_us, 1);
    }
    grid
}

#[test]
fn operations_belong_to_the_interval_in_which_they_were_due() {
    let grid = grid(&[(0, 1_000), (99, 1_000), (100, 2_000), (350, 9_000)]);
    let counts: Vec<u64> = (0..grid.intervals.len()).map(|i| grid.count(i)).collect();
    assert_eq!(counts, [2, 1, 0, 1]);
    assert_eq!(grid.intervals[0], [(96, 2)], "1 ms is three decades above 1 µs");
}

#[test]
fn quantiles_are_right_to_within_a_step() {
    // A thousand latencies of 1 to 1,000 ms.
    let entries: Vec<_> = (1..=1_000).map(|ms| (ms / 2, ms * 1_000)).collect();
    let grid = grid(&entries);
    let all = 0..grid.intervals.len();
    for (quantile, expected) in [(0.5, 500.0), (0.9, 900.0), (0.99, 990.0)] {
        let found = grid.quantile_ms(all.clone(), quantile).expect("there are some");
        assert!((found / expected - 1.0).abs() < 0.04, "{quantile}: {found}");
    }
    let first = grid.quantile_ms(0..1, 1.0).expect("there are some");
    assert!((199.0..215.0).contains(&first), "{first}");
}

#[test]
fn an_empty_stretch_has_no_quantile() {
    let grid = grid(&[(0, 5), (250, 5)]);
    assert_eq!(grid.quantile_ms(1..2, 0.5), None);
    assert_eq!(grid.quantile_ms(2..9, 0.5), None, "beyond the end");
    assert_eq!(LatencyGrid::default().quantile_ms(0..0, 0.5), None);
}

#[test]
fn coarser_intervals_hold_the_same_operations() {
    let fine = grid(&[(0, 10), (120, 10), (180, 70), (450, 10)]);
    let coarse = fine.coarser(2);
    assert_eq!(coarse.interval_ms, 200);
    assert_eq!(coarse.intervals.len(), 3);
    assert_eq!((coarse.count(0), coarse.count(1), coarse.count(2)), (3, 0, 1));
    assert_eq!(coarse.quantile_ms(0..1, 0.5), fine.quantile_ms(0..2, 0.5));
}

#[test]
fn latencies_of_nothing_and_of_ages_are_kept_in_range() {
    let grid = grid(&[(0, 0), (0, u64::MAX)]);
    assert_eq!(grid.intervals[0].len(), 2);
    assert_eq!(grid.intervals[0][0].0, 0);
}
