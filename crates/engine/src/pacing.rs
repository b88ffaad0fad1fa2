//! Pause of a leader before it proposes, where processors are scarce (ADR 48).
//!
//! A height costs every member messages, signatures and a sync, whatever it orders. Where threads
//! wait for processors, heights that begin as soon as they can make one another slow; a host that
//! measures this says how long a pause is worth its while. Here is what keeps a pause from doing
//! harm, whatever the host says:
//!
//! - Heights that are few have none: what begins after a quiet time begins at once.
//! - It is over so long after the leader could have proposed, not after there was something to
//!   propose: a view has one at most, and what comes later than that waits for nothing.
//! - It is as long as the protocol allows at most, a small part of a view's timeout; and under a
//!   leader that stays there is none where bodies already wait for half of what its judges allow.

use quorate_types::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// Heights are many if so many are decided within a view's timeout.
const HEIGHTS: usize = 8;
/// Under a leader that stays, bodies may wait for this part of a view's timeout: an eighth is what
/// its judges allow at least.
const WAIT_PART: u32 = 16;

/// Pace that the host sets, and what the last heights say about it.
#[derive(Debug)]
pub(crate) struct Pacing {
    timeout: Duration,
    pace: Duration,
    /// Times of the last decisions, oldest first, each with the time for which the oldest body of
    /// its height had waited here.
    decided: VecDeque<(Time, Duration)>,
}

impl Pacing {
    /// No pauses, in views of this timeout.
    pub(crate) const fn new(timeout: Duration) -> Self {
        Self { timeout, pace: Duration::ZERO, decided: VecDeque::new() }
    }

    /// The host would have leaders wait for so long from now on.
    pub(crate) const fn set(&mut self, pace: Duration) {
        self.pace = pace;
    }

    /// The pace that the host sets.
    pub(crate) const fn pace(&self) -> Duration {
        self.pace
    }

    /// A height was decided whose oldest body had waited here for so long.
    pub(crate) fn decided(&mut self, now: Time, waited: Duration) {
        self.decided.push_back((now, waited));
        if self.decided.len() > HEIGHTS {
            self.decided.pop_front();
        }
    }

    /// Time until which a leader that may propose since `since` had better wait, where it may for
    /// `longest`; `None` if it had better not.
    pub(crate) fn until(&self, since: Time, longest: Duration) -> Option<Time> {
        let pause = self.pace.min(longest);
        (!pause.is_zero() && self.are_many(since)).then(|| since + pause)
    }

    /// Returns `true` if bodies waited for so long of late that a leader that stays must not add to
    /// it.
    pub(crate) fn waits_are_long(&self) -> bool {
        let allowed = self.timeout / WAIT_PART;
        self.decided.iter().any(|(_, waited)| *waited > allowed)
    }

    fn are_many(&self, now: Time) -> bool {
        let oldest = self.decided.front().filter(|_| self.decided.len() == HEIGHTS);
        oldest.is_some_and(|(at, _)| now.since(*at) <= self.timeout)
    }
}

#[cfg(test)]
mod tests;
