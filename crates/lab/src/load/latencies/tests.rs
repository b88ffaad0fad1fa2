use super::Latencies;

const SECOND: u64 = 1_000_000;

/// Two seconds of warm-up, ten that count.
fn latencies() -> Latencies {
    Latencies::new(2 * SECOND..12 * SECOND)
}

/// One operation each millisecond from `from` to `to` (in seconds), answered after `latency_us`.
fn steady(latencies: &mut Latencies, from: u64, to: u64, latency_us: u64) {
    for due_us in (from * SECOND..to * SECOND).step_by(1_000) {
        latencies.add(due_us, latency_us, 1);
    }
}

#[test]
fn goodput_is_what_is_offered_where_all_is_answered() {
    for latency_us in [0, 700_000, 4 * SECOND] {
        let mut latencies = latencies();
        steady(&mut latencies, 0, 12, latency_us);
        let goodput = latencies.goodput_tps();
        assert!((999.0..=1_001.0).contains(&goodput), "after {latency_us} µs: {goodput}");
    }
}

#[test]
fn goodput_is_the_rate_of_answers_where_a_queue_grows() {
    let mut latencies = latencies();
    // Answered at half the rate: each waits as long again as it was due after the beginning.
    for due_us in (0..12 * SECOND).step_by(1_000) {
        latencies.add(due_us, due_us, 1);
    }
    // From 2 s to 12 s those are answered that were due from 1 s to 6 s.
    let goodput = latencies.goodput_tps();
    assert!((499.0..=501.0).contains(&goodput), "{goodput}");
}

#[test]
fn goodput_counts_what_is_answered_in_the_time_that_counts() {
    let mut latencies = latencies();
    latencies.add(SECOND, 10, 5_000);
    latencies.add(11 * SECOND, SECOND, 5_000);
    assert_eq!(latencies.goodput_tps(), 0.0, "in the warm-up, and after the load");
    latencies.add(SECOND, SECOND, 30);
    assert_eq!(latencies.goodput_tps(), 3.0, "due in the warm-up, answered after it");
}

#[test]
fn a_burst_at_the_very_end_is_no_rate() {
    let mut latencies = latencies();
    latencies.add(3 * SECOND, 9 * SECOND - 1, 100);
    assert_eq!(latencies.goodput_tps(), 20.0, "over the last five seconds");
}

#[test]
fn only_those_that_count_are_in_the_distribution() {
    let mut latencies = latencies();
    latencies.add(0, 77, 3);
    latencies.add(2 * SECOND, 1_000, 2);
    latencies.add(3 * SECOND, 50_000, 1);
    let counts: Vec<u64> = latencies.distribution_us().iter().map(|entry| entry.1).collect();
    assert_eq!(counts, [2, 1]);
    assert!((latencies.summary().mean - 17.33).abs() < 0.1, "{:?}", latencies.summary());
    assert_eq!(latencies.over_time().count(0), 3, "over time the warm-up is seen");
    assert_eq!(latencies.over_time().count(20), 2);
}

#[test]
fn a_histogram_has_the_percentiles_of_the_one_that_counted() {
    let mut counted = super::Counted::new(3);
    for latency_us in (1..=2_000).map(|n| n * n) {
        counted.add(latency_us, 1);
    }
    let kept = counted.kept();
    for quantile in [0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0] {
        assert_eq!(kept.quantile_us(quantile), counted.steps.value_at_quantile(quantile));
    }
    assert_eq!(kept.total(), 2_000);
    assert_eq!(kept.sum_us, 2_000 * 2_001 * 4_001 / 6);
}

#[test]
fn two_histograms_added_are_one_that_counted_both() {
    let counted = |latencies: &[u64]| {
        let mut counted = super::Counted::new(3);
        latencies.iter().for_each(|us| counted.add(*us, 1));
        counted.kept()
    };
    let (a, b): (Vec<u64>, Vec<u64>) =
        ((1..900).map(|n| 37 * n).collect(), (1..400).map(|n| n * n).collect());
    let mut sum = counted(&a);
    sum.add(&counted(&b));
    assert_eq!(sum, counted(&[a, b].concat()));
}
