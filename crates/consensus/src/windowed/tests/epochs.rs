//! The end of an epoch and the beginning of one: stop slots and anchors.

use super::harness::*;
use super::safe_values::{SafeValue, safe_values};
use super::*;
use crate::ProtocolView;
use quorate_types::Recipients;

/// The value that ends the epoch with a slot.
fn stop(slot: u64) -> Payload {
    value(slot, A).ending_epoch(hash(b"a change"))
}

/// The stop slot, decided, as others show it.
fn decided_stop(bench: &Bench, slot: u64) -> DecidedSlot {
    decided(&bench.verifier, 1, stop(slot))
}

fn end(bench: &mut Bench, slot: u64) -> Outputs {
    let decided = decided_stop(bench, slot);
    bench.tell(2, Message::Decided(Box::new(decided)))
}

/// ★ What is decided behind the stop slot is not delivered, whether it was decided before the stop
/// slot or comes after it.
#[test]
pub(super) fn slots_behind_the_stop_are_void() {
    for protocol in ProtocolKind::WINDOWED {
        let mut bench = Bench::new(protocol, 0);
        assert_eq!(bench.decide(3, A).decided(), [0; 0]);
        assert_eq!(bench.decide(1, A).decided(), [1]);
        assert_eq!(end(&mut bench, 2).decided(), [2], "{protocol}");
        assert_eq!(bench.decide(3, A).decided(), [0; 0]);
        assert_eq!(bench.decide(4, A).decided(), [0; 0]);

        let mut bench = Bench::new(protocol, 0);
        let run = Run {
            decided: vec![decided_stop(&bench, 1), decided(&bench.verifier, 1, value(2, A))],
            conflicts: false,
        };
        let outputs = bench.feed(Input::Run(Box::new(crate::VerifiedRun::Windowed(run))));
        assert_eq!(outputs.decided(), [1], "{protocol}");
    }
}

/// ★ Whoever delivered the stop slot neither votes nor changes views any more. It shows all that
/// it is over, and then whoever sends anything else, once in a while.
#[test]
pub(super) fn nothing_is_signed_after_the_stop() {
    for protocol in ProtocolKind::WINDOWED {
        let mut bench = Bench::new(protocol, 0);
        bench.propose(1, 2, A);
        let outputs = end(&mut bench, 1);
        assert_eq!(outputs.receivers(is_decided), [Recipients::All], "{protocol}");
        assert!(!bench.store(2, A).says(is_vote), "{protocol}");
        assert!(bench.feed(Input::PrimarySuspected).0.is_empty(), "{protocol}");
        assert!(!bench.leave_view().says(is_view_change), "{protocol}");
        bench.now = bench.now + Duration::from_secs(1);
        assert_eq!(bench.machine.next_timeout(), None, "{protocol}");

        let two = [Recipients::One(ReplicaId(2))];
        assert_eq!(bench.tell(2, Message::Status(status(0))).receivers(is_decided), two);
        assert!(bench.tell(2, Message::Status(status(0))).0.is_empty(), "once in a while");
        assert!(end(&mut bench, 1).0.is_empty(), "who shows it knows it");
        let one = [Recipients::One(ReplicaId(1))];
        assert_eq!(bench.propose(1, 3, A).receivers(is_decided), one);
        let shown = bench.feed(Input::ShowDecision { to: ReplicaId(3) });
        assert_eq!(shown.receivers(is_decided), [Recipients::One(ReplicaId(3))]);
    }
}

/// ★ A primary fills no slot behind a stop slot that it proposed or accepted.
#[test]
pub(super) fn nothing_is_proposed_behind_a_stop() {
    for protocol in ProtocolKind::WINDOWED {
        let mut bench = Bench::new(protocol, 1);
        bench.feed(Input::Work(true));
        let payload = stop(1);
        let (view, parent) = (View(1), bench.verifier.genesis());
        let outputs = bench.feed(Input::Payload { view, parent, payload });
        assert!(outputs.says(is_pre_prepare), "{protocol}");
        assert_eq!(outputs.payload_slot(), None, "{protocol}");
    }
}

/// ★ Nothing is taken as decided in an epoch that stands behind its stop slot.
#[test]
pub(super) fn a_run_ends_with_the_stop() {
    let bench = Bench::new(ProtocolKind::Pbft, 0);
    let stop = decided_stop(&bench, 1).encode();
    let next = decided(&bench.verifier, 1, value(2, A)).encode();
    let check = |records: &[Bytes]| verify_run(Height(0), None, records, &bench.verifier);
    assert!(check(std::slice::from_ref(&stop)).is_ok());
    let rule = Rejected::RuleBroken("nothing follows a stop block in its epoch");
    assert_eq!(check(&[stop, next]).err(), Some(rule));
}

/// Another proof for the stop slot halts, after the end too.
#[test]
fn another_decision_halts_after_the_end() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    end(&mut bench, 1);
    assert!(bench.decide(1, B).halt().is_some());
}

/// A member that comes back after the end has no timer, and answers.
#[test]
fn an_end_survives_a_restart() {
    let verifier = verifier(ProtocolKind::Sbft);
    let record = decided(&verifier, 1, stop(1)).encode();
    for (executed, decided) in [(Some(record.clone()), vec![]), (None, vec![record])] {
        let mut bench =
            Bench { machine: replica(&verifier, 0), verifier: Arc::clone(&verifier), now: Time(0) };
        bench.recover(None, Vec::new(), executed, decided);
        assert_eq!(bench.machine.next_timeout(), None);
        assert!(bench.tell(2, Message::Status(status(0))).says(is_decided));
        assert!(bench.propose(1, 2, A).says(is_decided));
    }
}

/// Records of decided slots name no epoch: those up to the anchor are not of this one, and each
/// follows the one before it.
#[test]
fn a_start_begins_behind_the_anchor() {
    let verifier = verifier_after(ProtocolKind::Pbft, ANCHOR);
    let start = |executed: &[u64], after: &[u64]| {
        let record = |slot: &u64| decided(&verifier, 1, value(*slot, A)).encode();
        let machine = replica(&verifier, 0);
        let mut bench = Bench { machine, verifier: Arc::clone(&verifier), now: Time(0) };
        let (executed, after) = (executed.first().map(record), after.iter().map(record).collect());
        let outputs = bench.recover(None, Vec::new(), executed, after);
        (outputs.halt().is_none(), outputs.decided())
    };
    assert_eq!(start(&[], &[301, 302]), (true, vec![301, 302]));
    assert_eq!(start(&[305], &[306]), (true, vec![306]));
    for (executed, after) in
        [(&[][..], &[300][..]), (&[300], &[301]), (&[], &[302]), (&[301], &[303]), (&[], &[1])]
    {
        assert!(!start(executed, after).0, "{executed:?} and {after:?}");
    }
}

/// ★ After a restart a vote for a stop slot is said again once its change was checked again.
#[test]
fn a_change_is_checked_again_after_a_restart() {
    for protocol in ProtocolKind::WINDOWED {
        let mut bench = Bench::new(protocol, 0);
        bench.tell(1, pre_prepare(&bench.verifier, 1, stop(1)));
        let stored = bench.feed(Input::Stored(BlockId(digest_of(&stop(1)))));
        assert!(stored.says(is_vote), "{protocol}");
        let slots = stored.slot_records();
        let (mut bench, outputs) = Bench::restarted(protocol, 0, None, &slots);
        assert!(outputs.wants_bodies() && !outputs.says(is_vote), "{protocol}");
        let stored = bench.feed(Input::Stored(BlockId(digest_of(&stop(1)))));
        assert!(stored.says(is_vote), "{protocol}");
    }
}

/// A snapshot of the last height ends the epoch too.
#[test]
fn an_installed_stop_ends() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let record = decided_stop(&bench, 9).encode();
    bench.feed(Input::Installed(record));
    assert_eq!(bench.machine.next_timeout(), None);
    assert!(!bench.accept(1, 10, A).says(is_vote));
}

/// Ended members show the last decision alone: one that the window has no room for, since a
/// checkpoint is late here, is fetched as history however near it is.
#[test]
fn a_stop_beyond_the_window_is_fetched() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    (1..=240).for_each(|slot| drop(bench.decide(slot, A)));
    let last = decided_stop(&bench, WINDOW + 4);
    let target = last.id();
    let outputs = bench.tell(2, Message::Decided(Box::new(last)));
    assert_eq!(outputs.behind(), Some(target));
    let fetched = |slot| decided(&bench.verifier, 1, value(slot, A));
    let mut run: Vec<DecidedSlot> = (241..WINDOW + 4).map(fetched).collect();
    run.push(decided_stop(&bench, WINDOW + 4));
    let run = Run { decided: run, conflicts: false };
    let outputs = bench.feed(Input::Run(Box::new(crate::VerifiedRun::Windowed(run))));
    assert_eq!(outputs.decided().last(), Some(&(WINDOW + 4)));
    assert!(bench.machine.has_block(BlockId::default()), "and nothing is missing then");
}

const ANCHOR: Anchor = Anchor { height: Height(300), proposed_at_ms: 5 };

/// The last height of the epoch before is stable: the window begins behind it.
#[test]
fn an_epoch_begins_after_its_anchor() {
    let verifier = verifier_after(ProtocolKind::Pbft, ANCHOR);
    let (_, outputs) = Bench::started(&verifier, 1);
    assert_eq!(outputs.payload_slot(), Some(301));
    let (mut bench, _) = Bench::started(&verifier, 0);
    assert!(bench.accept(1, 301, A).says(is_vote));
    assert!(bench.accept(1, 300 + WINDOW, A).says(is_vote));
    let far = pre_prepare(&verifier, 1, value(301 + WINDOW, A));
    assert!(!bench.tell(1, far).wants_bodies());
    let rule = "a payload is what its header names, without repeats";
    let before = pre_prepare(&verifier, 1, value(300, A));
    assert_eq!(bench.refusal(before), Rejected::RuleBroken(rule));
    assert_eq!(bench.decide(301, A).decided(), [301]);

    let mut again = Bench { machine: replica(&verifier, 0), verifier, now: Time(0) };
    let changing = bench.leave_view().view_records().pop().expect("a view change is promised");
    again.recover(Some(changing.encode().bytes), Vec::new(), None, Vec::new());
    let last = decided(&again.verifier, 1, value(301, A));
    let outputs = again.tell(2, Message::Decided(Box::new(last)));
    assert_eq!(outputs.decided(), [301], "also after a restart before the first checkpoint");
}

/// ★ A view change before the epoch's first checkpoint begins after its anchor, never at zero.
#[test]
pub(super) fn a_view_change_begins_after_the_anchor() {
    let verifier = verifier_after(ProtocolKind::Pbft, ANCHOR);
    let report = prepared_report(prepared(&verifier, at(1, 302, A)), A);
    let changes = [
        change(&verifier, 2, 1, vec![report]),
        change(&verifier, 2, 2, Vec::new()),
        change(&verifier, 2, 3, Vec::new()),
    ];
    let shared: Vec<_> = changes.iter().cloned().map(Arc::new).collect();
    let outcome = safe_values(&shared, verifier.committee(), verifier.anchor());
    let slots: Vec<(u64, SafeValue)> =
        outcome.slots.into_iter().map(|(slot, value)| (slot.0, value)).collect();
    let proposed = SafeValue::Propose(digest_of(&value(302, A)));
    assert_eq!(slots, [(301, SafeValue::Null), (302, proposed)]);

    let (mut bench, _) = Bench::started(&verifier, 0);
    let outputs = bench.enter(2, &changes);
    assert_eq!(outputs.halt(), None);
    let early = change(&verifier, 2, 1, vec![prepared_report(prepared(&verifier, at(1, 7, A)), A)]);
    let rule = "a view change is of the slots in its window, each once";
    let early = bench.verifier.protocol().windowed(Message::ViewChange(Box::new(early)));
    let from = Peer::Replica(ReplicaId(1));
    let refused = crate::Message::verify(early, from, bench.verifier.as_ref()).err();
    assert_eq!(refused, Some(Rejected::RuleBroken(rule)));
}
