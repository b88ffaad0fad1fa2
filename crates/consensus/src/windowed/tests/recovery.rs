//! Recovery: promises of an earlier run bind this one.

use super::harness::*;
use super::*;
use crate::{ProtocolView, Statement};
use quorate_types::machine::{Halt, RecordKind};
use quorate_types::{BlockId, BodyRef, Recipients};

fn view_record(view: u64, in_view_change: bool, base: u64) -> ViewRecord {
    ViewRecord {
        epoch: epoch(),
        view: View(view),
        in_view_change,
        base: Height(base),
        stable: None,
    }
}

/// Record of slot 1 with A accepted in view 1.
fn accepted_in_view_1() -> SlotRecord {
    SlotRecord {
        epoch: epoch(),
        slot: Height(1),
        accepted: Some((View(1), at(1, 1, A).digest)),
        prepared: None,
        payloads: vec![value(1, A)],
    }
}

/// ★ Slots that a view began with are not the primary's to replace, after a restart either.
#[test]
pub(super) fn slots_of_the_new_view_stay_its_own() {
    let record = view_record(3, false, 5);
    let (mut bench, _) = Bench::restarted(ProtocolKind::Sbft, 0, Some(&record), &[]);
    assert!(!bench.propose(3, 5, A).wants_bodies());
    assert!(bench.propose(3, 6, A).wants_bodies());
}

/// ★ A promise that was durable holds: no other value gets a vote in that view.
#[test]
pub(super) fn an_accepted_value_stays_accepted() {
    let (mut bench, _) = Bench::restarted(ProtocolKind::Pbft, 0, None, &[accepted_in_view_1()]);
    assert!(!bench.propose(1, 1, B).wants_bodies());
    assert!(!bench.store(1, B).says(is_vote));
}

/// Its vote is sent again, byte for byte, so that a lost one stops nothing.
#[test]
fn an_accepted_value_gets_the_same_vote() {
    let votes = |outputs: &Outputs| -> Vec<Message> {
        let votes = outputs.messages().filter(|(_, message)| is_vote(message));
        votes.map(|(_, message)| message.clone()).collect()
    };
    let before = Bench::new(ProtocolKind::Pbft, 0).accept(1, 1, A);
    let (_, after) = Bench::restarted(ProtocolKind::Pbft, 0, None, &[accepted_in_view_1()]);
    assert_eq!(votes(&before).len(), 1);
    assert_eq!(votes(&before), votes(&after));
    assert!(!after.says(is_pre_prepare), "which is its primary's");
}

/// ★ A vote says that its bodies are stored: one whose bodies were lost waits for them.
#[test]
pub(super) fn a_vote_waits_for_bodies_that_were_lost() {
    let body = BodyRef { author: ReplicaId(2), sequence: 1, digest: hash(b"body") };
    let payload = Payload::new(Height(1), A, vec![body]);
    let digest = digest_of(&payload);
    let accepted = Some((View(1), digest));
    let record = SlotRecord { accepted, payloads: vec![payload.clone()], ..accepted_in_view_1() };
    let (mut bench, outputs) = Bench::restarted(ProtocolKind::Pbft, 0, None, &[record]);
    assert!(!outputs.says(is_vote) && outputs.wants_bodies(), "{outputs:?}");
    let again = pre_prepare(&bench.verifier, 1, payload);
    assert!(bench.tell(1, again).wants_bodies(), "they are still missing");
    assert!(!bench.tell(3, Message::Status(status(0))).says(is_vote), "whoever asks");
    assert!(bench.feed(Input::Stored(BlockId(digest))).says(is_vote));
}

/// A prepared value gets its vote to commit again.
#[test]
fn a_prepared_value_gets_its_commit_again() {
    let certificate = prepared(&verifier(ProtocolKind::Pbft), at(1, 1, A));
    let record = SlotRecord { prepared: Some(certificate), ..accepted_in_view_1() };
    let (_, outputs) = Bench::restarted(ProtocolKind::Pbft, 0, None, &[record]);
    assert!(outputs.says(is_vote) && outputs.says(is_commit), "{outputs:?}");
}

/// ★ Votes of earlier views are not sent again: nothing is signed below the view.
#[test]
fn votes_of_earlier_views_are_not_repeated() {
    let record = view_record(2, false, 0);
    let (mut bench, outputs) =
        Bench::restarted(ProtocolKind::Pbft, 0, Some(&record), &[accepted_in_view_1()]);
    assert!(!outputs.says(is_vote));
    let reported = bench.leave_view();
    assert_eq!(reported.view_change().view, View(3));
}

/// ★ §V-G: what was prepared in one view and what was accepted in a later one are both reported,
/// also after a restart, and both values are there.
#[test]
fn evidence_outlives_a_restart() {
    let mut bench = Bench::new(ProtocolKind::Sbft, 0);
    bench.accept(1, 1, A);
    let certificate = prepared(&bench.verifier, at(1, 1, A));
    bench.tell(2, Message::Prepare(certificate.clone()));
    let changes = empty_changes(&bench.verifier, 2);
    bench.enter(2, &changes);
    let record = bench.accept(2, 1, B).slot_records().pop().expect("a promise");
    assert_eq!(record.payloads, [value(1, B), value(1, A)]);
    let views = view_record(3, true, 0);
    let (mut again, outputs) =
        Bench::restarted(ProtocolKind::Sbft, 0, Some(&views), std::slice::from_ref(&record));
    let report = SlotReport {
        fast: FastReport::Accepted(View(2), at(2, 1, B).digest),
        ..prepared_report(certificate, A)
    };
    let reports = vec![report];
    assert_eq!(outputs.view_change().slots, reports);
    assert_eq!(bench.leave_view().view_change().slots, reports, "as without the restart");
    let lacks = vec![(Height(1), at(1, 1, A).digest), (Height(1), at(2, 1, B).digest)];
    let asked = Message::Status(Status { view: View(3), lacks, ..status(0) });
    let is_value = |message: &Message| matches!(message, Message::Payload(_));
    assert_eq!(again.tell(2, asked).receivers(is_value).len(), 2);
}

/// A prepared certificate that was restored is no news, and a member that lacks it is shown it.
#[test]
fn a_restored_certificate_is_known() {
    let certificate = prepared(&verifier(ProtocolKind::LinearPbft), at(1, 1, A));
    let record = SlotRecord { prepared: Some(certificate.clone()), ..accepted_in_view_1() };
    let (mut bench, _) = Bench::restarted(ProtocolKind::LinearPbft, 0, None, &[record]);
    assert!(bench.tell(2, Message::Prepare(certificate)).0.is_empty());
    assert!(bench.tell(3, Message::Status(status(0))).says(is_prepare));
}

/// A primary proposes again what it proposed: the same pre-prepare.
#[test]
fn a_primary_repeats_its_pre_prepare() {
    let (_, outputs) = Bench::restarted(ProtocolKind::Pbft, 1, None, &[accepted_in_view_1()]);
    let sent: Vec<_> = outputs.messages().filter(|(_, it)| is_pre_prepare(it)).collect();
    let expected = pre_prepare(&verifier(ProtocolKind::Pbft), 1, value(1, A));
    assert_eq!(sent, [(Recipients::All, &expected)]);
    assert_eq!(outputs.payload_slot(), Some(2), "it goes on after that");
}

/// ★ A member that was in a view change is in it still.
#[test]
fn a_view_change_is_sent_again() {
    let record = view_record(4, true, 0);
    let (mut bench, outputs) =
        Bench::restarted(ProtocolKind::Sbft, 0, Some(&record), &[accepted_in_view_1()]);
    let change = outputs.view_change();
    assert_eq!(change.view, View(4));
    assert_eq!(change.slots[0].fast, FastReport::Accepted(View(1), at(1, 1, A).digest));
    assert!(!outputs.says(is_vote));
    assert!(!bench.propose(4, 1, A).wants_bodies(), "the view has not begun");
}

/// Common rules: a record that is torn or of another epoch stops the replica.
#[test]
fn records_that_are_not_ours_halt() {
    let halts = |record: Bytes| {
        let verifier = verifier(ProtocolKind::Pbft);
        let machine = replica(&verifier, 0);
        let mut bench = Bench { verifier, machine, now: Time(0) };
        let outputs = bench.recover(Some(record), Vec::new(), None, Vec::new());
        match outputs.0.as_slice() {
            [Output::Halt(Halt::CorruptRecovery(reason))] => reason.clone(),
            _ => panic!("it starts: {outputs:?}"),
        }
    };
    assert!(halts(Bytes::from_static(b"torn")).contains("does not decode"));
    let foreign = ViewRecord { epoch: EpochId([2; 32]), ..view_record(1, false, 0) };
    assert!(halts(foreign.encode().bytes).contains("of epoch"));
}

/// What passed for whole and is not: a list of bodies that the header does not commit to.
#[test]
fn records_of_other_bodies_than_their_headers_name_halt() {
    let mut other = value(1, A);
    other.bodies.push(BodyRef { author: ReplicaId(2), sequence: 1, digest: hash(b"body") });
    let slot = SlotRecord { payloads: vec![other.clone()], ..accepted_in_view_1() };
    let (_, of_slot) = Bench::restarted(ProtocolKind::Pbft, 0, None, &[slot]);
    let verifier = verifier(ProtocolKind::Pbft);
    let record = DecidedSlot { payload: other, ..decided(&verifier, 1, value(1, A)) };
    let machine = replica(&verifier, 0);
    let mut bench = Bench { verifier, machine, now: Time(0) };
    let of_decided = bench.recover(None, Vec::new(), None, vec![record.encode()]);
    for outputs in [of_slot, of_decided] {
        let Some(Halt::CorruptRecovery(reason)) = outputs.halt() else { panic!("{outputs:?}") };
        assert!(reason.contains("names other bodies"), "{reason}");
    }
}

/// Found from outside: a primary of which nothing beyond the stable height was accepted goes on
/// after that height, and keeps its view.
#[test]
fn a_primary_goes_on_after_what_is_stable() {
    let verifier = verifier(ProtocolKind::Pbft);
    let stable = checkpoint(&verifier, CHECKPOINT_EVERY, &[1, 2, 3]);
    let record = ViewRecord { stable: Some(stable), ..view_record(1, false, 0) };
    let executed = decided(&verifier, 1, value(CHECKPOINT_EVERY, A)).encode();
    let restart = |executed| {
        let machine = replica(&verifier, 1);
        let mut bench = Bench { verifier: Arc::clone(&verifier), machine, now: Time(0) };
        bench.recover(Some(record.encode().bytes), Vec::new(), executed, Vec::new()).payload_slot()
    };
    assert_eq!(restart(Some(executed)), Some(CHECKPOINT_EVERY + 1));
    assert_eq!(restart(None), Some(CHECKPOINT_EVERY + 1), "its state is to be fetched");
}

/// A prepared value must be reported as long as its slot is open: its record holds it.
#[test]
fn a_prepared_record_without_its_value_halts() {
    let certificate = prepared(&verifier(ProtocolKind::Pbft), at(1, 1, B));
    let record = SlotRecord { prepared: Some(certificate), ..accepted_in_view_1() };
    let (_, outputs) = Bench::restarted(ProtocolKind::Pbft, 0, None, &[record]);
    let reason = "slot h1 is prepared without its value".to_owned();
    assert_eq!(outputs.halt(), Some(&Halt::CorruptRecovery(reason)));
}

/// Decided records follow one another; those after the executed one are delivered again.
#[test]
fn decided_slots_are_delivered_after_the_executed_one() {
    let recover = |heights: [u64; 2]| {
        let verifier = verifier(ProtocolKind::Pbft);
        let machine = replica(&verifier, 0);
        let record = |height| decided(&verifier, 1, value(height, A)).encode();
        let (executed, later) = (record(5), heights.map(record).to_vec());
        let mut bench = Bench { verifier: Arc::clone(&verifier), machine, now: Time(0) };
        bench.recover(None, Vec::new(), Some(executed), later)
    };
    assert_eq!(recover([6, 7]).decided(), [6, 7]);
    assert!(matches!(recover([6, 8]).halt(), Some(Halt::CorruptRecovery(_))));
}

/// A pre-prepare that comes again after a restart changes nothing about a vote that has its bodies.
#[test]
fn a_restored_value_is_not_stored_again() {
    let (mut bench, outputs) =
        Bench::restarted(ProtocolKind::Pbft, 0, None, &[accepted_in_view_1()]);
    assert!(outputs.says(is_vote) && !outputs.wants_bodies());
    assert!(!bench.propose(1, 1, A).wants_bodies());
    assert!(bench.tell(3, Message::Status(status(0))).says(is_vote));
}

/// Slots that its view began with are no proposals of their primary: it votes for them like anybody
/// else.
#[test]
fn a_primary_repeats_no_pre_prepare_of_what_its_view_began_with() {
    let accepted = |slot| SlotRecord {
        slot: Height(slot),
        accepted: Some((View(5), at(5, slot, A).digest)),
        payloads: vec![value(slot, A)],
        ..accepted_in_view_1()
    };
    let records = [accepted(1), accepted(2)];
    let record = view_record(5, false, 1);
    let (_, outputs) = Bench::restarted(ProtocolKind::Pbft, 1, Some(&record), &records);
    let proposed: Vec<Height> = outputs
        .messages()
        .filter_map(|(_, message)| match message {
            Message::PrePrepare(proposed) => Some(proposed.payload.header.height),
            _ => None,
        })
        .collect();
    assert_eq!(proposed, [Height(2)]);
    assert_eq!(outputs.receivers(is_vote), [Recipients::All], "for slot 1");
}

/// Common rules ★: a member that may not sign repeats nothing, whatever it promised.
#[test]
fn a_member_that_may_not_sign_repeats_nothing() {
    let verifier = verifier(ProtocolKind::Pbft);
    let certificate = prepared(&verifier, at(1, 1, A));
    let record = SlotRecord { prepared: Some(certificate), ..accepted_in_view_1() };
    for member in [0, 1] {
        let machine = machine(ProtocolConfig { signs: false, ..config(&verifier, member) });
        let mut bench = Bench { verifier: Arc::clone(&verifier), machine, now: Time(0) };
        let outputs = bench.recover(None, vec![record.encode().bytes], None, Vec::new());
        assert_eq!(outputs.messages().count(), 0, "member {member}");
    }
}

/// ★ The records account for what was signed: the values that a slot's record names, and all of
/// earlier views; for no other value, no later slot and no later view.
#[test]
fn records_account_for_what_was_signed_and_for_nothing_else() {
    let protocol = ProtocolKind::Pbft;
    let certificate = prepared(&verifier(protocol), at(1, 1, A));
    let accepted = SlotRecord { prepared: Some(certificate), ..accepted_in_view_1() };
    let record = view_record(2, true, 0);
    let (bench, _) = Bench::restarted(protocol, 0, Some(&record), &[accepted]);
    let known = |statement| bench.machine.accounts_for(&statement);
    for vote in [Statement::Prepare, Statement::Commit, Statement::PrePrepare] {
        assert!(known(vote(at(1, 1, A))) && known(vote(at(0, 1, B))));
        assert!(!known(vote(at(1, 1, B))) && !known(vote(at(2, 1, A))));
        assert!(!known(vote(at(1, 2, A))), "nothing is recorded of slot 2");
    }
    let change =
        |view| Statement::ViewChange { view: View(view), digest: quorate_crypto::Digest::ZERO };
    assert!(known(change(2)) && !known(change(3)));
    let begun =
        |view| Statement::NewView { view: View(view), digest: quorate_crypto::Digest::ZERO };
    assert!(known(begun(2)) && !known(begun(3)));
}

/// Records of a window's slots have places of their own: a slot takes the place of the one a window
/// before.
#[test]
fn a_record_replaces_that_of_the_slot_a_window_before() {
    let kind = |slot| SlotRecord { slot: Height(slot), ..accepted_in_view_1() }.encode().kind;
    let places: BTreeSet<RecordKind> = (1..=WINDOW).map(kind).collect();
    assert_eq!(places.len(), WINDOW as usize);
    for slot in [1, 2, 255, 256] {
        assert_eq!(kind(slot), kind(slot + WINDOW), "slot {slot}");
    }
}
