use super::{Schedule, UNDER_WAY_MAX, UPCOMING};
use bytes::Bytes;
use quorate_crypto::hash;
use quorate_types::{BodyRef, Height, Payload, ReplicaId};
use std::collections::BTreeSet;

fn name(k: u64) -> BodyRef {
    BodyRef { author: ReplicaId(0), sequence: k, digest: hash(b"") }
}

fn decide(schedule: &mut Schedule, height: u64) {
    schedule.decide(Payload::new(Height(height), 0, vec![name(height)]), Bytes::new());
}

#[test]
fn heights_execute_in_order_a_few_at_a_time() {
    let mut schedule = Schedule::default();
    schedule.resume(Height(10), Height(0));
    for height in 11..31 {
        decide(&mut schedule, height);
    }
    let mut started = 0;
    while schedule.next().is_some() {
        schedule.start().unwrap();
        started += 1;
    }
    assert_eq!(started, UNDER_WAY_MAX);
    assert!(schedule.needs(&name(11)) && schedule.needs(&name(30)));
    assert_eq!(schedule.finish(Height(11)), [name(11)]);
    assert!(!schedule.needs(&name(11)));
    assert_eq!(schedule.next().unwrap().header.height, Height(19));
    assert_eq!((schedule.decided(), schedule.executed()), (Height(30), Height(11)));
}

/// A body in two heights is needed until the second is executed.
#[test]
fn a_body_decided_twice_is_needed_twice() {
    let mut schedule = Schedule::default();
    for height in 1..=2 {
        schedule.decide(Payload::new(Height(height), 0, vec![name(9)]), Bytes::new());
        schedule.start().unwrap();
    }
    schedule.finish(Height(1));
    assert!(schedule.needs(&name(9)));
    schedule.finish(Height(2));
    assert!(!schedule.needs(&name(9)));
}

#[test]
#[should_panic(expected = "heights are decided in order")]
fn a_height_left_out_is_our_own_mistake() {
    decide(&mut Schedule::default(), 2);
}

#[test]
#[should_panic(expected = "heights are executed in order")]
fn an_execution_out_of_order_is_our_own_mistake() {
    let mut schedule = Schedule::default();
    decide(&mut schedule, 1);
    schedule.start().unwrap();
    schedule.finish(Height(2));
}

/// Bodies are released when every height that orders them is durable.
#[test]
fn what_is_durable_is_released_unless_a_later_height_needs_it() {
    let mut schedule = Schedule::default();
    schedule.decide(Payload::new(Height(1), 0, vec![name(1), name(2)]), Bytes::new());
    schedule.decide(Payload::new(Height(2), 0, vec![name(2)]), Bytes::new());
    schedule.start().unwrap();
    schedule.finish(Height(1));
    assert!(!schedule.has_settled(Height(0)) && schedule.has_settled(Height(1)));
    assert_eq!(schedule.settle(Height(0), &BTreeSet::new()), []);
    assert_eq!(schedule.settle(Height(1), &BTreeSet::new()), [(Height(1), vec![name(1)])]);
    schedule.start().unwrap();
    schedule.finish(Height(2));
    assert_eq!(schedule.settle(Height(5), &BTreeSet::new()), [(Height(2), vec![name(2)])]);
    assert_eq!(schedule.settle(Height(5), &BTreeSet::new()), []);
}

/// ★ Voted for once more, it must not go: the vote says that it is here.
#[test]
fn what_an_undecided_block_orders_again_stays() {
    let mut schedule = Schedule::default();
    schedule.recall(Height(1), vec![name(1), name(2)]);
    schedule.recall(Height(2), vec![name(3)]);
    let undecided = BTreeSet::from([name(1)]);
    let first = [(Height(1), vec![name(2)]), (Height(2), vec![name(3)])];
    assert_eq!(schedule.settle(Height(2), &undecided), first);
    assert_eq!(schedule.settle(Height(2), &undecided), []);
    assert_eq!(schedule.settle(Height(2), &BTreeSet::new()), [(Height(1), vec![name(1)])]);
    assert!(!schedule.has_settled(Height(2)));
}

#[test]
fn what_is_released_in_spite_of_a_vote_is_missed() {
    use quorate_crypto::mutants::{self, Mutant};
    mutants::assert_noticed(
        Mutant::ReleaseOrderedAgain,
        what_an_undecided_block_orders_again_stays,
    );
}

/// Heights that a snapshot covers are skipped; those after it go on.
#[test]
fn a_snapshot_skips_what_it_covers() {
    let mut schedule = Schedule::default();
    for height in 1..=6 {
        decide(&mut schedule, height);
    }
    assert_eq!(schedule.install(Height(4)), [name(1), name(2), name(3), name(4)]);
    assert_eq!((schedule.executed(), schedule.decided()), (Height(4), Height(6)));
    assert_eq!(schedule.next().unwrap().header.height, Height(5));
    assert!(!schedule.needs(&name(4)) && schedule.needs(&name(5)));
    assert_eq!(schedule.settle(Height(4), &BTreeSet::new()).len(), 4);
    schedule.install(Height(90));
    assert_eq!((schedule.executed(), schedule.decided()), (Height(90), Height(90)));
    decide(&mut schedule, 91);
    assert_eq!(schedule.next().unwrap().header.height, Height(91));
}

#[test]
fn it_lags_when_more_waits_than_is_fetched_ahead() {
    let mut schedule = Schedule::default();
    for height in 1..=UPCOMING as u64 {
        decide(&mut schedule, height);
        assert!(!schedule.lags(), "all are upcoming");
    }
    decide(&mut schedule, UPCOMING as u64 + 1);
    assert!(schedule.lags());
    assert_eq!(schedule.upcoming().count(), UPCOMING);
    schedule.start().unwrap();
    assert!(!schedule.lags(), "what is under way waits no longer");
}

#[test]
fn it_executes_from_the_start_of_a_height_to_its_end() {
    let mut schedule = Schedule::default();
    decide(&mut schedule, 1);
    assert!(!schedule.is_executing());
    schedule.start().unwrap();
    assert!(schedule.is_executing());
    schedule.finish(Height(1));
    assert!(!schedule.is_executing());
}
