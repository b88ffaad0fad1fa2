//! Correct members find nothing wrong with one another, and never stop.

use super::{Observation, Oracle};
use quorate_types::ReplicaId;
use std::collections::BTreeSet;

/// While no more members are faulty than the committee tolerates, no correct member halts or, with
/// the disk that it wrote itself, stops signing or is proven to have broken a rule, and no frame of
/// a correct sender is refused for anything but being late or early, nor is one cut off.
#[derive(Clone, Debug, Default)]
pub struct FalseAccusations {
    restored: BTreeSet<ReplicaId>,
}

impl Oracle for FalseAccusations {
    fn name(&self) -> &'static str {
        "conduct"
    }

    fn observe(&mut self, observation: &Observation<'_>) -> Result<(), String> {
        match observation {
            Observation::Halted { replica, halt } => Err(format!("{replica} halted: {halt}")),
            Observation::Restored { replica } => {
                self.restored.insert(*replica);
                Ok(())
            }
            Observation::StoppedSigning { replica, reason } if !self.restored.contains(replica) => {
                Err(format!("{replica} stopped signing: {reason}"))
            }
            Observation::Proven { replica, member, rule, is_correct: true }
                if !self.restored.contains(member) =>
            {
                Err(format!("{replica} has proof that {member}, which is correct, broke {rule:?}"))
            }
            Observation::Refused { reason, tag } if !reason.is_innocent() => {
                Err(format!("a correct member's frame with tag {tag} was refused: {reason}"))
            }
            Observation::Barred { replica, peer, is_correct: true } => {
                Err(format!("{replica} takes nothing from {peer:?}, which is correct"))
            }
            _ => Ok(()),
        }
    }
}
