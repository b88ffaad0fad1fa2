//! How long a collector waits for the last votes before it settles for a quorum's.
//!
//! The wait follows what was seen, as retransmission timers do (RFC 6298): the time from a quorum's
//! votes to those of all but the redundant, on a moving average, and four times its mean deviation. Where
//! those last votes keep failing to come, somebody is dead or slow, and waiting costs every slot its
//! latency for nothing: after [`MISSES_MAX`] slots in a row there is no wait but at every
//! [`PROBE_EVERY`]th slot. Which way slots were decided all members see, whoever collected: with hundreds
//! of collectors that take turns, none would learn it from its own.

use quorate_types::Height;
use std::time::Duration;

/// Slots in a row without the last votes, after which nobody waits for them.
const MISSES_MAX: u32 = 8;
/// Then one slot of so many waits, to notice that they come again.
const PROBE_EVERY: u64 = 32;
/// The least wait: a moment for votes that are in the same burst.
const WAIT_MIN: Duration = Duration::from_millis(1);

/// The wait, as one collector has learned it.
#[derive(Debug)]
pub(super) struct FastTimer {
    most: Duration,
    lag: Duration,
    deviation: Duration,
    misses: u32,
}

impl FastTimer {
    /// One that has learned nothing, and never waits for longer than `most`.
    pub(super) fn new(most: Duration) -> Self {
        Self { most, lag: most / 4, deviation: most / 16, misses: 0 }
    }

    /// How long to wait at a slot.
    pub(super) fn wait_at(&self, slot: Height) -> Duration {
        let hopeless = self.misses >= MISSES_MAX && !slot.0.is_multiple_of(PROBE_EVERY);
        let usual = self.lag + 4 * self.deviation;
        if hopeless { Duration::ZERO } else { usual.clamp(WAIT_MIN, self.most) }
    }

    /// The last votes came so long after a quorum's, in time or not.
    pub(super) fn came(&mut self, lag: Duration) {
        self.made_it();
        let lag = lag.min(self.most);
        self.deviation = (3 * self.deviation + self.lag.abs_diff(lag)) / 4;
        self.lag = (7 * self.lag + lag) / 8;
    }

    /// A slot had them in time.
    pub(super) fn made_it(&mut self) {
        self.misses = 0;
    }

    /// They never came, or too late for a slot.
    pub(super) fn missed(&mut self) {
        self.misses = self.misses.saturating_add(1);
    }
}

#[cfg(test)]
mod tests;
