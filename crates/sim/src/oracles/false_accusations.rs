//! Correct members find nothing wrong with one another, and never stop.

use super::{Observation, Oracle};

/// While no more members are faulty than the committee tolerates, no correct member halts, and no
/// frame of a correct sender is refused for anything but being late or early, nor is one cut off.
#[derive(Clone, Debug, Default)]
pub struct FalseAccusations;

impl Oracle for FalseAccusations {
    fn name(&self) -> &'static str {
        "conduct"
    }

    fn observe(&mut self, observation: &Observation<'_>) -> Result<(), String> {
        match observation {
            Observation::Halted { replica, halt } => Err(format!("{replica} halted: {halt}")),
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
