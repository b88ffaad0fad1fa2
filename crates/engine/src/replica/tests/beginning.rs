//! The next epoch, from what was handed over.

use super::effects;
use crate::epoch_start::EpochStart;
use crate::message::Offer;
use crate::testing::net::{ALL, Net};
use crate::testing::{
    FIRST, body, committee, config, content, hand_over, signed_change_to, signed_hand_over,
};
use crate::{Incoming, Message, Replica, ReplicaConfig, Settings, Verifier};
use bytes::Bytes;
use quorate_consensus::ProtocolKind;
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_crypto::{Digest, KeyCache};
use quorate_types::machine::{DecidedRecord, ExecutedUpTo, Record, RecordKind, Recovery, Release};
use quorate_types::{
    AgreedSettings, Effect, Event, HandOver, HandedOver, Header, Height, Machine, Manifest, Peer,
    ReplicaId, Time, Verified,
};
use std::sync::Arc;

/// A committee of this protocol that served, ended its epoch for one of another protocol, and began
/// that; with the last height of the first.
fn begun((before, after): (ProtocolKind, ProtocolKind)) -> (Net, Height) {
    let settings = Settings { protocol: before, ..Settings::default() };
    let mut net = Net::new(&settings, |_, _, _| false);
    net.serve(3, &ALL);
    let next = AgreedSettings { protocol: after.to_string(), ..AgreedSettings::default() };
    net.bring(1, &signed_change_to(next, 1, 1_000));
    net.run_until(|net| net.members.iter().all(|member| !member.handed.is_empty()));
    let last = net.members[0].handed[0].0.header.height;
    net.begin_next();
    (net, last)
}

fn has_executed(net: &Net, height: Height) -> bool {
    net.statuses().iter().all(|status| status.executed >= height)
}

/// Whatever the protocols are, heights go on where the last one was, first of all with one of
/// nobody's bodies; and what clients send is executed.
#[test]
fn every_protocol_follows_every_other() {
    for before in ProtocolKind::ALL {
        for after in ProtocolKind::ALL {
            let (mut net, last) = begun((before, after));
            net.run_until(|net| has_executed(net, last.next()));
            assert_eq!(net.executed(0).len(), 3, "{before} to {after}: nobody sent anything more");
            net.serve_from(100, 3, &ALL);
            let heights: Vec<u64> = net.members[0].appended.iter().map(|it| it.height.0).collect();
            let expected: Vec<u64> = (1..=heights.len() as u64).collect();
            assert_eq!(heights, expected, "{before} to {after}");
        }
    }
}

/// ★ Promises of the epoch before are none of this one's: a member that still has them begins, and
/// one whose records are of no epoch of this network does not.
fn check_former_promises_are_left(protocol: ProtocolKind) {
    let (mut net, last) = begun((protocol, protocol));
    net.run_until(|net| has_executed(net, last.next()));
    net.serve_from(100, 1, &ALL);
}

#[test]
fn former_promises_are_left() {
    check_former_promises_are_left(ProtocolKind::Jolteon);
    check_former_promises_are_left(ProtocolKind::Sbft);
}

#[test]
fn acting_on_former_promises_is_noticed() {
    assert_noticed(Mutant::RecoverFormerEpoch, || {
        check_former_promises_are_left(ProtocolKind::Pbft);
    });
}

/// A restart inside the second epoch keeps its own promises and bodies.
#[test]
fn a_restart_in_the_next_epoch_goes_on() {
    for protocol in [ProtocolKind::Jolteon, ProtocolKind::Pbft] {
        let (mut net, last) = begun((ProtocolKind::Jolteon, protocol));
        net.serve_from(100, 3, &ALL);
        let step = HandedOver::clone(&handed_again(&net, last));
        let disk = net.disk(2);
        let kept = disk.decided.len();
        net.begin(2, &step, Recovery { executed: net.executed_at(&step), ..disk });
        net.run_until(|net| net.statuses()[2].executed.0 >= kept as u64);
        net.serve_from(200, 1, &[0, 1, 3]);
    }
}

fn handed_again(net: &Net, last: Height) -> HandedOver {
    let step = net.begun_with.clone().expect("the second epoch");
    assert_eq!(step.header.height, last);
    step
}

/// Who begins without the state asks for a snapshot, orders meanwhile and executes nothing.
#[test]
fn without_the_state_it_fetches_a_snapshot() {
    let (mut net, last) = begun((ProtocolKind::Jolteon, ProtocolKind::Pbft));
    let step = handed_again(&net, last);
    net.begin(3, &step, Recovery::default());
    net.serve_from(100, 2, &[0, 1, 2]);
    let status = &net.statuses()[3];
    assert_eq!(status.executed, Height(0));
    assert!(status.decided > last, "it takes part");
    assert!(net.sent.iter().any(|(from, _, message)| {
        *from == 3 && matches!(message, Message::FetchSnapshots(Height(0)))
    }));
}

/// ★ Power fails when the record of the first start of an epoch is on disk, and the bodies of the
/// one before still are, too: they are let go again. Once a body of this epoch is stored, none is.
fn check_former_bodies_are_let_go_until_they_are_gone() {
    let (net, _) = begun((ProtocolKind::Jolteon, ProtocolKind::Pbft));
    let step = net.begun_with.clone().expect("the second epoch");
    let disk = net.disk(1);
    let restarted = |recovery: &Recovery| {
        let mut replica = net.starting(1, &step);
        replica.handle(net.now, Event::Recovered(Box::new(recovery.clone())));
        replica
    };
    let is_release = |effect: &Effect<Message>| matches!(effect, Effect::Release(_));
    let start_of = |effects: &[Effect<Message>]| {
        let records = effects.iter().filter_map(|effect| match effect {
            Effect::Persist(record) if record.kind == RecordKind::Incarnation => {
                Some(record.bytes.clone())
            }
            _ => None,
        });
        records.last()
    };
    assert!(!disk.bodies.is_empty(), "bodies of the first epoch");
    let mut first = restarted(&Recovery { incarnation: None, ..disk.clone() });
    let before = effects(&mut first);
    let on_disk = Recovery { incarnation: start_of(&before), ..disk.clone() };
    let again = effects(&mut restarted(&on_disk));
    assert!(before.iter().any(is_release) && again.iter().any(is_release));
    let body = crate::testing::body(1, crate::testing::FIRST, 10);
    first.handle(net.now, Event::Stored(body.reference));
    let stored = Recovery { incarnation: start_of(&effects(&mut first)), ..disk };
    assert!(stored.incarnation.is_some(), "the record is of this epoch now");
    assert!(!effects(&mut restarted(&stored)).iter().any(is_release), "they are promised about");
}

#[test]
fn former_bodies_are_let_go_until_they_are_gone() {
    check_former_bodies_are_let_go_until_they_are_gone();
}

#[test]
fn former_bodies_taken_for_gone_are_noticed() {
    assert_noticed(
        Mutant::FormerBodiesForgotten,
        check_former_bodies_are_let_go_until_they_are_gone,
    );
}

/// The hand-overs of other epochs, and records that name none, are no promises of this one.
#[test]
fn what_is_of_no_epoch_before_stays() {
    let (net, last) = begun((ProtocolKind::Jolteon, ProtocolKind::Pbft));
    let step = handed_again(&net, last);
    let start = EpochStart::after(committee().network(), &[step]);
    let former = committee().epoch_id().0.to_vec();
    let unknown = vec![7; 40];
    let recovery = |record: &Vec<u8>| Recovery {
        safety: Some(record.clone().into()),
        slots: vec![record.clone().into()],
        ..Recovery::default()
    };
    assert_eq!(start.own_part(recovery(&former)), Recovery::default());
    assert_eq!(start.own_part(recovery(&unknown)), recovery(&unknown));
    let record = net.members[0].record(RecordKind::HandOver);
    assert!(record.is_some());
    let recovery = Recovery { hand_over: record, ..Recovery::default() };
    assert_eq!(start.own_part(recovery.clone()), Recovery::default());
    assert_eq!(
        EpochStart::default().own_part(recovery.clone()),
        recovery,
        "the first epoch ends so"
    );
}

/// Heights of the epoch before are no history of this one's protocol, and its own end is its own.
#[test]
fn heights_are_of_the_epoch_that_owns_them() {
    let (net, last) = begun((ProtocolKind::Jolteon, ProtocolKind::Pbft));
    let start = EpochStart::after(committee().network(), &[handed_again(&net, last)]);
    let record = |height| DecidedRecord { height, bytes: Bytes::from_static(b"decided") };
    let executed = |header| ExecutedUpTo {
        header,
        decided: Bytes::from_static(b"decided"),
        operations: 1,
        recent: vec![record(last), record(last.next())],
    };
    let beyond = Header { height: last.next(), ..Header::default() };
    for (header, is_own) in [(*start.header(), false), (beyond, true)] {
        let decided = vec![record(last), record(last.next()), record(last.next().next())];
        let recovery =
            Recovery { decided, executed: Some(executed(header)), ..Recovery::default() };
        let own = start.own_part(recovery);
        let heights: Vec<Height> = own.decided.iter().map(|record| record.height).collect();
        assert_eq!(heights, [last.next(), last.next().next()]);
        let executed = own.executed.expect("the state stays");
        assert_eq!((executed.header, executed.decided.is_empty()), (header, !is_own));
        assert_eq!(executed.recent, [record(last.next())]);
    }
    let own_end = signed_hand_over(HandOver { height: last.next(), ..hand_over() });
    let own_end: Bytes = borsh::to_vec(&own_end).expect("memory").into();
    let recovery = Recovery { hand_over: Some(own_end), ..Recovery::default() };
    assert_eq!(start.own_part(recovery.clone()), recovery);
}

/// Bodies of the epoch before are let go at the first start in this one, and kept at later ones;
/// numbers of starts go on.
#[test]
fn bodies_of_the_epoch_before_are_let_go_once() {
    let (net, last) = begun((ProtocolKind::Jolteon, ProtocolKind::Pbft));
    let step = handed_again(&net, last);
    let next = step.check(&committee(), KeyCache::Off).expect("a good step");
    let start = EpochStart::after(next.network(), std::slice::from_ref(&step));
    let settings = Settings::default();
    let verifier = Arc::new(Verifier::starting(Arc::new(next), &settings, start));
    let name = body(2, FIRST, 10).reference;
    let begin = |incarnation: Option<Bytes>| {
        let config =
            ReplicaConfig { verifier: Arc::clone(&verifier), ..config(1, settings.clone()) };
        let mut replica = Replica::new(config);
        let recovery = Recovery { bodies: vec![name], incarnation, ..Recovery::default() };
        replica.handle(Time(0), Event::Recovered(Box::new(recovery)));
        let (mut number, mut released) = (None, Vec::new());
        while let Some(effect) = replica.poll() {
            match effect {
                Effect::Persist(Record { kind: RecordKind::Incarnation, bytes }) => {
                    number = Some(bytes);
                }
                Effect::Release(Release { bodies, .. }) => released.extend(bodies),
                _ => {}
            }
        }
        (number.expect("each start has one"), released)
    };
    let (number, released) = begin(Some(Bytes::copy_from_slice(&7_u64.to_le_bytes())));
    assert_eq!(released, [(last, vec![name])]);
    assert_eq!(number, 8_u64.to_le_bytes()[..]);
    let in_epoch = [&8_u64.to_le_bytes()[..], &verifier.committee().epoch_id().0].concat();
    let (number, released) = begin(Some(in_epoch.into()));
    assert!(released.is_empty(), "they are this epoch's");
    assert_eq!(number[..8], 9_u64.to_le_bytes());
}

/// ★ What the last height of an epoch came to is signed in that epoch, and by nobody in the next.
fn check_former_heights_are_signed_no_more() {
    let (mut net, last) = begun((ProtocolKind::Jolteon, ProtocolKind::Sbft));
    net.run_until(|net| has_executed(net, last.next()));
    let signed = net.sent.iter().filter_map(|(.., message)| match message {
        Message::ExecutionShare(height, ..) => Some(*height),
        _ => None,
    });
    let signed: Vec<Height> = signed.collect();
    assert!(signed.contains(&last.next()), "heights of this epoch are signed");
    assert!(!signed.contains(&last), "the first protocol certifies none: {signed:?}");
}

#[test]
fn former_heights_are_signed_no_more() {
    check_former_heights_are_signed_no_more();
}

#[test]
fn signing_former_heights_is_noticed() {
    assert_noticed(Mutant::SignFormerHeight, check_former_heights_are_signed_no_more);
}

/// ★ Of the height before an epoch the one state is taken that was handed over, which needs no
/// other proof; none of a height before.
fn check_the_handed_over_state_is_taken() {
    let (net, last) = begun((ProtocolKind::Jolteon, ProtocolKind::Pbft));
    let step = handed_again(&net, last);
    let next = step.check(&committee(), KeyCache::Off).expect("a good step");
    let start = EpochStart::after(next.network(), std::slice::from_ref(&step));
    let verifier = Verifier::starting(Arc::new(next), &Settings::default(), start);
    let offer = |header| {
        let (service, chunks) = ("test".to_owned(), vec![Digest::ZERO]);
        let manifest = Manifest { service, header, operations: 1, chunks }.encode().into();
        let offer = Message::Offer(Offer { manifest, proof: Vec::new() });
        Verified::<Incoming>::check(content(&offer), Peer::Replica(ReplicaId(1)), &verifier)
    };
    assert!(offer(step.header).is_ok());
    let others = [
        Header { proposed_at_ms: step.header.proposed_at_ms + 1, ..step.header },
        Header { height: Height(last.0 - 1), ..step.header },
        Header { height: last.next(), ..step.header },
    ];
    for other in others {
        assert!(offer(other).is_err(), "{other:?}");
    }
}

#[test]
fn the_handed_over_state_is_taken() {
    check_the_handed_over_state_is_taken();
}

#[test]
fn another_state_of_that_height_is_noticed() {
    assert_noticed(Mutant::FormerStateUnproven, check_the_handed_over_state_is_taken);
}
