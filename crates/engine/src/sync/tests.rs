use super::{AHEAD_MAX, BLOCKS_MAX, BlockSync, FOLLOW_EVERY};
use crate::message::{FetchBlocks, Kept};
use quorate_consensus::VerifiedRun;
use quorate_consensus::chained::{Block, Qc, Run};
use quorate_consensus::leader::LeaderReputation;
use quorate_crypto::hash;
use quorate_types::{BlockId, Epoch, Height, Payload, ReplicaId, Time, View};
use std::collections::BTreeSet;

fn id(name: u8) -> BlockId {
    BlockId(hash(&[name]))
}

const HERE: Height = Height(5);

/// Fetches with five heights decided: member, first height asked for, and if it is ahead.
fn ask(sync: &mut BlockSync, now: u64) -> Vec<(u16, FetchBlocks)> {
    let due = sync.due(Time(now), HERE, id(5), |block| block == id(1));
    due.into_iter().map(|(member, request)| (member.0, request)).collect()
}

fn behind(target: u8) -> BlockSync {
    let mut sync = BlockSync::new(ReplicaId(0), 4);
    sync.behind(Time(0), id(target), Some(ReplicaId(2)));
    sync
}

fn request(target: u8) -> FetchBlocks {
    FetchBlocks { height: HERE, after: Some(id(5)), target: id(target) }
}

fn kept(oldest: u64, newest: u64) -> Kept {
    Kept { oldest: Height(oldest), newest: Height(newest) }
}

/// A run of blocks at these heights; none for an empty one. What they hold does not matter here.
fn run(first: u64, last: u64) -> Box<VerifiedRun> {
    let block = |height| Block {
        epoch: Epoch(0),
        view: View(height),
        author: ReplicaId(0),
        justify: Qc::genesis(id(0), 4),
        tc: None,
        reputation: LeaderReputation::new(),
        payload: Payload::new(Height(height), 0, Vec::new()),
    };
    let decided = (first..=last).map(block).collect();
    Box::new(VerifiedRun::Chained(Run { decided, proof: None, tail: vec![], conflicts: false }))
}

fn nothing() -> Box<VerifiedRun> {
    run(2, 1)
}

#[test]
fn it_asks_at_once_and_then_everybody_else_in_turn() {
    let mut sync = behind(9);
    let mut now = 0;
    for member in [2, 3, 1, 2] {
        assert_eq!(ask(&mut sync, now), [(member, request(9))]);
        assert_eq!(ask(&mut sync, now), [], "one request about the next height at a time");
        now = sync.deadline().expect("it will ask again").0;
    }
}

#[test]
fn it_stops_when_the_block_has_come_by_itself() {
    let mut sync = behind(1);
    assert!(sync.is_behind());
    assert_eq!(ask(&mut sync, 0), []);
    assert_eq!((sync.is_behind(), sync.deadline()), (false, None));
}

#[test]
fn who_answered_is_asked_to_go_on() {
    let mut sync = behind(9);
    ask(&mut sync, 0);
    let answer = sync.answered(Time(7), ReplicaId(2), request(9), kept(1, 6), run(6, 6));
    assert!(answer.is_some());
    assert_eq!(ask(&mut sync, 7)[0].0, 2);
}

/// Somebody who was asked before knows the request: his empty answers must not cancel it.
#[test]
fn an_answer_counts_only_from_whom_it_was_asked_of() {
    let mut sync = behind(9);
    ask(&mut sync, 0);
    let answer = |sync: &mut BlockSync, from, request, run| {
        sync.answered(Time(1), ReplicaId(from), request, kept(1, 9), run).is_some()
    };
    assert!(!answer(&mut sync, 3, request(9), nothing()));
    assert!(!answer(&mut sync, 3, request(9), run(6, 6)));
    let other = FetchBlocks { after: Some(id(6)), ..request(9) };
    assert!(!answer(&mut sync, 2, other, run(6, 6)));
    assert!(answer(&mut sync, 2, request(9), run(6, 6)));
    assert!(!answer(&mut sync, 2, request(9), run(6, 6)), "once");
    assert!(!answer(&mut BlockSync::new(ReplicaId(0), 4), 2, request(9), run(6, 6)));
}

/// Slow answers are answers, and targets change with every view.
#[test]
fn a_late_answer_brings_decided_blocks_all_the_same() {
    let mut sync = behind(9);
    ask(&mut sync, 0);
    sync.behind(Time(1), id(10), None);
    let at = sync.deadline().unwrap().0;
    assert_eq!(ask(&mut sync, at)[0], (3, request(10)));
    let late = sync.answered(Time(at), ReplicaId(2), request(9), kept(1, 6), run(6, 6));
    assert!(late.is_some());
}

/// With much missing several members are asked at once, each for another part and none for more
/// than two; the parts wait until what is below them is decided.
#[test]
fn parts_far_ahead_are_asked_of_others_and_wait_for_their_turn() {
    let mut sync = behind(9);
    ask(&mut sync, 0);
    sync.answered(Time(1), ReplicaId(2), request(9), kept(1, 1_000), run(6, 6));
    let asked = ask(&mut sync, 1);
    assert_eq!(asked.len(), 1 + AHEAD_MAX);
    assert_eq!(asked[0], (2, request(9)));
    let ahead = &asked[1..];
    let starts: Vec<u64> = ahead.iter().map(|(_, request)| request.height.0).collect();
    assert_eq!(starts, [5 + BLOCKS_MAX, 5 + 2 * BLOCKS_MAX, 5 + 3 * BLOCKS_MAX]);
    let members: BTreeSet<u16> = ahead.iter().map(|(member, _)| *member).collect();
    assert!(members.contains(&1) && members.contains(&3) && !members.contains(&0), "{members:?}");
    assert_eq!(ask(&mut sync, 1), [], "nothing more than that");

    let (member, request) = ahead[0];
    let part = run(request.height.0 + 1, request.height.0 + BLOCKS_MAX);
    let now = sync.answered(Time(2), ReplicaId(member), request, kept(1, 1_000), part);
    assert!(now.is_none(), "not yet");
    assert!(sync.take_ahead(HERE).is_none());
    assert!(sync.take_ahead(request.height).is_some(), "its turn");
    assert!(sync.take_ahead(request.height).is_none(), "once");
}

/// Answers that come late are kept beside those that were asked for instead, the lowest of them.
#[test]
fn few_answers_wait_for_their_turn() {
    let mut sync = behind(9);
    ask(&mut sync, 0);
    sync.answered(Time(1), ReplicaId(2), request(9), kept(1, 1_000), run(6, 6));
    let is_ahead = |(_, request): &(ReplicaId, FetchBlocks)| request.after.is_none();
    let mut asked = sync.due(Time(1), HERE, id(5), |_| false);
    let late = sync.deadline().expect("they may be silent");
    asked.extend(sync.due(late, HERE.next(), id(6), |_| false));
    asked.retain(is_ahead);
    assert_eq!(asked.len(), 2 * AHEAD_MAX);
    for (member, request) in asked {
        let (first, last) = (request.height.0 + 1, request.height.0 + BLOCKS_MAX);
        sync.answered(late, member, request, kept(1, 1_000), run(first, last));
    }
    assert!(sync.occupancy().iter().all(|collection| !collection.is_exceeded()));
    assert!(sync.take_ahead(Height(HERE.0 + BLOCKS_MAX)).is_some(), "the lowest is kept");
}

/// A member that says nothing costs its part one retry, by somebody else.
#[test]
fn a_silent_member_costs_a_retry() {
    let mut sync = behind(9);
    ask(&mut sync, 0);
    sync.answered(Time(1), ReplicaId(2), request(9), kept(1, 100), run(6, 6));
    let first = ask(&mut sync, 1);
    let (silent, part) = first[1];
    let at = sync.deadline().unwrap().0;
    let again = ask(&mut sync, at);
    let retried = again.iter().find(|(_, request)| *request == part);
    let (member, _) = retried.expect("asked again");
    assert_ne!(*member, silent);
}

/// A claim of heights that nobody has costs a request, not a stream of them.
#[test]
fn a_claim_that_comes_to_nothing_is_forgotten() {
    let mut sync = behind(9);
    ask(&mut sync, 0);
    sync.answered(Time(1), ReplicaId(2), request(9), kept(1, u64::MAX), run(6, 6));
    for (member, request) in ask(&mut sync, 1).into_iter().filter(|(_, r)| r.after.is_none()) {
        sync.answered(Time(2), ReplicaId(member), request, kept(1, 6), nothing());
    }
    assert!(ask(&mut sync, 2).iter().all(|(_, request)| request.after.is_some()));
}

/// Members that pruned what is missing are remembered until somebody has it.
#[test]
fn who_no_longer_keeps_the_next_height_is_counted() {
    let mut sync = behind(9);
    let mut now = 0;
    for expected in 1..=3 {
        let (member, request) = ask(&mut sync, now)[0];
        sync.answered(Time(now), ReplicaId(member), request, kept(50, 90), nothing());
        assert_eq!(sync.gone().len(), expected);
        now = sync.deadline().unwrap().0;
    }
    let (member, request) = ask(&mut sync, now)[0];
    sync.answered(Time(now), ReplicaId(member), request, kept(1, 90), run(6, 9));
    assert!(sync.gone().is_empty(), "somebody has it");
}

/// Having nothing newer is no reason for a snapshot.
#[test]
fn who_has_nothing_newer_is_not_counted() {
    let mut sync = behind(9);
    ask(&mut sync, 0);
    sync.answered(Time(1), ReplicaId(2), request(9), kept(9, 5), nothing());
    assert!(sync.gone().is_empty());
}

/// A learner is shown nothing: it asks everybody in turn, for ever, and nobody alone can hold it
/// up.
#[test]
fn a_learner_asks_everybody_in_turn_without_end() {
    let mut sync = BlockSync::following(ReplicaId(4), 4);
    let request = FetchBlocks { target: id(5), ..request(5) };
    let mut now = 0;
    for (member, newest) in [(0, 5), (1, 3), (2, 5), (3, 5), (0, 5)] {
        assert_eq!(ask(&mut sync, now), [(member, request)]);
        let answer =
            sync.answered(Time(now), ReplicaId(member), request, kept(1, newest), nothing());
        assert!(answer.is_none() && !sync.is_behind(), "there is nothing more");
        assert_eq!(ask(&mut sync, now), [], "not at once again");
        let next = sync.deadline().expect("it will ask again").0;
        assert_eq!(Time(next).since(Time(now)), FOLLOW_EVERY);
        now = next;
    }
    assert_eq!(ask(&mut sync, now)[0].0, 1);
    let answer = sync.answered(Time(now), ReplicaId(1), request, kept(1, 90), run(6, 9));
    assert!(answer.is_some() && sync.is_behind());
    let asked: Vec<u16> = ask(&mut sync, now).into_iter().map(|(member, _)| member).collect();
    assert_eq!(asked[0], 2, "the next one goes to the next member, though this one had more");
    assert!(asked.len() > 1, "and others are asked for what comes later");
}

#[test]
fn a_learner_of_a_committee_of_one_follows_it() {
    let mut sync = BlockSync::following(ReplicaId(1), 1);
    for now in [0, 1_000_000_000, 2_000_000_000] {
        assert_eq!(ask(&mut sync, now)[0].0, 0);
    }
}

/// An answer to an earlier request comes while a later one is under way: there is nothing to do
/// until that is late. (Seed 61 of the swarm with a learner rang the timer for 200 ms without end.)
#[test]
fn nothing_is_due_while_a_question_is_under_way() {
    let mut sync = BlockSync::following(ReplicaId(4), 4);
    let request = FetchBlocks { target: id(5), ..request(5) };
    assert_eq!(ask(&mut sync, 0)[0].0, 0);
    let late = sync.deadline().expect("it will ask again").0;
    assert_eq!(ask(&mut sync, late)[0].0, 1);
    let until = sync.deadline().expect("it will ask again");
    sync.answered(Time(late + 1), ReplicaId(0), request, kept(1, 5), nothing());
    assert_eq!(sync.deadline(), Some(until));
}
