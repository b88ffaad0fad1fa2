//! What members' messages fill, and what bounds it: the rows of docs/bounds.md.

use super::collectors::primary;
use super::harness::*;
use super::*;
use crate::{Ignored, MessageKind, ProtocolView};
use quorate_crypto::Digest;
use quorate_types::{BlockId, BodyRef};

/// Found from outside: a primary that replaces its new view again and again, each time by one that
/// names another view change of its own, which is then sent. Only what the last one names is kept.
#[test]
fn view_changes_named_by_replaced_new_views_are_dropped() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let verifier = Arc::clone(&bench.verifier);
    for turn in 0..2_000 {
        let view = 6 + 4 * turn;
        let changes = empty_changes(&verifier, view);
        bench.tell(2, new_view(&verifier, view, &changes));
        bench.tell(2, Message::ViewChange(Box::new(changes[1].clone())));
    }
    assert_eq!(bench.machine.changes.pending.len(), 1);
    assert_eq!(bench.machine.changes.named.len(), 1, "of the last new view");
}

/// Found from outside: numbers near the end of their range, of whoever sends them.
#[test]
fn numbers_near_the_end_are_only_numbers() {
    for protocol in ProtocolKind::WINDOWED {
        for end in [u64::MAX - 1, u64::MAX] {
            let mut bench = Bench::new(protocol, 0);
            let verifier = Arc::clone(&bench.verifier);
            bench.decide(1, A);
            let place = Proposal { view: View(1), slot: Height(end), digest: hash(b"far") };
            let late = Proposal { view: View(end), ..place };
            let far = Status {
                view: View(end),
                stable: Height(end),
                decided: Height(end),
                has: vec![Height(end)],
                lacks: vec![(Height(end), hash(b"far"))],
                turn: u32::MAX,
                ..status(0)
            };
            let messages = [
                Message::Status(far),
                Message::FetchViewChanges(View(end), vec![ReplicaId(1)]),
                Message::Suspicion(View(end)),
                pre_prepare(&verifier, 1, value(end, end)),
                pre_prepare(&verifier, end, value(end, end)),
                sign_share(&verifier, 2, place),
                sign_share(&verifier, 2, late),
                commit_share(&verifier, 2, place),
                commit_share(&verifier, 2, late),
                Message::Prepare(prepared(&verifier, place)),
                Message::Prepare(prepared(&verifier, late)),
                Message::Payload(value(end, end)),
                Message::Proof(proof(&verifier, place)),
                Message::Decided(Box::new(decided(&verifier, end, value(end, end)))),
                Message::Stable(checkpoint(&verifier, end, &[1, 2, 3])),
                Message::ViewChange(Box::new(change(&verifier, end, 2, Vec::new()))),
                new_view(&verifier, end, &empty_changes(&verifier, end)),
            ];
            for message in messages {
                if receive(&verifier, message.clone()).is_ok() {
                    bench.now = bench.now + Duration::from_secs(1);
                    bench.tell(u8::try_from(sender(&message).0).expect("few"), message);
                }
            }
            bench.now = bench.now + Duration::from_secs(60);
            assert_eq!(bench.decide(2, A).decided(), [2], "{protocol} goes on");
            let far = harness::decided(&verifier, 1, value(end, A)).encode();
            let run = verify_run(Height(end - 1), None, &[far.clone(), far], &verifier);
            assert!(run.is_err(), "{protocol}: a slot comes once");
        }
    }
}

/// Members of the committee under test.
const COMMITTEE: usize = MEMBERS as usize;

/// Whatever a member says, if it passes its check.
fn flood(bench: &mut Bench, from: u8, message: Message) {
    bench.now = bench.now + Duration::from_millis(1);
    if receive(&bench.verifier, message.clone()).is_ok() {
        bench.tell(from, message);
    }
    for collection in bench.machine.collections() {
        assert!(!collection.is_exceeded(), "{collection:?}");
    }
}

/// Votes, proposals and values of one faulty member, and of a primary that is another, of slots and
/// views without end.
#[test]
fn what_members_send_is_bounded_by_them_and_the_window() {
    for protocol in ProtocolKind::WINDOWED {
        let mut bench = Bench::new(protocol, 0);
        let verifier = Arc::clone(&bench.verifier);
        bench.leave_view();
        for turn in 0..400_u64 {
            let view = 2 + turn % 3;
            let slot = 1 + turn * 7 % (WINDOW + 40);
            let place =
                Proposal { view: View(view), slot: Height(slot), digest: at(1, 1, turn).digest };
            let member = u8::try_from(2 + turn % 2).expect("few");
            let first = u8::try_from(primary(View(view), COMMITTEE).0).expect("few");
            flood(&mut bench, first, pre_prepare(&verifier, view, value(slot, turn)));
            flood(&mut bench, member, sign_share(&verifier, member, place));
            flood(&mut bench, member, commit_share(&verifier, member, place));
            flood(&mut bench, member, Message::Payload(value(slot, turn)));
            flood(&mut bench, member, Message::Status(status(turn)));
            flood(&mut bench, member, Message::Suspicion(View(view)));
            let changes = empty_changes(&verifier, 5 + turn);
            flood(&mut bench, 2, Message::ViewChange(Box::new(changes[1].clone())));
            flood(&mut bench, first, new_view(&verifier, 5 + turn, &changes));
        }
        assert_eq!(bench.machine.changes.pending.len(), COMMITTEE, "{protocol}: it was filled");
        assert!(bench.machine.ignored.iter().any(|(_, why, _)| why == Ignored::OutsideWindow));
    }
}

/// Heights go on without end; what is stable is forgotten, and what was delivered is remembered of
/// two windows.
#[test]
fn what_is_stable_leaves_memory() {
    let mut bench = Bench::new(ProtocolKind::Sbft, 0);
    let verifier = Arc::clone(&bench.verifier);
    for slot in 1..=5 * CHECKPOINT_EVERY {
        let decided = decided(&verifier, 1, value(slot, A));
        flood(&mut bench, 2, Message::Decided(Box::new(decided)));
        if slot % CHECKPOINT_EVERY == 0 {
            let stable = checkpoint(&verifier, slot, &[1, 2, 3]);
            flood(&mut bench, 2, Message::Stable(stable));
        }
    }
    assert_eq!(bench.machine.decided, Height(5 * CHECKPOINT_EVERY));
    assert_eq!(bench.machine.window.iter().count(), 0);
    assert_eq!(bench.machine.recent.len(), 2 * WINDOW as usize);
}

/// A primary that names many bodies in each slot and has nothing decided: what members prepare of
/// it fits a view change, so that its view can be left.
#[test]
fn a_window_holds_no_more_than_a_view_change_shows() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let name = |sequence| BodyRef { author: ReplicaId(2), sequence, digest: Digest::ZERO };
    let bodies: Vec<BodyRef> = (0..Payload::BODIES_MAX as u64).map(name).collect();
    for slot in 1..=WINDOW {
        let proposed =
            pre_prepare(&bench.verifier, 1, Payload::new(Height(slot), A, bodies.clone()));
        bench.tell(1, proposed);
        let digest = bench.machine.window.get(Height(slot)).and_then(|it| it.value_in(View(1)));
        let Some(digest) = digest else { continue };
        let place = Proposal { view: View(1), slot: Height(slot), digest };
        bench.feed(Input::Stored(BlockId(digest)));
        bench.vote(2, place);
        bench.vote(3, place);
    }
    let full = |(kind, why, _): (MessageKind, Ignored, u64)| {
        (kind, why) == (MessageKind::PrePrepare, Ignored::WindowFull)
    };
    assert!(bench.machine.ignored.iter().any(full));
    let outputs = bench.leave_view();
    let change = borsh::to_vec(outputs.view_change()).expect("encoding into memory");
    assert!((1024 * 1024..4 * 1024 * 1024).contains(&change.len()), "{} bytes", change.len());
}

/// Lists in messages are no longer than what they are of.
#[test]
fn lists_in_messages_are_bounded() {
    let bench = Bench::new(ProtocolKind::Pbft, 0);
    let names = |count| {
        let members = (0..u16::try_from(count).expect("few")).map(ReplicaId);
        Message::FetchViewChanges(View(2), members.collect())
    };
    let has = |count| {
        let has = (1..=count).map(Height).collect();
        Message::Status(Status { has, ..status(0) })
    };
    let lacks = |count| {
        let lacks = (1..=count).map(|slot| (Height(slot), hash(b"value"))).collect();
        Message::Status(Status { lacks, ..status(0) })
    };
    let check = |what, most: u64, list: fn(u64) -> Message| {
        assert!(receive(&bench.verifier, list(most)).is_ok(), "{what}");
        for more in [most + 1, most + 2] {
            assert_eq!(bench.refusal(list(more)), Rejected::TooLarge(what));
        }
    };
    check("names of members", u64::from(MEMBERS), names);
    check("slots of a status", WINDOW, has);
    check("values of a status", WINDOW, lacks);
}

/// Values of a slot that nothing names any more make room; what got a vote stays as long as the
/// slot is open.
#[test]
fn a_slot_keeps_few_values_and_those_that_are_named() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.accept(1, 1, 1);
    for view in [2, 3, 5, 6, 7, 9] {
        let changes = empty_changes(&bench.verifier, view);
        bench.enter(view, &changes);
        assert!(bench.propose(view, 1, view).wants_bodies(), "view {view}");
        let kept = bench.machine.window.get(Height(1)).map_or(0, |slot| slot.payloads.len());
        assert_eq!(kept, if view < 5 { view as usize } else { 4 }, "view {view}");
    }
    let lacks = vec![(Height(1), at(1, 1, 1).digest), (Height(1), at(9, 1, 9).digest)];
    let outputs = bench.tell(3, Message::Status(Status { lacks, ..status(0) }));
    let sent = outputs.receivers(|message| matches!(message, Message::Payload(_)));
    assert_eq!(sent.len(), 2, "what it voted for, and what is proposed");
}

/// PBFT §4.4: pre-prepares of a view that is about to begin are kept, of the first slots.
#[test]
fn early_pre_prepares_are_few() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let changes = empty_changes(&bench.verifier, 2);
    bench.tell(1, Message::ViewChange(Box::new(changes[0].clone())));
    (1..=70).for_each(|slot| drop(bench.propose(2, slot, A)));
    let outputs = bench.enter(2, &changes);
    let wanted = outputs.0.iter().filter(|output| matches!(output, Output::RequestBodies { .. }));
    assert_eq!(wanted.count(), 64);
    assert!(!bench.store(65, A).says(is_vote) && bench.store(64, A).says(is_vote));
}

/// An operator sees how full each collection is, and how full it may get.
#[test]
fn collections_say_how_full_they_are() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.accept(1, 2, A);
    bench.decide(1, A);
    for member in [2, 3] {
        bench.tell(member, Message::Status(status(0)));
    }
    bench.tell(3, Message::FetchViewChanges(View(2), vec![ReplicaId(1)]));
    let third = change(&bench.verifier, 9, 3, Vec::new());
    bench.tell(3, Message::ViewChange(Box::new(third)));
    let rows = bench.machine.occupancy();
    let rows: Vec<_> = rows.iter().map(|row| (row.field, row.entries, row.bound)).collect();
    let expected = [
        ("outputs", 0, 0),
        ("slots", 2, 256),
        ("recent", 1, 512),
        ("recent_order", 1, 512),
        ("shown_at", 0, 4),
        ("said", 0, 4),
        ("silent", 0, 4),
        ("answered", 3, 8),
        ("payloads", 1, 6),
        ("votes", 1, 2),
        ("prepares", 1, 4),
        ("fast", 0, 4),
        ("commits", 0, 4),
        ("earlier", 0, 4),
        ("latest", 1, 4),
        ("pending", 0, 4),
        ("named", 0, 16),
        ("begun", 0, 4),
        ("early", 0, 64),
    ];
    assert_eq!(rows, expected);
}
