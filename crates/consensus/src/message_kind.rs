//! Names of the protocols' messages, for counters.

use crate::{FamilyMessage, Message, chained, windowed};

/// Kind of a protocol's message, of either family, for counters and logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessageKind {
    /// Block of a leader ([`chained::Message::Proposal`]).
    Proposal,
    /// Vote for a block ([`chained::Message::Vote`]).
    Vote,
    /// Complaint that a view takes too long ([`chained::Message::Timeout`]).
    Timeout,
    /// Highest certificates of the sender ([`chained::Message::Certificates`]).
    Certificates,
    /// Vote of a later phase ([`chained::Message::PhaseVote`]).
    PhaseVote,
    /// Certificate of pre-commit votes ([`chained::Message::PreCommitted`]).
    PreCommitted,
    /// Beginning of a view: a follower tells its leader, or a primary tells all.
    NewView,
    /// Value of a primary for a slot ([`windowed::Message::PrePrepare`]).
    PrePrepare,
    /// Vote for a slot's value ([`windowed::Message::SignShare`]).
    SignShare,
    /// Certificate of votes for a slot ([`windowed::Message::Prepare`]).
    Prepare,
    /// Vote to decide a slot ([`windowed::Message::CommitShare`]).
    CommitShare,
    /// Certificate that decides a slot ([`windowed::Message::Proof`]).
    Proof,
    /// Value for a digest that is known ([`windowed::Message::Payload`]).
    Payload,
    /// Decided slot as a whole ([`windowed::Message::Decided`]).
    Decided,
    /// Report of a member that leaves a view ([`windowed::Message::ViewChange`]).
    ViewChange,
    /// Request for reports of a view change ([`windowed::Message::FetchViewChanges`]).
    FetchViewChanges,
    /// List of what the sender lacks ([`windowed::Message::Status`]).
    Status,
    /// Certificate of a checkpoint ([`windowed::Message::Stable`]).
    Stable,
    /// Pair of values that convicts a primary ([`windowed::Message::Equivocation`]).
    Equivocation,
    /// Complaint about a primary ([`windowed::Message::Suspicion`]).
    Suspicion,
}

impl MessageKind {
    /// Every kind, in the order of the declaration.
    pub const ALL: [Self; 20] = [
        Self::Proposal,
        Self::Vote,
        Self::Timeout,
        Self::Certificates,
        Self::PhaseVote,
        Self::PreCommitted,
        Self::NewView,
        Self::PrePrepare,
        Self::SignShare,
        Self::Prepare,
        Self::CommitShare,
        Self::Proof,
        Self::Payload,
        Self::Decided,
        Self::ViewChange,
        Self::FetchViewChanges,
        Self::Status,
        Self::Stable,
        Self::Equivocation,
        Self::Suspicion,
    ];

    /// Name in metrics and logs, in lower case with hyphens.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Proposal => "proposal",
            Self::Vote => "vote",
            Self::Timeout => "timeout",
            Self::Certificates => "certificates",
            Self::PhaseVote => "phase-vote",
            Self::PreCommitted => "pre-committed",
            Self::NewView => "new-view",
            Self::PrePrepare => "pre-prepare",
            Self::SignShare => "sign-share",
            Self::Prepare => "prepare",
            Self::CommitShare => "commit-share",
            Self::Proof => "proof",
            Self::Payload => "payload",
            Self::Decided => "decided",
            Self::ViewChange => "view-change",
            Self::FetchViewChanges => "fetch-view-changes",
            Self::Status => "status",
            Self::Stable => "stable",
            Self::Equivocation => "equivocation",
            Self::Suspicion => "suspicion",
        }
    }
}

impl Message {
    /// Kind of the message, whichever protocol sent it.
    #[must_use]
    pub fn kind(&self) -> MessageKind {
        match self.by_family() {
            FamilyMessage::Chained(message) => message.kind(),
            FamilyMessage::Windowed(message) => message.kind(),
        }
    }
}

impl chained::Message {
    /// Kind of the message, the same for all chained protocols.
    #[must_use]
    pub const fn kind(&self) -> MessageKind {
        match self {
            Self::Proposal(_) => MessageKind::Proposal,
            Self::Vote(_) => MessageKind::Vote,
            Self::Timeout(_) => MessageKind::Timeout,
            Self::Certificates { .. } => MessageKind::Certificates,
            Self::PhaseVote(_) => MessageKind::PhaseVote,
            Self::PreCommitted(_) => MessageKind::PreCommitted,
            Self::NewView(_) => MessageKind::NewView,
        }
    }
}

impl windowed::Message {
    /// Kind of the message, the same for all windowed protocols.
    #[must_use]
    pub const fn kind(&self) -> MessageKind {
        match self {
            Self::PrePrepare(_) => MessageKind::PrePrepare,
            Self::SignShare(_) => MessageKind::SignShare,
            Self::Prepare(_) => MessageKind::Prepare,
            Self::CommitShare(_) => MessageKind::CommitShare,
            Self::Proof(_) => MessageKind::Proof,
            Self::Payload(_) => MessageKind::Payload,
            Self::Decided(_) => MessageKind::Decided,
            Self::ViewChange(_) => MessageKind::ViewChange,
            Self::NewView(_) => MessageKind::NewView,
            Self::FetchViewChanges(..) => MessageKind::FetchViewChanges,
            Self::Status(_) => MessageKind::Status,
            Self::Stable(_) => MessageKind::Stable,
            Self::Equivocation(_) => MessageKind::Equivocation,
            Self::Suspicion(_) => MessageKind::Suspicion,
        }
    }
}
