//! Leaving a view: PBFT §4.4 and §4.5.2, paper 002 §V-G.

use super::harness::*;
use super::*;
use crate::ProtocolView;
use quorate_types::Recipients;
use quorate_types::machine::RecordKind;

/// Another member's empty view change comes.
fn hear(bench: &mut Bench, member: u8, view: u64) -> Outputs {
    let message = Message::ViewChange(Box::new(change(&bench.verifier, view, member, Vec::new())));
    bench.tell(member, message)
}

/// PBFT §4.4: the timer of a backup ends.
#[test]
fn a_view_without_progress_times_out() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.feed(Input::Work(true));
    let outputs = bench.ring_until(is_view_change);
    assert_eq!(bench.now, Time(1_000_000));
    assert_eq!(outputs.receivers(is_view_change), [Recipients::All]);
    let change = outputs.view_change();
    assert_eq!((change.view, change.signer, &change.slots), (View(2), ReplicaId(0), &Vec::new()));
}

/// PBFT §4.4: the timer restarts with each request executed, and stops with the last.
#[test]
fn progress_restarts_the_timer() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.feed(Input::Work(true));
    bench.now = Time(900_000);
    bench.decide(1, A);
    bench.ring_until(is_view_change);
    assert_eq!(bench.now, Time(1_900_000));

    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.feed(Input::Work(true));
    bench.decide(1, A);
    bench.feed(Input::Work(false));
    let rings = (0..10).map_while(|_| bench.machine.next_timeout().map(|_| bench.ring()));
    assert!(rings.into_iter().all(|outputs| !outputs.says(is_view_change)));
}

/// ★ The view is durable before the view change leaves.
#[test]
pub(super) fn a_view_change_follows_its_record() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let outputs = bench.leave_view();
    let change = outputs.0.iter().position(|output| match output {
        Output::Send { message, .. } => message.windowed().is_some_and(is_view_change),
        _ => false,
    });
    let is_record = |output: &Output| match output {
        Output::Persist(record) => record.kind == RecordKind::Safety,
        _ => false,
    };
    let before = &outputs.0[..change.expect("it leaves the view")];
    assert!(before.iter().any(is_record), "{outputs:?}");
    let records = outputs.view_records();
    assert_eq!((records[0].view, records[0].in_view_change), (View(2), true));
}

/// ★ PBFT §4.4: after its view change a replica accepts nothing of the old view.
#[test]
fn nothing_is_signed_below_the_new_view() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.propose(1, 1, A);
    bench.vote(2, at(1, 2, A));
    bench.leave_view();
    assert!(!bench.store(1, A).says(is_vote), "bodies that came too late");
    let verifier = Arc::clone(&bench.verifier);
    let stale = [
        pre_prepare(&verifier, 1, value(2, A)),
        sign_share(&verifier, 3, at(1, 2, A)),
        Message::Prepare(prepared(&verifier, at(1, 2, A))),
        commit_share(&verifier, 3, at(1, 2, A)),
    ];
    for message in stale {
        assert_eq!(bench.refusal(message), Rejected::Stale);
    }
}

/// §V-G: a proof decides in a view change too.
#[test]
fn a_proof_decides_in_a_view_change() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.leave_view();
    assert_eq!(bench.decide(1, A).decided(), [1]);
}

/// PBFT §4.4: `P` holds what prepared, in the highest view; §V-G: `lm` and `fm`.
#[test]
fn a_view_change_reports_the_evidence_of_its_path() {
    let report = |protocol| {
        let mut bench = Bench::new(protocol, 0);
        bench.accept(1, 1, A);
        bench.accept(1, 2, A);
        let certificate = prepared(&bench.verifier, at(1, 2, A));
        bench.tell(2, Message::Prepare(certificate));
        bench.leave_view().view_change().slots.clone()
    };
    let verifier = verifier(ProtocolKind::Pbft);
    let certificate = prepared(&verifier, at(1, 2, A));
    assert_eq!(report(ProtocolKind::Pbft), [prepared_report(certificate.clone(), A)]);
    let accepted = |slot| FastReport::Accepted(View(1), at(1, slot, A).digest);
    let slow = [SlowReport::Nothing, SlowReport::Prepared(certificate, value(2, A))];
    let reports: Vec<SlotReport> = (1..)
        .zip(slow)
        .map(|(slot, slow)| SlotReport { slot: Height(slot), slow, fast: accepted(slot) })
        .collect();
    assert_eq!(report(ProtocolKind::Sbft), reports);
}

/// §V-G: `lm = τ(τ(h))` if a full-commit-proof-slow was accepted; `fm = σ(h)` likewise.
#[test]
fn a_view_change_reports_proofs() {
    let mut bench = Bench::new(ProtocolKind::Sbft, 0);
    bench.decide(1, A);
    let certificate = certificate(&bench.verifier, Kind::Prepare, at(1, 2, A), &[0, 1, 2, 3]);
    bench.tell(2, Message::Proof(Proof { path: Path::Fast, certificate }));
    let outputs = bench.leave_view();
    let reports = &outputs.view_change().slots;
    assert!(matches!(reports[0].slow, SlowReport::Decided(_)), "{reports:?}");
    assert!(matches!(reports[1].fast, FastReport::Decided(_)), "{reports:?}");
}

/// PBFT §4.5.2: `f+1` view changes for later views, one of which is an honest member's.
#[test]
fn a_view_change_of_f_1_members_is_joined() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    assert!(!hear(&mut bench, 2, 2).says(is_view_change), "one may be faulty");
    assert_eq!(hear(&mut bench, 3, 2).view_change().view, View(2));
}

/// PBFT §4.5.2: of seven members three are needed, whoever else stays where it is.
#[test]
fn as_many_as_may_be_faulty_take_nobody_along() {
    let verifier = verifier_of(ProtocolKind::Sbft, 7, 0);
    let mut bench = Bench::started(&verifier, 0).0;
    for member in [2, 3] {
        assert!(!hear(&mut bench, member, 9).says(is_view_change), "{member}");
        assert!(bench.accept(1, u64::from(member), A).says(is_vote), "it is still in view 1");
    }
    let joined = hear(&mut bench, 4, 5);
    assert_eq!(joined.view_change().view, View(5), "the lowest of the three");
}

/// One faulty member that is far ahead takes nobody along; the others join the view that `f+1`
/// have reached.
#[test]
fn a_view_that_f_1_members_reached_is_joined() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    hear(&mut bench, 2, 90);
    assert_eq!(hear(&mut bench, 3, 4).view_change().view, View(4));
    let late = change(&bench.verifier, 3, 1, Vec::new());
    let late = bench.refusal(Message::ViewChange(Box::new(late)));
    assert_eq!(late, Rejected::Stale, "it is beyond that");
    assert_eq!(hear(&mut bench, 1, 5).view_change().view, View(5));
}

/// PBFT §4.5.2: a replica waits for `2f+1` view changes before it starts the timer of a new view,
/// which doubles. The first failure of one of `f` members is excused.
#[test]
fn timers_double_once_enough_members_are_there() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.feed(Input::Work(true));
    bench.leave_view();
    let alone = (0..40).all(|_| !bench.ring().says(is_view_change));
    assert!(alone, "nobody else wants view 2");
    for (view, seconds) in [(2, 1), (3, 2), (4, 4)] {
        hear(&mut bench, 2, view);
        hear(&mut bench, 3, view);
        let started = bench.now;
        let next = bench.ring_until(is_view_change);
        // Statuses ring in between; a view change that is sent again is of the same view.
        assert_eq!(next.view_change().view, View(view + 1));
        assert_eq!(bench.now.since(started), Duration::from_secs(seconds), "view {view}");
    }
}

/// §V-G: a publicly verifiable contradiction ends a view, whoever found it, and is passed on.
#[test]
fn an_equivocation_ends_the_view() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let [one, other] =
        [A, B].map(|stamp| signed_pre_prepare(&bench.verifier, 1, 1, value(1, stamp)));
    let same = Message::Equivocation(Box::new((one.clone(), one.clone())));
    let refused = Rejected::RuleBroken("an equivocation is two values for one slot and view");
    assert_eq!(bench.refusal(same), refused);
    let forged = signed_pre_prepare(&bench.verifier, 2, 1, value(1, B));
    let forged = Message::Equivocation(Box::new((one.clone(), forged)));
    assert_eq!(bench.refusal(forged), Rejected::BadSignature("an identity signature"));
    let both = Message::Equivocation(Box::new((one, other)));
    let outputs = bench.tell(2, both.clone());
    let is_evidence = |message: &Message| matches!(message, Message::Equivocation(_));
    assert_eq!(outputs.receivers(is_evidence), [Recipients::All]);
    assert_eq!(outputs.view_change().view, View(2));
    assert_eq!(bench.refusal(both), Rejected::Stale, "once");
}

fn is_suspicion(message: &Message) -> bool {
    matches!(message, Message::Suspicion(View(1)))
}

/// Member `member` of four, at a time at which a primary may be suspected.
fn late_in_view_1(protocol: ProtocolKind, member: u8) -> Bench {
    let mut bench = Bench::new(protocol, member);
    assert!(bench.feed(Input::PrimarySuspected).0.is_empty(), "the view began just now");
    bench.now = Time(1_000_000);
    bench
}

/// A primary that passes bodies over or is slow loses its view. It does not complain of itself, and
/// follows others who do.
#[test]
fn a_suspected_primary_loses_its_view() {
    let mut primary = late_in_view_1(ProtocolKind::Sbft, 1);
    assert!(primary.feed(Input::PrimarySuspected).0.is_empty());
    for member in [0, 1] {
        let mut bench = Bench::new(ProtocolKind::Sbft, member);
        assert!(bench.leave_view().says(is_view_change), "{member}");
    }
}

/// One member's suspicion ends no view, and it goes on in it meanwhile. What `f+1` others suspect
/// an honest one does: this one says so too.
#[test]
pub(super) fn what_f_1_members_suspect_all_do() {
    let mut bench = late_in_view_1(ProtocolKind::Pbft, 0);
    let own = bench.feed(Input::PrimarySuspected);
    assert_eq!(own.receivers(is_suspicion), [Recipients::All]);
    assert!(!own.says(is_view_change), "alone");
    assert!(bench.feed(Input::PrimarySuspected).0.is_empty(), "not with each decision");
    bench.now = bench.now + Duration::from_millis(125);
    assert!(bench.feed(Input::PrimarySuspected).says(is_suspicion), "it may have been lost");
    bench.decide(1, A);
    assert!(bench.propose(1, 2, A).wants_bodies());

    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    for _ in 0..3 {
        assert!(bench.tell(3, Message::Suspicion(View(1))).0.is_empty(), "one, again and again");
    }
    let heard = bench.tell(2, Message::Suspicion(View(1)));
    assert_eq!(heard.receivers(is_suspicion), [Recipients::All]);
}

/// A member leaves once `n−f` suspect, its own word among them: of those `f+1` are honest and told
/// all. `f` liars that tell one member alone do not make it leave, whether it suspects or not.
#[test]
pub(super) fn a_view_ends_when_as_many_suspect_as_are_honest() {
    let suspicion = || Message::Suspicion(View(1));
    for protocol in ProtocolKind::WINDOWED {
        let mut bench = late_in_view_1(protocol, 0);
        bench.feed(Input::PrimarySuspected);
        assert!(!bench.tell(3, suspicion()).says(is_view_change), "{protocol}: one other");
        assert!(bench.accept(1, 1, A).says(is_vote), "{protocol}: it goes on");
        assert_eq!(bench.tell(2, suspicion()).view_change().view, View(2), "{protocol}");
        let mut bench = Bench::new(protocol, 0);
        assert!(!bench.tell(3, suspicion()).says(is_view_change), "{protocol}");
        assert!(bench.tell(1, suspicion()).says(is_view_change), "{protocol}: with its primary");
    }
}

/// Who left the view says nothing more in it, and counts: a primary that drives one member out, and
/// is slow for the others, does not keep its view.
#[test]
fn who_left_the_view_counts() {
    for protocol in ProtocolKind::WINDOWED {
        for leaves_first in [true, false] {
            let mut bench = late_in_view_1(protocol, 0);
            let left = Message::ViewChange(Box::new(change(&bench.verifier, 2, 3, Vec::new())));
            let suspects = Message::Suspicion(View(1));
            let (first, second) = if leaves_first { (left, suspects) } else { (suspects, left) };
            let (from_first, from_second) = if leaves_first { (3, 2) } else { (2, 3) };
            assert!(!bench.tell(from_first, first).says(is_view_change), "{protocol}");
            let outputs = bench.tell(from_second, second);
            assert_eq!(
                outputs.receivers(is_suspicion),
                [Recipients::All],
                "{protocol}: one honest"
            );
            assert_eq!(outputs.view_change().view, View(2), "{protocol}: and this one");
        }
    }
}

/// What was long ago says nothing of the primary as it is now.
#[test]
fn suspicions_grow_old() {
    for (ms, ends) in [(2_000, true), (2_001, false)] {
        let mut bench = Bench::new(ProtocolKind::Pbft, 0);
        bench.tell(3, Message::Suspicion(View(1)));
        bench.now = bench.now + Duration::from_millis(ms);
        assert_eq!(bench.tell(2, Message::Suspicion(View(1))).says(is_view_change), ends, "{ms}");
    }
}

/// A view begins with nobody suspecting its primary.
#[test]
fn suspicions_are_of_one_view() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.tell(3, Message::Suspicion(View(1)));
    let changes = empty_changes(&bench.verifier, 2);
    bench.enter(2, &changes);
    assert_eq!(bench.machine.suspicions.len(), 0);
    bench.tell(1, Message::Suspicion(View(2)));
    assert_eq!(bench.machine.view, View(2));
}

/// §V-G: `x_j` for `ls < j ≤ ls + win`, of views before the new one.
#[test]
fn a_view_change_reports_each_slot_of_its_window_once() {
    let verifier = verifier(ProtocolKind::Sbft);
    let received = |slots: &[(u64, u64)]| {
        let report = |(slot, view): &(u64, u64)| SlotReport {
            slot: Height(*slot),
            slow: SlowReport::Nothing,
            fast: FastReport::Accepted(View(*view), hash(b"a")),
        };
        let change = change(&verifier, 2, 3, slots.iter().map(report).collect());
        receive(&verifier, Message::ViewChange(Box::new(change)))
    };
    let window = Rejected::RuleBroken("a view change is of the slots in its window, each once");
    assert_eq!(received(&[(1, 1), (1, 1)]), Err(window.clone()));
    assert_eq!(received(&[(2, 1), (1, 1)]), Err(window.clone()));
    assert_eq!(received(&[(0, 1)]), Err(window.clone()));
    assert_eq!(received(&[(WINDOW + 1, 1)]), Err(window));
    let earlier = Rejected::RuleBroken("a view change reports earlier views of its slots");
    assert_eq!(received(&[(1, 2)]), Err(earlier));
    assert!(received(&[(1, 1), (WINDOW, 1)]).is_ok());
}

/// ★ §V-G: every certificate in a view change is checked, and is of its slot and of an earlier
/// view.
#[test]
pub(super) fn evidence_is_checked() {
    let verifier = verifier(ProtocolKind::Sbft);
    // Each by a verifier of its own, which has checked nothing of this member yet.
    let check = |report: SlotReport| {
        receive(&super::verifier(ProtocolKind::Sbft), reported(&verifier, report))
    };
    let refusal = |report: SlotReport| check(report).expect_err("a rule is broken");
    let few = certificate(&verifier, Kind::Prepare, at(1, 1, A), &[0, 1]);
    assert_eq!(refusal(prepared_report(few, A)), Rejected::BelowThreshold);
    let commits = certificate(&verifier, Kind::Commit, at(1, 1, A), &[0, 1, 2]);
    let bad = Rejected::BadSignature("a slot's certificate");
    assert_eq!(refusal(prepared_report(commits, A)), bad);
    let rule = Rejected::RuleBroken("a view change reports earlier views of its slots");
    let later = prepared(&verifier, at(2, 1, A));
    assert_eq!(refusal(prepared_report(later, A)), rule);
    for moved in evidence_of_slot_1(&verifier) {
        assert!(check(moved.clone()).is_ok());
        assert_eq!(refusal(SlotReport { slot: Height(2), ..moved }), rule, "of another slot");
    }
}

fn reported(verifier: &Verifier, report: SlotReport) -> Message {
    Message::ViewChange(Box::new(change(verifier, 2, 3, vec![report])))
}

/// All that proves something of slot 1.
fn evidence_of_slot_1(verifier: &Verifier) -> [SlotReport; 3] {
    let prepared = prepared_report(prepared(verifier, at(1, 1, A)), A);
    let slow = SlowReport::Decided(proof(verifier, at(1, 1, A)).certificate);
    let all = certificate(verifier, Kind::Prepare, at(1, 1, A), &[0, 1, 2, 3]);
    let fast = FastReport::Decided(all);
    let nothing = SlotReport { slot: Height(1), slow: SlowReport::Nothing, ..prepared.clone() };
    [prepared, SlotReport { slow, ..nothing.clone() }, SlotReport { fast, ..nothing }]
}

/// Found from outside: a member that sends ever different view changes has few of them checked, and
/// whoever sends one again none. One that a new view names is checked all the same.
#[test]
fn few_view_changes_of_a_member_are_checked() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let verifier = Arc::clone(&bench.verifier);
    let differs = |slot: u64| {
        let report = prepared_report(prepared(&verifier, at(1, slot, A)), A);
        change(&verifier, 2, 3, vec![report])
    };
    let is_checked = |slot: u64| {
        let certificate = prepared(&verifier, at(1, slot, A));
        verifier.knows_slot(Kind::Prepare, Purpose::Vote, &certificate)
    };
    let send = |slot| receive(&verifier, Message::ViewChange(Box::new(differs(slot))));
    let sent: Vec<_> = (1..=100).map(send).collect();
    assert_eq!(sent.iter().filter(|sent| sent.is_ok()).count(), 8);
    assert!(sent[8..].iter().all(|sent| *sent == Err(Rejected::TooFarAhead)));
    assert_eq!((1..=100).filter(|slot| is_checked(*slot)).count(), 8);
    assert!(send(1).is_ok(), "known");
    let mut changes = empty_changes(&verifier, 2);
    changes[2] = differs(100);
    bench.tell(2, new_view(&verifier, 2, &changes));
    for change in changes {
        bench.tell(3, Message::ViewChange(Box::new(change)));
    }
    assert_eq!(bench.machine.status().view_changes, 1);
}

/// A view change into a view that is over is not looked at.
#[test]
fn view_changes_into_earlier_views_are_stale() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let verifier = Arc::clone(&bench.verifier);
    hear(&mut bench, 2, 5);
    hear(&mut bench, 3, 5);
    let late = change(&verifier, 4, 1, Vec::new());
    assert_eq!(bench.refusal(Message::ViewChange(Box::new(late))), Rejected::Stale);
}

/// ★ PBFT §4.4: a prepared certificate comes with its value, which nobody else need have kept.
#[test]
pub(super) fn a_prepared_report_has_its_value() {
    let bench = Bench::new(ProtocolKind::Pbft, 0);
    let report = prepared_report(prepared(&bench.verifier, at(1, 1, A)), B);
    let lie = change(&bench.verifier, 2, 3, vec![report]);
    let refused = Rejected::RuleBroken("a prepared certificate comes with its value");
    assert_eq!(bench.refusal(Message::ViewChange(Box::new(lie))), refused);
}

/// PBFT §4.4: a view change is signed by its sender.
#[test]
fn a_view_change_is_signed_by_its_member() {
    let bench = Bench::new(ProtocolKind::Pbft, 0);
    let mut forged = change(&bench.verifier, 2, 3, Vec::new());
    forged.signer = ReplicaId(2);
    let refused = Rejected::BadSignature("an identity signature");
    assert_eq!(bench.refusal(Message::ViewChange(Box::new(forged))), refused);
    let mut altered = change(&bench.verifier, 2, 3, Vec::new());
    altered.slots.push(prepared_report(prepared(&bench.verifier, at(1, 1, A)), A));
    assert_eq!(bench.refusal(Message::ViewChange(Box::new(altered))), refused);
}

/// PBFT §4.5.2: the timer of a view starts once enough members wait for it, whatever is decided
/// meanwhile; and while nothing is to be decided, none runs.
#[test]
fn a_decision_alone_starts_no_timer() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.feed(Input::Work(true));
    bench.leave_view();
    bench.decide(1, A);
    assert!((0..40).all(|_| !bench.ring().says(is_view_change)), "nobody else wants view 2");

    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.decide(1, A);
    let rings = (0..10).map_while(|_| bench.machine.next_timeout().map(|_| bench.ring()));
    assert!(rings.into_iter().all(|outputs| !outputs.says(is_view_change)));
}

/// Of different view changes of one member into one view the first counts.
#[test]
fn a_view_change_is_not_replaced_by_another_into_its_view() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 2);
    let verifier = Arc::clone(&bench.verifier);
    let first = change(&verifier, 2, 1, Vec::new());
    let report = prepared_report(prepared(&verifier, at(1, 1, A)), A);
    let second = change(&verifier, 2, 1, vec![report]);
    for change in [&first, &second] {
        bench.tell(1, Message::ViewChange(Box::new(change.clone())));
    }
    let outputs = hear(&mut bench, 3, 2);
    let names = outputs.messages().find_map(|(_, message)| match message {
        Message::NewView(new_view) => Some(new_view.changes.clone()),
        _ => None,
    });
    let names = names.expect("it leads the view");
    assert_eq!(names[0], (ReplicaId(1), first.digest()));
}
