use super::{Trust, is_within};
use arc_swap::ArcSwap;
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_engine::Status;
use quorate_types::Height;
use std::sync::Arc;

const DAY_MS: u64 = 86_400_000;

/// ★ Beyond the period nobody is believed who shows how an epoch of long ago ended.
fn check_old_keys_are_not_trusted() {
    let known_ms = 1_700_000_000_000;
    for (days, is_trusted) in [(0, true), (180, true), (181, false), (4_000, false)] {
        assert_eq!(is_within(180, known_ms, known_ms + days * DAY_MS), is_trusted, "{days}");
    }
    assert!(is_within(u64::MAX, 0, u64::MAX), "days without end");
    assert!(is_within(1, known_ms, 0), "a clock that was set back");
}

#[test]
fn old_keys_are_not_trusted() {
    check_old_keys_are_not_trusted();
}

#[test]
fn trusting_old_keys_is_noticed() {
    assert_noticed(Mutant::TrustForEver, check_old_keys_are_not_trusted);
}

/// Who executes something in this run is with the committee, and a founding file is its operator's.
#[test]
fn what_is_known_now_is_trusted() {
    let trust = |known, executed| {
        let status = Status { executed, ..Status::default() };
        Trust { days: 1, known, status: Arc::new(ArcSwap::from_pointee(status)) }
    };
    let now_ms = 10 * DAY_MS;
    assert!(trust(None, Height(0)).holds(now_ms));
    assert!(!trust(Some((0, Height(7))), Height(7)).holds(now_ms));
    assert!(trust(Some((0, Height(7))), Height(8)).holds(now_ms));
}
