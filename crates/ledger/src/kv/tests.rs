//! The service against a model, and its answers against their proofs.

use super::*;
use crate::map::expected_root;
use proptest::prelude::*;
use quorate_crypto::{IdentitySecret, hash};
use quorate_storage::{
    DiskStore, Executor, ExecutorConfig, MemoryDisk, MemoryStore, Owner, Snapshots, Store,
};
use quorate_types::machine::{Block, Install, ReadItem, StagedChunk};
use quorate_types::{Body, ClientId, Height, NetworkId, Payload, ReplicaId, Request};
use std::collections::BTreeMap;
use std::sync::Arc;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;
type Outcomes = Vec<Result<Output, OutcomeError>>;

#[derive(Default)]
struct Replica {
    store: MemoryStore,
    kv: Kv,
}

impl Replica {
    fn execute(&mut self, operations: &[Operation]) -> Outcomes {
        let encoded: Vec<Bytes> = operations.iter().map(Operation::encode).collect();
        let client = ClientId(IdentitySecret::from_seed([1; 32]).public());
        let operations: Vec<service::Operation<'_>> =
            encoded.iter().map(|bytes| service::Operation { client, bytes }).collect();
        let context = BlockContext { height: Height(1), proposed_at_ms: 0 };
        let mut state = self.store.begin().unwrap();
        let outcomes = self.kv.execute(&mut *state, context, &operations).unwrap();
        state.commit(true).unwrap();
        outcomes.iter().map(Output::read).collect()
    }

    fn root(&mut self) -> Digest {
        self.kv.root(&*self.store.begin().unwrap()).unwrap()
    }

    fn reopened_root(&mut self) -> Digest {
        let mut kv = Kv::default();
        let state = self.store.begin().unwrap();
        kv.open(&*state).unwrap();
        kv.root(&*state).unwrap()
    }

    fn ask(&mut self, query: &Query) -> Proven {
        self.kv.query(&*self.store.begin().unwrap(), &query.encode()).unwrap().unwrap()
    }
}

/// Expected output of an operation, by a plain model.
fn expect(model: &mut Model, operation: &Operation) -> Result<Output, OutcomeError> {
    match operation {
        Operation::Step(step) => Ok(Output::Step(expect_step(model, step))),
        Operation::Scan(scan) => Ok(Output::Page(expect_page(model, scan))),
        Operation::Batch(steps) => {
            let mut ahead = model.clone();
            let mut outputs = Vec::new();
            for (step, output) in (0..).zip(steps) {
                match expect_step(&mut ahead, output) {
                    StepOutput::NotSwapped { actual } => {
                        return Err(OutcomeError::Refused(Refusal::NotSwapped { step, actual }));
                    }
                    output => outputs.push(output),
                }
            }
            *model = ahead;
            Ok(Output::Batch(outputs))
        }
    }
}

fn expect_step(model: &mut Model, step: &Step) -> StepOutput {
    let before = model.get(&step.key()[..]).cloned().map(Bytes::from);
    let set = |model: &mut Model, key: &Bytes, value: Option<&Bytes>| match value {
        Some(value) => model.insert(key.to_vec(), value.to_vec()),
        None => model.remove(&key[..]),
    };
    match step {
        Step::Get { .. } => StepOutput::Value(before),
        Step::Put { key, value } => {
            StepOutput::Done { replaced: set(model, key, Some(value)).is_some() }
        }
        Step::Delete { key } => StepOutput::Done { replaced: set(model, key, None).is_some() },
        Step::CompareAndSwap { expected, .. } if before != *expected => {
            StepOutput::NotSwapped { actual: before }
        }
        Step::CompareAndSwap { key, new, .. } => {
            set(model, key, new.as_ref());
            StepOutput::Swapped
        }
    }
}

fn expect_page(model: &Model, scan: &Scan) -> Page {
    let all = model.iter().filter(|(key, _)| {
        key[..] >= scan.from[..] && scan.to.as_ref().is_none_or(|to| key[..] < to[..])
    });
    let mut entries: Vec<Entry> = all
        .map(|(key, value)| Entry { key: key.clone().into(), value: value.clone().into() })
        .collect();
    let more = entries.len() > scan.limit as usize;
    entries.truncate(scan.limit as usize);
    Page { entries, more }
}

fn keys() -> impl Strategy<Value = Bytes> {
    let bytes = prop::sample::select(vec![0, 1, b'a', 0x80, 0xff]);
    prop::collection::vec(bytes, 1..4).prop_map(Bytes::from)
}

fn values() -> impl Strategy<Value = Bytes> {
    prop::sample::select(vec!["", "1", "2"]).prop_map(Bytes::from)
}

fn steps() -> impl Strategy<Value = Step> {
    let swap = (keys(), prop::option::of(values()), prop::option::of(values()));
    prop_oneof![
        1 => keys().prop_map(Step::get),
        6 => (keys(), values()).prop_map(|(key, value)| Step::put(key, value)),
        2 => keys().prop_map(Step::delete),
        3 => swap.prop_map(|(key, expected, new)| Step::compare_and_swap(key, expected, new)),
    ]
}

fn scans() -> impl Strategy<Value = Scan> {
    let bounds = (keys(), prop::option::of(keys()), 1u32..12);
    bounds.prop_map(|(from, to, limit)| Scan { to: to.filter(|to| *to > from), from, limit })
}

fn operations() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => steps().prop_map(Operation::Step),
        1 => scans().prop_map(Operation::Scan),
        2 => prop::collection::vec(steps(), 1..5).prop_map(Operation::Batch),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Results, root and proven answers are those of a map.
    #[test]
    fn the_service_is_a_map_with_a_root(
        blocks in prop::collection::vec(prop::collection::vec(operations(), 0..60), 1..6),
        asked in prop::collection::vec((keys(), scans()), 1..8),
    ) {
        let (mut replica, mut model) = (Replica::default(), Model::new());
        for block in &blocks {
            let expected: Outcomes =
                block.iter().map(|operation| expect(&mut model, operation)).collect();
            prop_assert_eq!(replica.execute(block), expected);
            prop_assert_eq!(replica.root(), expected_root(&model));
        }
        prop_assert_eq!(replica.reopened_root(), replica.root());
        let root = replica.root();
        for (key, scan) in asked {
            let value = model.get(&key[..]).cloned().map(Bytes::from);
            let get = Query::Get { key };
            let answer = verify_answer(root, &get, &replica.ask(&get));
            prop_assert_eq!(answer, Ok(Answer::Value(value)));
            let page = expect_page(&model, &scan);
            let scan = Query::Scan(scan);
            let answer = verify_answer(root, &scan, &replica.ask(&scan));
            prop_assert_eq!(answer, Ok(Answer::Page(page)));
        }
    }
}

/// ★ An answer's values are what the proof shows.
fn an_answer_is_what_its_proof_shows() {
    let mut replica = Replica::default();
    replica.execute(&[Operation::put("a", "1"), Operation::put("b", "2")]);
    let root = replica.root();
    let get = Query::Get { key: "a".into() };
    let scan = Query::Scan(Scan { from: Bytes::new(), to: None, limit: 9 });
    let entry =
        |key: &'static str, value: &'static str| Entry { key: key.into(), value: value.into() };
    let page = |entries: &[Entry], more| Answer::Page(Page { entries: entries.to_vec(), more });
    let lies = [
        (&get, Answer::Value(Some("2".into()))),
        (&get, Answer::Value(None)),
        (&get, page(&[entry("a", "1")], false)),
        (&scan, page(&[entry("a", "1"), entry("b", "1")], false)),
        (&scan, page(&[entry("a", "1"), entry("c", "2")], false)),
        (&scan, page(&[entry("a", "1")], false)),
        (&scan, page(&[entry("a", "1"), entry("b", "2")], true)),
        (&scan, Answer::Value(None)),
    ];
    for (query, lie) in lies {
        let proven = replica.ask(query);
        verify_answer(root, query, &proven).expect("the truth is believed");
        let lied = Proven { answer: encode(&lie), ..proven };
        assert_eq!(verify_answer(root, query, &lied), Err(ProofError::OtherAnswer), "{lie:?}");
    }
    let absent = Query::Get { key: "c".into() };
    let lied =
        Proven { answer: encode(&Answer::Value(Some(Bytes::new()))), ..replica.ask(&absent) };
    assert_eq!(verify_answer(root, &absent, &lied), Err(ProofError::OtherAnswer));
    let cut = Proven { answer: Bytes::new(), ..replica.ask(&get) };
    assert_eq!(verify_answer(root, &get, &cut), Err(ProofError::OtherAnswer));
}

/// ★ A batch takes effect whole or not at all.
fn a_refused_batch_leaves_nothing() {
    let mut replica = Replica::default();
    replica.execute(&[Operation::put("a", "1")]);
    let before = replica.root();
    let outcomes = replica.execute(&[Operation::batch([
        Step::put("a", "2"),
        Step::delete("a"),
        Step::put("b", "new"),
        Step::put("a", "3"),
        Step::compare_and_swap("a", Some("1".into()), None),
        Step::put("never", "done"),
    ])]);
    let refusal = Refusal::NotSwapped { step: 4, actual: Some("3".into()) };
    assert_eq!(outcomes, [Err(OutcomeError::Refused(refusal))]);
    assert_eq!(replica.root(), before);
    assert_eq!(replica.reopened_root(), before, "in the state as in memory");
}

#[test]
fn answers_and_batches_are_whole() {
    an_answer_is_what_its_proof_shows();
    a_refused_batch_leaves_nothing();
}

#[test]
fn every_rule_of_answers_and_batches_is_noticed() {
    use quorate_crypto::mutants::{Mutant, assert_noticed};
    assert_noticed(Mutant::KvTrustValues, an_answer_is_what_its_proof_shows);
    assert_noticed(Mutant::KvPartialBatch, a_refused_batch_leaves_nothing);
}

/// A block is one change of the tree: what is set and removed again in it leaves no trace.
#[test]
fn what_a_block_undoes_leaves_no_trace() {
    let mut replica = Replica::default();
    let empty = replica.root();
    replica.execute(&[Operation::put("a", "1"), Operation::delete("a")]);
    assert_eq!(replica.root(), empty);
    replica.execute(&[Operation::delete("never there")]);
    assert_eq!(replica.root(), empty);
}

#[test]
fn operations_have_limits() {
    let decode = |operation: Operation| Operation::decode(&operation.encode()).map(drop);
    let key = |bytes| Bytes::from(vec![7; bytes]);
    assert_eq!(decode(Operation::get(key(1_024))), Ok(()));
    assert_eq!(decode(Operation::get(key(1_025))), Err(FormError::KeyBytes(1_025)));
    assert_eq!(decode(Operation::delete(key(0))), Err(FormError::KeyBytes(0)));
    assert_eq!(decode(Operation::put("a", key(65_536))), Ok(()));
    let long = FormError::ValueBytes(65_537);
    assert_eq!(decode(Operation::put("a", key(65_537))), Err(long.clone()));
    for (expected, new) in [(Some(key(65_537)), None), (None, Some(key(65_537)))] {
        let swap = Operation::compare_and_swap("a", expected, new);
        assert_eq!(decode(swap), Err(long.clone()));
    }
    let batch = |steps| Operation::Batch(vec![Step::get("a"); steps]);
    assert_eq!(decode(batch(256)), Ok(()));
    assert_eq!(decode(batch(0)), Err(FormError::BatchSteps(0)));
    assert_eq!(decode(batch(257)), Err(FormError::BatchSteps(257)));
    assert_eq!(decode(Operation::batch([Step::get("")])), Err(FormError::KeyBytes(0)));
    let scan = |from, to, limit| decode(Operation::Scan(Scan { from, to, limit }));
    assert_eq!(scan(Bytes::new(), None, 1_000), Ok(()));
    assert_eq!(scan(Bytes::new(), None, 0), Err(FormError::ScanEntries(0)));
    assert_eq!(scan(Bytes::new(), None, 1_001), Err(FormError::ScanEntries(1_001)));
    assert_eq!(scan(key(1_025), None, 1), Err(FormError::BoundBytes(1_025)));
    assert_eq!(scan(key(1), Some(key(1_025)), 1), Err(FormError::BoundBytes(1_025)));
    assert_eq!(scan(key(1), Some(key(1)), 1), Err(FormError::ScanBackwards));
    let longer = [&Operation::get("a").encode()[..], &[0]].concat();
    assert_eq!(Operation::decode(&longer), Err(FormError::Undecodable));
}

#[test]
fn what_is_no_operation_is_not_admitted_and_changes_nothing() {
    let bytes = Operation::get("").encode();
    let client = ClientId(IdentitySecret::from_seed([1; 32]).public());
    let reason = "a key has 1 to 1024 bytes, this one 0".to_owned();
    let operation = service::Operation { client, bytes: &bytes };
    assert_eq!(Kv::default().admit(operation), Err(reason.clone()));
    let refused = OutcomeError::Refused(Refusal::NotAdmitted(reason.clone()));
    assert_eq!(Replica::default().execute(&[Operation::get("")]), [Err(refused.clone())]);
    // As the executor says it.
    assert_eq!(Output::read(&Outcome::Refused(Bytes::from(reason))), Err(refused));
    let mut replica = Replica::default();
    let state = replica.store.begin().unwrap();
    let query = Query::Get { key: Bytes::new() }.encode();
    let error = replica.kv.query(&*state, &query).unwrap().unwrap_err();
    assert_eq!(error, "a key has 1 to 1024 bytes, this one 0");
}

#[test]
fn results_are_bounded() {
    let mut replica = Replica::default();
    let value = Bytes::from(vec![7; VALUE_BYTES_MAX]);
    let puts: Vec<Operation> =
        ["a", "b", "c", "d", "e"].map(|key| Operation::put(key, value.clone())).to_vec();
    replica.execute(&puts);
    let gets = |count| Operation::Batch(vec![Step::get("a"); count]);
    let outcomes = replica.execute(&[gets(4), gets(5)]);
    assert!(matches!(&outcomes[0], Ok(Output::Batch(outputs)) if outputs.len() == 4));
    assert_eq!(outcomes[1], Err(OutcomeError::Refused(Refusal::ResultTooLong)));
    let scan = Scan { from: Bytes::new(), to: None, limit: 9 };
    let query = Query::Scan(scan.clone());
    let root = replica.root();
    let answer = verify_answer(root, &query, &replica.ask(&query)).unwrap();
    let Answer::Page(page) = answer else { panic!("another answer") };
    assert!(page.more && page.entries.len() == 3, "a fourth would be a few bytes too many");
    assert_eq!(replica.execute(&[Operation::Scan(scan)]), [Ok(Output::Page(page))]);
}

/// Encodings are for ever.
#[test]
fn operations_and_results_are_these_bytes() {
    let bytes = |content: Bytes| content.to_vec();
    let swap = Operation::compare_and_swap("k", None, Some("v".into()));
    assert_eq!(bytes(swap.encode()), b"\0\x03\x01\0\0\0k\0\x01\x01\0\0\0v");
    let scan = Operation::Scan(Scan { from: "k".into(), to: None, limit: 2 });
    assert_eq!(bytes(scan.encode()), b"\x01\x01\0\0\0k\0\x02\0\0\0");
    let batch = Operation::batch([Step::get("k"), Step::delete("k")]);
    assert_eq!(bytes(batch.encode()), b"\x02\x02\0\0\0\0\x01\0\0\0k\x02\x01\0\0\0k");
    let output = Output::Step(StepOutput::Done { replaced: true });
    assert_eq!(output.outcome(), Outcome::Applied(Bytes::from_static(b"\0\x01\x01")));
    let query = Query::Get { key: "k".into() };
    assert_eq!(bytes(query.encode()), b"\0\x01\0\0\0k");
}

fn executor(store: impl Store + 'static) -> Executor {
    let config = ExecutorConfig::default();
    Executor::open(Box::new(store), Box::new(Kv::default()), config).unwrap().0
}

/// Height `n`: puts many keys, and removes some of the heights before.
fn block(height: u64) -> Block {
    let key = |height: u64, n: u64| Bytes::copy_from_slice(&hash(&[height as u8, n as u8]).0[..4]);
    let operations: Vec<Bytes> = (0..40)
        .map(|n| Operation::put(key(height, n), format!("{height}")))
        .chain((0..10).map(|n| Operation::delete(key(height - 1, 3 * n))))
        .map(|operation| operation.encode())
        .collect();
    let client = IdentitySecret::from_seed([7; 32]);
    let request = Request::sign(&client, NetworkId::default(), height - 1, &operations).unwrap();
    let body = Arc::new(Body::seal(ReplicaId(0), height, &[request]));
    Block {
        payload: Payload::new(Height(height), height, vec![body.reference]),
        bodies: vec![body],
        decided: Bytes::from("decided"),
    }
}

fn roots(executor: &mut Executor, heights: std::ops::RangeInclusive<u64>) -> Vec<Digest> {
    heights.map(|height| executor.execute(&block(height)).unwrap().header.state).collect()
}

#[test]
fn memory_disk_and_a_reopened_disk_come_to_the_same_roots() {
    let expected = roots(&mut executor(MemoryStore::new()), 1..=12);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    let mut on_disk = executor(DiskStore::open(&path, &Owner::nobody()).unwrap());
    assert_eq!(roots(&mut on_disk, 1..=6), expected[..6]);
    on_disk.make_durable().unwrap();
    drop(on_disk);
    let mut on_disk = executor(DiskStore::open(&path, &Owner::nobody()).unwrap());
    assert_eq!(roots(&mut on_disk, 7..=12), expected[6..]);
}

#[test]
fn whoever_installs_a_snapshot_goes_on_like_those_who_replayed() {
    let mut donor = executor(MemoryStore::new());
    roots(&mut donor, 1..=8);
    let served = Snapshots::open(Box::new(MemoryDisk::new()), &Owner::nobody()).unwrap();
    let manifest = donor.snapshot().unwrap().write(&served).unwrap();

    let mut follower = executor(MemoryStore::new());
    roots(&mut follower, 1..=2);
    let staged = Snapshots::open(Box::new(MemoryDisk::new()), &Owner::nobody()).unwrap();
    for index in (0..).take(manifest.chunks.len()) {
        let item = ReadItem::Chunk(manifest.digest(), index);
        let bytes = served.read(&item).unwrap().unwrap();
        let hash = manifest.chunks[index as usize];
        staged.stage(&StagedChunk { hash, bytes }).unwrap();
    }
    let install = Install { manifest: manifest.clone(), decided: Bytes::from("decided") };
    follower.install(&install, &staged).unwrap();
    assert_eq!(roots(&mut follower, 9..=12), roots(&mut donor, 9..=12));

    let query = Query::Scan(Scan { from: Bytes::new(), to: None, limit: 50 });
    let asked = follower.answer(&query.encode()).unwrap().unwrap();
    verify_answer(asked.header.state, &query, &asked.answer.unwrap()).unwrap();
}

/// ★ The root is of the values themselves, though their hashes lie beside them.
fn check_values_are_read_anew() {
    let mut replica = Replica::default();
    replica.execute(&[Operation::put("colour", "green"), Operation::put("taste", "sour")]);
    let mut state = replica.store.begin().unwrap();
    assert!(replica.kv.is_whole(&*state).unwrap());
    let mut entry = state.get(b"kcolour").unwrap().unwrap();
    *entry.last_mut().unwrap() ^= 1;
    state.put(b"kcolour", &entry).unwrap();
    let mut again = Kv::default();
    again.open(&*state).unwrap();
    assert_eq!(again.root(&*state).unwrap(), replica.kv.root(&*state).unwrap());
    assert!(!again.is_whole(&*state).unwrap(), "the root is of another value");
}

#[test]
fn values_are_read_anew() {
    check_values_are_read_anew();
}

#[test]
fn a_value_that_nobody_reads_is_noticed() {
    use quorate_crypto::mutants::{Mutant, assert_noticed};
    assert_noticed(Mutant::StateValueUnchecked, check_values_are_read_anew);
}
