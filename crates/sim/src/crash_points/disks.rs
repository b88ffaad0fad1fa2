//! The disks of a replica: everything that outlives its crash, and each way in which they fail.

use crate::epoch::EpochConfig;
use quorate_crypto::mutants::{self, Mutant};
use quorate_storage::disk::{Faults, UnsyncedWrite};
use quorate_storage::{Fault, MemoryDisk, MemoryStore};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// One of the two logs' disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogKind {
    Records,
    Bodies,
}

/// Everything that outlives a crash. Cloning gives another handle to the same disks.
#[derive(Clone)]
pub(super) struct Disks {
    pub(super) records: MemoryDisk,
    pub(super) bodies: MemoryDisk,
    pub(super) snapshots: MemoryDisk,
    pub(super) store: MemoryStore,
    pub(super) epochs: EpochFolder,
}

/// Folder of the hand-overs that led a host from the first epoch to its own. Each is a file of its
/// own, there or not, and durable before anything is done in the epoch that it begins.
#[derive(Clone, Default)]
pub(super) struct EpochFolder(Rc<RefCell<Option<Arc<EpochConfig>>>>);

impl EpochFolder {
    /// Epoch that the hand-overs lead to; `None` while there are none.
    pub(super) fn last(&self) -> Option<Arc<EpochConfig>> {
        self.0.borrow().clone()
    }

    /// ★ Notes how the epoch before this one ended.
    pub(super) fn note(&self, next: &Arc<EpochConfig>) {
        if !mutants::active(Mutant::EpochUnrecorded) {
            *self.0.borrow_mut() = Some(Arc::clone(next));
        }
    }

    fn fork(&self) -> Self {
        Self(Rc::new(RefCell::new(self.last())))
    }
}

/// A failure of one of the two logs' disks, in a start of their host: 0 for the first, the next
/// behind the border.
#[derive(Clone, Debug)]
pub(super) struct DiskFailure {
    pub(super) start: usize,
    pub(super) log: LogKind,
    pub(super) fault: Fault,
}

impl Disks {
    /// Empty ones. A checkpoint of the state is on its way while another height executes.
    pub(super) fn new() -> Self {
        Self {
            records: MemoryDisk::default(),
            bodies: MemoryDisk::default(),
            snapshots: MemoryDisk::default(),
            store: MemoryStore::with_slow_checkpoints(1),
            epochs: EpochFolder::default(),
        }
    }

    /// Others in the same state.
    pub(super) fn fork(&self) -> Self {
        Self {
            records: self.records.fork(),
            bodies: self.bodies.fork(),
            snapshots: self.snapshots.fork(),
            store: self.store.fork(),
            epochs: self.epochs.fork(),
        }
    }

    /// The power fails, and nothing survives that was not synced.
    pub(super) fn lose_unsynced(&self) {
        for disk in [&self.records, &self.bodies, &self.snapshots] {
            disk.crash(&mut || true);
        }
        self.store.crash();
    }

    /// The disk of one of the two logs.
    pub(super) fn of(&self, kind: LogKind) -> &MemoryDisk {
        match kind {
            LogKind::Records => &self.records,
            LogKind::Bodies => &self.bodies,
        }
    }
}

/// Each operation that these disks have carried out, as a failure.
pub(super) fn every_failure(faults: &[Faults; 2]) -> Vec<(LogKind, Fault)> {
    let mut all = Vec::new();
    for (which, faults) in [LogKind::Records, LogKind::Bodies].into_iter().zip(faults) {
        all.extend((0..faults.writes()).map(|nth| (which, Fault::FailWrite { nth })));
        all.extend((0..faults.syncs()).map(|nth| (which, Fault::FailSync { nth })));
        let directory = 0..faults.directory_syncs();
        all.extend(directory.map(|nth| (which, Fault::FailDirectorySync { nth })));
        all.extend((0..faults.name_changes()).map(|nth| (which, Fault::FailNameChange { nth })));
    }
    all
}

/// The disk is full after so many bytes.
pub(super) fn full_at_each_write(faults: &[Faults; 2]) -> Vec<(LogKind, Fault)> {
    const STEPS: u64 = 48;
    let mut all = Vec::new();
    for (which, faults) in [LogKind::Records, LogKind::Bodies].into_iter().zip(faults) {
        let bytes = faults.bytes();
        all.extend((1..STEPS).map(|step| (which, Fault::Full { bytes: bytes * step / STEPS })));
    }
    all
}

/// The last write that a crash may take back. Files that were set aside are not written to.
pub(super) fn last_write(disk: &MemoryDisk) -> Option<UnsyncedWrite> {
    disk.unsynced().into_iter().rfind(|write| !write.file.contains("spare"))
}
