//! An epoch ends once, at one height with one state, and no height is of two epochs.

use super::{Observation, Oracle};
use quorate_crypto::Digest;
use quorate_types::{Epoch, HandOver, Height, ReplicaId};
use std::collections::BTreeMap;

/// Compares what replicas were handed over, and in which epoch each executed what.
#[derive(Clone, Debug, Default)]
pub struct Borders {
    /// What each epoch ended with.
    ends: BTreeMap<Epoch, HandOver>,
    /// Epoch in which each replica is.
    epochs: BTreeMap<ReplicaId, Epoch>,
    /// Epoch in which a height was executed, and the root that it came to.
    executed: BTreeMap<Height, (Epoch, Digest)>,
}

impl Oracle for Borders {
    fn name(&self) -> &'static str {
        "borders"
    }

    fn observe(&mut self, observation: &Observation<'_>) -> Result<(), String> {
        match *observation {
            Observation::Began { replica, epoch, after, .. } => self.begin(replica, epoch, after),
            Observation::HandedOver { replica, ended, content } => {
                self.end(replica, ended, *content)
            }
            Observation::Executed { replica, height, root, .. } => {
                self.execute(replica, height, root)
            }
            _ => Ok(()),
        }
    }
}

impl Borders {
    /// An epoch begins behind the end of the one before.
    fn begin(&mut self, replica: ReplicaId, epoch: Epoch, after: Height) -> Result<(), String> {
        self.epochs.insert(replica, epoch);
        let Some(before) = epoch.0.checked_sub(1).map(Epoch) else { return Ok(()) };
        match self.ends.get(&before) {
            Some(end) if end.height == after => Ok(()),
            Some(end) => Err(format!(
                "{replica} begins epoch {epoch} after {after}, the one before ended at {}",
                end.height
            )),
            None => Err(format!("{replica} begins epoch {epoch}, and nobody ended the one before")),
        }
    }

    fn end(&mut self, replica: ReplicaId, ended: Epoch, content: HandOver) -> Result<(), String> {
        let first = *self.ends.entry(ended).or_insert(content);
        if first != content {
            return Err(format!(
                "epoch {ended} ended with {first:?}, and at {replica} with {content:?}"
            ));
        }
        let root = self.executed.get(&content.height).map(|(_, root)| *root);
        if root.is_some_and(|root| root != content.root) {
            return Err(format!("epoch {ended} hands over a root that nobody came to"));
        }
        let beyond = self.executed.range(content.height.next()..);
        match beyond.map(|(height, (epoch, _))| (height, epoch)).find(|(_, of)| **of <= ended) {
            Some((height, epoch)) => Err(format!(
                "{height} was executed in epoch {epoch}, and {ended} ended at {}",
                content.height
            )),
            None => Ok(()),
        }
    }

    /// A replica executes heights of its own epoch alone.
    fn execute(&mut self, replica: ReplicaId, height: Height, root: Digest) -> Result<(), String> {
        let epoch = self.epochs.get(&replica).copied().unwrap_or_default();
        let (first, _) = *self.executed.entry(height).or_insert((epoch, root));
        if first != epoch {
            return Err(format!("{height} was executed in epoch {first}, by {replica} in {epoch}"));
        }
        match self.ends.get(&epoch) {
            Some(end) if height > end.height => Err(format!(
                "{replica} executed {height} in epoch {epoch}, which ended at {}",
                end.height
            )),
            _ => Ok(()),
        }
    }
}
