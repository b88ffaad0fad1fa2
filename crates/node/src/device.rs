//! The journal as a validator's log thread writes on it.

use crate::guard::Guard;
use crate::log::Device;
use crate::metrics::Metrics;
use quorate_crypto::mutants::{self, Mutant};
use quorate_storage::{Entry, Journal, JournalStats, LogConfig, LogMark, Room, StorageError};
use std::sync::Arc;
use std::time::Instant;

/// A journal that has its guard told of what is committed, says how long that takes, and keeps as
/// little as it may while room is low.
pub(crate) struct GuardedJournal {
    journal: Journal,
    guard: Option<Box<dyn Guard>>,
    /// Record that the guard was told of last.
    told: Option<LogMark>,
    metrics: Arc<Metrics>,
    room: Room,
    retention_bytes: u64,
    /// Set if it keeps little.
    is_low: bool,
}

impl GuardedJournal {
    /// A journal that keeps so many bytes while there is room.
    pub(crate) fn new(
        journal: Journal,
        guard: Option<Box<dyn Guard>>,
        metrics: &Arc<Metrics>,
        room: &Room,
        retention_bytes: u64,
    ) -> Self {
        let (metrics, room) = (Arc::clone(metrics), room.clone());
        metrics.log(journal.stats());
        Self { journal, guard, told: None, metrics, room, retention_bytes, is_low: false }
    }

    fn tell(&mut self, mark: Option<LogMark>) -> Result<(), StorageError> {
        let mark = mark.filter(|mark| self.told != Some(*mark));
        if let Some((guard, mark)) = self.guard.as_mut().zip(mark) {
            guard.advance(mark)?;
            self.told = Some(mark);
        }
        Ok(())
    }

    fn retain(&mut self) {
        let is_low = self.room.is_low();
        if std::mem::replace(&mut self.is_low, is_low) != is_low {
            let least = LogConfig::RETENTION_BYTES_MIN;
            self.journal.retain(if is_low { least } else { self.retention_bytes });
        }
    }
}

impl Device for GuardedJournal {
    fn write(&mut self, entry: &Entry) -> Result<(), StorageError> {
        self.journal.write(entry)
    }

    fn commit(&mut self) -> Result<(), StorageError> {
        self.retain();
        let began = Instant::now();
        if mutants::active(Mutant::GuardBeforeSync) {
            self.tell(self.journal.written())?;
        }
        self.journal.commit()?;
        // ★ Not before: what the guard remembers, the log has for good.
        self.tell(self.journal.committed())?;
        self.metrics.commit_took(began.elapsed());
        Ok(())
    }

    fn close(&mut self) -> Result<(), StorageError> {
        self.journal.close()?;
        self.guard.as_mut().map_or(Ok(()), |guard| guard.close())
    }

    fn stats(&self) -> JournalStats {
        self.journal.stats()
    }

    /// While room is low a write may have to wait for it, which is no matter of microseconds.
    fn is_quick(&self, bytes: usize) -> bool {
        !self.room.is_low() && self.journal.is_quick(bytes)
    }
}
