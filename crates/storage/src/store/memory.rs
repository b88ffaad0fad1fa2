//! A store in memory that can lose its latest commits, and the checkpoint that was on its way.

use super::{
    Beforehand, Changes, Checkpoint, Entries, Store, Transaction, View, Visit, owned, part,
    scan_changed,
};
use crate::StorageError;
use parking_lot::Mutex;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::service::{KeyRange, State, StateError, Visitor};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A deterministic store. Cloning gives another handle to the same contents, so a test or the
/// simulator keeps one across a crash.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    content: Arc<Mutex<Content>>,
}

type Values = BTreeMap<Arc<[u8]>, Arc<[u8]>>;

#[derive(Debug, Default)]
struct Content {
    values: Values,
    /// Values before the changes that no checkpoint has, by key.
    undo: Changes,
    writing: Option<Writing>,
    /// Commits that go by while a checkpoint is on its way.
    checkpoint_commits: u64,
}

/// Checkpoint that is on its way.
#[derive(Debug)]
struct Writing {
    checkpoint: Checkpoint,
    /// Values before the changes that it has and the one before had not, by key.
    undo: Changes,
    commits_left: u64,
}

impl MemoryStore {
    /// A store without keys.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A store without keys whose checkpoints are on their way during so many commits, if nobody
    /// waits for them.
    #[must_use]
    pub fn with_slow_checkpoints(commits: u64) -> Self {
        let content = Content { checkpoint_commits: commits, ..Content::default() };
        Self { content: Arc::new(Mutex::new(content)) }
    }

    /// Another store in the same state, what is not durable included.
    #[must_use]
    pub fn fork(&self) -> Self {
        let content = self.content.lock();
        let writing = content.writing.as_ref().map(|writing| Writing {
            // Nobody is told how this one ends.
            checkpoint: Checkpoint::default(),
            undo: writing.undo.clone(),
            commits_left: writing.commits_left,
        });
        let (values, undo) = (content.values.clone(), content.undo.clone());
        let checkpoint_commits = content.checkpoint_commits;
        let forked = Content { values, undo, writing, checkpoint_commits };
        Self { content: Arc::new(Mutex::new(forked)) }
    }

    /// The power fails: back to the last durable commit.
    pub fn crash(&self) {
        let mut content = self.content.lock();
        let latest = std::mem::take(&mut content.undo);
        let written = content.writing.take().map(|writing| writing.undo).unwrap_or_default();
        for (key, before) in latest.into_iter().chain(written) {
            content.set(key, before);
        }
    }
}

impl Content {
    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.values.get(key).map(|value| value.to_vec())
    }

    fn scan(&self, keys: KeyRange<'_>, visit: &mut Visitor<'_>) {
        part(&self.values, keys).find(|(key, value)| visit(key, value).is_break());
    }

    /// The checkpoint that is on its way is durable.
    fn end_checkpoint(&mut self) {
        if let Some(writing) = self.writing.take() {
            writing.checkpoint.end(Ok(()));
        }
    }

    /// Another commit went by.
    fn go_on_writing(&mut self) {
        let is_over = |writing: &mut Writing| {
            writing.commits_left = writing.commits_left.saturating_sub(1);
            writing.commits_left == 0
        };
        if self.writing.as_mut().is_some_and(is_over) {
            self.end_checkpoint();
        }
    }

    /// Sets or removes; what was there before.
    fn set(&mut self, key: Arc<[u8]>, value: Option<Arc<[u8]>>) -> Option<Arc<[u8]>> {
        match value {
            Some(value) => self.values.insert(key, value),
            None => self.values.remove(&key),
        }
    }
}

impl Store for MemoryStore {
    fn begin(&mut self) -> Result<Box<dyn Transaction + '_>, StateError> {
        let content = Arc::clone(&self.content);
        Ok(Box::new(MemoryTransaction { content, changes: Changes::new() }))
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        Ok(self.content.lock().get(key))
    }

    fn scan(&self, keys: KeyRange<'_>, visit: &mut Visitor<'_>) -> Result<(), StateError> {
        self.content.lock().scan(keys, visit);
        Ok(())
    }

    fn view(&mut self) -> Result<Box<dyn View>, StateError> {
        Ok(Box::new(MemoryView(self.content.lock().values.clone())))
    }

    fn checkpoint_after(&mut self, first: Beforehand) -> Result<Checkpoint, StateError> {
        first();
        let mut content = self.content.lock();
        content.end_checkpoint();
        let undo = std::mem::take(&mut content.undo);
        if content.checkpoint_commits == 0 {
            return Ok(Checkpoint::durable());
        }
        let store = Arc::downgrade(&self.content);
        let checkpoint = Checkpoint::finished_by(move || {
            if let Some(content) = store.upgrade() {
                content.lock().end_checkpoint();
            }
        });
        let commits_left = content.checkpoint_commits;
        content.writing = Some(Writing { checkpoint: checkpoint.clone(), undo, commits_left });
        Ok(checkpoint)
    }

    fn pending_bytes(&self) -> u64 {
        0
    }

    fn replace(&mut self, entries: &mut Entries<'_>) -> Result<(), StorageError> {
        if mutants::active(Mutant::SplitInstall) {
            let mut content = self.content.lock();
            content.end_checkpoint();
            (content.values, content.undo) = (Values::new(), Changes::new());
            for entry in entries {
                let (key, value) = entry?;
                content.values.insert(key.into(), value.into());
            }
            return Ok(());
        }
        let shared = |(key, value): (Vec<u8>, Vec<u8>)| (key.into(), value.into());
        let values = entries.map(|entry| entry.map(shared)).collect::<Result<_, _>>()?;
        let mut content = self.content.lock();
        content.end_checkpoint();
        (content.values, content.undo) = (values, Changes::new());
        Ok(())
    }
}

struct MemoryView(Values);

impl View for MemoryView {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        Ok(self.0.get(key).map(|value| value.to_vec()))
    }

    fn range(&self, keys: KeyRange<'_>, visit: &mut Visitor<'_>) -> Result<(), StateError> {
        part(&self.0, keys).find(|(key, value)| visit(key, value).is_break());
        Ok(())
    }

    fn scan(&self, visit: &mut Visit<'_>) -> Result<(), StorageError> {
        self.0.iter().try_for_each(|(key, value)| visit(key, value))
    }
}

struct MemoryTransaction {
    content: Arc<Mutex<Content>>,
    changes: Changes,
}

impl State for MemoryTransaction {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        match self.changes.get(key) {
            Some(value) => Ok(owned(value)),
            None => Ok(self.content.lock().get(key)),
        }
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StateError> {
        self.changes.insert(key.into(), Some(value.into()));
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StateError> {
        self.changes.insert(key.into(), None);
        Ok(())
    }

    fn scan(&self, keys: KeyRange<'_>, visit: &mut Visitor<'_>) -> Result<(), StateError> {
        let content = self.content.lock();
        let committed = |visit: &mut Visitor<'_>| {
            content.scan(keys, visit);
            Ok(())
        };
        scan_changed(part(&self.changes, keys), committed, visit)
    }
}

impl Transaction for MemoryTransaction {
    fn commit(self: Box<Self>, durable: bool) -> Result<(), StateError> {
        let mut content = self.content.lock();
        for (key, value) in self.changes {
            let before = content.set(Arc::clone(&key), value);
            content.undo.entry(key).or_insert(before);
        }
        if durable {
            content.end_checkpoint();
            content.undo.clear();
        } else {
            content.go_on_writing();
        }
        Ok(())
    }
}
