//! How long a later collector leaves those before it.
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
pub(super) struct Stagger {
    most: Duration,
    usual: Duration,
    silent: BTreeMap<ReplicaId, Time>,
}

impl Stagger {
    /// One that has learned nothing, and never waits for longer than `most` for one collector.
    pub(super) fn new(most: Duration) -> Self {
        Self { most, usual: most / ROOM, silent: BTreeMap::new() }
    }

    /// How long those before this one in their order have together.
    pub(super) fn before(&self, now: Time, earlier: &[ReplicaId]) -> Duration {
        let is_awaited = |member: &&ReplicaId| self.silent.get(member).is_none_or(|at| *at <= now);
        let awaited = earlier.iter().filter(is_awaited).count();
        let each = (ROOM * self.usual).clamp(WAIT_MIN.min(self.most), self.most);
        each * u32::try_from(awaited).expect("few collectors")
    }

    /// A certificate came so long after the own vote for it.
    pub(super) fn came(&mut self, from: ReplicaId, after: Duration) {
        self.silent.remove(&from);
        self.usual = (7 * self.usual + after.min(self.most)) / 8;
    }

    /// These had their turns and showed nothing.
    pub(super) fn passed(&mut self, now: Time, members: &[ReplicaId]) {
        for member in members {
            self.silent.insert(*member, now + PASSED_OVER);
        }
    }
}
