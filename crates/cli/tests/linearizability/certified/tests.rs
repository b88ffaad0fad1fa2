//! Certified reads that can be, and that cannot.

use super::super::history::{Action, Call, CertifiedRead, End, History, Reply, Value};
use super::{Lie, check, find_disorder};
use std::time::Duration;

const DONE: Reply = Reply::Done { replaced: false };

/// A call that took effect at `height`, at ten times so many seconds.
fn at(height: u64, action: Action, reply: Reply) -> Call {
    let invoked = Duration::from_secs(10 * height);
    let end =
        Some(End { returned: invoked + Duration::from_secs(5), reply, height, is_proven: true });
    Call { client: 0, key: 0, action, invoked, end }
}

fn open(height: u64, action: Action) -> Call {
    Call { end: None, ..at(height, action, DONE) }
}

fn read(value: Value, height: u64, returned: u64) -> CertifiedRead {
    CertifiedRead { key: 0, returned: Duration::from_secs(returned), value, height }
}

fn history(calls: &[Call], reads: &[CertifiedRead]) -> History {
    History { calls: calls.to_vec(), reads: reads.to_vec(), unread: 0 }
}

#[test]
fn an_old_value_is_no_lie() {
    let calls = [at(1, Action::Put(1), DONE), at(5, Action::Put(2), DONE)];
    for (value, height) in [(None, 0), (Some(1), 1), (Some(1), 4), (Some(2), 5), (Some(2), 9)] {
        assert_eq!(check(&history(&calls, &[read(value, height, 100)])), Ok(()));
    }
}

#[test]
fn two_values_at_one_height_are_a_lie() {
    let calls = [open(1, Action::Put(1)), open(1, Action::Put(2))];
    let reads = [read(Some(1), 7, 100), read(Some(2), 7, 101)];
    assert_eq!(check(&history(&calls, &reads)), Err(Lie::Disagree(&reads[0], &reads[1])));
}

#[test]
fn a_value_that_nobody_wrote_is_a_lie() {
    let invented = read(Some(9), 7, 100);
    assert_eq!(check(&history(&[], &[invented])), Err(Lie::Invented(&invented)));
    let refused = Reply::NotSwapped { actual: None };
    let swap = at(1, Action::Swap { expected: Some(1), new: Some(9) }, refused);
    assert_eq!(check(&history(&[swap], &[invented])), Err(Lie::Invented(&invented)));
    let soon = read(Some(9), 7, 69);
    assert_eq!(check(&history(&[open(7, Action::Put(9))], &[soon])), Err(Lie::Invented(&soon)));
}

#[test]
fn a_value_below_its_height_is_a_lie() {
    let put = at(5, Action::Put(1), DONE);
    let early = read(Some(1), 4, 100);
    assert_eq!(check(&history(&[put], &[early])), Err(Lie::TooEarly(&early, &put)));
}

#[test]
fn a_value_that_was_replaced_at_that_height_is_a_lie() {
    let put = at(1, Action::Put(1), DONE);
    let replaced = read(Some(1), 7, 100);
    let others = [
        at(5, Action::Put(2), DONE),
        at(5, Action::Delete, DONE),
        at(5, Action::Swap { expected: Some(1), new: Some(2) }, Reply::Swapped),
    ];
    for other in others {
        assert_eq!(
            check(&history(&[put, other], &[replaced])),
            Err(Lie::Replaced(&replaced, &other))
        );
    }
}

#[test]
fn an_absence_needs_a_delete_after_the_last_write() {
    let put = at(1, Action::Put(1), DONE);
    let absent = read(None, 7, 100);
    assert_eq!(check(&history(&[put], &[absent])), Err(Lie::Replaced(&absent, &put)));
    assert_eq!(check(&history(&[put, at(5, Action::Delete, DONE)], &[absent])), Ok(()));
    assert_eq!(check(&history(&[put, open(5, Action::Delete)], &[absent])), Ok(()));
    let late = at(8, Action::Delete, DONE);
    assert_eq!(check(&history(&[put, late], &[absent])), Err(Lie::Replaced(&absent, &put)));
}

#[test]
fn heights_follow_time() {
    let (first, second) = (at(1, Action::Get, DONE), at(5, Action::Get, DONE));
    assert_eq!(find_disorder(&[second, first]), None);
    let end = second.end.map(|end| End { height: 0, ..end });
    let below = Call { end, ..second };
    assert_eq!(find_disorder(&[below, first]), Some((first, below)));
}
