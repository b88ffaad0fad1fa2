use super::Latency;
use crate::{Matrix, RoundTrip};
use std::time::Duration;

fn ms(delay: Duration) -> f64 {
    delay.as_secs_f64() * 1_000.0
}

#[test]
fn median_and_ninetieth_percentile_are_met() {
    let matrix = Matrix::aws();
    for from in matrix.names() {
        for to in matrix.names() {
            let region = |name| matrix.region(name).expect("known");
            let trip = matrix.round_trip(region(from), region(to));
            let latency = Latency::half_of(trip);
            assert!((ms(latency.median()) - trip.p50_ms / 2.0).abs() < 1e-3, "{from} to {to}");
            assert!((ms(latency.quantile(0.9)) - trip.p90_ms / 2.0).abs() < 1e-3, "{from} to {to}");
        }
    }
}

#[test]
fn nothing_arrives_before_it_could() {
    let latency = Latency::half_of(RoundTrip { p50_ms: 64.0, p90_ms: 74.0 });
    // 32 − 5·ln 2/ln 5 and 32 + 5·(ln 1000 − ln 2)/ln 5, by hand.
    assert!((ms(latency.quantile(0.0)) - 29.847).abs() < 0.001, "{:?}", latency.quantile(0.0));
    assert!((ms(latency.longest()) - 51.307).abs() < 0.001, "{:?}", latency.longest());
    let wide = Latency::half_of(RoundTrip { p50_ms: 2.0, p90_ms: 1_000.0 });
    assert_eq!(wide.quantile(0.0), Duration::ZERO);
    assert!((ms(wide.median()) - 1.0).abs() < 1e-6);
}

#[test]
fn without_jitter_only_the_median_is_left() {
    let latency = Latency::half_of(RoundTrip { p50_ms: 64.0, p90_ms: 74.0 }).without_jitter();
    assert_eq!(latency.quantile(0.0), Duration::from_millis(32));
    assert_eq!(latency.longest(), Duration::from_millis(32));
    let constant = Latency::constant(Duration::from_millis(7));
    assert_eq!(
        (constant.median(), constant.longest()),
        (constant.quantile(0.0), constant.median())
    );
}
