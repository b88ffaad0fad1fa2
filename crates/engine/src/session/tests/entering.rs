//! Sessions over the end of an epoch.

use super::{DELAY, answers, completed, config, queried, reply, sent, session, submit};
use crate::message::QueryResponse;
use crate::session::{
    CallResult, ClientConfig, LearnerAddress, Session, SessionEffect, SessionEvent,
};
use crate::testing::{client, committee, content, history_to, identity};
use crate::{Message, Verifier};
use bytes::Bytes;
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_types::request::Answer;
use quorate_types::{
    ClientId, Committee, Height, Machine, Outcome, Peer, ReplicaId, Reply, Request, Results, Time,
    Verified,
};
use std::sync::Arc;

/// The configuration of the sessions here, in an epoch of these members.
fn config_of(members: &[u8]) -> Arc<ClientConfig> {
    Arc::new(config(committee()).following(history_to(members)))
}

/// Delivers what a member of this committee sends.
fn deliver(session: &mut Session, by: &Arc<Committee>, from: ReplicaId, message: &Message) {
    let verifier = Verifier::for_client(Arc::clone(by));
    let message = Verified::check(content(message), Peer::Replica(from), &verifier);
    let message = message.expect("well-formed and signed");
    session.handle(Time(50), SessionEvent::Message { from, message });
}

/// The reply of the owner of this identity, as the member that it is.
fn reply_of(by: &Committee, owner: u8, sequence: u64) -> (ReplicaId, Message) {
    let from = by.find(&identity(owner).public()).expect("a member");
    let results = Results::new(vec![Outcome::Applied(Bytes::from_static(&[7]))]);
    let client = ClientId(client().public());
    let answer = Answer { client, sequence, height: Height(3), results, index: None };
    (from, Message::Reply(Reply::sign(&identity(owner), by.scope(), from, answer)))
}

/// A session with a request under way, the first of number 5, that goes to member 1.
fn asked(operations: u64) -> (Session, Vec<Request>) {
    let mut session = session();
    (0..operations).for_each(|tag| submit(&mut session, Time(0), tag, Request::BYTES_MAX));
    let requests = sent(&mut session).into_iter().map(|(_, request)| request).collect();
    (session, requests)
}

/// ★ One faulty member of each epoch is no honest one among two.
fn check_replies_of_two_epochs_do_not_add_up() {
    let (mut session, _) = asked(1);
    let first = committee();
    deliver(&mut session, &first, ReplicaId(3), &reply(3, 5, 3, &[7]));
    let config = config_of(&[4, 0, 1, 2]);
    let next = Arc::clone(config.committee());
    session.enter(Time(40), config);
    let mut done = Vec::new();
    for owner in [4, 2] {
        let (from, reply) = reply_of(&next, owner, 5);
        deliver(&mut session, &next, from, &reply);
        done.push(completed(&mut session).len());
    }
    assert_eq!(done, [0, 1], "two of the next epoch are needed");
}

#[test]
fn replies_of_two_epochs_do_not_add_up() {
    check_replies_of_two_epochs_do_not_add_up();
}

#[test]
fn replies_that_add_up_across_epochs_are_noticed() {
    assert_noticed(Mutant::RepliesAcrossEpochs, check_replies_of_two_epochs_do_not_add_up);
}

/// Requests keep their numbers and their bytes, and go to the member that is home by its identity;
/// what waits for its place waits on.
#[test]
fn what_is_under_way_is_sent_to_the_next_committee() {
    let (mut session, requests) = asked(3);
    submit(&mut session, Time(10), 9, 10);
    session.enter(Time(10), config_of(&[3, 2, 1, 0]));
    let again = sent(&mut session);
    assert_eq!(again.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [2; 3], "who was member 1");
    let bytes = |requests: &[Request]| requests.iter().map(|r| r.raw().clone()).collect::<Vec<_>>();
    let again: Vec<Request> = again.into_iter().map(|(_, request)| request).collect();
    assert_eq!(bytes(&again), bytes(&requests));
    session.handle_timeout(Time(10) + DELAY);
    let [(2, queued)] = &sent(&mut session)[..] else { panic!("what waited is sent") };
    assert_eq!((queued.sequence, session.pending()), (8, 4));
}

#[test]
fn a_home_that_left_makes_the_first_member_home() {
    let (mut session, _) = asked(1);
    session.enter(Time(10), config_of(&[4, 5, 2, 3]));
    assert_eq!(sent(&mut session).iter().map(|(to, _)| *to).collect::<Vec<_>>(), [0]);
}

/// Nothing leaves for an index of a committee that is no more.
#[test]
fn effects_for_the_former_committee_are_dropped_and_results_are_kept() {
    let (mut session, _) = asked(1);
    for from in [0, 2] {
        deliver(&mut session, &committee(), ReplicaId(from.into()), &reply(from, 5, 3, &[7]));
    }
    submit(&mut session, Time(50), 8, 10);
    session.handle(Time(50), SessionEvent::Query { tag: 9, query: Bytes::from_static(b"why") });
    session.enter(Time(60), config_of(&[4]));
    let effects: Vec<SessionEffect> = std::iter::from_fn(|| session.poll()).collect();
    let mut to = Vec::new();
    let mut returned = Vec::new();
    for effect in effects {
        match effect {
            SessionEffect::Send { to: member, .. } | SessionEffect::Query { to: member, .. } => {
                to.push(member.0);
            }
            SessionEffect::Return { tag, result } => returned.push((tag, result)),
        }
    }
    assert_eq!(to, [0, 0], "the one member, once for each");
    assert!(matches!(returned[..], [(0, CallResult::Completed(_))]), "{returned:?}");
}

/// Refusals of two epochs do not add up either: numbers would be freed that may take effect.
#[test]
fn refusals_are_counted_anew() {
    let (mut session, requests) = asked(1);
    let refusal = |request: &Request| {
        let (sequence, reason) = (request.sequence, "no".to_owned());
        Message::NotAdmitted(crate::message::NotAdmitted {
            sequence,
            request: request.digest(),
            reason,
        })
    };
    deliver(&mut session, &committee(), ReplicaId(3), &refusal(&requests[0]));
    let config = config_of(&[0, 1, 2, 3]);
    let next = Arc::clone(config.committee());
    session.enter(Time(40), config);
    deliver(&mut session, &next, ReplicaId(2), &refusal(&requests[0]));
    assert_eq!(session.pending(), 1, "one of each epoch says so");
    deliver(&mut session, &next, ReplicaId(1), &refusal(&requests[0]));
    assert_eq!(session.pending(), 0);
}

/// A query is asked again from the start: of the learner first, whose place is behind the next
/// members.
#[test]
fn queries_are_asked_again() {
    let learner =
        LearnerAddress { identity: client().public(), address: "localhost:7008".to_owned() };
    let config = ClientConfig { learner: Some(learner), ..config(committee()) };
    let next = config.following(history_to(&[0, 1, 2, 3, 4]));
    let mut session = Session::new(Arc::new(config), 0);
    session.handle(Time(0), SessionEvent::Query { tag: 5, query: Bytes::from_static(b"why") });
    assert_eq!(queried(&mut session), [(4, 0)]);
    let committee = Arc::clone(next.committee());
    session.enter(Time(10), Arc::new(next));
    assert_eq!(queried(&mut session), [(5, 0)]);
    let refuse = |session: &mut Session, from| {
        let refused = QueryResponse { id: 0, result: Err("no".into()) };
        let message = Message::QueryResponse(Box::new(refused));
        deliver(session, &committee, ReplicaId(from), &message);
    };
    let mut asked = vec![5];
    while asked.len() < 10 {
        refuse(&mut session, asked[asked.len() - 1]);
        asked.extend(queried(&mut session).into_iter().map(|(to, _)| to));
    }
    assert_eq!(asked, [5, 1, 2, 3, 4, 0, 1, 2, 3, 4], "each member as often as ever");
    refuse(&mut session, 4);
    assert_eq!(answers(&mut session), [(5, Err("no".into()))]);
}
