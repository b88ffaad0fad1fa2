//! A vote promises that every body of its block is durable at the voter.

use super::{Observation, Oracle};
use quorate_consensus as consensus;
use quorate_consensus::jolteon::Message as Jolteon;
use quorate_engine::Message;
use quorate_types::{BodyRef, ReplicaId, View};
use std::collections::{BTreeMap, BTreeSet};

/// Holds each vote against what the voter's disk has. It knows the blocks that correct leaders proposed,
/// one a view.
#[derive(Debug, Default)]
pub struct Availability {
    proposed: BTreeMap<View, Vec<BodyRef>>,
    stored: BTreeMap<ReplicaId, BTreeSet<BodyRef>>,
}

impl Oracle for Availability {
    fn name(&self) -> &'static str {
        "availability"
    }

    fn observe(&mut self, observation: &Observation<'_>) -> Result<(), String> {
        match observation {
            Observation::Kept { replica, bodies } => {
                self.stored.insert(*replica, bodies.iter().copied().collect());
                Ok(())
            }
            Observation::Stored { replica, body } => {
                self.stored.entry(*replica).or_default().insert(*body);
                Ok(())
            }
            Observation::Released { replica, message, .. } => self.released(*replica, message),
            _ => Ok(()),
        }
    }
}

impl Availability {
    fn released(&mut self, replica: ReplicaId, message: &Message) -> Result<(), String> {
        let (Message::Consensus(inner) | Message::Inline(inner, _)) = message else {
            return Ok(());
        };
        let consensus::Message::Jolteon(statement) = inner;
        match statement {
            Jolteon::Proposal(proposal) => {
                let bodies = proposal.block.payload.bodies.clone();
                self.proposed.insert(proposal.block.view, bodies);
                Ok(())
            }
            Jolteon::Vote(vote) => self.voted(replica, vote.view),
            _ => Ok(()),
        }
    }

    fn voted(&self, replica: ReplicaId, view: View) -> Result<(), String> {
        let bodies = self.proposed.get(&view).into_iter().flatten();
        let stored = self.stored.get(&replica);
        let is_missing = |body: &&BodyRef| !stored.is_some_and(|stored| stored.contains(*body));
        match bodies.into_iter().find(is_missing) {
            Some(body) => Err(format!("{replica} voted in {view} without {body:?} on its disk")),
            None => Ok(()),
        }
    }
}
