//! Results that clients were given are true, and stay true.

use super::{Observation, Oracle, RunEnd};
use bytes::Bytes;
use quorate_types::{Height, Outcome, ReplicaId};
use std::collections::{BTreeMap, BTreeSet};

/// Holds every completed operation against the log that the replicas executed.
///
/// The service is the ordered log: the result of an operation is its position, 8 bytes, little
/// endian, counted from the first operation at 0.
#[derive(Debug, Default)]
pub struct Acknowledged {
    completed: BTreeMap<Bytes, (Height, Outcome)>,
    executed: BTreeMap<Height, Vec<Bytes>>,
    logs: BTreeMap<ReplicaId, BTreeSet<Height>>,
    /// Heights up to this one came with a snapshot, whose root the others had come to.
    installed: BTreeMap<ReplicaId, Height>,
}

impl Oracle for Acknowledged {
    fn name(&self) -> &'static str {
        "acknowledged"
    }

    fn observe(&mut self, observation: &Observation<'_>) -> Result<(), String> {
        match observation {
            Observation::Completed { operation, completed } => {
                let told = (completed.height, completed.outcome.clone());
                let before = self.completed.insert((*operation).clone(), told);
                before.map_or(Ok(()), |_| Err("an operation was completed twice".to_owned()))
            }
            Observation::Executed { replica, height, operations, .. } => {
                let only_bytes = || operations.iter().map(|(_, bytes)| bytes.clone()).collect();
                self.executed.entry(*height).or_insert_with(only_bytes);
                self.logs.entry(*replica).or_default().insert(*height);
                Ok(())
            }
            Observation::Installed { replica, height, .. } => {
                self.installed.insert(*replica, *height);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn finish(&mut self, ending: &RunEnd) -> Result<(), String> {
        let log = self.positions();
        for (operation, (height, outcome)) in &self.completed {
            let Some((position, executed_at)) = log.get(operation) else {
                return Err(format!("an operation acknowledged at {height} was never executed"));
            };
            if executed_at != height {
                return Err(format!(
                    "an operation acknowledged at {height} was executed at {executed_at}"
                ));
            }
            let expected = Outcome::Applied(Bytes::copy_from_slice(&position.to_le_bytes()));
            if *outcome != expected {
                return Err(format!(
                    "the operation at position {position} was acknowledged as {outcome:?}"
                ));
            }
            self.is_held(*height, ending)?;
        }
        Ok(())
    }
}

impl Acknowledged {
    fn positions(&self) -> BTreeMap<&Bytes, (u64, Height)> {
        let all = self.executed.iter().flat_map(|(height, operations)| {
            operations.iter().map(move |operation| (operation, *height))
        });
        (0..).zip(all).map(|(position, (bytes, height))| (bytes, (position, height))).collect()
    }

    /// Every live replica has executed what was acknowledged at `height`.
    fn is_held(&self, height: Height, ending: &RunEnd) -> Result<(), String> {
        for (replica, reached) in &ending.heights {
            let executed = self.logs.get(replica).is_some_and(|log| log.contains(&height))
                || self.installed.get(replica).is_some_and(|installed| height <= *installed);
            if reached.is_some_and(|reached| reached < height || !executed) {
                return Err(format!(
                    "{replica} lacks {height}, where an operation was acknowledged"
                ));
            }
        }
        Ok(())
    }
}
