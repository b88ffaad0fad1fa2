//! The run of one plan: what it has in the way of each epoch's machines, and then progress.

use super::disk::Disk;
use super::epoch::EpochRun;
use super::ground::Ground;
use super::plan::Plan;
use super::world::World;
use crate::oracles::{Violation, broken};
use quorate_crypto::Digest;
use quorate_types::{Height, View};
use std::sync::Arc;

/// Timers that ring before obstacles end, whatever views were reached.
const RINGS_MAX: u32 = 24;

/// Timers that ring after that until everybody must have decided.
const TAIL_RINGS_MAX: u32 = 64;

/// Timers of both epochs that ring until everybody must have left the first.
const CROSSING_RINGS_MAX: u32 = 256;

/// Heights that everybody must decide after the obstacles.
const TAIL_HEIGHTS: u64 = 2;

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

/// Runs one plan to its end.
pub(super) fn run(plan: &Arc<Plan>, ground: &Ground) -> Outcome {
    let mut world = World::new(plan, ground);
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
        let missing = |_: &Self| ("progress", "not in the next".to_owned());
        self.finish(0, CROSSING_RINGS_MAX, Self::is_first_epoch_left, missing)?;
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
        self.finish(epoch, TAIL_RINGS_MAX, is_done, |world| match (are_there(world), ends) {
            (true, _) => {
                let text = "no view had all honest members together under an honest leader";
                ("together", text.to_owned())
            }
            (false, true) => ("progress", "not at the end".to_owned()),
            (false, false) => ("progress", format!("not at {target}")),
        })
    }

    /// Goes on until it is done, or says what is missing after so many rings.
    fn finish(
        &mut self,
        epoch: usize,
        rings: u32,
        is_done: impl Fn(&Self) -> bool,
        missing: impl Fn(&Self) -> (&'static str, String),
    ) -> Result<(), Violation> {
        let rings_max = self.rings + rings;
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
}
