//! Bodies that others store, announce and carry.

use super::{NOW, effects, give, give_at, replica, sends, stores, submit};
use crate::testing::net::{ALL, LATENCY, Net};
use crate::testing::{body, request};
use crate::{Message, Replica, Settings};
use quorate_types::{Body, BodyRef, Event, Machine, Peer, Recipients, ReplicaId, Time};
use std::sync::Arc;
use std::time::Duration;

const MILLISECOND: Duration = Duration::from_millis(1);

/// The author's body comes and is stored at once.
fn store(replica: &mut Replica, now: Time, body: &Arc<Body>) {
    let from = Peer::Replica(body.reference.author);
    give_at(replica, now, from, &Message::Body(Arc::clone(body)));
    assert_eq!(stores(&effects(replica)), [Arc::clone(body)]);
    replica.handle(now, Event::Stored(body.reference));
}

fn announced(replica: &mut Replica) -> Vec<Vec<BodyRef>> {
    let name = |(to, _, message)| match message {
        Message::Announce(names) => {
            assert_eq!(to, Recipients::All);
            Some(names)
        }
        _ => None,
    };
    sends(effects(replica)).into_iter().filter_map(name).collect()
}

/// What waits for longer than a decision should take is announced, again and again.
#[test]
fn bodies_that_wait_for_long_are_announced() {
    for (timeout_ms, every_ms) in [(600, 500), (1_000, 500), (3_000, 1_500)] {
        let mut replica = replica(1, |settings| settings.timeout_ms = timeout_ms);
        effects(&mut replica);
        let (first, second) = (body(0, 1, 10), body(0, 2, 10));
        store(&mut replica, NOW, &first);
        store(&mut replica, NOW + Duration::from_micros(1), &second);
        let at = NOW + every_ms * MILLISECOND;
        replica.handle_timeout(at - Duration::from_micros(1));
        assert_eq!(announced(&mut replica), [[]; 0]);
        replica.handle_timeout(at);
        assert_eq!(announced(&mut replica), [[first.reference]], "the other came later");
        replica.handle_timeout(at);
        assert_eq!(announced(&mut replica), [[]; 0], "once");
        replica.handle_timeout(at + every_ms * MILLISECOND);
        assert_eq!(announced(&mut replica), [[first.reference, second.reference]]);
    }
}

/// Whoever announces a body has it: it is asked for it.
#[test]
fn a_body_that_a_member_announces_is_asked_of_it() {
    let mut replica = replica(1, |_| {});
    effects(&mut replica);
    let names = vec![body(0, 1, 10).reference];
    give(&mut replica, Peer::Replica(ReplicaId(2)), &Message::Announce(names.clone()));
    assert_eq!(sends(effects(&mut replica)).len(), 0, "it is on its way");
    replica.handle_timeout(NOW + 20 * MILLISECOND);
    let sent = sends(effects(&mut replica));
    let [(to, _, Message::FetchBodies(asked))] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((to, asked), (&Recipients::One(ReplicaId(2)), &names));
}

/// Messages of the protocol that member 0 sends to member 3 when that one announces these bodies
/// so long after now.
fn shown(net: &mut Net, after: Duration, names: &[BodyRef]) -> usize {
    net.sent.clear();
    let until = net.now + after + LATENCY;
    net.forge(after, ReplicaId(3), 0, &Message::Announce(names.to_vec()));
    while net.now < until {
        net.step();
    }
    let is_shown = |(from, to, message): &&(usize, usize, Message)| {
        (*from, *to) == (0, 3) && matches!(message, Message::Consensus(_))
    };
    net.sent.iter().filter(is_shown).count()
}

/// A member to which decided bodies are pending missed their decision: it is shown that, no more
/// often than members announce.
#[test]
fn whoever_announces_what_was_decided_is_shown_the_decision() {
    let mut net = Net::new(&Settings::default(), |_, _, _| false);
    net.serve(6, &ALL);
    let idle = net.now + Duration::from_secs(2);
    while net.now < idle {
        net.step();
    }
    let decided: Vec<BodyRef> = net.executed(0).to_vec();
    let unknown = body(1, 1_000, 10).reference;
    assert!(decided.len() > 1);
    assert_eq!(shown(&mut net, LATENCY, &[]), 0, "it announces nothing");
    assert_eq!(shown(&mut net, LATENCY, &[decided[0], unknown]), 0, "it may be right");
    assert_eq!(shown(&mut net, LATENCY, &decided), 1);
    // One latency passed since.
    let every = Duration::from_millis(500);
    assert_eq!(shown(&mut net, every - LATENCY - Duration::from_micros(1), &decided), 0);
}

#[test]
fn the_decision_is_shown_again_when_it_is_announced_again() {
    let mut replica = replica(1, |_| {});
    let member = ReplicaId(2);
    let name = body(0, 1, 10).reference;
    replica.bodies.decide(&[name]);
    let mut shown_at = |now| {
        let announce = Message::Announce(vec![name]);
        give_at(&mut replica, now, Peer::Replica(member), &announce);
        replica.shown_at[&member]
    };
    let every = Duration::from_millis(500);
    assert_eq!(shown_at(NOW), NOW);
    assert_eq!(shown_at(NOW + every - Duration::from_micros(1)), NOW);
    assert_eq!(shown_at(NOW + every), NOW + every);
}

/// What another member's body carries is not sealed once more; what was decided meanwhile is
/// nothing that still waits to be ordered.
#[test]
fn a_request_in_anothers_undecided_body_is_not_sealed_again() {
    for decided in [false, true] {
        let mut replica = replica(1, |_| {});
        effects(&mut replica);
        let theirs = body(0, 1, 10);
        give(&mut replica, Peer::Replica(ReplicaId(0)), &Message::Body(Arc::clone(&theirs)));
        if decided {
            replica.bodies.decide(&[theirs.reference]);
        }
        replica.handle(NOW, Event::Stored(theirs.reference));
        effects(&mut replica);
        submit(&mut replica, request(1, 10));
        assert_eq!(stores(&effects(&mut replica)).len(), usize::from(decided));
    }
}
