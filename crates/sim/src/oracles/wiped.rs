//! A member that lost its promises, or knows them to be older than its signatures, makes no more.

use super::{Observation, Oracle};
use quorate_consensus::chained::Message as Statement;
use quorate_consensus::windowed::Message as SlotStatement;
use quorate_engine::Message;
use quorate_types::ReplicaId;
use std::collections::BTreeSet;

/// A member that lost its disk follows and serves other members; it proposes, votes, times out and
/// acknowledges nothing, and answers no client. Nor does a learner, which has no voice, in the
/// epochs in which it is one.
#[derive(Debug, Default)]
pub struct Wiped {
    members: BTreeSet<ReplicaId>,
    learners: BTreeSet<ReplicaId>,
}

impl Oracle for Wiped {
    fn name(&self) -> &'static str {
        "wiped"
    }

    fn observe(&mut self, observation: &Observation<'_>) -> Result<(), String> {
        match observation {
            Observation::Wiped { replica } | Observation::StoppedSigning { replica, .. } => {
                self.members.insert(*replica);
                Ok(())
            }
            Observation::Began { replica, is_member: true, .. } => {
                self.learners.remove(replica);
                Ok(())
            }
            Observation::Began { replica, is_member: false, .. } => {
                self.learners.insert(*replica);
                Ok(())
            }
            Observation::Released { replica, message, .. } => {
                let has_lost = self.members.contains(replica);
                let why = if has_lost { "lost its promises" } else { "is no member" };
                let is_silent = has_lost || self.learners.contains(replica);
                let what = promise_in(message).filter(|_| is_silent);
                what.map_or(Ok(()), |what| Err(format!("{replica} {why} and sent {what}")))
            }
            _ => Ok(()),
        }
    }
}

/// Promise in a message, if it makes one.
pub(super) fn promise_in(message: &Message) -> Option<&'static str> {
    let inner = match message {
        Message::Consensus(inner) | Message::Inline(inner, _) => inner,
        Message::Acknowledgement(_) => return Some("an acknowledgement"),
        Message::Reply(_) => return Some("a reply"),
        Message::ExecutionShare(..) => return Some("what a height came to"),
        Message::CheckpointShare(..) => return Some("a checkpoint"),
        _ => return None,
    };
    if let Some(said) = inner.windowed() {
        return promise_about_slots(said);
    }
    match inner.chained()? {
        Statement::Proposal(_) => Some("a proposal"),
        Statement::Vote(_) | Statement::PhaseVote(_) => Some("a vote"),
        Statement::Timeout(_) => Some("a timeout"),
        Statement::NewView(_) => Some("a new-view"),
        Statement::Certificates { .. } | Statement::PreCommitted(_) => None,
    }
}

fn promise_about_slots(said: &SlotStatement) -> Option<&'static str> {
    match said {
        SlotStatement::PrePrepare(_) => Some("a value for a slot"),
        SlotStatement::SignShare(_) => Some("a vote"),
        SlotStatement::CommitShare(_) => Some("a vote to decide"),
        SlotStatement::Suspicion(_) => Some("a complaint"),
        SlotStatement::Prepare(_)
        | SlotStatement::Proof(_)
        | SlotStatement::Payload(_)
        | SlotStatement::Decided(_)
        // Others' are shown to those who missed them.
        | SlotStatement::ViewChange(_)
        | SlotStatement::NewView(_)
        | SlotStatement::FetchViewChanges(..)
        | SlotStatement::Status(_)
        | SlotStatement::Stable(_)
        | SlotStatement::Equivocation(_) => None,
    }
}
