//! Collectors that take turns: when each acts, and how long it leaves those before it.
//!
//! Each of them has what a certificate usually takes to come, with room to spare. One that showed
//! nothing at its turn is passed over for a while: a dead collector costs its wait once, not at every
//! slot that is drawn for it.

use quorate_types::{ReplicaId, Time};
use std::collections::BTreeMap;
use std::time::Duration;

/// For so long a collector that showed nothing is passed over.
const PASSED_OVER: Duration = Duration::from_secs(10);
/// What a certificate usually takes, so many times.
const ROOM: u32 = 4;
/// The least wait.
const WAIT_MIN: Duration = Duration::from_millis(5);

/// What one replica has learned of how quick collectors are.
#[derive(Debug)]
pub struct Stagger {
    most: Duration,
    usual: Duration,
    silent: BTreeMap<ReplicaId, Time>,
}

impl Stagger {
    /// One that has learned nothing, and never waits for longer than `most` for one collector.
    #[must_use]
    pub fn new(most: Duration) -> Self {
        Self { most, usual: most / ROOM, silent: BTreeMap::new() }
    }

    /// How long those before this one in their order have together.
    #[must_use]
    pub fn before(&self, now: Time, earlier: &[ReplicaId]) -> Duration {
        let awaited = earlier.iter().filter(|member| self.awaits(now, **member)).count();
        let each = (ROOM * self.usual).clamp(WAIT_MIN.min(self.most), self.most);
        each * u32::try_from(awaited).expect("few collectors")
    }

    /// Whether a member's turn is waited for: not while it is passed over.
    #[must_use]
    pub fn awaits(&self, now: Time, member: ReplicaId) -> bool {
        self.silent.get(&member).is_none_or(|until| *until <= now)
    }

    /// A member showed something that it collected.
    pub fn heard(&mut self, from: ReplicaId) {
        self.silent.remove(&from);
    }

    /// A certificate came so long after the own vote for it.
    pub fn came(&mut self, from: ReplicaId, after: Duration) {
        self.heard(from);
        self.usual = (7 * self.usual + after.min(self.most)) / 8;
    }

    /// These had their turns and showed nothing.
    pub fn passed(&mut self, now: Time, members: &[ReplicaId]) {
        for member in members {
            self.silent.insert(*member, now + PASSED_OVER);
        }
    }
}

/// From when on a collector acts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Turn {
    /// Nothing came yet.
    #[default]
    Idle,
    /// From then on.
    From(Time),
    /// From now on.
    Come,
}

impl Turn {
    /// Whether anything came.
    #[must_use]
    pub fn is_known(self) -> bool {
        self != Self::Idle
    }

    /// Something came: it is this one's turn from then on.
    pub fn start(&mut self, from: impl FnOnce() -> Time) {
        if !self.is_known() {
            *self = Self::From(from());
        }
    }

    /// Whether it has come.
    pub fn has_come(&mut self, now: Time) -> bool {
        if matches!(self, Self::From(from) if *from <= now) {
            *self = Self::Come;
        }
        *self == Self::Come
    }

    /// When it comes, if it is known and has not.
    #[must_use]
    pub fn deadline(self) -> Option<Time> {
        match self {
            Self::From(from) => Some(from),
            Self::Idle | Self::Come => None,
        }
    }
}
