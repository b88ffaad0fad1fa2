//! Heights that nobody has anything to order in, so that whoever waits for the next one sees it.
//!
//! A committee with nothing to order decides nothing, and sends nothing. Clients of a chain of
//! blocks wait for more than their own, though: for confirmations, for a block to look at the state
//! of, for time to pass. Where members agree on a heartbeat (ADR 51), they owe a height whenever
//! the last was decided so long ago. It is work like any other: a leader that leaves it out times
//! out.

use quorate_types::Time;
use std::time::Duration;

/// When a committee owes the next height, whatever there is to order.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    every: Option<Duration>,
    /// The last decision, or the start.
    last: Time,
}

impl Heartbeat {
    /// A height every so many milliseconds at least; 0: when there is something to order.
    pub(crate) fn new(every_ms: u64) -> Self {
        let every = (every_ms > 0).then(|| Duration::from_millis(every_ms));
        Self { every, last: Time::default() }
    }

    /// A height was decided, or the replica starts: the next is owed so long from now.
    pub(crate) const fn decided(&mut self, now: Time) {
        self.last = now;
    }

    /// Returns `true` if a height is owed.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.every.is_some_and(|every| now >= self.last + every)
    }

    /// Time at which one is owed; `None` if one is already, or never is.
    pub(crate) fn deadline(&self, now: Time) -> Option<Time> {
        self.every.map(|every| self.last + every).filter(|due| *due > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_height_is_owed_so_long_after_the_last() {
        let at = |ms: u64| Time(ms * 1_000);
        let mut heartbeat = Heartbeat::new(500);
        heartbeat.decided(at(100));
        assert_eq!(
            (heartbeat.is_due(at(599)), heartbeat.deadline(at(599))),
            (false, Some(at(600)))
        );
        assert_eq!((heartbeat.is_due(at(600)), heartbeat.deadline(at(600))), (true, None));
        heartbeat.decided(at(700));
        assert_eq!(
            (heartbeat.is_due(at(700)), heartbeat.deadline(at(700))),
            (false, Some(at(1_200)))
        );
        let never = Heartbeat::new(0);
        assert_eq!((never.is_due(at(10_000_000)), never.deadline(at(0))), (false, None));
    }
}
