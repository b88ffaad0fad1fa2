//! What is under way in a run: it arrives or not, in an order that the plan's number draws; when
//! nothing is under way, the next timer rings.

use super::border::Border;
use super::disk::Disk;
use super::epoch::{EpochRun, Place};
use super::ground::Ground;
use super::plan::Plan;
use super::seat::SeatEffect;
use crate::oracles::{Observation, Violation, broken};
use quorate_consensus::{Input, Message, MessageClass};
use quorate_crypto::Share;
use quorate_deterministic::Rng;
use quorate_types::{
    BlockId, HandOver, HandedOver, Machine, PayloadHeader, Peer, Recipients, Time, Verified, View,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// Messages that arrive between two timers, at most, where a second epoch goes on without rest
/// while some are still in the first.
const MESSAGES_BETWEEN_RINGS_MAX: u32 = 200;

/// A run with more messages than this never comes to rest.
const MESSAGES_MAX: u32 = 50_000;

/// Number of messages that may overtake another.
const OVERTAKEN_MAX: usize = 6;

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

/// The epochs that somebody began, and what is under way.
pub(super) struct World<'a> {
    pub(super) ground: &'a Ground,
    pub(super) now: Time,
    pub(super) epochs: Vec<EpochRun>,
    /// The border behind the first epoch, if the plan has one.
    pub(super) border: Option<Border>,
    pub(super) wire: VecDeque<Envelope>,
    pub(super) order: Rng,
    pub(super) rings: u32,
    pub(super) messages: u32,
    pub(super) trace: blake3::Hasher,
}

impl<'a> World<'a> {
    /// A run in which nobody has begun yet.
    pub(super) fn new(plan: &Arc<Plan>, ground: &'a Ground) -> Self {
        let first = EpochRun::new(Arc::clone(plan), ground.epoch(plan));
        World {
            ground,
            now: Time(1_000),
            border: plan.next.as_deref().map(|next| Border::new(ground, &first, next)),
            epochs: vec![first],
            wire: VecDeque::new(),
            order: Rng::new(plan.number, "twins order", 0),
            rings: 0,
            messages: 0,
            trace: blake3::Hasher::new_derive_key("quorate sim twins trace"),
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
    pub(super) fn settle_until(&mut self, enough: impl Fn(&Self) -> bool) -> Result<(), Violation> {
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
            Frame::Step(step) => self.hear_step(epoch, from, to, &step),
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
    pub(super) fn ring(&mut self) -> Result<bool, Violation> {
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
