use super::{Sample, ValidatorStatus, is_silent};
use quorate_report::results::LatencyMs;

fn look(operations: Option<u64>) -> Option<ValidatorStatus> {
    operations.map(|operations| ValidatorStatus { operations, ..ValidatorStatus::default() })
}

/// Whether a validator that was seen with these counts is silent at the last of them.
fn is_silent_after(seen: &[Option<u64>]) -> bool {
    let sample = |(second, &operations): (usize, &Option<u64>)| Sample {
        second: second as u64,
        looks: vec![look(operations)],
        answered: 0,
        lately: LatencyMs::default(),
        client_cpu_seconds: 0.0,
    };
    let (now, before) = seen.split_last().expect("a look");
    let before: Vec<Sample> = before.iter().enumerate().map(sample).collect();
    is_silent(&before, 0, look(*now).as_ref())
}

#[test]
fn one_late_answer_is_no_silence() {
    for goes_on in [
        &[Some(0)][..],
        &[None],
        &[Some(5), Some(5)],
        &[Some(5), None],
        &[Some(5), None, Some(5)],
        &[Some(5), None, Some(9), None],
    ] {
        assert!(!is_silent_after(goes_on), "{goes_on:?}");
    }
    for silent in [&[None, None][..], &[Some(5), None, None]] {
        assert!(is_silent_after(silent), "{silent:?}");
    }
}

#[test]
fn a_count_that_goes_back_is_another_process() {
    assert!(is_silent_after(&[Some(5), Some(4)]));
    assert!(is_silent_after(&[Some(5), None, Some(4)]));
}
