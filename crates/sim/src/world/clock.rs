//! A host's own clock: it starts at zero with the host, and runs a little fast or slow.

use quorate_types::Time;

/// The wall clock of the world at its beginning.
const WORLD_ORIGIN_MS: u64 = 1_900_000_000_000;

const PER_MILLION: u128 = 1_000_000;

/// Between the world's time and a host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    started: Time,
    /// Microseconds of the host to a second of the world.
    rate: u64,
    /// What the wall clock was set by, in milliseconds.
    step_ms: i64,
}

impl Clock {
    /// A clock that starts now.
    pub(crate) fn start(now: Time, rate: u64, step_ms: i64) -> Self {
        Self { started: now, rate, step_ms }
    }

    /// The host's time.
    pub(crate) fn local(self, now: Time) -> Time {
        let passed = u128::from(now.0 - self.started.0) * u128::from(self.rate) / PER_MILLION;
        Time(u64::try_from(passed).unwrap_or(u64::MAX))
    }

    /// The first moment of the world at which the host's time is `local`.
    pub(crate) fn world(self, local: Time) -> Time {
        let passed = (u128::from(local.0) * PER_MILLION).div_ceil(u128::from(self.rate));
        Time(self.started.0.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX)))
    }

    /// The host's wall clock at its time zero. It has run at the host's rate since the world began,
    /// and was set by some steps.
    pub(crate) fn wall_origin_ms(self) -> u64 {
        let since = u128::from(self.started.0) * u128::from(self.rate) / PER_MILLION / 1_000;
        let since = u64::try_from(since).expect("a run is minutes");
        (WORLD_ORIGIN_MS + since).saturating_add_signed(self.step_ms)
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
