//! The barrier's front half, beside the machine.

use super::entries::LogEntry;
use super::group_commit::GroupCommit;
use super::held_back::HeldBack;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts what the machine's side hands to the log, and decides what may leave at once (★).
#[derive(Debug)]
pub struct Barrier {
    handed: u64,
    /// Written by the back half alone.
    left: Arc<AtomicU64>,
}

/// Both halves of a barrier with nothing under way, around a queue for group commit.
#[must_use]
pub fn barrier<E: LogEntry, H>() -> (Barrier, GroupCommit<E, H>) {
    let (barrier, held) = Barrier::around();
    (barrier, GroupCommit::new(held))
}

impl Barrier {
    /// Both halves with nothing under way, for a host that queues its entries itself.
    #[must_use]
    pub fn around<H>() -> (Self, HeldBack<H>) {
        let left = Arc::new(AtomicU64::new(0));
        (Self { handed: 0, left: Arc::clone(&left) }, HeldBack::new(left))
    }

    /// Counts a record on its way to the log: what follows waits for it.
    pub fn persist(&mut self) {
        self.handed += 1;
    }

    /// Returns `true` if what comes now must go behind the log, and counts it as handed over. The
    /// caller then holds it back, in the order of these calls.
    #[must_use]
    pub fn must_wait(&mut self) -> bool {
        let waits = !self.is_clear();
        self.handed += u64::from(waits);
        waits
    }

    fn is_clear(&self) -> bool {
        // Acquire: whoever sees the count also sees the released sends in their lanes.
        self.left.load(Ordering::Acquire) == self.handed
    }
}
