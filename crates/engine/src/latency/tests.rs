use super::*;

#[test]
fn a_time_is_in_the_first_bucket_that_reaches_it() {
    let mut counts = LatencyCounts::default();
    for us in [0, 500, 501, 1_000, 40_000_000] {
        counts.observe(Duration::from_micros(us));
    }
    let buckets: Vec<(f64, u64)> = counts.buckets().collect();
    assert_eq!(buckets[..3], [(0.000_5, 2), (0.001, 2), (0.002, 0)]);
    assert_eq!(buckets[16..], [(32.768, 0), (f64::INFINITY, 1)]);
    assert_eq!((counts.count(), counts.sum_seconds()), (5, 40.002_001));
}

#[test]
fn quantiles_are_found_within_their_bucket() {
    let mut counts = LatencyCounts::default();
    assert_eq!(counts.quantile(0.5), None);
    (0..4).for_each(|_| counts.observe(Duration::from_millis(3)));
    let earlier = counts.clone();
    assert_eq!(counts.quantile(0.5), Some(0.003), "half way from 2 ms to 4 ms");
    assert_eq!(counts.quantile(1.0), Some(0.004));
    counts.observe(Duration::from_secs(60));
    assert_eq!(counts.quantile(0.99), Some(32.768), "beyond the bounds: the last of them");
    assert_eq!(counts.since(&earlier).quantile(0.5), Some(32.768), "the later one alone");
    assert_eq!(counts.since(&counts).quantile(0.5), None);
}
