//! Past states that an executor has a history kept of.

use super::super::PENDING_BYTES_MAX;
use super::{NEVER, block, request};
use crate::Executor;
use crate::history::{Before, MemoryHistory, StateHistory};
use crate::store::{MemoryStore, Store};
use bytes::Bytes;
use quorate_crypto::Digest;
use quorate_types::Height;
use quorate_types::service::{
    BlockContext, IndexEntries, Operation, Outcome, Reader, Remembered, Service, State, StateError,
};
use std::sync::Arc;

/// Sets the key that an operation begins with to the rest of it; removes it where there is none.
/// Nobody wants former values of `#`.
#[derive(Clone, Copy, Debug)]
struct Letters;

impl Service for Letters {
    fn name(&self) -> &'static str {
        "letters"
    }

    fn admit(&self, _: Operation<'_>) -> Result<(), String> {
        Ok(())
    }

    fn reader(&self) -> Option<Arc<dyn Reader>> {
        Some(Arc::new(*self))
    }

    fn remembered(&self) -> Option<Remembered> {
        Some(|key| key != b"#")
    }

    fn execute(
        &mut self,
        state: &mut dyn State,
        _: BlockContext,
        operations: &[Operation<'_>],
    ) -> Result<Vec<Outcome>, StateError> {
        for operation in operations {
            match operation.bytes.split_at(1) {
                (key, []) => state.delete(key)?,
                (key, value) => state.put(key, value)?,
            }
        }
        Ok(operations.iter().map(|_| Outcome::Applied(Bytes::new())).collect())
    }

    fn root(&self, _: &dyn State) -> Result<Digest, StateError> {
        Ok(Digest::ZERO)
    }
}

impl Reader for Letters {
    fn query(&self, state: &dyn State, key: &[u8]) -> Result<Result<Bytes, String>, StateError> {
        Ok(state.get(key)?.map(Bytes::from).ok_or_else(|| "absent".to_owned()))
    }
}

const BLOCKS: [&[&str]; 6] = [
    &["a1", "b1", "#1"],
    &["a2", "a3", "#2"],
    &["d"],
    &["a", "b2"],
    &["a", "b"],
    &["a4", "c1", "#3"],
];

fn open(store: &MemoryStore, history: &Arc<MemoryHistory>) -> Executor {
    let store: Box<dyn Store> = Box::new(store.clone());
    let mut executor = Executor::open(store, Box::new(Letters), NEVER).expect("opened").0;
    executor.keep_history(Arc::clone(history) as Arc<dyn StateHistory>);
    executor
}

fn execute(executor: &mut Executor, height: usize) {
    let request = request(1, height as u64, BLOCKS[height - 1]);
    executor.execute(&block(height as u64, &[request])).expect("works");
}

/// What a view of each height shows is what its past shows later, of the keys that are remembered.
#[test]
fn a_past_state_is_the_view_that_was() {
    let history = Arc::new(MemoryHistory::default());
    let mut executor = open(&MemoryStore::new(), &history);
    let mut views = vec![executor.view().expect("a view")];
    for height in 1..=BLOCKS.len() {
        execute(&mut executor, height);
        views.push(executor.view().expect("a view"));
    }
    for (height, then) in (0..).map(Height).zip(&views) {
        // Whichever view is newer.
        for now in &views[height.0 as usize..] {
            for key in ["a", "b", "c", "d"] {
                let past = now.query_past(&*history, height, &Letters, key.as_bytes());
                assert_eq!(past, then.query(&Letters, key.as_bytes()), "{key} at {height}");
            }
        }
    }
    let past = views[6].query_past(&*history, Height(1), &Letters, b"#");
    assert_eq!(past, Ok(Ok(Bytes::from("3"))), "it is not remembered");
}

/// The disk of a history is free for the next executor's as soon as this one is gone.
#[test]
fn a_history_is_closed_with_its_executor() {
    let history = Arc::new(MemoryHistory::default());
    let mut executor = open(&MemoryStore::new(), &history);
    execute(&mut executor, 1);
    assert_eq!(history.oldest(), Some(Height(0)));
    assert!(executor.history().is_some());
    drop(executor);
    assert_eq!(history.oldest(), None);
}

/// What a history holds in memory makes a checkpoint due, as what the store holds does.
#[test]
fn a_checkpoint_is_due_when_a_history_holds_much() {
    let history = Arc::new(MemoryHistory::default());
    let mut executor = open(&MemoryStore::new(), &history);
    execute(&mut executor, 1);
    assert_eq!(executor.durable(), Height(0));
    let much = Some(vec![0; PENDING_BYTES_MAX as usize]);
    history.record(Height(2), Before::from([(vec![0], much)]), IndexEntries::new());
    execute(&mut executor, 2);
    assert_eq!(executor.durable(), Height(2));
    assert_eq!(history.pending_bytes(), 0);
}
