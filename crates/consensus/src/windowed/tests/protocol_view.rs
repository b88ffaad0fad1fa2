//! What the engine reads of a machine.

use super::harness::*;
use super::*;
use crate::ProtocolView;
use quorate_types::{BlockId, BodyRef};

/// PBFT §4: the primary of view `v` is member `v mod n`, and keeps it while it does its work.
#[test]
fn primaries_take_turns() {
    let bench = Bench::new(ProtocolKind::Pbft, 0);
    let leaders: Vec<u16> = bench.machine.upcoming_leaders(5).iter().map(|it| it.0).collect();
    assert_eq!(leaders, [1, 2, 3, 0, 1]);
    assert!(bench.machine.has_stable_leader());
    assert_eq!(bench.machine.checkpoint_every(), Some(CHECKPOINT_EVERY));
}

/// Of slots the engine sees those that are delivered, by the digests of their values.
#[test]
fn the_tip_is_the_last_delivered_value() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let [first, second] = [1, 2].map(|slot| BlockId(at(1, slot, A).digest));
    assert_eq!(bench.machine.tip(), bench.verifier.genesis());
    assert!(!bench.machine.has_block(first));
    bench.decide(1, A);
    bench.decide(3, A);
    assert_eq!(bench.machine.tip(), first);
    assert!(bench.machine.has_block(first) && !bench.machine.has_block(second));
    assert!(!bench.machine.has_block(BlockId(at(1, 3, A).digest)), "slot 2 is missing");
}

/// A value may get a vote while it waits for its bodies, in the view in which it was proposed.
#[test]
fn a_value_that_waits_for_its_bodies_may_get_a_vote() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let [id, other] = [A, B].map(|stamp| BlockId(at(1, 1, stamp).digest));
    assert!(!bench.machine.may_vote(id));
    bench.propose(1, 1, A);
    assert!(bench.machine.may_vote(id) && !bench.machine.may_vote(other));
    bench.store(1, A);
    assert!(!bench.machine.may_vote(id), "it has the vote");
    bench.propose(1, 2, A);
    bench.leave_view();
    assert!(!bench.machine.may_vote(BlockId(at(1, 2, A).digest)), "the view is over");
}

/// Bodies of undecided values are not to be released.
#[test]
fn bodies_of_undecided_values_are_named() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let body = |sequence| BodyRef { author: ReplicaId(2), sequence, digest: hash(b"body") };
    for slot in [1, 2] {
        let payload = Payload::new(Height(slot), A, vec![body(slot)]);
        let message = pre_prepare(&bench.verifier, 1, payload);
        bench.tell(1, message);
    }
    assert_eq!(bench.machine.undecided_bodies(), BTreeSet::from([body(1), body(2)]));
    let first = Payload::new(Height(1), A, vec![body(1)]);
    let decided = decided(&bench.verifier, 1, first);
    bench.tell(2, Message::Decided(Box::new(decided)));
    assert_eq!(bench.machine.undecided_bodies(), BTreeSet::from([body(2)]));
}

/// Each record of a decided slot stands for itself: it names no parent, and rests on nothing.
#[test]
fn records_of_decided_slots_stand_alone() {
    let bench = Bench::new(ProtocolKind::Pbft, 0);
    let record = decided(&bench.verifier, 1, value(1, A)).encode();
    let machine = &bench.machine;
    let id = BlockId(at(1, 1, A).digest);
    assert_eq!(machine.record_id(&record), Some(id));
    assert_eq!(machine.record_payload(&record), Some(value(1, A)));
    let torn = Bytes::from_static(b"torn");
    assert_eq!((machine.record_id(&torn), machine.record_payload(&torn)), (None, None));
    assert_eq!(machine.servable(&[]), 0);
    assert_eq!(machine.servable(&[record.clone(), record.clone(), record]), 3);
    assert_eq!(machine.tail(machine.tip(), id), None);
    let certified = Message::Prepare(prepared(&bench.verifier, at(1, 1, A)));
    let certified = bench.verifier.protocol().windowed(certified);
    assert_eq!(machine.rests_on(&certified), None);
}

/// A primary may hold slots back once its view has decided one of its own, and nobody else may.
#[test]
fn a_primary_may_pause_once_its_view_has_decided() {
    let mut primary = Bench::new(ProtocolKind::Pbft, 1);
    assert_eq!(primary.machine.pause_max(), Duration::ZERO);
    primary.decide(1, A);
    assert_eq!(primary.machine.pause_max(), Duration::from_secs(1) / 32);
    primary.leave_view();
    assert_eq!(primary.machine.pause_max(), Duration::ZERO);
    let mut backup = Bench::new(ProtocolKind::Pbft, 0);
    backup.decide(1, A);
    assert_eq!(backup.machine.pause_max(), Duration::ZERO);
}
