use super::has_settled;
use crate::bench::evidence::Sample;
use crate::status::ValidatorStatus;
use quorate_report::results::LatencyMs;
use std::time::{Duration, Instant};

/// Looks, one a second, at validators that have executed so much by then; `None` for silence.
fn looks(seconds: &[[Option<u64>; 2]]) -> Vec<Sample> {
    let start = Instant::now();
    let sample = |(second, executed): (u64, &[Option<u64>; 2])| Sample {
        second,
        looks: executed
            .map(|operations| {
                let at = Some(start + Duration::from_secs(second));
                Some(ValidatorStatus { operations: operations?, at, ..ValidatorStatus::default() })
            })
            .to_vec(),
        answered: 0,
        lately: LatencyMs::default(),
        client_cpu_seconds: 0.0,
    };
    (0..).zip(seconds).map(sample).collect()
}

#[test]
fn a_committee_has_settled_when_all_commit_what_is_offered() {
    let settled = |seconds: &[[Option<u64>; 2]]| has_settled(&looks(seconds), &[0, 1], 1_000);
    let both = |operations| [Some(operations), Some(operations)];
    assert!(settled(&[both(0), both(900), both(1_960)]));
    assert!(!settled(&[both(0), both(1_000)]), "a second is too little to tell");
    assert!(!settled(&[both(0), both(100), both(1_000)]), "it starts");
    assert!(!settled(&[both(0), both(100), both(3_000)]), "it works a backlog off");
    assert!(settled(&[both(0), both(100), both(3_000), both(4_000), both(5_000)]));
    let one_is_late = [both(0), [Some(1_000), Some(800)], [Some(2_000), Some(1_800)]];
    assert!(!settled(&one_is_late));
    assert!(has_settled(&looks(&one_is_late), &[0], 1_000), "of those that are asked after");
    assert!(!settled(&[[Some(0), None], [Some(1_000), None], [Some(2_000), None]]));
}
