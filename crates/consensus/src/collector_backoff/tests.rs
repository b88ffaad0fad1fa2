use super::*;

const MAX: Duration = Duration::from_millis(100);
const FIRST: ReplicaId = ReplicaId(3);
const SECOND: ReplicaId = ReplicaId(5);

fn millis(millis: u64) -> Time {
    Time(1_000 * millis)
}

#[test]
fn the_first_collector_waits_for_nobody() {
    assert_eq!(CollectorBackoff::new(MAX).delay_after(millis(1), &[]), Duration::ZERO);
}

/// The delay behind each earlier collector is four times the mean of what was observed, within
/// bounds.
#[test]
fn the_delay_follows_what_was_observed() {
    let mut backoff = CollectorBackoff::new(MAX);
    assert_eq!(backoff.delay_after(millis(1), &[FIRST]), MAX, "nothing is known yet");
    (0..100).for_each(|_| backoff.observed(FIRST, Duration::from_millis(10)));
    let each = backoff.delay_after(millis(1), &[FIRST]);
    assert!((39..=42).contains(&each.as_millis()), "{each:?}");
    assert_eq!(backoff.delay_after(millis(1), &[FIRST, SECOND]), 2 * each);
    (0..100).for_each(|_| backoff.observed(FIRST, Duration::ZERO));
    assert_eq!(backoff.delay_after(millis(1), &[FIRST]), WAIT_MIN);
    (0..100).for_each(|_| backoff.observed(FIRST, Duration::from_secs(9)));
    assert_eq!(backoff.delay_after(millis(1), &[FIRST]), MAX);
}

#[test]
fn a_collector_that_missed_its_turn_is_not_awaited_for_a_while() {
    let mut backoff = CollectorBackoff::new(MAX);
    backoff.timed_out(millis(0), &[FIRST]);
    assert!(!backoff.awaits(millis(9_999), FIRST) && backoff.awaits(millis(10_000), FIRST));
    assert!(backoff.awaits(millis(0), SECOND));
    let both = backoff.delay_after(millis(0), &[FIRST, SECOND]);
    assert_eq!(both, backoff.delay_after(millis(0), &[SECOND]));
}

#[test]
fn a_collector_that_is_heard_is_awaited_again() {
    let mut backoff = CollectorBackoff::new(MAX);
    backoff.timed_out(millis(0), &[FIRST, SECOND]);
    assert_eq!(backoff.len(), 2);
    backoff.heard(FIRST);
    assert!(backoff.awaits(millis(1), FIRST) && !backoff.awaits(millis(1), SECOND));
    assert_eq!(backoff.len(), 1);
    backoff.observed(SECOND, Duration::from_millis(10));
    assert!(backoff.awaits(millis(1), SECOND));
}

/// A turn begins once, at the time that the first vote gave it.
#[test]
fn a_turn_comes_when_its_time_has() {
    let mut turn = Turn::default();
    assert!(!turn.is_known() && turn.deadline().is_none() && !turn.has_come(millis(9)));
    turn.start(|| millis(5));
    turn.start(|| millis(1));
    assert_eq!(turn.deadline(), Some(millis(5)));
    assert!(!turn.has_come(millis(4)) && turn.has_come(millis(5)));
    assert!(turn.has_come(millis(0)) && turn.deadline().is_none());
}
