//! The run of one plan: what is said arrives or not, in an order that its number draws; when
//! nothing is under way, the next timer rings.

use super::ground::Ground;
use super::plan::{MACHINES, MEMBERS, Plan};
use super::seat::{Seat, SeatEffect};
use crate::oracles::{
    Audit, Departures, FalseAccusations, Observation, Oracle, Oracles, Quorums, Slots, Violation,
};
use quorate_consensus::leader::LeaderElection;
use quorate_consensus::{Input, Message, MessageClass};
use quorate_crypto::Digest;
use quorate_deterministic::Rng;
use quorate_types::{BlockId, Height, Machine, Peer, Recipients, Time, Verified, View};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Timers that ring before obstacles end, whatever views were reached.
const RINGS_MAX: u32 = 24;

/// Timers that ring after that until everybody must have decided.
const TAIL_RINGS_MAX: u32 = 64;

/// Heights that everybody must decide after the obstacles.
const TAIL_HEIGHTS: u64 = 2;

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

struct Envelope {
    from: usize,
    to: usize,
    message: Message,
}

struct World<'a> {
    plan: Arc<Plan>,
    ground: &'a Ground,
    now: Time,
    seats: Vec<Seat>,
    wire: VecDeque<Envelope>,
    /// The last view whose entry restarted each machine.
    restarted: Vec<View>,
    /// All machines reach all others now.
    tail: bool,
    /// In the tail all honest machines stood in one view under an honest leader.
    together: bool,
    decided: BTreeMap<Height, BlockId>,
    heights: [Height; MACHINES],
    /// The height that ends the epoch, once it is decided.
    stop: Option<Height>,
    oracles: Oracles,
    order: Rng,
    rings: u32,
    messages: u32,
    trace: blake3::Hasher,
}

/// Runs one plan to its end.
pub(super) fn run(plan: &Arc<Plan>, ground: &Ground) -> Outcome {
    let oracles: Vec<Box<dyn Oracle>> = vec![
        Box::new(FalseAccusations::default()),
        Box::new(Audit::default()),
        Box::new(Slots::new(MEMBERS, 0, ground.has_fast_path())),
        Box::new(Departures::new((0..MEMBERS).map(|member| plan.is_honest(member)).collect())),
        Box::new(Quorums::new(ground.committee.weights().each())),
    ];
    let mut world = World {
        plan: Arc::clone(plan),
        ground,
        now: Time(1_000),
        seats: (0..plan.machines()).map(|number| Seat::new(number, plan, ground)).collect(),
        wire: VecDeque::new(),
        restarted: vec![View(0); MACHINES],
        tail: false,
        together: false,
        decided: BTreeMap::new(),
        heights: [plan.begins_after; MACHINES],
        stop: None,
        oracles: Oracles::new(oracles),
        order: Rng::new(plan.number, "twins order", 0),
        rings: 0,
        messages: 0,
        trace: blake3::Hasher::new_derive_key("quorate sim twins trace"),
    };
    let verdict = world.run();
    let decided = |machine: usize| world.heights[machine].0 - plan.begins_after.0;
    let honest = || (0..plan.machines()).filter(|machine| plan.is_honest(*machine));
    Outcome {
        decided: honest().map(decided).max().unwrap_or_default(),
        view: honest().map(|machine| world.seats[machine].view()).max().unwrap_or_default(),
        rings: world.rings,
        messages: world.messages,
        trace: Digest(*world.trace.finalize().as_bytes()),
        verdict,
    }
}

impl World<'_> {
    fn run(&mut self) -> Result<(), Violation> {
        for machine in 0..self.plan.machines() {
            let said = self.seats[machine].start(self.now);
            self.take(machine, said)?;
        }
        while self.rings < RINGS_MAX && !self.is_past_the_plan() {
            self.settle()?;
            if !self.ring()? {
                break;
            }
        }
        self.tail = true;
        let last = self.decided.keys().last().copied().unwrap_or(self.plan.begins_after);
        let rings_max = self.rings + TAIL_RINGS_MAX;
        let ends = self.plan.ends_from.is_some();
        let target = if ends { Height(u64::MAX) } else { Height(last.0 + TAIL_HEIGHTS) };
        let is_done = |world: &Self| {
            let together = world.together || ends;
            together && world.honest_are_at(world.stop.unwrap_or(target))
        };
        loop {
            self.settle_until(is_done)?;
            if is_done(self) {
                return Ok(());
            }
            let spent = self.rings >= rings_max || !self.ring()?;
            if spent && !self.honest_are_at(self.stop.unwrap_or(target)) {
                let text = if ends { "not at the end".into() } else { format!("not at {target}") };
                return broken("progress", self.describe() + &text);
            }
            if spent {
                let text = "no view had all honest members together under an honest leader";
                return broken("together", text.to_owned());
            }
        }
    }

    fn honest_are_at(&self, height: Height) -> bool {
        self.honest().all(|machine| self.heights[machine] >= height)
    }

    fn honest(&self) -> impl Iterator<Item = usize> + use<> {
        let plan = Arc::clone(&self.plan);
        (0..plan.machines()).filter(move |machine| plan.is_honest(*machine))
    }

    fn is_past_the_plan(&self) -> bool {
        self.honest().all(|machine| self.plan.of(self.seats[machine].view()).is_none())
    }

    fn describe(&self) -> String {
        let seat = |machine: usize| {
            let seat = &self.seats[machine];
            let (height, view) = (self.heights[machine], seat.view());
            format!("machine {machine} ({}) at height {height} in view {view}; ", seat.member)
        };
        (0..self.plan.machines()).map(seat).collect()
    }

    fn settle(&mut self) -> Result<(), Violation> {
        self.settle_until(Self::is_past_the_plan)
    }

    /// Everything that is under way arrives, and what follows from it, or until enough has
    /// happened.
    fn settle_until(&mut self, enough: impl Fn(&Self) -> bool) -> Result<(), Violation> {
        loop {
            while !self.wire.is_empty() {
                let next = self.order.index(self.wire.len().min(OVERTAKEN_MAX));
                let envelope = self.wire.remove(next).expect("there are so many");
                self.deliver(envelope)?;
                if enough(self) {
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

    fn deliver(&mut self, Envelope { from, to, message }: Envelope) -> Result<(), Violation> {
        self.messages += 1;
        let sender = self.seats[from].member;
        let mark = [from as u8, to as u8, MessageClass::of(&message) as u8];
        self.trace.update(&mark).update(&message.view().0.to_le_bytes());
        let seat = &mut self.seats[to];
        match Verified::check(message, Peer::Replica(sender), seat.verifier.as_ref()) {
            Ok(message) => {
                let input = Input::Message { from: sender, message: Box::new(message) };
                let said = seat.feed(self.now, input);
                self.take(to, said)
            }
            Err(reason) if self.plan.is_honest(from) && self.plan.is_honest(to) => {
                self.oracles.observe(&Observation::Refused { reason: &reason, tag: 0 })
            }
            Err(_) => Ok(()),
        }
    }

    /// Applies an effect of a machine.
    fn take(&mut self, machine: usize, said: Vec<SeatEffect>) -> Result<(), Violation> {
        let honest = self.plan.is_honest(machine);
        for said in said {
            match said {
                SeatEffect::Send(to, message) => self.send(machine, to, &message)?,
                SeatEffect::Decided { height, block, ends_epoch } if honest => {
                    self.decided(machine, height, block)?;
                    self.end(machine, height, ends_epoch)?;
                }
                SeatEffect::Halted(halt) if honest => {
                    let replica = self.seats[machine].member;
                    self.oracles.observe(&Observation::Halted { replica, halt: &halt })?;
                }
                SeatEffect::Decided { .. } | SeatEffect::Halted(_) => {}
            }
        }
        self.look_around();
        self.restart_as_planned(machine)
    }

    fn send(&mut self, from: usize, to: Recipients, message: &Message) -> Result<(), Violation> {
        if self.plan.is_honest(from) {
            self.check_the_end(from, message)?;
            let replica = self.seats[from].member;
            let message = quorate_engine::Message::Consensus(message.clone());
            let released = Observation::Released { replica, message: &message, tag: 0, bytes: 0 };
            self.oracles.observe(&released)?;
        }
        let (view, class) = (message.view(), MessageClass::of(message));
        for machine in 0..self.plan.machines() {
            let meant = match to {
                Recipients::All => true,
                Recipients::One(member) => self.seats[machine].member == member,
                Recipients::Client(_) => false,
            };
            if meant && self.reaches(view, class, from, machine) {
                self.wire.push_back(Envelope { from, to: machine, message: message.clone() });
            }
        }
        Ok(())
    }

    /// Whoever decided the stop block signs nothing any more.
    fn check_the_end(&self, from: usize, message: &Message) -> Result<(), Violation> {
        let seat = &self.seats[from];
        let has_ended = self.stop == Some(self.heights[from]);
        match message.signed_statement(seat.member, &seat.verifier) {
            Some(said) if has_ended => {
                broken("after the end", format!("machine {from} signed {said:?}"))
            }
            _ => Ok(()),
        }
    }

    fn reaches(&self, view: View, class: MessageClass, from: usize, to: usize) -> bool {
        let apart = self.plan.member(from) != self.plan.member(to);
        if self.tail { apart } else { self.plan.reaches(view, class, from, to) }
    }

    /// Heights come in order, and at each of them all honest machines decide one block.
    fn decided(&mut self, machine: usize, height: Height, block: BlockId) -> Result<(), Violation> {
        self.trace.update(&[machine as u8]).update(&block.0.0);
        let last = &mut self.heights[machine];
        if height != last.next() {
            return broken("prefix", format!("machine {machine} decided {height} after {last}"));
        }
        *last = height;
        let first = *self.decided.entry(height).or_insert(block);
        if first == block {
            return Ok(());
        }
        broken("agreement", format!("at {height} {first} was decided, and {block} by {machine}"))
    }

    /// Nothing is decided behind the height that ends the epoch.
    fn end(&mut self, machine: usize, height: Height, ends: bool) -> Result<(), Violation> {
        if let Some(stop) = self.stop.filter(|stop| *stop < height) {
            return broken("void", format!("machine {machine} decided {height} behind {stop}"));
        }
        self.stop = self.stop.or(ends.then_some(height));
        Ok(())
    }

    fn look_around(&mut self) {
        if !self.tail || self.together {
            return;
        }
        let mut views = self.honest().map(|machine| self.seats[machine].view());
        let first = views.next().expect("three or more are honest");
        let leader = self.plan.leader(first).index();
        self.together = self.plan.is_honest(leader) && views.all(|v| v == first);
    }

    fn restart_as_planned(&mut self, machine: usize) -> Result<(), Violation> {
        let view = self.seats[machine].view();
        let planned = self.plan.of(view).is_some_and(|plan| plan.restarts == Some(machine));
        if !planned || self.tail || self.restarted[machine] >= view {
            return Ok(());
        }
        self.restarted[machine] = view;
        self.heights[machine] = self.plan.begins_after;
        let plan = Arc::clone(&self.plan);
        let said = self.seats[machine].restart(self.now, &plan, self.ground);
        self.take(machine, said)
    }

    /// Answers one question for missing blocks. `false` when nobody asks whom somebody can answer.
    fn fetch(&mut self) -> Result<bool, Violation> {
        for machine in 0..self.plan.machines() {
            let Some(target) = self.seats[machine].behind else { continue };
            if self.seats[machine].machine.state().has_block(target) {
                self.seats[machine].behind = None;
                continue;
            }
            let view = self.seats[machine].view();
            for other in 0..self.plan.machines() {
                if other == machine || !self.reaches(view, MessageClass::Change, other, machine) {
                    continue;
                }
                let run = self.seats[other].serve(&self.seats[machine], target);
                if let Some(run) = run {
                    self.seats[machine].behind = None;
                    let said = self.seats[machine].feed(self.now, Input::Run(Box::new(run)));
                    self.take(machine, said)?;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The next timers ring. `false` when nobody waits.
    fn ring(&mut self) -> Result<bool, Violation> {
        let due = self.seats.iter().filter_map(|seat| seat.machine.next_timeout()).min();
        let Some(due) = due else { return Ok(false) };
        self.now = self.now.max(due);
        self.rings += 1;
        for machine in 0..self.plan.machines() {
            let seat = &mut self.seats[machine];
            if seat.machine.next_timeout().is_some_and(|at| at <= self.now) {
                let said = seat.fire(self.now);
                self.take(machine, said)?;
            }
        }
        Ok(true)
    }
}

fn broken(oracle: &'static str, text: String) -> Result<(), Violation> {
    Err(Violation { oracle, text })
}
