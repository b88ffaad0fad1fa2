//! Staggered collectors (paper 002 §V-E): the delay of each behind those before it.
//!
//! Each has several times the mean that a certificate takes to come. One that missed its turn is
//! not waited for for a while: a dead collector costs its delay once, not at every slot that is
//! drawn for it.

use quorate_types::{ReplicaId, Time};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time for which a collector that missed its turn is not waited for.
const BACKOFF: Duration = Duration::from_secs(10);
/// Multiple of the mean time of a certificate that each collector has.
const ALLOWANCE: u32 = 4;
/// Least delay of one collector.
const WAIT_MIN: Duration = Duration::from_millis(5);

/// Delays of collectors, as one replica has learned them.
#[derive(Debug)]
pub struct CollectorBackoff {
    max: Duration,
    mean: Duration,
    silent: BTreeMap<ReplicaId, Time>,
}

impl CollectorBackoff {
    /// Backoff that has learned nothing, and never waits for longer than `max` for one collector.
    #[must_use]
    pub fn new(max: Duration) -> Self {
        Self { max, mean: max / ALLOWANCE, silent: BTreeMap::new() }
    }

    /// Delay behind these collectors together.
    #[must_use]
    pub fn delay_after(&self, now: Time, earlier: &[ReplicaId]) -> Duration {
        let awaited = earlier.iter().filter(|member| self.awaits(now, **member)).count();
        let each = (ALLOWANCE * self.mean).clamp(WAIT_MIN.min(self.max), self.max);
        each * u32::try_from(awaited).expect("few collectors")
    }

    /// Returns `true` unless the member missed a turn not long ago.
    #[must_use]
    pub fn awaits(&self, now: Time, member: ReplicaId) -> bool {
        self.silent.get(&member).is_none_or(|until| *until <= now)
    }

    /// Clears a member that sent something it collected.
    pub fn heard(&mut self, from: ReplicaId) {
        self.silent.remove(&from);
    }

    /// Records the time from the own vote to the certificate.
    pub fn observed(&mut self, from: ReplicaId, after: Duration) {
        self.heard(from);
        self.mean = (7 * self.mean + after.min(self.max)) / 8;
    }

    /// Number of members that are remembered to have missed one.
    pub(crate) fn len(&self) -> usize {
        self.silent.len()
    }

    /// Records that these missed their turns.
    pub fn timed_out(&mut self, now: Time, members: &[ReplicaId]) {
        for member in members {
            self.silent.insert(*member, now + BACKOFF);
        }
    }
}

/// Turn of a collector: the time from which on it acts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Turn {
    /// No vote has come yet.
    #[default]
    Idle,
    /// Begins at this time.
    From(Time),
    /// Begun: it acts on each vote.
    Come,
}

impl Turn {
    /// Returns `true` once a vote came.
    #[must_use]
    pub fn is_known(self) -> bool {
        self != Self::Idle
    }

    /// Sets the time of the turn at the first vote.
    pub fn start(&mut self, from: impl FnOnce() -> Time) {
        if !self.is_known() {
            *self = Self::From(from());
        }
    }

    /// Returns `true` once the turn has begun.
    pub fn has_come(&mut self, now: Time) -> bool {
        if matches!(self, Self::From(from) if *from <= now) {
            *self = Self::Come;
        }
        *self == Self::Come
    }

    /// Time at which it begins, if that is known and still to come.
    #[must_use]
    pub fn deadline(self) -> Option<Time> {
        match self {
            Self::From(from) => Some(from),
            Self::Idle | Self::Come => None,
        }
    }
}

#[cfg(test)]
mod tests;
