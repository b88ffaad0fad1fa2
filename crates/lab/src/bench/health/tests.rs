use super::{Health, HealthIssue, STALL_SECONDS_MAX, agree, caught_up};
use crate::status::ValidatorStatus;

fn at(operations: u64) -> Option<ValidatorStatus> {
    let root = "aa".to_owned();
    Some(ValidatorStatus { operations, executed: operations / 10, root, ..Default::default() })
}

fn watch(
    seconds: impl IntoIterator<Item = Vec<Option<ValidatorStatus>>>,
) -> Result<(), HealthIssue> {
    let mut health = Health::new(3);
    seconds.into_iter().try_for_each(|looks| health.observe(&looks))
}

#[test]
fn a_member_that_stands_still_while_others_advance_is_named() {
    let seconds = (1..=10).map(|s| vec![at(s * 10), at(10), at(s * 10)]);
    let expected = HealthIssue::Stalled { id: 1, own: 10, furthest: 60 };
    assert_eq!(watch(seconds), Err(expected));
}

#[test]
fn a_pause_of_all_is_nobodys_fault() {
    let seconds = (1..=20).map(|_| vec![at(10), at(10), at(10)]);
    assert_eq!(watch(seconds), Ok(()));
}

#[test]
fn silence_is_named_after_a_while() {
    let quiet = (1..STALL_SECONDS_MAX).map(|_| vec![at(10), at(10), None]);
    assert_eq!(watch(quiet), Ok(()));
    let silent = (0..STALL_SECONDS_MAX).map(|_| vec![at(10), at(10), None]);
    assert_eq!(watch(silent), Err(HealthIssue::Silent(2)));
}

#[test]
fn nothing_is_expected_of_the_killed() {
    let mut health = Health::new(3);
    health.excuse(0);
    for second in 1..20 {
        let looks = [None, at(second * 10), at(second * 10)];
        assert_eq!(health.observe(&looks), Ok(()));
    }
    assert!(!health.is_expected(0) && health.is_expected(1));
}

#[test]
fn two_roots_at_one_height_are_a_divergence() {
    let mut looks = [at(10), at(20), at(10)];
    assert_eq!(agree(&looks), Ok(()));
    looks[2].as_mut().expect("a status").root = "bb".to_owned();
    assert_eq!(agree(&looks), Err(HealthIssue::Diverged(0, 2, 1)));
    looks.iter_mut().flatten().for_each(|status| status.executed = 0);
    assert_eq!(agree(&looks), Ok(()), "nothing was executed");
}

#[test]
fn whoever_stays_behind_at_the_end_is_named() {
    let looks = [at(30), at(29), None];
    assert_eq!(caught_up(&looks, &[0], 0), Ok(()));
    let behind = HealthIssue::Behind { id: 1, own: 29, furthest: 30 };
    assert_eq!(caught_up(&looks, &[0, 1], 0), Err(behind));
    assert_eq!(caught_up(&looks, &[0, 1], 1), Ok(()));
    assert_eq!(caught_up(&looks, &[2], 0), Err(HealthIssue::Silent(2)));
}
