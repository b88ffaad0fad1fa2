//! Retransmission, which paper 002 assumes (§II).

use super::harness::*;
use super::*;
use quorate_types::{BlockId, Recipients};

/// Statuses until nothing is awaited any more, and the time of the last.
fn statuses(bench: &mut Bench) -> (usize, Time) {
    let mut sent = 0;
    while bench.machine.next_timeout().is_some() && sent < 50 {
        sent += usize::from(bench.ring().says(is_status));
    }
    (sent, bench.now)
}

/// Nobody tells unasked what was decided while a member was down: it asks four times.
#[test]
fn a_member_asks_when_it_starts() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    assert_eq!(statuses(&mut bench), (4, Time(750_000)));
}

/// A member asks every quarter of a timeout while something is undecided.
#[test]
fn a_member_asks_while_it_waits() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    statuses(&mut bench);
    bench.accept(1, 1, A);
    let started = bench.now;
    assert_eq!(bench.ring_until(is_status).receivers(is_status), [Recipients::All]);
    assert_eq!(bench.now.since(started), Duration::from_millis(250));
    bench.decide(1, A);
    assert_eq!(bench.machine.next_timeout(), None, "all is decided");
}

/// A decided slot is shown by `f+1` members beside the asker, by others each turn; the rest of them
/// say how far they have come.
#[test]
fn a_decided_slot_is_shown_by_f_1_members() {
    let shows = |member, asker, turn| {
        let mut bench = Bench::new(ProtocolKind::Pbft, member);
        bench.decide(1, A);
        let outputs = bench.tell(asker, Message::Status(Status { turn, ..status(0) }));
        let asker = [Recipients::One(ReplicaId(u16::from(asker)))];
        let (shown, said) = (outputs.receivers(is_decided), outputs.receivers(is_status));
        assert!([&shown[..], &said[..]].contains(&&asker[..]) && shown != said, "{outputs:?}");
        usize::from(!shown.is_empty())
    };
    for asker in 0..4 {
        let others = || (0..4).filter(|member| *member != asker);
        for turn in 0..3 {
            let shown: usize = others().map(|member| shows(member, asker, turn)).sum();
            assert_eq!(shown, 2, "{asker} in turn {turn}");
        }
        for member in others() {
            assert_eq!((0..3).map(|turn| shows(member, asker, turn)).sum::<usize>(), 2);
        }
    }
}

/// Whose turn it is may have decided less, or lie: who hears of more asks until it has it.
#[test]
fn a_member_asks_until_it_is_shown_what_others_have() {
    let (mut asker, mut other) = (quiet(ProtocolKind::Pbft), Bench::new(ProtocolKind::Pbft, 1));
    other.decide(1, A);
    asker.machine.hear_of_later_view(asker.now);
    let mut asked = 0;
    while asker.machine.decided == Height(0) {
        let own = asker.ring_until(is_status);
        asked += 1;
        other.now = asker.now;
        let messages = own.messages().map(|(_, message)| message.clone());
        let answers: Vec<_> = messages.map(|message| other.tell(0, message)).collect();
        for (_, answer) in answers.iter().flat_map(Outputs::messages) {
            asker.tell(1, answer.clone());
        }
        assert!(asked <= 3, "of three turns two are its own");
    }
}

/// Slots of which the sender has the proof are left out.
#[test]
fn what_a_member_has_is_not_shown() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.decide(4, A);
    let has = Status { has: vec![Height(4)], ..status(0) };
    assert!(!bench.tell(2, Message::Status(has)).says(is_decided));
    bench.now = bench.now + Duration::from_secs(1);
    assert!(bench.tell(2, Message::Status(status(0))).says(is_decided));
}

/// A member that asks more often than it may gets nothing.
#[test]
fn answers_are_rationed() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.decide(4, A);
    assert!(bench.tell(2, Message::Status(status(0))).says(is_decided));
    assert!(!bench.tell(2, Message::Status(status(0))).says(is_decided));
    assert!(bench.tell(3, Message::Status(status(0))).says(is_decided), "another member");
    bench.now = bench.now + Duration::from_micros(31_249);
    assert!(!bench.tell(2, Message::Status(status(0))).says(is_decided));
    bench.now = bench.now + Duration::from_micros(1);
    assert!(bench.tell(2, Message::Status(status(0))).says(is_decided));
}

/// A value of which the sender knows the digest alone is sent to it.
#[test]
fn a_missing_value_is_sent() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.propose(1, 1, A);
    let lacks = vec![(Height(1), at(1, 1, A).digest), (Height(1), at(1, 1, B).digest)];
    let outputs = bench.tell(3, Message::Status(Status { lacks, ..status(0) }));
    let sent: Vec<_> =
        outputs.messages().filter(|(_, message)| matches!(message, Message::Payload(_))).collect();
    assert_eq!(sent, [(Recipients::One(ReplicaId(3)), &Message::Payload(value(1, A)))]);
}

/// Pre-prepares come from the primary, votes from everybody, to who collects them.
#[test]
fn votes_are_sent_again() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.accept(1, 1, A);
    let outputs = bench.tell(3, Message::Status(status(0)));
    assert_eq!(outputs.receivers(is_vote), [Recipients::One(ReplicaId(3))]);
    assert!(!outputs.says(is_commit) && !outputs.says(is_pre_prepare));
    bench.vote(2, at(1, 1, A));
    bench.now = bench.now + Duration::from_secs(1);
    let outputs = bench.tell(3, Message::Status(status(0)));
    assert!(outputs.says(is_vote) && outputs.says(is_commit));
    assert!(!outputs.says(is_prepare), "in PBFT each makes its own");
}

#[test]
fn pre_prepares_are_sent_again() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 1);
    let parent = bench.verifier.genesis();
    bench.feed(Input::Payload { view: View(1), parent, payload: value(1, A) });
    let outputs = bench.tell(3, Message::Status(status(0)));
    assert_eq!(outputs.receivers(is_pre_prepare), [Recipients::One(ReplicaId(3))]);
}

/// §V-E: votes go to the slot's collectors, certificates to everybody.
#[test]
fn votes_are_sent_again_to_collectors() {
    let slot = slots_of_collector(3).next().expect("one of them");
    let mut bench = Bench::new(ProtocolKind::LinearPbft, 0);
    bench.accept(1, slot, A);
    let certificate = prepared(&bench.verifier, at(1, slot, A));
    bench.tell(3, Message::Prepare(certificate));
    for (member, collects) in [(2, false), (3, true)] {
        let outputs = bench.tell(member, Message::Status(status(slot - 1)));
        assert_eq!(outputs.says(is_vote) && outputs.says(is_commit), collects);
        assert!(outputs.says(is_prepare));
    }
}

/// A member of an earlier view is shown how this one began, or the own view change into it.
#[test]
fn a_member_behind_is_shown_the_view() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.leave_view();
    assert!(bench.tell(2, Message::Status(status(0))).says(is_view_change));
    let changes = empty_changes(&bench.verifier, 2);
    bench.enter(2, &changes);
    bench.now = bench.now + Duration::from_secs(1);
    let outputs = bench.tell(2, Message::Status(status(0)));
    assert!(outputs.says(is_new_view) && !outputs.says(is_view_change));
    bench.now = bench.now + Duration::from_secs(1);
    let waiting = Status { view: View(2), in_view_change: true, ..status(0) };
    assert!(bench.tell(2, Message::Status(waiting)).says(is_new_view));
}

/// Slots that are on disk alone are fetched as history: the last decision leads there.
#[test]
fn the_last_decision_leads_to_history() {
    let verifier = verifier(ProtocolKind::Pbft);
    let machine = replica(&verifier, 0);
    let executed = decided(&verifier, 1, value(9, A));
    let mut bench = Bench { verifier, machine, now: Time(0) };
    bench.recover(None, Vec::new(), Some(executed.encode()), Vec::new());
    let outputs = bench.tell(2, Message::Status(status(0)));
    let sent: Vec<_> = outputs.messages().filter(|(_, message)| is_decided(message)).collect();
    let expected = Message::Decided(Box::new(executed));
    assert_eq!(sent, [(Recipients::One(ReplicaId(2)), &expected)]);
}

/// A later slot is decided and nobody shows the next one: history is asked for.
#[test]
fn a_gap_that_stays_is_fetched_as_history() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.decide(2, A);
    assert_eq!(bench.ring().behind(), Some(BlockId(at(1, 2, A).digest)));
}

/// The next slot's proof is here and its value is not; whoever had it keeps it on disk alone.
#[test]
fn a_value_that_nobody_shows_is_fetched_as_history() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let proof = proof(&bench.verifier, at(1, 1, A));
    bench.tell(2, Message::Proof(proof));
    bench.decide(2, A);
    assert_eq!(bench.ring().behind(), Some(BlockId(at(1, 2, A).digest)));
}

/// Statuses are numbered, so that each is answered by other members.
#[test]
fn each_status_has_its_turn() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let turn = |outputs: &Outputs| {
        outputs.messages().find_map(|(_, message)| match message {
            Message::Status(status) => Some(status.turn),
            _ => None,
        })
    };
    let turns: Vec<_> = (0..4).map(|_| turn(&bench.ring())).collect();
    assert_eq!(turns, [1, 2, 3, 4].map(Some));
}

/// A member that asked all that it asks at its start, and waits for nothing.
fn quiet(protocol: ProtocolKind) -> Bench {
    let mut bench = Bench::new(protocol, 0);
    statuses(&mut bench);
    bench
}

/// Time until the next status to everybody.
#[track_caller]
fn until_status(bench: &mut Bench) -> Duration {
    let started = bench.now;
    assert_eq!(bench.ring_until(is_status).receivers(is_status), [Recipients::All]);
    bench.now.since(started)
}

/// A quarter of a timeout, as between statuses.
const INTERVAL: Duration = Duration::from_millis(250);

/// Whatever is known and not delivered is waited for: a decision behind a gap, a proof or a
/// certificate without its value, a view that has not begun.
#[test]
fn a_member_asks_for_whatever_it_waits_for() {
    let waits: [fn(&mut Bench); 4] = [
        |bench| drop(bench.decide(2, A)),
        |bench| {
            let proof = proof(&bench.verifier, at(1, 1, A));
            bench.tell(2, Message::Proof(proof));
        },
        |bench| {
            let certificate = prepared(&bench.verifier, at(1, 1, A));
            bench.tell(2, Message::Prepare(certificate));
        },
        |bench| drop(bench.leave_view()),
    ];
    for waits in waits {
        let mut bench = quiet(ProtocolKind::LinearPbft);
        assert_eq!(bench.machine.next_timeout(), None);
        waits(&mut bench);
        assert_eq!([(); 3].map(|()| until_status(&mut bench)), [INTERVAL; 3]);
    }
}

/// Who learns that it is behind asks soon, before its next turn.
#[test]
fn a_member_that_is_behind_asks_soon() {
    let learns: [fn(&mut Bench); 3] = [
        |bench| {
            let ahead = checkpoint(&bench.verifier, CHECKPOINT_EVERY, &[1, 2, 3]);
            bench.tell(2, Message::Stable(ahead));
        },
        |bench| drop(bench.tell(2, Message::Status(status(5)))),
        |bench| {
            let changes = empty_changes(&bench.verifier, 2);
            bench.enter(2, &changes);
        },
    ];
    for learns in learns {
        let mut bench = quiet(ProtocolKind::Pbft);
        bench.feed(Input::Work(true));
        learns(&mut bench);
        assert_eq!(until_status(&mut bench), INTERVAL / 4);
        assert_eq!(until_status(&mut bench), INTERVAL);
    }
}

/// An idle member that hears of a later decision has missed all of it, and asks once.
#[test]
fn an_idle_member_that_is_behind_asks() {
    let mut bench = quiet(ProtocolKind::Pbft);
    bench.tell(2, Message::Status(status(5)));
    assert_eq!(until_status(&mut bench), INTERVAL / 4);
    assert_eq!(bench.machine.next_timeout(), None, "nothing else is known to be missing");
}

/// Who enters a view may be the last to, and the others through with all that it had to do.
#[test]
fn an_idle_member_that_enters_a_view_asks() {
    let mut bench = quiet(ProtocolKind::Pbft);
    let changes = empty_changes(&bench.verifier, 2);
    bench.enter(2, &changes);
    assert_eq!(until_status(&mut bench), INTERVAL / 4);
    assert_eq!(bench.machine.next_timeout(), None, "nothing is known to be missing");
}

/// A member that gets on does not ask.
#[test]
fn progress_puts_a_status_off() {
    let mut bench = quiet(ProtocolKind::Pbft);
    bench.feed(Input::Work(true));
    bench.now = bench.now + Duration::from_millis(200);
    bench.decide(1, A);
    assert_eq!(until_status(&mut bench), INTERVAL);
}

/// Votes are of one view: who is in another, or waits for it to begin, gets none.
#[test]
fn votes_are_sent_again_within_the_view() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.accept(1, 1, A);
    let later = Status { view: View(2), ..status(0) };
    assert!(!bench.tell(1, Message::Status(later)).says(is_vote));
    let waiting = Status { in_view_change: true, ..status(0) };
    assert!(!bench.tell(2, Message::Status(waiting)).says(is_vote));
    assert!(bench.tell(3, Message::Status(status(0))).says(is_vote));
}

/// A view is shown to those who are not in it yet, and to nobody else.
#[test]
fn a_member_of_the_view_is_not_shown_it() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let changes = empty_changes(&bench.verifier, 2);
    bench.enter(2, &changes);
    let shown = |bench: &mut Bench, member, view, in_view_change| {
        let status = Status { view: View(view), in_view_change, ..status(0) };
        bench.tell(member, Message::Status(status)).says(is_new_view)
    };
    assert!(!shown(&mut bench, 1, 2, false));
    assert!(!shown(&mut bench, 2, 3, true));
    assert!(shown(&mut bench, 3, 2, true));
}

/// Nor is anything that it signed before, whoever asks: the process that signs in its place may
/// have said other things.
#[test]
fn a_member_that_stops_signing_repeats_nothing() {
    let says_anything = |outputs: &Outputs| outputs.messages().count() > 0;
    let slot = slots_of_collector(3).next().expect("one of them");
    for protocol in [ProtocolKind::Pbft, ProtocolKind::LinearPbft, ProtocolKind::LinearPbftFast] {
        let mut bench = Bench::new(protocol, 0);
        bench.accept(1, slot, A);
        assert!(bench.tell(3, Message::Status(status(slot - 1))).says(is_vote), "{protocol}");
        bench.leave_view();
        bench.now = bench.now + Duration::from_secs(1);
        assert!(
            bench.tell(3, Message::Status(status(slot - 1))).says(is_view_change),
            "{protocol}"
        );
        bench.feed(Input::StopSigning);
        for from in [1, 2, 3] {
            bench.now = bench.now + Duration::from_secs(1);
            let outputs = bench.tell(from, Message::Status(status(slot - 1)));
            assert!(!says_anything(&outputs), "{protocol}: {outputs:?}");
        }
        bench.feed(Input::Work(true));
        let rings: Vec<_> =
            (0..20).map_while(|_| bench.machine.next_timeout().map(|_| bench.ring())).collect();
        let signed = |outputs: &Outputs| outputs.says(is_view_change) || outputs.says(is_vote);
        assert!(!rings.iter().any(signed), "{protocol}: {rings:?}");
    }
}

/// A member that hears of a view which it has not entered asks what was decided, a quarter of a
/// timeout later and once more; nothing else that it ignores has it ask.
#[test]
fn a_member_asks_when_others_are_in_a_later_view() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    statuses(&mut bench);
    bench.decide(1, A);
    bench.vote(3, at(1, 1, A));
    bench.propose(1, WINDOW + 2, A);
    assert_eq!(bench.machine.next_timeout(), None, "decided, and beyond the window");
    let heard = bench.now;
    bench.vote(3, at(3, 2, A));
    let every = Duration::from_millis(250);
    assert_eq!(bench.machine.next_timeout(), Some(heard + every));
    assert_eq!(statuses(&mut bench), (2, heard + 2 * every));
}
