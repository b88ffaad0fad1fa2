//! redb: a B-tree whose pages are copied when they change.

use super::Store;
use crate::workload::{Changes, Key};
use redb::{Database, Durability, ReadOnlyTable, ReadableDatabase, TableDefinition};
use std::path::Path;

const TABLE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("state");

pub(super) struct Redb {
    database: Database,
    quick_repair: bool,
    /// The table as the last checkpoint left it, once it was asked for.
    table: Option<ReadOnlyTable<&'static [u8], &'static [u8]>>,
}

impl Redb {
    pub(super) fn open(folder: &Path, cache_bytes: u64, quick_repair: bool) -> Self {
        let cache_bytes = usize::try_from(cache_bytes).expect("fits");
        let mut builder = Database::builder();
        let database = builder.set_cache_size(cache_bytes).create(folder.join("state"));
        Self { database: database.expect("opens"), quick_repair, table: None }
    }

    fn table(&mut self) -> &ReadOnlyTable<&'static [u8], &'static [u8]> {
        self.table.get_or_insert_with(|| {
            let transaction = self.database.begin_read().expect("reads");
            transaction.open_table(TABLE).expect("a table")
        })
    }
}

impl Store for Redb {
    fn write(&mut self, changes: &Changes) {
        // Whoever reads keeps the pages that are replaced.
        self.table = None;
        let mut transaction = self.database.begin_write().expect("writes");
        transaction.set_durability(Durability::Immediate).expect("is set");
        transaction.set_quick_repair(self.quick_repair);
        let mut table = transaction.open_table(TABLE).expect("a table");
        for (key, value) in changes {
            table.insert(&key[..], &value[..]).expect("inserts");
        }
        drop(table);
        transaction.commit().expect("commits");
    }

    fn get(&mut self, key: &Key) -> Option<Vec<u8>> {
        self.table().get(&key[..]).expect("reads").map(|value| value.value().to_vec())
    }

    fn scan(&mut self, from: &Key, entries: usize) -> Option<u64> {
        let range = self.table().range::<&[u8]>(&from[..]..).expect("reads");
        let bytes = |entry: Result<(_, redb::AccessGuard<'_, &[u8]>), _>| {
            entry.expect("reads").1.value().to_vec().len() as u64
        };
        Some(range.take(entries).map(bytes).sum())
    }
}
