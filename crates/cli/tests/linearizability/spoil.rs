//! A recorded history, spoilt: each of these must be noticed, or the checkers check nothing.

use super::clients::KEYS;
use super::history::{Action, Call, End, History, Reply, Value};
use super::{certified, checker};
use std::time::Duration;

/// Makes one thing in the calls of a key wrong; `None` where they have no place for it.
type Spoil = fn(&[Call]) -> Option<Vec<Call>>;

const SPOILS: [(&str, Spoil); 6] = [
    ("two reads that change places", swap_reads),
    ("a read of what was replaced", read_stale),
    ("a read of what is not yet written", read_future),
    ("a write that is lost", lose_write),
    ("a swap that succeeds twice", swap_twice),
    ("a refused swap that says it swapped", swap_refused),
];

/// Spoils each key's calls in each way. Each way must have a place in some key.
pub(crate) fn check_that_it_is_noticed(history: &History) {
    for (what, spoil) in SPOILS {
        let spoilt: Vec<_> =
            (0..KEYS).filter_map(|key| spoil(&history.of_key(key).calls)).collect();
        assert!(!spoilt.is_empty(), "no place for {what}");
        for calls in spoilt {
            assert!(checker::check(&calls).is_err(), "not noticed: {what}");
        }
    }
    check_that_certified_lies_are_noticed(history);
}

/// A certified read of one key, shown as the only read of another: beside one of that height it
/// would be told as a disagreement.
fn check_that_certified_lies_are_noticed(history: &History) {
    let read = history.reads.iter().find(|read| read.value.is_some()).expect("a value was read");
    let mut of_other = history.of_key((read.key + 1) % KEYS);
    of_other.reads = vec![*read];
    assert_eq!(certified::check(&of_other), Err(certified::Lie::Invented(read)));
}

/// Reads that ended, with what they saw.
fn reads(calls: &[Call]) -> impl Iterator<Item = (usize, Call, u64)> + Clone {
    let value = |call: &Call| match call.reply() {
        Some(Reply::Value(value)) => value,
        _ => None,
    };
    calls.iter().enumerate().filter_map(move |(at, call)| Some((at, *call, value(call)?)))
}

/// The call that wrote a value, and when it had returned.
fn writer(calls: &[Call], value: u64) -> Option<&Call> {
    calls.iter().find(|call| call.written() == Some(Some(value)))
}

fn returned(call: &Call) -> Duration {
    call.end.map_or(Duration::MAX, |end| end.returned)
}

fn with_reply(calls: &[Call], at: usize, reply: Reply) -> Vec<Call> {
    let mut calls = calls.to_vec();
    calls[at].end = calls[at].end.map(|end| End { reply, ..end });
    calls
}

fn with_read(calls: &[Call], at: usize, value: Value) -> Vec<Call> {
    with_reply(calls, at, Reply::Value(value))
}

/// The first returned before what the second saw was being written.
fn swap_reads(calls: &[Call]) -> Option<Vec<Call>> {
    let (first, second) = reads(calls).find_map(|first| {
        let is_later =
            |value| writer(calls, value).is_some_and(|it| it.invoked > returned(&first.1));
        reads(calls).find(|second| is_later(second.2)).map(|second| (first, second))
    })?;
    let calls = with_read(calls, first.0, Some(second.2));
    Some(with_read(&calls, second.0, Some(first.2)))
}

/// A read that began when a first write and then a second one had returned sees the first.
fn read_stale(calls: &[Call]) -> Option<Vec<Call>> {
    let puts = || calls.iter().filter(|call| matches!(call.action, Action::Put(_)));
    reads(calls).find_map(|(at, read, _)| {
        let second = puts().rfind(|put| returned(put) < read.invoked)?;
        let first = puts().find(|put| returned(put) < second.invoked)?;
        Some(with_read(calls, at, first.written()?))
    })
}

fn read_future(calls: &[Call]) -> Option<Vec<Call>> {
    reads(calls).find_map(|(at, read, _)| {
        let later = calls.iter().filter(|call| call.invoked > returned(&read));
        let value = later.filter_map(Call::written).find(Option::is_some)?;
        Some(with_read(calls, at, value))
    })
}

/// Somebody read it all the same.
fn lose_write(calls: &[Call]) -> Option<Vec<Call>> {
    let lost = reads(calls).find_map(|(_, _, value)| writer(calls, value))?;
    Some(calls.iter().filter(|call| *call != lost).copied().collect())
}

/// Another swap of the same value, which was written once, at the same time.
fn swap_twice(calls: &[Call]) -> Option<Vec<Call>> {
    let is_it = |call: &&Call| {
        matches!(call.action, Action::Swap { expected: Some(_), .. })
            && call.reply() == Some(Reply::Swapped)
    };
    let swapped = calls.iter().find(is_it)?;
    let Action::Swap { expected, .. } = swapped.action else { return None };
    let action = Action::Swap { expected, new: Some(u64::MAX) };
    Some([calls, &[Call { action, ..*swapped }]].concat())
}

/// A compare-and-swap whose expected value had been swapped away by another.
fn swap_refused(calls: &[Call]) -> Option<Vec<Call>> {
    let expected = |call: &Call, reply: fn(Reply) -> bool| match call.action {
        Action::Swap { expected: Some(expected), .. } => {
            call.reply().is_some_and(reply).then_some(expected)
        }
        _ => None,
    };
    let swapped: Vec<u64> =
        calls.iter().filter_map(|call| expected(call, |reply| reply == Reply::Swapped)).collect();
    let refused = |call: &Call| {
        expected(call, |reply| matches!(reply, Reply::NotSwapped { .. }))
            .is_some_and(|expected| swapped.contains(&expected))
    };
    let at = calls.iter().position(refused)?;
    Some(with_reply(calls, at, Reply::Swapped))
}
