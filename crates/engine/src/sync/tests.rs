use super::{BlockSync, Content};
use crate::message::FetchBlocks;
use quorate_crypto::hash;
use quorate_types::{BlockId, Height, ReplicaId, Time};

fn id(name: u8) -> BlockId {
    BlockId(hash(&[name]))
}

fn ask(sync: &mut BlockSync, now: u64) -> Option<(u16, FetchBlocks)> {
    let due = sync.due(Time(now), Height(5), id(5), |block| block == id(1));
    due.map(|(member, request)| (member.0, request))
}

fn behind(target: u8) -> BlockSync {
    let mut sync = BlockSync::new(ReplicaId(0), 4);
    sync.behind(Time(0), id(target), Some(ReplicaId(2)));
    sync
}

#[test]
fn it_asks_at_once_and_then_everybody_else_in_turn() {
    let mut sync = behind(9);
    let request = FetchBlocks { height: Height(5), after: id(5), target: id(9) };
    let mut now = 0;
    for member in [2, 3, 1, 2] {
        assert_eq!(ask(&mut sync, now), Some((member, request)));
        assert_eq!(ask(&mut sync, now), None, "one question at a time");
        now = sync.deadline().expect("it will ask again").0;
    }
}

#[test]
fn it_stops_when_the_block_has_come_by_itself() {
    let mut sync = behind(1);
    assert!(sync.is_behind());
    assert_eq!(ask(&mut sync, 0), None);
    assert_eq!((sync.is_behind(), sync.deadline()), (false, None));
}

#[test]
fn who_answered_is_asked_to_go_on() {
    let mut sync = behind(9);
    let (_, request) = ask(&mut sync, 0).unwrap();
    assert!(sync.answered(Time(7), ReplicaId(2), request, Content::Decided));
    assert_eq!(ask(&mut sync, 7).map(|(member, _)| member), Some(2));
}

/// Somebody who was asked before knows the question: his empty answers must not cancel it.
#[test]
fn an_empty_answer_from_another_member_changes_nothing() {
    let mut sync = behind(9);
    let (member, request) = ask(&mut sync, 0).unwrap();
    assert!(!sync.answered(Time(1), ReplicaId(3), request, Content::Nothing));
    assert!(sync.answered(Time(2), ReplicaId(member), request, Content::Decided));
}

#[test]
fn an_answer_to_no_question_is_dropped() {
    let mut sync = behind(9);
    let (_, request) = ask(&mut sync, 0).unwrap();
    let other = FetchBlocks { after: id(6), ..request };
    assert!(!sync.answered(Time(1), ReplicaId(2), other, Content::Decided));
    let mut idle = BlockSync::new(ReplicaId(0), 4);
    assert!(!idle.answered(Time(1), ReplicaId(2), request, Content::Decided));
}

/// Targets change with every view; decided blocks that answer the question before are good all the
/// same, an undecided tail is not.
#[test]
fn a_late_answer_brings_decided_blocks_all_the_same() {
    for (content, taken) in [(Content::Decided, true), (Content::Tail, false)] {
        let mut sync = behind(9);
        let (_, old) = ask(&mut sync, 0).unwrap();
        sync.behind(Time(1), id(10), None);
        let at = sync.deadline().unwrap().0;
        assert_eq!(ask(&mut sync, at).unwrap().1.target, id(10));
        assert_eq!(sync.answered(Time(at), ReplicaId(2), old, content), taken, "{content:?}");
    }
}
