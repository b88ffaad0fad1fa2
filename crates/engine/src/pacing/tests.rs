use super::{HEIGHTS, Pacing};
use quorate_types::Time;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(1);
const PACE: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_millis(31);
const SHORT: Duration = Duration::from_millis(10);

/// Time of the last decision.
const LAST: Time = Time(10_000_000);

/// So many heights were decided, with so much between two.
fn after(heights: u64, every: Duration) -> Pacing {
    let mut pacing = Pacing::new(TIMEOUT);
    pacing.set(PACE);
    let ages = (0..heights).rev().map(|age| every * u32::try_from(age).expect("few"));
    ages.for_each(|age| pacing.decided(LAST - age, SHORT));
    pacing
}

#[test]
fn a_pause_follows_many_heights_and_is_as_long_as_it_may_be() {
    let since = LAST;
    let until = |heights, every_ms, longest| {
        after(heights, Duration::from_millis(every_ms)).until(since, longest)
    };
    let many = HEIGHTS as u64;
    assert_eq!(until(many, 50, LONGEST), Some(since + PACE));
    assert_eq!(until(many + 5, 50, LONGEST), Some(since + PACE));
    assert_eq!(until(many, 50, SHORT), Some(since + SHORT), "no longer than it may");
    assert_eq!(until(many, 50, Duration::ZERO), None, "not where it must not");
    assert_eq!(until(many - 1, 1, LONGEST), None, "not after the first few");
    assert_eq!(until(many, 142, LONGEST), Some(since + PACE));
    assert_eq!(until(many, 143, LONGEST), None, "nor where they are far apart");
}

#[test]
fn a_height_after_a_quiet_time_waits_for_nothing() {
    let pacing = after(HEIGHTS as u64, Duration::from_millis(5));
    assert_eq!(pacing.until(LAST, LONGEST), Some(LAST + PACE));
    let later = LAST + TIMEOUT;
    assert_eq!(pacing.until(later, LONGEST), None);
}

#[test]
fn there_is_no_pause_before_the_host_asks_for_one_nor_after_it_takes_that_back() {
    let mut pacing = after(HEIGHTS as u64, SHORT);
    pacing.set(Duration::ZERO);
    assert_eq!((pacing.until(LAST, LONGEST), pacing.pace()), (None, Duration::ZERO));
}

#[test]
fn waits_are_long_while_one_of_the_last_was() {
    let mut pacing = after(1, SHORT);
    assert!(!pacing.waits_are_long());
    pacing.decided(LAST, TIMEOUT / 16);
    assert!(!pacing.waits_are_long());
    pacing.decided(LAST, TIMEOUT / 15);
    assert!(pacing.waits_are_long());
    (0..HEIGHTS).for_each(|_| pacing.decided(LAST, SHORT));
    assert!(!pacing.waits_are_long());
}
