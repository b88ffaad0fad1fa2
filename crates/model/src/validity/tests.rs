use super::*;

/// A second of a committee that keeps up: 1,000 operations a second of 200 ms each.
fn steady() -> PerSecond {
    PerSecond {
        offered: 1_000,
        under_way: 200.0,
        committed: 1_000,
        first_ms_sum: 200_000.0,
        own: 1_000,
        own_ms_sum: 250_000.0,
    }
}

#[test]
fn steady_seconds_raise_no_doubt() {
    assert_eq!(drifts(&[steady(); 10]), []);
    assert_eq!(drifts(&[steady(); 1]), [], "one second has no halves");
    assert_eq!(drifts(&[]), []);
}

#[test]
fn a_middle_second_is_in_neither_half() {
    let stall = PerSecond { committed: 0, first_ms_sum: 0.0, ..steady() };
    assert_eq!(drifts(&[steady(), stall, steady()]), []);
    assert_ne!(drifts(&[steady(), stall, steady(), steady()]), []);
}

#[test]
fn halves_that_differ_are_named() {
    let slower = PerSecond { first_ms_sum: 300_000.0, ..steady() };
    assert_eq!(drifts(&[steady(), slower]), [Doubt::LatencyDrifts { first: 200.0, second: 300.0 }]);
    let fewer = PerSecond { committed: 800, first_ms_sum: 160_000.0, offered: 800, ..steady() };
    assert_eq!(drifts(&[steady(), fewer]), [Doubt::RateDrifts { first: 1_000.0, second: 800.0 }]);
    let behind = PerSecond { offered: 1_300, ..steady() };
    let grows = Doubt::BacklogGrows { offered: 1_300.0, committed: 1_000.0 };
    assert_eq!(drifts(&[behind, behind]), [grows]);
    let ahead = PerSecond { offered: 850, ..steady() };
    let shrinks = Doubt::BacklogShrinks { offered: 1_700.0, committed: 2_000.0 };
    assert_eq!(drifts(&[ahead, ahead]), [shrinks]);
    let stopped = PerSecond { committed: 0, first_ms_sum: 0.0, ..steady() };
    let doubts = drifts(&[steady(), stopped]);
    assert!(doubts.contains(&Doubt::RateDrifts { first: 1_000.0, second: 0.0 }), "{doubts:?}");
    assert!(
        doubts.contains(&Doubt::BacklogGrows { offered: 1_000.0, committed: 0.0 }),
        "{doubts:?}"
    );
}

#[test]
fn numbers_differ_by_a_share_of_the_larger() {
    assert!(!differ(90.0, 100.0, 0.1) && differ(89.0, 100.0, 0.1) && differ(100.0, 89.0, 0.1));
    assert!(differ(0.0, 1.0, 0.1) && !differ(0.0, 0.0, 0.1));
    assert!(!differ(f64::NAN, 1.0, 0.1), "what was not measured is not judged");
}
