//! What a service and its reader see of a state: their own keys, as they left them, and no more.

use super::{NEVER, block, named};
use crate::store::{MemoryStore, Store};
use crate::{Executor, StorageError};
use bytes::Bytes;
use quorate_crypto::{Digest, hash};
use quorate_types::Height;
use quorate_types::service::{
    BlockContext, KeyRange, Operation, Outcome, Reader, Service, State, StateError,
};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Begins with three keys; each height deletes the first that is left.
#[derive(Clone, Copy, Debug)]
struct Countdown;

const REFUSED: &str = "a query cannot write";

/// Keys of the service from this one on, joined.
fn keys(state: &dyn State, from: &[u8]) -> Result<Vec<u8>, StateError> {
    let mut keys = Vec::new();
    state.scan(KeyRange { from, to: None }, &mut |key, value| {
        assert_eq!(value, b"left");
        keys.extend_from_slice(key);
        ControlFlow::Continue(())
    })?;
    Ok(keys)
}

impl Service for Countdown {
    fn name(&self) -> &'static str {
        "countdown"
    }

    fn genesis(&mut self, state: &mut dyn State) -> Result<(), StateError> {
        [b"a", b"b", b"c"].iter().try_for_each(|key| state.put(*key, b"left"))
    }

    fn admit(&self, _: Operation<'_>) -> Result<(), String> {
        Ok(())
    }

    fn reader(&self) -> Option<Arc<dyn Reader>> {
        Some(Arc::new(*self))
    }

    fn execute(
        &mut self,
        state: &mut dyn State,
        _: BlockContext,
        operations: &[Operation<'_>],
    ) -> Result<Vec<Outcome>, StateError> {
        let first = keys(state, &[])?.first().copied();
        first.map_or(Ok(()), |first| state.delete(&[first]))?;
        Ok(operations.iter().map(|_| Outcome::Applied(Bytes::new())).collect())
    }

    fn root(&self, state: &dyn State) -> Result<Digest, StateError> {
        Ok(hash(&keys(state, &[])?))
    }

    fn query(
        &self,
        state: &dyn State,
        query: &[u8],
    ) -> Result<Result<quorate_types::service::Proven, String>, StateError> {
        let answer = Bytes::from(keys(state, query)?);
        Ok(Ok(quorate_types::service::Proven { answer, proof: Bytes::new() }))
    }
}

impl Reader for Countdown {
    fn query(&self, state: &dyn State, query: &[u8]) -> Result<Result<Bytes, String>, StateError> {
        match state.get(query)? {
            Some(value) => Ok(Ok([keys(state, query)?, value].concat().into())),
            None => Ok(Err("it is gone".to_owned())),
        }
    }
}

fn open(store: &MemoryStore) -> Executor {
    Executor::open(Box::new(store.clone()), Box::new(Countdown), NEVER.clone()).expect("opened").0
}

#[test]
fn a_service_begins_with_what_it_fills_in_durably() {
    let store = MemoryStore::new();
    drop(open(&store));
    store.crash();
    let executor = open(&store);
    assert_eq!(executor.query(|state| keys(state, &[])), Ok(b"abc".to_vec()));
    assert!(executor.answer(b"").expect("read").is_none(), "nothing was executed");
}

#[test]
fn a_service_reads_and_deletes_its_own_keys_as_it_executes() {
    let store = MemoryStore::new();
    let mut executor = open(&store);
    for (height, left) in [(1, &b"bc"[..]), (2, b"c"), (3, b""), (4, b"")] {
        let executed = executor.execute(&block(height, &[named(1, height - 1)])).expect("works");
        assert_eq!(executed.header.state, hash(left), "at {height}");
        let result = executor.answer(b"b").expect("read").expect("executed");
        let from_b = left.iter().copied().filter(|key| *key >= b'b').collect::<Vec<u8>>();
        assert_eq!(result.answer.expect("answered").answer, from_b);
        assert_eq!(result.header, executed.header);
    }
    // There is more in the store than the service sees.
    let mut all = 0;
    store
        .scan(KeyRange::ALL, &mut |_, _| {
            all += 1;
            ControlFlow::Continue(())
        })
        .expect("read");
    assert!(all > 4, "{all}");
}

/// A view is of the height that it was made at.
#[test]
fn a_reader_answers_from_a_view() {
    let mut executor = open(&MemoryStore::new());
    let reader = executor.reader().expect("it has one");
    let before = executor.view().expect("made");
    assert_eq!(before.height(), Height(0));
    for height in 1..=2 {
        executor.execute(&block(height, &[named(1, height - 1)])).expect("works");
    }
    let after = executor.view().expect("made");
    assert_eq!(after.height(), Height(2));
    let expected = |text: &'static str| Ok(Ok(Bytes::from_static(text.as_bytes())));
    assert_eq!(before.query(reader.as_ref(), b"b"), expected("bcleft"));
    assert_eq!(after.query(reader.as_ref(), b"c"), expected("cleft"));
    assert_eq!(after.query(reader.as_ref(), b"b"), Ok(Err("it is gone".to_owned())));
}

#[test]
fn what_is_read_cannot_be_written() {
    let mut executor = open(&MemoryStore::new());
    let refused = Err(StateError(REFUSED.to_owned()));
    let mut committed = crate::executor::Committed { store: executor.store.as_ref() };
    assert_eq!(State::put(&mut committed, b"a", b"other"), refused);
    assert_eq!(State::delete(&mut committed, b"a"), refused);
    let view = executor.view().expect("made");
    let mut service = view.service();
    assert_eq!(State::put(&mut service, b"a", b"other"), refused);
    assert_eq!(State::delete(&mut service, b"a"), refused);
    assert_eq!(executor.query(|state| state.get(b"a")), Ok(Some(b"left".to_vec())));
    let failed: Result<(), StorageError> =
        executor.query(|_| Err(StateError("the service says so".into())));
    assert_eq!(failed, Err(StorageError::State(StateError("the service says so".into()))));
}

#[test]
fn a_view_says_of_which_height_it_is() {
    let mut executor = open(&MemoryStore::new());
    let shown = format!("{:?}", executor.view().expect("made"));
    assert_eq!(shown, format!("StateView(height {})", Height(0)));
}
