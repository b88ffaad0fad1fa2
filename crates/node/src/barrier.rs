//! ★ Persist before you send: which sends may leave at once, and which go behind the log thread.
//!
//! A send in a lane that waits for the barrier may leave at once only when *everything* that was
//! handed to the log thread before it has left the log thread: the records are durable **and** the
//! sends that waited for them are in their lanes. The second half keeps a lane's order: a send that
//! looked only at durability could overtake one that is just being released.
//!
//! ```text
//! machine thread   P1 ─┐ S1 ─┐        S2 ─┐              S3 (log idle: at once) ──▶ lane
//! log thread           └─────┴ write, sync ┴ S1 S2 ──▶ lane, then `done(3)`
//! ```

use quorate_crypto::mutants::{self, Mutant};
use quorate_types::Lane;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a send goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Straight to its lane.
    AtOnce,
    /// Through the log thread's queue, behind the records before it.
    BehindTheLog,
}

/// The machine thread's half: counts what it hands to the log thread.
#[derive(Debug)]
pub struct Barrier {
    handed: u64,
    done: Arc<AtomicU64>,
    overtakes: bool,
}

/// The log thread's half: counts what has left it.
#[derive(Debug)]
pub struct Released(Arc<AtomicU64>);

/// Both halves, with nothing under way.
#[must_use]
pub fn barrier() -> (Barrier, Released) {
    let done = Arc::new(AtomicU64::new(0));
    let overtakes = mutants::active(Mutant::HostSendOvertakes);
    (Barrier { handed: 0, done: Arc::clone(&done), overtakes }, Released(done))
}

impl Barrier {
    /// A record goes to the log thread.
    pub fn persist(&mut self) {
        self.handed += 1;
    }

    /// How a send in `lane` goes; [`Way::BehindTheLog`] counts it as handed over.
    pub fn way(&mut self, lane: Lane) -> Way {
        if lane.waits_for_barrier() { self.passage() } else { Way::AtOnce }
    }

    /// How something goes that waits for the barrier, likewise.
    pub fn passage(&mut self) -> Way {
        if self.is_clear() {
            return Way::AtOnce;
        }
        self.handed += 1;
        Way::BehindTheLog
    }

    fn is_clear(&self) -> bool {
        // Acquire: whoever sees the count also sees the released sends in their lanes.
        self.done.load(Ordering::Acquire) == self.handed || self.overtakes
    }
}

impl Released {
    /// `count` more records and sends have left the log thread.
    pub fn done(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
