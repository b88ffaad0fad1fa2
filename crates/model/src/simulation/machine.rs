//! Turns of the machine's thread: events in, effects out, and what both cost.

use super::state::State;
use crate::frames::{Frame, SharedCheck};
use crate::jobs::{Completion, ReadyEffect};
use crate::service_times::MachineInput;
use crate::time::micros;
use quorate_consensus::MessageClass;
use quorate_crypto::counts;
use quorate_engine::{Incoming, Message};
use quorate_types::machine::{Block, Task};
use quorate_types::{BodyRef, Effect, Event, Lane, Machine, Peer, Recipients, ReplicaId};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A turn of the machine's thread: all events of one job.
#[derive(Default)]
struct Turn {
    us: f64,
    effects: Vec<ReadyEffect>,
    /// Replies by the client that they go to: they leave in one write.
    replies: BTreeMap<usize, Vec<Rc<Frame>>>,
}

impl Turn {
    /// Microseconds that it takes, and what leaves at its end.
    fn end(self) -> (f64, Completion) {
        let mut effects = self.effects;
        let gathered = self.replies.into_values().filter_map(Frame::gathered);
        effects.extend(gathered.filter_map(|frame| {
            let (to, lane) = (Recipients::Client(frame.client?), frame.lane);
            Some(Effect::Send { to, lane, waits: true, message: frame })
        }));
        (self.us, Completion::Effects(effects))
    }
}

impl State {
    /// Hands events to the machine, in one turn; `None`: calls its timer.
    pub(crate) fn machine_turn(
        &mut self,
        member: usize,
        events: Option<Vec<Event<Incoming>>>,
    ) -> (f64, Completion) {
        let mut turn = Turn::default();
        match events {
            Some(events) => {
                for event in events {
                    self.handle(member, Some(event), &mut turn);
                }
            }
            None => self.handle(member, None, &mut turn),
        }
        turn.end()
    }

    /// The machine handles an event, or its timer; what it asks for leaves when the turn ends.
    fn handle(&mut self, member: usize, event: Option<Event<Incoming>>, turn: &mut Turn) {
        self.set_pace(member);
        let now = micros(self.now);
        turn.us += self.price_of(event.as_ref());
        let (input, size) = (MachineInput::of(event.as_ref()), self.size_of(event.as_ref()));
        let validator = &mut self.nodes.validators[member];
        if event.is_none() {
            validator.timeout_queued = false;
        }
        let began =
            self.service_times.as_ref().map(|_| (Instant::now(), counts::peek().hashed_bytes));
        if let Some(event) = event {
            validator.machine.handle(now, event);
        }
        if validator.machine.next_timeout().is_some_and(|due| due <= now) {
            validator.machine.handle_timeout(now);
        }
        if let (Some((began, hashed)), Some(times)) = (began, &mut self.service_times) {
            let hashed = counts::peek().hashed_bytes - hashed;
            times.add(input, began.elapsed(), size, hashed);
        }
        if !self.behaviour.answers_clients && input == MachineInput::Executed {
            counts::take();
        }
        self.collect_effects(member, turn);
    }

    /// Now and then: what pace a member's wait for processors makes, as in a running validator.
    fn set_pace(&mut self, member: usize) {
        let (now, validator) = (micros(self.now), &mut self.nodes.validators[member]);
        if !self.behaviour.paces || !validator.pacer.is_due(now) {
            return;
        }
        let (waited, decided) =
            (Duration::from_nanos(validator.ready), validator.machine.decided());
        if let Some(pace) = validator.pacer.look(now, waited, decided) {
            validator.machine.handle(now, Event::Pace(pace));
        }
    }

    /// Takes the effects out of the machine.
    fn collect_effects(&mut self, member: usize, turn: &mut Turn) {
        while let Some(effect) = self.nodes.validators[member].machine.poll() {
            match self.prepare(member, effect, &mut turn.us) {
                Some(Effect::Send { to: Recipients::Client(client), message, .. }) => {
                    if let Some((place, _)) = self.client_of(client) {
                        turn.replies.entry(place).or_default().push(message);
                    }
                }
                ready => turn.effects.extend(ready),
            }
        }
    }

    /// Encodes what is sent, and adds what an effect costs the machine's thread.
    fn prepare(
        &mut self,
        member: usize,
        effect: Effect<Message>,
        us: &mut f64,
    ) -> Option<ReadyEffect> {
        if let Effect::Task(Task::Execute(block)) = &effect {
            *us += requests(block) as f64 * self.prices.machine_thread.body_request_us;
        }
        effect.try_map_message(|to, message| self.encode(member, to, &message, us))
    }

    /// Encodes a message; `None` of an answer where clients get none.
    fn encode(
        &mut self,
        member: usize,
        to: Recipients,
        message: &Message,
        us: &mut f64,
    ) -> Option<Rc<Frame>> {
        let (prices, net) = (self.prices.machine_thread, self.prices.net);
        let client = match to {
            Recipients::Client(client) => Some(client),
            _ => None,
        };
        if client.is_some() && !self.behaviour.answers_clients {
            return None;
        }
        let id = ReplicaId(u16::try_from(member).expect("a member"));
        let check = self.shared_check(message);
        let mut frame = Frame::new(member, Peer::Replica(id), client, message, check);
        if let (Recipients::All, Message::Body(body)) = (to, message) {
            frame = frame.spreading(body.reference);
        }
        self.view_change.on_sent(self.now, message, frame.bytes);
        let encoded = if frame.lane == Lane::Bulk { 0 } else { frame.bytes };
        let recipients = if to == Recipients::All { self.nodes.validators.len() - 1 } else { 1 };
        *us += net.codec_us
            + encoded as f64 * net.codec_byte_ns / 1e3
            + recipients as f64 * prices.send_us;
        if matches!(message, Message::Reply(_)) {
            *us += prices.reply_us;
        }
        Some(frame)
    }

    /// A check that needs nothing of its receiver: a body is parsed, hashed and its requests'
    /// signatures checked alike everywhere, whoever sends it; of a vote only the form is checked.
    fn shared_check(&mut self, message: &Message) -> Option<SharedCheck> {
        match message {
            Message::Body(body) => Some(self.execution.check_of(body.reference)),
            Message::Consensus(message) => {
                (MessageClass::of(message) == MessageClass::Vote).then(SharedCheck::default)
            }
            _ => None,
        }
    }

    /// Size that a price grows with: a stored body's requests, an executed height's replies.
    fn size_of(&self, event: Option<&Event<Incoming>>) -> usize {
        match event {
            Some(Event::Stored(name)) => self.execution.requests(name),
            Some(Event::Executed(executed)) => executed.answers.len(),
            _ => 0,
        }
    }

    /// Microseconds of reading bodies back from a store that is no log.
    fn reads_us(&self, bodies: &[BodyRef]) -> f64 {
        let Some((us, byte_ns)) = self.behaviour.read else { return 0.0 };
        let bytes = bodies.iter().map(|body| self.execution.bytes(body) as f64);
        bytes.map(|bytes| us + bytes * byte_ns / 1e3).sum()
    }

    /// Microseconds that handling an event costs, hashes and signatures apart.
    fn price_of(&self, event: Option<&Event<Incoming>>) -> f64 {
        let prices = &self.prices.machine_thread;
        match event {
            Some(Event::Message { message, .. }) => match &**message {
                Incoming::Request(_) => prices.request_us,
                Incoming::Body(_) => prices.body_us,
                Incoming::Consensus(message) | Incoming::Inline(message, _) => {
                    match MessageClass::of(message) {
                        MessageClass::Proposal => {
                            let bodies = message.proposed_bodies().unwrap_or_default();
                            prices.proposal_us + self.reads_us(bodies)
                        }
                        MessageClass::Vote => prices.vote_us,
                        MessageClass::Change => prices.timeout_us,
                    }
                }
                _ => prices.other_us,
            },
            Some(Event::Stored(name)) => {
                let requests = self.execution.requests(name);
                prices.stored_us + requests as f64 * prices.body_request_us
            }
            Some(Event::Combined(_)) => prices.combined_us,
            Some(Event::Executed(_)) => prices.executed_us,
            _ => prices.other_us,
        }
    }
}

/// Number of requests that a block orders.
pub(crate) fn requests(block: &Block) -> usize {
    block.bodies.iter().map(|body| body.requests.len()).sum()
}
