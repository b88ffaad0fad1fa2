//! One replica at its surface: events in, effects out.

mod dissemination;
mod executing;

use super::{Replica, Timer};
use crate::ReplicaConfig;
use crate::testing::{body, client, config, content, request};
use crate::{Incoming, Message, Settings};
use quorate_types::machine::{Executed, ExecutedUpTo, RecordKind, Recovery};
use quorate_types::{
    Body, ClientId, Effect, Event, Height, Lane, Machine, Peer, Recipients, ReplicaId, Request,
    Time, Verified,
};
use std::sync::Arc;

pub(super) const NOW: Time = Time(1_000);

fn replica(id: u8, tune: impl FnOnce(&mut Settings)) -> Replica {
    recovered(id, tune, true)
}

pub(super) fn recovered(id: u8, tune: impl FnOnce(&mut Settings), signs: bool) -> Replica {
    let mut settings = Settings::default();
    tune(&mut settings);
    let mut replica = Replica::new(ReplicaConfig { signs, ..config(id, settings) });
    replica.handle(NOW, Event::Recovered(Box::default()));
    replica
}

pub(super) fn effects(replica: &mut Replica) -> Vec<Effect<Message>> {
    std::iter::from_fn(|| replica.poll()).collect()
}

pub(super) fn give(replica: &mut Replica, from: Peer, message: &Message) {
    give_at(replica, NOW, from, message);
}

pub(super) fn give_at(replica: &mut Replica, now: Time, from: Peer, message: &Message) {
    let verifier = Arc::clone(&replica.config.verifier);
    let message = Verified::<Incoming>::check(content(message), from, &verifier);
    replica.handle(now, Event::Message { from, message: message.expect("a good message") });
}

pub(super) fn submit(replica: &mut Replica, request: Request) {
    let customer = Peer::Client(ClientId(client().public()));
    give(replica, customer, &Message::Request(request));
}

pub(super) fn stores(effects: &[Effect<Message>]) -> Vec<Arc<Body>> {
    effects
        .iter()
        .filter_map(|e| if let Effect::Store(body) = e { Some(Arc::clone(body)) } else { None })
        .collect()
}

pub(super) fn sends(effects: Vec<Effect<Message>>) -> Vec<(Recipients, Lane, Message)> {
    effects
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Send { to, lane, message } => Some((to, lane, message)),
            _ => None,
        })
        .collect()
}

#[test]
fn a_start_is_counted_durably_before_anything_else() {
    let mut replica = replica(0, |_| {});
    let effects = effects(&mut replica);
    assert!(
        matches!(&effects[..], [Effect::Persist(r)] if r.kind == RecordKind::Incarnation),
        "{effects:?}"
    );
}

/// The number of the last start was lost and a body sealed under it was not: two logs, one power
/// cut.
#[test]
fn no_two_starts_number_bodies_alike() {
    let mut first = replica(0, |_| {});
    submit(&mut first, request(1, 10));
    let sealed = stores(&effects(&mut first)).pop().expect("sealed at once");
    let config = replica(0, |_| {}).config;
    let recovery = Recovery { bodies: vec![sealed.reference], ..Recovery::default() };
    let mut second = Replica::new(config);
    second.handle(NOW, Event::Recovered(Box::new(recovery)));
    submit(&mut second, request(2, 10));
    let again = stores(&effects(&mut second)).pop().expect("sealed at once");
    assert!(again.reference.sequence > sealed.reference.sequence, "{again:?}");
}

/// Whoever does not lead takes requests all the same, and shows them to the others.
#[test]
fn who_does_not_lead_takes_requests_too() {
    for id in 0..4 {
        let mut replica = replica(id, |_| {});
        submit(&mut replica, request(1, 10));
        let effects = effects(&mut replica);
        assert_eq!(stores(&effects).len(), 1, "member {id}");
    }
}

#[test]
fn requests_that_are_thrown_away_are_missed() {
    use quorate_crypto::mutants::{self, Mutant};
    mutants::assert_noticed(
        Mutant::HotStuffDropUnlessLeading,
        who_does_not_lead_takes_requests_too,
    );
}

/// A request becomes a body: stored, sent to everybody, and proposed once it is durable.
#[test]
fn a_request_is_sealed_stored_and_proposed() {
    let mut replica = replica(0, |_| {});
    submit(&mut replica, request(1, 10));
    let first = effects(&mut replica);
    let sealed = stores(&first).pop().expect("sealed at once");
    let proposed = |sent: &[(Recipients, Lane, Message)]| {
        sent.iter()
            .any(|(_, _, m)| matches!(m, Message::Consensus(c) if c.proposed_bodies().is_some()))
    };
    assert!(!proposed(&sends(first)), "not before it is durable");
    replica.handle(NOW, Event::Stored(sealed.reference));
    let second = effects(&mut replica);
    let persist = second.iter().position(|e| matches!(e, Effect::Persist(_)));
    let propose = second
        .iter()
        .position(|e| matches!(e, Effect::Send { message: Message::Consensus(_), .. }));
    assert!(persist.expect("a promise") < propose.expect("a proposal"));
    let sent = sends(second);
    assert!(proposed(&sent));
    let carried = sent.iter().any(|(to, lane, m)| {
        *to == Recipients::All && *lane == Lane::Bulk && matches!(m, Message::Body(_))
    });
    assert!(carried, "the body goes to everybody");
}

/// Until a start is durably counted an author's numbers may be given out again: its bodies wait.
#[test]
fn no_body_leaves_before_the_start_is_durable() {
    let mut replica = replica(1, |_| {});
    submit(&mut replica, request(1, 10));
    let first = effects(&mut replica);
    let sealed = stores(&first).pop().expect("sealed at once");
    assert!(sends(first).is_empty());
    replica.handle(NOW, Event::Stored(sealed.reference));
    assert!(sends(effects(&mut replica)).iter().any(|(_, _, m)| matches!(m, Message::Body(_))));
}

#[test]
fn a_full_replica_says_so() {
    let mut replica = replica(1, |s| {
        s.batch_bytes = 1_024;
        s.mempool_bytes_max = 2_048;
    });
    for sequence in 0..4 {
        submit(&mut replica, request(sequence, 900));
    }
    let busy: Vec<u64> = sends(effects(&mut replica))
        .into_iter()
        .filter_map(|(_, _, m)| if let Message::Busy(b) = m { Some(b.sequence) } else { None })
        .collect();
    assert_eq!(busy, [2, 3]);
}

/// The largest inline proposal fits its frame: otherwise nobody would hear a leader under load.
#[test]
fn the_largest_inline_proposal_fits_its_frame() {
    let mut replica = replica(0, |s| {
        s.inline_bodies = true;
        s.batch_bytes = 1 << 20;
    });
    effects(&mut replica);
    let bodies: Vec<Arc<Body>> = (0..12)
        .map(|sequence| {
            let requests: Vec<Request> =
                (0..7).map(|k| request(sequence * 10 + k, Request::BYTES_MAX)).collect();
            Arc::new(Body::seal(ReplicaId(1), sequence, &requests))
        })
        .collect();
    // Nothing is stored before everything is here, so that the leader can choose.
    for body in &bodies {
        give(&mut replica, Peer::Replica(ReplicaId(1)), &Message::Body(Arc::clone(body)));
    }
    for body in &bodies {
        replica.bodies.stored(body.reference);
    }
    replica.handle_timeout(NOW);
    let inline = sends(effects(&mut replica)).into_iter().find_map(|(_, _, m)| match m {
        Message::Inline(message, bodies) => Some(Message::Inline(message, bodies)),
        _ => None,
    });
    let inline = inline.expect("an inline proposal");
    let content = content(&inline);
    assert!(content.len() <= inline.tag().rules().bytes_max);
    assert!(content.len() > 3 << 20, "and it is a large one");
}

/// A peer may ask for much; one answer is bounded.
#[test]
fn a_request_for_bodies_is_answered_within_bounds() {
    let mut replica = replica(1, |_| {});
    effects(&mut replica);
    let bodies: Vec<Arc<Body>> = (0..100).map(|sequence| body(0, sequence, 10)).collect();
    for body in &bodies {
        give(&mut replica, Peer::Replica(ReplicaId(0)), &Message::Body(Arc::clone(body)));
    }
    effects(&mut replica);
    let names = bodies.iter().map(|b| b.reference).collect();
    give(&mut replica, Peer::Replica(ReplicaId(2)), &Message::FetchBodies(names));
    let served = sends(effects(&mut replica)).len();
    assert!((1..=super::dissemination::SERVED_MAX).contains(&served), "{served}");
}

/// A member that sends what only clients or replicas to clients send is counted, nothing more.
#[test]
fn what_a_member_may_not_send_is_a_fault() {
    let mut replica = replica(1, |_| {});
    effects(&mut replica);
    let busy = crate::message::Busy { sequence: 1, reason: String::new() };
    give(&mut replica, Peer::Replica(ReplicaId(0)), &Message::Busy(busy));
    assert_eq!(replica.status().faults, 1);
    assert!(effects(&mut replica).is_empty());
}

/// Executes height 1, in which the client's request 1 took effect.
pub(super) fn execute_one(replica: &mut Replica) {
    let payload = quorate_types::Payload::new(Height(1), 0, vec![]);
    replica.schedule.decide(payload, bytes::Bytes::new());
    replica.handle_timeout(NOW);
    let answer = quorate_types::request::Answer {
        client: ClientId(client().public()),
        sequence: 1,
        height: Height(1),
        results: vec![],
        index: Some(0),
    };
    let executed = Executed {
        header: quorate_types::Header { height: Height(1), ..Default::default() },
        leaves: vec![quorate_crypto::Digest::ZERO],
        answers: vec![answer],
        operations: 1,
    };
    replica.handle(NOW, Event::Executed(executed));
}

/// ★ A member that lost its log executes what others decided, and no client hears of it from this
/// one: it signs no reply, and seals no request into a body whose number it may have given out
/// before.
#[test]
fn a_member_that_does_not_sign_serves_no_clients() {
    let mut replica = recovered(1, |_| {}, false);
    effects(&mut replica);
    execute_one(&mut replica);
    submit(&mut replica, request(1, 10));
    submit(&mut replica, request(2, 10));
    assert_eq!(replica.status().operations, 1, "it follows");
    let after = effects(&mut replica);
    assert!(stores(&after).is_empty(), "{after:?}");
    let refused: Vec<u64> = sends(after)
        .into_iter()
        .map(|(_, _, message)| match message {
            Message::Busy(busy) => busy.sequence,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(refused, [1, 2]);
}

#[test]
fn a_member_that_does_not_sign_and_answers_is_noticed() {
    use quorate_crypto::mutants::{self, Mutant};
    mutants::assert_noticed(Mutant::AnswerUnsigned, a_member_that_does_not_sign_serves_no_clients);
}

/// An executed height answers its clients, and a repeat of the request is answered from memory.
#[test]
fn a_repeated_request_is_answered_and_not_ordered_again() {
    let mut replica = replica(1, |_| {});
    effects(&mut replica);
    execute_one(&mut replica);
    let reply =
        |effects| sends(effects).iter().filter(|(_, _, m)| matches!(m, Message::Reply(_))).count();
    assert_eq!(reply(effects(&mut replica)), 1);
    submit(&mut replica, request(1, 10));
    let again = effects(&mut replica);
    assert!(stores(&again).is_empty());
    assert_eq!(reply(again), 1);
    assert_eq!(replica.status().operations, 1);
}

/// ★ Another state was installed: what the one before it came to may have been wrong, and is not
/// answered from memory. The request is ordered once more, and what the new state says of it goes
/// out.
fn what_a_replaced_state_came_to_is_forgotten() {
    let mut replica = replica(1, |_| {});
    effects(&mut replica);
    execute_one(&mut replica);
    effects(&mut replica);
    let header = quorate_types::Header { height: Height(9), ..Default::default() };
    let (decided, recent) = (bytes::Bytes::new(), Vec::new());
    let executed = ExecutedUpTo { header, decided, operations: 1, recent };
    replica.handle(NOW, Event::Installed(Box::new(executed)));
    effects(&mut replica);
    submit(&mut replica, request(1, 10));
    let after = effects(&mut replica);
    assert_eq!(stores(&after).len(), 1, "{after:?}");
    assert!(!sends(after).iter().any(|(_, _, message)| matches!(message, Message::Reply(_))));
}

#[test]
fn a_replaced_state_answers_nothing() {
    what_a_replaced_state_came_to_is_forgotten();
}

#[test]
fn answers_of_a_replaced_state_are_noticed() {
    use quorate_crypto::mutants::{self, Mutant};
    mutants::assert_noticed(Mutant::KeepOldAnswers, what_a_replaced_state_came_to_is_forgotten);
}

/// The host wakes the replica for the first of its timers, and its status names it.
#[test]
fn the_status_shows_the_timer_that_is_due_first() {
    let batching = |settings: &mut Settings| settings.batch_delay_ms = 7;
    let mut replica = replica(1, batching);
    assert!(!replica.status().timers.contains_key(&Timer::Seal), "nothing waits");
    submit(&mut replica, request(1, 10));
    submit(&mut replica, request(2, 10));
    effects(&mut replica);
    let timers = replica.status().timers;
    let due = replica.next_timeout().expect("something waits");
    assert_eq!(timers.values().min(), Some(&(due.since(NOW).as_millis() as u64)), "{timers:?}");
    assert!(timers.contains_key(&Timer::Seal), "{timers:?}");
}
