//! Leaders that are just fast enough not to be given up: what they say is true, and late.

use super::Behaviour;
use quorate_consensus::Message as Said;
use quorate_engine::{Message, Settings};
use std::time::Duration;

/// Part of a view's span by which their proposals are late, in percent.
const LATE_PERCENT: u32 = 80;

impl Behaviour {
    /// Time by which a message of such a member leaves late, where views time out after
    /// `view_timeout`.
    pub(crate) fn lateness(self, message: &Message, view_timeout: Duration) -> Duration {
        let is_late = matches!(self, Self::SlowLeader | Self::MiserlyLeader) && proposes(message);
        if is_late { view_timeout * LATE_PERCENT / 100 } else { Duration::ZERO }
    }

    /// Settings under which a member's machine behaves so; most need none of their own.
    #[must_use]
    pub fn settings(self, mut settings: Settings) -> Settings {
        if self == Self::MiserlyLeader {
            // Of bodies that hold more than that, one.
            settings.comparison.block_operations_max = 1;
            settings.concurrent_slots = 1;
        }
        settings
    }
}

fn proposes(message: &Message) -> bool {
    match message {
        Message::Consensus(said) | Message::Inline(said, _) => is_proposal(said),
        _ => false,
    }
}

/// Returns `true` if a leader or primary proposes with it.
fn is_proposal(said: &Said) -> bool {
    said.proposed_bodies().is_some()
}
