//! What faulty authorities report at the end of an epoch.

use super::Seen;
use crate::payments::host::{Seat, sign_closing, sorted};
use quorate_crypto::Digest;
use quorate_deterministic::Rng;
use quorate_payments::change::{Closing, LockEntry};
use quorate_payments::{OutputId, TxId};

impl Seen {
    /// Closing reports of a faulty authority's shard, each with its chunks: one, or several that
    /// differ, of which one may be in another's name.
    pub(in crate::payments) fn closings(
        &self,
        seat: &Seat,
        shard: u16,
        next: Digest,
        rng: &mut Rng,
    ) -> Vec<(Closing, Vec<Vec<u8>>)> {
        let count = rng.index(3) + 1;
        let report = |_| {
            let mut seat = seat.clone();
            if rng.one_in(6) {
                // Under its own key all the same.
                seat.index = rng.index(seat.network.committee().size());
            }
            sign_closing(&seat, shard, next, &self.locks(rng))
        };
        (0..count).map(report).collect()
    }

    /// Some of what it was shown, or all of it: as it is, with an input less, or one more; and what
    /// nobody ever signed.
    fn locks(&self, rng: &mut Rng) -> Vec<LockEntry> {
        let share = rng.below(4) + 1;
        let coins: Vec<OutputId> = self.orders.keys().copied().collect();
        let mut entries = Vec::new();
        for (core, _) in self.orders.values().flatten() {
            if !rng.one_in(share) {
                continue;
            }
            let mut locks = core.locks.clone();
            match rng.below(8) {
                0 => drop(locks.pop()),
                1 => locks.push(*rng.choose(&coins)),
                _ => {}
            }
            entries.extend(locks.into_iter().map(|lock| (core.id, lock)));
        }
        if !coins.is_empty() && rng.one_in(3) {
            entries.push((TxId(Digest(rng.bytes32())), *rng.choose(&coins)));
        }
        sorted(entries)
    }
}
