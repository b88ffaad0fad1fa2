//! Adaptive wait of a collector for the last votes, before it takes the slow path (paper 002 §V-E).
//!
//! It follows what was seen, as retransmission timers do (RFC 6298): the time from a quorum's votes
//! to those of all but the redundant, on a moving average, and four times its mean deviation. Where
//! those last votes keep failing to come, a member is dead or slow, and waiting costs every slot
//! its latency for nothing: after [`MISSES_MAX`] slots in a row there is no wait but at every
//! [`PROBE_EVERY`]th slot. All members see the path of every slot, whoever collected it: of
//! hundreds of collectors that take turns, none would learn it from its own slots.

use quorate_types::Height;
use std::time::Duration;

/// Slots in a row without the last votes, after which there is no wait for them.
const MISSES_MAX: u32 = 8;
/// Slots of which one waits all the same then, to notice that the votes come again.
const PROBE_EVERY: u64 = 32;
/// Least wait: a moment for votes of the same burst.
const WAIT_MIN: Duration = Duration::from_millis(1);

/// Wait that one collector has learned.
#[derive(Debug)]
pub(super) struct FastTimer {
    most: Duration,
    lag: Duration,
    deviation: Duration,
    misses: u32,
}

impl FastTimer {
    /// Timer that has learned nothing, and never waits for longer than `most`.
    pub(super) fn new(most: Duration) -> Self {
        Self { most, lag: most / 4, deviation: most / 16, misses: 0 }
    }

    /// Time to wait at a slot after a quorum's votes.
    pub(super) fn wait_at(&self, slot: Height) -> Duration {
        let hopeless = self.misses >= MISSES_MAX && !slot.0.is_multiple_of(PROBE_EVERY);
        let usual = self.lag + 4 * self.deviation;
        if hopeless { Duration::ZERO } else { usual.clamp(WAIT_MIN, self.most) }
    }

    /// Records the time from a quorum's votes to the last ones, whether or not they were in time.
    pub(super) fn observed(&mut self, lag: Duration) {
        self.met();
        let lag = lag.min(self.most);
        self.deviation = (3 * self.deviation + self.lag.abs_diff(lag)) / 4;
        self.lag = (7 * self.lag + lag) / 8;
    }

    /// Records that a slot had the last votes in time.
    pub(super) fn met(&mut self) {
        self.misses = 0;
    }

    /// Records that they never came, or too late for a slot.
    pub(super) fn missed(&mut self) {
        self.misses = self.misses.saturating_add(1);
    }
}

#[cfg(test)]
mod tests;
