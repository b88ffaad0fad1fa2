//! Entering a view: PBFT §4.4, paper 002 §V-G. The safe values by themselves are tested beside
//! their computation.

use super::harness::*;
use super::*;
use crate::ProtocolView;
use quorate_types::{BlockId, Recipients};

fn is_fetch(message: &Message) -> bool {
    matches!(message, Message::FetchViewChanges(..))
}

/// View changes into view 2 of which member 1's has slot 2 prepared in view 1.
fn changes_with_gap(verifier: &Verifier) -> Vec<ViewChange> {
    let mut changes = empty_changes(verifier, 2);
    let report = prepared_report(prepared(verifier, at(1, 2, A)), A);
    changes[0] = change(verifier, 2, 1, vec![report]);
    changes
}

/// PBFT §4.4, §V-G new-view phase: the primary of the view names as many view changes as the honest
/// give, ascending, and goes on from them.
#[test]
fn a_primary_begins_its_view_with_n_f_view_changes() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 2);
    let changes = empty_changes(&bench.verifier, 2);
    bench.tell(1, Message::ViewChange(Box::new(changes[0].clone())));
    let outputs = bench.tell(3, Message::ViewChange(Box::new(changes[2].clone())));
    let names = outputs.messages().find_map(|(to, message)| match message {
        Message::NewView(new_view) => Some((to, new_view.changes.clone())),
        _ => None,
    });
    let (to, names) = names.expect("it leads the view that it joined");
    let signers: Vec<u16> = names.iter().map(|(signer, _)| signer.0).collect();
    assert_eq!((to, signers), (Recipients::All, vec![1, 2, 3]));
    assert_eq!(outputs.payload_slot(), Some(1), "nothing is to be proposed again");
    let more = change(&bench.verifier, 2, 0, Vec::new());
    assert!(!bench.tell(0, Message::ViewChange(Box::new(more))).says(is_new_view), "once");
}

/// PBFT §4.4: a backup accepts a new-view that is signed properly, with the view changes in it.
#[test]
fn a_backup_enters_with_the_view_changes_named() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let changes = empty_changes(&bench.verifier, 2);
    let outputs = bench.enter(2, &changes);
    let status = bench.machine.status();
    assert_eq!((status.view, status.view_changes), (View(2), 1));
    let last = outputs.view_records().pop().expect("the view is durable");
    assert_eq!((last.view, last.in_view_change, last.base), (View(2), false, Height(0)));
    assert!(bench.accept(2, 1, A).says(is_vote));
}

/// A new view names view changes by digest: missing ones are asked for, of everybody.
#[test]
fn missing_view_changes_are_fetched() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let changes = empty_changes(&bench.verifier, 2);
    let message = new_view(&bench.verifier, 2, &changes);
    let outputs = bench.tell(2, message);
    let asked = outputs.messages().find_map(|(to, message)| match message {
        Message::FetchViewChanges(view, members) => Some((to, *view, members.clone())),
        _ => None,
    });
    let all = vec![ReplicaId(1), ReplicaId(2), ReplicaId(3)];
    assert_eq!(asked, Some((Recipients::All, View(2), all)));
    for change in &changes {
        assert_eq!(bench.machine.status().view_changes, 0);
        bench.tell(3, Message::ViewChange(Box::new(change.clone())));
    }
    assert_eq!(bench.machine.status().view_changes, 1);
}

/// A view change is the one named only if its digest is.
#[test]
fn another_view_change_of_the_member_is_not_the_one_named() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let named = changes_with_gap(&bench.verifier);
    let sent = empty_changes(&bench.verifier, 2);
    let message = new_view(&bench.verifier, 2, &named);
    bench.tell(2, message);
    for change in sent {
        bench.tell(3, Message::ViewChange(Box::new(change)));
    }
    assert_eq!(bench.machine.status().view_changes, 0);
    bench.tell(3, Message::ViewChange(Box::new(named[0].clone())));
    assert_eq!(bench.machine.status().view_changes, 1);
}

/// View changes are shown to who asks, as often as the schedule lets it.
#[test]
fn named_view_changes_are_shown() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let changes = empty_changes(&bench.verifier, 2);
    bench.enter(2, &changes);
    let ask = || Message::FetchViewChanges(View(2), vec![ReplicaId(1), ReplicaId(3)]);
    let shown = bench.tell(3, ask()).receivers(is_view_change);
    assert_eq!(shown, [Recipients::One(ReplicaId(3)); 2]);
    assert!(bench.tell(3, ask()).0.is_empty(), "just now");
    bench.now = bench.now + Duration::from_secs(1);
    assert!(bench.tell(3, ask()).says(is_view_change));
}

/// ★ §V-G: exactly `n−f`; PBFT §4.4: of different members.
#[test]
pub(super) fn a_new_view_names_as_many_as_are_honest() {
    let verifier = verifier(ProtocolKind::Pbft);
    let names = |members: &[u16]| {
        let names = members.iter().map(|member| (ReplicaId(*member), hash(b"change"))).collect();
        receive(&verifier, signed_new_view(&verifier, 2, 2, names))
    };
    assert_eq!(names(&[0, 2]), Err(Rejected::BelowThreshold));
    assert!(names(&[0, 2, 3]).is_ok());
    let more = Rejected::RuleBroken("a new view names no more members than are honest");
    assert_eq!(names(&[0, 1, 2, 3]), Err(more));
    let twice = Rejected::RuleBroken("a new view names members, ascending");
    assert_eq!(names(&[0, 2, 2]), Err(twice.clone()));
    assert_eq!(names(&[0, 2, 4]), Err(twice), "a stranger");
}

/// PBFT §4.4: a new-view is its primary's.
#[test]
fn a_new_view_is_signed_by_its_primary() {
    let bench = Bench::new(ProtocolKind::Pbft, 0);
    let changes = empty_changes(&bench.verifier, 2);
    let names = changes.iter().map(|change| (change.signer, change.digest())).collect();
    let forged = signed_new_view(&bench.verifier, 3, 2, names);
    assert_eq!(bench.refusal(forged), Rejected::BadSignature("an identity signature"));
}

/// PBFT §4.4: the view of a new-view is a later one.
#[test]
fn a_view_does_not_begin_twice() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let changes = empty_changes(&bench.verifier, 3);
    bench.enter(3, &changes);
    let (verifier, again) = (Arc::clone(&bench.verifier), empty_changes(&bench.verifier, 2));
    assert_eq!(bench.refusal(new_view(&verifier, 2, &again)), Rejected::Stale);
    assert!(bench.tell(3, new_view(&verifier, 3, &changes)).0.is_empty());
    assert_eq!(bench.machine.status().view_changes, 1);
}

/// ★ Members left view 1 before there was anything to report; their promises in view 2 are in none
/// of these view changes.
#[test]
pub(super) fn only_view_changes_into_the_view_count() {
    let begin = |reported: u64| {
        let mut bench = Bench::new(ProtocolKind::Pbft, 0);
        let changes = empty_changes(&bench.verifier, reported);
        bench.enter(3, &changes);
        bench.machine.status()
    };
    assert_eq!((begin(3).view, begin(3).view_changes), (View(3), 1));
    assert_eq!((begin(2).view, begin(2).view_changes), (View(2), 0));
}

/// ★ Until the view has begun nothing counts in it.
#[test]
pub(super) fn nothing_counts_before_the_view_has_begun() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.leave_view();
    assert!(!bench.propose(2, 1, A).wants_bodies());
    assert!(!bench.store(1, A).says(is_vote));
    let certificate = prepared(&bench.verifier, at(2, 1, A));
    assert!(!bench.tell(3, Message::Prepare(certificate)).says(is_commit));
}

/// PBFT §4.4: a pre-prepare for each slot up to the highest prepared one, with the value prepared
/// in the highest view, and the null request for the others.
#[test]
fn prepared_values_and_null_operations_are_proposed_again() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let changes = changes_with_gap(&bench.verifier);
    let outputs = bench.enter(2, &changes);
    let null = BlockId(digest_of(&null_operation(Height(1))));
    let wanted: Vec<(BlockId, ReplicaId)> = outputs
        .0
        .iter()
        .filter_map(|output| match output {
            Output::RequestBodies { block, source, .. } => Some((*block, *source)),
            _ => None,
        })
        .collect();
    let prepared = BlockId(at(2, 2, A).digest);
    let expected = [(null, ReplicaId(2)), (prepared, ReplicaId(1))];
    assert_eq!(wanted, expected, "the value came with its certificate, whose voters have the rest");
    let vote = bench.feed(Input::Stored(null));
    let voted = vote.messages().find_map(|(_, message)| match message {
        Message::SignShare(share) => Some(share.proposal),
        _ => None,
    });
    assert_eq!(voted.map(|at| (at.view, at.slot)), Some((View(2), Height(1))));
    let voted = bench.store(2, A);
    assert!(voted.says(is_vote));
    assert_eq!(voted.slot_records()[0].accepted, Some((View(2), at(2, 2, A).digest)));
}

/// ★ The slots that the view begins with are not the primary's to fill.
#[test]
pub(super) fn slots_of_the_new_view_are_not_the_primarys() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let changes = changes_with_gap(&bench.verifier);
    bench.enter(2, &changes);
    assert!((1..=2).all(|slot| !bench.propose(2, slot, B).wants_bodies()));
    assert!(bench.propose(2, 3, B).wants_bodies());
}

/// §V-G: the primary's next slot is the one after the last with evidence.
#[test]
fn a_primary_goes_on_after_the_evidence() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 2);
    let changes = changes_with_gap(&bench.verifier);
    bench.tell(1, Message::ViewChange(Box::new(changes[0].clone())));
    let outputs = bench.tell(3, Message::ViewChange(Box::new(changes[2].clone())));
    assert!(outputs.says(is_new_view));
    assert_eq!(bench.machine.view(), View(2));
    let parent = bench.verifier.genesis();
    let filled = |bench: &mut Bench, slot| {
        let payload = value(slot, B);
        bench.feed(Input::Payload { view: View(2), parent, payload }).says(is_pre_prepare)
    };
    assert!(!filled(&mut bench, 1) && !filled(&mut bench, 2));
    assert!(filled(&mut bench, 3));
}

/// Found from outside: one member claims to have accepted something in the last slot of the
/// window. PBFT §4.4: the new view ends with the highest slot of which something is to be proposed
/// again, and null requests fill only the gaps before it.
#[test]
pub(super) fn one_claim_makes_no_null_slots() {
    for protocol in ProtocolKind::WINDOWED {
        let mut bench = Bench::new(protocol, 0);
        let mut changes = empty_changes(&bench.verifier, 2);
        let fast = FastReport::Accepted(View(1), hash(b"anything"));
        let claim = SlotReport { slot: Height(WINDOW), slow: SlowReport::Nothing, fast };
        changes[2] = change(&bench.verifier, 2, 3, vec![claim]);
        let message = Message::ViewChange(Box::new(changes[2].clone()));
        let has_fast_path = protocol.windowed_rules().is_some_and(|rules| rules.fast_path);
        if !has_fast_path {
            let rule = Rejected::RuleBroken("nothing is reported fast where there is no fast path");
            assert_eq!(receive(&bench.verifier, message), Err(rule), "{protocol}");
            continue;
        }
        let outputs = bench.enter(2, &changes);
        let nulls = outputs.0.iter().filter(|it| matches!(it, Output::RequestBodies { .. }));
        assert_eq!(nulls.count(), 0, "{protocol}");
        assert!(bench.propose(2, 1, B).wants_bodies(), "{protocol}: the primary fills slot 1");
    }
}

/// §V-G: if a view change holds a proof, the slot is decided.
#[test]
fn a_proof_in_a_view_change_decides() {
    let mut bench = Bench::new(ProtocolKind::Sbft, 0);
    let certificate = certificate(&bench.verifier, Kind::Commit, at(1, 1, A), &[0, 1, 3]);
    let slow = SlowReport::Decided(certificate);
    let report = SlotReport { slot: Height(1), slow, fast: FastReport::Nothing };
    let mut changes = empty_changes(&bench.verifier, 2);
    changes[1] = change(&bench.verifier, 2, 2, vec![report]);
    bench.enter(2, &changes);
    assert_eq!(bench.tell(1, Message::Payload(value(1, A))).decided(), [1]);
}

/// §V-G: `f+c+1` members that accepted a value, none of whom prepared it.
#[test]
fn a_fast_value_is_proposed_again() {
    let mut bench = Bench::new(ProtocolKind::Sbft, 0);
    let report = || SlotReport {
        slot: Height(1),
        slow: SlowReport::Nothing,
        fast: FastReport::Accepted(View(1), at(1, 1, A).digest),
    };
    let mut changes = empty_changes(&bench.verifier, 2);
    for member in [1, 2] {
        changes[usize::from(member) - 1] = change(&bench.verifier, 2, member, vec![report()]);
    }
    bench.enter(2, &changes);
    assert!(bench.tell(1, Message::Payload(value(1, A))).wants_bodies());
    assert!(bench.store(1, A).says(is_vote));
}

/// PBFT §4.4: a slot that was executed is prepared again and not executed again. Here its proof is
/// shown instead, for its bodies may be released.
#[test]
fn a_decided_slot_is_shown_not_voted_on() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.decide(1, A);
    let certificate = prepared(&bench.verifier, at(1, 1, A));
    let mut changes = empty_changes(&bench.verifier, 2);
    changes[0] = change(&bench.verifier, 2, 1, vec![prepared_report(certificate, A)]);
    let outputs = bench.enter(2, &changes);
    assert_eq!(outputs.receivers(is_proof), [Recipients::All]);
    assert!(!outputs.wants_bodies());
    assert!(!bench.store(1, A).says(is_vote));
}

/// §V-G: `ls` is the highest stable checkpoint in the view changes.
#[test]
fn a_new_view_moves_the_window() {
    let verifier = verifier(ProtocolKind::Pbft);
    let machine = replica(&verifier, 0);
    let executed = decided(&verifier, 1, value(CHECKPOINT_EVERY, A)).encode();
    let mut bench = Bench { verifier, machine, now: Time(0) };
    bench.recover(None, Vec::new(), Some(executed), Vec::new());
    let stable = checkpoint(&bench.verifier, CHECKPOINT_EVERY, &[1, 2, 3]);
    let mut changes = empty_changes(&bench.verifier, 2);
    changes[2] = signed_change(&bench.verifier, 2, 3, Some(stable), Vec::new());
    assert_eq!(bench.enter(2, &changes).stable(), Some(CHECKPOINT_EVERY));
    assert!(bench.propose(2, CHECKPOINT_EVERY + WINDOW, A).wants_bodies());
}

/// A pre-prepare may overtake the new-view of its view.
#[test]
fn an_early_pre_prepare_is_kept() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let changes = empty_changes(&bench.verifier, 2);
    bench.tell(1, Message::ViewChange(Box::new(changes[0].clone())));
    assert!(!bench.propose(2, 1, A).wants_bodies());
    assert!(bench.enter(2, &changes).wants_bodies());
    assert!(bench.store(1, A).says(is_vote));
}

/// A member that left the view it is in waits for a later one; what it fetches meanwhile is of the
/// new view that names it.
#[test]
fn a_later_new_view_replaces_one_that_is_incomplete() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let (second, third) = (empty_changes(&bench.verifier, 2), empty_changes(&bench.verifier, 3));
    let message = new_view(&bench.verifier, 2, &second);
    assert!(bench.tell(2, message).says(is_fetch));
    bench.enter(3, &third);
    assert_eq!(bench.machine.view(), View(3));
    let late = new_view(&bench.verifier, 2, &second);
    assert_eq!(bench.refusal(late), Rejected::Stale);
}

/// PBFT §4.4: the value of the highest view is proposed again, as its own report has it.
#[test]
fn a_value_comes_from_the_report_of_its_certificate() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let verifier = Arc::clone(&bench.verifier);
    let mut changes = empty_changes(&verifier, 3);
    for (member, view, stamp) in [(1, 1, B), (2, 2, A)] {
        let report = prepared_report(prepared(&verifier, at(view, 1, stamp)), stamp);
        changes[usize::from(member) - 1] = change(&verifier, 3, member, vec![report]);
    }
    assert!(bench.enter(3, &changes).wants_bodies());
    let voted = bench.store(1, A);
    assert!(voted.says(is_vote));
    assert_eq!(voted.slot_records()[0].payloads, [value(1, A)]);
}

/// A value that a view began with is asked for as long as the view lasts.
#[test]
fn a_value_of_a_view_that_ended_is_not_asked_for() {
    let mut bench = Bench::new(ProtocolKind::Sbft, 0);
    let digest = at(1, 1, A).digest;
    let report = || SlotReport {
        slot: Height(1),
        slow: SlowReport::Nothing,
        fast: FastReport::Accepted(View(1), digest),
    };
    let mut changes = empty_changes(&bench.verifier, 2);
    for member in [1, 2] {
        changes[usize::from(member) - 1] = change(&bench.verifier, 2, member, vec![report()]);
    }
    bench.enter(2, &changes);
    let lacks = |outputs: Outputs| {
        outputs.messages().find_map(|(_, message)| match message {
            Message::Status(status) => Some(status.lacks.clone()),
            _ => None,
        })
    };
    assert_eq!(lacks(bench.ring_until(is_status)), Some(vec![(Height(1), digest)]));
    bench.leave_view();
    assert_eq!(lacks(bench.ring_until(is_status)), Some(Vec::new()));
}

/// A pre-prepare is kept for a view whose new-view came, though not all that it names.
#[test]
fn a_pre_prepare_is_kept_for_an_incomplete_view() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let changes = empty_changes(&bench.verifier, 2);
    let message = new_view(&bench.verifier, 2, &changes);
    assert!(bench.tell(2, message).says(is_fetch));
    assert!(!bench.propose(2, 1, A).wants_bodies());
    let last = changes.into_iter().map(|change| {
        let signer = u8::try_from(change.signer.0).expect("few");
        bench.tell(signer, Message::ViewChange(Box::new(change)))
    });
    assert!(last.last().expect("three").wants_bodies());
}

/// A new-view of a later view waits for what it names, whichever view begins meanwhile.
#[test]
fn a_later_new_view_outlives_the_beginning_of_an_earlier_one() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let verifier = Arc::clone(&bench.verifier);
    let [second, third] = [2, 3].map(|view| empty_changes(&verifier, view));
    bench.tell(3, new_view(&verifier, 3, &third));
    bench.enter(2, &second);
    assert_eq!(bench.machine.status().view_changes, 1);
    for change in third {
        bench.tell(3, Message::ViewChange(Box::new(change)));
    }
    let status = bench.machine.status();
    assert_eq!((status.view, status.view_changes), (View(3), 2));
    assert!(bench.accept(3, 1, A).says(is_vote), "it has begun");
}

/// PBFT §4.4: a primary says once which view changes its view begins with, also if it restarted
/// since and hears of others.
#[test]
fn a_primary_does_not_begin_its_view_again() {
    let record = ViewRecord {
        epoch: epoch(),
        view: View(2),
        in_view_change: false,
        base: Height(0),
        stable: None,
    };
    let (mut bench, _) = Bench::restarted(ProtocolKind::Pbft, 2, Some(&record), &[]);
    for member in [0, 1, 3] {
        let change = change(&bench.verifier, 2, member, Vec::new());
        assert!(!bench.tell(member, Message::ViewChange(Box::new(change))).says(is_new_view));
    }
}
