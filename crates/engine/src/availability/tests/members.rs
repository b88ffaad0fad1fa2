//! One replica at its surface: author, member, leader and voter.

use super::{Check, ensure};
use crate::testing::{
    FIRST, acknowledge, body, certify, client, committee, content, identity, proposal, request,
    voting,
};
use crate::{Availability, Incoming, Message, Replica, ReplicaConfig, Settings, Verifier};
use quorate_crypto::Digest;
use quorate_types::machine::Recovery;
use quorate_types::{
    Body, BodyRef, ClientId, Effect, Event, Lane, Machine, Peer, Recipients, ReplicaId, Time,
    Verified,
};
use std::sync::Arc;
use std::time::Duration;

const NOW: Time = Time(1_000);
/// A quarter of the timeout.
const TIMEOUT: Duration = Duration::from_millis(250);

type Sent = Vec<(Recipients, Message)>;

struct Member {
    replica: Replica,
    verifier: Arc<Verifier>,
    now: Time,
    stores: Vec<Arc<Body>>,
}

impl Member {
    fn new(id: u8) -> Self {
        Self::recovered(id, Recovery::default(), true)
    }

    fn recovered(id: u8, recovery: Recovery, signs: bool) -> Self {
        let settings = Settings { availability: Availability::Certified, ..Settings::default() };
        let verifier = Arc::new(Verifier::new(committee(), &settings));
        let mut replica = Replica::new(ReplicaConfig {
            id: ReplicaId(u16::from(id)),
            identity: Arc::new(identity(id)),
            voting: Arc::new(voting(id)),
            verifier: Arc::clone(&verifier),
            settings,
            wall_origin_ms: 1_700_000_000_000,
            signs,
            asks_witnesses: false,
        });
        replica.handle(NOW, Event::Recovered(Box::new(recovery)));
        let mut member = Self { replica, verifier, now: NOW, stores: Vec::new() };
        member.drain();
        member
    }

    fn drain(&mut self) -> Sent {
        let mut sent = Vec::new();
        while let Some(effect) = self.replica.poll() {
            match effect {
                Effect::Send { to, message, .. } => sent.push((to, message)),
                Effect::Store(body) => self.stores.push(body),
                _ => {}
            }
        }
        sent
    }

    fn give(&mut self, from: Peer, message: &Message) -> Sent {
        let message = Verified::<Incoming>::check(content(message), from, &self.verifier);
        let message = message.expect("a good message");
        self.replica.handle(self.now, Event::Message { from, message });
        self.drain()
    }

    fn hear(&mut self, from: u16, message: &Message) -> Sent {
        self.give(Peer::Replica(ReplicaId(from)), message)
    }

    fn stored(&mut self, name: BodyRef) -> Sent {
        self.replica.handle(self.now, Event::Stored(name));
        self.drain()
    }

    /// A body comes from its author and becomes durable; what is said then.
    fn take(&mut self, body: &Arc<Body>) -> Sent {
        let mut sent = self.hear(body.reference.author.0, &Message::Body(Arc::clone(body)));
        sent.extend(self.stored(body.reference));
        sent
    }

    /// A client's request becomes a body, not yet durable.
    fn seal(&mut self, sequence: u64) -> Arc<Body> {
        let customer = Peer::Client(ClientId(client().public()));
        self.give(customer, &Message::Request(request(sequence, 10)));
        if self.stores.is_empty() {
            // Another one is under way: it waits for more requests.
            self.pass(Duration::from_millis(5));
        }
        self.stores.pop().expect("it is sealed")
    }

    /// Lets time pass, and rings whenever the replica wants it.
    fn pass(&mut self, span: Duration) -> Sent {
        let (end, mut sent) = (self.now + span, Vec::new());
        while let Some(due) = self.replica.next_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.replica.handle_timeout(self.now);
            sent.extend(self.drain());
        }
        self.now = end;
        sent
    }
}

fn acknowledgements(sent: &Sent) -> Vec<(Recipients, crate::Acknowledgement)> {
    let given = |(to, message): &(Recipients, Message)| match message {
        Message::Acknowledgement(given) => Some((*to, *given)),
        _ => None,
    };
    sent.iter().filter_map(given).collect()
}

fn votes(sent: &Sent) -> bool {
    sent.iter().any(|(_, m)| matches!(m, Message::Consensus(_)) && m.lane() == Lane::Votes)
}

fn proposes(sent: &Sent) -> bool {
    sent.iter().any(|(_, m)| matches!(m, Message::Consensus(c) if c.proposed_bodies().is_some()))
}

fn asks(sent: &Sent) -> Vec<(Recipients, u64)> {
    let asked = |(to, message): &(Recipients, Message)| match message {
        Message::FetchAvailable(next) => Some((*to, *next)),
        _ => None,
    };
    sent.iter().filter_map(asked).collect()
}

/// Author 1's first bodies.
fn bodies(count: u64) -> Vec<Arc<Body>> {
    (0..count).map(|offset| body(1, FIRST + offset, 10)).collect()
}

fn digests(bodies: &[Arc<Body>]) -> Vec<Digest> {
    bodies.iter().map(|body| body.reference.digest).collect()
}

const AUTHOR: Recipients = Recipients::One(ReplicaId(1));

#[test]
fn nothing_is_acknowledged_before_it_is_stored() {
    check_nothing_is_acknowledged_before_it_is_stored().unwrap();
}

pub(super) fn check_nothing_is_acknowledged_before_it_is_stored() -> Check {
    let (mut member, bodies) = (Member::new(2), bodies(1));
    let before = member.hear(1, &Message::Body(Arc::clone(&bodies[0])));
    ensure(acknowledgements(&before).is_empty(), "acknowledged and not durable")?;
    let after = acknowledgements(&member.stored(bodies[0].reference));
    ensure(after == [(AUTHOR, acknowledge(2, 1, &digests(&bodies)))], "acknowledged once durable")
}

/// Bodies that come within one round are acknowledged together.
#[test]
fn acknowledgements_are_cumulative_and_paced() {
    let (mut member, bodies) = (Member::new(2), bodies(4));
    assert_eq!(acknowledgements(&member.take(&bodies[0])).len(), 1, "at once after a pause");
    for body in &bodies[1..] {
        assert!(acknowledgements(&member.take(body)).is_empty());
    }
    let given = acknowledgements(&member.pass(Duration::from_millis(10)));
    assert_eq!(given, [(AUTHOR, acknowledge(2, 1, &digests(&bodies)))]);
    assert!(acknowledgements(&member.pass(Duration::from_secs(5))).is_empty(), "and not again");
}

#[test]
fn nothing_beyond_a_gap_is_acknowledged_and_the_author_is_asked() {
    let (mut member, bodies) = (Member::new(2), bodies(2));
    let mut sent = member.take(&bodies[1]);
    sent.extend(member.pass(Duration::from_secs(30)));
    assert!(acknowledgements(&sent).is_empty());
    assert_eq!(asks(&sent), [(AUTHOR, FIRST); 4], "a few times, not for ever");
    let given = acknowledgements(&member.take(&bodies[0]));
    assert_eq!(given, [(AUTHOR, acknowledge(2, 1, &digests(&bodies)))]);
    assert!(asks(&member.pass(Duration::from_secs(30))).is_empty());
}

#[test]
fn a_second_digest_is_never_acknowledged() {
    let mut member = Member::new(2);
    let (first, second) = (body(1, FIRST, 10), body(1, FIRST, 11));
    let mut sent = member.take(&first);
    sent.extend(member.take(&second));
    sent.extend(member.pass(Duration::from_secs(1)));
    let given = acknowledgements(&sent);
    assert_eq!(given, [(AUTHOR, acknowledge(2, 1, &[first.reference.digest]))]);
}

#[test]
fn a_member_that_may_not_sign_acknowledges_nothing() {
    let mut member = Member::recovered(2, Recovery::default(), false);
    let mut sent = member.take(&bodies(1)[0]);
    sent.extend(member.pass(Duration::from_secs(1)));
    assert!(acknowledgements(&sent).is_empty());
}

/// Bodies that an earlier run stored count, and the first digest under a number stands across the
/// restart.
#[test]
fn a_chain_goes_on_after_a_restart() {
    let bodies = bodies(3);
    let stored = bodies[..2].iter().map(|body| body.reference).collect();
    let recovery = Recovery { bodies: stored, ..Recovery::default() };
    let mut member = Member::recovered(2, recovery, true);
    assert!(acknowledgements(&member.pass(Duration::from_secs(1))).is_empty(), "nothing is new");
    assert!(acknowledgements(&member.take(&body(1, FIRST + 1, 11))).is_empty(), "a second digest");
    let given = acknowledgements(&member.take(&bodies[2]));
    assert_eq!(given, [(AUTHOR, acknowledge(2, 1, &digests(&bodies)))]);
}

/// A member that lacks what is certified goes on behind it.
#[test]
fn a_certificate_bridges_a_gap() {
    let (mut member, bodies) = (Member::new(2), bodies(3));
    member.take(&bodies[2]);
    let certificate = certify(1, &digests(&bodies)[..2], &[(0, 2), (3, 2)]);
    let given = acknowledgements(&member.hear(1, &Message::Available(certificate)));
    assert_eq!(given, [(AUTHOR, acknowledge(2, 1, &digests(&bodies)))]);
}

#[test]
fn an_author_certifies_and_a_leader_proposes_what_is_certified() {
    let mut leader = Member::new(0);
    let body = leader.seal(1);
    let sent = leader.stored(body.reference);
    assert!(!proposes(&sent), "not before it is certified");
    let given = acknowledge(2, 0, &[body.reference.digest]);
    let sent = leader.hear(2, &Message::Acknowledgement(given));
    let expected = certify(0, &[body.reference.digest], &[(0, 1), (2, 1)]);
    let certificates: Vec<_> = sent
        .iter()
        .filter_map(
            |(to, m)| if let Message::Available(c) = m { Some((*to, c.clone())) } else { None },
        )
        .collect();
    assert_eq!(certificates, [(Recipients::All, expected)]);
    assert!(proposes(&sent));
}

/// Others' word is enough: an author whose own disk is slow does not hold its bodies up.
#[test]
fn an_author_is_not_needed_among_the_signers() {
    let mut leader = Member::new(0);
    let first = leader.seal(1);
    leader.stored(first.reference);
    leader.hear(1, &Message::Acknowledgement(acknowledge(1, 0, &[first.reference.digest])));
    let second = leader.seal(2);
    let both = [first.reference.digest, second.reference.digest];
    let mut sent = Vec::new();
    for signer in [1, 2] {
        let given = Message::Acknowledgement(acknowledge(signer, 0, &both));
        sent.extend(leader.hear(u16::from(signer), &given));
    }
    sent.extend(leader.pass(Duration::from_millis(10)));
    let expected = certify(0, &both, &[(1, 2), (2, 2)]);
    assert!(sent.iter().any(|(_, m)| matches!(m, Message::Available(c) if *c == expected)));
}

/// Progress does not depend on acknowledgements or certificates.
#[test]
fn a_leader_proposes_an_uncertified_body_after_a_while() {
    let mut leader = Member::new(0);
    let body = leader.seal(1);
    leader.stored(body.reference);
    assert!(!proposes(&leader.pass(TIMEOUT - Duration::from_millis(1))));
    assert!(proposes(&leader.pass(Duration::from_millis(1))));
}

#[test]
fn an_author_helps_a_member_with_a_gap() {
    let mut author = Member::new(0);
    let body = author.seal(1);
    author.stored(body.reference);
    let told = author.hear(2, &Message::FetchAvailable(FIRST));
    let (to, names) = (Recipients::One(ReplicaId(2)), [body.reference]);
    assert!(matches!(&told[..], [(t, Message::Announce(n))] if *t == to && n[..] == names));
    author.hear(1, &Message::Acknowledgement(acknowledge(1, 0, &[body.reference.digest])));
    let told = author.hear(2, &Message::FetchAvailable(FIRST));
    assert!(matches!(&told[..], [(t, Message::Available(_))] if *t == to));
    assert!(author.hear(2, &Message::FetchAvailable(FIRST + 1)).is_empty(), "it lacks nothing");
}

#[test]
fn a_certified_body_gets_a_vote_without_being_here() {
    let (mut voter, bodies) = (Member::new(2), bodies(1));
    let certificate = certify(1, &digests(&bodies), &[(1, 1), (3, 1)]);
    voter.hear(1, &Message::Available(certificate));
    let names = vec![bodies[0].reference];
    assert!(votes(&voter.hear(0, &Message::Consensus(proposal(names)))));
    assert!(voter.stores.is_empty());
}

#[test]
fn an_uncovered_body_gets_no_vote() {
    check_an_uncovered_body_gets_no_vote().unwrap();
}

/// The digest counts, not the number.
pub(super) fn check_an_uncovered_body_gets_no_vote() -> Check {
    let (mut voter, bodies) = (Member::new(2), bodies(1));
    let certificate = certify(1, &digests(&bodies), &[(1, 1), (3, 1)]);
    voter.hear(1, &Message::Available(certificate));
    let other = body(1, FIRST, 11);
    let names = vec![other.reference];
    let sent = voter.hear(0, &Message::Consensus(proposal(names)));
    ensure(!votes(&sent), "a vote for a body that no certificate covers")?;
    voter.hear(0, &Message::Body(Arc::clone(&other)));
    ensure(votes(&voter.stored(other.reference)), "it is stored now")
}

/// Whichever comes first lets the vote go: the certificate, or the body itself.
#[test]
fn a_vote_waits_for_the_certificate_or_the_body() {
    let bodies = bodies(1);
    let proposal = || Message::Consensus(proposal(vec![bodies[0].reference]));
    let mut voter = Member::new(2);
    assert!(!votes(&voter.hear(0, &proposal())));
    let certificate = certify(1, &digests(&bodies), &[(1, 1), (3, 1)]);
    assert!(votes(&voter.hear(1, &Message::Available(certificate))));
    let asked = voter.pass(Duration::from_millis(100));
    assert!(!asked.iter().any(|(_, m)| matches!(m, Message::FetchBodies(_))), "needed no more");

    let mut voter = Member::new(2);
    assert!(!votes(&voter.hear(0, &proposal())));
    let asked = voter.pass(Duration::from_millis(100));
    assert!(asked.iter().any(|(_, m)| matches!(m, Message::FetchBodies(_))), "it is asked for");
    assert!(votes(&voter.take(&bodies[0])));
}

/// A contradiction is counted: the author sealed two bodies under one number.
#[test]
fn a_certificate_that_contradicts_what_is_stored_is_a_fault() {
    let (mut member, bodies) = (Member::new(2), bodies(1));
    member.take(&body(1, FIRST, 11));
    let certificate = certify(1, &digests(&bodies), &[(0, 1), (1, 1)]);
    member.hear(1, &Message::Available(certificate));
    assert_eq!(
        member.replica.status().faults,
        0,
        "as far as it reaches the chain is known already"
    );
    let more = [digests(&bodies)[0], Digest::ZERO];
    member.hear(1, &Message::Available(certify(1, &more, &[(0, 2), (1, 2)])));
    assert_eq!(member.replica.status().faults, 1);
}

const MICRO: Duration = Duration::from_micros(1);

/// Asks just before this span is over, and at its end.
fn asks_around(member: &mut Member, span: Duration) -> (usize, usize) {
    let before = asks(&member.pass(span - MICRO)).len();
    (before, asks(&member.pass(MICRO)).len())
}

#[test]
fn a_gap_is_asked_about_once_a_second_and_again_once_more_is_stored() {
    let (mut member, bodies) = (Member::new(2), bodies(4));
    let (grace, retry) = (Duration::from_millis(100), Duration::from_secs(1));
    assert!(asks(&member.take(&bodies[1])).is_empty(), "it is usually on its way");
    assert_eq!(asks_around(&mut member, grace), (0, 1));
    for _ in 1..4 {
        assert_eq!(asks_around(&mut member, retry), (0, 1));
    }
    assert!(asks(&member.pass(Duration::from_secs(30))).is_empty(), "not for ever");
    member.take(&bodies[3]);
    for _ in 0..4 {
        assert_eq!(asks_around(&mut member, retry), (0, 1));
    }
    assert!(asks(&member.pass(Duration::from_secs(30))).is_empty());
}

/// What an author seals after a restart begins a chain of its own, and what it sealed before it is
/// said no more of.
#[test]
fn a_new_start_of_an_author_begins_a_new_chain() {
    let mut member = Member::new(2);
    let sequences = |sent: &Sent| -> Vec<u64> {
        acknowledgements(sent).iter().map(|(_, given)| given.available.sequence).collect()
    };
    let old = bodies(2);
    assert_eq!(sequences(&member.take(&old[0])), [FIRST]);
    member.pass(Duration::from_millis(10));
    assert_eq!(sequences(&member.take(&body(1, 2 * FIRST, 10))), [2 * FIRST]);
    member.pass(Duration::from_millis(10));
    let mut sent = member.take(&old[1]);
    sent.extend(member.pass(Duration::from_secs(1)));
    assert!(acknowledgements(&sent).is_empty(), "of the start before");
    assert_eq!(sequences(&member.take(&body(1, 2 * FIRST + 1, 10))), [2 * FIRST + 1]);
}

#[test]
fn what_is_certified_meanwhile_is_not_acknowledged() {
    let (mut member, bodies) = (Member::new(2), bodies(3));
    member.take(&bodies[0]);
    assert!(acknowledgements(&member.take(&bodies[1])).is_empty(), "it waits for its round");
    let certificate = certify(1, &digests(&bodies)[..2], &[(0, 2), (3, 2)]);
    member.hear(1, &Message::Available(certificate));
    assert!(acknowledgements(&member.pass(Duration::from_secs(1))).is_empty());
    let given = acknowledgements(&member.take(&bodies[2]));
    assert_eq!(given, [(AUTHOR, acknowledge(2, 1, &digests(&bodies)))], "but what comes then");
}

/// An author knows best what it sealed: a certificate of its bodies that comes from elsewhere
/// teaches it nothing.
#[test]
fn an_author_takes_no_certificate_of_its_own_bodies() {
    let mut author = Member::new(0);
    let sealed = author.seal(1);
    author.stored(sealed.reference);
    let other = [Digest::ZERO, Digest::ZERO];
    author.hear(2, &Message::Available(certify(0, &other, &[(1, 2), (2, 2)])));
    assert_eq!(author.replica.status().faults, 0);
    let told = author.hear(2, &Message::FetchAvailable(FIRST));
    assert!(matches!(&told[..], [(_, Message::Announce(n))] if n[..] == [sealed.reference]));
}

/// A change of committee that a restart finds on the disk is nobody's body.
#[test]
fn a_change_is_no_body_of_a_chain() {
    let change = BodyRef::of_change(Digest([7; 32]));
    let bodies = vec![body(1, FIRST, 10).reference, change];
    let member = Member::recovered(2, Recovery { bodies, ..Recovery::default() }, true);
    let occupancy = member.replica.occupancy();
    let chains = occupancy.iter().find(|collection| collection.field == "chains");
    assert_eq!(chains.expect("a collection").entries, 1);
}
