//! A member that starts on an old copy of its disk finds out before it signs.

use super::wiped::promise_in;
use super::{Observation, Oracle, RunEnd};
use quorate_engine::{Status, WitnessState};
use quorate_types::ReplicaId;
use std::collections::BTreeSet;

/// A member whose disk is an old copy promises nothing, from its start on; where the others hold
/// what it signed since the copy was made, it says by the end of the run that it never will again.
#[derive(Debug, Default)]
pub struct Restored {
    members: BTreeSet<ReplicaId>,
    aware: BTreeSet<ReplicaId>,
}

impl Restored {
    fn is_unaware(&self, status: &Status) -> bool {
        status.witnesses.state == WitnessState::Clear && self.members.contains(&status.id)
    }
}

impl Oracle for Restored {
    fn name(&self) -> &'static str {
        "restored"
    }

    fn observe(&mut self, observation: &Observation<'_>) -> Result<(), String> {
        match observation {
            Observation::Restored { replica } => {
                self.members.insert(*replica);
            }
            Observation::StoppedSigning { replica, .. } => {
                self.aware.insert(*replica);
            }
            Observation::Shown { status } if self.is_unaware(status) => {
                return Err(format!("{} was restored and takes no notice", status.id));
            }
            Observation::Released { replica, message, .. } if self.members.contains(replica) => {
                if let Some(what) = promise_in(message) {
                    return Err(format!("{replica} runs on an old copy and sent {what}"));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, _ending: &RunEnd) -> Result<(), String> {
        match self.members.difference(&self.aware).next() {
            Some(replica) => Err(format!("{replica} runs on an old copy and never knew")),
            None => Ok(()),
        }
    }
}
