use super::{Performance, backlog_growth, judge};
use quorate_report::results::Rates;

const GOOD: Performance = Performance {
    offered_tps: 1_000.0,
    committed_tps: 985.0,
    dropped: 0,
    unanswered: 0,
    p99_ms: 90.0,
    backlog_grown: 100.0,
    window_s: 3.0,
};

#[test]
fn keeping_up_has_five_conditions() {
    assert_eq!(judge(&GOOD, 100.0), Ok(()));
    let said = |run| judge(&run, 100.0).expect_err("refused");
    // Two in a hundred, and a tenth of a second's operations.
    assert_eq!(judge(&Performance { committed_tps: 947.0, ..GOOD }, 100.0), Ok(()));
    let slow = Performance { committed_tps: 946.0, ..GOOD };
    assert_eq!(said(slow), "the slowest committed 95 % of what was offered");
    let whole = Performance { window_s: 20.0, ..slow };
    assert_eq!(said(Performance { committed_tps: 974.0, ..whole }).split(' ').nth(3), Some("97"));
    assert_eq!(said(Performance { p99_ms: 101.0, ..GOOD }), "p99 was 101 ms, above 100");
    // A tenth of a second's operations, and two in a hundred of half the window's.
    assert_eq!(judge(&Performance { backlog_grown: 129.0, ..GOOD }, 100.0), Ok(()));
    assert_eq!(said(Performance { backlog_grown: 131.0, ..GOOD }), "the backlog grew");
    assert_eq!(said(Performance { dropped: 1, ..GOOD }), "sessions were full");
    // A hundredth of three seconds' operations.
    assert_eq!(judge(&Performance { unanswered: 30, ..GOOD }, 100.0), Ok(()));
    assert_eq!(said(Performance { unanswered: 61, ..GOOD }), "2 % was not answered in time");
}

#[test]
fn a_backlog_grows_from_the_middle_of_the_window_to_its_end() {
    let mut answered_tps = vec![1_000.0; 20];
    // Half a second late, and never caught up: no growth after that.
    answered_tps[..5].fill(0.0);
    let mut load = Rates { interval_ms: 100, offered_tps: vec![1_000.0; 20], answered_tps };
    assert_eq!(backlog_growth(&load, 1.0, 1.0), 0.0);
    load.answered_tps[15..].fill(600.0);
    assert!((backlog_growth(&load, 1.0, 1.0) - 200.0).abs() < 1e-6);
    load.answered_tps.truncate(18);
    assert!((backlog_growth(&load, 1.0, 1.0) - 320.0).abs() < 1e-6, "nothing is recorded as none");
}
