//! The way over the border: who decided the stop block signs the hand-over, a quorum's signatures
//! begin the next epoch, and machine by machine goes over, each at its own time.
//!
//! As hosts do it: who has the certificate leaves at once or after a while, who is shown it without
//! having decided after a while. Who is gone answers what is said in the old epoch with the
//! hand-over, and so does who has begun the new one when somebody has not. A newcomer asks for it.

use super::disk::Disk;
use super::epoch::{EpochRun, Place};
use super::ground::TIMEOUT;
use super::world::{Envelope, Frame, World};
use crate::epoch::falsified;
use crate::oracles::{Observation, Violation, broken};
use quorate_consensus::MessageClass;
use quorate_crypto::{Digest, Share};
use quorate_types::{BlockId, HandOver, HandedOver, PayloadHeader, Purpose, ReplicaId, Time};
use std::sync::Arc;

/// Views' times for which who has decided stays, one of them each time: a host that writes its last
/// state takes a while.
const STAYS_DECIDED: [u32; 4] = [0, 0, 1, 4];

/// The same for who has not decided.
const STAYS_UNDECIDED: [u32; 2] = [1, 4];

impl World<'_> {
    /// A machine decided a height, which may be the last of the first epoch.
    pub(super) fn note_decided(
        &mut self,
        epoch: usize,
        machine: usize,
        block: BlockId,
        header: &PayloadHeader,
    ) -> Result<(), Violation> {
        let Some(border) = &mut self.border else { return Ok(()) };
        let of = &self.epochs[epoch];
        let tip = of.tip(machine);
        if of.plan.is_honest(machine) {
            border.oracles.observe(&Observation::Executed {
                replica: border.name(&self.epochs[0].plan, epoch, machine),
                height: tip.height,
                root: tip.root(),
                payload: Digest(block.0.0),
                operations: &[],
            })?;
        }
        if epoch > 0 || header.change.is_none() || border.endings[machine].own.is_some() {
            return Ok(());
        }
        let file = border.file.digest();
        let content = HandOver { height: tip.height, stop: block, root: tip.root(), file };
        border.endings[machine].own = Some((content, tip));
        self.share(machine)
    }

    /// Signs what its epoch ended with, and sends it to everybody.
    fn share(&mut self, machine: usize) -> Result<(), Violation> {
        let Some(border) = &mut self.border else { return Ok(()) };
        let ending = &mut border.endings[machine];
        let Some((content, _)) = ending.own.filter(|_| ending.certified.is_none()) else {
            return Ok(());
        };
        ending.send_at = Some(self.now + TIMEOUT);
        let of = &self.epochs[0];
        let member = of.plan.member(machine);
        let (committee, (_, voting)) = (of.ground.committee(), of.ground.keys(member));
        let statement = content.statement(committee.scope());
        let share = committee.sign(Purpose::HandOver, &voting, &statement);
        let view = of.view(machine);
        for to in of.machines() {
            if of.reaches(view, MessageClass::Change, machine, to) {
                let frame = Frame::Share(content, share.clone());
                self.wire.push_back(Envelope { epoch: 0, from: machine, to, frame });
            }
        }
        self.count_share(machine, member, content, share)
    }

    /// A machine of the first epoch hears a share: who has the certificate answers with it, and who
    /// has not decided yet hears of it again.
    pub(super) fn hear_share(
        &mut self,
        from: usize,
        to: usize,
        content: HandOver,
        share: Share,
    ) -> Result<(), Violation> {
        let Some(border) = &self.border else { return Ok(()) };
        let ending = &border.endings[to];
        if ending.certified.is_some() {
            return self.show_step(0, to, from);
        }
        if ending.own.is_none() {
            return Ok(());
        }
        let member = self.epochs[0].plan.member(from);
        self.count_share(to, member, content, share)
    }

    fn count_share(
        &mut self,
        machine: usize,
        from: ReplicaId,
        content: HandOver,
        share: Share,
    ) -> Result<(), Violation> {
        let Some(border) = &mut self.border else { return Ok(()) };
        let scope = self.epochs[0].ground.committee().scope();
        let ending = &mut border.endings[machine];
        let signed = (content.statement(scope), share);
        let signed = ending.count(self.now, from, content, signed);
        let (Some(signed), Some((_, header))) = (signed, ending.own) else { return Ok(()) };
        let step = Arc::new(HandedOver { signed, header, file: border.file.clone() });
        if !self.is_sound(&step)? {
            return broken("hand-over", format!("what machine {machine} certified is refused"));
        }
        self.learn(machine, &step)
    }

    /// A machine of the first epoch has the certificate, and leaves in a while.
    fn learn(&mut self, machine: usize, step: &Arc<HandedOver>) -> Result<(), Violation> {
        let plan = Arc::clone(&self.epochs[0].plan);
        let Some(border) = &mut self.border else { return Ok(()) };
        let ending = &mut border.endings[machine];
        if ending.certified.is_some() {
            return Ok(());
        }
        let stays = if ending.own.is_some() { &STAYS_DECIDED[..] } else { &STAYS_UNDECIDED };
        let stays = TIMEOUT * *self.order.choose(stays);
        (ending.send_at, ending.leave_at) = (None, Some(self.now + stays));
        ending.certified = Some(Arc::clone(step));
        let (ended, content) = (self.epochs[0].ground.committee().epoch(), &step.signed.content);
        let replica = border.name(&plan, 0, machine);
        border.oracles.observe(&Observation::HandedOver { replica, ended, content })
    }

    /// ★ Returns `true` if a quorum ended the first epoch so: nothing else begins the next one.
    fn is_sound(&mut self, step: &Arc<HandedOver>) -> Result<bool, Violation> {
        let Some(border) = &mut self.border else { return Ok(false) };
        if border.step.as_ref().is_some_and(|known| Arc::ptr_eq(known, step)) {
            return Ok(true);
        }
        let next = self.ground.epoch_after(&self.epochs[0].ground, &border.next, step);
        let Ok(next) = next else { return Ok(false) };
        match &border.step {
            Some(known) if known == step => Ok(true),
            Some(known) => broken("hand-over", format!("{:?} and {:?}", known.signed, step.signed)),
            None => {
                border.step = Some(Arc::clone(step));
                border.ask_at = Some(self.now + TIMEOUT);
                let plan = Arc::new(border.next.plan.clone());
                self.epochs.push(EpochRun::new(plan, next));
                Ok(true)
            }
        }
    }

    /// A machine that has left an epoch, or begun the next, shows another how they meet. A twin may
    /// lie about it.
    pub(super) fn show_step(
        &mut self,
        epoch: usize,
        from: usize,
        to: usize,
    ) -> Result<(), Violation> {
        let Some(step) = self.border.as_ref().and_then(|border| border.step.clone()) else {
            return Ok(());
        };
        let of = &self.epochs[epoch];
        let view = of.view(from).max(of.view(to));
        let is_true = of.plan.is_honest(from) || !self.twins_lie() || self.order.coin();
        let step = if is_true { step } else { falsified(&step, self.order.coin()) };
        let of = &self.epochs[epoch];
        if of.reaches(view, MessageClass::Change, from, to) {
            self.wire.push_back(Envelope { epoch, from, to, frame: Frame::Step(step) });
        }
        Ok(())
    }

    /// A machine hears how the first epoch ended: one that is in it, or that waits for the second.
    pub(super) fn hear_step(
        &mut self,
        epoch: usize,
        from: usize,
        to: usize,
        step: &Arc<HandedOver>,
    ) -> Result<(), Violation> {
        if !self.is_sound(step)? {
            let is_lie = !self.epochs[epoch].plan.is_honest(from);
            let text = || format!("what machine {from} shows of its end is refused");
            return if is_lie { Ok(()) } else { broken("hand-over", text()) };
        }
        let Some(border) = &self.border else { return Ok(()) };
        let ended = &self.epochs[0];
        let former = if epoch == 0 { Some(to) } else { border.next.predecessor(&ended.plan, to) };
        match (former, self.epochs[epoch].place(to)) {
            (Some(former), _) if matches!(ended.place(former), Place::Here(_)) => {
                self.learn(former, step)
            }
            (None, Place::Waiting) => self.begin_next(to, Disk::default()),
            _ => Ok(()),
        }
    }

    /// Whoever's time has come leaves the first epoch, and begins in the second if it is a member.
    pub(super) fn cross_the_border(&mut self) -> Result<(), Violation> {
        let Some(border) = &mut self.border else { return Ok(()) };
        let mut due = (0..).zip(&mut border.endings);
        let Some((machine, ending)) =
            due.find(|(_, ending)| ending.leave_at.is_some_and(|at| at <= self.now))
        else {
            return Ok(());
        };
        ending.leave_at = None;
        let successor = border.next.successor(&self.epochs[0].plan, machine);
        let disk = self.epochs[0].leave(machine);
        if let (Some(successor), Some(disk)) = (successor, disk) {
            self.begin_next(successor, disk)?;
        }
        self.cross_the_border()
    }

    fn begin_next(&mut self, machine: usize, disk: Disk) -> Result<(), Violation> {
        let (ended, next) = (&self.epochs[0], &self.epochs[1]);
        if let Some(border) = self.border.as_mut().filter(|_| next.plan.is_honest(machine)) {
            let replica = border.name(&ended.plan, 1, machine);
            let (epoch, after) = (next.ground.committee().epoch(), next.ground.start.height());
            let began = Observation::Began { replica, epoch, after, is_member: true };
            border.oracles.observe(&began)?;
        }
        self.begin(1, machine, disk)
    }

    /// Shares go out again, and newcomers ask.
    pub(super) fn ring_at_the_border(&mut self) -> Result<(), Violation> {
        let Some(border) = &mut self.border else { return Ok(()) };
        let now = self.now;
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        let asks = is_due(border.ask_at);
        let sends = (0..).zip(&border.endings).filter(|(_, ending)| is_due(ending.send_at));
        let sends: Vec<usize> = sends.map(|(machine, _)| machine).collect();
        sends.into_iter().try_for_each(|machine| self.share(machine))?;
        if asks { self.ask() } else { Ok(()) }
    }

    /// Newcomers ask members of the first epoch, and are heard by chance until nothing is in the
    /// way there.
    fn ask(&mut self) -> Result<(), Violation> {
        let (ended, next) = (&self.epochs[0], &self.epochs[1]);
        let Some(border) = &mut self.border else { return Ok(()) };
        let is_new = |machine: &usize| {
            let is_waiting = matches!(next.place(*machine), Place::Waiting);
            is_waiting && border.next.predecessor(&ended.plan, *machine).is_none()
        };
        let new: Vec<usize> = next.machines().filter(is_new).collect();
        border.ask_at = (!new.is_empty()).then_some(self.now + TIMEOUT);
        for machine in new {
            if self.epochs[0].tail || self.order.coin() {
                self.begin_next(machine, Disk::default())?;
            }
        }
        Ok(())
    }
}
