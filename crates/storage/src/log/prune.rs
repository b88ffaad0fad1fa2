//! Pruning of the oldest segments, whose files are used again.
//!
//! [`Log::prune_before`] first makes durable, in the log itself, which segment is the oldest from
//! now on (a *floor* record), together with whatever the caller copied forward before it; only then
//! do names change (★). A crash in between leaves files below the floor: recovery removes them
//! without reading them. A segment *at or above* the floor that is missing is corruption, wherever
//! it is.
//!
//! A few of the files are kept under another name and become new segments by a rename: under steady
//! load no file is made and no zero written. Their old content needs no clearing, because every
//! checksum is keyed by the number of its segment. A rename that a crash takes back leaves a file
//! below the floor whose content may be anything.

use super::{Log, Segment, begin_segment, record};
use crate::StorageError;
use bytes::Bytes;
use quorate_crypto::mutants::{self, Mutant};

/// Files kept for later. One is enough under steady load; a second covers a burst.
const SPARES_MAX: usize = 2;

impl Log {
    /// The segments before the one in use, which is never pruned, oldest first, with the bytes
    /// used in each.
    pub(crate) fn full(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.full.iter().copied()
    }

    /// Bytes used by records, of all segments: what is set aside for later does not count.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.full.iter().map(|(_, used)| used).sum::<u64>() + self.end
    }

    /// Prunes every segment before `floor`, which is at most the one in use. What of them must
    /// stay was appended again before.
    pub(crate) fn prune_before(&mut self, floor: u64) -> Result<(), StorageError> {
        assert!(floor <= self.segment.number, "the segment in use stays");
        self.floor = floor;
        if !mutants::active(Mutant::PruneBeforeCommit) {
            self.append_floor()?;
        }
        while let Some((number, _)) = self.full.front().copied().filter(|(n, _)| *n < floor) {
            self.full.pop_front();
            self.set_aside(number)?;
        }
        self.unsynced_name = true;
        if mutants::active(Mutant::PruneBeforeCommit) {
            self.sync_names()?;
            self.append_floor()?;
        }
        Ok(())
    }

    fn append_floor(&mut self) -> Result<(), StorageError> {
        let floor = self.floor.to_le_bytes();
        self.append(record::FLOOR, &floor, &Bytes::new())?;
        self.commit()
    }

    fn sync_names(&mut self) -> Result<(), StorageError> {
        let place = self.disk.locate(&self.name.all());
        self.disk
            .sync_directory()
            .map_err(|error| StorageError::io("sync the directory of", place, &error))
    }

    fn set_aside(&mut self, number: u64) -> Result<(), StorageError> {
        let name = self.name.file(number);
        let is_of_use = self.spares.len() < SPARES_MAX
            && Segment::open(self.disk.as_ref(), self.name, number)?.capacity
                == self.config.segment_bytes;
        if !is_of_use {
            return self.remove(&name);
        }
        let spare = self.name.spare(number);
        self.rename(&name, &spare)?;
        self.spares.push(spare);
        Ok(())
    }

    /// The next segment's file: one that was pruned, the one made ready, or a new one.
    pub(super) fn next_segment(&mut self, bytes: u64) -> Result<Segment, StorageError> {
        let number = self.segment.number + 1;
        let fits = bytes == self.config.segment_bytes && !self.prepared;
        if fits && let Some(spare) = self.spares.pop() {
            let name = self.name.file(number);
            self.rename(&spare, &name)?;
            return Segment::open(self.disk.as_ref(), self.name, number);
        }
        begin_segment(self.disk.as_mut(), self.name, number, bytes)
    }

    /// Takes over the files set aside by an earlier run; removes those that are of no use.
    pub(super) fn adopt_spares(&mut self, names: &[String]) -> Result<(), StorageError> {
        for name in names {
            let place = self.disk.locate(name);
            let failed = |error| StorageError::io("open", place, &error);
            let length = self.disk.open(name).and_then(|file| file.length()).map_err(failed)?;
            if length == self.config.segment_bytes && self.spares.len() < SPARES_MAX {
                self.spares.push(name.clone());
            } else {
                self.remove(name)?;
            }
        }
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), StorageError> {
        let place = self.disk.locate(from);
        self.disk.rename(from, to).map_err(|error| StorageError::io("rename", place, &error))
    }

    fn remove(&mut self, name: &str) -> Result<(), StorageError> {
        let place = self.disk.locate(name);
        self.disk.remove(name).map_err(|error| StorageError::io("remove", place, &error))
    }
}
