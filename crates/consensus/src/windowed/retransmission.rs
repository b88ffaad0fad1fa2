//! Retransmission schedule: times of the own statuses, and rates at which others' are answered.
//!
//! Paper 002 (§II) assumes a layer that sends again. Here a member that waits for something sends
//! its status every so often, and members that have what it lacks send it: a collector that leaves
//! out one replica at each slot would otherwise stop them all, one after the other.

use crate::last_times::LastTimes;
use quorate_types::{ReplicaId, Time};
use std::time::Duration;

/// Statuses sent after a start, whether or not anything is known to be missing.
const STATUSES_AT_START: u32 = 4;

/// Times of the own statuses, and of the last answers to each member.
#[derive(Debug)]
pub(super) struct Retransmission {
    every: Duration,
    needed: bool,
    /// Statuses left to send, whether or not anything is known to be missing.
    owed: u32,
    ask_at: Option<Time>,
    turn: u32,
    answered: LastTimes,
    shown_changes: LastTimes,
}

impl Retransmission {
    /// Schedule with this interval between statuses.
    pub(super) fn new(every: Duration) -> Self {
        Self {
            every,
            needed: false,
            owed: 0,
            ask_at: None,
            turn: 0,
            answered: LastTimes::default(),
            shown_changes: LastTimes::default(),
        }
    }

    /// Interval between statuses, while something is missing.
    pub(super) fn every(&self) -> Duration {
        self.every
    }

    /// Sends a status at once: nobody tells unasked what was decided while this replica was down.
    pub(super) fn start(&mut self, now: Time) {
        self.owed = STATUSES_AT_START;
        self.ask_by(now);
    }

    /// Starts or stops the schedule.
    pub(super) fn set_needed(&mut self, now: Time, needed: bool) {
        let needed = needed || self.owed > 0;
        if needed != self.needed {
            self.needed = needed;
            self.ask_at = needed.then(|| now + self.every);
        }
    }

    /// Puts the next status off: something was decided.
    pub(super) fn progressed(&mut self, now: Time) {
        self.ask_at = self.needed.then(|| now + self.every);
    }

    /// Schedules a status no later than at this time.
    pub(super) fn ask_by(&mut self, at: Time) {
        self.needed = true;
        self.ask_at = Some(self.ask_at.map_or(at, |ask_at| ask_at.min(at)));
    }

    /// Schedules so many, the first no later than at this time, for who is behind others, though it
    /// knows of nothing that it lacks.
    pub(super) fn ask_times_by(&mut self, at: Time, statuses: u32) {
        self.owed = self.owed.max(statuses);
        self.ask_by(at);
    }

    /// Time of the next status.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.ask_at
    }

    /// Number of the statuses so far, wrapping.
    pub(super) fn turn(&self) -> u32 {
        self.turn
    }

    /// Returns `true` if a status is due, and schedules the next.
    pub(super) fn is_due(&mut self, now: Time) -> bool {
        let is_due = self.ask_at.is_some_and(|at| at <= now);
        if is_due {
            self.ask_at = self.needed.then(|| now + self.every);
            self.turn = self.turn.wrapping_add(1);
            self.owed = self.owed.saturating_sub(1);
        }
        is_due
    }

    /// Returns `true` if this member was answered within an eighth of the interval.
    pub(super) fn has_answered(&self, now: Time, to: ReplicaId) -> bool {
        self.answered.is_within(now, to, self.every / 8)
    }

    /// Records an answer to a member.
    pub(super) fn note_answer(&mut self, now: Time, to: ReplicaId) {
        self.answered.note(now, to);
    }

    /// Returns `true` if view changes, which are large, were sent to this member within an eighth
    /// of the interval.
    pub(super) fn has_sent_view_changes(&self, now: Time, to: ReplicaId) -> bool {
        self.shown_changes.is_within(now, to, self.every / 8)
    }

    /// Records that view changes were sent to a member.
    pub(super) fn note_view_changes(&mut self, now: Time, to: ReplicaId) {
        self.shown_changes.note(now, to);
    }

    /// Number of answers that are remembered.
    pub(super) fn len(&self) -> usize {
        self.answered.len() + self.shown_changes.len()
    }
}
