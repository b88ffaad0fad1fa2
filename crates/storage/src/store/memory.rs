//! A store in memory that can lose its latest commits.

use super::{Changes, Entries, Store, Transaction, View, Visit, part, scan_changed};
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

#[derive(Clone, Debug, Default)]
struct Content {
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Values before the changes since the last durable commit, by key.
    undo: Changes,
}

impl MemoryStore {
    /// A store without keys.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Another store in the same state, what is not durable included.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self { content: Arc::new(Mutex::new(self.content.lock().clone())) }
    }

    /// The power fails: back to the last durable commit.
    pub fn crash(&self) {
        let mut content = self.content.lock();
        let undo = std::mem::take(&mut content.undo);
        for (key, before) in undo {
            content.set(key, before);
        }
    }
}

impl Content {
    fn scan(&self, keys: KeyRange<'_>, visit: &mut Visitor<'_>) {
        part(&self.values, keys).find(|(key, value)| visit(key, value).is_break());
    }

    /// Sets or removes; what was there before.
    fn set(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) -> Option<Vec<u8>> {
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
        Ok(self.content.lock().values.get(key).cloned())
    }

    fn scan(&self, keys: KeyRange<'_>, visit: &mut Visitor<'_>) -> Result<(), StateError> {
        self.content.lock().scan(keys, visit);
        Ok(())
    }

    fn view(&self) -> Result<Box<dyn View>, StateError> {
        Ok(Box::new(MemoryView(self.content.lock().values.clone())))
    }

    fn replace(&mut self, entries: &mut Entries<'_>) -> Result<(), StorageError> {
        if mutants::active(Mutant::SplitInstall) {
            let mut content = self.content.lock();
            *content = Content::default();
            for entry in entries {
                let (key, value) = entry?;
                content.values.insert(key, value);
            }
            return Ok(());
        }
        let values = entries.collect::<Result<_, _>>()?;
        *self.content.lock() = Content { values, undo: Changes::new() };
        Ok(())
    }
}

struct MemoryView(BTreeMap<Vec<u8>, Vec<u8>>);

impl View for MemoryView {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        Ok(self.0.get(key).cloned())
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
            Some(value) => Ok(value.clone()),
            None => Ok(self.content.lock().values.get(key).cloned()),
        }
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StateError> {
        self.changes.insert(key.to_vec(), Some(value.to_vec()));
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StateError> {
        self.changes.insert(key.to_vec(), None);
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
            let before = content.set(key.clone(), value);
            content.undo.entry(key).or_insert(before);
        }
        if durable {
            content.undo.clear();
        }
        Ok(())
    }
}
