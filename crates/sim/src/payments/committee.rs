//! The committee that orders releases: one order of steps, executed by the production rules.

use quorate_crypto::IdentityKey;
use quorate_payments::release::{
    Decided, Docket, Known, MemoryDocket, Ordered, ReleaseStep, Releases, Standing,
};
use quorate_payments::{Network, OutputId, TxId};
use std::collections::BTreeMap;

/// A committee that is always there and always right: what makes it so is another swarm's matter.
#[derive(Debug)]
pub(super) struct Committee {
    network: Network,
    docket: MemoryDocket,
    /// Coins that were ever frozen, with their owners.
    frozen: BTreeMap<OutputId, IdentityKey>,
    ordered: Vec<Ordered>,
}

impl Committee {
    pub(super) fn new(network: Network) -> Self {
        let (docket, frozen, ordered) = (MemoryDocket::default(), BTreeMap::new(), Vec::new());
        Self { network, docket, frozen, ordered }
    }

    /// Executes the step in these bytes; `None` where it is refused.
    pub(super) fn execute(&mut self, bytes: &[u8]) -> Option<(ReleaseStep, Decided)> {
        let step = ReleaseStep::open(&self.network, bytes).ok()?;
        let mut releases = Releases::new(&mut self.docket, self.network.committee().weights());
        let Ok(result) = releases.apply(&step);
        let decided = result.ok()?;
        if let ReleaseStep::Freeze(freeze) = &step {
            let new = freeze.coins.iter().filter(|coin| !self.frozen.contains_key(&coin.id));
            let coins: Vec<OutputId> = new.map(|coin| coin.id).collect();
            let owner = freeze.coins[0].output.owner;
            self.frozen.extend(coins.iter().map(|coin| (*coin, owner)));
            if !coins.is_empty() {
                self.ordered.push(Ordered::Freeze { owner, coins });
            }
        }
        if !decided.is_empty() {
            self.ordered.push(Ordered::Decided(decided.clone()));
        }
        Some((step, decided))
    }

    /// Number of changes so far.
    pub(super) fn len(&self) -> usize {
        self.ordered.len()
    }

    pub(super) fn ordered(&self, number: usize) -> Option<&Ordered> {
        self.ordered.get(number)
    }

    pub(super) fn standing(&self, coin: OutputId) -> Standing {
        let Ok(standing) = self.docket.coin(coin);
        standing
    }

    pub(super) fn transaction(&self, tx: TxId) -> Option<Known> {
        let Ok(known) = self.docket.transaction(tx);
        known
    }

    /// Coins that were ever frozen, with their owners.
    pub(super) fn frozen(&self) -> &BTreeMap<OutputId, IdentityKey> {
        &self.frozen
    }
}
