//! Classes of protocol messages, for simulators that treat or charge them apart.

use crate::{FamilyMessage, Message, chained, windowed};

/// Classes of messages that a simulator can deliver apart, and that cost a replica differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageClass {
    /// Proposals: a chained protocol's block, a windowed one's pre-prepare.
    Proposal,
    /// Votes and shares towards a certificate.
    Vote,
    /// Messages of view changes, certificates, and everything else.
    Change,
}

impl MessageClass {
    /// Class of a message of any protocol.
    #[must_use]
    pub fn of(message: &Message) -> Self {
        match message.by_family() {
            FamilyMessage::Chained(said) => Self::of_chained(said),
            FamilyMessage::Windowed(said) => Self::of_windowed(said),
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
            | Statement::Equivocation(_)
            | Statement::Suspicion(_) => Self::Change,
        }
    }
}
