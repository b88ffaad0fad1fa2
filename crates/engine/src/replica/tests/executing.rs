//! From decided heights to answers and certificates.

use super::{NOW, effects, execute_one, give, replica, sends, stores};
use crate::message::{FetchBlocks, Query, QueryResponse};
use crate::testing::{body, certify_executed, client, config, request, voting};
use crate::{Message, ProtocolKind, Replica, ReplicaConfig, Settings};
use bytes::Bytes;
use quorate_consensus::windowed::CHECKPOINT_EVERY;
use quorate_crypto::{Digest, hash};
use quorate_types::executed::checkpoint_statement;
use quorate_types::machine::{
    Executed, ExecutedUpTo, QueryJob, QueryResult, SnapshotsOnDisk, Task,
};
use quorate_types::service::Proven;
use quorate_types::{
    BlockId, BodyRef, ClientId, Effect, Event, Header, Height, Machine, Payload, Peer, Recipients,
    ReplicaId,
};
use std::sync::Arc;

const PEER: Peer = Peer::Replica(ReplicaId(2));

fn customer() -> ClientId {
    ClientId(client().public())
}

fn certifying(settings: &mut Settings) {
    settings.execution_certificates = true;
}

fn header(height: u64) -> Header {
    Header { height: Height(height), ..Header::default() }
}

/// The next height is decided and orders these bodies.
fn decide(replica: &mut Replica, height: u64, bodies: Vec<BodyRef>) {
    replica.bodies.decide(&bodies);
    replica.schedule.decide(Payload::new(Height(height), 0, bodies), Bytes::new());
    replica.handle_timeout(NOW);
}

fn finish(replica: &mut Replica, height: u64) {
    let (leaves, answers) = (Vec::new(), Vec::new());
    let executed = Executed { header: header(height), leaves, answers, operations: 0 };
    replica.handle(NOW, Event::Executed(executed));
}

fn started(effects: &[Effect<Message>]) -> Vec<u64> {
    let height = |effect: &Effect<Message>| match effect {
        Effect::Task(Task::Execute(block)) => Some(block.height().0),
        _ => None,
    };
    effects.iter().filter_map(height).collect()
}

fn ask(replica: &mut Replica, id: u64) -> Vec<Effect<Message>> {
    let query = Query { id, query: Bytes::from_static(b"balance") };
    give(replica, Peer::Client(customer()), &Message::Query(query));
    effects(replica)
}

fn refusal(effects: Vec<Effect<Message>>) -> String {
    let sent = sends(effects);
    let [(to, _, Message::QueryResponse(answered))] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(*to, Recipients::Client(customer()));
    answered.result.clone().expect_err("refused")
}

/// What is decided holds its client and its author back until it is executed: a service that is
/// slow is no reason to take more.
#[test]
fn a_request_waits_until_it_is_executed() {
    let mut replica = replica(1, |_| {});
    give(&mut replica, Peer::Client(customer()), &Message::Request(request(1, 100)));
    let sealed = stores(&effects(&mut replica)).pop().expect("nothing is under way");
    replica.handle(NOW, Event::Stored(sealed.reference));
    effects(&mut replica);
    let waiting = replica.status().mempool_bytes;
    decide(&mut replica, 1, vec![sealed.reference]);
    assert_eq!(started(&effects(&mut replica)), [1]);
    assert_eq!((replica.status().mempool_bytes, waiting > 0), (waiting, true), "it is under way");
    finish(&mut replica, 1);
    let status = replica.status();
    assert_eq!((status.mempool_bytes, status.request_latency.count()), (0, 1));
}

/// Where roots are certified no replica answers by itself: the answer waits for the certificate,
/// and so do the answers to queries.
#[test]
fn what_was_executed_is_certified_and_then_told() {
    let mut replica = replica(1, certifying);
    execute_one(&mut replica);
    let sent = sends(effects(&mut replica));
    assert!(sent.iter().any(|(_, _, m)| matches!(m, Message::ExecutionShare(Height(1), ..))));
    assert!(!sent.iter().any(|(_, _, m)| matches!(m, Message::Reply(_))), "{sent:?}");
    let asked = ask(&mut replica, 7);
    let [Effect::Task(Task::Query(QueryJob { ticket, query }))] = &asked[..] else {
        panic!("{asked:?}")
    };
    assert_eq!(&query[..], b"balance");
    let proven = Proven { answer: Bytes::from_static(b"42"), proof: Bytes::new() };
    let result = QueryResult { header: header(1), answer: Ok(proven.clone()) };
    replica.handle(NOW, Event::Queried(*ticket, Some(result)));
    assert_eq!(effects(&mut replica).len(), 0, "nothing is certified");
    let certificate = certify_executed(header(1));
    give(&mut replica, PEER, &Message::ExecutionProof(certificate.clone()));
    let after = effects(&mut replica);
    let is_new = |effect: &Effect<Message>| match effect {
        Effect::Certified(new) => **new == certificate,
        _ => false,
    };
    assert_eq!(after.iter().filter(|effect| is_new(effect)).count(), 1, "the host hears of it");
    let sent = sends(after);
    let [(to, _, Message::QueryResponse(answered))] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(*to, Recipients::Client(customer()));
    assert_eq!(**answered, QueryResponse { id: 7, result: Ok((proven, certificate)) });
}

/// Two members' shares over one root are added up, and a bad one is counted.
#[test]
fn shares_over_what_was_executed_are_added_up() {
    let mut replica = replica(1, certifying);
    effects(&mut replica);
    for from in [0, 2] {
        let share = voting(from).sign(b"something else");
        let message = Message::ExecutionShare(Height(1), Digest::ZERO, share);
        give(&mut replica, Peer::Replica(ReplicaId(u16::from(from))), &message);
    }
    let job = effects(&mut replica).into_iter().find_map(|effect| match effect {
        Effect::Combine(job) => Some(job),
        _ => None,
    });
    let outcome = job.expect("two of four are enough").run();
    replica.handle(NOW, Event::Combined(outcome));
    assert_eq!(replica.status().faults, 2);
}

#[test]
fn without_certificates_or_with_a_wrong_state_queries_are_refused() {
    let mut certifies_nothing = replica(1, |_| {});
    effects(&mut certifies_nothing);
    let query = Query { id: 7, query: Bytes::new() };
    certifies_nothing.on_query(customer(), query);
    certifies_nothing.handle_timeout(NOW);
    let reason = refusal(effects(&mut certifies_nothing));
    assert!(reason.contains("execution_certificates"), "{reason}");
    let mut wrong = replica(1, certifying);
    effects(&mut wrong);
    wrong.execution.diverge(Height(1));
    wrong.handle_timeout(NOW);
    effects(&mut wrong);
    assert_eq!(refusal(ask(&mut wrong, 8)), crate::queries::DIVERGED);
}

/// ★ A replica whose state is wrong executes nothing more on it, until it is replaced.
#[test]
fn nothing_is_executed_on_a_wrong_state() {
    let mut replica = replica(1, certifying);
    replica.execution.diverge(Height(1));
    decide(&mut replica, 1, vec![]);
    let after = effects(&mut replica);
    assert_eq!(started(&after), []);
    let asks = |m: &Message| matches!(m, Message::FetchSnapshots(_));
    assert!(sends(after).iter().any(|(_, _, message)| asks(message)));
    let (decided, recent) = (Bytes::new(), Vec::new());
    let executed = ExecutedUpTo { header: header(9), decided, operations: 1, recent };
    replica.handle(NOW, Event::Installed(Box::new(executed)));
    decide(&mut replica, 10, vec![]);
    assert_eq!(started(&effects(&mut replica)), [10]);
}

/// A body that two heights order stays in memory until both are executed.
#[test]
fn a_body_leaves_memory_when_no_height_needs_it() {
    let mut replica = replica(1, |_| {});
    let twice = body(0, 1, 10);
    give(&mut replica, Peer::Replica(ReplicaId(0)), &Message::Body(Arc::clone(&twice)));
    assert_eq!(stores(&effects(&mut replica)).len(), 1);
    replica.handle(NOW, Event::Stored(twice.reference));
    decide(&mut replica, 1, vec![twice.reference]);
    decide(&mut replica, 2, vec![twice.reference]);
    assert_eq!(started(&effects(&mut replica)), [1, 2]);
    let bytes = twice.raw.len() as u64;
    finish(&mut replica, 1);
    assert_eq!(replica.status().bodies_bytes, bytes);
    finish(&mut replica, 2);
    assert_eq!(replica.status().bodies_bytes, 0);
}

/// Names that a replica asks for when these heights are decided, one body each.
fn asked_at_once(mut replica: Replica, heights: u64) -> usize {
    effects(&mut replica);
    for height in 1..=heights {
        let name = body(0, height, 10).reference;
        replica.schedule.decide(Payload::new(Height(height), 0, vec![name]), Bytes::new());
    }
    replica.handle_timeout(NOW);
    let asked = |(_, _, message)| match message {
        Message::FetchBodies(names) => Some(names.len()),
        _ => None,
    };
    sends(effects(&mut replica)).into_iter().filter_map(asked).sum()
}

/// Nobody is sending what was decided long ago, nor anything to a learner: that is asked for at
/// once. What was decided just now is on its way.
#[test]
fn bodies_that_nobody_is_sending_are_asked_for_at_once() {
    assert_eq!(asked_at_once(replica(1, |_| {}), 1), 0);
    assert_eq!(asked_at_once(replica(1, |_| {}), 16), 0);
    assert_eq!(asked_at_once(replica(1, |_| {}), 17), 16);
    let (id, settings) = (ReplicaId(4), Settings::default());
    let mut learner = Replica::new(ReplicaConfig { id, signs: false, ..config(0, settings) });
    learner.handle(NOW, Event::Recovered(Box::default()));
    assert_eq!(asked_at_once(learner, 1), 1);
}

/// A state of so many MiB has a snapshot at these of 32 heights: the larger it is, the fewer, each
/// at a height at which smaller ones have theirs.
#[test]
fn a_large_state_has_fewer_snapshots() {
    let snapshots_of = |mib: u64| {
        let mut member = replica(1, |settings| settings.snapshot_every = 4);
        let newest_bytes = mib * 1024 * 1024;
        let on_disk = SnapshotsOnDisk { heights: vec![Height(0)], newest_bytes };
        member.handle(NOW, Event::Snapshotted(on_disk));
        let mut heights = Vec::new();
        for height in 1..=32 {
            decide(&mut member, height, Vec::new());
            heights.extend(effects(&mut member).iter().filter_map(|effect| match effect {
                Effect::Task(Task::Snapshot(height)) => Some(height.0),
                _ => None,
            }));
            finish(&mut member, height);
        }
        heights
    };
    for mib in [0, 1, 255] {
        assert_eq!(snapshots_of(mib), [4, 8, 12, 16, 20, 24, 28, 32], "{mib} MiB");
    }
    assert_eq!(snapshots_of(256), [8, 16, 24, 32]);
    assert_eq!(snapshots_of(511), [8, 16, 24, 32]);
    assert_eq!(snapshots_of(600), [16, 32]);
    assert_eq!(snapshots_of(1_024), [16, 32]);
    assert_eq!(snapshots_of(u64::MAX >> 20), [16, 32]);
}

/// Where one member leads until it fails, it is asked last for a certificate before everybody is.
#[test]
fn a_steady_leader_is_the_last_to_get_a_share_before_everybody_does() {
    let steady = |settings: &mut Settings| {
        settings.protocol = ProtocolKind::Pbft;
        settings.execution_certificates = true;
    };
    let leader = replica(0, steady).status().leader;
    let first = u64::from(leader.0 == 1) + 1;
    for id in (0..4).filter(|id| u16::from(*id) != leader.0) {
        let mut replica = replica(id, steady);
        for height in 1..=first {
            decide(&mut replica, height, vec![]);
            finish(&mut replica, height);
        }
        let mut asked: Vec<Recipients> = Vec::new();
        for _ in 0..8 {
            let share = |(to, _, message)| match message {
                Message::ExecutionShare(Height(height), ..) if height == first => Some(to),
                _ => None,
            };
            asked.extend(sends(effects(&mut replica)).into_iter().filter_map(share));
            let next = replica.next_timeout().expect("the share goes to others");
            replica.handle_timeout(next);
        }
        let before = asked.split(|to| *to == Recipients::All).next().and_then(<[_]>::last);
        assert_eq!(before, Some(&Recipients::One(leader)), "of member {id}: {asked:?}");
        assert!(asked.contains(&Recipients::All), "{asked:?}");
    }
}

/// A state that a quorum signed may replace what led to it; one that came to another is wrong.
#[test]
fn checkpoints_are_signed_and_added_up() {
    let slots = |settings: &mut Settings| settings.protocol = ProtocolKind::Pbft;
    let mut replica = replica(1, slots);
    for height in 1..=CHECKPOINT_EVERY {
        effects(&mut replica);
        decide(&mut replica, height, vec![]);
        finish(&mut replica, height);
    }
    let at = Height(CHECKPOINT_EVERY);
    let sent = sends(effects(&mut replica));
    let is_own = |m: &Message| matches!(m, Message::CheckpointShare(height, ..) if *height == at);
    let own = sent.iter().filter(|(to, _, m)| *to == Recipients::All && is_own(m));
    assert_eq!(own.count(), 1, "{sent:?}");
    let root = hash(b"another state");
    let committee = Arc::clone(replica.config.verifier.committee());
    let statement = checkpoint_statement(committee.scope(), at, root);
    for from in [0, 2, 3] {
        let message = Message::CheckpointShare(at, root, voting(from).sign(&statement));
        give(&mut replica, Peer::Replica(ReplicaId(u16::from(from))), &message);
    }
    let job = effects(&mut replica).into_iter().find_map(|effect| match effect {
        Effect::Combine(job) => Some(job),
        _ => None,
    });
    replica.handle(NOW, Event::Combined(job.expect("a quorum").run()));
    assert_eq!(replica.status().diverged, Some(at));
}

/// What a peer may have read for it at once is bounded, of each kind.
#[test]
fn reads_for_a_peer_are_bounded() {
    let mut replica = replica(1, |_| {});
    execute_one(&mut replica);
    let request = FetchBlocks { height: Height(0), after: None, target: BlockId::default() };
    let questions = [
        Message::FetchBodies(vec![body(0, 1, 10).reference]),
        Message::FetchBlocks(request),
        Message::FetchSnapshots(Height(0)),
        Message::FetchChunk(Digest::ZERO, 0),
    ];
    give(&mut replica, Peer::Replica(ReplicaId(3)), &questions[0]);
    for question in &questions {
        (0..4).for_each(|_| give(&mut replica, PEER, question));
    }
    let occupancy = replica.occupancy();
    let reads = occupancy.iter().find(|collection| collection.field == "reads");
    let reads = reads.expect("it is among them");
    assert_eq!((reads.entries, reads.bound), (8, 10), "two of each; proofs are the fifth kind");
    assert!(occupancy.iter().all(|collection| !collection.is_exceeded()), "{occupancy:?}");
    assert_eq!(replica.reads.len(), 9, "and one for another peer");
}
