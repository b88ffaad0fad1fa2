//! Messages that change nothing, each with its reason.

use super::harness::*;
use super::*;
use crate::{Ignored, MessageKind, ProtocolView};

/// Reason for which the last message of a kind was ignored, counted once.
#[track_caller]
fn assert_ignored(bench: &Bench, kind: MessageKind, reason: Ignored) {
    let ignored = bench.machine.ignored();
    assert_eq!(ignored.of(kind, reason), 1, "{ignored:?}");
}

/// PBFT §4.2: in view, within the water marks, not the primary's own, not accepted before.
#[test]
fn pre_prepares_are_ignored_with_a_reason() {
    let kind = MessageKind::PrePrepare;
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.accept(1, 1, A);
    assert_eq!(bench.machine.ignored().iter().count(), 0, "it was accepted");
    bench.propose(1, 1, A);
    assert_ignored(&bench, kind, Ignored::Duplicate);
    bench.propose(1, WINDOW + 1, A);
    assert_ignored(&bench, kind, Ignored::OutsideWindow);
    bench.propose(2, 1, A);
    assert_ignored(&bench, kind, Ignored::FutureView);
    bench.leave_view();
    bench.propose(3, 1, A);
    assert_eq!(bench.machine.ignored().of(kind, Ignored::FutureView), 2);
    let mut primary = Bench::new(ProtocolKind::Pbft, 1);
    primary.propose(1, 1, A);
    assert_ignored(&primary, kind, Ignored::NotNeeded);
}

/// A pre-prepare that is kept for the view about to begin is not ignored.
#[test]
fn early_pre_prepares_are_not_ignored() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.leave_view();
    bench.propose(2, 1, A);
    assert_eq!(bench.machine.ignored().iter().count(), 0, "its own view change is for view 2");
}

/// §V-C: a collector takes one share of each member, in its view, for an undecided slot.
#[test]
fn votes_are_ignored_with_a_reason() {
    let kind = MessageKind::SignShare;
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.vote(2, at(1, 1, A));
    bench.commit(2, at(1, 1, A));
    assert_eq!(bench.machine.ignored().iter().count(), 0, "each is the first");
    bench.vote(2, at(1, 1, B));
    assert_ignored(&bench, kind, Ignored::Duplicate);
    bench.commit(2, at(1, 1, B));
    assert_ignored(&bench, MessageKind::CommitShare, Ignored::Duplicate);
    bench.vote(2, at(3, 1, A));
    assert_ignored(&bench, kind, Ignored::FutureView);
    bench.vote(2, at(1, WINDOW + 1, A));
    assert_ignored(&bench, kind, Ignored::OutsideWindow);
    bench.decide(1, A);
    bench.vote(3, at(1, 1, A));
    assert_ignored(&bench, kind, Ignored::AlreadyDecided);
    bench.commit(3, at(1, 1, A));
    assert_ignored(&bench, MessageKind::CommitShare, Ignored::AlreadyDecided);
    let mut bench = Bench::new(ProtocolKind::LinearPbft, 0);
    let slot = slots_of_collector(3).next().expect("one of them");
    bench.vote(2, at(1, slot, A));
    assert_ignored(&bench, kind, Ignored::NotCollector);
    bench.accept(1, slot, A);
    bench.vote(2, at(1, slot, A));
    let ignored = bench.machine.ignored();
    assert_eq!(ignored.of(kind, Ignored::NotCollector), 2, "nor of a slot that it knows");
}

/// §V-E: one prepare a slot and view.
#[test]
fn certificates_are_ignored_with_a_reason() {
    let kind = MessageKind::Prepare;
    let mut bench = Bench::new(ProtocolKind::LinearPbft, 0);
    for view in [1, 1, 2] {
        let certificate = prepared(&bench.verifier, at(view, 1, A));
        bench.tell(2, Message::Prepare(certificate));
    }
    assert_ignored(&bench, kind, Ignored::AlreadyCertified);
    assert_ignored(&bench, kind, Ignored::FutureView);
    bench.leave_view();
    let certificate = prepared(&bench.verifier, at(2, 1, A));
    bench.tell(2, Message::Prepare(certificate));
    assert_ignored(&bench, kind, Ignored::ViewNotBegun);
}

#[test]
fn proofs_and_values_are_ignored_with_a_reason() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.decide(1, A);
    let again = proof(&bench.verifier, at(1, 1, A));
    bench.tell(2, Message::Proof(again));
    assert_ignored(&bench, MessageKind::Proof, Ignored::AlreadyDecided);
    bench.decide(1, A);
    assert_ignored(&bench, MessageKind::Decided, Ignored::AlreadyDecided);
    bench.tell(2, Message::Payload(value(2, A)));
    assert_ignored(&bench, MessageKind::Payload, Ignored::NotNeeded);
    let far = proof(&bench.verifier, at(1, WINDOW + 1, A));
    assert!(bench.tell(2, Message::Proof(far)).behind().is_some());
    let ignored = bench.machine.ignored();
    assert_eq!(ignored.of(MessageKind::Proof, Ignored::OutsideWindow), 0, "it led to history");
}

/// A value that comes with a proof that was known is not ignored.
#[test]
fn a_value_that_was_missing_is_not_ignored() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let first = proof(&bench.verifier, at(1, 1, A));
    bench.tell(2, Message::Proof(first));
    assert_eq!(bench.decide(1, A).decided(), [1]);
    assert_eq!(bench.machine.ignored().iter().count(), 0);
}

/// PBFT §4.4: one view change of each member and view, one new-view of each primary.
#[test]
fn view_changes_are_ignored_with_a_reason() {
    let kind = MessageKind::ViewChange;
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    for view in [9, 9, 8] {
        let change = change(&bench.verifier, view, 3, Vec::new());
        bench.tell(3, Message::ViewChange(Box::new(change)));
    }
    assert_ignored(&bench, kind, Ignored::Duplicate);
    assert_ignored(&bench, kind, Ignored::StaleView);
    let own = change(&bench.verifier, 2, 0, Vec::new());
    bench.tell(3, Message::ViewChange(Box::new(own)));
    assert_ignored(&bench, kind, Ignored::NotNeeded);
    let changes = empty_changes(&bench.verifier, 10);
    bench.enter(10, &changes);
    let message = new_view(&bench.verifier, 10, &changes);
    bench.tell(2, message);
    assert_ignored(&bench, MessageKind::NewView, Ignored::Duplicate);
}

#[test]
fn statuses_are_ignored_with_a_reason() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    for _ in 0..2 {
        bench.tell(2, Message::Status(status(0)));
        bench.tell(2, Message::FetchViewChanges(View(2), Vec::new()));
    }
    assert_ignored(&bench, MessageKind::Status, Ignored::Duplicate);
    assert_ignored(&bench, MessageKind::FetchViewChanges, Ignored::Duplicate);
    bench.tell(2, Message::Status(status(5)));
    let ignored = bench.machine.ignored();
    assert_eq!(ignored.of(MessageKind::Status, Ignored::Duplicate), 1, "its sender is ahead");
}

/// PBFT §4.3: a checkpoint that is not beyond the last one.
#[test]
fn checkpoints_are_ignored_with_a_reason() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    for _ in 0..2 {
        let waiting = checkpoint(&bench.verifier, CHECKPOINT_EVERY, &[0, 1, 2]);
        bench.tell(2, Message::Stable(waiting));
    }
    assert_ignored(&bench, MessageKind::Stable, Ignored::AlreadyCertified);
}

/// Once a view has begun its pre-prepares are not kept for later.
#[test]
fn a_repeated_pre_prepare_of_a_later_view_is_ignored() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let changes = empty_changes(&bench.verifier, 2);
    bench.enter(2, &changes);
    bench.accept(2, 1, A);
    bench.propose(2, 1, A);
    assert_ignored(&bench, MessageKind::PrePrepare, Ignored::Duplicate);
    let elsewhere = change(&bench.verifier, 9, 3, Vec::new());
    bench.tell(3, Message::ViewChange(Box::new(elsewhere)));
    bench.propose(5, 1, A);
    assert_ignored(&bench, MessageKind::PrePrepare, Ignored::FutureView);
}

/// A suspicion is of the view that it is said in, and for those who are in that.
#[test]
fn suspicions_are_ignored_with_a_reason() {
    let kind = MessageKind::Suspicion;
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.tell(3, Message::Suspicion(View(1)));
    assert_eq!(bench.machine.ignored().iter().count(), 0, "it counts");
    bench.tell(3, Message::Suspicion(View(2)));
    assert_ignored(&bench, kind, Ignored::FutureView);
    bench.leave_view();
    bench.tell(3, Message::Suspicion(View(2)));
    assert_ignored(&bench, kind, Ignored::NotNeeded);
}

/// §V-G: what convicts a primary ends its own view, in which it can still do harm.
#[test]
fn equivocations_are_ignored_with_a_reason() {
    let kind = MessageKind::Equivocation;
    let both = |bench: &Bench, view: u64| {
        let signer = u8::try_from(view % 4).expect("few");
        let [one, other] =
            [A, B].map(|stamp| signed_pre_prepare(&bench.verifier, signer, view, value(1, stamp)));
        Message::Equivocation(Box::new((one, other)))
    };
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let later = both(&bench, 3);
    assert!(bench.tell(2, later).0.is_empty());
    assert_ignored(&bench, kind, Ignored::FutureView);
    bench.leave_view();
    let awaited = both(&bench, 2);
    assert!(bench.tell(2, awaited).0.is_empty());
    assert_ignored(&bench, kind, Ignored::ViewNotBegun);
    let verifier = verifier(ProtocolKind::Pbft);
    let mut observer = Bench::of(ProtocolConfig { signs: false, ..config(&verifier, 0) }).0;
    let current = both(&observer, 1);
    assert!(observer.tell(2, current).0.is_empty());
    assert_ignored(&observer, kind, Ignored::NotNeeded);
}
