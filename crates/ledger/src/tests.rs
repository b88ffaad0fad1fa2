use super::{NAMES, Noop, OrderedLog, by_name};
use bytes::Bytes;
use quorate_crypto::{Digest, IdentitySecret};
use quorate_storage::{MemoryStore, Store};
use quorate_types::service::{
    BlockContext, KeyRange, Operation, Outcome, Service, State, StateError, Visitor,
};
use quorate_types::{ClientId, Height};
use std::cell::Cell;

fn client() -> ClientId {
    ClientId(IdentitySecret::from_seed([1; 32]).public())
}

fn execute(
    service: &mut dyn Service,
    state: &mut dyn State,
    operations: &[&'static str],
) -> Vec<Outcome> {
    let bytes: Vec<Bytes> = operations.iter().copied().map(Bytes::from).collect();
    let operations: Vec<Operation<'_>> =
        bytes.iter().map(|bytes| Operation { client: client(), bytes }).collect();
    let block = BlockContext { height: Height(1), proposed_at_ms: 0 };
    service.execute(state, block, &operations).expect("works")
}

fn position(position: u64) -> Outcome {
    Outcome::Applied(Bytes::copy_from_slice(&position.to_le_bytes()))
}

#[test]
fn every_name_names_its_service() {
    for name in NAMES {
        assert_eq!(by_name(name).expect("known").name(), name);
    }
    assert!(by_name("").is_none());
}

#[test]
fn noop_applies_everything_and_keeps_nothing() {
    let mut store = MemoryStore::new();
    let mut transaction = store.begin().expect("begun");
    let before = Noop.root(&*transaction);
    let outcomes = execute(&mut Noop, &mut *transaction, &["", "anything"]);
    assert_eq!(outcomes, [Outcome::Applied(Bytes::new()), Outcome::Applied(Bytes::new())]);
    assert_eq!(Noop.root(&*transaction), before);
    assert_eq!(Noop.admit(Operation { client: client(), bytes: &Bytes::new() }), Ok(()));
}

#[test]
fn positions_go_on_over_blocks_and_the_head_depends_on_the_order() {
    let root_after = |blocks: &[&[&'static str]]| {
        let mut store = MemoryStore::new();
        let mut transaction = store.begin().expect("begun");
        let outcomes: Vec<Outcome> = blocks
            .iter()
            .flat_map(|block| execute(&mut OrderedLog, &mut *transaction, block))
            .collect();
        let expected: Vec<Outcome> = (0..).zip(&outcomes).map(|(n, _)| position(n)).collect();
        assert_eq!(outcomes, expected);
        assert_eq!(OrderedLog::length(&*transaction), Ok(outcomes.len() as u64));
        OrderedLog.root(&*transaction).expect("read")
    };
    let root = root_after(&[&["a", "b"], &[], &["c"]]);
    assert_eq!(root_after(&[&["a", "b"], &["c"]]), root, "an empty block changes nothing");
    assert_ne!(root_after(&[&["a"], &["b", "c"]]), root, "it is a chain over the blocks");
    assert_ne!(root_after(&[&["b", "a", "c"]]), root);
    assert_ne!(root_after(&[&["a", "b"]]), root);
    assert_eq!(
        root.to_hex(),
        "f536e121c2da6c1007da18fb4bb2e8f4318ef253e955bbfe07e64629bc5aea98",
        "the root of a and b, then c"
    );
}

#[test]
fn what_is_too_short_or_too_long_is_not_admitted() {
    let admit = |bytes: usize| {
        let bytes = Bytes::from(vec![7; bytes]);
        OrderedLog.admit(Operation { client: client(), bytes: &bytes })
    };
    assert_eq!(admit(0), Err("an operation carries at least one byte".into()));
    assert_eq!(admit(1), Ok(()));
    assert_eq!(admit(65_536), Ok(()));
    assert_eq!(
        admit(65_537),
        Err("an operation carries at most 65536 bytes, this one 65537".into())
    );
}

/// Counts what a service asks of its state.
#[derive(Default)]
struct Counted {
    value: Option<Vec<u8>>,
    reads: Cell<u32>,
    writes: u32,
}

impl State for Counted {
    fn get(&self, _: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        self.reads.set(self.reads.get() + 1);
        Ok(self.value.clone())
    }

    fn put(&mut self, _: &[u8], value: &[u8]) -> Result<(), StateError> {
        self.writes += 1;
        self.value = Some(value.to_vec());
        Ok(())
    }

    fn delete(&mut self, _: &[u8]) -> Result<(), StateError> {
        Err(StateError("never asked".into()))
    }

    fn scan(&self, _: KeyRange<'_>, _: &mut Visitor<'_>) -> Result<(), StateError> {
        Err(StateError("never asked".into()))
    }
}

#[test]
fn a_block_costs_one_read_and_one_write() {
    let mut state = Counted::default();
    execute(&mut OrderedLog, &mut state, &["a"; 100]);
    assert_eq!((state.reads.get(), state.writes), (1, 1));
    execute(&mut OrderedLog, &mut state, &[]);
    assert_eq!((state.reads.get(), state.writes), (1, 1));
}

#[test]
fn a_damaged_state_is_an_error() {
    let state = Counted { value: Some(vec![0; 39]), ..Counted::default() };
    let error = OrderedLog.root(&state).expect_err("noticed");
    assert_eq!(error.0, "the ordered log's head does not decode");
    assert_eq!(OrderedLog::head(&Counted::default()), Ok(Digest::ZERO));
}
