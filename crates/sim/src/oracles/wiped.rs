//! Who lost its promises makes no more of them.

use super::{Observation, Oracle};
use quorate_consensus::chained::Message as Statement;
use quorate_engine::Message;
use quorate_types::ReplicaId;
use std::collections::BTreeSet;

/// A member that lost its disk follows and serves other members; it proposes, votes, gives up and
/// acknowledges nothing, and answers no client.
#[derive(Debug, Default)]
pub struct Wiped {
    members: BTreeSet<ReplicaId>,
}

impl Oracle for Wiped {
    fn name(&self) -> &'static str {
        "wiped"
    }

    fn observe(&mut self, observation: &Observation<'_>) -> Result<(), String> {
        match observation {
            Observation::Wiped { replica } => {
                self.members.insert(*replica);
                Ok(())
            }
            Observation::Released { replica, message, .. } if self.members.contains(replica) => {
                let what = promise_in(message);
                what.map_or(Ok(()), |what| {
                    Err(format!("{replica} lost its promises and sent {what}"))
                })
            }
            _ => Ok(()),
        }
    }
}

fn promise_in(message: &Message) -> Option<&'static str> {
    let inner = match message {
        Message::Consensus(inner) | Message::Inline(inner, _) => inner,
        Message::Acknowledgement(_) => return Some("an acknowledgement"),
        Message::Reply(_) => return Some("a reply"),
        Message::ExecutionShare(..) => return Some("what a height came to"),
        _ => return None,
    };
    let statement = inner.chained();
    match statement {
        Statement::Proposal(_) => Some("a proposal"),
        Statement::Vote(_) | Statement::PhaseVote(_) => Some("a vote"),
        Statement::Timeout(_) => Some("a timeout"),
        Statement::NewView(_) => Some("a new-view"),
        Statement::Certificates { .. } | Statement::PreCommitted(_) => None,
    }
}
