//! Changes of committee: from whoever brings one to the epoch's end at every member.

use super::{NOW, effects, execute_one, give, replica, sends};
use crate::testing::net::{ALL, LATENCY, Net};
use crate::testing::{change_body, client, content, encoded, proposal_of, signed_change};
use crate::{GivenUpFor, Incoming, Message, Replica, Settings};
use quorate_consensus::{MessageKind, ProtocolKind};
use quorate_crypto::Digest;
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_types::{
    BodyRef, ClientId, Effect, Event, Height, Machine, Payload, Peer, Recipients, ReplicaId,
    SignedChange, Verified,
};
use std::sync::Arc;

const LEADER: Peer = Peer::Replica(ReplicaId(0));

fn customer() -> Peer {
    Peer::Client(ClientId(client().public()))
}

fn name(change: &SignedChange) -> BodyRef {
    BodyRef::of_change(change.change.digest())
}

/// The change that ended the epoch at each of these members, by the last of its decided records.
fn ended(net: &Net, members: &[usize]) -> Vec<Option<Digest>> {
    let last = |id: &usize| {
        let member = &net.members[*id];
        let record = member.appended.last()?;
        member.replica.protocol.state().record_payload(&record.bytes)?.header.change
    };
    members.iter().map(last).collect()
}

fn have_ended(net: &Net, members: &[usize]) -> bool {
    ended(net, members).iter().all(Option::is_some)
}

/// Submits requests from this number on, until the epoch has ended everywhere.
fn load_until_ended(net: &mut Net, first: u64) {
    for sequence in first..first + 40 {
        net.submit(1, sequence);
        let until = net.now + 4 * LATENCY;
        net.run_until(|net| net.now >= until);
    }
    net.run_until(|net| have_ended(net, &ALL));
}

fn with(protocol: ProtocolKind) -> Settings {
    Settings { protocol, ..Settings::default() }
}

/// Brought to one member of an idle committee, it is ordered by whoever leads, in every protocol;
/// the block of the epoch's end is the last that anybody decides.
#[test]
fn a_change_ends_the_epoch_at_every_member() {
    for protocol in ProtocolKind::ALL {
        let mut net = Net::new(&with(protocol), |_, _, _| false);
        net.serve(3, &ALL);
        let change = signed_change(1, 1_000);
        net.bring(1, &change);
        net.run_until(|net| have_ended(net, &ALL));
        assert_eq!(ended(&net, &ALL), [Some(change.change.digest()); 4], "{protocol}");
        let last: Vec<Height> = net.statuses().iter().map(|status| status.decided).collect();
        assert!(last.iter().all(|height| *height == last[0]), "{protocol}: {last:?}");
        net.run_until(|net| net.statuses().iter().all(|status| status.executed == last[0]));
        let until = net.now + Settings::default().timeout() * 4;
        net.submit(2, 77);
        net.run_until(|net| net.now >= until);
        assert!(net.statuses().iter().all(|status| status.decided == last[0]), "{protocol}");
    }
}

/// It waits for its height, and goes with what is ordered there.
#[test]
fn a_change_waits_for_its_first_height() {
    let mut net = Net::new(&Settings::default(), |_, _, _| false);
    let change = signed_change(8, 1_000);
    net.bring(1, &change);
    net.serve(3, &ALL);
    assert!(!have_ended(&net, &[0]) && net.statuses()[0].decided < Height(8));
    load_until_ended(&mut net, 3);
    assert!(net.statuses().iter().all(|status| status.decided >= Height(8)));
}

/// Who missed it as it was spread asks for it when a block orders it.
#[test]
fn a_change_that_is_missed_is_fetched() {
    let mut net = Net::new(&Settings::default(), |from, to, message| {
        let is_change = matches!(message, Message::Body(body) if body.reference.is_change());
        is_change && from == 1 && to == 3
    });
    let change = signed_change(1, 1_000);
    net.bring(1, &change);
    net.run_until(|net| have_ended(net, &ALL));
    net.run_until(|net| net.statuses()[3].executed == net.statuses()[0].decided);
    let asked = net.sent.iter().any(|(from, _, message)| {
        *from == 3
            && matches!(message, Message::FetchBodies(names) if names.contains(&name(&change)))
    });
    assert!(asked, "nobody else spreads it");
}

/// A change that waits survives restarts of all members, and so does the end.
#[test]
fn a_change_survives_restarts() {
    let mut net = Net::new(&Settings::default(), |_, _, _| false);
    let change = signed_change(8, 1_000);
    net.bring(1, &change);
    net.serve(2, &ALL);
    for id in ALL {
        let disk = net.disk(id);
        assert!(disk.bodies.contains(&name(&change)), "{id}");
        net.restart(id, disk);
    }
    load_until_ended(&mut net, 2);
    let disk = net.disk(2);
    net.restart(2, disk);
    net.run_until(|net| net.statuses()[2].executed == net.statuses()[0].executed);
    assert_eq!(net.members[2].replica.changes.ordered(), Some(change.change.digest()));
}

/// A primary that orders all but the change loses its view, while it goes on with everything else.
#[test]
fn a_primary_that_passes_a_change_over_is_replaced() {
    let mut net = Net::new(&with(ProtocolKind::Pbft), |_, to, message| {
        to == 1 && matches!(message, Message::Body(body) if body.reference.is_change())
    });
    let others = [0, 2, 3];
    let change = signed_change(1, 100_000);
    net.bring(2, &change);
    assert_eq!(net.statuses()[0].leader, ReplicaId(1));
    let wait = Settings::default().timeout() / 20;
    for sequence in 0..600 {
        if have_ended(&net, &others) {
            break;
        }
        net.submit(2, sequence);
        let until = net.now + wait;
        net.run_until(|net| net.now >= until);
    }
    assert_eq!(ended(&net, &others), [Some(change.change.digest()); 3], "under load");
    let status = &net.statuses()[2];
    let reasons: Vec<_> = status.contributions.given_up().map(|view| view.reason).collect();
    assert_eq!(reasons, [GivenUpFor::Censorship]);
}

/// A learner cannot spread it: whoever brings it hears who can.
#[test]
fn a_learner_takes_no_changes() {
    let mut learner = super::learner();
    give(&mut learner, customer(), &Message::Change(encoded(&signed_change(1, 9))));
    let sent: Vec<Message> = sends(effects(&mut learner)).into_iter().map(|it| it.2).collect();
    let words = "a learner takes no changes: bring them to a member".to_owned();
    assert!(matches!(&sent[..], [Message::ChangeAnswer(Err(reason))] if *reason == words));
}

/// Member 2 sees the leader's first block, which ends the epoch by this change.
fn proposed(change: Digest) -> Replica {
    let mut replica = replica(2, |_| {});
    let payload = Payload::new(Height(1), 0, Vec::new()).ending_epoch(change);
    give(&mut replica, LEADER, &Message::Consensus(proposal_of(payload)));
    replica
}

fn has_voted(replica: &mut Replica) -> bool {
    let kind = |message: &Message| match message {
        Message::Consensus(message) => Some(message.kind()),
        _ => None,
    };
    let sent = sends(effects(replica));
    sent.iter().any(|(_, _, message)| kind(message) == Some(MessageKind::Vote))
}

/// The change comes from the leader, and is durable.
fn bring(replica: &mut Replica, change: &SignedChange) {
    give(replica, LEADER, &Message::Body(change_body(change)));
    replica.handle(NOW, Event::Stored(name(change)));
}

/// ★ A block that ends the epoch gets a vote once its change is here and good at its height.
fn check_stop_blocks_wait_for_their_change() {
    let change = signed_change(1, 1);
    let mut replica = proposed(change.change.digest());
    assert!(!has_voted(&mut replica), "nobody has seen the change");
    bring(&mut replica, &signed_change(1, 2));
    assert!(!has_voted(&mut replica), "another change is here");
    bring(&mut replica, &change);
    assert!(has_voted(&mut replica));
}

#[test]
fn a_stop_block_waits_for_its_change() {
    check_stop_blocks_wait_for_their_change();
}

#[test]
fn votes_for_unchecked_changes_are_noticed() {
    assert_noticed(Mutant::StopUnchecked, check_stop_blocks_wait_for_their_change);
}

/// A lying leader orders a good change at a height that may not: it is here, and gets no vote,
/// whichever comes first.
#[test]
fn a_change_gets_no_vote_at_another_height() {
    for (not_before, expires) in [(2, 9), (0, 0)] {
        let change = signed_change(not_before, expires);
        let mut late = proposed(change.change.digest());
        bring(&mut late, &change);
        assert!(!has_voted(&mut late), "{not_before} to {expires}");
        let mut early = replica(2, |_| {});
        bring(&mut early, &change);
        let payload = Payload::new(Height(1), 0, Vec::new()).ending_epoch(change.change.digest());
        give(&mut early, LEADER, &Message::Consensus(proposal_of(payload)));
        assert!(!has_voted(&mut early), "{not_before} to {expires}");
    }
}

/// One that a lying leader orders and shows though it breaks a rule does not get as far as the
/// replica, under its name or another's.
#[test]
fn a_bad_change_gets_no_vote() {
    let mut few = signed_change(1, 9);
    few.approvals.pop();
    let good = change_body(&signed_change(1, 8));
    let mut renamed = good.as_ref().clone();
    renamed.reference = name(&few);
    for (body, reason) in [
        (change_body(&few), "the approvals weigh 2; 3 are needed"),
        (Arc::new(renamed), "a change's name is its digest"),
    ] {
        let mut replica = proposed(few.change.digest());
        let verifier = Arc::clone(&replica.config.verifier);
        let shown = Verified::<Incoming>::check(content(&Message::Body(body)), LEADER, &verifier);
        let refused = shown.expect_err("it breaks a rule").to_string();
        assert!(refused.ends_with(reason), "{refused}");
        assert!(!has_voted(&mut replica));
    }
}

fn answer(replica: &mut Replica, change: &SignedChange) -> Result<Digest, String> {
    effects(replica);
    give(replica, customer(), &Message::Change(encoded(change)));
    let sent = sends(effects(replica));
    let answer = |(to, _, message): &(Recipients, _, Message)| match message {
        Message::ChangeAnswer(answer) if *to == customer().into() => Some(answer.clone()),
        _ => None,
    };
    sent.iter().find_map(answer).expect("an answer")
}

/// Whoever brings a change hears that it was taken, or which rule it breaks.
#[test]
fn whoever_brings_a_change_is_answered() {
    let mut replica = replica(1, |_| {});
    let change = signed_change(1, 9);
    for _ in 0..2 {
        assert_eq!(answer(&mut replica, &change), Ok(change.change.digest()));
    }
    let mut few = signed_change(1, 9);
    few.acceptances.pop();
    let refused = answer(&mut replica, &few).expect_err("too few");
    assert_eq!(refused, "the acceptances weigh 2; 3 are needed");
    assert_eq!(answer(&mut replica, &signed_change(0, 0)), Err("the change expired at h0".into()));
    for expires in 10..13 {
        assert!(answer(&mut replica, &signed_change(1, expires)).is_ok());
    }
    let refused = answer(&mut replica, &signed_change(1, 13)).expect_err("a fifth");
    assert_eq!(refused, "4 changes wait already: bring this one once one of them expired");
}

/// What may be ordered no more leaves the disk with the height after which it may not.
#[test]
fn an_expired_change_is_released() {
    let mut replica = replica(1, |_| {});
    let change = signed_change(1, 1);
    bring(&mut replica, &change);
    execute_one(&mut replica);
    effects(&mut replica);
    replica.handle(NOW, Event::Durable(Height(1)));
    let released: Vec<BodyRef> = effects(&mut replica)
        .into_iter()
        .filter_map(|effect| if let Effect::Release(it) = effect { Some(it.bodies) } else { None })
        .flatten()
        .flat_map(|(_, names)| names)
        .collect();
    assert!(released.contains(&name(&change)), "{released:?}");
    assert!(replica.bodies.get(&name(&change)).is_none());
}
