//! Coins whose certificates are of epochs that have ended (ADR 42): what the authorities of then
//! signed, under keys that may have leaked since. Whoever takes such a coin asks those in force.

use crate::{Coin, Network, Origin, PayReceipt};
use quorate_crypto::Bitmap;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{Epoch, ReplicaId};

impl Coin {
    /// Epoch whose authorities certified the coin; `None` of what the network began with.
    #[must_use]
    pub fn epoch(&self) -> Option<Epoch> {
        match &self.origin {
            Origin::Certified(proof) => Some(proof.certificate.epoch),
            Origin::Genesis => None,
        }
    }

    /// Returns `true` if the epoch of its certificate has ended: it counts when authorities say so
    /// ([`is_counted`]).
    #[must_use]
    pub fn is_former(&self, network: &Network) -> bool {
        self.epoch().is_some_and(|epoch| epoch < network.epoch())
    }
}

impl PayReceipt {
    /// Epoch of a certificate in it that has ended. A receipt of the epoch in force alone proves
    /// everything by itself.
    #[must_use]
    pub fn former_epoch(&self, network: &Network) -> Option<Epoch> {
        self.coins.iter().find(|coin| coin.is_former(network)).and_then(Coin::epoch)
    }
}

/// Returns `true` if certificates of ended epochs count for a transaction, by what authorities said
/// (★): a quorum of those in force says so. An honest one is among them, and where it counts for
/// one no other transaction over its inputs ever does for any.
#[must_use]
pub fn is_counted(network: &Network, said: impl IntoIterator<Item = (ReplicaId, bool)>) -> bool {
    let committee = network.committee();
    let those = said.into_iter().filter(|(_, counts)| *counts).map(|(from, _)| from.index());
    let those = committee.weight_of(&Bitmap::from_indices(committee.size(), those));
    those >= committee.quorum() || those > 0 && mutants::active(Mutant::PayCountByFewer)
}

#[cfg(test)]
mod tests;
