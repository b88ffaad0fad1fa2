//! One epoch of a run: its machines, what they decided, and who judges them.

use super::disk::Disk;
use super::ground::EpochGround;
use super::plan::{MEMBERS, Plan};
use super::seat::Seat;
use crate::oracles::{
    Audit, Departures, FalseAccusations, Oracle, Oracles, Quorums, Slots, Violation, broken,
};
use quorate_consensus::leader::LeaderElection;
use quorate_consensus::{Message, MessageClass};
use quorate_crypto::hash_parts;
use quorate_types::{BlockId, Header, Height, Machine, PayloadHeader, Time, View};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A machine in an epoch.
pub(super) enum Place {
    /// It has not begun.
    Waiting,
    /// It runs.
    Here(Box<Seat>),
    /// It left for the next epoch, or for good.
    Gone,
}

/// Machines of one epoch and what came of them.
pub(super) struct EpochRun {
    pub(super) plan: Arc<Plan>,
    pub(super) ground: Arc<EpochGround>,
    places: Vec<Place>,
    /// The last view whose entry restarted each machine.
    restarted: Vec<View>,
    /// Header of the last height that each machine decided.
    tips: Vec<Header>,
    decided: BTreeMap<Height, BlockId>,
    /// The height that ends the epoch, once it is decided.
    stop: Option<Height>,
    /// All machines reach all others now.
    pub(super) tail: bool,
    /// In the tail all honest machines stood in one view under an honest leader.
    pub(super) together: bool,
    /// The highest view that a machine left for the next epoch.
    left_in: View,
    pub(super) oracles: Oracles,
}

impl EpochRun {
    /// Nobody has begun yet.
    pub(super) fn new(plan: Arc<Plan>, ground: EpochGround) -> Self {
        let machines = plan.machines();
        let honest = (0..MEMBERS).map(|member| plan.is_honest(member)).collect();
        let oracles: Vec<Box<dyn Oracle>> = vec![
            Box::new(FalseAccusations::default()),
            Box::new(Audit::default()),
            Box::new(Slots::new(MEMBERS, 0, ground.has_fast_path())),
            Box::new(Departures::new(honest)),
            Box::new(Quorums::new(ground.committee().weights().each())),
        ];
        Self {
            places: (0..machines).map(|_| Place::Waiting).collect(),
            restarted: vec![View(0); machines],
            tips: vec![*ground.start.header(); machines],
            plan,
            ground: Arc::new(ground),
            decided: BTreeMap::new(),
            stop: None,
            tail: false,
            together: false,
            left_in: View(0),
            oracles: Oracles::new(oracles),
        }
    }

    pub(super) fn machines(&self) -> std::ops::Range<usize> {
        0..self.plan.machines()
    }

    pub(super) fn honest(&self) -> impl Iterator<Item = usize> + '_ {
        self.machines().filter(|machine| self.plan.is_honest(*machine))
    }

    pub(super) fn place(&self, machine: usize) -> &Place {
        &self.places[machine]
    }

    /// A machine that runs.
    pub(super) fn seat(&self, machine: usize) -> Option<&Seat> {
        match &self.places[machine] {
            Place::Here(seat) => Some(seat),
            Place::Waiting | Place::Gone => None,
        }
    }

    pub(super) fn seat_mut(&mut self, machine: usize) -> Option<&mut Seat> {
        match &mut self.places[machine] {
            Place::Here(seat) => Some(seat),
            Place::Waiting | Place::Gone => None,
        }
    }

    /// A machine takes its place, over what its host keeps.
    pub(super) fn enter(&mut self, machine: usize, disk: Disk) -> &mut Seat {
        let seat = Seat::new(machine, &self.plan, &self.ground, disk);
        self.places[machine] = Place::Here(Box::new(seat));
        self.seat_mut(machine).expect("it is here")
    }

    /// A machine leaves its place for good: what its host keeps.
    pub(super) fn leave(&mut self, machine: usize) -> Option<Disk> {
        self.left_in = self.left_in.max(self.view(machine));
        match std::mem::replace(&mut self.places[machine], Place::Gone) {
            Place::Here(seat) => Some(seat.leave()),
            Place::Waiting | Place::Gone => None,
        }
    }

    /// Height up to which a machine decided.
    pub(super) fn height(&self, machine: usize) -> Height {
        self.tips[machine].height
    }

    /// Header of that height.
    pub(super) fn tip(&self, machine: usize) -> Header {
        self.tips[machine]
    }

    /// The last height that an honest machine decided.
    pub(super) fn last(&self) -> Height {
        self.decided.keys().last().copied().unwrap_or(self.ground.start.height())
    }

    /// The height that ends the epoch, once it is decided.
    pub(super) fn stop(&self) -> Option<Height> {
        self.stop
    }

    pub(super) fn view(&self, machine: usize) -> View {
        self.seat(machine).map(Seat::view).unwrap_or_default()
    }

    pub(super) fn honest_are_at(&self, height: Height) -> bool {
        self.honest().all(|machine| self.height(machine) >= height)
    }

    /// Times at which its machines want to be woken.
    pub(super) fn next_timeouts(&self) -> impl Iterator<Item = Time> + '_ {
        self.machines().filter_map(|machine| self.seat(machine)?.machine.next_timeout())
    }

    /// No honest machine is here any more.
    pub(super) fn is_left(&self) -> bool {
        self.honest().all(|machine| matches!(self.places[machine], Place::Gone))
    }

    pub(super) fn is_past_the_plan(&self) -> bool {
        self.honest().all(|machine| match &self.places[machine] {
            Place::Waiting => false,
            Place::Here(seat) => self.plan.of(seat.view()).is_none(),
            Place::Gone => true,
        })
    }

    pub(super) fn reaches(&self, view: View, class: MessageClass, from: usize, to: usize) -> bool {
        let apart = self.plan.member(from) != self.plan.member(to);
        if self.tail { apart } else { self.plan.reaches(view, class, from, to) }
    }

    /// Returns `true` if a machine starts again as the plan says, and notes that it does.
    pub(super) fn is_to_restart(&mut self, machine: usize) -> bool {
        let view = self.view(machine);
        let planned = self.plan.of(view).is_some_and(|plan| plan.restarts == Some(machine));
        if !planned || self.tail || self.restarted[machine] >= view {
            return false;
        }
        self.restarted[machine] = view;
        self.tips[machine] = *self.ground.start.header();
        true
    }

    /// Heights come in order, at each of them all honest machines decide one block, and nothing is
    /// decided behind the height that ends the epoch.
    pub(super) fn judge(
        &mut self,
        machine: usize,
        block: BlockId,
        header: &PayloadHeader,
    ) -> Result<(), Violation> {
        let (height, last) = (header.height, self.height(machine));
        if height != last.next() {
            return broken("prefix", format!("machine {machine} decided {height} after {last}"));
        }
        let first = *self.decided.entry(height).or_insert(block);
        if first != block {
            let text = format!("at {height} {first} was decided, and {block} by {machine}");
            return broken("agreement", text);
        }
        if let Some(stop) = self.stop.filter(|stop| *stop < height) {
            return broken("void", format!("machine {machine} decided {height} behind {stop}"));
        }
        self.stop = self.stop.or(header.change.is_some().then_some(height));
        Ok(())
    }

    /// A machine decided this, and has the state that comes of it.
    pub(super) fn advance(&mut self, machine: usize, block: BlockId, header: &PayloadHeader) {
        let tip = &mut self.tips[machine];
        let state = hash_parts("quorate sim twins state", &[&tip.state.0, &block.0.0]);
        let PayloadHeader { height, proposed_at_ms, .. } = *header;
        *tip = Header { height, proposed_at_ms, state, ..Header::default() };
    }

    /// Whoever decided the stop block signs nothing any more.
    pub(super) fn check_the_end(&self, from: usize, message: &Message) -> Result<(), Violation> {
        let Some(seat) = self.seat(from) else { return Ok(()) };
        let has_ended = self.stop == Some(self.height(from));
        match message.signed_statement(seat.member, &seat.verifier) {
            Some(said) if has_ended => {
                broken("after the end", format!("machine {from} signed {said:?}"))
            }
            _ => Ok(()),
        }
    }

    /// Notes when all honest machines are in one view under an honest leader.
    pub(super) fn look_around(&mut self) {
        if !self.tail || self.together {
            return;
        }
        let views: Vec<View> = self.honest().map(|machine| self.view(machine)).collect();
        let first = views[0];
        let leader = self.plan.leader(first).index();
        let is_one = views.iter().all(|view| *view == first);
        self.together = self.plan.is_honest(leader) && is_one;
    }

    pub(super) fn describe(&self) -> String {
        let epoch = self.ground.committee().epoch();
        let place = |machine: usize| {
            let (member, height) = (self.plan.member(machine), self.height(machine));
            let view = match &self.places[machine] {
                Place::Waiting => "has not begun".to_owned(),
                Place::Here(seat) => format!("in view {}", seat.view()),
                Place::Gone => "has left".to_owned(),
            };
            format!("machine {machine} ({member}) of epoch {epoch} at height {height} {view}; ")
        };
        self.machines().map(place).collect()
    }

    /// Heights that the honest machine furthest ahead decided, and the highest view of one.
    pub(super) fn reached(&self) -> (u64, View) {
        let heights = self.honest().map(|machine| self.height(machine).0);
        let decided = heights.max().unwrap_or_default() - self.ground.start.height().0;
        let views = self.honest().map(|machine| self.view(machine));
        (decided, views.chain([self.left_in]).max().unwrap_or_default())
    }
}
