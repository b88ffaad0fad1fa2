//! Certificates of every epoch of a network, each under the keys and scheme of its own.

use super::{Counted, TxCertificate, Vote, Votes};
use crate::TxId;
use quorate_crypto::{Bitmap, VotingSecret};
use quorate_types::{Epoch, ReplicaId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Votes of the epoch in force; certificates of that epoch and of those before it.
#[derive(Debug)]
pub(crate) struct EpochVotes {
    epoch: Epoch,
    own: Arc<dyn Votes>,
    former: BTreeMap<Epoch, Arc<dyn Votes>>,
}

impl EpochVotes {
    pub(crate) fn new(epoch: Epoch, own: Arc<dyn Votes>) -> Self {
        Self { epoch, own, former: BTreeMap::new() }
    }

    /// Votes of the next epoch, which knows the certificates of this one.
    pub(crate) fn next(&self, epoch: Epoch, own: Arc<dyn Votes>) -> Self {
        let mut former = self.former.clone();
        former.insert(self.epoch, Arc::clone(&self.own));
        Self { epoch, own, former }
    }

    /// Number of epochs before.
    pub(crate) fn former(&self) -> usize {
        self.former.len()
    }

    fn of(&self, epoch: Epoch) -> Option<&Arc<dyn Votes>> {
        if epoch == self.epoch { Some(&self.own) } else { self.former.get(&epoch) }
    }
}

impl Votes for EpochVotes {
    fn sign(&self, secret: &VotingSecret, me: ReplicaId, ids: &[TxId]) -> Vec<Vote> {
        self.own.sign(secret, me, ids)
    }

    fn batch_size(&self) -> usize {
        self.own.batch_size()
    }

    fn count(&self, id: TxId, votes: &[(ReplicaId, Vote)], suspects: &Bitmap) -> Counted {
        self.own.count(id, votes, suspects)
    }

    fn verify(&self, items: &[(TxId, &TxCertificate)]) -> Vec<bool> {
        let mut by_epoch: BTreeMap<Epoch, Vec<usize>> = BTreeMap::new();
        for (at, (_, certificate)) in items.iter().enumerate() {
            by_epoch.entry(certificate.epoch).or_default().push(at);
        }
        let mut good = vec![false; items.len()];
        for (epoch, places) in by_epoch {
            let Some(votes) = self.of(epoch) else { continue };
            let part: Vec<_> = places.iter().map(|at| items[*at]).collect();
            for (at, is_good) in places.into_iter().zip(votes.verify(&part)) {
                good[at] = is_good;
            }
        }
        good
    }
}
