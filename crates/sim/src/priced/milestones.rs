//! How a view change went: who said what when.

use super::Nanos;
use quorate_consensus::{Said, windowed};
use quorate_engine::Message;
use serde::{Deserialize, Serialize};

/// Moments of the first change of views after somebody crashed, in milliseconds since then. Only of
/// protocols that order in slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ViewChange {
    /// The first member gave the view up and reported what it knows.
    pub given_up_ms: f64,
    /// The last did.
    pub last_report_ms: f64,
    /// The new primary had enough reports, checked, and proposed the new view, if it came to that.
    pub new_view_ms: Option<f64>,
    /// Something new was decided, if it was.
    pub resumed_ms: Option<f64>,
    /// Bytes of the longest report.
    pub report_bytes: u64,
}

/// What a run notes of it.
#[derive(Debug, Default)]
pub(crate) struct Milestones {
    crashed: Option<Nanos>,
    given_up: Option<Nanos>,
    last_report: Nanos,
    new_view: Option<Nanos>,
    resumed: Option<Nanos>,
    report_bytes: usize,
}

impl Milestones {
    pub(crate) fn crash(&mut self, now: Nanos) {
        self.crashed.get_or_insert(now);
    }

    /// A member says something, in so many bytes.
    pub(crate) fn said(&mut self, now: Nanos, message: &Message, bytes: usize) {
        let Message::Consensus(message) = message else { return };
        if self.crashed.is_none() || self.resumed.is_some() {
            return;
        }
        match message.said() {
            Said::Windowed(windowed::Message::ViewChange(_)) if self.new_view.is_none() => {
                self.given_up.get_or_insert(now);
                self.last_report = now;
                self.report_bytes = self.report_bytes.max(bytes);
            }
            Said::Windowed(windowed::Message::NewView(_)) => {
                self.new_view.get_or_insert(now);
            }
            _ => {}
        }
    }

    /// A height was decided that was not before.
    pub(crate) fn decided(&mut self, now: Nanos) {
        if self.new_view.is_some() {
            self.resumed.get_or_insert(now);
        }
    }

    /// All of them, if a view was given up.
    pub(crate) fn view_change(&self) -> Option<ViewChange> {
        let crashed = self.crashed?;
        let ms = |at: Nanos| (at - crashed) as f64 / 1e6;
        Some(ViewChange {
            given_up_ms: ms(self.given_up?),
            last_report_ms: ms(self.last_report),
            new_view_ms: self.new_view.map(ms),
            resumed_ms: self.resumed.map(ms),
            report_bytes: self.report_bytes as u64,
        })
    }
}
