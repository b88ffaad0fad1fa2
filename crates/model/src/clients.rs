//! Clients: load in open or closed loops through the sessions of the real client, or, for the
//! reference, without any.

use crate::frames::Frame;
use crate::latency::{LatencyLedger, Offered};
use crate::scene::Scene;
use crate::time::{Nanos, micros, nanos};
use crate::workload::{Arrivals, Receivers};
use bytes::Bytes;
use quorate_crypto::{IdentitySecret, KeyFile, SchemeKind};
use quorate_deterministic::Rng;
use quorate_engine::{
    Bundling, CallResult, ClientConfig, Incoming, Message, ReplyGate, Session, SessionEffect,
    SessionEvent, SessionSpec, Verifier,
};
use quorate_types::{ClientId, Machine, Peer, ReplicaId, Request, Verified};
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Operations a second that one session carries without filling its window at seconds of latency.
const SESSION_RATE: f64 = 2_000.0;

/// A request unanswered for so long goes to the next validator; never before two views had their
/// time.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// The client beside a validator: as many sessions as its rate needs.
pub(crate) struct Client {
    place: usize,
    sessions: Vec<ClientSession>,
    operation: Bytes,
    /// Mean rate, in operations a nanosecond.
    rate: f64,
    arrivals: Arrivals,
    /// Its closed loop has begun.
    began: bool,
    /// Time until the next operation, in operations of the mean rate.
    gap: f64,
    rng: Rng,
    /// Turns so far: sessions take the odd operations in turn.
    turn: usize,
    /// Receivers of a request that goes to all; empty where it goes to one.
    all: Vec<ReplicaId>,
    /// Time for which its timer is armed.
    pub(crate) armed: Option<Nanos>,
    verifier: Arc<Verifier>,
}

/// Committee as its clients know it.
pub(crate) struct CommitteeView {
    pub(crate) verifier: Arc<Verifier>,
    /// Leader of the first view.
    pub(crate) leader: ReplicaId,
    /// By validator: whether it does not crash before the end.
    pub(crate) lives: Vec<bool>,
}

/// Number of sessions of a place, and of all together: they go round the places. In a closed loop,
/// and where clients are not answered, those beside validators that crash have none: who waits for
/// one that is gone offers nothing, and who sends to it without looking offers it to nobody.
fn sessions(scene: &Scene, place: usize, lives: &[bool]) -> (usize, usize) {
    let members = usize::from(scene.validators);
    let by_rate = || members.max((scene.load.rate / SESSION_RATE).ceil() as usize);
    let all = scene.load.sessions.map_or_else(by_rate, NonZeroUsize::get);
    let is_open = !matches!(scene.load.arrivals, Arrivals::Closed(_));
    let moves_on = is_open && scene.profile.behaviour().answers_clients;
    let has_clients = |place: &usize| moves_on || lives[*place];
    let turn = (0..place).filter(has_clients).count();
    let turns = (0..members).filter(has_clients).count();
    (if has_clients(&place) { (all + turns - 1 - turn) / turns } else { 0 }, all)
}

/// One session, and the operations offered to it that are in no request yet.
struct ClientSession {
    id: ClientId,
    identity: Arc<IdentitySecret>,
    /// Absent where clients send without waiting for answers.
    machine: Option<Session>,
    /// Replies to what enough have answered are dropped unchecked.
    gate: ReplyGate,
    offered: VecDeque<Offered>,
    next_sequence: u64,
    /// Operations that are not answered yet.
    open: usize,
}

/// Result of a turn of a client.
#[derive(Debug, Default)]
pub(crate) struct ClientTurn {
    pub(crate) sends: Vec<(ReplicaId, Rc<Frame>)>,
    pub(crate) requests: usize,
    pub(crate) operations: usize,
    /// Replies that were checked, and their bytes.
    pub(crate) checked: (usize, usize),
}

impl ClientTurn {
    pub(crate) fn join(&mut self, other: Self) {
        self.sends.extend(other.sends);
        self.checked.0 += other.checked.0;
        self.checked.1 += other.checked.1;
        self.requests += other.requests;
        self.operations += other.operations;
    }
}

impl Client {
    pub(crate) fn new(scene: &Scene, place: usize, committee: &CommitteeView) -> Self {
        let CommitteeView { verifier, leader, lives } = committee;
        let (count, all) = sessions(scene, place, lives);
        let rate = scene.load.rate * count as f64 / all as f64;
        let mut rng = Rng::new(scene.seed, "client", place as u64);
        let answered = scene.profile.behaviour().answers_clients;
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
                let identity = Arc::clone(&identity);
                let spec = SessionSpec { identity, first, next_sequence: 0, voucher: None };
                let config = ClientConfig {
                    bundling: Bundling::after(delay).at_most(most),
                    retry_after: RETRY_AFTER.max(scene.settings.timeout() * 2),
                    ..ClientConfig::new(Arc::clone(verifier.committee()), vec![spec])
                };
                Session::new(Arc::new(config), 0)
            });
            let id = ClientId(identity.public());
            ClientSession {
                id,
                identity,
                machine,
                gate: ReplyGate::new(Arc::clone(verifier.committee())),
                offered: VecDeque::new(),
                next_sequence: 0,
                open: 0,
            }
        };
        let sessions = (0..count).map(|_| session(rng.bytes32())).collect();
        Self {
            place,
            sessions,
            operation: Bytes::from(vec![b'.'; scene.load.tx_bytes]),
            rate: rate / 1e9,
            arrivals: scene.load.arrivals,
            began: false,
            // Clients do not act in step.
            gap: rng.below(1 << 20) as f64 / f64::from(1 << 20),
            rng,
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

    /// Number of operations that come in a span of time; in a closed loop, once, those of all first
    /// requests. `grown`: the share of the rate that is offered now.
    pub(crate) fn arrivals(&mut self, span: Nanos, grown: f64) -> usize {
        if let Arrivals::Closed(operations) = self.arrivals {
            let goes_on = std::mem::replace(&mut self.began, true);
            return if goes_on { 0 } else { operations.get() * self.sessions.len() };
        }
        let mut left = span as f64 * self.rate * grown;
        let mut count = 0;
        while self.gap <= left {
            left -= self.gap;
            count += 1;
            self.gap = match self.arrivals {
                Arrivals::Fixed | Arrivals::Closed(_) => 1.0,
                Arrivals::Poisson => {
                    let uniform = (self.rng.below(1 << 53) + 1) as f64 / (1_u64 << 53) as f64;
                    -uniform.ln()
                }
            };
        }
        self.gap -= left;
        count
    }

    /// Hands operations offered at `at` to the sessions.
    pub(crate) fn submit(
        &mut self,
        now: Nanos,
        at: Nanos,
        operations: usize,
        latencies: &mut LatencyLedger,
    ) -> ClientTurn {
        let mut turn = ClientTurn::default();
        let sessions = self.sessions.len();
        for index in 0..sessions {
            let odd = (index + self.turn) % sessions < operations % sessions;
            let count = operations / sessions + usize::from(odd);
            if count > 0 {
                self.submit_to(index, now, at, count, &mut turn, latencies);
            }
        }
        self.turn += 1;
        turn
    }

    fn submit_to(
        &mut self,
        index: usize,
        now: Nanos,
        at: Nanos,
        count: usize,
        turn: &mut ClientTurn,
        latencies: &mut LatencyLedger,
    ) {
        latencies.offer(now, count);
        turn.operations += count;
        let session = &mut self.sessions[index];
        session.open += count;
        let offered = u32::try_from(count).expect("a moment's operations");
        session.offered.push_back(Offered { origin: self.place, at, count: offered });
        if let Some(machine) = &mut session.machine {
            let operations = (0..count).map(|_| (at, self.operation.clone())).collect();
            machine.handle(micros(now), SessionEvent::SubmitMany(operations));
            return self.drain(index, now, turn, latencies);
        }
        let most = (Request::BYTES_MAX / self.operation.len()).clamp(1, Request::OPERATIONS_MAX);
        let operations = vec![self.operation.clone(); count];
        for part in operations.chunks(most) {
            let network = self.verifier.committee().network();
            let request = Request::sign(&session.identity, network, session.next_sequence, part);
            let request = request.expect("within the limits");
            let to = ReplicaId(u16::try_from(self.place).expect("a member"));
            send(session, self.place, &[to], request, turn, latencies);
        }
    }

    /// Takes a reply, unless enough have answered alike. The error is why it was refused.
    pub(crate) fn reply(
        &mut self,
        now: Nanos,
        client: usize,
        frame: &Frame,
        latencies: &mut LatencyLedger,
    ) -> Result<ClientTurn, String> {
        let mut turn = ClientTurn::default();
        if !self.sessions[client].gate.wants(&frame.head) {
            return Ok(turn);
        }
        turn.checked = (1, frame.bytes);
        let message = Verified::<Incoming>::check(frame.content(), frame.peer, &self.verifier);
        let message = message.map_err(|reason| format!("a client refused a reply: {reason}"))?;
        let from = ReplicaId(u16::try_from(frame.from).expect("a member"));
        let session = &mut self.sessions[client];
        if let Incoming::Reply(reply) = &*message {
            session.gate.passed(from, reply);
        }
        if let Some(machine) = &mut session.machine {
            machine.handle(micros(now), SessionEvent::Message { from, message });
        }
        self.drain(client, now, &mut turn, latencies);
        Ok(turn)
    }

    pub(crate) fn timeout(&mut self, now: Nanos, latencies: &mut LatencyLedger) -> ClientTurn {
        let mut turn = ClientTurn::default();
        for index in 0..self.sessions.len() {
            let Some(machine) = &mut self.sessions[index].machine else { continue };
            if machine.next_timeout().is_some_and(|due| due <= micros(now)) {
                machine.handle_timeout(micros(now));
                self.drain(index, now, &mut turn, latencies);
            }
        }
        turn
    }

    pub(crate) fn next_timeout(&self) -> Option<Nanos> {
        let machines = self.sessions.iter().filter_map(|session| session.machine.as_ref());
        machines.filter_map(Session::next_timeout).min().map(|due| due.0 * 1_000)
    }

    fn drain(
        &mut self,
        index: usize,
        now: Nanos,
        turn: &mut ClientTurn,
        latencies: &mut LatencyLedger,
    ) {
        let session = &mut self.sessions[index];
        while let Some(effect) = session.machine.as_mut().and_then(Session::poll) {
            match effect {
                SessionEffect::Send { to, request } => {
                    let one = [to];
                    let to = if self.all.is_empty() { &one[..] } else { &self.all };
                    send(session, self.place, to, request, turn, latencies);
                }
                SessionEffect::Return { tag, result: CallResult::Completed(_) } => {
                    turn.operations += 1;
                    session.open -= 1;
                    latencies.acknowledged(now, tag, 1);
                }
                SessionEffect::Return { tag, result: CallResult::Overloaded { .. } } => {
                    latencies.refuse(now);
                    session.open -= 1;
                    take_back(&mut session.offered, tag);
                }
                SessionEffect::Query { .. } | SessionEffect::Return { .. } => {
                    unreachable!("a load asks no questions")
                }
            }
        }
        if let Arrivals::Closed(operations) = self.arrivals
            && self.sessions[index].open == 0
        {
            self.submit_to(index, now, now, operations.get(), turn, latencies);
        }
    }
}

/// A request leaves; on its first way, the operations in it are noted down.
fn send(
    session: &mut ClientSession,
    place: usize,
    to: &[ReplicaId],
    request: Request,
    turn: &mut ClientTurn,
    latencies: &mut LatencyLedger,
) {
    if request.sequence >= session.next_sequence {
        session.next_sequence = request.sequence + 1;
        let count = u32::try_from(request.operations.len()).expect("at most 256");
        latencies.sent(session.id, request.sequence, take_first(&mut session.offered, count));
    }
    turn.requests += 1;
    let message = Message::Request(request);
    let frame = Frame::new(place, Peer::Client(session.id), None, &message, None);
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

/// Time between two handovers of operations to the sessions: those that come in between come
/// together.
pub(crate) fn arrival_interval(bundle_delay: Duration) -> Nanos {
    (nanos(bundle_delay) / 5).clamp(1_000_000, 10_000_000)
}
