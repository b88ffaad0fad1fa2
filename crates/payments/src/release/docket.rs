//! What is known of coins under release, wherever it is kept.

use super::Decision;
use crate::{OutputId, TxId};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::IdentityKey;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{Epoch, ReplicaId, Weights};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

/// Standing of one coin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct Standing {
    /// Epoch of what follows. A decision holds in later ones; anything else ends with it.
    pub epoch: Epoch,
    /// Owner of the coin, once its freeze was ordered: who alone can have spent it (★).
    pub owner: Option<IdentityKey>,
    /// Transactions that are known to take it: reported, at this or another coin, or certified.
    pub claims: BTreeSet<TxId>,
    /// Transaction that each authority is locked for, if it is for one.
    pub reports: BTreeMap<ReplicaId, Option<TxId>>,
    /// End of its release, once there is one.
    pub decision: Option<Decision>,
}

impl Standing {
    /// The same, as it counts in this epoch (★): reports of an epoch that ended are of other
    /// authorities' locks.
    #[must_use]
    pub fn in_epoch(self, epoch: Epoch) -> Self {
        let counts = self.epoch == epoch
            || self.decision.is_some()
            || mutants::active(Mutant::PayReportsOfFormerEpoch);
        if counts { self } else { Self { epoch, ..Self::default() } }
    }

    /// Returns `true` once the coin's freeze was ordered.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.owner.is_some()
    }

    /// Weight of the authorities that reported.
    #[must_use]
    pub fn reported(&self, weights: &Weights) -> u64 {
        self.reports.keys().map(|from| weights.of(from.index())).sum()
    }

    /// Weight of those that are locked for this transaction.
    #[must_use]
    pub fn named(&self, tx: TxId, weights: &Weights) -> u64 {
        let naming = self.reports.iter().filter(|(_, named)| **named == Some(tx));
        naming.map(|(from, _)| weights.of(from.index())).sum()
    }

    /// Returns `true` if nothing but a certificate will ever decide it: two transactions stay
    /// possible whatever is reported yet. So it is where the owner split the authorities evenly.
    #[must_use]
    pub fn is_stuck(&self, weights: &Weights) -> bool {
        let enough = weights.quorum() - weights.faulty_max();
        let lasting = self.claims.iter().filter(|tx| self.named(**tx, weights) >= enough);
        self.decision.is_none() && lasting.count() > 1
    }
}

/// What is known of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct Known {
    /// Key that signed it.
    pub payer: IdentityKey,
    /// Coins that it takes, as its payer signed.
    pub locks: Vec<OutputId>,
    /// True once its certificate was shown.
    pub certified: bool,
}

/// Standings of coins and transactions: a replicated state, or memory.
pub trait Docket {
    /// Failure of whatever keeps it.
    type Error;

    /// Standing of a coin; the default where nothing is known of it.
    ///
    /// # Errors
    /// When it cannot be read.
    fn coin(&self, coin: OutputId) -> Result<Standing, Self::Error>;

    /// Replaces the standing of a coin.
    ///
    /// # Errors
    /// When it cannot be written.
    fn set_coin(&mut self, coin: OutputId, standing: &Standing) -> Result<(), Self::Error>;

    /// What is known of a transaction beyond its name.
    ///
    /// # Errors
    /// When it cannot be read.
    fn transaction(&self, tx: TxId) -> Result<Option<Known>, Self::Error>;

    /// Replaces what is known of a transaction.
    ///
    /// # Errors
    /// When it cannot be written.
    fn set_transaction(&mut self, tx: TxId, known: &Known) -> Result<(), Self::Error>;
}

/// A docket in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MemoryDocket {
    coins: BTreeMap<OutputId, Standing>,
    transactions: BTreeMap<TxId, Known>,
}

impl Docket for MemoryDocket {
    type Error = Infallible;

    fn coin(&self, coin: OutputId) -> Result<Standing, Infallible> {
        Ok(self.coins.get(&coin).cloned().unwrap_or_default())
    }

    fn set_coin(&mut self, coin: OutputId, standing: &Standing) -> Result<(), Infallible> {
        self.coins.insert(coin, standing.clone());
        Ok(())
    }

    fn transaction(&self, tx: TxId) -> Result<Option<Known>, Infallible> {
        Ok(self.transactions.get(&tx).cloned())
    }

    fn set_transaction(&mut self, tx: TxId, known: &Known) -> Result<(), Infallible> {
        self.transactions.insert(tx, known.clone());
        Ok(())
    }
}
