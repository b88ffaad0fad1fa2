//! One replica at its surface: events in, effects out.

mod beginning;
mod changing;
mod committee;
mod dissemination;
mod executing;
mod handing_over;
mod heartbeat;
mod pacing;
mod proposing;
mod witnesses;

use super::{Replica, Timer};
use crate::ReplicaConfig;
use crate::message::FetchBlocks;
use crate::settings::{FlowControl, Sealing};
use crate::testing::{body, client, config, content, proposal, request};
use crate::{Comparison, Incoming, Message, Settings};
use quorate_consensus::ProtocolKind;
use quorate_crypto::{Digest, hash};
use quorate_types::machine::{
    Executed, ExecutedUpTo, ReadAnswer, ReadItem, ReadRequest, RecordKind, Recovery,
};
use quorate_types::{
    BlockId, Body, BodyRef, ClientId, Effect, Event, Height, Lane, Machine, Payload, Peer,
    Recipients, ReplicaId, Request, Results, Time, Verified, View,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

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
            Effect::Send { to, lane, message, .. } => Some((to, lane, message)),
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
    let mut served = |author: u16, count: u64, bytes: usize| {
        let bodies = (0..count).map(|sequence| body(author, sequence, bytes));
        let names = bodies.map(|body| {
            let from = Peer::Replica(ReplicaId(author));
            give(&mut replica, from, &Message::Body(Arc::clone(&body)));
            body.reference
        });
        let names = names.collect();
        effects(&mut replica);
        give(&mut replica, Peer::Replica(ReplicaId(2)), &Message::FetchBodies(names));
        sends(effects(&mut replica)).len()
    };
    assert_eq!(served(0, 200, 10), crate::bodies::QUESTION_NAMES_MAX);
    let large = served(3, 60, 100_000);
    assert!((20..=super::SERVED_BYTES_MAX / 100_000).contains(&large), "{large}");
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
        results: Results::new(vec![]),
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

/// While the disk is nearly full nothing new is taken, and nothing that waits is sealed; then both.
#[test]
fn a_member_whose_disk_is_nearly_full_takes_and_seals_nothing_new() {
    let mut replica = replica(1, |_| {});
    effects(&mut replica);
    replica.handle(NOW, Event::DiskNearlyFull(true));
    submit(&mut replica, request(1, 10));
    let after = effects(&mut replica);
    assert!(stores(&after).is_empty(), "{after:?}");
    match &sends(after)[..] {
        [(_, _, Message::Busy(busy))] => assert!(busy.is_of_disk() && busy.sequence == 1),
        other => panic!("{other:?}"),
    }
    assert!(!replica.status().timers.contains_key(&Timer::Seal));
    let other = body(0, 1, 10);
    give(&mut replica, Peer::Replica(ReplicaId(0)), &Message::Body(Arc::clone(&other)));
    assert_eq!(stores(&effects(&mut replica)).len(), 1, "what others sealed is stored");
    replica.handle(NOW, Event::DiskNearlyFull(false));
    submit(&mut replica, request(2, 10));
    assert_eq!(stores(&effects(&mut replica)).len(), 1);
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

/// Admits nothing.
#[derive(Debug)]
struct Closed;

impl quorate_types::service::Admission for Closed {
    fn judge(&self, _: quorate_types::service::Operation<'_>) -> Result<(), String> {
        Err("no more".to_owned())
    }

    fn judge_query(&self, _: ClientId, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

/// ★ A request that took effect, or is on its way, is admitted no more where that changed what is
/// admitted. Whoever asks for it again is not told that it has no effect.
fn check_what_took_effect_is_not_refused() {
    let mut replica = replica(1, |_| {});
    effects(&mut replica);
    execute_one(&mut replica);
    submit(&mut replica, request(2, 10));
    effects(&mut replica);
    let from = Peer::Client(ClientId(client().public()));
    let verifier = crate::testing::verifier().with_admission(Some(Arc::new(Closed)));
    let mut ask = |sequence| {
        let message = content(&Message::Request(request(sequence, 10)));
        let message = Verified::<Incoming>::check(message, from, &verifier).expect("well formed");
        replica.handle(NOW, Event::Message { from, message });
        sends(effects(&mut replica)).pop().map(|(_, _, message)| message)
    };
    assert!(matches!(ask(1), Some(Message::Reply(_))));
    assert!(ask(2).is_none());
    assert!(matches!(ask(3), Some(Message::NotAdmitted(refusal)) if refusal.sequence == 3));
}

#[test]
fn what_took_effect_or_may_is_not_refused() {
    check_what_took_effect_is_not_refused();
}

#[test]
fn a_refusal_of_what_took_effect_is_noticed() {
    use quorate_crypto::mutants::{self, Mutant};
    mutants::assert_noticed(Mutant::RefuseWhatTookEffect, check_what_took_effect_is_not_refused);
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

fn reads(replica: &mut Replica) -> Vec<ReadRequest> {
    let reads = effects(replica).into_iter();
    reads.filter_map(|e| if let Effect::Read(read) = e { Some(read) } else { None }).collect()
}

/// Who asks again and again costs the disk no more than a few reads of each kind at once, and
/// holds up nobody else.
#[test]
fn a_peer_has_few_reads_of_a_kind_under_way() {
    let mut replica = replica(1, |_| {});
    effects(&mut replica);
    let kinds = [
        Message::FetchBodies(vec![body(0, 1, 10).reference]),
        Message::FetchSnapshots(Height(0)),
        Message::FetchChunk(Digest::ZERO, 0),
    ];
    let (member, learner) = (ReplicaId(2), ClientId(client().public()));
    let peers = [Peer::Replica(member), Peer::Replica(ReplicaId(3)), Peer::Learner(learner)];
    let mut tickets = BTreeSet::new();
    for peer in peers {
        for kind in &kinds {
            for attempt in 0..4 {
                give(&mut replica, peer, kind);
                let read = reads(&mut replica);
                assert_eq!(read.len(), usize::from(attempt < 2), "{peer:?} {kind:?}");
                tickets.extend(read.iter().map(|read| read.ticket));
            }
        }
    }
    assert_eq!(tickets.len(), 2 * peers.len() * kinds.len(), "each has its own number");
    let ticket = *tickets.first().expect("of bodies, by the first");
    let answer = ReadAnswer { ticket, items: Vec::new(), oldest: Height(0) };
    replica.handle(NOW, Event::Read(answer));
    for expected in [1, 0] {
        give(&mut replica, peers[0], &kinds[0]);
        assert_eq!(reads(&mut replica).len(), expected, "one was answered");
    }
    assert_eq!(replica.status().faults, 0);
}

/// A member that is as far as the asker says so.
#[test]
fn a_question_for_blocks_is_answered() {
    let mut replica = replica(1, |_| {});
    effects(&mut replica);
    let request = FetchBlocks { height: Height(0), after: None, target: BlockId::default() };
    give(&mut replica, Peer::Replica(ReplicaId(2)), &Message::FetchBlocks(request));
    let sent = sends(effects(&mut replica));
    assert!(matches!(&sent[..], [(_, _, Message::Blocks(_))]), "{sent:?}");
    assert_eq!(replica.status().faults, 0);
}

/// A body of exactly a mebibyte.
fn large_body(sequence: u64) -> Body {
    let part = 128 * 1024;
    let overhead = request(1, 0).raw().len();
    let requests: Vec<Request> = (0..8).map(|k| request(k, part - overhead)).collect();
    let body = Body::seal(ReplicaId(0), sequence, &requests);
    assert_eq!(body.raw.len(), 1 << 20);
    body
}

/// Of what is on the disk four mebibytes are served for one request.
#[test]
fn bodies_that_are_read_back_are_served_within_bounds() {
    let mut replica = replica(1, |_| {});
    effects(&mut replica);
    let bodies: Vec<Body> = (0..6).map(large_body).collect();
    let names: Vec<BodyRef> = bodies.iter().map(|body| body.reference).collect();
    let peer = ReplicaId(2);
    give(&mut replica, Peer::Replica(peer), &Message::FetchBodies(names.clone()));
    let read = reads(&mut replica).pop().expect("they are not in memory");
    assert_eq!(read.items, names.iter().copied().map(ReadItem::Body).collect::<Vec<_>>());
    let found = bodies.iter().map(|body| Some(body.raw.clone()));
    let items = read.items.into_iter().zip(found).collect();
    let answer = ReadAnswer { ticket: read.ticket, items, oldest: Height(0) };
    replica.handle(NOW, Event::Read(answer));
    let served: Vec<BodyRef> = sends(effects(&mut replica))
        .into_iter()
        .map(|(to, _, message)| match message {
            Message::Body(body) if to == Recipients::One(peer) => body.reference,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(served, names[..4]);
}

/// The disk's checksum finds accidents: what it takes for whole may still be another body.
#[test]
fn a_body_that_is_read_back_under_another_s_name_is_not_served() {
    let mut replica = replica(1, |_| {});
    effects(&mut replica);
    let [own, other] = [1, 2].map(|sequence| body(0, sequence, 10));
    let served = [&own, &other].map(|found| {
        let fetch = Message::FetchBodies(vec![own.reference]);
        give(&mut replica, Peer::Replica(ReplicaId(2)), &fetch);
        let read = reads(&mut replica).pop().expect("it is not in memory");
        let items = vec![(ReadItem::Body(own.reference), Some(found.raw.clone()))];
        let answer = ReadAnswer { ticket: read.ticket, items, oldest: Height(0) };
        replica.handle(NOW, Event::Read(answer));
        sends(effects(&mut replica)).len()
    });
    assert_eq!(served, [1, 0]);
}

/// A leader that proposes two blocks in its view is counted, and so is a member of whatever kind
/// that sends what it may not.
#[test]
fn what_breaks_a_rule_is_counted() {
    let mut replica = replica(2, |_| {});
    effects(&mut replica);
    assert_eq!((replica.view(), replica.status().view), (View(1), View(1)));
    for faults in 0..2 {
        let names = vec![body(1, faults, 10).reference];
        give(&mut replica, Peer::Replica(ReplicaId(0)), &Message::Consensus(proposal(names)));
        let status = replica.status();
        assert_eq!(status.faults, faults);
        assert_eq!(status.misbehaviour.iter().count() as u64, faults);
    }
    let verifier = Arc::clone(&replica.config.verifier);
    for faults in 2..4 {
        let (announce, member) = (Message::Announce(vec![]), Peer::Replica(ReplicaId(0)));
        let message = Verified::<Incoming>::check(content(&announce), member, &verifier);
        let message = message.expect("a good message of a member");
        let from = Peer::Client(ClientId(client().public()));
        replica.handle(NOW, Event::Message { from, message });
        assert_eq!(replica.status().faults, faults, "of a client it is none");
    }
}

/// The rule that is left out for comparison leaves requests to the leader of the view, and drops
/// none of those.
#[test]
fn the_leader_takes_requests_where_others_drop_them() {
    use quorate_crypto::mutants::{self, Mutant};
    mutants::set(Some(Mutant::HotStuffDropUnlessLeading));
    let takes = |id: &u8| {
        let mut replica = replica(*id, |_| {});
        submit(&mut replica, request(1, 10));
        !stores(&effects(&mut replica)).is_empty()
    };
    let taken: Vec<u8> = (0..4).filter(takes).collect();
    mutants::set(None);
    assert_eq!(taken, [0]);
}

fn announces(replica: &mut Replica) -> usize {
    let sent = sends(effects(replica));
    sent.iter().filter(|(_, _, message)| matches!(message, Message::Announce(_))).count()
}

/// Pending bodies are announced half a view's longest time after the first of them was stored,
/// however long the disk took; and none while there are none.
#[test]
fn pending_bodies_are_announced_after_a_while() {
    let mut replica = replica(1, |_| {});
    let author = Peer::Replica(ReplicaId(0));
    let body = body(0, 1, 10);
    give(&mut replica, author, &Message::Body(Arc::clone(&body)));
    assert!(!replica.status().timers.contains_key(&Timer::Announce), "nothing is stored");
    let stored = NOW + Duration::from_millis(600);
    replica.handle(stored, Event::Stored(body.reference));
    assert_eq!(replica.status().timers.get(&Timer::Announce), Some(&500));
    assert_eq!(announces(&mut replica), 0);
    let due = stored + Duration::from_millis(500);
    replica.handle_timeout(due - Duration::from_micros(1));
    assert_eq!(announces(&mut replica), 0);
    replica.handle_timeout(due);
    assert_eq!(announces(&mut replica), 1);
}

fn learner() -> Replica {
    learner_of(ProtocolKind::default())
}

fn learner_of(protocol: ProtocolKind) -> Replica {
    let settings = Settings { protocol, ..Settings::default() };
    let config = ReplicaConfig { id: ReplicaId(4), signs: false, ..config(0, settings) };
    let mut learner = Replica::new(config);
    learner.handle(NOW, Event::Recovered(Box::default()));
    effects(&mut learner);
    learner
}

/// It follows what members decide, and has no part in it.
#[test]
fn a_learner_takes_no_requests_and_announces_nothing() {
    let mut learner = learner();
    submit(&mut learner, request(1, 10));
    let sent = sends(effects(&mut learner));
    let reason = match &sent[..] {
        [(_, _, Message::Busy(busy))] => &busy.reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(reason, "a learner takes no requests: send them to a member");
    let body = body(0, 1, 10);
    give(&mut learner, Peer::Replica(ReplicaId(0)), &Message::Body(Arc::clone(&body)));
    learner.handle(NOW, Event::Stored(body.reference));
    assert!(learner.bodies.has_pending());
    assert!(!learner.status().timers.contains_key(&Timer::Announce));
}

/// Members take nothing of a protocol from a learner, and cut off who sends it: its machine is
/// silent, for as long as its timers ring.
#[test]
fn a_learner_says_nothing_of_its_protocol() {
    for protocol in ProtocolKind::ALL {
        let mut learner = learner_of(protocol);
        let body = body(0, 1, 10);
        give(&mut learner, Peer::Replica(ReplicaId(0)), &Message::Body(Arc::clone(&body)));
        learner.handle(NOW, Event::Stored(body.reference));
        let mut sent = sends(effects(&mut learner));
        for _ in 0..8 {
            let Some(due) = learner.next_timeout() else { break };
            learner.handle_timeout(due);
            sent.extend(sends(effects(&mut learner)));
        }
        let is_consensus = |message: &Message| matches!(message, Message::Consensus(_));
        let said: Vec<_> = sent.iter().filter(|(_, _, message)| is_consensus(message)).collect();
        assert!(said.is_empty(), "{protocol}: {said:?}");
    }
}

/// Decides heights up to this one, which order nothing.
fn decide_empty(replica: &mut Replica, last: u64) {
    for height in replica.schedule.decided().0 + 1..=last {
        replica.schedule.decide(Payload::new(Height(height), 0, vec![]), bytes::Bytes::new());
        replica.handle_timeout(NOW);
    }
}

/// Where views stay, decided bodies that no height needs leave memory every so many heights.
#[test]
fn what_nothing_needs_leaves_memory_in_a_long_view() {
    let mut replica = replica(1, |_| {});
    let mut last = 0;
    for sequence in 0..3 {
        let body = body(0, sequence, 10);
        replica.bodies.hold(NOW, Arc::clone(&body));
        replica.bodies.stored(body.reference);
        replica.bodies.decide(&[body.reference]);
        last += super::TIDY_EVERY;
        decide_empty(&mut replica, last - 1);
        assert_eq!(replica.status().bodies_bytes, body.raw.len() as u64, "before {last}");
        decide_empty(&mut replica, last);
        assert_eq!(replica.status().bodies_bytes, 0, "at {last}");
    }
}

/// The host need not wake it for blocks that it may not ask for yet.
#[test]
fn blocks_are_due_unless_too_many_wait_for_their_bodies() {
    let mut replica = replica(1, |_| {});
    assert!(!replica.status().timers.contains_key(&Timer::FetchBlocks), "nothing is missing");
    replica.sync.behind(NOW, BlockId(hash(b"a later block")), None);
    assert!(replica.status().timers.contains_key(&Timer::FetchBlocks));
    for height in 1..=257 {
        let bodies = vec![body(0, height, 10).reference];
        replica.schedule.decide(Payload::new(Height(height), 0, bodies), bytes::Bytes::new());
    }
    assert!(replica.is_backlogged());
    assert!(!replica.status().timers.contains_key(&Timer::FetchBlocks));
}

/// What an author may have under way is half of what members keep of it.
#[test]
fn a_fixed_window_is_half_of_an_authors_room() {
    let flow_control = FlowControl::Fixed;
    let mut replica = replica(1, |settings| {
        settings.batch_bytes = 1_024;
        settings.author_bytes_max = 64 * 1_024;
        settings.comparison = Comparison { flow_control, ..Comparison::default() };
    });
    effects(&mut replica);
    let mut under_way = Vec::new();
    for sequence in 0..200 {
        submit(&mut replica, request(sequence, 800));
        under_way.extend(stores(&effects(&mut replica)).into_iter().map(|body| body.raw.len()));
    }
    let (last, all) = (under_way[under_way.len() - 1], under_way.iter().sum::<usize>());
    assert!(all >= 32 * 1_024 && all - last < 32 * 1_024, "{all}");
}

/// On demand the leader alone seals what is not full, once, and proposes it when it is stored.
#[test]
fn who_leads_and_has_nothing_to_propose_seals_what_it_has_on_demand() {
    let sealing = Sealing::Demand;
    let mut leaders = 0;
    for id in 0..4 {
        let mut replica = replica(id, |settings| {
            settings.comparison = Comparison { sealing, ..Comparison::default() };
        });
        effects(&mut replica);
        submit(&mut replica, request(0, 800));
        let sealed = stores(&effects(&mut replica));
        submit(&mut replica, request(1, 800));
        let meanwhile = effects(&mut replica);
        assert_eq!((stores(&meanwhile).len(), proposed(&meanwhile)), (0, None), "it waits");
        for body in &sealed {
            replica.handle(NOW, Event::Stored(body.reference));
            assert_eq!(proposed(&effects(&mut replica)), Some(vec![body.reference]));
        }
        leaders += sealed.len();
    }
    assert_eq!(leaders, 1);
}

/// Bodies that a proposal among these names.
fn proposed(effects: &[Effect<Message>]) -> Option<Vec<BodyRef>> {
    effects.iter().find_map(|effect| match effect {
        Effect::Send { message: Message::Consensus(message), .. } => {
            message.proposed_bodies().map(<[BodyRef]>::to_vec)
        }
        _ => None,
    })
}

/// The window grows while bodies take no more than a quarter of a view's timeout longer than they
/// must.
#[test]
fn a_window_follows_a_quarter_of_a_views_timeout() {
    let settings = Settings { batch_bytes: 1 << 20, ..Settings::default() };
    for (ms, bodies) in [(252, 4), (253, 3)] {
        let mut pool = super::mempool(&config(1, settings.clone()), 0);
        for sequence in 0..20 {
            pool.admit(NOW, request(sequence, 60_000)).expect("there is room");
        }
        let quick = pool.seal(NOW).expect("nothing is under way");
        let now = NOW + Duration::from_millis(1);
        pool.executed(now, &quick);
        let late = [pool.seal(now), pool.seal(now)].map(|body| body.expect("there is room"));
        let now = now + Duration::from_millis(ms);
        late.iter().for_each(|body| drop(pool.executed(now, body)));
        let sealed = std::iter::from_fn(|| pool.seal(now)).count();
        assert_eq!(sealed, bodies, "after {ms} ms");
    }
}

/// A member that is catching up hears late what was decided long ago: that says nothing of the
/// primary.
#[test]
fn who_is_behind_suspects_nobody() {
    for is_behind in [false, true] {
        let mut replica = replica(2, |settings| settings.protocol = ProtocolKind::Pbft);
        let body = body(0, 1, 10);
        replica.bodies.hold(NOW, Arc::clone(&body));
        replica.bodies.stored(body.reference);
        give(&mut replica, Peer::Replica(ReplicaId(3)), &Message::Announce(vec![body.reference]));
        if is_behind {
            replica.sync.behind(NOW, BlockId(hash(b"a later block")), None);
        }
        effects(&mut replica);
        replica.judge_primary(NOW, &Payload::new(Height(1), 0, vec![]));
        let late = NOW + Duration::from_secs(5);
        replica.judge_primary(late, &Payload::new(Height(1), 0, vec![]));
        replica.drain(late);
        let sent = sends(effects(&mut replica));
        let is_suspected = sent.iter().any(|(_, _, m)| matches!(m, Message::Consensus(_)));
        assert_eq!(is_suspected, !is_behind, "{sent:?}");
    }
}

/// Where views pass they leave it with each of them.
#[test]
fn what_nothing_needs_leaves_memory_as_a_view_begins() {
    let mut replica = Replica::new(config(1, Settings::default()));
    let body = body(0, 1, 10);
    replica.bodies.hold(NOW, Arc::clone(&body));
    replica.bodies.stored(body.reference);
    replica.bodies.decide(&[body.reference]);
    assert_eq!(replica.bodies.held_bytes(), body.raw.len());
    replica.handle(NOW, Event::Recovered(Box::default()));
    assert_eq!((replica.view(), replica.bodies.held_bytes()), (View(1), 0));
}
