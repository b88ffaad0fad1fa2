use super::{AHEAD_MAX, ASKED_MAX, BLOCKS_MAX, BlockSync, FOLLOW_EVERY, PendingFetch, RETRY};
use crate::message::{FetchBlocks, Kept};
use crate::silence::PASSED_OVER;
use quorate_consensus::VerifiedRun;
use quorate_consensus::chained::{Block, Qc, Run};
use quorate_consensus::leader::LeaderReputation;
use quorate_crypto::hash;
use quorate_types::{BlockId, EpochId, Height, Payload, ReplicaId, Time, View};
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
        epoch: EpochId::default(),
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

/// Heights at which the fetches ahead among these begin.
fn ahead(fetches: &[(u16, FetchBlocks)]) -> Vec<u64> {
    let ahead = fetches.iter().filter(|(_, request)| request.after.is_none());
    ahead.map(|(_, request)| request.height.0).collect()
}

/// Behind, with one answer that claims these heights: what is asked for then.
fn claimed(newest: u64) -> (BlockSync, Vec<(u16, FetchBlocks)>) {
    let mut sync = behind(9);
    ask(&mut sync, 0);
    sync.answered(Time(1), ReplicaId(2), request(9), kept(1, newest), run(6, 6));
    let asked = ask(&mut sync, 1);
    (sync, asked)
}

/// Answers the fetch ahead that begins at this height with the heights after it, up to `last`.
fn answer_ahead(
    sync: &mut BlockSync,
    asked: &[(u16, FetchBlocks)],
    height: u64,
    last: u64,
    newest: u64,
) {
    let is_it = |(_, request): &&(u16, FetchBlocks)| {
        request.after.is_none() && request.height == Height(height)
    };
    let (member, request) = *asked.iter().find(is_it).expect("it was asked for");
    let part = run(height + 1, last);
    let taken = sync.answered(Time(2), ReplicaId(member), request, kept(1, newest), part);
    assert!(taken.is_none(), "not its turn");
}

#[test]
fn whoever_nobody_showed_the_block_begins_with_the_next_member() {
    for (member, first) in [(0, 1), (1, 2), (3, 0)] {
        let mut sync = BlockSync::new(ReplicaId(member), 4);
        sync.behind(Time(0), id(9), None);
        assert_eq!(ask(&mut sync, 0), [(first, request(9))], "{member}");
    }
}

/// What a learner is shown does not narrow what it asks for.
#[test]
fn a_learner_asks_for_whatever_comes_next_all_the_same() {
    let mut sync = BlockSync::following(ReplicaId(4), 4);
    sync.behind(Time(0), id(9), Some(ReplicaId(2)));
    assert_eq!(ask(&mut sync, 0), [(0, FetchBlocks { target: id(5), ..request(5) })]);
}

/// An empty answer of a member that has nothing newer does not hurry the next question, nor put it
/// off: it comes when the first would have been asked again.
#[test]
fn an_empty_answer_leaves_the_next_question_to_its_time() {
    let mut sync = behind(9);
    ask(&mut sync, 0);
    sync.answered(Time(1), ReplicaId(2), request(9), kept(1, 5), nothing());
    assert_eq!(ask(&mut sync, 1), []);
    let next = sync.deadline().expect("it will ask again");
    assert_eq!(next, Time(0) + RETRY);
    assert_eq!(ask(&mut sync, next.0), [(3, request(9))]);
}

/// A learner whose asked member has pruned what it lacks turns to the next one at once.
#[test]
fn a_learner_does_not_wait_where_blocks_were_pruned() {
    let mut sync = BlockSync::following(ReplicaId(4), 4);
    let request = FetchBlocks { target: id(5), ..request(5) };
    ask(&mut sync, 0);
    sync.answered(Time(1), ReplicaId(0), request, kept(50, 90), nothing());
    assert_eq!(ask(&mut sync, 1)[0], (1, request));
    sync.answered(Time(2), ReplicaId(1), request, kept(6, 90), nothing());
    assert_eq!(sync.gone().len(), 1, "this one keeps the next height");
    assert_eq!(sync.deadline(), Some(Time(1) + RETRY), "and there is more to come");
}

/// A fetch ahead is about heights that somebody claims to have.
#[test]
fn nothing_is_asked_ahead_that_nobody_claims() {
    let first = HERE.0 + BLOCKS_MAX;
    for (newest, expected) in [
        (first, vec![]),
        (first + 1, vec![first]),
        (first + BLOCKS_MAX, vec![first]),
        (first + BLOCKS_MAX + 1, vec![first, first + BLOCKS_MAX]),
    ] {
        let (_, asked) = claimed(newest);
        assert_eq!(ahead(&asked), expected, "of {newest}");
    }
}

/// What is here or asked for is not asked for again; what comes right after it is.
#[test]
fn parts_that_are_here_are_not_asked_for_again() {
    let part = |turn: u64| HERE.0 + turn * BLOCKS_MAX;
    let (mut sync, asked) = claimed(part(1) + 1);
    assert_eq!(ahead(&asked), [part(1)]);
    answer_ahead(&mut sync, &asked, part(1), part(2), 1_000);
    assert_eq!(ahead(&ask(&mut sync, 2)), [part(2), part(3)]);

    let (mut sync, asked) = claimed(part(2) + 1);
    assert_eq!(ahead(&asked), [part(1), part(2)]);
    answer_ahead(&mut sync, &asked, part(1), part(2), 1_000);
    assert_eq!(ahead(&ask(&mut sync, 2)), [part(3)]);
}

/// A part that has come ends before it should: what it lacks is asked for.
#[test]
fn what_a_short_part_lacks_is_asked_for() {
    let part = |turn: u64| HERE.0 + turn * BLOCKS_MAX;
    let (mut sync, asked) = claimed(part(2) + 1);
    answer_ahead(&mut sync, &asked, part(2), part(3), 1_000);
    let late = sync.deadline().expect("one was not answered").0;
    assert_eq!(ahead(&ask(&mut sync, late)), [part(1), part(3)], "around what is here");
}

/// Parts that wait and parts that are under way share the room.
#[test]
fn parts_here_and_parts_under_way_are_no_more_than_the_bound() {
    let part = |turn: u64| HERE.0 + turn * BLOCKS_MAX;
    let (mut sync, asked) = claimed(1_000);
    answer_ahead(&mut sync, &asked, part(1), part(2), 1_000);
    assert_eq!(ahead(&ask(&mut sync, 2)), [], "one here and two under way");
    answer_ahead(&mut sync, &asked, part(2), part(3), 1_000);
    assert_eq!(ahead(&ask(&mut sync, 2)), [], "two here and one under way");
    answer_ahead(&mut sync, &asked, part(3), part(4), 1_000);
    assert_eq!(ahead(&ask(&mut sync, 2)), [], "three here");
    for turn in 1..=3 {
        assert!(sync.take_ahead(Height(part(turn))).is_some(), "part {turn} was kept");
    }
}

/// However far a part leads, nothing is asked for beyond the bound.
#[test]
fn nothing_is_asked_for_too_far_ahead() {
    let part = |turn: u64| HERE.0 + turn * BLOCKS_MAX;
    let furthest = AHEAD_MAX as u64 + 1;
    for (last, expected) in [(furthest, vec![part(furthest)]), (furthest + 1, vec![])] {
        let (mut sync, asked) = claimed(part(1) + 1);
        answer_ahead(&mut sync, &asked, part(1), part(last), 10_000);
        assert_eq!(ahead(&ask(&mut sync, 2)), expected, "after a part up to {}", part(last));
    }
}

/// A part that is decided in the meantime leaves its room to others.
#[test]
fn a_part_that_was_overtaken_is_dropped() {
    let part = |turn: u64| HERE.0 + turn * BLOCKS_MAX;
    let waits = |decided: u64| {
        let (mut sync, asked) = claimed(1_000);
        answer_ahead(&mut sync, &asked, part(1), part(2), 1_000);
        sync.due(Time(2), Height(decided), id(6), |_| false);
        sync.occupancy()[1].entries
    };
    assert_eq!((waits(part(2) - 1), waits(part(2))), (1, 0));
}

/// A part is taken while it leads beyond what is decided, also when it overlaps with that.
#[test]
fn a_part_is_taken_as_far_as_it_is_news() {
    let part = |turn: u64| HERE.0 + turn * BLOCKS_MAX;
    for (decided, is_taken) in
        [(part(1) - 1, false), (part(1), true), (part(2) - 1, true), (part(2), false)]
    {
        let (mut sync, asked) = claimed(1_000);
        answer_ahead(&mut sync, &asked, part(1), part(2), 1_000);
        assert_eq!(sync.take_ahead(Height(decided)).is_some(), is_taken, "at {decided}");
    }
}

/// A run that proves itself and is not what was asked for: a liar fills no room with it.
#[test]
fn a_part_from_elsewhere_is_not_kept() {
    let (mut sync, asked) = claimed(1_000);
    let (member, request) = asked[1];
    let elsewhere = run(5_000, 5_010);
    sync.answered(Time(2), ReplicaId(member), request, kept(1, 1_000), elsewhere);
    assert!(sync.take_ahead(Height(4_999)).is_none());
    assert_eq!(sync.occupancy()[1].entries, 0);
}

/// Of a committee of two there is one to ask, and it gets no more than it may have.
#[test]
fn nobody_gets_more_than_two_fetches_at_once() {
    let mut sync = BlockSync::new(ReplicaId(0), 2);
    sync.behind(Time(0), id(9), Some(ReplicaId(1)));
    ask(&mut sync, 0);
    sync.answered(Time(1), ReplicaId(1), request(9), kept(1, 1_000), run(6, 6));
    assert_eq!(ask(&mut sync, 1).len(), super::PER_MEMBER_MAX);
}

/// Whoever left another part unanswered is asked for this one where those who answer have enough to
/// do.
#[test]
fn who_is_silent_is_asked_after_those_who_answer() {
    let part = |turn: u64| HERE.0 + turn * BLOCKS_MAX;
    let mut sync = BlockSync::new(ReplicaId(3), 4);
    sync.behind(Time(0), id(9), Some(ReplicaId(2)));
    ask(&mut sync, 0);
    sync.answered(Time(1), ReplicaId(2), request(9), kept(1, part(1) + 1), run(6, 6));
    let (silent, _) = ask(&mut sync, 1)[1];
    assert_eq!(silent, 0, "the idlest");
    let late = sync.deadline().expect("both are silent").0;
    // The part is asked of another one, which has the most to do then.
    let again = ask(&mut sync, late);
    assert_eq!(again[1].1.height, Height(part(1)));
    assert_ne!(again[1].0, silent);
    let (other, request) = again[1];
    let answer = run(part(1) + 1, part(2));
    sync.answered(Time(late), ReplicaId(other), request, kept(1, 1_000), answer);
    let further = ask(&mut sync, late);
    assert_eq!(ahead(&further), [part(2), part(3)]);
    let members: Vec<u16> = further.iter().map(|(member, _)| *member).collect();
    assert_eq!(members, [1, 0], "then the idlest of the silent");
}

/// A silent committee is asked for ever; what is remembered of that is bounded.
#[test]
fn what_was_asked_in_vain_is_bounded() {
    let mut sync = behind(9);
    ask(&mut sync, 0);
    sync.answered(Time(1), ReplicaId(2), request(9), kept(1, 10_000), run(6, 6));
    let (mut now, mut most) = (1, 0);
    for _ in 0..4 * ASKED_MAX {
        ask(&mut sync, now);
        let [asked, ..] = sync.occupancy();
        assert!(!asked.is_exceeded(), "{asked:?}");
        most = most.max(asked.entries);
        now = sync.deadline().expect("it goes on").0;
    }
    let [asked, ..] = sync.occupancy();
    assert_eq!(most, asked.bound, "the bound is what it comes to");
}

/// A snapshot moved the position: what was asked and what came for the old one is of no use, and
/// the next question does not wait.
#[test]
fn after_a_jump_it_asks_again_at_once() {
    let part = |turn: u64| HERE.0 + turn * BLOCKS_MAX;
    let (mut sync, asked) = claimed(1_000);
    answer_ahead(&mut sync, &asked, part(1), part(2), 1_000);
    let (member, pruned) = asked[0];
    sync.answered(Time(2), ReplicaId(member), pruned, kept(50, 1_000), nothing());
    assert_eq!(sync.gone().len(), 1);
    ask(&mut sync, 2);
    sync.jumped(Time(3));
    assert!(sync.gone().is_empty());
    assert_eq!(sync.occupancy().map(|collection| collection.entries), [0; 4]);
    assert_eq!(sync.deadline(), Some(Time(3)));
    let next = sync.due(Time(3), Height(500), id(8), |_| false);
    assert_eq!(next[0].1, FetchBlocks { height: Height(500), after: Some(id(8)), target: id(9) });
}

/// A learner asks for whatever comes next all the time, and a dead member in vain now and then.
#[test]
fn a_learner_passes_over_who_never_answers() {
    let mut sync = BlockSync::following(ReplicaId(u16::MAX), 4);
    let (mut now, mut of_the_dead) = (0, Vec::new());
    while now < 10_000_000 {
        for (member, request) in ask(&mut sync, now) {
            if member == 3 {
                of_the_dead.push(now / 100_000);
            } else {
                sync.answered(Time(now), ReplicaId(member), request, kept(1, 5), nothing());
            }
        }
        now = sync.deadline().expect("it asks for ever").0.max(now + 1);
    }
    assert_eq!(of_the_dead, [3, 18, 42, 87], "passed over for 1, 2, 4 s after 0.3 s, to its turn");
    sync.connected(ReplicaId(3));
    assert!((0..4).any(|turn| ask(&mut sync, now + turn * 400_000)[0].0 == 3), "it is there again");
}

/// A member is passed over once for all that it was asked before anybody knew of its silence.
#[test]
fn what_is_under_way_to_a_silent_member_counts_once() {
    let mut sync = behind(9);
    for asked in [0, 100_000] {
        let until = Time(asked) + RETRY;
        let pending =
            PendingFetch { member: ReplicaId(2), request: request(9), until, late: false };
        sync.asked.push(pending);
        ask(&mut sync, until.0);
    }
    let over = Time(0) + RETRY + PASSED_OVER;
    assert!(sync.silence.is_passed_over(Time(over.0 - 1), ReplicaId(2)));
    assert!(!sync.silence.is_passed_over(over, ReplicaId(2)));
}
