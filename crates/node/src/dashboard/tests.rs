use super::point::Point;
use super::testing::{reading, status};
use quorate_types::Height;
use serde_json::Value;
use std::time::{Duration, Instant};

#[test]
fn rates_are_of_the_time_between_two_looks() {
    let (began, mut later) = (Instant::now(), status());
    let earlier = reading(began, status());
    later.replica.operations = 5_000;
    later.replica.decided = Height(100);
    later.replica.fast_decisions = 80;
    later.replica.slow_decisions = 20;
    later.replica.view_changes = 3;
    later.log_syncs = 250;
    later.cpu_seconds = Some(1.75);
    for _ in 0..10 {
        later.replica.decision_latency.observe(Duration::from_millis(3));
    }
    let now = reading(began + Duration::from_millis(2_500), later);
    let point = Point::between(&earlier, &now, 77).expect("both show a state");
    assert_eq!((point.at_ms, point.height, point.operations_s), (77, 100, 2_000.0));
    assert_eq!((point.heights_s, point.fast_s, point.slow_s), (40.0, 32.0, 8.0));
    assert_eq!((point.given_up_s, point.log_syncs_s, point.cpu), (1.2, 100.0, Some(0.3)));
    assert_eq!((point.decision_p50_ms, point.decision_p99_ms), (Some(3.0), Some(3.98)));
    assert_eq!(point.request_p50_ms, None, "nothing was answered");
    assert_eq!((point.queued, point.outbox_bytes, point.heard_weight), (5, 7, 4));
    let again = Point::between(&now, &now, 78).expect("both show a state");
    assert_eq!((again.operations_s, again.decision_p50_ms), (0.0, None), "nothing since");
}

#[test]
fn there_are_no_rates_before_the_replica_shows_its_state() {
    let (began, mut blank) = (Instant::now(), status());
    blank.replica.root.clear();
    let (blank, first) = (reading(began, blank), reading(began, status()));
    assert_eq!(Point::between(&blank, &first, 0), None, "all its operations are no rate");
}

#[test]
fn figures_go_by_the_names_that_the_page_reads() {
    let both = [0, 1].map(|second| reading(Instant::now() + Duration::from_secs(second), status()));
    let columns = Point::between(&both[0], &both[1], 0).expect("both show a state").columns();
    let script = include_str!("../pages/panels.js");
    for name in ["operations_s", "heights_s", "given_up_s", "heard_weight", "log_syncs_s", "rss_mb"]
    {
        assert!(columns.contains_key(name) && script.contains(name), "{name}");
    }
    for (name, value) in &columns {
        assert!(matches!(value, Value::Number(_) | Value::Null), "{name} is {value}");
    }
}
