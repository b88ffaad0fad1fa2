//! Moments of a view change, by the messages that were sent.

use crate::outcome::ViewChange;
use crate::time::Nanos;
use quorate_consensus::{FamilyMessage, windowed};
use quorate_engine::Message;

/// Probe for the first view change after the first crash.
#[derive(Debug, Default)]
pub(crate) struct ViewChangeProbe {
    crashed: Option<Nanos>,
    first_report: Option<Nanos>,
    last_report: Nanos,
    new_view: Option<Nanos>,
    resumed: Option<Nanos>,
    report_bytes: usize,
}

impl ViewChangeProbe {
    /// Notes that a member crashed.
    pub(crate) fn on_crash(&mut self, now: Nanos) {
        self.crashed.get_or_insert(now);
    }

    /// Notes that a member sent a message of so many bytes.
    pub(crate) fn on_sent(&mut self, now: Nanos, message: &Message, bytes: usize) {
        let Message::Consensus(message) = message else { return };
        if self.crashed.is_none() || self.resumed.is_some() {
            return;
        }
        match message.by_family() {
            FamilyMessage::Windowed(windowed::Message::ViewChange(_))
                if self.new_view.is_none() =>
            {
                self.first_report.get_or_insert(now);
                self.last_report = now;
                self.report_bytes = self.report_bytes.max(bytes);
            }
            FamilyMessage::Windowed(windowed::Message::NewView(_)) => {
                self.new_view.get_or_insert(now);
            }
            _ => {}
        }
    }

    /// Notes that a height was decided for the first time.
    pub(crate) fn on_decided(&mut self, now: Nanos) {
        if self.new_view.is_some() {
            self.resumed.get_or_insert(now);
        }
    }

    /// Moments of the view change; `None` if there was none.
    pub(crate) fn view_change(&self) -> Option<ViewChange> {
        let crashed = self.crashed?;
        let ms = |at: Nanos| (at - crashed) as f64 / 1e6;
        Some(ViewChange {
            given_up_ms: ms(self.first_report?),
            last_report_ms: ms(self.last_report),
            new_view_ms: self.new_view.map(ms),
            resumed_ms: self.resumed.map(ms),
            report_bytes: self.report_bytes as u64,
        })
    }
}
