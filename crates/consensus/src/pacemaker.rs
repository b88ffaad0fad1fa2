//! When a view has taken too long.
//!
//! The timer runs only while there is work. A view's span grows by half for each view in a row that
//! was given up since the last decision, twelve times at most: replicas whose clocks and delays
//! differ come to stand in one view for long enough, and a single decision resets it.

use quorate_types::Time;
use std::time::Duration;

/// Most times that the span grows.
const BACKOFF_MAX: u32 = 12;

/// The timer of the current view.
#[derive(Debug)]
pub struct Pacemaker {
    span: Duration,
    given_up: u32,
    working: bool,
    deadline: Option<Time>,
}

impl Pacemaker {
    /// A timer at rest, with the span of a first view.
    #[must_use]
    pub fn new(span: Duration) -> Self {
        Self { span, given_up: 0, working: false, deadline: None }
    }

    /// A view was entered: by a certificate of votes, or because the one before was given up.
    pub fn enter(&mut self, now: Time, given_up: bool) {
        if given_up {
            self.given_up = self.given_up.saturating_add(1);
        }
        self.deadline = self.working.then(|| now + self.current_span());
    }

    /// Something was decided.
    pub fn decided(&mut self) {
        self.given_up = 0;
    }

    /// Whether there is work to wait for. The timer starts when work appears and stops when the last
    /// of it is done.
    pub fn set_working(&mut self, now: Time, working: bool) {
        if working == self.working {
            return;
        }
        self.working = working;
        self.deadline = working.then(|| now + self.current_span());
    }

    /// Starts the timer again in the same view.
    pub fn rearm(&mut self, now: Time) {
        self.deadline = Some(now + self.current_span());
    }

    /// Whether the view has taken too long.
    #[must_use]
    pub fn is_due(&self, now: Time) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// When it will have.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// `span · 1.5^min(k, 12)`, in whole microseconds.
    fn current_span(&self) -> Duration {
        (0..self.given_up.min(BACKOFF_MAX)).fold(self.span, |span, _| span * 3 / 2)
    }
}

#[cfg(test)]
mod tests;
