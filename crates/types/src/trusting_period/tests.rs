use super::{DAY_MS, TrustingPeriod};
use quorate_crypto::mutants::{Mutant, assert_noticed};

const KNOWN_MS: u64 = 1_700_000_000_000;

/// ★ Beyond the period nobody is believed who says how an epoch of long ago ended.
fn check_old_keys_are_not_trusted() {
    for (days, is_trusted) in [(0, true), (180, true), (181, false), (4_000, false)] {
        let now_ms = KNOWN_MS + days * DAY_MS;
        assert_eq!(TrustingPeriod { days: 180 }.covers(KNOWN_MS, now_ms), is_trusted, "{days}");
    }
    assert!(TrustingPeriod { days: u64::MAX }.covers(0, u64::MAX), "days without end");
    assert!(TrustingPeriod { days: 1 }.covers(KNOWN_MS, 0), "a clock that was set back");
}

#[test]
fn old_keys_are_not_trusted() {
    check_old_keys_are_not_trusted();
}

#[test]
fn trusting_old_keys_is_noticed() {
    assert_noticed(Mutant::TrustForEver, check_old_keys_are_not_trusted);
}
