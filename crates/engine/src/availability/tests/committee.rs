//! Four replicas in virtual time: whatever becomes of acknowledgements and certificates, what clients
//! ask for is executed, everywhere in one order.

use crate::testing::{FIRST, body, certify, client, committee, content, identity, request, voting};
use crate::{Availability, Incoming, Message, Replica, ReplicaConfig, Settings, Verifier};
use bytes::Bytes;
use quorate_consensus::{ProposalKey, ProtocolKind};
use quorate_crypto::Digest;
use quorate_types::machine::{CombineOutcome, Executed, ReadAnswer, ReadItem};
use quorate_types::{
    BodyRef, ClientId, Effect, Event, Height, Machine, Peer, Recipients, ReplicaId, Time, Verified,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

const LATENCY: Duration = Duration::from_millis(1);

enum Happening {
    Message(Peer, Bytes),
    Stored(BodyRef),
    Combined(CombineOutcome),
    Executed(Executed),
    Read(ReadAnswer),
}

#[derive(Debug)]
struct Member {
    replica: Replica,
    verifier: Arc<Verifier>,
    disk: BTreeMap<BodyRef, Bytes>,
    executed: Vec<BodyRef>,
}

type Lost = fn(from: usize, to: usize, message: &Message) -> bool;

struct Net {
    now: Time,
    count: u64,
    members: Vec<Member>,
    events: BTreeMap<(Time, u64), (usize, Happening)>,
    lost: Lost,
    sent: Vec<(usize, usize, Message)>,
}

impl Net {
    fn new(lost: Lost) -> Self {
        let (members, events) = ((0..4).map(member).collect(), BTreeMap::new());
        let mut net = Self { now: Time(0), count: 0, members, events, lost, sent: Vec::new() };
        for id in 0..4 {
            net.members[id].replica.handle(Time(0), Event::Recovered(Box::default()));
            net.drain(id);
        }
        net
    }

    fn after(&mut self, span: Duration, to: usize, happening: Happening) {
        self.count += 1;
        self.events.insert((self.now + span, self.count), (to, happening));
    }

    fn send(&mut self, from: usize, to: usize, message: &Message) {
        if !(self.lost)(from, to, message) {
            let from = Peer::Replica(self.members[from].id());
            self.after(LATENCY, to, Happening::Message(from, content(message)));
        }
        self.sent.push((from, to, message.clone()));
    }

    fn submit(&mut self, to: usize, sequence: u64) {
        let customer = Peer::Client(ClientId(client().public()));
        let frame = content(&Message::Request(request(sequence, 10)));
        self.after(LATENCY, to, Happening::Message(customer, frame));
    }

    fn drain(&mut self, id: usize) {
        while let Some(effect) = self.members[id].replica.poll() {
            match effect {
                Effect::Send { to: Recipients::One(to), message, .. } => {
                    self.send(id, to.index(), &message);
                }
                Effect::Send { to: Recipients::All, message, .. } => {
                    (0..4).filter(|to| *to != id).for_each(|to| self.send(id, to, &message));
                }
                Effect::Store(body) => {
                    self.members[id].disk.insert(body.reference, body.raw.clone());
                    self.after(LATENCY, id, Happening::Stored(body.reference));
                }
                Effect::Combine(job) => {
                    self.after(LATENCY, id, Happening::Combined(job.run()));
                }
                Effect::Execute(block) => {
                    self.members[id].executed.extend(&block.payload.bodies);
                    let (height, root) = (block.height(), Digest::ZERO);
                    let executed = Executed { height, root, answers: vec![], operations: 0 };
                    self.after(LATENCY, id, Happening::Executed(executed));
                }
                Effect::Read(request) => {
                    let disk = &self.members[id].disk;
                    let read = |item| match item {
                        ReadItem::Body(name) => (item, disk.get(&name).cloned()),
                        _ => (item, None),
                    };
                    let items = request.items.into_iter().map(read).collect();
                    let answer = ReadAnswer { ticket: request.ticket, items, oldest: Height(0) };
                    self.after(LATENCY, id, Happening::Read(answer));
                }
                Effect::Halt(halt) => panic!("{id} halted: {halt}"),
                _ => {}
            }
        }
    }

    /// Whatever comes next: an event or a timer.
    fn step(&mut self) {
        let event = self.events.first_key_value().map(|((at, _), _)| *at);
        let timer =
            (0..4).filter_map(|id| Some((self.members[id].replica.next_timeout()?, id))).min();
        match (event, timer) {
            (at, Some((due, id))) if at.is_none_or(|at| due < at) => {
                self.now = self.now.max(due);
                self.members[id].replica.handle_timeout(self.now);
                self.drain(id);
            }
            (Some(at), _) => {
                self.now = self.now.max(at);
                let (_, (id, happening)) = self.events.pop_first().expect("there is one");
                self.happen(id, happening);
            }
            (None, _) => self.now = self.now + LATENCY,
        }
    }

    fn happen(&mut self, id: usize, happening: Happening) {
        let member = &mut self.members[id];
        let event = match happening {
            Happening::Message(from, frame) => {
                match Verified::<Incoming>::check(frame, from, &member.verifier) {
                    Ok(message) => Event::Message { from, message },
                    Err(reason) => {
                        assert!(reason.is_innocent(), "{reason}");
                        return;
                    }
                }
            }
            Happening::Stored(name) => Event::Stored(name),
            Happening::Combined(outcome) => Event::Combined(outcome),
            Happening::Executed(executed) => Event::Executed(executed),
            Happening::Read(answer) => Event::Read(answer),
        };
        member.replica.handle(self.now, event);
        self.drain(id);
    }

    /// Submits `count` requests to the first three members in turn and runs until everybody among
    /// `running` executed them all.
    fn serve(&mut self, count: u64, running: &[usize]) {
        for sequence in 0..count {
            let to = usize::try_from(sequence % 3).expect("few");
            self.submit(to, sequence);
            let until = self.now + 3 * LATENCY;
            while self.now < until {
                self.step();
            }
        }
        let deadline = self.now + Duration::from_secs(60);
        while !self.is_done(running) && self.now < deadline {
            self.step();
        }
        assert!(self.is_done(running), "not done after a minute: {:?}", self.statuses());
        let first = &self.members[running[0]].executed;
        for id in running {
            assert_eq!(&self.members[*id].executed, first, "{id} executed another order");
        }
    }

    /// Whether everything that the first three members sealed is executed.
    fn is_done(&self, running: &[usize]) -> bool {
        let sealed: BTreeSet<BodyRef> = (0..3)
            .flat_map(|id| {
                let own = self.members[id].id();
                self.members[id].disk.keys().filter(move |name| name.author == own).copied()
            })
            .collect();
        !sealed.is_empty()
            && running.iter().all(|id| {
                let executed: BTreeSet<BodyRef> =
                    self.members[*id].executed.iter().copied().collect();
                sealed.is_subset(&executed)
            })
    }

    fn statuses(&self) -> Vec<crate::Status> {
        self.members.iter().map(|member| member.replica.status()).collect()
    }

    fn certificates(&self) -> usize {
        self.sent.iter().filter(|(_, _, m)| matches!(m, Message::Available(_))).count()
    }
}

impl Member {
    fn id(&self) -> ReplicaId {
        self.replica.status().id
    }
}

fn member(id: u8) -> Member {
    let verifier =
        Arc::new(Verifier::new(committee(), ProtocolKind::Jolteon, ProposalKey::Identity));
    let availability = Availability::Certified;
    let replica = Replica::new(ReplicaConfig {
        id: ReplicaId(u16::from(id)),
        identity: Arc::new(identity(id)),
        voting: Arc::new(voting(id)),
        verifier: Arc::clone(&verifier),
        settings: Settings { availability, ..Settings::default() },
        wall_origin_ms: 1_700_000_000_000,
        signs: true,
    });
    Member { replica, verifier, disk: BTreeMap::new(), executed: Vec::new() }
}

const ALL: [usize; 4] = [0, 1, 2, 3];

#[test]
fn everything_is_certified_and_executed() {
    let mut net = Net::new(|_, _, _| false);
    net.serve(12, &ALL);
    assert!(net.certificates() > 0);
    let views = net.statuses().into_iter().map(|status| status.view_changes);
    assert_eq!(views.collect::<Vec<_>>(), [0; 4], "no view waits for a certificate");
}

#[test]
fn one_member_may_acknowledge_nothing() {
    let mut net = Net::new(|from, _, m| from == 3 && matches!(m, Message::Acknowledgement(_)));
    net.serve(12, &ALL);
    assert!(net.certificates() > 0, "the others are enough");
}

#[test]
fn nobody_need_acknowledge() {
    let mut net = Net::new(|_, _, m| matches!(m, Message::Acknowledgement(_)));
    net.serve(12, &ALL);
    assert_eq!(net.certificates(), 0);
}

#[test]
fn certificates_may_be_lost() {
    let mut net = Net::new(|_, _, m| matches!(m, Message::Available(_)));
    net.serve(12, &ALL);
    assert!(net.certificates() > 0);
}

/// Some see a certificate and some do not: the others fetch the bodies or have them.
#[test]
fn certificates_may_reach_a_few() {
    let mut net =
        Net::new(|from, to, m| matches!(m, Message::Available(_)) && to != (from + 1) % 4);
    net.serve(12, &ALL);
}

/// A member that no author reaches votes by certificate and fetches what is decided of its signers.
#[test]
fn a_member_that_no_body_reaches_asks_the_signers() {
    let mut net = Net::new(|from, to, m| match m {
        Message::Body(body) => to == 3 && body.reference.author.index() == from,
        Message::Announce(_) => to == 3,
        _ => false,
    });
    net.serve(12, &ALL);
    let asked: BTreeSet<usize> = net
        .sent
        .iter()
        .filter(|(from, _, m)| *from == 3 && matches!(m, Message::FetchBodies(_)))
        .map(|(_, to, _)| *to)
        .collect();
    assert!(asked.len() > 1, "of several: {asked:?}");
}

/// An author that seals two bodies under one number, and certifies both with its own and one honest
/// member's word, stops nobody; and nobody acknowledges both.
#[test]
fn an_equivocating_author_stops_nobody() {
    let mut net = Net::new(|from, _, _| from == 3);
    let (one, other) = (body(3, FIRST, 10), body(3, FIRST, 11));
    for (to, sealed) in [(0, &one), (1, &other), (2, &other)] {
        let frame = content(&Message::Body(Arc::clone(sealed)));
        net.after(LATENCY, to, Happening::Message(Peer::Replica(ReplicaId(3)), frame));
    }
    let certified = [
        (0, certify(3, &[other.reference.digest], &[(1, 1), (3, 1)])),
        (1, certify(3, &[one.reference.digest], &[(0, 1), (3, 1)])),
        (2, certify(3, &[one.reference.digest], &[(0, 1), (3, 1)])),
    ];
    for (to, certificate) in certified {
        let frame = content(&Message::Available(certificate));
        net.after(5 * LATENCY, to, Happening::Message(Peer::Replica(ReplicaId(3)), frame));
    }
    net.serve(12, &[0, 1, 2]);
    for id in 0..3 {
        let links: BTreeSet<[u8; 32]> = net
            .sent
            .iter()
            .filter(|(from, to, _)| (*from, *to) == (id, 3))
            .filter_map(|(_, _, m)| match m {
                Message::Acknowledgement(given) => Some(given.available.link.0),
                _ => None,
            })
            .collect();
        assert_eq!(links.len(), 1, "{id} acknowledged {} chains", links.len());
    }
}
