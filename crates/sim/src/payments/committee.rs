//! The committee of one epoch: one order of steps, of releases and of the epoch's end, executed by
//! the production rules.

use quorate_crypto::{Digest, IdentityKey};
use quorate_payments::change::{Border, ChangeStep};
use quorate_payments::committee::Step;
use quorate_payments::release::{
    self, Decided, Docket, Known, MemoryDocket, ReleaseStep, Releases, Standing,
};
use quorate_payments::{Network, OutputId, TxId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What authorities execute, in the order of their epoch's committee.
#[derive(Clone, Debug)]
pub(super) enum Ordered {
    /// Change of what is under release.
    Release(release::Ordered),
    /// End of the epoch: the next one is that of the network file with this digest.
    Close(Digest),
}

/// A committee that is always there and always right: what makes it so is another swarm's matter.
#[derive(Debug)]
pub(super) struct Committee {
    network: Arc<Network>,
    docket: MemoryDocket,
    /// Coins that were ever frozen, with their owners.
    frozen: BTreeMap<OutputId, IdentityKey>,
    ordered: Vec<Ordered>,
    border: Border,
}

impl Committee {
    pub(super) fn new(network: Arc<Network>) -> Self {
        Self {
            network,
            docket: MemoryDocket::default(),
            frozen: BTreeMap::new(),
            ordered: Vec::new(),
            border: Border::default(),
        }
    }

    /// Tells whether releases are asked for in this epoch: they end with the founding one.
    pub(super) fn has_releases(&self) -> bool {
        self.network.is_founding()
    }

    /// Executes the step in these bytes; `None` where it is refused, as all are once the epoch has
    /// ended.
    pub(super) fn execute(&mut self, bytes: &[u8]) -> Option<(ReleaseStep, Decided)> {
        if !self.has_releases() || self.has_ended() {
            return None;
        }
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
                self.ordered.push(Ordered::Release(release::Ordered::Freeze { owner, coins }));
            }
        }
        if !decided.is_empty() {
            self.ordered.push(Ordered::Release(release::Ordered::Decided(decided.clone())));
        }
        Some((step, decided))
    }

    /// Executes the step of a change in these bytes; `None` where it is refused.
    pub(super) fn execute_change(&mut self, bytes: &[u8]) -> Option<ChangeStep> {
        // Its own epoch's network: the one that a change ends, and that closing reports are of.
        let opened = Step::open(&self.network, Some(&self.network), bytes).ok()?;
        let Step::Change(step) = opened else { return None };
        self.border.apply(&step).ok()?;
        if let ChangeStep::Change(change) = &step {
            self.ordered.push(Ordered::Close(change.next.digest()));
        }
        Some(step)
    }

    /// End of the epoch, as far as it was ordered.
    pub(super) fn border(&self) -> &Border {
        &self.border
    }

    pub(super) fn has_ended(&self) -> bool {
        self.border.next().is_some()
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
