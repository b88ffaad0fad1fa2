//! What is given up, and when.
//!
//! Checked whenever the machine let something go. While both logs together use more than the retention,
//! the one whose oldest segment ends at the lower height gives that segment up, so that what is kept of
//! the two covers the same heights. A segment goes only when the machine let go everything in it:
//!
//! * **decided heights** below [`Release::below`](quorate_types::machine::Release);
//! * **bodies** all of whose last stores were let go with a height below it. A live one keeps its
//!   segment, and with it all younger ones: bodies are not copied. How many live ones there are is
//!   bounded by what the machine holds undecided (each author's quota) and by the heights between two
//!   snapshots; how long the oldest of them stays live is not, and the log grows meanwhile.
//! * **The latest record of each kind** is copied forward instead: at most two records of kilobytes.
//!
//! Where the oldest segment must stay nothing goes, and the log is longer than the retention for a
//! while.

use super::{Journal, Latest};
use crate::StorageError;
use crate::log::Log;
use bytes::Bytes;
use quorate_crypto::mutants::{self, Mutant};

/// Segments given up in one commit.
const SEGMENTS_AT_ONCE: usize = 4;

impl Journal {
    /// Bytes that records and bodies use; files made ready do not count.
    pub(super) fn used_bytes(&self) -> u64 {
        self.records.used_bytes() + self.bodies.used_bytes()
    }

    /// Gives up what it may while there is more than the retention, a few segments at a time: each
    /// takes a sync, and a vote may wait for the next group.
    pub(super) fn prune(&mut self) -> Result<(), StorageError> {
        for _ in 0..SEGMENTS_AT_ONCE {
            if self.used_bytes() <= self.retention_bytes {
                return Ok(());
            }
            let records = self.oldest_records();
            let bodies = self.oldest_bodies();
            let (candidate, is_records) = match (records, bodies) {
                (None, None) => return Ok(()),
                (Some(records), Some(bodies)) if bodies.height < records.height => (bodies, false),
                (Some(records), _) => (records, true),
                (None, Some(bodies)) => (bodies, false),
            };
            if !candidate.is_free && !mutants::active(Mutant::PruneUnexecuted) {
                return Ok(());
            }
            let floor = candidate.segment + 1;
            if is_records {
                self.shared.index.lock().drop_records(floor);
                copy_forward(&mut self.records, &mut self.latest, floor)?;
                self.records.give_up(floor)?;
            } else {
                self.shared.index.lock().drop_bodies(floor);
                self.bodies.give_up(floor)?;
            }
        }
        self.prune_due = true;
        Ok(())
    }

    fn oldest_records(&self) -> Option<Candidate> {
        let (segment, _) = self.records.oldest_full()?;
        let (height, is_free) = self.shared.index.lock().records_in(segment, self.below);
        Some(Candidate { segment, height, is_free })
    }

    fn oldest_bodies(&self) -> Option<Candidate> {
        let (segment, _) = self.bodies.oldest_full()?;
        let (height, is_free) = self.shared.index.lock().bodies_in(segment, self.below);
        Some(Candidate { segment, height, is_free })
    }
}

/// An oldest segment.
struct Candidate {
    segment: u64,
    /// The highest height that needs something of it.
    height: quorate_types::Height,
    is_free: bool,
}

/// Appends the latest records that lie before `floor` again (★); they become durable with the floor.
fn copy_forward(log: &mut Log, latest: &mut Latest, floor: u64) -> Result<(), StorageError> {
    if mutants::active(Mutant::PruneLatestRecord) {
        return Ok(());
    }
    for (kind, (bytes, segment)) in latest.iter_mut().filter(|(_, (_, at))| *at < floor) {
        *segment = log.append(*kind, &[], &Bytes::clone(bytes))?.segment;
    }
    Ok(())
}
