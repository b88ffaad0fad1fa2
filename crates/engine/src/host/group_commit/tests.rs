use super::*;
use crate::host::barrier;
use bytes::Bytes;
use quorate_crypto::IdentitySecret;
use quorate_types::machine::{DecidedRecord, Entry, Record, RecordKind};
use quorate_types::{Body, Height, NetworkId, ReplicaId, Request};
use std::sync::Arc;

type Log = GroupCommit<Entry, u8>;

fn record() -> Entry {
    Entry::Record(Record { kind: RecordKind::Safety, bytes: Bytes::from_static(b"a vote") })
}

fn decided() -> Entry {
    Entry::Decided(DecidedRecord { height: Height(1), bytes: Bytes::new() })
}

fn body(sequence: u64) -> Entry {
    let secret = IdentitySecret::from_seed([1; 32]);
    let operation = Bytes::from_static(&[7; 1_000]);
    let request = Request::sign(&secret, NetworkId([0; 32]), sequence, &[operation]).unwrap();
    Entry::Body(Arc::new(Body::seal(ReplicaId(0), sequence, &[request])))
}

fn finish(log: &mut Log) -> Vec<u8> {
    let mut released = Vec::new();
    log.finish(|item| released.push(item));
    released
}

/// Urgent and bulk entries of each group until nothing is queued.
fn groups(log: &mut Log, bytes_max: usize) -> Vec<(usize, usize)> {
    let mut groups = Vec::new();
    while let Some(entries) = log.begin_in_turn(bytes_max) {
        let bulk = entries.iter().filter(|entry| entry.class() == EntryClass::Bulk).count();
        groups.push((entries.len() - bulk, bulk));
        finish(log);
    }
    groups
}

#[test]
fn an_item_leaves_with_the_group_of_the_promise_before_it() {
    let (_, mut log): (_, Log) = barrier();
    log.push(record());
    log.hold(2);
    assert_eq!(log.begin().map(<[_]>::len), Some(1));
    log.push(record());
    log.hold(4);
    assert!(log.begin().is_none(), "one group at a time");
    assert_eq!(finish(&mut log), [2]);
    log.hold(5);
    log.begin().unwrap();
    assert_eq!(finish(&mut log), [4, 5]);
}

#[test]
fn urgent_entries_and_bulk_take_turns() {
    let (_, mut log): (_, Log) = barrier();
    for sequence in 0..5 {
        log.push(body(sequence));
        log.push(record());
    }
    assert_eq!(groups(&mut log, 2_000), [(5, 0), (0, 2), (0, 2), (0, 1)]);
}

#[test]
fn a_group_of_bulk_makes_no_promise_durable() {
    let (_, mut log): (_, Log) = barrier();
    log.push(body(0));
    assert_eq!(log.begin_in_turn(1).unwrap().len(), 1);
    log.push(record());
    log.hold(1);
    assert_eq!(finish(&mut log), []);
    log.begin_in_turn(1).unwrap();
    assert_eq!(finish(&mut log), [1]);
}

#[test]
fn what_waits_for_no_promise_any_more_needs_no_group() {
    let (_, mut log): (_, Log) = barrier();
    log.push(record());
    log.begin().unwrap();
    log.push(decided());
    assert_eq!(finish(&mut log), []);
    // It was on its way while the group was being finished.
    log.hold(7);
    let mut released = Vec::new();
    log.release_ready(|item| released.push(item));
    assert_eq!((released, log.is_empty()), (vec![7], false));
}

#[test]
fn one_group_over_everything_keeps_the_order_of_all() {
    let (_, mut log): (_, Log) = barrier();
    let pushed = [body(0), record(), decided(), body(1), record()];
    pushed.iter().for_each(|entry| log.push(entry.clone()));
    let classes = |entries: &[Entry]| entries.iter().map(LogEntry::class).collect::<Vec<_>>();
    assert_eq!(log.begin().map(classes), Some(classes(&pushed)));
}

/// Bulk stops at the entry that brings it to the bound, be it to the byte.
#[test]
fn bulk_that_comes_to_the_bound_is_enough() {
    for (less, expected) in [(0, vec![(0, 1); 3]), (1, vec![(0, 1); 3])] {
        let (_, mut log): (_, Log) = barrier();
        (0..3).for_each(|sequence| log.push(body(sequence)));
        let bound = body(0).bulk_bytes() - less;
        assert_eq!(groups(&mut log, bound), expected);
    }
    let (_, mut log): (_, Log) = barrier();
    (0..3).for_each(|sequence| log.push(body(sequence)));
    assert_eq!(groups(&mut log, body(0).bulk_bytes() + 1), [(0, 2), (0, 1)]);
}
