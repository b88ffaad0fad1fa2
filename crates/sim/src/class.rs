//! Kinds of protocol messages, for whoever treats them apart.

use quorate_consensus::{Message, Said, chained, windowed};

/// Kinds of messages that a plan can treat apart, and that cost differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Proposals.
    Proposal,
    /// Votes.
    Vote,
    /// Whatever is said when a view is given up, and certificates.
    Change,
}

impl Class {
    /// A message's.
    #[must_use]
    pub fn of(message: &Message) -> Self {
        match message.said() {
            Said::Chained(said) => Self::of_chained(said),
            Said::Windowed(said) => Self::of_windowed(said),
        }
    }

    fn of_chained(said: &chained::Message) -> Self {
        use chained::Message as Statement;
        match said {
            Statement::Proposal(_) => Self::Proposal,
            Statement::Vote(_) | Statement::PhaseVote(_) => Self::Vote,
            Statement::Timeout(_)
            | Statement::Certificates { .. }
            | Statement::PreCommitted(_)
            | Statement::NewView(_) => Self::Change,
        }
    }

    fn of_windowed(said: &windowed::Message) -> Self {
        use windowed::Message as Statement;
        match said {
            Statement::PrePrepare(_) => Self::Proposal,
            Statement::SignShare(_) | Statement::CommitShare(_) => Self::Vote,
            Statement::Prepare(_)
            | Statement::Proof(_)
            | Statement::Payload(_)
            | Statement::Decided(_)
            | Statement::ViewChange(_)
            | Statement::NewView(_)
            | Statement::FetchViewChanges(..)
            | Statement::Status(_)
            | Statement::Stable(_)
            | Statement::Equivocation(_) => Self::Change,
        }
    }
}
