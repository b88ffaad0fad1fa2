//! Every operation takes effect at most once, at one place, and none that nobody submitted.

use super::{Observation, Oracle};
use crate::recording::Seen;
use bytes::Bytes;
use quorate_types::{Height, ReplicaId};
use std::collections::{BTreeMap, BTreeSet};

/// Compares what the service inside each replica was asked to execute.
#[derive(Clone, Debug, Default)]
pub struct ExactlyOnce {
    submitted: BTreeSet<Bytes>,
    places: BTreeMap<Seen, Height>,
    heights: BTreeMap<Height, Vec<Seen>>,
}

impl Oracle for ExactlyOnce {
    fn name(&self) -> &'static str {
        "exactly once"
    }

    fn observe(&mut self, observation: &Observation<'_>) -> Result<(), String> {
        match observation {
            Observation::Submitted { operation } => {
                self.submitted.insert((*operation).clone());
                Ok(())
            }
            Observation::Executed { replica, height, operations, .. } => {
                self.execute(*replica, *height, operations)
            }
            _ => Ok(()),
        }
    }
}

impl ExactlyOnce {
    fn execute(
        &mut self,
        replica: ReplicaId,
        height: Height,
        operations: &[Seen],
    ) -> Result<(), String> {
        if let Some(before) = self.heights.get(&height) {
            let same = before.as_slice() == operations;
            return same.then_some(()).ok_or_else(|| {
                format!("{replica} executed other operations at {height} than were executed before")
            });
        }
        for seen in operations {
            if !self.submitted.contains(&seen.1) {
                return Err(format!("{replica} executed at {height} what nobody submitted"));
            }
            if let Some(first) = self.places.insert(seen.clone(), height) {
                return Err(format!("{replica} executed one operation at {first} and at {height}"));
            }
        }
        self.heights.insert(height, operations.to_vec());
        Ok(())
    }
}
