//! Reasons why a message that passed its checks changes nothing.
//!
//! A handler `on_<message>` asks `ignore_<message>` first. An honest member causes each of these:
//! messages arrive late, twice, or where somebody else was faster. A rule that was broken is
//! [`Misbehaviour`](crate::Misbehaviour) instead.

use crate::MessageKind;
use std::fmt;

/// Reason why a checked message had no effect on the machine that received it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ignored {
    /// Its view is over here.
    StaleView,
    /// Its view has not been entered here, and nothing in the message leads there.
    FutureView,
    /// Its view is the current one, which waits for the message that begins it.
    ViewNotBegun,
    /// Its sender, or the author of what it carries, does not lead the view.
    NotFromLeader,
    /// It is for the leader of the view, and this replica is not.
    NotLeader,
    /// It is for a collector of votes, and this replica is none for them.
    NotCollector,
    /// Its slot is outside the window of slots that are open.
    OutsideWindow,
    /// The values of undecided slots take as much room as a view change has for them.
    WindowFull,
    /// It is about a slot or block that is decided here.
    AlreadyDecided,
    /// It is a part of a certificate, or the certificate, and one as high is known here.
    AlreadyCertified,
    /// Its sender said the same before.
    Duplicate,
    /// Its sender has said two other things where one is allowed: those two are the evidence.
    Conflicting,
    /// Nothing that it brings is missing here, or nobody here asked for it.
    NotNeeded,
}

impl Ignored {
    /// Every reason, in the order of the declaration.
    pub const ALL: [Self; 13] = [
        Self::StaleView,
        Self::FutureView,
        Self::ViewNotBegun,
        Self::NotFromLeader,
        Self::NotLeader,
        Self::NotCollector,
        Self::OutsideWindow,
        Self::WindowFull,
        Self::AlreadyDecided,
        Self::AlreadyCertified,
        Self::Duplicate,
        Self::Conflicting,
        Self::NotNeeded,
    ];

    /// Name in metrics and logs, in lower case with hyphens.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::StaleView => "stale-view",
            Self::FutureView => "future-view",
            Self::ViewNotBegun => "view-not-begun",
            Self::NotFromLeader => "not-from-leader",
            Self::NotLeader => "not-leader",
            Self::NotCollector => "not-collector",
            Self::OutsideWindow => "outside-window",
            Self::WindowFull => "window-full",
            Self::AlreadyDecided => "already-decided",
            Self::AlreadyCertified => "already-certified",
            Self::Duplicate => "duplicate",
            Self::Conflicting => "conflicting",
            Self::NotNeeded => "not-needed",
        }
    }
}

/// Number of ignored messages since the start, by kind and reason. Counting allocates nothing.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct IgnoredCounts([[u64; Ignored::ALL.len()]; MessageKind::ALL.len()]);

impl IgnoredCounts {
    /// Counts one message of this kind.
    pub fn count(&mut self, kind: MessageKind, reason: Ignored) {
        self.0[kind as usize][reason as usize] += 1;
    }

    /// Number of messages of this kind that were ignored for this reason.
    #[must_use]
    pub const fn of(&self, kind: MessageKind, reason: Ignored) -> u64 {
        self.0[kind as usize][reason as usize]
    }

    /// The counts that are not zero, by kind and then by reason.
    pub fn iter(&self) -> impl Iterator<Item = (MessageKind, Ignored, u64)> + '_ {
        let reasons = |kind| Ignored::ALL.into_iter().map(move |reason| (kind, reason));
        let all = MessageKind::ALL.into_iter().flat_map(reasons);
        all.map(|(kind, reason)| (kind, reason, self.of(kind, reason))).filter(|(.., n)| *n > 0)
    }
}

impl fmt::Debug for IgnoredCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests;
