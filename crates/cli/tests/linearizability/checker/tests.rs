//! Histories that are linearizable, and that are not.

use super::super::history::{Action, Call, End, Reply, Value};
use super::check;
use std::time::Duration;

const DONE: Reply = Reply::Done { replaced: false };
const REPLACED: Reply = Reply::Done { replaced: true };

fn call(action: Action, invoked: u64, end: Option<(u64, Reply)>) -> Call {
    let end = end.map(|(at, reply)| End {
        returned: Duration::from_secs(at),
        reply,
        height: 0,
        is_proven: true,
    });
    Call { client: 0, key: 0, action, invoked: Duration::from_secs(invoked), end }
}

fn ended(action: Action, invoked: u64, returned: u64, reply: Reply) -> Call {
    call(action, invoked, Some((returned, reply)))
}

fn put(value: u64, invoked: u64, returned: u64, reply: Reply) -> Call {
    ended(Action::Put(value), invoked, returned, reply)
}

fn get(value: Value, invoked: u64, returned: u64) -> Call {
    ended(Action::Get, invoked, returned, Reply::Value(value))
}

fn swap(expected: Value, new: Value, invoked: u64, returned: u64, reply: Reply) -> Call {
    ended(Action::Swap { expected, new }, invoked, returned, reply)
}

fn open(action: Action, invoked: u64) -> Call {
    call(action, invoked, None)
}

fn is_linearizable(calls: &[Call]) -> bool {
    check(calls).is_ok()
}

#[test]
fn one_after_the_other() {
    assert!(is_linearizable(&[]));
    assert!(is_linearizable(&[
        get(None, 0, 1),
        put(1, 2, 3, DONE),
        get(Some(1), 4, 5),
        swap(Some(1), Some(2), 6, 7, Reply::Swapped),
        swap(Some(1), Some(3), 8, 9, Reply::NotSwapped { actual: Some(2) }),
        ended(Action::Delete, 10, 11, REPLACED),
        ended(Action::Delete, 12, 13, DONE),
        get(None, 14, 15),
    ]));
}

#[test]
fn concurrent_calls_take_effect_in_either_order() {
    let puts = [put(1, 0, 10, DONE), put(2, 0, 10, REPLACED)];
    let swapped = [put(1, 0, 10, REPLACED), put(2, 0, 10, DONE)];
    for (puts, last) in [(puts, 2), (swapped, 1)] {
        assert!(is_linearizable(&[&puts[..], &[get(Some(last), 11, 12)]].concat()));
        assert!(!is_linearizable(&[&puts[..], &[get(Some(3 - last), 11, 12)]].concat()));
    }
}

#[test]
fn a_concurrent_read_sees_either_value() {
    for seen in [Some(1), Some(2)] {
        let calls = [put(1, 0, 1, DONE), put(2, 2, 9, REPLACED), get(seen, 3, 4)];
        assert!(is_linearizable(&calls));
    }
}

#[test]
fn a_stale_read() {
    let writes = [put(1, 0, 1, DONE), put(2, 2, 3, REPLACED)];
    assert!(!is_linearizable(&[&writes[..], &[get(Some(1), 4, 5)]].concat()));
    assert!(!is_linearizable(&[&writes[..], &[get(None, 4, 5)]].concat()));
}

#[test]
fn two_reads_that_see_a_concurrent_write_and_then_no_more() {
    let write = put(2, 2, 9, REPLACED);
    let first = put(1, 0, 1, DONE);
    assert!(is_linearizable(&[first, write, get(Some(1), 3, 4), get(Some(2), 5, 6)]));
    assert!(!is_linearizable(&[first, write, get(Some(2), 3, 4), get(Some(1), 5, 6)]));
}

#[test]
fn a_lost_update() {
    let calls = [put(1, 0, 1, DONE), put(2, 2, 3, DONE), get(Some(2), 4, 5)];
    assert!(!is_linearizable(&calls), "the second did not see the first");
    let lost = [put(1, 0, 1, DONE), get(None, 2, 3)];
    assert!(!is_linearizable(&lost));
}

#[test]
fn a_swap_that_succeeded_twice() {
    let first = put(1, 0, 1, DONE);
    let swap = |new| swap(Some(1), Some(new), 2, 9, Reply::Swapped);
    assert!(is_linearizable(&[first, swap(2)]));
    assert!(!is_linearizable(&[first, swap(2), swap(3)]));
}

#[test]
fn a_value_that_nobody_wrote() {
    assert!(!is_linearizable(&[put(1, 0, 1, DONE), get(Some(7), 0, 9)]));
    let refused = swap(None, Some(7), 2, 3, Reply::NotSwapped { actual: Some(1) });
    assert!(!is_linearizable(&[put(1, 0, 1, DONE), refused, get(Some(7), 4, 5)]));
}

#[test]
fn a_value_from_the_future() {
    assert!(!is_linearizable(&[get(Some(1), 0, 1), put(1, 2, 3, DONE)]));
}

#[test]
fn an_open_write_takes_effect_late_or_never_but_not_twice_and_not_before_its_invocation() {
    let calls = |reads: &[Call]| {
        let writes = [put(1, 0, 1, DONE), open(Action::Put(2), 2), put(3, 4, 5, REPLACED)];
        is_linearizable(&[&writes[..], reads].concat())
    };
    assert!(calls(&[]));
    assert!(calls(&[get(Some(3), 6, 7), get(Some(3), 90, 91)]), "never");
    assert!(calls(&[get(Some(3), 6, 7), get(Some(2), 90, 91)]), "late");
    assert!(calls(&[get(Some(2), 2, 3), get(Some(3), 6, 7)]), "soon");
    assert!(!calls(&[get(Some(2), 2, 3), get(Some(2), 6, 7)]), "twice");
    assert!(!calls(&[get(Some(2), 0, 1)]), "before");
}

#[test]
fn an_open_delete_and_an_open_swap_explain_what_is_seen_later() {
    let first = put(1, 0, 1, DONE);
    assert!(is_linearizable(&[first, open(Action::Delete, 2), get(None, 8, 9)]));
    let swap = open(Action::Swap { expected: Some(1), new: Some(2) }, 2);
    assert!(is_linearizable(&[first, swap, get(Some(1), 4, 5), get(Some(2), 8, 9)]));
    assert!(!is_linearizable(&[put(3, 0, 1, DONE), swap, get(Some(2), 8, 9)]), "it finds 3");
}

#[test]
fn many_open_writes_do_not_make_the_search_long() {
    let mut calls = vec![put(0, 0, 1, DONE)];
    calls.extend((1..40).map(|value| open(Action::Put(value), 2)));
    for round in 1..100 {
        let value = if round % 20 == 0 { round / 20 } else { 1_000 + round };
        let at = 10 * round;
        if value >= 1_000 {
            calls.push(put(value, at, at + 5, REPLACED));
        }
        calls.push(get(Some(value), at + 6, at + 9));
    }
    assert!(is_linearizable(&calls));
}

#[test]
fn a_violation_says_how_far_an_order_goes() {
    let (first, stale) = (put(1, 0, 1, DONE), get(None, 2, 3));
    let violation = check(&[first, stale]).expect_err("a stale read");
    assert_eq!(violation.ordered, [first]);
    assert_eq!(violation.value, Some(1));
    assert_eq!(violation.misfits, [stale]);
}
