//! fjall: an LSM tree, with its values in the tables or in files of their own.

use super::Store;
use crate::workload::{Changes, Key};
use fjall::config::CompressionPolicy;
use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode,
};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// Values of so many bytes are separated where values are: all that are measured.
const SEPARATED_BYTES: u32 = 64;

pub(super) struct Fjall {
    database: Database,
    state: Keyspace,
}

impl Fjall {
    pub(super) fn open(folder: &Path, cache_bytes: u64, separates: bool) -> Self {
        let database = Database::builder(folder).cache_size(cache_bytes).open().expect("opens");
        let separation = separates.then(|| {
            let options = KvSeparationOptions::default().compression(CompressionType::None);
            options.separation_threshold(SEPARATED_BYTES)
        });
        let options = || {
            KeyspaceCreateOptions::default()
                .data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
                .with_kv_separation(separation)
        };
        let state = database.keyspace("state", options).expect("opens");
        Self { database, state }
    }
}

impl Store for Fjall {
    fn write(&mut self, changes: &Changes) {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for (key, value) in changes {
            batch.insert(&self.state, &key[..], &value[..]);
        }
        batch.commit().expect("commits");
    }

    fn get(&mut self, key: &Key) -> Option<Vec<u8>> {
        self.state.get(key).expect("reads").map(|value| value.to_vec())
    }

    fn scan(&mut self, from: &Key, entries: usize) -> Option<u64> {
        let entries = self.state.range(&from[..]..).take(entries);
        Some(entries.map(|entry| entry.value().expect("reads").to_vec().len() as u64).sum())
    }

    /// Has the memtable written too: every update comes to that once.
    fn settle(&mut self) {
        self.state.rotate_memtable_and_wait().expect("flushes");
        while self.database.outstanding_flushes() > 0 || self.database.active_compactions() > 0 {
            sleep(Duration::from_millis(5));
        }
    }
}
