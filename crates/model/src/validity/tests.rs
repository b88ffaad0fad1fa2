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
    let stopped = PerSecond { committed: 0, first_ms_sum: 0.0, ..steady() };
    let doubts = drifts(&[steady(), stopped]);
    assert!(doubts.contains(&Doubt::RateDrifts { first: 1_000.0, second: 0.0 }), "{doubts:?}");
    assert!(
        doubts.contains(&Doubt::BacklogGrows { offered: 1_000.0, committed: 0.0 }),
        "{doubts:?}"
    );
}

#[test]
fn a_backlog_that_is_worked_off_is_named() {
    let ahead = PerSecond { offered: 899, ..steady() };
    let doubt = Doubt::BacklogShrinks { offered: 899.0, committed: 1_000.0 };
    assert_eq!(shrinks(&[ahead]), Some(doubt), "one second is a window too");
    assert_eq!(drifts(&[ahead, ahead]), [], "its halves are alike");
    let as_much = PerSecond { offered: 900, ..steady() };
    assert_eq!(
        (shrinks(&[as_much; 2]), shrinks(&[steady(), ahead]), shrinks(&[])),
        (None, None, None)
    );
}

#[test]
fn one_window_says_that_too_much_is_offered_by_what_grows() {
    let few = Doubt::FewSamples { operations: 2_000, heights: 19 };
    let (slower, quicker) = (
        Doubt::LatencyDrifts { first: 500.0, second: 600.0 },
        Doubt::LatencyDrifts { first: 600.0, second: 500.0 },
    );
    let grows = Doubt::BacklogGrows { offered: 1_300.0, committed: 1_000.0 };
    assert!(is_too_much(&[slower]) && is_too_much(&[few, grows]));
    assert!(!is_too_much(&[few, slower]) && !is_too_much(&[quicker]) && !is_too_much(&[few]));
}

#[test]
fn numbers_differ_by_a_share_of_the_larger() {
    assert!(!differ(90.0, 100.0, 0.1) && differ(89.0, 100.0, 0.1) && differ(100.0, 89.0, 0.1));
    assert!(differ(0.0, 1.0, 0.1) && !differ(0.0, 0.0, 0.1));
    assert!(!differ(f64::NAN, 1.0, 0.1), "what was not measured is not judged");
}
