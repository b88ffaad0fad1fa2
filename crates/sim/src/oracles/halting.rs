//! A halt is final, and says why.

use super::{Observation, Oracle};
use quorate_types::ReplicaId;
use quorate_types::machine::Halt;
use std::collections::BTreeSet;

/// With more members faulty than is tolerated, a correct one may stop itself: with evidence, and
/// for good.
#[derive(Debug, Default)]
pub struct Halting {
    stopped: BTreeSet<ReplicaId>,
}

impl Oracle for Halting {
    fn name(&self) -> &'static str {
        "halting"
    }

    fn observe(&mut self, observation: &Observation<'_>) -> Result<(), String> {
        let (replica, does) = match observation {
            Observation::Halted { replica, halt } => {
                self.stopped.insert(*replica);
                return has_evidence(*replica, halt);
            }
            Observation::Released { replica, .. } => (replica, "spoke"),
            Observation::Executed { replica, .. } => (replica, "executed"),
            Observation::Booted { replica, .. } => (replica, "started"),
            _ => return Ok(()),
        };
        let silent = !self.stopped.contains(replica);
        silent.then_some(()).ok_or_else(|| format!("{replica} {does} after it had halted"))
    }
}

fn has_evidence(replica: ReplicaId, halt: &Halt) -> Result<(), String> {
    match halt {
        Halt::ConflictingDecisions { evidence, .. } if evidence.contains("Qc(") => Ok(()),
        Halt::ConflictingDecisions { .. } => {
            Err(format!("{replica} halted over a conflict and shows no certificate"))
        }
        // No scenario has more faulty members than its committee tolerates.
        Halt::ConflictingHandOvers { .. } => Err(format!("{replica} halted: {halt}")),
        // No fault of a scenario changes what a correct member reads back.
        Halt::CorruptRecovery(reason) => Err(format!("{replica} halted: {reason}")),
    }
}
