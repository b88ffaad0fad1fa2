//! The run of one plan: what is said arrives or not, in an order that its number draws; when
//! nothing is under way, the next timer rings.

use super::border::Border;
use super::disk::Disk;
use super::epoch::{EpochRun, Place};
use super::ground::Ground;
use super::plan::Plan;
use super::seat::SeatEffect;
use crate::oracles::{Observation, Violation};
use quorate_consensus::{Input, Message, MessageClass};
use quorate_crypto::{Digest, Share};
use quorate_deterministic::Rng;
use quorate_types::{
    BlockId, HandOver, HandedOver, Height, Machine, PayloadHeader, Peer, Recipients, Time,
    Verified, View,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// Timers that ring before obstacles end, whatever views were reached.
const RINGS_MAX: u32 = 24;

/// Timers that ring after that until everybody must have decided.
const TAIL_RINGS_MAX: u32 = 64;

/// Heights that everybody must decide after the obstacles.
const TAIL_HEIGHTS: u64 = 2;

/// Messages that arrive between two timers, at most, where a second epoch goes on without rest
/// while some are still in the first.
const MESSAGES_BETWEEN_RINGS_MAX: u32 = 200;

/// A run with more messages than this never comes to rest.
const MESSAGES_MAX: u32 = 50_000;

/// Number of messages that may overtake another.
const OVERTAKEN_MAX: usize = 6;

/// Outcome of one plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Number of heights that the honest machine furthest ahead decided.
    pub decided: u64,
    /// The highest view of an honest machine.
    pub view: View,
    /// Number of timers that fired.
    pub rings: u32,
    /// Number of messages that arrived.
    pub messages: u32,
    /// The hash of all that arrived and was decided, in order.
    pub trace: Digest,
    /// First property that was broken, if any.
    pub verdict: Result<(), Violation>,
}

/// Content of what is under way between two machines of an epoch.
pub(super) enum Frame {
    Protocol(Message),
    /// A statement of one epoch, shown in another.
    Replayed(Message),
    /// A share towards the hand-over that ends the epoch.
    Share(HandOver, Share),
    /// How the epoch ended, or began.
    Step(Arc<HandedOver>),
}

pub(super) struct Envelope {
    pub(super) epoch: usize,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) frame: Frame,
}

/// A run: the epochs that somebody began, and what is under way.
pub(super) struct World<'a> {
    pub(super) ground: &'a Ground,
    pub(super) now: Time,
    pub(super) epochs: Vec<EpochRun>,
    /// The border behind the first epoch, if the plan has one.
    pub(super) border: Option<Border>,
    pub(super) wire: VecDeque<Envelope>,
    pub(super) order: Rng,
    rings: u32,
    messages: u32,
    trace: blake3::Hasher,
}

/// Runs one plan to its end.
pub(super) fn run(plan: &Arc<Plan>, ground: &Ground) -> Outcome {
    let first = EpochRun::new(Arc::clone(plan), ground.epoch(plan));
    let mut world = World {
        ground,
        now: Time(1_000),
        border: plan.next.as_deref().map(|next| Border::new(ground, &first, next)),
        epochs: vec![first],
        wire: VecDeque::new(),
        order: Rng::new(plan.number, "twins order", 0),
        rings: 0,
        messages: 0,
        trace: blake3::Hasher::new_derive_key("quorate sim twins trace"),
    };
    let verdict = world.run();
    let reached = world.epochs.iter().map(EpochRun::reached);
    let (decided, views): (Vec<u64>, Vec<u64>) = reached.map(|(d, view)| (d, view.0)).unzip();
    Outcome {
        decided: decided.iter().sum(),
        view: View(views.iter().sum()),
        rings: world.rings,
        messages: world.messages,
        trace: Digest(*world.trace.finalize().as_bytes()),
        verdict,
    }
}

impl World<'_> {
    fn run(&mut self) -> Result<(), Violation> {
        for machine in self.epochs[0].machines() {
            self.begin(0, machine, Disk::default())?;
        }
        self.obstruct(0)?;
        if self.border.is_none() {
            return self.make_progress(0);
        }
        self.finish(0, Self::is_first_epoch_left, |_| ("progress", "not in the next".to_owned()))?;
        self.obstruct(1)?;
        self.make_progress(1)
    }

    fn is_first_epoch_left(&self) -> bool {
        self.epochs[0].is_left()
    }

    /// What an epoch's plan has in the way of its machines, and then no more of it.
    fn obstruct(&mut self, epoch: usize) -> Result<(), Violation> {
        let rings_max = self.rings + RINGS_MAX;
        let is_past = |world: &Self| world.epochs[epoch].is_past_the_plan();
        while self.rings < rings_max && !is_past(self) {
            self.settle_until(is_past)?;
            if !self.ring()? {
                break;
            }
        }
        self.epochs[epoch].tail = true;
        Ok(())
    }

    /// Without obstacles everybody decides two heights more, or the one that ends the epoch.
    fn make_progress(&mut self, epoch: usize) -> Result<(), Violation> {
        let of = &self.epochs[epoch];
        let ends = of.plan.ends_from.is_some();
        let target = if ends { Height(u64::MAX) } else { Height(of.last().0 + TAIL_HEIGHTS) };
        let are_there = move |world: &Self| {
            let of = &world.epochs[epoch];
            of.honest_are_at(of.stop().unwrap_or(target))
        };
        let is_done = |world: &Self| (world.epochs[epoch].together || ends) && are_there(world);
        self.finish(epoch, is_done, |world| match (are_there(world), ends) {
            (true, _) => {
                let text = "no view had all honest members together under an honest leader";
                ("together", text.to_owned())
            }
            (false, true) => ("progress", "not at the end".to_owned()),
            (false, false) => ("progress", format!("not at {target}")),
        })
    }

    /// Goes on until it is done, or says what is missing.
    fn finish(
        &mut self,
        epoch: usize,
        is_done: impl Fn(&Self) -> bool,
        missing: impl Fn(&Self) -> (&'static str, String),
    ) -> Result<(), Violation> {
        let rings_max = self.rings + TAIL_RINGS_MAX;
        loop {
            self.settle_until(&is_done)?;
            if is_done(self) {
                return Ok(());
            }
            if self.rings >= rings_max || !self.ring()? {
                let (oracle, text) = missing(self);
                return broken(oracle, self.epochs[epoch].describe() + &text);
            }
        }
    }

    /// A machine begins in an epoch, over what its host keeps.
    pub(super) fn begin(
        &mut self,
        epoch: usize,
        machine: usize,
        disk: Disk,
    ) -> Result<(), Violation> {
        let said = self.epochs[epoch].enter(machine, disk).start(self.now);
        self.take(epoch, machine, said)
    }

    /// Everything that is under way arrives, and what follows from it, or until enough has
    /// happened.
    fn settle_until(&mut self, enough: impl Fn(&Self) -> bool) -> Result<(), Violation> {
        let messages_max = self.messages + MESSAGES_BETWEEN_RINGS_MAX;
        loop {
            self.cross_the_border()?;
            while !self.wire.is_empty() {
                let next = self.order.index(self.wire.len().min(OVERTAKEN_MAX));
                let envelope = self.wire.remove(next).expect("there are so many");
                self.deliver(envelope)?;
                self.cross_the_border()?;
                let is_time = self.border.is_some() && self.messages >= messages_max;
                if enough(self) || is_time {
                    return Ok(());
                }
                if self.messages > MESSAGES_MAX {
                    return broken("livelock", format!("{MESSAGES_MAX} messages"));
                }
            }
            if !self.fetch()? {
                return Ok(());
            }
        }
    }

    fn deliver(&mut self, envelope: Envelope) -> Result<(), Violation> {
        self.messages += 1;
        self.note(&envelope);
        let Envelope { epoch, from, to, frame } = envelope;
        match frame {
            Frame::Protocol(message) => match self.epochs[epoch].place(to) {
                Place::Here(_) => self.hear(epoch, from, to, message),
                Place::Waiting => self.show_step(epoch, from, to),
                Place::Gone => self.show_step(epoch, to, from),
            },
            Frame::Replayed(message) => self.hear_replayed(epoch, from, to, message),
            Frame::Share(content, share) => self.hear_share(from, to, content, share),
            Frame::Step(step) => self.hear_step(epoch, to, &step),
        }
    }

    fn note(&mut self, envelope: &Envelope) {
        let Envelope { epoch, from, to, frame } = envelope;
        let (kind, view) = match frame {
            Frame::Protocol(said) => (MessageClass::of(said) as u8, said.view()),
            Frame::Replayed(said) => (8 + MessageClass::of(said) as u8, said.view()),
            Frame::Share(..) => (16, View(0)),
            Frame::Step(_) => (17, View(0)),
        };
        let epoch = 32 * u8::try_from(*epoch).expect("two");
        let mark = [*from as u8, *to as u8, epoch + kind];
        self.trace.update(&mark).update(&view.0.to_le_bytes());
    }

    /// A machine hears a message of its epoch.
    pub(super) fn hear(
        &mut self,
        epoch: usize,
        from: usize,
        to: usize,
        message: Message,
    ) -> Result<(), Violation> {
        let (plan, now) = (Arc::clone(&self.epochs[epoch].plan), self.now);
        let sender = plan.member(from);
        let Some(seat) = self.epochs[epoch].seat_mut(to) else { return Ok(()) };
        match Verified::check(message, Peer::Replica(sender), seat.verifier.as_ref()) {
            Ok(message) => {
                let input = Input::Message { from: sender, message: Box::new(message) };
                let said = seat.feed(now, input);
                self.take(epoch, to, said)
            }
            Err(reason) if plan.is_honest(from) && plan.is_honest(to) => {
                let refused = Observation::Refused { reason: &reason, tag: 0 };
                self.epochs[epoch].oracles.observe(&refused)
            }
            Err(_) => Ok(()),
        }
    }

    /// Applies an effect of a machine.
    pub(super) fn take(
        &mut self,
        epoch: usize,
        machine: usize,
        said: Vec<SeatEffect>,
    ) -> Result<(), Violation> {
        let honest = self.epochs[epoch].plan.is_honest(machine);
        for said in said {
            match said {
                SeatEffect::Send(to, message) => self.send(epoch, machine, to, &message)?,
                SeatEffect::Decided { block, header } => {
                    self.decided(epoch, machine, block, &header)?;
                }
                SeatEffect::Halted(halt) if honest => {
                    let replica = self.epochs[epoch].plan.member(machine);
                    let halted = Observation::Halted { replica, halt: &halt };
                    self.epochs[epoch].oracles.observe(&halted)?;
                }
                SeatEffect::Halted(_) => {}
            }
        }
        self.epochs[epoch].look_around();
        self.restart_as_planned(epoch, machine)
    }

    fn send(
        &mut self,
        epoch: usize,
        from: usize,
        to: Recipients,
        message: &Message,
    ) -> Result<(), Violation> {
        let of = &mut self.epochs[epoch];
        if of.plan.is_honest(from) {
            of.check_the_end(from, message)?;
            let replica = of.plan.member(from);
            let message = quorate_engine::Message::Consensus(message.clone());
            let released = Observation::Released { replica, message: &message, tag: 0, bytes: 0 };
            of.oracles.observe(&released)?;
        }
        let (view, class) = (message.view(), MessageClass::of(message));
        for machine in of.machines() {
            let meant = match to {
                Recipients::All => true,
                Recipients::One(member) => of.plan.member(machine) == member,
                Recipients::Client(_) => false,
            };
            if meant && of.reaches(view, class, from, machine) {
                let frame = Frame::Protocol(message.clone());
                self.wire.push_back(Envelope { epoch, from, to: machine, frame });
            }
        }
        self.replay(epoch, from, message);
        Ok(())
    }

    fn decided(
        &mut self,
        epoch: usize,
        machine: usize,
        block: BlockId,
        header: &PayloadHeader,
    ) -> Result<(), Violation> {
        let of = &mut self.epochs[epoch];
        if of.plan.is_honest(machine) {
            self.trace.update(&[machine as u8]).update(&block.0.0);
            of.judge(machine, block, header)?;
        }
        of.advance(machine, block, header);
        self.note_decided(epoch, machine, block, header)
    }

    fn restart_as_planned(&mut self, epoch: usize, machine: usize) -> Result<(), Violation> {
        if !self.epochs[epoch].is_to_restart(machine) {
            return Ok(());
        }
        let now = self.now;
        let said = self.epochs[epoch].seat_mut(machine).map(|seat| seat.restart(now));
        self.take(epoch, machine, said.unwrap_or_default())
    }

    /// Answers one question for missing blocks. `false` when nobody asks whom somebody can answer.
    fn fetch(&mut self) -> Result<bool, Violation> {
        for epoch in 0..self.epochs.len() {
            for machine in self.epochs[epoch].machines() {
                if self.fetch_for(epoch, machine)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn fetch_for(&mut self, epoch: usize, machine: usize) -> Result<bool, Violation> {
        let of = &self.epochs[epoch];
        let Some(asks) = of.seat(machine) else { return Ok(false) };
        let Some(target) = asks.behind else { return Ok(false) };
        let (is_here, view) = (asks.machine.state().has_block(target), asks.view());
        let reached = |other: &usize| {
            *other != machine && of.reaches(view, MessageClass::Change, *other, machine)
        };
        let mut others = of.machines().filter(|other| !is_here && reached(other));
        let run = others.find_map(|other| of.seat(other)?.serve(asks, target));
        let now = self.now;
        let asks = self.epochs[epoch].seat_mut(machine).expect("it is here");
        if is_here || run.is_some() {
            asks.behind = None;
        }
        let Some(run) = run else { return Ok(false) };
        let said = asks.feed(now, Input::Run(Box::new(run)));
        self.take(epoch, machine, said)?;
        Ok(true)
    }

    /// The next timers ring. `false` when nobody waits.
    fn ring(&mut self) -> Result<bool, Violation> {
        let machines = self.epochs.iter().flat_map(EpochRun::next_timeouts);
        let border = self.border.as_ref().and_then(Border::next_timeout);
        let Some(due) = machines.chain(border).min() else { return Ok(false) };
        self.now = self.now.max(due);
        self.rings += 1;
        for epoch in 0..self.epochs.len() {
            for machine in self.epochs[epoch].machines() {
                let now = self.now;
                let seat = self.epochs[epoch].seat_mut(machine);
                let is_due = |at: Time| at <= now;
                if let Some(seat) =
                    seat.filter(|seat| seat.machine.next_timeout().is_some_and(is_due))
                {
                    let said = seat.fire(now);
                    self.take(epoch, machine, said)?;
                }
            }
        }
        self.ring_at_the_border()?;
        Ok(true)
    }
}

pub(super) fn broken<T>(oracle: &'static str, text: String) -> Result<T, Violation> {
    Err(Violation { oracle, text })
}
