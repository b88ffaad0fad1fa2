//! Nodes of the tries, by trie and path: what changed since the last checkpoint in memory, all of
//! it in a store.

use ethrex_trie::{Nibbles, TrieDB, TrieError};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Nibbles of a whole path, with the sign that it ends: the library shows values under such paths
/// too, and the state has them.
const WHOLE: usize = 65;

/// The nodes of all tries.
#[derive(Clone, Default)]
pub(crate) struct Nodes(Arc<Mutex<Content>>);

/// The nodes of one of them, whose letter stands before their paths.
pub(crate) struct NodesOf {
    nodes: Nodes,
    trie: u8,
}

#[derive(Default)]
struct Content {
    /// Where nodes are kept; without one they are counted alone, and the tries are in memory.
    store: Option<(Database, Keyspace)>,
    pending: BTreeMap<Vec<u8>, Vec<u8>>,
    figures: Figures,
}

/// Nodes that changed.
#[derive(Clone, Copy, Default)]
pub(crate) struct Figures {
    pub(crate) nodes: u64,
    /// With their paths.
    pub(crate) bytes: u64,
}

impl Nodes {
    /// Nodes that are kept in a folder.
    pub(crate) fn on_disk(folder: &Path) -> Self {
        let database = Database::builder(folder).cache_size(256 << 20).open().expect("opens");
        let nodes = database.keyspace("nodes", KeyspaceCreateOptions::default).expect("opens");
        let content = Content { store: Some((database, nodes)), ..Content::default() };
        Self(Arc::new(Mutex::new(content)))
    }

    pub(crate) fn of(&self, trie: u8) -> Box<NodesOf> {
        Box::new(NodesOf { nodes: self.clone(), trie })
    }

    /// Takes the nodes that a height changed in a trie.
    pub(crate) fn put(&self, trie: u8, changed: Vec<(Nibbles, Vec<u8>)>) {
        self.with(|content| {
            for (path, node) in changed.into_iter().filter(|(path, _)| path.len() < WHOLE) {
                let key = key(trie, &path);
                content.figures.nodes += 1;
                content.figures.bytes += (key.len() + node.len()) as u64;
                if content.store.is_some() {
                    content.pending.insert(key, node);
                }
            }
        });
    }

    /// Writes what changed since the last one, durably.
    pub(crate) fn checkpoint(&self) {
        self.with(|content| {
            let Some((database, nodes)) = &content.store else { return };
            let mut batch = database.batch().durability(Some(PersistMode::SyncData));
            for (key, node) in std::mem::take(&mut content.pending) {
                batch.insert(nodes, key, node);
            }
            batch.commit().expect("commits");
        });
    }

    pub(crate) fn figures(&self) -> Figures {
        self.with(|content| content.figures)
    }

    fn with<T>(&self, run: impl FnOnce(&mut Content) -> T) -> T {
        run(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl TrieDB for NodesOf {
    fn get(&self, path: Nibbles) -> Result<Option<Vec<u8>>, TrieError> {
        let key = key(self.trie, &path);
        Ok(self.nodes.with(|content| match (content.pending.get(&key), &content.store) {
            (Some(node), _) => Some(node.clone()),
            (None, Some((_, nodes))) => nodes.get(&key).expect("reads").map(|node| node.to_vec()),
            (None, None) => None,
        }))
    }

    fn put_batch(&self, changed: Vec<(Nibbles, Vec<u8>)>) -> Result<(), TrieError> {
        self.nodes.put(self.trie, changed);
        Ok(())
    }
}

/// Two nibbles a byte, then how many there are.
fn key(trie: u8, path: &Nibbles) -> Vec<u8> {
    let nibbles = path.as_ref();
    let mut key = vec![trie];
    key.extend(nibbles.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).unwrap_or(&0)));
    key.push(nibbles.len() as u8);
    key
}
