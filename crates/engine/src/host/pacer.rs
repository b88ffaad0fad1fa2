//! How long a leader on this machine had better wait before it proposes (ADR 48).
//!
//! Where processors are scarce, the machine thread is ready to run and waits for one. The part of
//! the time for which it does, over the last seconds, says how much heights are in one another's
//! way, and the pace follows it: nothing while the part is small, then more and more, up to half of
//! the time that a height takes of late. A pause lets the threads catch up, so that they wait less,
//! and the pace settles where the two meet. It cannot swing: the more a pause helps the shorter it
//! gets, by small steps.
//!
//! Idle machines and heights that are few have no pace: whoever sleeps waits for no processor.

use quorate_types::{Height, Time};
use std::time::Duration;

/// It looks so often at most.
const EVERY: Duration = Duration::from_millis(250);
/// What was seen so long ago counts a little more than a third of what is seen now.
const MEMORY: Duration = Duration::from_secs(2);
/// Up to this part of the time a thread waits without processors being scarce: others wake up at
/// the same moment now and then.
const WAITED_LEAST: f64 = 0.1;
/// Part of the time from which on the pace is as long as it gets.
const WAITED_MOST: f64 = 0.4;
/// The longest pace, as a part of the time between two heights.
const OF_HEIGHT: f64 = 0.5;
/// A shorter pace is none.
const PACE_MIN: Duration = Duration::from_millis(1);
/// None is longer, however long heights take.
const PACE_MAX: Duration = Duration::from_millis(100);

/// Rule that turns waiting into a pace.
#[derive(Debug, Default)]
pub struct Pacer {
    last: Option<Look>,
    /// Part of the time for which the thread waited, of late.
    waited: f64,
    /// Heights a second, of late.
    heights: f64,
    pace: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Look {
    at: Time,
    waited: Duration,
    decided: Height,
}

impl Pacer {
    /// Returns `true` if it is time to look again.
    #[must_use]
    pub fn is_due(&self, now: Time) -> bool {
        self.last.is_none_or(|last| now.since(last.at) >= EVERY)
    }

    /// Takes in for how long the thread has waited since it began, and the last decided height.
    /// Returns the pace if it is another one than before.
    pub fn look(&mut self, at: Time, waited: Duration, decided: Height) -> Option<Duration> {
        let last = self.last.replace(Look { at, waited, decided })?;
        let span = at.since(last.at).as_secs_f64();
        let mean = |mean: &mut f64, new: f64| {
            *mean += (new - *mean * span) / (span + MEMORY.as_secs_f64());
        };
        mean(&mut self.waited, waited.saturating_sub(last.waited).as_secs_f64());
        mean(&mut self.heights, decided.0.saturating_sub(last.decided.0) as f64);
        let pace = pace(self.waited, self.heights);
        let is_new = pace != self.pace;
        self.pace = pace;
        is_new.then_some(pace)
    }
}

/// Pace where a thread waits for this part of the time and so many heights a second are decided.
fn pace(waited: f64, heights: f64) -> Duration {
    let scarcity = (waited - WAITED_LEAST) / (WAITED_MOST - WAITED_LEAST);
    let seconds = OF_HEIGHT * scarcity.clamp(0.0, 1.0) / heights;
    let pace = Duration::try_from_secs_f64(seconds).unwrap_or_default().min(PACE_MAX);
    if pace < PACE_MIN { Duration::ZERO } else { pace }
}

#[cfg(test)]
mod tests;
