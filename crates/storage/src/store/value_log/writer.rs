//! Whoever writes the log: batch after batch, each a checkpoint.

use super::batch::{Batch, Unfilled};
use super::index::{Index, Update};
use super::keys::Keys;
use super::read::Snapshot;
use super::refused;
use super::ring::{End, Writer};
use super::segment::Segment;
use crate::StorageError;
use crate::store::{Changes, Entries};
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::service::StateError;
use std::sync::Arc;

impl Writer {
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::new(Snapshot { index: self.index.clone(), segments: self.segments.clone() })
    }

    pub(super) fn write(&mut self, changes: &Changes) -> Result<(), StateError> {
        self.check()?;
        let written = self.write_batch(changes);
        self.end_with(written)
    }

    pub(super) fn replace(&mut self, entries: &mut Entries<'_>) -> Result<(), StorageError> {
        self.check()?;
        let (end, former) = (self.end, self.segments.len());
        let ended = match Batch::begin(self).fill(entries) {
            Ok(index) => self.commit_replaced((end, former), index),
            Err(Unfilled::Disk(error)) => Err(error),
            Err(Unfilled::Entry(error)) => {
                let undone = self.undo(end, former);
                self.end_with(undone)?;
                return Err(error);
            }
        };
        Ok(self.end_with(ended)?)
    }

    /// ★ After a disk failed nobody knows what is on it: nothing more is written.
    fn check(&self) -> Result<(), StateError> {
        match &self.failed {
            Some(error) if !mutants::active(Mutant::GoOnAfterFailure) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    fn end_with(&mut self, outcome: Result<(), StateError>) -> Result<(), StateError> {
        self.failed = outcome.clone().err();
        outcome
    }

    fn write_batch(&mut self, changes: &Changes) -> Result<(), StateError> {
        let present = |key: &[u8]| self.index.get(key).is_some();
        // A key that is not there has no entry that a removal would have to hide.
        let told =
            |(key, value): &(&Arc<[u8]>, &Option<Arc<[u8]>>)| value.is_some() || present(key);
        let changes: Vec<_> = changes.iter().filter(told).collect();
        if changes.is_empty() {
            return Ok(());
        }
        let before = self.index.clone();
        let mut batch = Batch::begin(self);
        let mut updates: Vec<Update<'_>> = Vec::with_capacity(changes.len());
        for (key, value) in changes {
            let place = batch.push(key, value.as_deref())?;
            updates.push((key, value.as_ref().map(|_| place)));
        }
        let mut index = before.apply(&updates);
        let (cleaned, moved) = batch.clean(&index)?;
        if !moved.is_empty() {
            let moved: Vec<Update<'_>> =
                moved.iter().map(|(key, place)| (&key[..], Some(*place))).collect();
            index = index.apply(&moved);
        }
        batch.commit(cleaned)?;
        self.give_up(cleaned)?;
        self.index = index;
        self.keep_keys()
    }

    /// Commits entries that take the place of everything in the `former` segments.
    fn commit_replaced(
        &mut self,
        (end, former): (End, usize),
        index: Index,
    ) -> Result<(), StateError> {
        Batch::begin(self).commit(former)?;
        self.give_up(former)?;
        (self.index, self.cleaning) = (index, None);
        self.end.used -= end.used;
        self.keep_keys()
    }

    /// Takes back what was written since this was the end, the newest first.
    fn undo(&mut self, end: End, segments: usize) -> Result<(), StateError> {
        for segment in self.segments.drain(segments..).rev() {
            let removed = self.disk.remove(&Segment::name(segment.head.number));
            removed.map_err(|error| refused(&error))?;
        }
        let kept = self.segments.last().expect("the last before").head.number;
        self.without_keys.retain(|(segment, _)| segment.head.number < kept);
        self.end = end;
        // What comes next is not to find them behind it again.
        self.disk.sync_directory().map_err(|error| refused(&error))
    }

    /// ★ Removes the files of so many segments, oldest first, none of which has anything that the
    /// store has not got elsewhere, durably. One that a power cut brings back is not read.
    pub(super) fn give_up(&mut self, count: usize) -> Result<(), StateError> {
        if count == 0 {
            return Ok(());
        }
        let there = self.disk.list().map_err(|error| refused(&error))?;
        for segment in self.segments.drain(..count) {
            let number = segment.head.number;
            for name in [Segment::name(number), Keys::name(number)] {
                if there.contains(&name) {
                    self.disk.remove(&name).map_err(|error| refused(&error))?;
                }
            }
        }
        let first = self.segments.first().expect("the one that is written to").head.number;
        self.without_keys.retain(|(segment, _)| segment.head.number >= first);
        Ok(())
    }

    /// Writes the keys of segments that are full.
    fn keep_keys(&mut self) -> Result<(), StateError> {
        for (segment, end) in std::mem::take(&mut self.without_keys) {
            Keys::read_from(&segment, end)?.keep(&mut *self.disk)?;
        }
        Ok(())
    }
}
