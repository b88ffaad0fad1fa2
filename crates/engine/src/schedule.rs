//! From decided to executed: in the order of heights, each once, as soon as its bodies are here.

use bytes::Bytes;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{BodyRef, Height, Payload};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Heights handed to execution and not back yet. Execution is a thread of its own; a few under way
/// keep it busy, more would only hold memory.
const UNDER_WAY_MAX: usize = 8;

/// Heights whose bodies are fetched ahead of their execution.
const UPCOMING: usize = 16;

/// The decided heights that wait to execute, and those under way.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    waiting: VecDeque<(Payload, Bytes)>,
    under_way: VecDeque<(Height, Vec<BodyRef>)>,
    /// Number of heights not executed yet that need each body.
    needed: BTreeMap<BodyRef, u32>,
    executed: Height,
    decided: Height,
    /// Executed heights with their bodies that are not known to be durable.
    settled: VecDeque<(Height, Vec<BodyRef>)>,
}

impl Schedule {
    /// Everything up to `height` is executed, and what follows is decided from `begun` on, the
    /// height that the epoch began after.
    pub(crate) fn resume(&mut self, height: Height, begun: Height) {
        self.executed = height;
        self.decided = height.max(begun);
    }

    /// Returns `true` if heights are missing between the state and the next one to execute: those
    /// of an epoch before, which only a snapshot makes up for.
    #[must_use]
    pub(crate) fn has_gap(&self) -> bool {
        let under_way = (self.under_way.len() + self.waiting.len()) as u64;
        self.executed.0 + under_way < self.decided.0
    }

    /// The next height is decided.
    ///
    /// # Panics
    /// When it is not the next one: the protocol delivers heights in order, each once.
    pub(crate) fn decide(&mut self, payload: Payload, record: Bytes) {
        assert_eq!(payload.header.height, self.decided.next(), "heights are decided in order");
        self.decided = payload.header.height;
        for name in &payload.bodies {
            *self.needed.entry(*name).or_default() += 1;
        }
        self.waiting.push_back((payload, record));
    }

    /// The height that could start now, if its bodies are here.
    #[must_use]
    pub(crate) fn next(&self) -> Option<&Payload> {
        let (payload, _) = self.waiting.front()?;
        let may_start = self.under_way.len() < UNDER_WAY_MAX && !self.has_gap();
        may_start.then_some(payload)
    }

    /// The next heights to start: their bodies are wanted. Those of later ones can wait.
    pub(crate) fn upcoming(&self) -> impl Iterator<Item = &Payload> {
        self.waiting.iter().take(UPCOMING).map(|(payload, _)| payload)
    }

    /// Returns `true` if more heights wait than those.
    pub(crate) fn lags(&self) -> bool {
        self.waiting.len() > UPCOMING
    }

    /// Starts the height that [`Schedule::next`] showed.
    pub(crate) fn start(&mut self) -> Option<(Payload, Bytes)> {
        let (payload, record) = self.waiting.pop_front()?;
        self.under_way.push_back((payload.header.height, payload.bodies.clone()));
        Some((payload, record))
    }

    /// A height is executed; returns its bodies.
    ///
    /// # Panics
    /// When it is not the oldest under way: the host executes in order.
    pub(crate) fn finish(&mut self, height: Height) -> Vec<BodyRef> {
        let (oldest, bodies) = self.under_way.pop_front().expect("an execution was under way");
        assert_eq!(oldest, height, "heights are executed in order");
        self.executed = height;
        self.release(&bodies);
        self.settled.push_back((height, bodies.clone()));
        bodies
    }

    fn release(&mut self, bodies: &[BodyRef]) {
        for name in bodies {
            let needed = self.needed.entry(*name).or_default();
            *needed = needed.saturating_sub(1);
            if *needed == 0 {
                self.needed.remove(name);
            }
        }
    }

    /// This height was executed in an earlier run and is durable.
    pub(crate) fn recall(&mut self, height: Height, bodies: Vec<BodyRef>) {
        self.settled.push_back((height, bodies));
    }

    /// Everything up to `height` is durable: its heights and the bodies that only they order. One
    /// that an `undecided` block orders once more stays (★), and is looked at again the next time.
    pub(crate) fn settle(
        &mut self,
        height: Height,
        undecided: &BTreeSet<BodyRef>,
    ) -> Vec<(Height, Vec<BodyRef>)> {
        let count = self.settled.partition_point(|(settled, _)| *settled <= height);
        let settled: Vec<_> = self.settled.drain(..count).collect();
        let mut done = Vec::with_capacity(count);
        let mut kept = Vec::new();
        let stays = !mutants::active(Mutant::ReleaseOrderedAgain);
        for (height, mut names) in settled {
            names.retain(|name| !self.needed.contains_key(name));
            let (later, now): (Vec<_>, Vec<_>) =
                names.into_iter().partition(|name| undecided.contains(name) && stays);
            if later.is_empty() || !now.is_empty() {
                done.push((height, now));
            }
            if !later.is_empty() {
                kept.push((height, later));
            }
        }
        kept.into_iter().rev().for_each(|height| self.settled.push_front(height));
        done
    }

    /// Returns `true` if [`Schedule::settle`] would find something.
    #[must_use]
    pub(crate) fn has_settled(&self, height: Height) -> bool {
        self.settled.front().is_some_and(|(settled, _)| *settled <= height)
    }

    /// Returns `true` if an execution is under way.
    #[must_use]
    pub(crate) fn is_executing(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// The state is that of `height` now, which is beyond what was executed: heights up to it are
    /// skipped. Returns the bodies that nothing needs any more.
    ///
    /// # Panics
    /// When an execution is under way.
    pub(crate) fn install(&mut self, height: Height) -> Vec<BodyRef> {
        assert!(self.under_way.is_empty(), "nothing is executed while a snapshot is installed");
        let mut skipped = Vec::new();
        while let Some((payload, _)) = self.waiting.front()
            && payload.header.height <= height
        {
            let (payload, _) = self.waiting.pop_front().expect("looked at");
            self.release(&payload.bodies);
            skipped.extend(payload.bodies.iter().copied());
            self.settled.push_back((payload.header.height, payload.bodies));
        }
        self.executed = height;
        self.decided = self.decided.max(height);
        skipped.retain(|name| !self.needed.contains_key(name));
        skipped
    }

    /// Returns `true` if a height that is not executed yet needs this body.
    #[must_use]
    pub(crate) fn needs(&self, name: &BodyRef) -> bool {
        self.needed.contains_key(name)
    }

    /// The last decided height.
    #[must_use]
    pub(crate) fn decided(&self) -> Height {
        self.decided
    }

    /// The last executed height.
    #[must_use]
    pub(crate) fn executed(&self) -> Height {
        self.executed
    }
}

#[cfg(test)]
mod tests;
