//! Snapshots of the executed state: how one is made of a store, and a store of one.
//!
//! The stream that is cut into chunks has every key with its value, in order, behind their lengths.

use super::{DECIDED, EXECUTED, ExecutedRecord, Executor, decided_key};
use crate::StorageError;
use crate::history::Writing;
use crate::snapshots::Snapshots;
use crate::store::{Checkpoint, View};
use bytes::Bytes;
use quorate_types::machine::{ExecutedUpTo, Install};
use quorate_types::{Height, Manifest};
use std::collections::VecDeque;

/// A snapshot to be written, on whatever thread has the time.
pub struct SnapshotJob {
    view: Box<dyn View>,
    record: ExecutedRecord,
    /// Checkpoint that has all of it.
    checkpoint: Option<Checkpoint>,
}

impl Executor {
    /// The state as the last height left it; later heights do not change it. A checkpoint of it is
    /// begun: no snapshot is ever ahead of the state that it was taken of.
    ///
    /// # Errors
    /// [`StorageError::State`] when the store fails.
    ///
    /// # Panics
    /// When nothing was executed yet.
    pub fn snapshot(&mut self) -> Result<SnapshotJob, StorageError> {
        self.check()?;
        let record = self.record.clone().expect("a snapshot is of an executed height");
        if self.heights_pending > 0 {
            self.begin_checkpoint()?;
        }
        let checkpoint = self.checkpoint.as_ref().map(|(_, checkpoint)| checkpoint.clone());
        self.look_at_checkpoint()?;
        Ok(SnapshotJob { view: self.store.view()?, record, checkpoint })
    }

    /// Replaces the state by a snapshot whose chunks are staged, durably and all at once (★).
    ///
    /// # Errors
    /// [`StorageError::State`] when the store fails or the chunks are not what their manifest says;
    /// the state is the old one then. [`StorageError::FalseSnapshot`] when they are, and do not
    /// come to the root that it names. The same for ever after.
    pub fn install(
        &mut self,
        install: &Install,
        snapshots: &Snapshots,
    ) -> Result<ExecutedUpTo, StorageError> {
        self.check()?;
        let Install { manifest, decided } = install;
        let record = ExecutedRecord {
            service: manifest.service.clone(),
            header: manifest.header,
            operations: manifest.operations,
            decided: decided.to_vec(),
        };
        if record.service != self.service.name() {
            let damaged = StorageError::StateDamaged { entry: "snapshot of another service" };
            return self.settle(Err(damaged));
        }
        let encoded = borsh::to_vec(&record).expect("encoding into memory cannot fail");
        // Of another network's height there is no record, and nobody asks for one.
        let decided = (!decided.is_empty())
            .then(|| Ok((decided_key(manifest.header.height).to_vec(), decided.to_vec())));
        let own = std::iter::once(Ok((EXECUTED.to_vec(), encoded))).chain(decided);
        let state = Entries::new(snapshots, manifest);
        let result = self.store.replace(&mut state.chain(own));
        self.settle(result)?;
        let opened = self.open_service(Some(manifest.header)).map_err(|error| match error {
            StorageError::StateDamaged { .. } => {
                StorageError::FalseSnapshot { height: manifest.header.height }
            }
            error => error,
        });
        self.settle(opened)?;
        self.record = Some(record);
        self.checkpoint = None;
        self.durable = self.height();
        (self.heights_pending, self.bytes_pending) = (0, 0);
        if let Some(Writing(history)) = &self.history {
            history.begin(self.height());
        }
        Ok(self.executed().expect("just installed"))
    }
}

impl SnapshotJob {
    /// The height that it is of.
    #[must_use]
    pub fn height(&self) -> Height {
        self.record.header.height
    }

    /// Writes what of it is not there already; complete and durable afterwards. The ones before the
    /// last two are removed.
    ///
    /// # Errors
    /// [`StorageError::Full`] when there is no room for it, and [`StorageError::NoSnapshot`] when
    /// there can be none: nothing of it is left then, and the next one may succeed. Others when the
    /// store cannot be read or the disk fails.
    pub fn write(self, snapshots: &Snapshots) -> Result<Manifest, StorageError> {
        let height = self.height();
        if let Some(manifest) = snapshots.manifest(height) {
            // Never write over one that is complete: a crash in between would leave half of it.
            return Ok(manifest);
        }
        let written = self.write_anew(snapshots);
        if written.as_ref().is_err_and(StorageError::costs_a_snapshot) {
            snapshots.abandon(height)?;
        }
        written
    }

    fn write_anew(self, snapshots: &Snapshots) -> Result<Manifest, StorageError> {
        let Self { view, record, checkpoint } = self;
        let mut writer = snapshots.begin(record.header.height);
        view.scan(&mut |key, value| {
            if key == EXECUTED || key.first() == Some(&DECIDED) {
                return Ok(());
            }
            writer.put(key, value)
        })?;
        let chunks = writer.chunks()?;
        // ★ Whoever finds a snapshot finds at least its height executed.
        checkpoint.map_or(Ok(()), |checkpoint| checkpoint.wait())?;
        let manifest = Manifest {
            service: record.service,
            header: record.header,
            operations: record.operations,
            chunks,
        };
        snapshots.finish(&manifest)?;
        Ok(manifest)
    }
}

/// The keys and values in the staged chunks of a snapshot.
struct Entries<'a> {
    snapshots: &'a Snapshots,
    manifest: &'a Manifest,
    next: usize,
    buffer: VecDeque<u8>,
}

impl<'a> Entries<'a> {
    fn new(snapshots: &'a Snapshots, manifest: &'a Manifest) -> Self {
        Self { snapshots, manifest, next: 0, buffer: VecDeque::new() }
    }

    /// The next `count` bytes of the stream; `None` at its end.
    fn take(&mut self, count: usize) -> Result<Option<Vec<u8>>, StorageError> {
        while self.buffer.len() < count
            && let Some(chunk) = self.manifest.chunks.get(self.next)
        {
            let content: Bytes = self.snapshots.staged(chunk)?;
            self.buffer.extend(content);
            self.next += 1;
        }
        if self.buffer.is_empty() && count > 0 {
            return Ok(None);
        }
        if self.buffer.len() < count {
            return Err(StorageError::StateDamaged { entry: "end of a snapshot" });
        }
        Ok(Some(self.buffer.drain(..count).collect()))
    }

    fn take_sized(&mut self) -> Result<Option<Vec<u8>>, StorageError> {
        let Some(length) = self.take(4)? else { return Ok(None) };
        let length = u32::from_le_bytes(length.try_into().expect("4 bytes"));
        self.take(length as usize)
    }
}

impl Iterator for Entries<'_> {
    type Item = Result<(Vec<u8>, Vec<u8>), StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        let key = match self.take_sized() {
            Ok(key) => key?,
            Err(error) => return Some(Err(error)),
        };
        let value = self.take_sized().and_then(|value| {
            value.ok_or(StorageError::StateDamaged { entry: "end of a snapshot" })
        });
        Some(value.map(|value| (key, value)))
    }
}
