//! Pruning of both logs: what goes, and when.
//!
//! Checked whenever the machine released something. While both logs together use more than the
//! retention, the one whose oldest segment ends at the lower height prunes that segment, so that
//! what is kept of the two covers the same heights. A segment goes only when the machine released
//! everything in it:
//!
//! * **decided heights** below [`Release::below`](quorate_types::machine::Release);
//! * **bodies** all of whose last stores were released with a height below it. A live one keeps its
//!   segment, and with it all younger ones: bodies are not copied. How many live ones there are is
//!   bounded by what the machine holds undecided (each author's quota) and by the heights between
//!   two snapshots; how long the oldest of them stays live is not, and the log grows meanwhile.
//! * **The latest record of each kind** is copied forward instead: at most two and a window's
//!   slots, of kilobytes.
//!
//! Where the oldest segment must stay nothing goes, and the log is longer than the retention for a
//! while.

use super::Journal;
use crate::StorageError;
use quorate_crypto::mutants::{self, Mutant};

impl Journal {
    /// Bytes that records and bodies use; files made ready do not count.
    pub(super) fn used_bytes(&self) -> u64 {
        self.records.used_bytes() + self.bodies.used_bytes()
    }

    /// Keeps no more than so many bytes from the next commit on, as far as the machine released
    /// what is older.
    pub fn retain(&mut self, bytes: u64) {
        self.retention_bytes = bytes;
        self.prune_due = true;
    }

    /// Prunes what it may while there is more than the retention: in each log all at once, since
    /// every time takes a sync and a vote may wait for it.
    pub(super) fn prune(&mut self) -> Result<(), StorageError> {
        let floors = self.floors();
        if let Some(floor) = floors.records {
            self.shared.index.lock().drop_records(floor);
            self.copy_forward(floor)?;
            self.records.prune_before(floor)?;
        }
        if let Some(floor) = floors.bodies {
            self.shared.index.lock().drop_bodies(floor);
            self.bodies.prune_before(floor)?;
        }
        Ok(())
    }

    /// Appends the latest records that lie before `floor` again (★); they become durable with the
    /// floor.
    fn copy_forward(&mut self, floor: u64) -> Result<(), StorageError> {
        if mutants::active(Mutant::PruneLatestRecord) {
            return Ok(());
        }
        let old = self.latest.iter().filter(|(_, promise)| promise.segment < floor);
        let old: Vec<_> = old.map(|(kind, promise)| (*kind, promise.bytes.clone())).collect();
        old.into_iter().try_for_each(|(kind, bytes)| self.promise(kind, bytes))
    }

    /// Segment below which each log may be pruned.
    fn floors(&self) -> Floors {
        let index = self.shared.index.lock();
        let records = self.records.full().map(|(segment, bytes)| {
            let (height, is_free) = index.records_in(segment, self.below);
            Candidate { segment, bytes, height, is_free }
        });
        let bodies = self.bodies.full().map(|(segment, bytes)| {
            let (height, is_free) = index.bodies_in(segment, self.below);
            Candidate { segment, bytes, height, is_free }
        });
        let (mut records, mut bodies) = (records.peekable(), bodies.peekable());
        let mut floors = Floors::default();
        let mut used = self.used_bytes();
        while used > self.retention_bytes {
            let of_bodies = match (records.peek(), bodies.peek()) {
                (None, None) => break,
                (Some(records), Some(bodies)) => bodies.height < records.height,
                (records, _) => records.is_none(),
            };
            let oldest = if of_bodies { bodies.next() } else { records.next() };
            let Some(oldest) = oldest else { break };
            if !oldest.is_free && !mutants::active(Mutant::PruneUnexecuted) {
                break;
            }
            used -= oldest.bytes;
            let floor = if of_bodies { &mut floors.bodies } else { &mut floors.records };
            *floor = Some(oldest.segment + 1);
        }
        floors
    }
}

/// The oldest segment that stays, where any goes.
#[derive(Default)]
struct Floors {
    records: Option<u64>,
    bodies: Option<u64>,
}

/// Segment that is the oldest of its log.
struct Candidate {
    segment: u64,
    bytes: u64,
    /// The highest height that needs something of it.
    height: quorate_types::Height,
    is_free: bool,
}
