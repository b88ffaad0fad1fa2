use super::{DOUBLINGS_MAX, PASSED_OVER, Silence};
use quorate_types::{ReplicaId, Time};
use std::time::Duration;

const MEMBER: ReplicaId = ReplicaId(2);

/// Times for which a member that never answers is passed over, one after the other.
fn spans(silence: &mut Silence, count: u32) -> Vec<Duration> {
    let mut now = Time(0);
    let mut span = || {
        let asked = now;
        now = now + Duration::from_millis(500);
        silence.missed(now, MEMBER, asked);
        let from = now;
        while silence.is_passed_over(now, MEMBER) {
            now = now + Duration::from_millis(100);
        }
        now.since(from)
    };
    (0..count).map(|_| span()).collect()
}

#[test]
fn who_never_answers_is_passed_over_for_ever_longer() {
    let count = DOUBLINGS_MAX + 2;
    let expected = (0..count).map(|times| PASSED_OVER * 2_u32.pow(times.min(DOUBLINGS_MAX)));
    let mut silence = Silence::default();
    assert_eq!(spans(&mut silence, count), expected.collect::<Vec<_>>());
    silence.heard(MEMBER);
    assert_eq!(spans(&mut silence, 1), [PASSED_OVER], "an answer counts for all before it");
}

/// What was asked before anybody knew of the silence is part of it.
#[test]
fn what_was_under_way_counts_once() {
    let mut silence = Silence::default();
    for asked in [1_000, 1_000, 2_000, 400_000] {
        silence.missed(Time(501_000), MEMBER, Time(asked));
    }
    let over = Time(501_000) + PASSED_OVER;
    assert!(silence.is_passed_over(Time(501_000), MEMBER));
    assert!(!silence.is_passed_over(over, MEMBER));
    assert!(!silence.is_passed_over(Time(501_000), ReplicaId(1)), "each for itself");
}
