//! The host's clocks: a monotonic one, and how far the wall clock is from it.

use quorate_types::Time;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Difference between the wall clock and what the machine takes for it beyond which the machine is
/// told, in milliseconds: far below what members allow one another, and above what slewing does.
const MOVED_MS: u64 = 100;

/// Longest time between two readings of one clock that are taken for one moment.
const READ_MAX: Duration = Duration::from_millis(10);

/// Monotonic time since the host's start.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Time zero is now.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Time since the host's start, in microseconds.
    #[must_use]
    pub fn now(self) -> Time {
        Time(u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX))
    }
}

/// Wall clock, in milliseconds since the Unix epoch.
#[must_use]
pub fn unix_ms() -> u64 {
    ms_since_1970(SystemTime::now())
}

/// A time of the wall clock in milliseconds since the Unix epoch; 0 before that.
pub(crate) fn ms_since_1970(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Wall clock, as the machine knows it.
#[derive(Clone, Copy, Debug)]
pub struct WallClock {
    clock: Clock,
    origin_ms: u64,
}

impl WallClock {
    /// Reads the wall clock, again when the thread was held up meanwhile.
    #[must_use]
    pub fn read(clock: Clock) -> Self {
        loop {
            let before = clock.now();
            let wall_ms = unix_ms();
            if clock.now().since(before) < READ_MAX {
                let origin_ms = wall_ms.saturating_sub(before.as_millis());
                return Self { clock, origin_ms };
            }
        }
    }

    /// Wall clock at the monotonic clock's zero, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn origin_ms(self) -> u64 {
        self.origin_ms
    }

    /// Monotonic clock beside which it was read.
    #[must_use]
    pub fn clock(self) -> Clock {
        self.clock
    }

    /// Takes note of another reading. Returns its origin if the clock moved since this one: while a
    /// machine is suspended, its monotonic clock stands still.
    pub fn follow(&mut self, other: Self) -> Option<u64> {
        let moved = self.origin_ms.abs_diff(other.origin_ms) >= MOVED_MS;
        moved.then(|| {
            *self = other;
            other.origin_ms
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_told_of_a_clock_that_moved_once() {
        let clock = Clock::start();
        let at = |origin_ms| WallClock { clock, origin_ms };
        let mut known = at(10_000);
        assert_eq!(known.follow(at(10_000 + MOVED_MS - 1)), None);
        let after_suspension = at(70_000);
        assert_eq!(known.follow(after_suspension), Some(70_000));
        assert_eq!(known.follow(after_suspension), None);
        assert_eq!(known.follow(at(60_000)), Some(60_000), "or set back");
    }

    #[test]
    fn time_that_passes_does_not_move_the_clock() {
        let early = Clock(Instant::now() - Duration::from_secs(60));
        let (mut known, later) = (WallClock::read(early), WallClock::read(early));
        assert_eq!(known.follow(later), None);
        let age_ms = WallClock::read(Clock::start()).origin_ms() - known.origin_ms();
        assert!((59_000..90_000).contains(&age_ms), "{age_ms}");
    }
}
