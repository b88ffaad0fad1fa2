//! Former values by key and height: what an archive of past states keeps, in either store.

use crate::process::{
    disk_bytes, peak_memory, processor_seconds, quantile, thread_seconds, written_bytes,
};
use crate::workload::{Random, value};
use clap::{Args, ValueEnum};
use fjall::{KeyspaceCreateOptions, PersistMode};
use redb::{ReadableDatabase, TableDefinition};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("history");

/// Heights of a batch: those between two checkpoints of the state.
const HEIGHTS: u64 = 64;

const READS: u64 = 20_000;

#[derive(Args)]
pub(crate) struct History {
    /// Store that keeps them
    #[arg(long)]
    store: Kind,
    /// Changes in all, in batches that are synced
    #[arg(long, default_value_t = 3_000_000)]
    changes: u64,
    /// Keys that change, each as likely: half are accounts of 20 bytes, half slots of 52
    #[arg(long, default_value_t = 3_000_000)]
    keys: u64,
    /// Changes of a batch
    #[arg(long, default_value_t = 10_000)]
    batch: u64,
    /// Folder in which the store is made and removed
    #[arg(long, default_value = ".")]
    folder: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// As it comes, without compression.
    Fjall,
    /// With 64 MiB of pages.
    Redb,
}

enum Store {
    Fjall(fjall::Database, fjall::Keyspace),
    Redb(redb::Database),
}

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

impl Store {
    fn open(kind: Kind, folder: &Path) -> Self {
        match kind {
            Kind::Fjall => {
                let database = fjall::Database::builder(folder).open().expect("opens");
                let entries = database.keyspace("history", KeyspaceCreateOptions::default);
                Self::Fjall(database, entries.expect("opens"))
            }
            Kind::Redb => {
                let file = folder.join("history.redb");
                let database = redb::Database::builder().set_cache_size(64 << 20).create(file);
                Self::Redb(database.expect("opens"))
            }
        }
    }

    fn write(&self, entries: &Entries) {
        match self {
            Self::Fjall(database, keyspace) => {
                let mut batch = database.batch().durability(Some(PersistMode::SyncData));
                for (key, value) in entries {
                    batch.insert(keyspace, &key[..], &value[..]);
                }
                batch.commit().expect("commits");
            }
            Self::Redb(database) => {
                let batch = database.begin_write().expect("begins");
                let mut table = batch.open_table(TABLE).expect("opens");
                for (key, value) in entries {
                    table.insert(&key[..], &value[..]).expect("inserts");
                }
                drop(table);
                batch.commit().expect("commits");
            }
        }
    }

    /// Tells whether the key changed after a height.
    fn changed_after(&self, number: u64, height: u64) -> bool {
        let (from, to) = (entry_key(number, height + 1), entry_key(number, u64::MAX));
        match self {
            Self::Fjall(_, keyspace) => {
                let found = keyspace.range(&from[..]..=&to[..]).next();
                found.map(|entry| entry.value().expect("reads")).is_some()
            }
            Self::Redb(database) => {
                let table =
                    database.begin_read().expect("begins").open_table(TABLE).expect("opens");
                let mut found = table.range(&from[..]..=&to[..]).expect("reads");
                found.next().is_some_and(|entry| !entry.expect("reads").1.value().is_empty())
            }
        }
    }
}

/// Key of what an account or a slot was before a height.
fn entry_key(number: u64, height: u64) -> Vec<u8> {
    let length = if number.is_multiple_of(2) { 20 } else { 52 };
    let mut key = value(number, 0, 64);
    key[..8]
        .copy_from_slice(&number.rotate_left(32).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    key.truncate(length);
    key.extend_from_slice(&height.to_be_bytes());
    key
}

impl History {
    pub(crate) fn measure(self) {
        let folder = tempfile::tempdir_in(&self.folder).expect("a folder");
        let store = Store::open(self.store, folder.path());
        let mut random = Random::new(1);
        let (batches, began, mut drawn) = (self.changes / self.batch, processor_seconds(), 0.0);
        for batch in 0..batches {
            let mut entry = |change: u64| {
                let number = random.below(self.keys);
                let height = batch * HEIGHTS + change * HEIGHTS / self.batch;
                let bytes = if number.is_multiple_of(2) { 73 } else { 32 };
                (entry_key(number, height), value(number, height, bytes))
            };
            let before = thread_seconds();
            let mut entries: Entries = (0..self.batch).map(&mut entry).collect();
            entries.sort();
            drawn += thread_seconds() - before;
            store.write(&entries);
        }
        let seconds = processor_seconds() - began - drawn;
        let (changes, heights) = (batches * self.batch, batches * HEIGHTS);
        let mut read = |_| {
            let (number, height) = (random.below(self.keys), random.below(heights));
            let began = Instant::now();
            store.changed_after(number, height);
            began.elapsed().as_secs_f64() * 1e6
        };
        let mut times: Vec<f64> = (0..READS).map(&mut read).collect();
        let line = json!({
            "history": format!("{:?}", self.store).to_lowercase(),
            "changes": changes,
            "keys": self.keys,
            "batch": self.batch,
            "cpu_us": seconds * 1e6 / changes as f64,
            "written_bytes": written_bytes() / changes,
            "disk_bytes": disk_bytes(folder.path()) / changes,
            "read_us_p50": quantile(&mut times, 0.5),
            "read_us_p99": quantile(&mut times, 0.99),
            "peak_mib": peak_memory() >> 20,
        });
        println!("{line}");
    }
}
