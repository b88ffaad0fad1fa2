//! Noticing that locks are gone (★): a small file beside the key says how many there were.
//!
//! An authority that forgot a lock would vote twice for one coin. Its log notices damage, but
//! neither a disk that was emptied nor one that was set back to an older copy; this file does, as
//! long as it is kept with the key and not with the data.
//!
//! # When it is written
//!
//! After the log's sync of a group, and durably before a vote of that group leaves (★). So it
//! counts every vote that anybody may have; and it is never ahead of what is durable in the log,
//! which after a power cut would be a false alarm for ever: that rules out syncing both side by
//! side. Votes wait for it on a thread of its own, while the log syncs the next group: a vote is
//! later by one sync of 512 bytes, and no fewer leave in a second.
//!
//! # The first start
//!
//! Where there are neither locks nor a mark, it cannot be told whether there ever were: then an
//! authority starts only on its operator's word ([`Start::First`]). Whoever makes new keys knows,
//! and writes a mark of no locks beside them.

use crate::NodeError;
use crate::slots::{Found, SlotFile};
use quorate_crypto::mutants::{self, Mutant};
use quorate_storage::{Durability, StorageError};
use quorate_types::NetworkId;
use std::path::{Path, PathBuf};

/// Digits of a network in the name of its mark.
const NETWORK_DIGITS: usize = 16;

/// Word of the operator on whether an authority voted before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// It never ran in this network.
    First,
    /// It ran, or its keys were made for it with a mark.
    Again,
}

/// The file of one shard in one network.
#[derive(Debug)]
pub(super) struct Mark {
    slots: SlotFile,
    durability: Durability,
    marked: Option<u64>,
}

impl Mark {
    /// Opens the mark of a shard; without one it begins with the first [`Mark::begin`].
    pub(super) fn beside(
        key: &Path,
        (network, shard): (NetworkId, u16),
        durability: Durability,
    ) -> Result<Self, NodeError> {
        let path = path(key, network, shard);
        let failed = |source| NodeError::Marker { action: "open", path: path.clone(), source };
        let (slots, found): (_, Found<u64>) =
            SlotFile::open(path.clone(), "quorate v1 payment locks").map_err(failed)?;
        // What was not written by us is no reason to sign.
        let damaged = found.is_damaged.then_some(u64::MAX);
        let marked = found.slots.first().copied().or(damaged);
        Ok(Self { slots, durability, marked })
    }

    /// File of the mark; `None` where there is one.
    pub(super) fn missing(&self) -> Option<&Path> {
        self.marked.is_none().then(|| self.slots.path())
    }

    /// ★ Refuses fewer locks than were there.
    pub(super) fn check(&self, found: u64) -> Result<(), NodeError> {
        match self.marked {
            Some(marked) if found < marked => {
                let mark = self.slots.path().to_owned();
                Err(NodeError::LocksLost { marked, found, mark })
            }
            _ => Ok(()),
        }
    }

    /// ★ Refuses to begin where there is nothing, unless it is the first time; and to take for the
    /// first time what is not.
    pub(super) fn check_start(
        &self,
        start: Start,
        has_locks: bool,
        data_dir: &Path,
    ) -> Result<(), NodeError> {
        let (mark, data_dir) = (self.slots.path().to_owned(), data_dir.to_owned());
        match (start, self.marked.is_some() || has_locks) {
            (Start::Again, false) if mutants::active(Mutant::PayStartUnasked) => Ok(()),
            (Start::Again, false) => Err(NodeError::NeverStarted { data_dir, mark }),
            (Start::First, true) => Err(NodeError::StartedBefore { data_dir, mark }),
            (Start::First, false) => Ok(()),
            (Start::Again, true) if !has_locks => self.check(0),
            (Start::Again, true) => {
                if self.marked.is_none() {
                    tracing::warn!(
                        mark = %mark.display(),
                        "there is no mark of how many locks there were: whether some are missing \
                         is not noticed this time"
                    );
                }
                Ok(())
            }
        }
    }

    /// Says, durably, that there are so many locks, before the first vote of this run.
    pub(super) fn begin(&mut self, locks: u64) -> Result<(), StorageError> {
        self.slots.put_both(&locks)?;
        self.marked = Some(locks);
        Ok(())
    }

    /// Says that a shard whose epoch begins has locked nothing, unless it has begun.
    pub(super) fn begin_new(&mut self) -> Result<(), StorageError> {
        if self.marked.is_none() { self.begin(0) } else { Ok(()) }
    }

    /// ★ Says that so many locks are durable, before their votes leave; as durably as they are.
    pub(super) fn advance(&mut self, locks: u64) -> Result<(), StorageError> {
        if self.marked >= Some(locks) || mutants::active(Mutant::PayUnmarkedVotes) {
            return Ok(());
        }
        self.slots.put(&locks)?;
        if self.durability == Durability::Fsync {
            self.slots.sync()?;
        }
        self.marked = Some(locks);
        Ok(())
    }
}

fn path(key: &Path, network: NetworkId, shard: u16) -> PathBuf {
    let network = hex::encode(network.0);
    key.with_extension(format!("shard-{shard}-{}.locks", &network[..NETWORK_DIGITS]))
}

#[cfg(test)]
mod tests;
