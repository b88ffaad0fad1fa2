//! Clients: load in open or closed loops through the sessions of the real client, or, for the reference,
//! without.

use super::book::{Book, Offered};
use super::frames::Frame;
use super::{Arrivals, Nanos, Profile, Receivers, Scene, nanos};
use crate::dice::Dice;
use bytes::Bytes;
use quorate_crypto::{IdentitySecret, KeyFile, SchemeKind};
use quorate_engine::{
    Bundling, Incoming, Message, Session, SessionConfig, SessionEffect, SessionEvent, Verifier,
    asks_nothing,
};
use quorate_types::{ClientId, Machine, Peer, ReplicaId, Request, Time, Verified};
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Operations a second that one session carries without filling its window at seconds of latency.
const SESSION_RATE: f64 = 2_000.0;

/// A request unanswered for so long goes to the next validator; never before two views had their time.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// The client beside a validator: as many sessions as its rate needs.
pub(crate) struct Client {
    place: usize,
    sessions: Vec<Session1>,
    operation: Bytes,
    /// Operations a nanosecond.
    rate: f64,
    arrivals: Arrivals,
    /// In a closed loop, whether it has begun.
    began: bool,
    /// How long until the next operation, in operations of the mean rate.
    gap: f64,
    dice: Dice,
    /// Whose turn it is to take the odd operations.
    turn: usize,
    /// Who gets a request that goes to all; none where it goes to one.
    all: Vec<ReplicaId>,
    /// The world's timer that is set for it.
    pub(crate) armed: Option<Nanos>,
    verifier: Arc<Verifier>,
}

/// Whom clients talk to.
pub(crate) struct Company {
    pub(crate) verifier: Arc<Verifier>,
    /// The leader of the first view.
    pub(crate) leader: ReplicaId,
    /// Which validators live to the end.
    pub(crate) lives: Vec<bool>,
}

/// How many sessions a place has, and all together: they go round the places. In a closed loop those
/// beside validators that crash have none: a client that waits for one that is gone offers nothing.
fn sessions(scene: &Scene, place: usize, lives: &[bool]) -> (usize, usize) {
    let members = usize::from(scene.validators);
    let by_rate = || members.max((scene.load.rate / SESSION_RATE).ceil() as usize);
    let all = scene.load.sessions.map_or_else(by_rate, NonZeroUsize::get);
    let is_open = !matches!(scene.load.arrivals, Arrivals::Closed(_));
    let has_clients = |place: &usize| is_open || lives[*place];
    let turn = (0..place).filter(has_clients).count();
    let turns = (0..members).filter(has_clients).count();
    (if has_clients(&place) { (all + turns - 1 - turn) / turns } else { 0 }, all)
}

/// One session, and when its operations were offered that are in no request yet.
struct Session1 {
    id: ClientId,
    identity: Arc<IdentitySecret>,
    /// Absent where clients send without waiting for answers.
    machine: Option<Session>,
    offered: VecDeque<Offered>,
    next_sequence: u64,
    /// Operations that are not answered yet.
    open: usize,
}

/// What a turn of a client came to.
#[derive(Debug, Default)]
pub(crate) struct ClientTurn {
    pub(crate) sends: Vec<(ReplicaId, Rc<Frame>)>,
    pub(crate) requests: usize,
    pub(crate) operations: usize,
}

impl ClientTurn {
    pub(crate) fn join(&mut self, other: Self) {
        self.sends.extend(other.sends);
        self.requests += other.requests;
        self.operations += other.operations;
    }
}

impl Client {
    pub(crate) fn new(scene: &Scene, place: usize, company: &Company) -> Self {
        let Company { verifier, leader, lives } = company;
        let (count, all) = sessions(scene, place, lives);
        let rate = scene.load.rate * count as f64 / all as f64;
        let mut dice = Dice::new(scene.seed, "client", place as u64);
        let answered = scene.profile == Profile::Quorate;
        let beside = ReplicaId(u16::try_from(place).expect("a member"));
        let is_leader = scene.load.receivers == Receivers::Leader;
        let first = if is_leader { *leader } else { beside };
        let block_max = scene.settings.block_operations_max();
        let (delay, most) = match scene.load.arrivals {
            Arrivals::Closed(operations) => (Duration::ZERO, block_max.min(operations.get())),
            Arrivals::Fixed | Arrivals::Poisson => (scene.load.bundle_delay, block_max),
        };
        let session = |seed: [u8; 32]| {
            let identity = Arc::new(KeyFile::from_seed(SchemeKind::Ed25519, &seed).identity);
            let machine = answered.then(|| {
                Session::new(SessionConfig {
                    committee: Arc::clone(verifier.committee()),
                    identity: Arc::clone(&identity),
                    first,
                    bundling: Bundling::after(delay).at_most(most),
                    retry_after: RETRY_AFTER.max(scene.settings.timeout() * 2),
                    next_sequence: 0,
                    check_answer: asks_nothing,
                    learner: false,
                })
            });
            let id = ClientId(identity.public());
            Session1 { id, identity, machine, offered: VecDeque::new(), next_sequence: 0, open: 0 }
        };
        let sessions = (0..count).map(|_| session(dice.bytes32())).collect();
        Self {
            place,
            sessions,
            operation: Bytes::from(vec![b'.'; scene.load.tx_bytes]),
            rate: rate / 1e9,
            arrivals: scene.load.arrivals,
            began: false,
            // Clients do not act in step.
            gap: dice.below(1 << 20) as f64 / f64::from(1 << 20),
            dice,
            turn: 0,
            all: if scene.load.receivers == Receivers::All {
                (0..scene.validators).map(ReplicaId).collect()
            } else {
                Vec::new()
            },
            armed: None,
            verifier: Arc::clone(verifier),
        }
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = ClientId> + '_ {
        self.sessions.iter().map(|session| session.id)
    }

    /// How many operations come in a span of time; in a closed loop, once, those of all first requests.
    pub(crate) fn arrivals(&mut self, span: Nanos) -> usize {
        if let Arrivals::Closed(operations) = self.arrivals {
            let goes_on = std::mem::replace(&mut self.began, true);
            return if goes_on { 0 } else { operations.get() * self.sessions.len() };
        }
        let mut left = span as f64 * self.rate;
        let mut count = 0;
        while self.gap <= left {
            left -= self.gap;
            count += 1;
            self.gap = match self.arrivals {
                Arrivals::Fixed | Arrivals::Closed(_) => 1.0,
                Arrivals::Poisson => {
                    let uniform = (self.dice.below(1 << 53) + 1) as f64 / (1_u64 << 53) as f64;
                    -uniform.ln()
                }
            };
        }
        self.gap -= left;
        count
    }

    /// Operations offered at `at` are handed to the sessions.
    pub(crate) fn submit(
        &mut self,
        now: Nanos,
        at: Nanos,
        operations: usize,
        book: &mut Book,
    ) -> ClientTurn {
        let mut turn = ClientTurn::default();
        let sessions = self.sessions.len();
        for index in 0..sessions {
            let odd = (index + self.turn) % sessions < operations % sessions;
            let count = operations / sessions + usize::from(odd);
            if count > 0 {
                self.hand(index, now, at, count, &mut turn, book);
            }
        }
        self.turn += 1;
        turn
    }

    fn hand(
        &mut self,
        index: usize,
        now: Nanos,
        at: Nanos,
        count: usize,
        turn: &mut ClientTurn,
        book: &mut Book,
    ) {
        book.offered += count as u64;
        turn.operations += count;
        let session = &mut self.sessions[index];
        session.open += count;
        let offered = u32::try_from(count).expect("a moment's operations");
        session.offered.push_back(Offered { origin: self.place, at, count: offered });
        if let Some(machine) = &mut session.machine {
            let operations = (0..count).map(|_| (at, self.operation.clone())).collect();
            machine.handle(micros(now), SessionEvent::SubmitMany(operations));
            return self.drain(index, now, turn, book);
        }
        let most = (Request::BYTES_MAX / self.operation.len()).clamp(1, Request::OPERATIONS_MAX);
        let operations = vec![self.operation.clone(); count];
        for part in operations.chunks(most) {
            let chain = self.verifier.committee().chain();
            let request = Request::sign(&session.identity, chain, session.next_sequence, part);
            let request = request.expect("within the limits");
            let to = ReplicaId(u16::try_from(self.place).expect("a member"));
            send(session, self.place, &[to], request, turn, book);
        }
    }

    /// A reply arrives. The error is why it was refused.
    pub(crate) fn reply(
        &mut self,
        now: Nanos,
        client: usize,
        frame: &Frame,
        book: &mut Book,
    ) -> Result<ClientTurn, String> {
        let mut turn = ClientTurn::default();
        let message =
            Verified::<Incoming>::check(frame.content.clone(), frame.peer, &self.verifier);
        let message = message.map_err(|reason| format!("a client refused a reply: {reason}"))?;
        let from = ReplicaId(u16::try_from(frame.from).expect("a member"));
        if let Some(machine) = &mut self.sessions[client].machine {
            machine.handle(micros(now), SessionEvent::Message { from, message });
        }
        self.drain(client, now, &mut turn, book);
        Ok(turn)
    }

    pub(crate) fn wake(&mut self, now: Nanos, book: &mut Book) -> ClientTurn {
        let mut turn = ClientTurn::default();
        for index in 0..self.sessions.len() {
            let Some(machine) = &mut self.sessions[index].machine else { continue };
            if machine.next_timeout().is_some_and(|due| due <= micros(now)) {
                machine.handle_timeout(micros(now));
                self.drain(index, now, &mut turn, book);
            }
        }
        turn
    }

    pub(crate) fn next_wake(&self) -> Option<Nanos> {
        let machines = self.sessions.iter().filter_map(|session| session.machine.as_ref());
        machines.filter_map(Session::next_timeout).min().map(|due| due.0 * 1_000)
    }

    fn drain(&mut self, index: usize, now: Nanos, turn: &mut ClientTurn, book: &mut Book) {
        let session = &mut self.sessions[index];
        while let Some(effect) = session.machine.as_mut().and_then(Session::poll) {
            match effect {
                SessionEffect::Send { to, request } => {
                    let one = [to];
                    let to = if self.all.is_empty() { &one[..] } else { &self.all };
                    send(session, self.place, to, request, turn, book);
                }
                SessionEffect::Completed(completed) => {
                    turn.operations += 1;
                    session.open -= 1;
                    book.acknowledged(now, completed.tag, 1);
                }
                SessionEffect::Ask { .. } | SessionEffect::Answered(_) => {
                    unreachable!("a load asks no questions")
                }
                SessionEffect::Overloaded { tag, .. } => {
                    book.refused += 1;
                    session.open -= 1;
                    take_back(&mut session.offered, tag);
                }
            }
        }
        if let Arrivals::Closed(operations) = self.arrivals
            && self.sessions[index].open == 0
        {
            self.hand(index, now, now, operations.get(), turn, book);
        }
    }
}

/// A request leaves; on its first way, the operations in it are noted down.
fn send(
    session: &mut Session1,
    place: usize,
    to: &[ReplicaId],
    request: Request,
    turn: &mut ClientTurn,
    book: &mut Book,
) {
    if request.sequence >= session.next_sequence {
        session.next_sequence = request.sequence + 1;
        let count = u32::try_from(request.operations.len()).expect("at most 256");
        book.sent(session.id, request.sequence, take_first(&mut session.offered, count));
    }
    turn.requests += 1;
    let message = Message::Request(request);
    let frame = Frame::new(place, Peer::Client(session.id), None, &message);
    turn.sends.extend(to.iter().map(|to| (*to, Rc::clone(&frame))));
}

/// The operations offered first.
fn take_first(offered: &mut VecDeque<Offered>, mut count: u32) -> Vec<Offered> {
    let mut taken = Vec::new();
    while count > 0 {
        let Some(first) = offered.front_mut() else { break };
        let part = first.count.min(count);
        taken.push(Offered { count: part, ..*first });
        first.count -= part;
        count -= part;
        if first.count == 0 {
            offered.pop_front();
        }
    }
    taken
}

/// An operation offered at `at` was not taken.
fn take_back(offered: &mut VecDeque<Offered>, at: Nanos) {
    if let Some(last) = offered.iter_mut().rev().find(|one| one.at == at) {
        last.count = last.count.saturating_sub(1);
    }
    offered.retain(|one| one.count > 0);
}

pub(crate) fn micros(now: Nanos) -> Time {
    Time(now / 1_000)
}

/// How often operations are handed over: those that come in between come together.
pub(crate) fn tick(bundle_delay: Duration) -> Nanos {
    (nanos(bundle_delay) / 5).clamp(1_000_000, 10_000_000)
}
