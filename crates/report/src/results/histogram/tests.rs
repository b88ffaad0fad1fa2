use super::Histogram;
use crate::results::LatencyMs;

fn histogram(counts_us: &[(u64, u64)], sum_us: u64) -> Histogram {
    Histogram { counts_us: counts_us.to_vec(), sum_us }
}

#[test]
fn percentiles_are_those_of_all_operations() {
    // Ninety of 10 ms, nine of 20 ms, one of 1 s: by hand, the 90th is of 10 ms, the 99th of 20 ms.
    let all = histogram(&[(10_000, 90), (20_000, 9), (1_000_000, 1)], 2_080_000);
    let expected = LatencyMs { mean: 20.8, p50: 10.0, p90: 10.0, p99: 20.0, max: 1_000.0 };
    assert_eq!(all.summary(), expected);
    assert_eq!(all.quantile_us(0.991), 1_000_000);
    assert_eq!(Histogram::default().summary(), LatencyMs::default());
}

#[test]
fn a_sum_is_not_the_mean_of_percentiles() {
    // 99 quick ones here, 101 slow ones there: the median of all is a slow one.
    let mut sum = histogram(&[(1_000, 99)], 99_000);
    sum.add(&histogram(&[(500, 1), (9_000, 100)], 900_500));
    assert_eq!(sum.counts_us, [(500, 1), (1_000, 99), (9_000, 100)]);
    assert_eq!((sum.total(), sum.sum_us), (200, 999_500));
    let summary = sum.summary();
    assert_eq!((summary.p50, summary.p90, summary.mean), (1.0, 9.0, 5.0));
    sum.add(&histogram(&[(9_000, 1)], 9_000));
    assert_eq!(sum.summary().p50, 9.0, "the hundred and first of 201");
}

#[test]
fn what_is_near_is_one_in_the_distribution() {
    let all = histogram(&[(1_000, 1), (1_005, 2), (1_010, 3), (1_020, 4)], 0);
    assert_eq!(all.distribution_us(), [(1_010, 6), (1_020, 4)]);
}
