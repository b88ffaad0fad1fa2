//! A replica executes heights one after the other or skips some by a snapshot, and a crash takes it
//! back to a prefix only.

use super::{Observation, Oracle};
use quorate_crypto::Digest;
use quorate_types::{Height, ReplicaId};
use std::collections::BTreeMap;

/// Follows each replica from height to height.
#[derive(Clone, Debug, Default)]
pub struct Prefix {
    last: BTreeMap<ReplicaId, Height>,
    roots: BTreeMap<(ReplicaId, Height), Digest>,
}

impl Oracle for Prefix {
    fn name(&self) -> &'static str {
        "prefix"
    }

    fn observe(&mut self, observation: &Observation<'_>) -> Result<(), String> {
        match observation {
            Observation::Booted { replica, executed } => {
                let recovered =
                    executed.map_or((Height(0), None), |e| (e.height(), Some(e.root())));
                self.boot(*replica, recovered)
            }
            Observation::Executed { replica, height, root, .. } => {
                self.execute(*replica, *height, *root)
            }
            Observation::Installed { replica, height, root } => {
                self.install(*replica, *height, *root)
            }
            _ => Ok(()),
        }
    }
}

impl Prefix {
    fn boot(
        &mut self,
        replica: ReplicaId,
        (height, root): (Height, Option<Digest>),
    ) -> Result<(), String> {
        let before = self.last.insert(replica, height).unwrap_or_default();
        if height > before {
            return Err(format!("{replica} recovered {height} but had executed {before} only"));
        }
        let known = self.roots.get(&(replica, height)).copied();
        if height > Height(0) && known != root {
            return Err(format!("{replica} recovered root {root:?} at {height}, it was {known:?}"));
        }
        Ok(())
    }

    /// A snapshot leads forwards, to what was the case where it had been before.
    fn install(&mut self, replica: ReplicaId, height: Height, root: Digest) -> Result<(), String> {
        let last = self.last.insert(replica, height).unwrap_or_default();
        if height <= last {
            return Err(format!("{replica} installed {height} having executed {last}"));
        }
        let before = *self.roots.entry((replica, height)).or_insert(root);
        let same = before == root;
        same.then_some(()).ok_or_else(|| {
            format!("{replica} installed {root} at {height}, where it had come to {before}")
        })
    }

    fn execute(&mut self, replica: ReplicaId, height: Height, root: Digest) -> Result<(), String> {
        let last = self.last.entry(replica).or_default();
        if height != last.next() {
            return Err(format!("{replica} executed {height} after {last}"));
        }
        *last = height;
        let before = *self.roots.entry((replica, height)).or_insert(root);
        if before != root {
            return Err(format!(
                "{replica} came to {root} at {height}, before its crash to {before}"
            ));
        }
        Ok(())
    }
}
