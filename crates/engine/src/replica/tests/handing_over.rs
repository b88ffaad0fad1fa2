//! From the epoch's last block to what the host begins the next one with.

use super::give_at;
use crate::message::FetchBlocks;
use crate::testing::net::{ALL, LATENCY, Net};
use crate::testing::{
    FIRST, body, client, committee, config, hand_over, request, signed_change, signed_hand_over,
};
use crate::{Availability, Message, Replica, Settings};
use quorate_consensus::ProtocolKind;
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_crypto::{Certificate, IdentityKey, KeyCache};
use quorate_types::machine::{ExecutedUpTo, Halt, Recovery, SnapshotsOnDisk};
use quorate_types::{
    BlockId, ClientId, Effect, Epoch, Event, HandedOver, Header, Height, Machine, Peer, ReplicaId,
    SignedHandOver, Time,
};
use std::time::Duration;

fn have_handed_over(net: &Net, members: &[usize]) -> bool {
    members.iter().all(|id| !net.members[*id].handed.is_empty())
}

fn has_executed_all(net: &Net, id: usize) -> bool {
    let status = &net.statuses()[id];
    net.members[id].replica.changes.stop().is_some() && status.executed == status.decided
}

fn is_share(message: &Message) -> bool {
    matches!(message, Message::HandOverShare(..))
}

/// A committee that a change was brought to.
fn ending(protocol: ProtocolKind) -> Net {
    let settings = Settings { protocol, ..Settings::default() };
    let mut net = Net::new(&settings, |_, _, _| false);
    net.bring(1, &signed_change(1, 1_000));
    net
}

/// ★ Each host is told the same once, when it is on record; the next committee loads after it.
fn check_every_member_hands_over(protocol: ProtocolKind) {
    let mut net = ending(protocol);
    net.run_until(|net| have_handed_over(net, &ALL));
    let file = signed_change(1, 1_000).change.file;
    for member in &net.members {
        let [(handed, Some(record))] = &member.handed[..] else { panic!("{:?}", member.handed) };
        let HandedOver { signed, file: next, .. } = handed;
        assert_eq!(signed.check(&committee()), Ok(()));
        assert_eq!(borsh::from_slice::<SignedHandOver>(record).ok().as_ref(), Some(signed));
        let last = member.appended.last().expect("the stop block");
        let stop = member.replica.protocol.state().record_id(&last.bytes);
        assert_eq!((signed.content.height, Some(signed.content.stop)), (last.height, stop));
        assert_eq!((next, signed), (&file, &net.members[0].handed[0].0.signed));
        let begun = handed.check(&committee(), KeyCache::Off);
        assert_eq!(begun.map(|begun| begun.epoch()), Ok(Epoch(2)));
    }
}

#[test]
fn every_member_hands_over() {
    ProtocolKind::ALL.into_iter().for_each(check_every_member_hands_over);
}

#[test]
fn handing_over_without_a_record_is_noticed() {
    let check = || check_every_member_hands_over(ProtocolKind::Jolteon);
    assert_noticed(Mutant::HandOverUnrecorded, check);
}

/// The state that is handed over is that of a snapshot, whatever their interval.
#[test]
fn a_snapshot_is_taken_of_the_last_height() {
    let mut net = ending(ProtocolKind::Jolteon);
    net.run_until(|net| have_handed_over(net, &ALL));
    for member in &net.members {
        let last = member.appended.last().expect("the stop block").height;
        assert_eq!(member.snapshots, [last]);
    }
}

/// Others may need all that is kept here for as long as this epoch is served: a snapshot of its end
/// has too few to vouch for it, before a quorum came to it (seed 1001398), and where the others
/// that have it are in the next epoch (seed 1000141).
#[test]
fn nothing_is_released_after_the_end() {
    let mut net = ending(ProtocolKind::LinearPbft);
    net.lost = |_, _, message| is_share(message);
    net.run_until(|net| ALL.iter().all(|id| has_executed_all(net, *id)));
    let now = net.now;
    let member = &mut net.members[1];
    let last = member.appended.last().expect("the stop block").height;
    for event in [
        Event::Durable(last),
        Event::Snapshotted(SnapshotsOnDisk { heights: vec![last], newest_bytes: 0 }),
    ] {
        member.replica.handle(now, event);
    }
    net.run_until(|net| net.now > now + Duration::from_secs(10));
    assert_eq!(net.members[1].released_below, Height(0));
    net.lost = |_, _, _| false;
    net.run_until(|net| have_handed_over(net, &ALL));
    assert_eq!(net.members[1].released_below, Height(0));
}

/// Who heard no share of others is shown the certificate for its own.
#[test]
fn who_missed_the_shares_is_shown_the_certificate() {
    let mut net = ending(ProtocolKind::Jolteon);
    net.lost = |_, to, message| to == 3 && is_share(message);
    net.run_until(|net| have_handed_over(net, &ALL));
    let shown =
        net.sent.iter().any(|(_, to, message)| *to == 3 && matches!(message, Message::HandOver(_)));
    assert!(shown);
}

/// All that was said before is lost with the processes, and said again.
#[test]
fn an_end_without_a_certificate_survives_restarts() {
    let mut net = ending(ProtocolKind::Sbft);
    net.lost = |_, _, message| is_share(message);
    net.run_until(|net| ALL.iter().all(|id| has_executed_all(net, *id)));
    assert!(!have_handed_over(&net, &[0]));
    for id in ALL {
        let disk = net.disk(id);
        net.restart(id, disk);
    }
    net.lost = |_, _, _| false;
    net.run_until(|net| have_handed_over(net, &ALL));
}

/// What is on record is handed over again at each start, and no share is needed for it.
#[test]
fn a_recorded_hand_over_survives_a_restart() {
    let mut net = ending(ProtocolKind::Jolteon);
    net.run_until(|net| have_handed_over(net, &ALL));
    let before = net.members[2].handed[0].0.clone();
    net.sent.clear();
    let disk = net.disk(2);
    net.restart(2, disk);
    net.run_until(|net| have_handed_over(net, &[2]));
    assert_eq!(net.members[2].handed[0].0, before);
    assert!(!net.sent.iter().any(|(_, _, message)| is_share(message)));
}

/// A start whose state is that of the last height, with or without its own record: the change comes
/// from the own disk, or from others where that lost it.
#[test]
fn an_executed_end_survives_a_restart() {
    for keeps_change in [true, false] {
        let mut net = ending(ProtocolKind::Jolteon);
        net.run_until(|net| have_handed_over(net, &ALL));
        let before = net.members[2].handed[0].0.clone();
        let mut disk = net.disk(2);
        let last = disk.decided.pop().expect("the stop block");
        let header = Header { height: last.height, ..Header::default() };
        let (decided, operations, recent) = (last.bytes.clone(), 0, vec![last]);
        disk.executed = Some(ExecutedUpTo { header, decided, operations, recent });
        disk.decided.clear();
        disk.hand_over = disk.hand_over.filter(|_| keeps_change);
        disk.bodies.retain(|name| !name.is_change() || keeps_change);
        net.restart(2, disk);
        net.run_until(|net| have_handed_over(net, &[2]));
        assert_eq!(net.members[2].handed[0].0, before, "{keeps_change}");
    }
}

/// ★ Whoever decided the end acknowledges nobody's bodies any more.
fn check_nothing_is_acknowledged_after_the_end() {
    let settings = Settings { availability: Availability::Certified, ..Settings::default() };
    let mut net = Net::new(&settings, |_, _, _| false);
    net.serve(2, &ALL);
    net.bring(1, &signed_change(1, 1_000));
    net.run_until(|net| have_handed_over(net, &ALL));
    net.sent.clear();
    let sealed = Message::Body(body(3, FIRST, 10));
    net.forge(LATENCY, ReplicaId(3), 0, &sealed);
    let until = net.now + settings.timeout();
    net.run_until(|net| net.now >= until);
    let sent = |is_it: fn(&Message) -> bool| net.sent.iter().any(|(.., it)| is_it(it));
    assert!(net.members[0].replica.bodies.has_pending(), "it is here");
    assert!(!sent(|message| matches!(message, Message::Acknowledgement(_))));
}

#[test]
fn nothing_is_acknowledged_after_the_end() {
    check_nothing_is_acknowledged_after_the_end();
}

#[test]
fn acknowledging_after_the_end_is_noticed() {
    assert_noticed(Mutant::SignAfterStop, check_nothing_is_acknowledged_after_the_end);
}

/// A client that sends something then is told to send it again.
#[test]
fn requests_are_turned_away_after_the_end() {
    let mut net = ending(ProtocolKind::Jolteon);
    net.run_until(|net| have_handed_over(net, &ALL));
    let (now, replica) = (net.now, &mut net.members[0].replica);
    let customer = Peer::Client(ClientId(client().public()));
    give_at(replica, now, customer, &Message::Request(request(77, 10)));
    let busy = std::iter::from_fn(|| replica.poll()).find_map(|effect| match effect {
        Effect::Send { message: Message::Busy(busy), .. } => Some(busy),
        _ => None,
    });
    let busy = busy.expect("an answer");
    assert_eq!(busy.sequence, 77);
    assert_eq!(busy.reason, "the epoch has ended: send it again once the next one has begun");
}

/// A record that no quorum of this epoch signed is not this replica's.
#[test]
fn another_record_halts_the_start() {
    let few = SignedHandOver {
        certificate: Certificate {
            signers: quorate_crypto::Bitmap::from_indices(4, [0, 1]),
            ..signed_hand_over(hand_over()).certificate
        },
        ..signed_hand_over(hand_over())
    };
    let few = borsh::to_vec(&few).expect("encoding into memory cannot fail");
    for record in [few, b"torn".to_vec()] {
        let mut replica = Replica::new(config(1, Settings::default()));
        let recovery = Recovery { hand_over: Some(record.into()), ..Recovery::default() };
        replica.handle(Time(0), Event::Recovered(Box::new(recovery)));
        let mut effects = std::iter::from_fn(|| replica.poll());
        assert!(effects.any(|it| matches!(it, Effect::Halt(Halt::CorruptRecovery(_)))));
    }
}

/// A learner that has everything hears how it ended when it asks for more, and a member when its
/// connection comes up.
#[test]
fn learners_and_members_that_come_back_are_shown_the_end() {
    let mut net = ending(ProtocolKind::Jolteon);
    net.run_until(|net| have_handed_over(net, &ALL));
    let (now, replica) = (net.now, &mut net.members[0].replica);
    let stop = replica.changes.stop().expect("it has ended");
    let learner = Peer::Learner(ClientId(IdentityKey([7; 32])));
    let shows = |replica: &mut Replica, to: Peer| {
        let effects: Vec<_> = std::iter::from_fn(|| replica.poll()).collect();
        effects.iter().any(|effect| {
            matches!(effect, Effect::Send { to: found, message: Message::HandOver(_), .. }
                if *found == to.into())
        })
    };
    for (height, is_shown) in [(Height(0), false), (stop.height, true)] {
        let asked = FetchBlocks { height, after: Some(stop.block), target: BlockId::default() };
        give_at(replica, now, learner, &Message::FetchBlocks(asked));
        assert_eq!(shows(replica, learner), is_shown, "{height}");
    }
    let member = ReplicaId(2);
    replica.handle(now, Event::Connected(member));
    assert!(shows(replica, Peer::Replica(member)));
}
