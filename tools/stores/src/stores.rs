//! The stores that are compared, behind what the replicated state asks of one.

mod fjall;
mod nomt;
mod redb;
mod segments;

use crate::workload::{Changes, Key};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Bytes of a mebibyte.
const MIB: u64 = 1 << 20;

/// What the replicated state asks of a store.
pub(crate) trait Store {
    /// Makes changes durable, all or none.
    fn write(&mut self, changes: &Changes);

    /// The value of a key.
    fn get(&mut self, key: &Key) -> Option<Vec<u8>>;

    /// Reads so many entries in key order from a key on, and returns the bytes of their values;
    /// `None` where there is no order.
    fn scan(&mut self, from: &Key, entries: usize) -> Option<u64>;

    /// Waits until nothing is due in the background.
    fn settle(&mut self) {}
}

/// A store with its settings. Memory for its caches is 128 or 256 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// redb as the validators use it: 128 MiB of pages, quick repair
    Redb,
    /// redb with 128 MiB of pages, which walks the file when it opens after a crash
    RedbSlowRepair,
    /// redb with 256 MiB of pages, quick repair
    RedbLarge,
    /// fjall, an LSM tree: 256 MiB of blocks, and memtables of 64 MiB
    Fjall,
    /// fjall with values in files of their own
    FjallSeparated,
    /// nomt, a store with a Merkle tree of its own: 128 MiB of pages and 128 MiB of leaves
    Nomt,
    /// A bound: values in segments, their places in memory
    Segments,
}

impl Kind {
    /// Opens the store in a folder, which is made for `keys` keys if it is empty.
    pub(crate) fn open(self, folder: &Path, keys: u64) -> Box<dyn Store> {
        match self {
            Self::Redb => Box::new(redb::Redb::open(folder, 128 * MIB, true)),
            Self::RedbSlowRepair => Box::new(redb::Redb::open(folder, 128 * MIB, false)),
            Self::RedbLarge => Box::new(redb::Redb::open(folder, 256 * MIB, true)),
            Self::Fjall => Box::new(fjall::Fjall::open(folder, 256 * MIB, false)),
            Self::FjallSeparated => Box::new(fjall::Fjall::open(folder, 256 * MIB, true)),
            Self::Nomt => Box::new(nomt::NomtStore::open(folder, 128, keys)),
            Self::Segments => Box::new(segments::Segments::open(folder)),
        }
    }

    /// Its name on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().expect("none is skipped").get_name().to_owned()
    }
}

#[cfg(test)]
mod tests;
