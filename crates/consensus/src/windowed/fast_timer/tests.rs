use super::*;

const MOST: Duration = Duration::from_millis(100);

#[test]
fn the_wait_follows_what_was_seen() {
    let mut timer = FastTimer::new(MOST);
    (0..100).for_each(|_| timer.observed(Duration::from_millis(4)));
    let wait = timer.wait_at(Height(1));
    assert!((4..=5).contains(&wait.as_millis()), "{wait:?}");
    (0..100)
        .for_each(|turn| timer.observed(Duration::from_millis(if turn % 2 == 0 { 2 } else { 10 })));
    let wait = timer.wait_at(Height(1));
    assert!(
        (20..=26).contains(&wait.as_millis()),
        "the mean of 6 and four deviations of 4: {wait:?}"
    );
    (0..100).for_each(|_| timer.observed(Duration::from_secs(9)));
    assert_eq!(timer.wait_at(Height(1)), MOST);
    (0..200).for_each(|_| timer.observed(Duration::ZERO));
    assert_eq!(timer.wait_at(Height(1)), WAIT_MIN);
}

#[test]
fn nobody_waits_for_those_who_never_come() {
    let mut timer = FastTimer::new(MOST);
    (0..MISSES_MAX).for_each(|_| timer.missed());
    let waits: Vec<bool> =
        (0..2 * PROBE_EVERY).map(|slot| !timer.wait_at(Height(slot)).is_zero()).collect();
    assert_eq!(waits.iter().filter(|waited| **waited).count(), 2, "one probe each so often");
    timer.met();
    assert!(!timer.wait_at(Height(1)).is_zero(), "a slot that others collected");
    (0..MISSES_MAX).for_each(|_| timer.missed());
    timer.observed(Duration::from_millis(3));
    assert!(!timer.wait_at(Height(1)).is_zero());
}
