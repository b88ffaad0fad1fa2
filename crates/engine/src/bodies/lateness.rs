//! Delay of bodies from their authors, and the time to wait before asking somebody else.
//!
//! A proposal is small and overtakes the bodies that it names, the more so the more is under way. A
//! body that is asked for while its author's copy is still coming arrives twice; under load, when
//! everything is late, that would multiply the load just when there is too much of it. So the wait
//! follows what lateness is usual. It stays bounded: an author that is dead sends nothing.

use std::time::Duration;

/// A wanted body is usually on its way already.
pub(super) const GRACE_MIN: Duration = Duration::from_millis(20);
/// Longest delay that a dead author costs, on top of the fetch.
const GRACE_MAX: Duration = Duration::from_secs(1);

/// The usual lateness: jumps up with what is later, and fades by a sixteenth with each body that is
/// not.
#[derive(Debug, Default)]
pub(super) struct Lateness(Duration);

impl Lateness {
    /// A body came from its author, so long after it was wanted.
    pub(super) fn observe(&mut self, late: Duration) {
        self.0 = late.max(self.0 - self.0 / 16);
    }

    /// Time to wait for an author before asking others.
    pub(super) fn grace(&self) -> Duration {
        (self.0 * 3 / 2).clamp(GRACE_MIN, GRACE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{GRACE_MAX, GRACE_MIN, Lateness};
    use std::time::Duration;

    #[test]
    fn the_wait_follows_what_is_usual_within_bounds() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.grace(), GRACE_MIN);
        lateness.observe(Duration::from_millis(200));
        assert_eq!(lateness.grace(), Duration::from_millis(300));
        for _ in 0..100 {
            lateness.observe(Duration::from_millis(1));
        }
        assert_eq!(lateness.grace(), GRACE_MIN, "it fades");
        lateness.observe(Duration::from_secs(60));
        assert_eq!(lateness.grace(), GRACE_MAX);
    }
}
