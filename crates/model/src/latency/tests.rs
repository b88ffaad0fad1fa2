use super::*;

#[test]
fn percentiles_count_operations_and_not_groups() {
    let mut samples = Samples::default();
    samples.add(30_000_000, 1);
    samples.add(10_000_000, 98);
    samples.add(20_000_000, 1);
    let all = samples.percentiles();
    assert_eq!((all.p50_ms, all.p90_ms, all.p99_ms), (10.0, 10.0, 20.0));
    assert_eq!((all.mean_ms, all.operations), (10.3, 100));
    assert_eq!(Samples::default().percentiles(), Percentiles::default());
}
