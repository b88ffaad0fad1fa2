use super::{
    FIRST_RATE, ProbeResult, RATE_MIN, Search, backlog_growth, confirmation_config, judge,
    probe_config,
};
use quorate_report::results::Rates;
use quorate_report::results::beside::{Probe, Searched};

/// Probes a committee that keeps up with exactly this rate.
fn search(capacity: u64) -> (Search, Vec<u64>) {
    let mut search = Search::from(FIRST_RATE);
    let mut probed = Vec::new();
    while let Some(rate) = search.next() {
        assert!(probed.len() < 64, "{probed:?}");
        probed.push(rate);
        search.learn(rate, rate <= capacity);
    }
    (search, probed)
}

#[test]
fn the_rate_found_is_within_a_twentieth() {
    for capacity in [11, 100, 1_999, 2_000, 2_001, 31_415, 123_456, 9_999_999] {
        let (search, probed) = search(capacity);
        let found = search.good.expect("a rate");
        assert!(found <= capacity, "{probed:?}");
        assert!(found as f64 >= 0.94 * capacity as f64 - 1.0, "{capacity}: {probed:?}");
        assert!(probed.len() <= 20, "{probed:?}");
    }
}

#[test]
fn probes_double_and_then_halve_the_gap() {
    let (_, probed) = search(9_000);
    assert_eq!(probed[..6], [2_000, 4_000, 8_000, 16_000, 12_000, 10_000]);
}

#[test]
fn a_search_begins_where_it_is_told() {
    let mut search = Search::from(40_000);
    assert_eq!(search.next(), Some(40_000));
    search.learn(40_000, false);
    assert_eq!(search.next(), Some(20_000));
    assert_eq!(Search::from(1).next(), Some(RATE_MIN), "nothing below the lowest is tried");
}

#[test]
fn a_committee_that_does_nothing_has_no_rate() {
    let (search, probed) = search(RATE_MIN - 1);
    assert_eq!(search.good, None);
    assert_eq!(probed.last(), Some(&RATE_MIN));
}

const GOOD: ProbeResult = ProbeResult {
    offered_tps: 1_000.0,
    committed_tps: 985.0,
    dropped: 0,
    p99_ms: 90.0,
    backlog_grown: 100.0,
    window_s: 3.0,
};

#[test]
fn keeping_up_has_four_conditions() {
    assert_eq!(judge(&GOOD, 100.0), Ok(()));
    let said = |probe| judge(&probe, 100.0).expect_err("refused");
    let slow = ProbeResult { committed_tps: 970.0, ..GOOD };
    assert_eq!(said(slow), "the slowest committed 97 % of what was offered");
    assert_eq!(said(ProbeResult { p99_ms: 101.0, ..GOOD }), "p99 was 101 ms, above 100");
    // A tenth of a second's operations, and two in a hundred of half the window's.
    assert_eq!(judge(&ProbeResult { backlog_grown: 129.0, ..GOOD }, 100.0), Ok(()));
    assert_eq!(said(ProbeResult { backlog_grown: 131.0, ..GOOD }), "the backlog grew");
    assert_eq!(said(ProbeResult { dropped: 1, ..GOOD }), "sessions were full");
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

#[test]
fn attempts_do_not_share_a_folder() {
    let mut config = crate::bench::config::sample();
    assert_eq!(confirmation_config(&config, 900).directory, None);
    config.directory = Some("kept".into());
    let folder = |rate| confirmation_config(&config, rate).directory;
    assert_eq!(folder(900), Some("kept/rate-900".into()));
    assert_ne!(folder(900), folder(855));
    assert_eq!(probe_config(&config, 900).directory, None, "probes are not kept");
}

#[test]
fn a_search_says_what_stopped_it() {
    let probe = |rate, failed: Option<&str>| Probe {
        rate,
        committed_tps: None,
        p99_ms: None,
        failed: failed.map(str::to_owned),
    };
    let probes =
        vec![probe(2_000, None), probe(4_000, Some("the backlog grew")), probe(3_000, None)];
    let searched = Searched { p99_limit_ms: 100.0, probes };
    assert_eq!(searched.describe(), "3 runs; at 4,000 tx/s the backlog grew");
}
