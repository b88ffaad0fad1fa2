//! Every height is decided once, and executing it comes to one root.

use super::{Observation, Oracle};
use quorate_crypto::Digest;
use quorate_types::{Height, ReplicaId};
use std::collections::BTreeMap;

/// Compares what replicas decided and came to at each height, across restarts too.
#[derive(Debug, Default)]
pub struct Agreement {
    decided: BTreeMap<Height, (ReplicaId, Digest, Digest)>,
}

impl Oracle for Agreement {
    fn name(&self) -> &'static str {
        "agreement"
    }

    fn observe(&mut self, observation: &Observation<'_>) -> Result<(), String> {
        if let Observation::Installed { replica, height, root } = observation {
            return self.installed(*replica, *height, *root);
        }
        let Observation::Executed { replica, height, root, payload, .. } = observation else {
            return Ok(());
        };
        let (first, first_root, first_payload) =
            *self.decided.entry(*height).or_insert((*replica, *root, *payload));
        if first_payload != *payload {
            return Err(format!(
                "at {height} {first} decided payload {first_payload} and {replica} {payload}"
            ));
        }
        if first_root != *root {
            return Err(format!(
                "at {height} {first} came to root {first_root} and {replica} to {root}"
            ));
        }
        Ok(())
    }
}

impl Agreement {
    /// A state taken over from others is one that a correct member came to.
    fn installed(&self, replica: ReplicaId, height: Height, root: Digest) -> Result<(), String> {
        match self.decided.get(&height) {
            Some((_, executed, _)) if *executed == root => Ok(()),
            Some((first, executed, _)) => Err(format!(
                "at {height} {first} came to root {executed}, and {replica} installed {root}"
            )),
            None => Err(format!("{replica} installed {height}, which nobody correct executed")),
        }
    }
}
