//! Items that wait for promises, each with how many of them.

use quorate_crypto::mutants::{self, Mutant};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Items held back until the promises before them are durable, in their order.
///
/// Promises are counted from the start of the host.
/// [`GroupCommit`](super::group_commit::GroupCommit) has one inside; a host with several syncs
/// under way at once keeps one itself.
#[derive(Debug)]
pub struct HeldBack<H> {
    /// Items with the number of promises that they wait for.
    items: VecDeque<(u64, H)>,
    durable: u64,
    released: u64,
    /// Promises that are durable and items that left: what the front half compares with.
    left: Arc<AtomicU64>,
    overtakes: bool,
}

impl<H> HeldBack<H> {
    pub(super) fn new(left: Arc<AtomicU64>) -> Self {
        let overtakes = mutants::active(Mutant::HostSendOvertakes);
        Self { items: VecDeque::new(), durable: 0, released: 0, left, overtakes }
    }

    /// Number of promises that are durable.
    #[must_use]
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// Holds an item back until so many promises are durable, and behind all items before it.
    pub fn hold(&mut self, promises: u64, item: H) {
        self.items.push_back((promises, item));
    }

    /// Takes this many promises as durable, passes what waited for them to `release`, and then
    /// counts all of it for the front half.
    pub fn durable_up_to(&mut self, promises: u64, release: impl FnMut(H)) {
        self.durable = self.durable.max(promises);
        let ready = self.items.partition_point(|(needed, _)| *needed <= self.durable);
        self.released += ready as u64;
        if self.overtakes {
            self.publish();
        }
        self.items.drain(..ready).map(|(_, item)| item).for_each(release);
        self.publish();
    }

    /// Release: whoever sees the count also sees what left in its lanes.
    fn publish(&self) {
        self.left.store(self.durable + self.released, Ordering::Release);
    }
}
