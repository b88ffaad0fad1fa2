//! nomt: a B-tree of values beside a Merkle tree over them, read and written directly. It does
//! more than the others: each checkpoint comes with a root.

use super::Store;
use crate::workload::{Changes, Key};
use nomt::hasher::Blake3Hasher;
use nomt::{KeyReadWrite, Nomt, Options, Session, SessionParams};
use std::path::Path;

/// A page of the Merkle tree for so many keys, which leaves its hash table half empty or more.
const KEYS_PER_PAGE: u64 = 8;

/// Fewest pages of the hash table: the library's own default.
const PAGES_MIN: u64 = 64_000;

pub(super) struct NomtStore {
    /// Reads between two checkpoints. Before the store, for it holds it.
    session: Option<Session<Blake3Hasher>>,
    store: Nomt<Blake3Hasher>,
}

impl NomtStore {
    /// Two caches of so many mebibytes, one for pages of the tree and one for values.
    pub(super) fn open(folder: &Path, cache_mib: usize, keys: u64) -> Self {
        let mut options = Options::new();
        options.path(folder);
        options.page_cache_size(cache_mib);
        options.leaf_cache_size(cache_mib);
        options
            .hashtable_buckets(u32::try_from(PAGES_MIN.max(keys / KEYS_PER_PAGE)).expect("fits"));
        Self { session: None, store: Nomt::open(options).expect("opens") }
    }

    fn session(&mut self) -> &Session<Blake3Hasher> {
        self.session.get_or_insert_with(|| self.store.begin_session(SessionParams::default()))
    }
}

impl Store for NomtStore {
    fn write(&mut self, changes: &Changes) {
        self.session();
        let session = self.session.take().expect("just begun");
        changes.keys().for_each(|key| session.warm_up(*key));
        let write =
            |(key, value): (&Key, &Vec<u8>)| (*key, KeyReadWrite::Write(Some(value.clone())));
        let finished = session.finish(changes.iter().map(write).collect()).expect("hashes");
        finished.commit(&self.store).expect("commits");
    }

    fn get(&mut self, key: &Key) -> Option<Vec<u8>> {
        self.session().read(*key).expect("reads")
    }

    fn scan(&mut self, _from: &Key, _entries: usize) -> Option<u64> {
        None
    }
}
