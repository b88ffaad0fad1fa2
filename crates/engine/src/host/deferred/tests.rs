use super::*;
use crate::Message;
use bytes::Bytes;
use quorate_types::machine::{Block, Record, RecordKind};
use quorate_types::{BodyRef, Height, Lane, Payload, Recipients, ReplicaId};
use std::convert::Infallible;

/// An effect as the tests tell it from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Persisted,
    Appended(u64),
    Executed(u64),
    Snapshot(u64),
    Sent,
}

use Seen::{Appended, Executed, Persisted, Sent, Snapshot};

/// A host's effects behind what defers them.
#[derive(Default)]
struct Host {
    deferred: Deferred,
    seen: Vec<Seen>,
}

impl Host {
    fn after(effects: impl IntoIterator<Item = Effect<Message>>) -> Self {
        let mut host = Self::default();
        for effect in effects {
            let Self { deferred, seen } = &mut host;
            deferred
                .pass(effect, |effect| note(seen, effect))
                .unwrap_or_else(|never| match never {});
        }
        host
    }

    fn flush(&mut self) {
        let Self { deferred, seen } = self;
        deferred.flush(|effect| note(seen, effect)).unwrap_or_else(|never| match never {});
    }
}

fn note(seen: &mut Vec<Seen>, effect: Effect<Message>) -> Result<(), Infallible> {
    seen.push(match effect {
        Effect::Persist(_) => Persisted,
        Effect::Append(record) => Appended(record.height.0),
        Effect::Task(Task::Execute(block)) => Executed(block.payload.header.height.0),
        Effect::Task(Task::Snapshot(height)) => Snapshot(height.0),
        Effect::Send { .. } => Sent,
        other => panic!("the tests have no {other:?}"),
    });
    Ok(())
}

fn append(height: u64) -> Effect<Message> {
    Effect::Append(DecidedRecord { height: Height(height), bytes: Bytes::new() })
}

fn persist() -> Effect<Message> {
    Effect::Persist(Record { kind: RecordKind::Safety, bytes: Bytes::from_static(b"a vote") })
}

fn execute(payload: Payload) -> Effect<Message> {
    let block = Block { payload, bodies: Vec::new(), decided: Bytes::new() };
    Effect::Task(Task::Execute(Box::new(block)))
}

fn empty(height: u64) -> Effect<Message> {
    execute(Payload::new(Height(height), 0, Vec::new()))
}

fn ordering(height: u64) -> Effect<Message> {
    let name = BodyRef::of_change(quorate_crypto::hash(b"what it orders"));
    execute(Payload::new(Height(height), 0, vec![name]))
}

fn snapshot(height: u64) -> Effect<Message> {
    Effect::Task(Task::Snapshot(Height(height)))
}

fn send() -> Effect<Message> {
    let to = Recipients::One(ReplicaId(1));
    Effect::Send { to, lane: Lane::Votes, waits: true, message: Message::FetchAvailable(0) }
}

/// ★ A promise may rely on the heights that were appended before it.
fn check_appends_stay_ahead() {
    let host = Host::after([append(1), send(), append(2), persist()]);
    assert_eq!(host.seen, [Sent, Appended(1), Appended(2), Persisted]);
}

#[test]
fn a_promise_takes_what_was_appended_before_it_along() {
    check_appends_stay_ahead();
}

#[test]
fn a_promise_ahead_of_what_was_appended_is_noticed() {
    mutants::assert_noticed(Mutant::HostAppendsBehind, check_appends_stay_ahead);
}

#[test]
fn an_empty_height_waits_for_the_next_task() {
    let host = Host::after([empty(1), persist(), empty(2), ordering(3), empty(4), snapshot(4)]);
    assert_eq!(
        host.seen,
        [Persisted, Executed(1), Executed(2), Executed(3), Executed(4), Snapshot(4)]
    );
}

#[test]
fn the_end_of_an_epoch_waits_for_nothing() {
    let payload = Payload::new(Height(2), 0, Vec::new());
    let last = execute(payload.ending_epoch(quorate_crypto::hash(b"the change")));
    assert_eq!(Host::after([empty(1), last]).seen, [Executed(1), Executed(2)]);
}

#[test]
fn enough_of_a_kind_go_on_their_way() {
    let most = DEFERRED_MAX as u64;
    let appended: Vec<_> = (1..=most).map(Appended).collect();
    assert_eq!(Host::after((1..most).map(append)).seen, []);
    assert_eq!(Host::after((1..=most).map(append)).seen, appended);
    let executed: Vec<_> = (1..=most).map(Executed).collect();
    assert_eq!(Host::after((1..most).map(empty)).seen, []);
    assert_eq!(Host::after((1..=most).map(empty)).seen, executed);
}

#[test]
fn after_a_flush_nothing_is_held_back() {
    let mut host = Host::after([empty(1), append(1)]);
    assert!(!host.deferred.is_empty());
    host.flush();
    assert_eq!(host.seen, [Appended(1), Executed(1)]);
    assert!(host.deferred.is_empty());
    host.flush();
    assert_eq!(host.seen.len(), 2, "nothing goes twice");
}
