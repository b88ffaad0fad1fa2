//! A host's own clock: it starts at zero with the host, and runs a little fast or slow.

use quorate_deterministic::genesis::WALL_ORIGIN_MS;
use quorate_types::Time;
use std::time::Duration;

const PER_MILLION: u128 = 1_000_000;

/// Between the world's time and a host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    started: Time,
    /// Microseconds of the host to a second of the world.
    rate: u64,
    /// Milliseconds by which the wall clock was set.
    step_ms: i64,
    /// Microseconds of the world for which it stood still.
    suspended: u64,
}

impl Clock {
    /// A clock that starts now.
    pub(crate) fn start(now: Time, rate: u64, step_ms: i64) -> Self {
        Self { started: now, rate, step_ms, suspended: 0 }
    }

    /// Translates the world's time to the host's.
    pub(crate) fn local(self, now: Time) -> Time {
        let running = (now.0 - self.started.0).saturating_sub(self.suspended);
        let passed = u128::from(running) * u128::from(self.rate) / PER_MILLION;
        Time(u64::try_from(passed).unwrap_or(u64::MAX))
    }

    /// The first moment of the world at which the host's time is `local`.
    pub(crate) fn world(self, local: Time) -> Time {
        let passed = (u128::from(local.0) * PER_MILLION).div_ceil(u128::from(self.rate));
        let began = self.started.0 + self.suspended;
        Time(began.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX)))
    }

    /// Stands still for so long, from now; the wall clock does not.
    pub(crate) fn suspend(&mut self, lasts: Duration) {
        self.suspended += u64::try_from(lasts.as_micros()).expect("a run is minutes");
    }

    /// The host's wall clock at its time zero. It has run at the host's rate since the world began,
    /// and was set by some steps.
    pub(crate) fn wall_origin_ms(self) -> u64 {
        let since = u128::from(self.started.0 + self.suspended) * u128::from(self.rate)
            / PER_MILLION
            / 1_000;
        let since = u64::try_from(since).expect("a run is minutes");
        (WALL_ORIGIN_MS + since).saturating_add_signed(self.step_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_has_come_when_the_world_gets_there_and_not_before() {
        for rate in [900_000, 1_000_000, 1_100_000, 999_983] {
            let clock = Clock::start(Time(12_345), rate, 0);
            for local in [0, 1, 7, 99_999, 1_000_001] {
                let moment = clock.world(Time(local));
                assert!(clock.local(moment) >= Time(local));
                assert!(moment == Time(12_345) || clock.local(Time(moment.0 - 1)) < Time(local));
            }
        }
    }
}
