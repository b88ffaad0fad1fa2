mod entering;

use super::{
    Bundling, CallResult, ClientConfig, Completed, LearnerAddress, Session, SessionEffect,
    SessionEvent, SessionSpec,
};
use crate::message::{Busy, NotAdmitted, QueryResponse};
use crate::testing::{
    certified, certify_executed, client, committee, content, identity, receive, weighted,
};
use crate::{CheckAnswer, Message, Verifier};
use bytes::Bytes;
use quorate_types::executed::ExecutionCertificate;
use quorate_types::request::Answer;
use quorate_types::service::Proven;
use quorate_types::{
    ClientId, Committee, Header, Height, Machine, Outcome, Peer, ReplicaId, Reply, Request,
    Results, Time, Verified,
};
use std::sync::Arc;
use std::time::Duration;

const DELAY: Duration = Duration::from_millis(2);
const RETRY: Duration = Duration::from_secs(1);
/// When an answer is late, as long as none was measured.
const LATE: Duration = Duration::from_millis(250);

fn session() -> Session {
    session_with(committee())
}

fn session_with(committee: Arc<Committee>) -> Session {
    Session::new(Arc::new(config(committee)), 0)
}

fn config(committee: Arc<Committee>) -> ClientConfig {
    let spec = SessionSpec { next_sequence: 5, ..SessionSpec::fresh(client(), ReplicaId(1)) };
    ClientConfig {
        bundling: Bundling::after(DELAY),
        retry_after: RETRY,
        check_answer: CheckAnswer::new(check),
        ..ClientConfig::new(committee, vec![spec])
    }
}

/// Check of a service that answers every query with itself.
fn check(query: &[u8], _: &Header, proven: &Proven) -> Result<(), String> {
    if proven.answer == query { Ok(()) } else { Err("a false answer".into()) }
}

fn submit(session: &mut Session, now: Time, tag: u64, bytes: usize) {
    session.handle(now, SessionEvent::Submit { tag, operation: Bytes::from(vec![1; bytes]) });
}

fn sent(session: &mut Session) -> Vec<(u16, Request)> {
    std::iter::from_fn(|| session.poll())
        .filter_map(|effect| match effect {
            SessionEffect::Send { to, request } => Some((to.0, request)),
            _ => None,
        })
        .collect()
}

fn completed(session: &mut Session) -> Vec<(u64, Completed)> {
    std::iter::from_fn(|| session.poll())
        .filter_map(|effect| match effect {
            SessionEffect::Return { tag, result: CallResult::Completed(completed) } => {
                Some((tag, completed))
            }
            _ => None,
        })
        .collect()
}

fn reply(from: u8, sequence: u64, height: u64, results: &[u8]) -> Message {
    reply_in(&committee(), from, sequence, height, results)
}

fn reply_in(
    committee: &Committee,
    from: u8,
    sequence: u64,
    height: u64,
    results: &[u8],
) -> Message {
    let results = results.iter().map(|r| Outcome::Applied(Bytes::copy_from_slice(&[*r])));
    let results = Results::new(results.collect());
    let client = ClientId(client().public());
    let answer = Answer { client, sequence, height: Height(height), results, index: None };
    let from_id = ReplicaId(u16::from(from));
    Message::Reply(Reply::sign(&identity(from), committee.scope(), from_id, answer))
}

/// A member's word that a request of one operation was refused when it was executed.
fn refusal_of(from: u8, sequence: u64, height: u64) -> Message {
    let (client, results) =
        (ClientId(client().public()), Results::new(vec![Outcome::Refused("no".into())]));
    let answer = Answer { client, sequence, height: Height(height), results, index: None };
    let (key, scope) = (identity(from), committee().scope());
    Message::Reply(Reply::sign(&key, scope, ReplicaId(u16::from(from)), answer))
}

fn answer(session: &mut Session, now: Time, from: u8, message: &Message) {
    let from = ReplicaId(u16::from(from));
    let message = receive(message, Peer::Replica(from)).expect("well-formed and signed");
    session.handle(now, SessionEvent::Message { from, message });
}

#[test]
fn the_first_operation_leaves_at_once_and_the_next_ones_share_a_request() {
    let mut session = session();
    submit(&mut session, Time(0), 1, 10);
    let first = sent(&mut session);
    assert_eq!((first.len(), first[0].0, first[0].1.sequence), (1, 1, 5));
    for tag in 2..5 {
        submit(&mut session, Time(10), tag, 10);
    }
    assert!(sent(&mut session).is_empty());
    assert_eq!(session.next_timeout(), Some(Time(10) + DELAY));
    session.handle_timeout(Time(10) + DELAY);
    let second = sent(&mut session);
    assert_eq!((second.len(), second[0].1.operations.len(), second[0].1.sequence), (1, 3, 6));
    assert_eq!(session.pending(), 4);
}

#[test]
fn operations_that_come_together_share_a_request_even_the_first() {
    let mut session = session();
    let operations = (0..5).map(|tag| (tag, Bytes::from_static(b"x"))).collect();
    session.handle(Time(0), SessionEvent::SubmitMany(operations));
    let counts: Vec<usize> = sent(&mut session).iter().map(|(_, r)| r.operations.len()).collect();
    assert_eq!(counts, [5]);
}

#[test]
fn a_bundle_keeps_both_limits_of_a_request() {
    let mut session = session();
    submit(&mut session, Time(0), 0, 1);
    for tag in 1..=300 {
        submit(&mut session, Time(0), tag, 1);
    }
    let counts: Vec<usize> = sent(&mut session).iter().map(|(_, r)| r.operations.len()).collect();
    assert_eq!(counts, [1, Request::OPERATIONS_MAX]);
    let mut session = self::session();
    submit(&mut session, Time(0), 0, 1);
    for tag in 1..=3 {
        submit(&mut session, Time(0), tag, Request::BYTES_MAX / 2);
    }
    let counts: Vec<usize> = sent(&mut session).iter().map(|(_, r)| r.operations.len()).collect();
    assert_eq!(counts, [1, 2]);
}

#[test]
fn a_bundle_keeps_a_lower_limit_too() {
    for (limit, expected) in [(0, vec![1; 11]), (1, vec![1; 11]), (4, vec![1, 4, 4])] {
        let bundling = Bundling::after(DELAY).at_most(limit);
        let config = ClientConfig { bundling, ..config(committee()) };
        let mut session = Session::new(Arc::new(config), 0);
        for tag in 0..11 {
            submit(&mut session, Time(0), tag, 1);
        }
        let counts: Vec<usize> =
            sent(&mut session).iter().map(|(_, r)| r.operations.len()).collect();
        assert_eq!(counts, expected, "at most {limit}");
    }
    assert_eq!(Bundling::after(DELAY).at_most(usize::MAX), Bundling::after(DELAY));
}

#[test]
fn the_window_is_64_requests_from_the_oldest_on() {
    let mut session = session();
    let mut count = 0;
    for tag in 0..200 {
        submit(&mut session, Time(0), tag, Request::BYTES_MAX);
        count += sent(&mut session).len() as u64;
    }
    assert_eq!(count, Session::WINDOW);
    // An answer to a later one opens nothing; one to the oldest does.
    for (sequence, expected) in [(6, 0), (5, 2)] {
        for from in 0..2 {
            answer(&mut session, Time(1), from, &reply(from, sequence, 1, &[9]));
        }
        assert_eq!(sent(&mut session).len(), expected, "after {sequence}");
    }
}

#[test]
fn too_much_is_refused() {
    let mut session = session();
    for tag in 0..(Session::QUEUE_MAX as u64 * 4) {
        submit(&mut session, Time(0), tag, 1_000);
    }
    submit(&mut session, Time(0), 77_777, Request::BYTES_MAX + 1);
    let refused = std::iter::from_fn(|| session.poll())
        .filter(|effect| {
            matches!(effect, SessionEffect::Return { result: CallResult::Overloaded { .. }, .. })
        })
        .count();
    assert!(refused > 1);
    assert!(session.pending() <= Session::QUEUE_MAX + 64 * 256);
}

/// ★ Whoever says the same weighs more than may be faulty: three light members may all lie.
fn check_equal_replies_are_weighed() -> Result<(), String> {
    for (order, enough) in [(&[4, 5, 6, 0][..], 4), (&[0, 1], 2), (&[4, 0, 5, 6], 4)] {
        let committee = weighted(&[4, 4, 4, 4, 1, 1, 1]);
        let mut session = session_with(Arc::clone(&committee));
        submit(&mut session, Time(0), 42, 10);
        for (count, from) in (1..).zip(order) {
            let message = reply_in(&committee, *from, 5, 3, &[7]);
            let from = ReplicaId(u16::from(*from));
            let verifier = Verifier::for_client(Arc::clone(&committee));
            let message = Verified::check(content(&message), Peer::Replica(from), &verifier)
                .map_err(|reason| reason.to_string())?;
            session.handle(Time(1), SessionEvent::Message { from, message });
            let done = session.pending() == 0;
            if done != (count >= enough) {
                return Err(format!("{order:?}: done is {done} after {count}"));
            }
        }
    }
    Ok(())
}

#[test]
fn equal_replies_are_weighed() {
    check_equal_replies_are_weighed().unwrap();
}

#[test]
fn counting_replies_by_heads_is_noticed() {
    use quorate_crypto::mutants::{Mutant, set};
    set(Some(Mutant::WeakCountsHeads));
    let noticed = check_equal_replies_are_weighed().is_err();
    set(None);
    assert!(noticed, "three light members were believed");
}

#[test]
fn a_request_is_done_at_enough_equal_replies() {
    let mut session = session();
    submit(&mut session, Time(0), 42, 10);
    answer(&mut session, Time(1), 0, &reply(0, 5, 3, &[7]));
    assert_eq!(completed(&mut session), []);
    answer(&mut session, Time(1), 2, &reply(2, 5, 3, &[7]));
    let outcome = Outcome::Applied(Bytes::from_static(&[7]));
    let done = Completed { outcome, height: Height(3), receipt: None };
    assert_eq!(completed(&mut session), [(42, done)]);
    assert_eq!(session.pending(), 0);
    answer(&mut session, Time(1), 3, &reply(3, 5, 3, &[7]));
    assert_eq!(completed(&mut session), [], "once");
}

/// A Byzantine replica answers otherwise, first and often: neither counts.
#[test]
fn wrong_and_repeated_replies_of_one_replica_count_for_nothing() {
    let mut session = session();
    submit(&mut session, Time(0), 42, 10);
    for _ in 0..3 {
        answer(&mut session, Time(1), 3, &reply(3, 5, 3, &[8]));
    }
    answer(&mut session, Time(1), 3, &reply(3, 5, 3, &[7]));
    for (from, height) in [(0, 3), (1, 4)] {
        answer(&mut session, Time(1), from, &reply(from, 5, height, &[7]));
    }
    assert_eq!(completed(&mut session), [], "heights differ, and 3 answered once already");
    answer(&mut session, Time(1), 2, &reply(2, 5, 3, &[7]));
    assert_eq!(completed(&mut session).len(), 1);
}

#[test]
fn replies_that_do_not_fit_are_dropped() {
    let mut session = session();
    submit(&mut session, Time(0), 42, 10);
    for from in 0..4 {
        answer(&mut session, Time(1), from, &reply(from, 6, 3, &[7]));
        answer(&mut session, Time(1), from, &reply(from, 5, 3, &[7, 7]));
    }
    assert_eq!(completed(&mut session), []);
    assert_eq!(session.pending(), 1);
    for from in 0..2 {
        answer(&mut session, Time(1), from, &reply(from, 5, 3, &[7]));
    }
    assert_eq!(completed(&mut session).len(), 1);
}

/// One member is asked, then as many as make an honest one certain, then all, and from then on one
/// after the other, with waits that double.
#[test]
fn a_late_answer_has_more_members_asked() {
    let mut session = session();
    submit(&mut session, Time(0), 42, 10);
    let (_, request) = sent(&mut session).remove(0);
    assert_eq!(session.next_timeout(), Some(Time(0) + LATE));
    session.handle_timeout(Time(0) + LATE);
    let again = sent(&mut session);
    assert_eq!(again.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [2], "two make a weak quorum");
    assert!(again.iter().all(|(_, r)| r.raw() == request.raw()), "byte for byte");
    assert_eq!(session.next_timeout(), Some(Time(0) + 2 * LATE));
    assert_eq!(ring(&mut session), [3, 0]);
    assert_eq!(session.next_timeout(), Some(Time(0) + RETRY));
    assert_eq!(ring(&mut session), [2]);
    assert_eq!(session.next_timeout(), Some(Time(0) + 3 * RETRY));
    submit(&mut session, Time(1_500_000), 43, 10);
    session.handle_timeout(Time(1_500_000) + DELAY);
    let new = sent(&mut session).into_iter().rfind(|(_, r)| r.sequence == 6);
    assert_eq!(new.map(|(to, _)| to), Some(2), "new ones go to the next");
}

/// Members weigh: asked are so many that an honest one is among them.
#[test]
fn a_weak_quorum_is_weighed() {
    let mut session = asked_once(weighted(&[4, 4, 4, 4, 1, 1, 1]), Time(0));
    assert_eq!(ring(&mut session), [2]);
    assert_eq!(ring(&mut session), [3, 4, 5, 6, 0]);
}

/// Member 1 is dead: the first request that is late shows it. What else it was asked goes to
/// another at once, new requests too, and it is asked again when it was passed over for a while.
#[test]
fn a_dead_member_costs_one_late_answer() {
    let mut session = session();
    (0..20).for_each(|tag| submit(&mut session, Time(0), tag, Request::BYTES_MAX));
    assert_eq!(sent(&mut session).len(), 20);
    let late = Time(0) + LATE;
    session.handle_timeout(late);
    let copies: Vec<u16> = sent(&mut session).into_iter().map(|(to, _)| to).collect();
    assert_eq!(copies, [2; 20], "one copy each");
    let now = late + Duration::from_millis(20);
    (0..4).filter(|from| *from != 1).for_each(|from| {
        answer(&mut session, now, from, &reply(from, 5, 1, &[7]));
    });
    assert_eq!(completed(&mut session).len(), 1);
    submit(&mut session, now, 90, Request::BYTES_MAX);
    assert_eq!(sent(&mut session).iter().map(|(to, _)| *to).collect::<Vec<_>>(), [2]);

    // It says something, and is the first to be asked from then on.
    answer(&mut session, now, 1, &reply(1, 5, 1, &[7]));
    submit(&mut session, now, 91, Request::BYTES_MAX);
    assert_eq!(sent(&mut session).iter().map(|(to, _)| *to).collect::<Vec<_>>(), [1]);
}

/// A session that has measured answers of 20 ms, one after the other, with member 1.
fn measured() -> (Session, Time) {
    let (mut session, mut now) = (session(), Time(0));
    for sequence in 5..25 {
        submit(&mut session, now, sequence, 10);
        now = now + Duration::from_millis(20);
        (0..3).for_each(|from| answer(&mut session, now, from, &reply(from, sequence, 1, &[7])));
    }
    let (copies, done) = drained(&mut session);
    assert_eq!((copies, done), (vec![1; 20], 20), "not one message more while all is well");
    (session, now)
}

/// Members that were sent something, and the number of results.
fn drained(session: &mut Session) -> (Vec<u16>, usize) {
    let (mut to, mut done) = (Vec::new(), 0);
    while let Some(effect) = session.poll() {
        match effect {
            SessionEffect::Send { to: member, .. } => to.push(member.0),
            SessionEffect::Return { .. } => done += 1,
            SessionEffect::Query { .. } => {}
        }
    }
    (to, done)
}

/// With one request at a time a dead member costs one measured wait, and then nothing for as long
/// as it is passed over.
#[test]
fn late_is_what_takes_twice_as_long_as_answers_do() {
    let (mut session, start) = measured();
    submit(&mut session, start, 25, 10);
    assert_eq!(sent(&mut session).len(), 1);
    assert_eq!(session.next_timeout(), Some(start + Duration::from_millis(40)));
    assert_eq!(ring(&mut session), [2]);
    let mut now = start + Duration::from_millis(60);
    for sequence in 25..60 {
        [0, 2]
            .into_iter()
            .for_each(|from| answer(&mut session, now, from, &reply(from, sequence, 1, &[7])));
        submit(&mut session, now, sequence + 1, 10);
        let (to, _) = drained(&mut session);
        assert_eq!(to, [2], "{sequence}");
        now = now + Duration::from_millis(20);
    }
    let later = now + Duration::from_secs(2);
    [0, 2]
        .into_iter()
        .for_each(|from| answer(&mut session, later, from, &reply(from, 60, 1, &[7])));
    submit(&mut session, later, 61, 10);
    assert_eq!(drained(&mut session), (vec![1], 1), "it may be back");
}

/// What a dead member was asked and is not late yet goes elsewhere once another request has shown
/// that it is dead.
#[test]
fn what_a_dead_member_was_asked_goes_elsewhere() {
    let mut session = asked_once(committee(), Time(0));
    let soon = Time(0) + LATE / 2;
    (0..3).for_each(|tag| submit(&mut session, soon, tag, Request::BYTES_MAX));
    assert_eq!(sent(&mut session).len(), 3);
    assert_eq!(ring(&mut session), [2]);
    let now = Time(0) + LATE;
    [0, 2].into_iter().for_each(|from| answer(&mut session, now, from, &reply(from, 5, 1, &[7])));
    assert_eq!(drained(&mut session), (vec![2; 3], 1));
    assert_eq!(session.next_timeout().map(|at| at > now), Some(true), "they are asked anew");
}

/// A member that is asked for the state and lets others answer is passed over, too.
#[test]
fn a_silent_member_is_passed_over_for_queries() {
    let mut session = session();
    let query = || SessionEvent::Query { tag: 5, query: Bytes::from_static(b"why") };
    session.handle(Time(0), query());
    assert_eq!(queried(&mut session), [(1, 0)]);
    session.handle_timeout(Time(0) + LATE);
    assert_eq!(queried(&mut session), [(2, 0)]);
    answer(&mut session, Time(0) + LATE, 2, &answered(0, b"why"));
    assert!(answers(&mut session)[0].1.is_ok());
    session.handle(Time(0) + LATE, query());
    assert_eq!(queried(&mut session), [(2, 1)], "new ones go to who answers");
}

/// However much is late, no more than a window of copies is under way.
#[test]
fn copies_are_bounded() {
    let mut session = session_with(weighted(&[1; 40]));
    (0..64).for_each(|tag| submit(&mut session, Time(0), tag, Request::BYTES_MAX));
    assert_eq!(sent(&mut session).len(), 64);
    let mut copies = 0;
    while let Some(now) = session.next_timeout().filter(|now| *now < Time(0) + RETRY) {
        session.handle_timeout(now);
        copies += sent(&mut session).len();
    }
    assert!(copies > 13 && copies <= 64, "{copies} copies of 64 requests");
}

/// Members are more than copies may be: as many are asked as fit, and then one after the other.
#[test]
fn in_a_large_committee_as_many_are_asked_as_copies_fit() {
    for (members, copies) in [(67, &[22, 42][..]), (100, &[33, 31])] {
        let mut session = asked_once(weighted(&vec![1; members]), Time(0));
        let mut asked = Vec::new();
        while session.next_timeout() < Some(Time(0) + RETRY) {
            asked.push(ring(&mut session).len());
        }
        assert_eq!(asked, copies, "of {members}");
        assert_eq!(ring(&mut session).len(), 1, "the next one in turn");
    }
}

/// Nobody answered for a while, and the request went to the next one: new ones go to the first
/// member again as soon as it says something, or when it was passed over for long enough.
#[test]
fn after_a_repeat_elsewhere_new_requests_go_home_again() {
    for home_speaks in [true, false] {
        let mut session = asked_once(committee(), Time(0));
        let now = Time(0) + RETRY;
        while session.next_timeout() <= Some(now) {
            ring(&mut session);
        }
        [2, 3]
            .into_iter()
            .for_each(|from| answer(&mut session, now, from, &reply(from, 5, 1, &[7])));
        assert_eq!(completed(&mut session).len(), 1);
        let mut asks = |at: Time| {
            submit(&mut session, at, 90, Request::BYTES_MAX);
            if home_speaks {
                answer(&mut session, at, 1, &busy(999));
            }
            drained(&mut session).0
        };
        assert_eq!(asks(now), [2], "it has said nothing yet");
        let next = if home_speaks { now } else { now + Duration::from_secs(2) };
        assert_eq!(asks(next), [1], "{home_speaks}");
    }
}

/// A first member without room is spared for a while, whatever else it says.
#[test]
fn who_had_no_room_is_spared_for_a_while() {
    let mut session = asked_once(committee(), Time(0));
    answer(&mut session, Time(0) + Duration::from_millis(1), 1, &busy(5));
    let left = session.next_timeout().expect("it asks elsewhere");
    assert_eq!(ring(&mut session), [2]);
    (1..3).for_each(|from| answer(&mut session, left, from, &reply(from, 5, 1, &[7])));
    assert_eq!(completed(&mut session).len(), 1);
    for (later_ms, to) in [(0, 2), (9_999, 2), (10_000, 1)] {
        submit(&mut session, left + Duration::from_millis(later_ms), 90, Request::BYTES_MAX);
        assert_eq!(drained(&mut session).0, [to], "{later_ms} ms later");
    }
}

/// A committee that complains of too much gets no copies.
#[test]
fn a_busy_committee_gets_no_copies() {
    let mut session = session();
    (0..3).for_each(|tag| submit(&mut session, Time(0), tag, Request::BYTES_MAX));
    assert_eq!(sent(&mut session).len(), 3);
    answer(&mut session, Time(1), 1, &busy(5));
    while let Some(now) = session.next_timeout().filter(|now| *now < Time(0) + RETRY) {
        session.handle_timeout(now);
        assert!(sent(&mut session).iter().all(|(_, request)| request.sequence == 5));
    }
}

/// Where every request goes to all members there is nobody else to ask.
#[test]
fn what_goes_to_all_is_not_widened() {
    let config = ClientConfig { send_to_all: true, ..config(committee()) };
    let mut session = Session::new(Arc::new(config), 0);
    submit(&mut session, Time(0), 1, 10);
    assert_eq!(session.next_timeout(), Some(Time(0) + RETRY));
}

#[test]
fn a_busy_replica_slows_the_session_down_and_the_next_one_is_asked_after_a_pause() {
    let mut session = session();
    for tag in 0..64 {
        submit(&mut session, Time(0), tag, Request::BYTES_MAX);
    }
    let all = sent(&mut session);
    assert_eq!(all.len(), 64);
    let busy = |sequence| Message::Busy(Busy { sequence, reason: "full".into() });
    answer(&mut session, Time(1), 1, &busy(5));
    assert_eq!((session.pending(), sent(&mut session).len()), (64, 0));
    let pause = Duration::from_millis(25);
    assert_eq!(session.next_timeout(), Some(Time(1) + pause));
    session.handle_timeout(Time(1) + pause);
    let again = sent(&mut session);
    assert_eq!(again.iter().map(|(to, r)| (*to, r.sequence)).collect::<Vec<_>>(), [(2, 5)]);
    // Half of the window from now on: two answers open nothing.
    for from in 0..2 {
        answer(&mut session, Time(50_000), from, &reply(from, 5, 1, &[9]));
    }
    submit(&mut session, Time(50_000), 99, Request::BYTES_MAX);
    assert_eq!(sent(&mut session).len(), 0, "63 are under way, and 32 would be enough");
}

fn disk_full(sequence: u64) -> Message {
    Message::Busy(Busy::disk_nearly_full(sequence))
}

/// Callers that were told that the disks are full, with what they were told.
fn told_of_full_disks(session: &mut Session) -> Vec<(u64, String)> {
    let told = |effect| match effect {
        SessionEffect::Return { tag, result: CallResult::DiskFull { reason } } => {
            Some((tag, reason.to_string()))
        }
        _ => None,
    };
    std::iter::from_fn(|| session.poll()).filter_map(told).collect()
}

/// A disk that is full says nothing of the others' load.
#[test]
fn a_full_disk_sends_the_session_to_the_next_member_at_once_and_at_full_speed() {
    let mut session = session();
    for tag in 0..64 {
        submit(&mut session, Time(0), tag, Request::BYTES_MAX);
    }
    assert_eq!(sent(&mut session).len(), 64);
    answer(&mut session, Time(1), 1, &disk_full(5));
    assert_eq!(session.next_timeout(), Some(Time(1)));
    assert_eq!(ring(&mut session), [2]);
    assert!(told_of_full_disks(&mut session).is_empty(), "others were not asked");
    for from in [2, 3] {
        answer(&mut session, Time(2), from, &reply(from, 5, 1, &[9]));
    }
    submit(&mut session, Time(3), 99, Request::BYTES_MAX);
    let next = sent(&mut session);
    assert_eq!(next.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [2], "the window is whole");
}

/// Callers are told once every member was asked; the request goes on, for members answer no number
/// that is too far beyond one that was never executed.
#[test]
fn when_all_disks_are_full_callers_are_told_and_the_request_goes_on() {
    let mut session = asked_once(committee(), Time(0));
    for (from, next) in [(1, 2), (2, 3), (3, 0)] {
        answer(&mut session, Time(1), from, &disk_full(5));
        assert!(told_of_full_disks(&mut session).is_empty(), "not by {from} alone");
        assert_eq!(ring(&mut session), [next]);
    }
    answer(&mut session, Time(1), 0, &disk_full(5));
    let told = told_of_full_disks(&mut session);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].1, Busy::DISK_NEARLY_FULL);
    assert_eq!(session.pending(), 0, "nobody waits");
    let pause = Duration::from_millis(8 * 25);
    assert_eq!(session.next_timeout(), Some(Time(1) + pause), "after a pause that doubles");
    assert_eq!(ring(&mut session).len(), 1, "it is sent again");
    for from in [2, 3] {
        answer(&mut session, Time(9_000_000), from, &reply(from, 5, 1, &[9]));
    }
    assert_eq!(session.next_timeout(), None, "it is done, and nobody is told twice");
}

/// An old session has heard nobody but those that it asks: members that it never asked may have
/// room, and are asked before anything is said of all.
#[test]
fn nothing_is_said_of_all_disks_before_all_were_asked() {
    let now = Time(0) + 10 * RETRY;
    let mut session = asked_once(committee(), now);
    for (from, next) in [(1, 2), (2, 3), (3, 0)] {
        answer(&mut session, now, from, &disk_full(5));
        assert!(told_of_full_disks(&mut session).is_empty(), "not by {from}");
        assert_eq!(ring(&mut session), [next]);
    }
}

/// Members 1 and 2 refuse whatever comes, at once, and nobody else has been heard of for long:
/// members that lost their logs do, and liars may. Seed 33 of the swarm asked one such member for
/// ever.
#[test]
fn who_refuses_everything_does_not_keep_a_request() {
    let mut session = session_with(weighted(&[1; 7]));
    let (mut now, mut asked) = (Time(0) + 10 * RETRY, Vec::new());
    submit(&mut session, now, 1, 10);
    while asked.len() < 12 {
        for (to, request) in sent(&mut session) {
            asked.push(to);
            if [1, 2].contains(&to) {
                let busy = Busy { sequence: request.sequence, reason: "no".to_owned() };
                let from = u8::try_from(to).expect("few");
                answer(&mut session, now + DELAY, from, &Message::Busy(busy));
            }
        }
        now = session.next_timeout().expect("it is not done");
        session.handle_timeout(now);
    }
    let others = asked.iter().filter(|to| ![1, 2].contains(*to)).count();
    assert!(others >= 4, "{asked:?}");
    assert!(asked.windows(2).all(|pair| pair[0] != pair[1]), "{asked:?}");
}

#[test]
fn a_refusal_of_somebody_who_was_not_asked_means_nothing() {
    let mut session = session();
    submit(&mut session, Time(0), 42, 10);
    sent(&mut session);
    answer(&mut session, Time(1), 3, &Message::Busy(Busy { sequence: 5, reason: "full".into() }));
    assert_eq!(session.next_timeout(), Some(Time(0) + LATE));
}

/// An operation that was turned away comes with the reason.
#[test]
fn an_operation_that_is_not_taken_says_what_the_busy_replica_said() {
    let mut session = session();
    submit(&mut session, Time(0), 0, 10);
    answer(&mut session, Time(1), 1, &Message::Busy(Busy { sequence: 5, reason: "full".into() }));
    submit(&mut session, Time(2), 1, Request::BYTES_MAX + 1);
    let reason = std::iter::from_fn(|| session.poll()).find_map(|effect| match effect {
        SessionEffect::Return { tag: 1, result: CallResult::Overloaded { reason } } => Some(reason),
        _ => None,
    });
    assert_eq!(reason.flatten().as_deref(), Some("full"));
}

/// Seed 267 of the simulator of its time: three of four replies were lost, and the one replica that
/// had answered was asked again and again.
#[test]
fn after_one_answer_to_a_repeat_the_others_are_asked_for_theirs() {
    let mut session = session();
    submit(&mut session, Time(0), 42, 10);
    sent(&mut session);
    assert_eq!((ring(&mut session), ring(&mut session)), (vec![2], vec![3, 0]));
    let now = Time(0) + RETRY;
    assert_eq!(ring(&mut session), [2]);
    answer(&mut session, now, 2, &reply(2, 5, 1, &[9]));
    assert_eq!(session.next_timeout(), Some(now), "it was executed: no need to wait");
    session.handle_timeout(now);
    assert_eq!(sent(&mut session).iter().map(|(to, _)| *to).collect::<Vec<_>>(), [0, 1, 3]);
    answer(&mut session, now, 3, &reply(3, 5, 1, &[9]));
    assert_eq!(completed(&mut session).len(), 1);
}

fn one_result() -> Results {
    Results::new(vec![Outcome::Applied(Bytes::from_static(b"done"))])
}

/// One certified answer completes a request, and is kept for whoever asks later.
#[test]
fn one_certified_reply_is_enough() {
    let mut session = session();
    submit(&mut session, Time(0), 42, 10);
    let (_, request) = sent(&mut session).pop().expect("sent at once");
    let reply = Box::new(certified(&request, one_result()));
    answer(&mut session, Time(1), 3, &Message::CertifiedReply(reply));
    let [(42, done)] = &completed(&mut session)[..] else { panic!("not completed") };
    assert_eq!(done.height, Height(3));
    let (receipt, place) = done.receipt.as_ref().expect("it proves itself");
    assert_eq!(*place, 0);
    assert_eq!(receipt.verify(&committee()), Ok(request));
    assert_eq!(session.pending(), 0);
}

/// ★ What another request came to, under the same number, is not what this one came to.
fn a_reply_to_another_request_is_not_taken() {
    let mut session = session();
    submit(&mut session, Time(0), 42, 10);
    let (_, request) = sent(&mut session).pop().expect("sent at once");
    let network = committee().network();
    let other =
        Request::sign(&client(), network, request.sequence, &[Bytes::from_static(b"other")]);
    let reply = Box::new(certified(&other.expect("within limits"), one_result()));
    answer(&mut session, Time(1), 3, &Message::CertifiedReply(reply));
    assert!(completed(&mut session).is_empty());
}

#[test]
fn replies_to_other_requests_are_not_taken() {
    a_reply_to_another_request_is_not_taken();
}

#[test]
fn another_requests_reply_is_missed() {
    use quorate_crypto::mutants::{Mutant, assert_noticed};
    assert_noticed(Mutant::OthersReply, a_reply_to_another_request_is_not_taken);
}

type QueryResult = Result<(Proven, ExecutionCertificate), String>;

fn queried(session: &mut Session) -> Vec<(u16, u64)> {
    std::iter::from_fn(|| session.poll())
        .filter_map(|effect| match effect {
            SessionEffect::Query { to, query } => Some((to.0, query.id)),
            _ => None,
        })
        .collect()
}

fn answers(session: &mut Session) -> Vec<(u64, QueryResult)> {
    std::iter::from_fn(|| session.poll())
        .filter_map(|effect| match effect {
            SessionEffect::Return { tag, result: CallResult::Answered(answer) } => {
                Some((tag, answer))
            }
            _ => None,
        })
        .collect()
}

fn answered(id: u64, answer: &'static [u8]) -> Message {
    let proven = Proven { answer: Bytes::from_static(answer), proof: Bytes::new() };
    let certificate = certify_executed(Header { height: Height(9), ..Header::default() });
    Message::QueryResponse(Box::new(QueryResponse { id, result: Ok((proven, certificate)) }))
}

/// A query goes to one member after the other: past one that is silent, one that refuses and one
/// whose answer is false.
#[test]
fn a_question_is_asked_until_an_answer_passes() {
    let mut session = session();
    session.handle(Time(0), SessionEvent::Query { tag: 5, query: Bytes::from_static(b"why") });
    assert_eq!(queried(&mut session), [(1, 0)]);
    let later = Time(0) + LATE;
    assert_eq!(session.next_timeout(), Some(later));
    session.handle_timeout(later);
    assert_eq!(queried(&mut session), [(2, 0)]);
    let refused = QueryResponse { id: 0, result: Err("busy".into()) };
    answer(&mut session, later, 2, &Message::QueryResponse(Box::new(refused)));
    assert_eq!(queried(&mut session), [(3, 0)]);
    answer(&mut session, later, 3, &answered(0, b"because"));
    assert_eq!(queried(&mut session), [(0, 0)], "the check says no");
    answer(&mut session, later, 2, &answered(0, b"why"));
    assert!(answers(&mut session).is_empty(), "it is not its turn");
    answer(&mut session, later, 0, &answered(0, b"why"));
    let [(5, Ok((proven, certificate)))] = &answers(&mut session)[..] else {
        panic!("not answered")
    };
    assert_eq!((&proven.answer[..], certificate.header.height), (&b"why"[..], Height(9)));
    assert_eq!(session.next_timeout(), None);
}

/// A learner is asked before members. It answers queries, and nothing else that it says counts.
#[test]
fn a_learner_is_asked_first_and_believed_nothing_else() {
    let identity = client().public();
    let learner = LearnerAddress { identity, address: "localhost:7008".to_owned() };
    let config = ClientConfig { learner: Some(learner), ..config(committee()) };
    let mut session = Session::new(Arc::new(config), 0);
    let query = Bytes::from_static(b"why");
    session.handle(Time(0), SessionEvent::Query { tag: 3, query });
    assert_eq!(queried(&mut session), [(4, 0)]);
    answer(&mut session, Time(1), 4, &answered(0, b"a lie"));
    assert_eq!(queried(&mut session), [(1, 0)], "then a member");
    answer(&mut session, Time(2), 1, &answered(0, b"why"));
    assert!(answers(&mut session)[0].1.is_ok());

    // One that is silent is passed over for a while.
    session.handle(Time(2), SessionEvent::Query { tag: 5, query: Bytes::from_static(b"why") });
    assert_eq!(queried(&mut session), [(4, 1)]);
    let late = session.next_timeout().expect("it is not answered");
    session.handle_timeout(late);
    assert_eq!(queried(&mut session), [(1, 1)], "the member that requests go to");
    session.handle(late, SessionEvent::Query { tag: 6, query: Bytes::from_static(b"why") });
    assert_eq!(queried(&mut session), [(1, 2)]);
    for id in [1, 2] {
        answer(&mut session, late, 1, &answered(id, b"why"));
    }
    assert_eq!(answers(&mut session).len(), 2);

    submit(&mut session, Time(3), 4, 10);
    let (to, request) = sent(&mut session).remove(0);
    assert!(to < 4, "requests go to members");
    let retry_at = session.next_timeout();
    let busy = Busy { sequence: request.sequence, reason: "no".into() };
    answer(&mut session, Time(4), 4, &Message::Busy(busy));
    assert_eq!(session.next_timeout(), retry_at, "as if nothing had come");
}

/// A query that everybody was asked twice comes back with what the last member said.
#[test]
fn a_question_that_nobody_answers_comes_back() {
    let mut session = session();
    session.handle(Time(0), SessionEvent::Query { tag: 5, query: Bytes::from_static(b"why") });
    for attempt in 0..8 {
        let [(to, 0)] = queried(&mut session)[..] else { panic!("attempt {attempt}") };
        let refused = QueryResponse { id: 0, result: Err(format!("no {attempt}")) };
        let from = u8::try_from(to).expect("of four");
        answer(&mut session, Time(0), from, &Message::QueryResponse(Box::new(refused)));
    }
    assert_eq!(answers(&mut session), [(5, Err("no 7".into()))]);
}

/// A session whose first request, of one operation, goes to member 1.
fn asked_once(committee: Arc<Committee>, now: Time) -> Session {
    let mut session = session_with(committee);
    submit(&mut session, now, 42, 10);
    assert_eq!(sent(&mut session).len(), 1);
    session
}

/// The members that get something when the session's timer rings.
fn ring(session: &mut Session) -> Vec<u16> {
    let now = session.next_timeout().expect("it is not done");
    session.handle_timeout(now);
    sent(session).into_iter().map(|(to, _)| to).collect()
}

fn busy(sequence: u64) -> Message {
    Message::Busy(Busy { sequence, reason: "full".into() })
}

/// Only a repeat that somebody answers has the others asked at once, and only once.
#[test]
fn an_answer_to_the_first_attempt_hurries_nothing() {
    let mut session = asked_once(committee(), Time(0));
    answer(&mut session, Time(9), 0, &reply(0, 5, 1, &[7]));
    assert_eq!(session.next_timeout(), Some(Time(0) + LATE));
    assert_eq!((ring(&mut session), ring(&mut session)), (vec![2], vec![3]));
    assert_eq!(session.next_timeout(), Some(Time(0) + RETRY));
    assert_eq!(ring(&mut session), [1, 2, 3]);
    let (now, next) = (Time(0) + RETRY, session.next_timeout());
    assert_eq!(next, Some(now + 2 * RETRY), "twice as long");
    answer(&mut session, now, 1, &reply(1, 5, 1, &[8]));
    assert_eq!(session.next_timeout(), next, "the second answer is no news");
}

/// Each refusal of a request doubles the pause before the next attempt, and not the wait for that
/// one's answer.
#[test]
fn pauses_grow_with_refusals_and_waits_with_silence() {
    let mut session = asked_once(committee(), Time(0));
    let mut now = Time(7);
    for (from, pause_ms, next) in [(1, 25, 2), (2, 50, 3), (3, 100, 0)] {
        answer(&mut session, now, from, &busy(5));
        now = now + Duration::from_millis(pause_ms);
        assert_eq!(session.next_timeout(), Some(now));
        assert_eq!(ring(&mut session), [next]);
        assert_eq!(session.next_timeout(), Some(now + RETRY));
    }
    for waits in [2, 4, 4] {
        now = session.next_timeout().expect("it is not done");
        assert_eq!(ring(&mut session).len(), 1);
        assert_eq!(session.next_timeout(), Some(now + waits * RETRY));
    }
}

/// Members 0 and 1 say something all the time, and nothing of this request, which all have got:
/// once as many were asked again as there are, the silent ones are asked in their turns.
#[test]
fn as_many_attempts_as_members_go_to_lively_ones() {
    let mut session = asked_once(committee(), Time(0) + 10 * RETRY);
    let mut asked = Vec::new();
    for _ in 0..10 {
        let now = session.next_timeout().expect("it is not done");
        (0..2).for_each(|from| answer(&mut session, now, from, &busy(999)));
        asked.extend(ring(&mut session));
    }
    assert_eq!(asked, [2, 3, 0, 0, 1, 0, 1, 2, 3, 0, 1]);
}

/// ★ Whatever a learner passes on of what members said: only its answers to queries count.
#[test]
fn a_learner_completes_no_request() {
    let mut session = session();
    submit(&mut session, Time(0), 42, 10);
    let (_, request) = sent(&mut session).pop().expect("sent at once");
    let proven = Message::CertifiedReply(Box::new(certified(&request, one_result())));
    for (message, from) in [(&proven, 1), (&reply(1, 5, 1, &[7]), 1)] {
        let message = receive(message, Peer::Replica(ReplicaId(from))).expect("a good message");
        session.handle(Time(1), SessionEvent::Message { from: ReplicaId(4), message });
        assert_eq!((completed(&mut session), session.pending()), (vec![], 1));
    }
    answer(&mut session, Time(2), 1, &proven);
    assert_eq!(completed(&mut session).len(), 1, "from a member it is enough");
}

#[test]
fn without_a_check_no_answer_passes() {
    let config = ClientConfig::new(committee(), vec![]);
    let proven = Proven { answer: b"why".to_vec().into(), proof: vec![].into() };
    assert!(config.check_answer.check(b"why", &Header::default(), &proven).is_err());
}

#[test]
fn a_learners_address_is_written_as_it_is_read() {
    let identity = client().public();
    let learner = LearnerAddress { identity, address: "[::1]:7008".to_owned() };
    assert_eq!(learner.to_string().parse(), Ok(learner));
    for wrong in [String::new(), identity.to_string(), format!("{identity}@nowhere")] {
        assert!(wrong.parse::<LearnerAddress>().is_err(), "{wrong}");
    }
}

fn not_admitted(request: &Request) -> Message {
    let (sequence, reason) = (request.sequence, "no such thing".to_owned());
    Message::NotAdmitted(NotAdmitted { sequence, request: request.digest(), reason })
}

/// One member may lie; two of four have an honest one among them.
#[test]
fn what_no_honest_replica_admits_is_over_and_its_number_is_used_again() {
    let mut session = session();
    submit(&mut session, Time(0), 1, 10);
    submit(&mut session, Time(0), 2, Request::BYTES_MAX);
    let both = sent(&mut session);
    let [(_, refused), _] = &both[..] else { panic!("two requests") };
    answer(&mut session, Time(1), 1, &not_admitted(refused));
    assert_eq!(session.poll().map(|_| ()), None, "one says so");
    assert_eq!(session.next_timeout(), Some(Time(1)), "another is asked at once");
    session.handle_timeout(Time(1));
    assert_eq!(
        sent(&mut session).iter().map(|(to, r)| (*to, r.sequence)).collect::<Vec<_>>(),
        [(2, 5)]
    );
    answer(&mut session, Time(2), 1, &not_admitted(refused));
    assert!(session.poll().is_none(), "the same one again");
    answer(&mut session, Time(2), 2, &not_admitted(refused));
    let Some(SessionEffect::Return { tag, result }) = session.poll() else { panic!("a result") };
    assert_eq!((tag, result), (1, CallResult::NotAdmitted { reason: "no such thing".into() }));
    submit(&mut session, Time(3), 3, Request::BYTES_MAX);
    let numbers: Vec<u64> = sent(&mut session).iter().map(|(_, r)| r.sequence).collect();
    assert_eq!(numbers, [5], "nobody waits for it");
    submit(&mut session, Time(3), 4, Request::BYTES_MAX);
    let numbers: Vec<u64> = sent(&mut session).iter().map(|(_, r)| r.sequence).collect();
    assert_eq!(numbers, [7]);
    (0..4).for_each(|late| answer(&mut session, Time(4), late, &not_admitted(refused)));
    assert!(session.poll().is_none(), "of the request that had the number before");
}

/// A member that lies had the refused request ordered: its number is spent, and what came of it is
/// no answer to the one that has the number now.
#[test]
fn what_a_spent_number_answers_is_sent_under_another() {
    for results in [&[][..], &[7, 8]] {
        let mut session = session();
        submit(&mut session, Time(0), 1, 10);
        let refused = sent(&mut session).remove(0).1;
        (1..3).for_each(|from| answer(&mut session, Time(1), from, &not_admitted(&refused)));
        assert!(matches!(session.poll(), Some(SessionEffect::Return { tag: 1, .. })));
        submit(&mut session, Time(2), 2, 10);
        let next = sent(&mut session).remove(0).1;
        assert_eq!(next.sequence, refused.sequence);
        for from in 1..3 {
            let told = match results {
                [] => refusal_of(from, refused.sequence, 9),
                _ => reply(from, refused.sequence, 9, results),
            };
            answer(&mut session, Time(3), from, &told);
        }
        let again = sent(&mut session).remove(0).1;
        assert_ne!(again.sequence, next.sequence);
        assert_eq!(again.operations, next.operations);
        (1..3).for_each(|from| {
            answer(&mut session, Time(4), from, &reply(from, again.sequence, 10, &[3]));
        });
        let Some(SessionEffect::Return { tag: 2, result }) = session.poll() else {
            panic!("a result")
        };
        assert!(matches!(result, CallResult::Completed(_)), "{result:?}");
    }
}

/// Where one request was answered and another was refused: the number that is used again for a
/// third is answered by what it came to itself, and by nothing else.
fn reused() -> (Session, Request, Request) {
    let mut session = session();
    submit(&mut session, Time(0), 1, 10);
    let refused = sent(&mut session).remove(0).1;
    (1..3).for_each(|from| answer(&mut session, Time(1), from, &not_admitted(&refused)));
    assert!(matches!(session.poll(), Some(SessionEffect::Return { tag: 1, .. })));
    submit(&mut session, Time(2), 2, 20);
    let next = sent(&mut session).remove(0).1;
    assert_eq!(next.sequence, refused.sequence);
    (session, refused, next)
}

/// ★ What took effect under a number that was used again is not sent a second time.
#[test]
fn a_request_with_a_used_number_that_took_effect_is_done() {
    let (mut session, _, next) = reused();
    (1..3).for_each(|from| {
        answer(&mut session, Time(3), from, &reply(from, next.sequence, 9, &[7]));
    });
    assert_eq!(drained(&mut session), (vec![], 1), "done, and nothing is sent");
    assert_eq!(session.pending(), 0);
}

/// A refusal by the state machine is a result, and no reason to send the request again.
#[test]
fn a_request_that_was_refused_as_it_was_executed_is_done() {
    let mut session = asked_once(committee(), Time(0));
    (1..3).for_each(|from| answer(&mut session, Time(1), from, &refusal_of(from, 5, 9)));
    assert_eq!(drained(&mut session), (vec![], 1), "done, and nothing is sent");
}

/// A certificate over what another request with the number came to moves a request to the next
/// number if the number was used before; a liar's must not move one whose number was not.
#[test]
fn a_certified_reply_to_another_request_moves_only_who_has_a_used_number() {
    let (mut session, refused, next) = reused();
    let others = Message::CertifiedReply(Box::new(certified(&refused, one_result())));
    answer(&mut session, Time(3), 1, &others);
    let again = sent(&mut session).remove(0).1;
    assert_ne!(again.sequence, next.sequence);
    assert_eq!(again.operations, next.operations);

    let mut session = asked_once(committee(), Time(0));
    let network = committee().network();
    let other = Request::sign(&client(), network, 5, &[Bytes::from_static(b"other")]);
    let reply = certified(&other.expect("within limits"), one_result());
    answer(&mut session, Time(1), 3, &Message::CertifiedReply(Box::new(reply)));
    assert_eq!((drained(&mut session), session.pending()), ((vec![], 0), 1));
}

/// ★ What a learner says is not admitted is as if nothing had come.
#[test]
fn a_learner_refuses_nothing_for_members() {
    let mut session = session();
    submit(&mut session, Time(0), 1, 10);
    let request = sent(&mut session).remove(0).1;
    let said = receive(&not_admitted(&request), Peer::Replica(ReplicaId(1))).expect("good");
    session.handle(Time(1), SessionEvent::Message { from: ReplicaId(4), message: said });
    answer(&mut session, Time(1), 2, &not_admitted(&request));
    assert_eq!((drained(&mut session), session.pending()), ((vec![], 0), 1));
}

/// What somebody has answered was executed: it lacks further answers, which are not to be had from
/// another member's first look at it.
#[test]
fn what_was_answered_does_not_go_elsewhere_with_what_a_dead_member_was_asked() {
    let mut session = asked_once(committee(), Time(0));
    let soon = Time(0) + LATE / 2;
    (0..3).for_each(|tag| submit(&mut session, soon, tag, Request::BYTES_MAX));
    assert_eq!(sent(&mut session).len(), 3);
    answer(&mut session, soon, 3, &reply(3, 7, 1, &[7]));
    assert_eq!(ring(&mut session), [2]);
    let now = Time(0) + LATE;
    [0, 2].into_iter().for_each(|from| answer(&mut session, now, from, &reply(from, 5, 1, &[7])));
    let moved: Vec<_> =
        sent(&mut session).into_iter().map(|(to, request)| (to, request.sequence)).collect();
    assert_eq!(moved, [(2, 6), (2, 8)]);
}

/// All copies are another request's: this one's come when that one is done.
#[test]
fn a_late_request_waits_for_room_for_its_copies() {
    let committee = weighted(&[1; 67]);
    let mut session = asked_once(Arc::clone(&committee), Time(0));
    let soon = Time(0) + LATE / 2;
    submit(&mut session, soon, 43, Request::BYTES_MAX);
    assert_eq!(sent(&mut session).len(), 1);
    assert_eq!(ring(&mut session).len(), 22, "of the first");
    let second = session.next_timeout().expect("it is late");
    assert_eq!(second, soon + LATE);
    session.handle_timeout(Time(0) + 2 * LATE);
    let copies: Vec<u64> = sent(&mut session).iter().map(|(_, request)| request.sequence).collect();
    assert_eq!(copies, [5; 42], "the first one's fill the room");
    let done = Time(0) + 2 * LATE + DELAY;
    let mut say = |from: u8, message: &Message| {
        let from = ReplicaId(u16::from(from));
        let verifier = Verifier::for_client(Arc::clone(&committee));
        let message = Verified::check(content(message), Peer::Replica(from), &verifier);
        let message = message.expect("a good message");
        session.handle(done, SessionEvent::Message { from, message });
    };
    say(1, &busy(999));
    (2..26).for_each(|from| say(from, &reply_in(&committee, from, 5, 1, &[7])));
    assert_eq!(drained(&mut session), (vec![], 1));
    let asked = ring(&mut session);
    assert_eq!(asked.len(), 22, "as many as make an honest one certain");
}

#[test]
fn a_vouched_session_carries_the_voucher() {
    let (vouching, key) = (identity(9), client().public());
    let network = committee().network();
    let vouched = config(committee()).vouched_by(&vouching);
    let voucher = vouched.sessions[0].voucher.as_ref().expect("its sessions have one");
    assert_eq!(voucher.client, vouching.public());
    assert_eq!(voucher.check(network, &key), Ok(()));
}

/// What a member refused went to the next one by itself: it is not moved with what a silent one was
/// asked.
#[test]
fn what_was_refused_does_not_go_elsewhere_with_what_a_dead_member_was_asked() {
    let mut session = asked_once(committee(), Time(0));
    answer(&mut session, Time(1), 1, &busy(5));
    let now = session.next_timeout().expect("after a pause");
    assert_eq!(ring(&mut session), [2]);
    session.handle(now, SessionEvent::Query { tag: 7, query: Bytes::from_static(b"why") });
    assert_eq!(queried(&mut session), [(2, 0)]);
    session.handle_timeout(now + LATE);
    assert_eq!(queried(&mut session), [(3, 0)]);
    answer(&mut session, now + LATE, 3, &answered(0, b"why"));
    assert_eq!(drained(&mut session), (vec![], 1), "the query is answered, and no more is sent");
}
