//! What jobs do, and what they cost: carried out when their service begins.

use super::cast::{Outgoing, Validator};
use super::effects::{Done, Out};
use super::frames::Frame;
use super::load::{ClientTurn, micros};
use super::observed::Given;
use super::stage::Stage;
use super::stations::{self, Job, Kind};
use super::{Nanos, Prices, Profile};
use crate::class::Class;
use quorate_consensus::chained;
use quorate_crypto::counts::{self, OpCounts};
use quorate_engine::{Incoming, Message};
use quorate_types::machine::Task;
use quorate_types::{Effect, Event, Lane, Machine, Peer, Recipients, ReplicaId, Verified};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Instant;

impl Stage {
    /// Carries a job out: what comes of it when its service ends, and how long that takes alone.
    pub(crate) fn carry_out(&mut self, member: usize, kind: Kind, job: Job) -> (Nanos, Done) {
        let _ = counts::take();
        let net = self.prices.net;
        let (us, done) = match job {
            Job::Send { to, frame } => {
                let us = net.send_frame_us + frame.bytes as f64 * net.send_byte_ns / 1e3;
                (us, Done::Sent(to, frame))
            }
            Job::Spread { to, frame } => {
                let others = to.len() - usize::from(to.contains(&member));
                let each = net.send_frame_us + frame.bytes as f64 * net.send_byte_ns / 1e3;
                (others as f64 * each, Done::Spread(to, frame))
            }
            Job::Take(frame) => {
                let parts = frame.each().count() as f64;
                let us =
                    parts * net.receive_frame_us + frame.bytes as f64 * net.receive_byte_ns / 1e3;
                (us, Done::Taken(frame))
            }
            Job::Check(frame) => return self.check_all(member, kind, &frame),
            Job::Combine(job) => {
                let done = Done::Combined(Box::new(job.run()));
                if self.profile == Profile::Reference {
                    let adding = counts::take().adding();
                    return (self.prices.of(&adding) as Nanos, done);
                }
                (0.0, done)
            }
            Job::Tell(events) => {
                let mut turn = Turn::default();
                for event in events {
                    self.handle(member, Some(event), &mut turn);
                }
                turn.end()
            }
            Job::Tick => {
                let mut turn = Turn::default();
                self.handle(member, None, &mut turn);
                turn.end()
            }
            Job::Execute(block) => {
                match self.ledger.execute(&block, self.cast.validators[member].lives) {
                    Ok(executed) => {
                        let prices = self.prices.execution;
                        let bodies = block.bodies.iter();
                        let requests: usize = bodies.map(|body| body.requests.len()).sum();
                        let (block_us, operation_us) = prices.of(self.work);
                        let us = block_us
                            + requests as f64 * prices.request_us
                            + executed.operations as f64 * operation_us;
                        let _ = counts::take();
                        (us, Done::Executed(executed))
                    }
                    Err(text) => (0.0, Done::Broken(text)),
                }
            }
            Job::Snapshot(height) => (self.prices.execution.block_us, Done::Snapshot(height)),
            Job::Write { entries, bytes } => {
                let log = self.prices.log;
                let us =
                    log.group_us + entries as f64 * log.entry_us + bytes as f64 * log.byte_ns / 1e3;
                (us, Done::Written)
            }
            Job::Submit { operations, at } => {
                let turn =
                    self.cast.clients[member].submit(self.now, at, operations, &mut self.book);
                self.client_turn(turn)
            }
            Job::ClientTick => {
                let turn = self.cast.clients[member].wake(self.now, &mut self.book);
                self.client_turn(turn)
            }
            Job::Reply(frame) => match self.reply(member, &frame) {
                Ok(turn) => {
                    let (us, done) = self.client_turn(turn);
                    let (bytes, parts) = (frame.bytes as f64, frame.each().count() as f64);
                    let taking = net.receive_frame_us
                        + bytes * (net.receive_byte_ns + net.codec_byte_ns) / 1e3
                        + parts * (net.codec_us + self.prices.client.reply_us);
                    (us + taking, done)
                }
                Err(text) => (0.0, Done::Broken(text)),
            },
        };
        let counted = self.counted(kind);
        ((us * 1e3 + counted) as Nanos, done)
    }

    /// What the operations counted since the last time cost a station, in nanoseconds. Clients of the
    /// reference sign nothing, so neither they nor those who check what they sent pay for signatures.
    fn counted(&self, kind: Kind) -> f64 {
        let counts = counts::take();
        let unsigned =
            self.profile == Profile::Reference && matches!(kind, Kind::Client | Kind::Checks);
        self.prices.of(&if unsigned { counts.hashing() } else { counts })
    }

    /// A client's sessions take what came for them.
    fn reply(&mut self, member: usize, frame: &Rc<Frame>) -> Result<ClientTurn, String> {
        let mut all = ClientTurn::default();
        for part in frame.each() {
            let Some(session) = self.session_of(part) else { continue };
            let client = &mut self.cast.clients[member];
            let hashed = counts::peek().hashed_bytes;
            let began = self.observed.as_ref().map(|_| Instant::now());
            let turn = client.reply(self.now, session, part, &mut self.book)?;
            if let (Some(began), Some(observed)) = (began, &mut self.observed) {
                let hashed = counts::peek().hashed_bytes - hashed;
                observed.add(Given::Replied, began.elapsed(), turn.operations, hashed);
            }
            all.join(turn);
        }
        Ok(all)
    }

    fn client_turn(&self, turn: ClientTurn) -> (f64, Done) {
        let (prices, net) = (self.prices.client, self.prices.net);
        let bytes: usize = turn.sends.iter().map(|(_, frame)| frame.bytes).sum();
        let us = prices.operation_us * turn.operations as f64
            + prices.request_us * turn.requests as f64
            + net.send_frame_us * turn.sends.len() as f64
            + net.send_byte_ns * bytes as f64 / 1e3;
        (us, Done::Client(turn.sends))
    }

    /// Decodes and checks a frame, or each that was taken up with it.
    fn check_all(&mut self, member: usize, kind: Kind, frame: &Rc<Frame>) -> (Nanos, Done) {
        let urgent = kind == Kind::Votes;
        let class = if urgent { stations::Class::Urgent } else { stations::Class::Bulk };
        let (mut cost, mut events) = (0, Vec::new());
        for part in frame.each() {
            match self.check(member, kind, part) {
                Ok((took, message)) => {
                    let from = part.peer;
                    cost += took;
                    events.extend(message.map(|message| Event::Message { from, message }));
                }
                Err(text) => return (0, Done::Broken(text)),
            }
        }
        let done = if events.is_empty() { Done::Nothing } else { Done::Checked(events, class) };
        (cost, done)
    }

    /// What is the same for every receiver is charged to each and computed once. The error is why a
    /// message was refused.
    fn check(
        &mut self,
        member: usize,
        kind: Kind,
        frame: &Rc<Frame>,
    ) -> Result<(Nanos, Option<Verified<Incoming>>), String> {
        if let Some((message, cost)) = frame.known() {
            return Ok((cost, Some(message)));
        }
        let verifier = &self.cast.validators[member].verifier;
        let checked = Verified::<Incoming>::check(frame.content.clone(), frame.peer, verifier);
        let counted = self.counted(kind);
        let net = self.prices.net;
        // A body's bytes are looked at by its hash alone.
        let decoded = if frame.lane == Lane::Bulk { 0 } else { frame.bytes };
        let codec = net.codec_us * 1e3 + decoded as f64 * net.codec_byte_ns;
        let mut cost = (codec + counted) as Nanos;
        match checked {
            Ok(message) => {
                if self.profile == Profile::Reference && is_share(&message) {
                    cost += self.prices.of(&OpCounts::one_share(self.scheme)) as Nanos;
                }
                frame.remember(&message, cost);
                Ok((cost, Some(message)))
            }
            Err(reason) if reason.is_innocent() => Ok((cost, None)),
            Err(reason) => Err(format!(
                "validator {member} refused a message of {:?} with the tag {}: {reason}",
                frame.peer,
                frame.tag()
            )),
        }
    }

    /// The machine handles an event, or its timer; what it asks for leaves when its service ends.
    fn handle(&mut self, member: usize, event: Option<Event<Incoming>>, turn: &mut Turn) {
        let now = micros(self.now);
        turn.us += match &event {
            Some(event) => self.price_of(event),
            None => self.prices.machine_thread.other_us,
        };
        let (given, size) = (Given::of(event.as_ref()), self.size_of(event.as_ref()));
        let validator = &mut self.cast.validators[member];
        if event.is_none() {
            validator.tick_waits = false;
        }
        let began = self.observed.as_ref().map(|_| (Instant::now(), counts::peek().hashed_bytes));
        if let Some(event) = event {
            validator.machine.handle(now, event);
        }
        if validator.machine.next_timeout().is_some_and(|due| due <= now) {
            validator.machine.handle_timeout(now);
        }
        if let (Some((began, hashed)), Some(observed)) = (began, &mut self.observed) {
            let hashed = counts::peek().hashed_bytes - hashed;
            observed.add(given, began.elapsed(), size, hashed);
        }
        if self.profile == Profile::Reference && given == Given::Executed {
            // Its replicas answer nobody.
            counts::take();
        }
        while let Some(effect) = self.cast.validators[member].machine.poll() {
            match self.prepare(member, effect, &mut turn.us) {
                Some(Out::Send(Outgoing { to: Recipients::Client(client), frame })) => {
                    if let Some((place, _)) = self.client_of(client) {
                        turn.replies.entry(place).or_default().push(frame);
                    }
                }
                out => turn.outs.extend(out),
            }
        }
    }

    /// What a price grows with: a stored body's requests, an executed height's replies.
    fn size_of(&self, event: Option<&Event<Incoming>>) -> usize {
        match event {
            Some(Event::Stored(name)) => self.ledger.requests(name),
            Some(Event::Executed(executed)) => executed.answers.len(),
            _ => 0,
        }
    }

    /// Encodes what is sent, and adds up what carrying out an effect costs the machine's thread.
    fn prepare(&mut self, member: usize, effect: Effect<Message>, us: &mut f64) -> Option<Out> {
        let (prices, net) = (self.prices.machine_thread, self.prices.net);
        match effect {
            Effect::Send { to, message, .. } => {
                if matches!(to, Recipients::Client(_)) && self.profile == Profile::Reference {
                    return None;
                }
                let id = ReplicaId(u16::try_from(member).expect("a member"));
                let client = match to {
                    Recipients::Client(client) => Some(client),
                    _ => None,
                };
                let frame = Frame::new(member, Peer::Replica(id), client, &message);
                self.milestones.said(self.now, &message, frame.bytes);
                let encoded = if frame.lane == Lane::Bulk { 0 } else { frame.bytes };
                let recipients =
                    if to == Recipients::All { self.cast.validators.len() - 1 } else { 1 };
                *us += net.codec_us
                    + encoded as f64 * net.codec_byte_ns / 1e3
                    + recipients as f64 * prices.send_us;
                if matches!(message, Message::Reply(_)) {
                    *us += prices.reply_us;
                }
                Some(Out::Send(Outgoing { to, frame }))
            }
            Effect::Task(Task::Execute(block)) => {
                let requests: usize = block.bodies.iter().map(|body| body.requests.len()).sum();
                *us += requests as f64 * prices.body_request_us;
                Some(Out::Effect(Box::new(Effect::Task(Task::Execute(block)))))
            }
            other => Some(Out::Effect(Box::new(other))),
        }
    }

    /// What handling an event costs, hashes and signatures apart.
    fn price_of(&self, event: &Event<Incoming>) -> f64 {
        let prices = &self.prices.machine_thread;
        match event {
            Event::Message { message, .. } => match &**message {
                Incoming::Request(_) => prices.request_us,
                Incoming::Body(_) => prices.body_us,
                Incoming::Consensus(message) | Incoming::Inline(message, _) => {
                    match Class::of(message) {
                        Class::Proposal => prices.proposal_us,
                        Class::Vote => prices.vote_us,
                        Class::Change => prices.timeout_us,
                    }
                }
                _ => prices.other_us,
            },
            Event::Stored(name) => {
                let requests = self.ledger.requests(name);
                prices.stored_us + requests as f64 * prices.body_request_us
            }
            Event::Combined(_) => prices.combined_us,
            Event::Executed(_) => prices.executed_us,
            _ => prices.other_us,
        }
    }
}

/// A turn of the machine's thread.
#[derive(Default)]
struct Turn {
    us: f64,
    outs: Vec<Out>,
    /// By the place that they go to.
    replies: BTreeMap<usize, Vec<Rc<Frame>>>,
}

impl Turn {
    /// How long it takes, and what leaves at its end.
    fn end(self) -> (f64, Done) {
        let mut outs = self.outs;
        let gathered = self.replies.into_values().filter_map(Frame::gathered);
        outs.extend(gathered.filter_map(|frame| {
            let to = Recipients::Client(frame.client?);
            Some(Out::Send(Outgoing { to, frame }))
        }));
        (self.us, Done::Outs(outs))
    }
}

/// Whether a message carries a share, which the reference checks as it comes.
fn is_share(message: &Incoming) -> bool {
    use chained::Message::{PhaseVote, Timeout, Vote};
    match message {
        Incoming::Consensus(message) => {
            matches!(message.chained(), Some(Vote(_) | PhaseVote(_) | Timeout(_)))
        }
        _ => false,
    }
}

/// The list as the reference implementation pays it.
///
/// Without TLS a byte costs a socket's copies alone, 0.55 of both (0.50 s against 0.90 s a gigabyte at
/// both ends). It hashes with SHA-512, nine times a BLAKE3 byte. Its clients sign nothing and are not
/// answered, its store copies, and it executes nothing.
pub(crate) fn reference_prices(prices: &Prices) -> Prices {
    let mut prices = prices.clone();
    prices.net.send_byte_ns *= 0.55;
    prices.net.receive_byte_ns *= 0.55;
    prices.hash.byte_ns *= 9.0;
    prices.execution.block_us = 0.0;
    prices.execution.request_us = 0.0;
    prices.execution.operation_us = 0.0;
    prices.execution.kv_block_us = 0.0;
    prices.execution.kv_put_us = 0.0;
    prices.execution.evm_block_us = 0.0;
    prices.execution.evm_tx_us = 0.0;
    prices.log.sync_us = 0.0;
    prices
}

impl Validator {
    /// Whether the machine takes bulk events: not while the log is far behind (`node::machine`).
    pub(crate) fn takes_bulk(&self) -> bool {
        self.log_bytes <= LOG_BACKLOG_BYTES_MAX
    }
}

const LOG_BACKLOG_BYTES_MAX: usize = 32 * 1024 * 1024;
