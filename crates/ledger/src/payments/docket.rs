//! What is known of coins under release, in the map.

use super::keys::{self, encode};
use super::quota::{Quota, QuotaFull};
use crate::map::{MapWriter, Tree, entries};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::IdentityKey;
use quorate_payments::change::{Border, Change};
use quorate_payments::committee::Ordered;
use quorate_payments::release::{Decided, Docket, Known, Standing};
use quorate_payments::{OutputId, TxId};
use quorate_types::Epoch;
use quorate_types::service::{State, StateError};

/// The map with what a block changed so far.
pub(super) struct MapDocket<'a> {
    map: MapWriter<'a>,
    /// Epoch in force.
    epoch: Epoch,
}

impl<'a> MapDocket<'a> {
    pub(super) fn new(state: &'a mut dyn State, epoch: Epoch) -> Self {
        Self { map: MapWriter::new(state), epoch }
    }

    /// Lets an epoch be the one in force.
    pub(super) fn enter(&mut self, epoch: Epoch) {
        self.epoch = epoch;
    }

    pub(super) fn finish(self, tree: &mut Tree) -> Result<(), StateError> {
        self.map.finish(tree)
    }

    /// Those of these coins that were never frozen.
    pub(super) fn unfrozen(
        &self,
        coins: impl Iterator<Item = OutputId>,
    ) -> Result<Vec<OutputId>, StateError> {
        let mut unfrozen = Vec::new();
        for coin in coins {
            if !self.coin(coin)?.is_frozen() {
                unfrozen.push(coin);
            }
        }
        Ok(unfrozen)
    }

    /// Counts coins that are to be frozen against their owner's bounds, all or none.
    pub(super) fn charge(
        &mut self,
        owner: &IdentityKey,
        coins: usize,
        day: u64,
    ) -> Result<Result<(), QuotaFull>, StateError> {
        let quota: Quota = self.get(&keys::owner(owner))?.unwrap_or_default();
        let mut quota = quota.in_epoch(self.epoch);
        if let Err(full) = quota.charge(coins, day) {
            return Ok(Err(full));
        }
        if coins > 0 {
            self.set(&keys::owner(owner), &quota)?;
        }
        Ok(Ok(()))
    }

    /// Counts coins whose release ended no more.
    pub(super) fn release_quotas(&mut self, decided: &Decided) -> Result<(), StateError> {
        for (coin, _) in decided {
            let owner = self.coin(*coin)?.owner.ok_or_else(entries::damaged)?;
            let quota: Quota = self.get(&keys::owner(&owner))?.ok_or_else(entries::damaged)?;
            let mut quota = quota.in_epoch(self.epoch);
            quota.release();
            self.set(&keys::owner(&owner), &quota)?;
        }
        Ok(())
    }

    /// Gives a change the next number (★: without gaps).
    pub(super) fn append(&mut self, ordered: &Ordered) -> Result<(), StateError> {
        let count = self.get::<[u8; 8]>(keys::COUNT)?.map_or(0, u64::from_be_bytes);
        self.set(&keys::event(count), ordered)?;
        self.set(keys::COUNT, &(count + 1).to_be_bytes())
    }

    /// What was ordered of the end of an epoch.
    pub(super) fn border(&self, ended: Epoch) -> Result<Border, StateError> {
        Ok(self.get(&keys::border(ended))?.unwrap_or_default())
    }

    pub(super) fn set_border(&mut self, ended: Epoch, border: &Border) -> Result<(), StateError> {
        self.set(&keys::border(ended), border)
    }

    pub(super) fn set_change(&mut self, begun: Epoch, change: &Change) -> Result<(), StateError> {
        self.set(&keys::change(begun), change)
    }

    fn get<T: BorshDeserialize>(&self, key: &[u8]) -> Result<Option<T>, StateError> {
        keys::get(self.map.state(), key)
    }

    fn set(&mut self, key: &[u8], value: &impl BorshSerialize) -> Result<(), StateError> {
        self.map.set(key, Some(&encode(value)))
    }
}

impl Docket for MapDocket<'_> {
    type Error = StateError;

    fn coin(&self, coin: OutputId) -> Result<Standing, StateError> {
        let standing: Standing = self.get(&keys::coin(coin))?.unwrap_or_default();
        Ok(standing.in_epoch(self.epoch))
    }

    fn set_coin(&mut self, coin: OutputId, standing: &Standing) -> Result<(), StateError> {
        self.set(&keys::coin(coin), standing)
    }

    fn transaction(&self, tx: TxId) -> Result<Option<Known>, StateError> {
        self.get(&keys::transaction(tx))
    }

    fn set_transaction(&mut self, tx: TxId, known: &Known) -> Result<(), StateError> {
        self.set(&keys::transaction(tx), known)
    }
}
