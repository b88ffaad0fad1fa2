//! Exactly once, whatever order requests come in and wherever the power fails.

mod checkpoints;
mod reading;
mod remembering;

use super::{Executor, ExecutorConfig, Session};
use crate::store::{
    Beforehand, Checkpoint, DiskStore, Entries, MemoryStore, Store, Transaction, View,
};
use crate::{Owner, StorageError};
use bytes::Bytes;
use parking_lot::Mutex;
use proptest::prelude::*;
use quorate_crypto::{Digest, IdentitySecret, hash, merkle};
use quorate_types::executed::Completion;
use quorate_types::machine::{Block, Executed, ExecutedUpTo};
use quorate_types::request::Answer;
use quorate_types::service::{
    BlockContext, KeyRange, Operation, Outcome, Service, State, StateError, Visitor,
};
use quorate_types::{Body, Height, NetworkId, Payload, ReplicaId, Request, Results};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Counts how often it saw each operation: `*` is not admitted, `!` is refused, the rest is
/// counted.
struct Census;

impl Service for Census {
    fn name(&self) -> &'static str {
        "census"
    }

    fn admit(&self, operation: Operation<'_>) -> Result<(), String> {
        if operation.bytes.starts_with(b"*") { Err("no stars".into()) } else { Ok(()) }
    }

    fn execute(
        &mut self,
        state: &mut dyn State,
        block: BlockContext,
        operations: &[Operation<'_>],
    ) -> Result<Vec<Outcome>, StateError> {
        state.put(b"", &block.proposed_at_ms.to_le_bytes())?;
        let mut outcomes = Vec::new();
        for operation in operations {
            assert!(!operation.bytes.starts_with(b"*"), "not admitted");
            if operation.bytes.starts_with(b"!") {
                outcomes.push(Outcome::Refused(Bytes::from("shouted")));
                continue;
            }
            let count = state.get(operation.bytes)?.map_or(0, |count| count[0]) + 1;
            state.put(operation.bytes, &[count])?;
            let root = state.get(b"root")?.unwrap_or_default();
            state.put(b"root", &hash(&[&root[..], operation.bytes].concat()).0)?;
            outcomes.push(Outcome::Applied(Bytes::from(vec![count])));
        }
        Ok(outcomes)
    }

    fn root(&self, state: &dyn State) -> Result<Digest, StateError> {
        Ok(hash(&state.get(b"root")?.unwrap_or_default()))
    }
}

const OFTEN: ExecutorConfig = ExecutorConfig { durable_every: 1, durable_bytes: u64::MAX };
pub(super) const NEVER: ExecutorConfig =
    ExecutorConfig { durable_every: u64::MAX, durable_bytes: u64::MAX };

pub(super) fn open(store: &MemoryStore, config: &ExecutorConfig) -> Executor {
    open_over(Box::new(store.clone()), config)
}

fn open_over(store: Box<dyn Store>, config: &ExecutorConfig) -> Executor {
    Executor::open(store, Box::new(Census), config.clone()).expect("opened").0
}

fn request(client: u8, sequence: u64, operations: &[&'static str]) -> Request {
    let secret = IdentitySecret::from_seed([client; 32]);
    let operations: Vec<Bytes> = operations.iter().copied().map(Bytes::from).collect();
    Request::sign(&secret, NetworkId::default(), sequence, &operations).expect("within limits")
}

/// A request whose one operation is unlike any other's.
pub(super) fn named(client: u8, sequence: u64) -> Request {
    let secret = IdentitySecret::from_seed([client; 32]);
    let operation = Bytes::from(format!("{client}#{sequence}"));
    Request::sign(&secret, NetworkId::default(), sequence, &[operation]).expect("within limits")
}

pub(super) fn block(height: u64, requests: &[Request]) -> Block {
    let bodies: Vec<Arc<Body>> = requests
        .chunks(2)
        .zip(0..)
        .map(|(requests, n)| Arc::new(Body::seal(ReplicaId(1), height * 100 + n, requests)))
        .collect();
    let references = bodies.iter().map(|body| body.reference).collect();
    let payload = Payload::new(Height(height), 1_000 + height, references);
    Block { payload, bodies, decided: Bytes::from(format!("decided {height}")) }
}

fn applied(count: u8) -> Outcome {
    Outcome::Applied(Bytes::from(vec![count]))
}

pub(super) fn sequences(executed: &Executed) -> Vec<u64> {
    executed.answers.iter().map(|answer| answer.sequence).collect()
}

fn count(executor: &Executor, operation: &str) -> u8 {
    executor
        .query(|state| state.get(operation.as_bytes()))
        .expect("read")
        .map_or(0, |count| count[0])
}

/// Heights 1 to 6 with what may happen: new and old clients, repeats, numbers out of order.
fn history() -> Vec<Block> {
    vec![
        block(1, &[named(1, 0), named(2, 0), named(1, 1)]),
        block(2, &[named(1, 3), named(1, 0), named(2, 1)]),
        block(3, &[]),
        block(4, &[named(1, 2), named(3, 5), request(2, 2, &["!", "*", "fine"])]),
        block(5, &[named(3, 5), named(1, 3), named(2, 0)]),
        block(6, &[named(3, 0), named(1, 4), named(1, 4)]),
    ]
}

fn execute_all(executor: &mut Executor, blocks: &[Block]) -> Vec<Executed> {
    blocks.iter().map(|block| executor.execute(block).expect("works")).collect()
}

type Check = Result<(), String>;

fn ensure(holds: bool, what: impl Into<String>) -> Check {
    if holds { Ok(()) } else { Err(what.into()) }
}

/// ★ A request takes effect once, also when it comes again after a restart.
fn a_request_takes_effect_once_across_restarts() -> Check {
    let store = MemoryStore::new();
    let mut first = open(&store, &OFTEN);
    let answers = first.execute(&block(1, &[named(1, 0), named(1, 1)])).expect("works").answers;
    drop(first);
    store.crash();
    let mut second = open(&store, &OFTEN);
    let again = second.execute(&block(2, &[named(1, 1), named(1, 0), named(1, 2)]));
    let again = again.expect("works");
    for sequence in 0..=2 {
        let times = count(&second, &format!("1#{sequence}"));
        ensure(times == 1, format!("request {sequence} took effect {times} times"))?;
    }
    ensure(again.operations == 1, "repeats do not count")?;
    for old in answers.into_iter().map(repeated) {
        ensure(again.answers.contains(&old), format!("{old:?} is answered differently"))?;
    }
    Ok(())
}

/// As it is answered again: with no place at the later height.
fn repeated(answer: Answer) -> Answer {
    Answer { index: None, ..answer }
}

/// ★ State, sessions and height are committed together: wherever the store fails, what it kept is
/// a whole number of heights, and replaying the rest gives the same roots.
fn a_height_is_committed_whole() -> Check {
    let expected = execute_all(&mut open(&MemoryStore::new(), &OFTEN), &history());
    for fails_at in 0..20 {
        let memory = MemoryStore::new();
        let failing = FailingStore { inner: memory.clone(), commits_left: Mutex::new(fails_at) };
        let mut executor = open_over(Box::new(failing), &OFTEN);
        for block in history() {
            if let Err(error) = executor.execute(&block) {
                let again = executor.make_durable().expect_err("final");
                ensure(again == error, "the failure is forgotten")?;
                break;
            }
        }
        drop(executor);
        memory.crash();
        let mut executor = open(&memory, &OFTEN);
        let height = executor.executed().map_or(0, |executed| executed.height().0);
        let done = usize::try_from(height).expect("small");
        let replayed = execute_all(&mut executor, &history()[done..]);
        ensure(
            replayed == expected[done..],
            format!("after a failure of commit {fails_at} the replay differs"),
        )?;
    }
    Ok(())
}

/// A store whose disk fails after some commits.
struct FailingStore {
    inner: MemoryStore,
    commits_left: Mutex<u64>,
}

struct FailingTransaction<'a> {
    inner: Box<dyn Transaction + 'a>,
    commits_left: &'a Mutex<u64>,
}

impl Store for FailingStore {
    fn begin(&mut self) -> Result<Box<dyn Transaction + '_>, StateError> {
        let inner = self.inner.begin()?;
        Ok(Box::new(FailingTransaction { inner, commits_left: &self.commits_left }))
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        self.inner.get(key)
    }

    fn scan(&self, keys: KeyRange<'_>, visit: &mut Visitor<'_>) -> Result<(), StateError> {
        self.inner.scan(keys, visit)
    }

    fn view(&mut self) -> Result<Box<dyn View>, StateError> {
        self.inner.view()
    }

    fn checkpoint_after(&mut self, first: Beforehand) -> Result<Checkpoint, StateError> {
        take_one(&self.commits_left)?;
        self.inner.checkpoint_after(first)
    }

    fn pending_bytes(&self) -> u64 {
        self.inner.pending_bytes()
    }

    fn replace(&mut self, entries: &mut Entries<'_>) -> Result<(), StorageError> {
        self.inner.replace(entries)
    }
}

impl State for FailingTransaction<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        self.inner.get(key)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StateError> {
        self.inner.put(key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StateError> {
        self.inner.delete(key)
    }

    fn scan(&self, keys: KeyRange<'_>, visit: &mut Visitor<'_>) -> Result<(), StateError> {
        self.inner.scan(keys, visit)
    }
}

impl Transaction for FailingTransaction<'_> {
    fn commit(self: Box<Self>, durable: bool) -> Result<(), StateError> {
        take_one(self.commits_left)?;
        self.inner.commit(durable)
    }
}

/// Lets one more write through, or fails.
fn take_one(left: &Mutex<u64>) -> Result<(), StateError> {
    let mut left = left.lock();
    *left = left.checked_sub(1).ok_or_else(|| StateError("injected".into()))?;
    Ok(())
}

#[test]
fn requests_take_effect_once_across_restarts() {
    a_request_takes_effect_once_across_restarts().unwrap();
}

#[test]
fn heights_are_committed_whole() {
    a_height_is_committed_whole().unwrap();
}

#[test]
fn a_request_executes_whole_and_in_order() {
    let mut executor = open(&MemoryStore::new(), &NEVER);
    let asked = request(1, 0, &["a", "b", "a"]);
    let executed = executor.execute(&block(1, std::slice::from_ref(&asked))).expect("works");
    let results = Results::new(vec![applied(1), applied(1), applied(2)]);
    let answer =
        Answer { client: asked.client, sequence: 0, height: Height(1), results, index: Some(0) };
    assert_eq!(executed.answers, [answer]);
    assert_eq!(executed.operations, 3);
    let time = executor.query(|state| state.get(b"")).expect("read");
    assert_eq!(time, Some(1_001_u64.to_le_bytes().to_vec()), "the block's time");
}

/// Each answer has its place in the tree whose root the header has, and what it says is the leaf
/// there.
#[test]
fn every_answer_has_its_place_under_the_root() {
    let mut executor = open(&MemoryStore::new(), &NEVER);
    let requests = [request(1, 0, &["a"]), request(2, 0, &["b", "!"]), request(1, 1, &["c"])];
    let executed = executor.execute(&block(1, &requests)).expect("works");
    let tree = merkle::Tree::new(&executed.leaves);
    assert_eq!(executed.header.requests, tree.root());
    for (answer, request) in executed.answers.iter().zip(&requests) {
        let index = answer.index.expect("it took effect here");
        let completion = Completion {
            client: answer.client,
            sequence: answer.sequence,
            request: request.digest(),
            results: answer.results.digest(),
        };
        let path = tree.path(index).expect("a leaf");
        assert!(path.leads(&completion.leaf(Height(1), index), &executed.header.requests));
    }
    assert_eq!(executor.executed().map(|executed| executed.header), Some(executed.header));
}

/// An invalid operation is a no-op with an error result; the others of its block take effect.
/// What fills a slot that nothing was decided for has no time of its own.
#[test]
fn time_does_not_go_backwards() {
    let store = MemoryStore::new();
    let mut executor = open(&store, &OFTEN);
    let timeless = Block { payload: Payload::new(Height(2), 0, Vec::new()), ..block(2, &[]) };
    let stamps: Vec<u64> = execute_all(&mut executor, &[block(1, &[]), timeless, block(3, &[])])
        .iter()
        .map(|executed| executed.header.proposed_at_ms)
        .collect();
    assert_eq!(stamps, [1_001, 1_001, 1_003]);
}

#[test]
fn an_invalid_operation_changes_nothing() {
    let mut executor = open(&MemoryStore::new(), &NEVER);
    let asked = request(1, 0, &["*inadmissible", "!invalid", "valid"]);
    let executed = executor.execute(&block(1, &[asked, named(2, 0)])).expect("works");
    let refused = |reason: &'static str| Outcome::Refused(Bytes::from(reason));
    let expected = [refused("no stars"), refused("shouted"), applied(1)];
    assert_eq!(executed.answers[0].results[..], expected);
    assert_eq!(executed.answers[1].results[..], [applied(1)]);
    assert_eq!(executed.operations, 4, "refused operations took their place in the order");
    let unmoved = open(&MemoryStore::new(), &NEVER).query(|state| Census.root(state));
    let mut only_invalid = open(&MemoryStore::new(), &NEVER);
    only_invalid.execute(&block(1, &[request(1, 0, &["*", "!"])])).expect("works");
    assert_eq!(only_invalid.query(|state| Census.root(state)), unmoved);
}

#[test]
fn a_repeat_is_answered_as_the_first_time() {
    let mut executor = open(&MemoryStore::new(), &NEVER);
    let first = executor.execute(&block(1, &[named(1, 0)])).expect("works");
    let again: Vec<Answer> = first.answers.into_iter().map(repeated).collect();
    // In the same block it is answered once.
    let executed = executor.execute(&block(2, &[named(1, 0), named(1, 0)])).expect("works");
    assert_eq!(executed.answers, again);
    assert_eq!(again[0].height, Height(1));
    assert_eq!(executed.operations, 0);
    assert_eq!(executed.header.requests, merkle::Tree::new(&[]).root(), "nothing took effect here");
    // Another request under the same number is a repeat too.
    let other = request(1, 0, &["something else"]);
    let executed = executor.execute(&block(3, &[other])).expect("works");
    assert_eq!(executed.answers, again);
    assert_eq!(count(&executor, "something else"), 0);
}

#[test]
fn requests_may_be_decided_out_of_order_within_the_window() {
    let mut executor = open(&MemoryStore::new(), &NEVER);
    let window = Session::WINDOW;
    let executed = executor.execute(&block(1, &[named(1, window - 1), named(1, 2)]));
    assert_eq!(sequences(&executed.expect("works")), [window - 1, 2]);
    // Beyond the window nothing happens and nothing is said; later the same bytes take effect.
    let early = named(1, window);
    let executed = executor.execute(&block(2, std::slice::from_ref(&early))).expect("works");
    assert_eq!((executed.answers, executed.operations), (Vec::new(), 0));
    let executed = executor.execute(&block(3, &[named(1, 0), early])).expect("works");
    assert_eq!(sequences(&executed), [0, window]);
    let session = executor.session(named(1, 0).client).expect("read");
    assert_eq!(session.lowest, 1);
    assert!(session.is_completed(2) && session.is_completed(window));
    assert!(!session.is_completed(1) && !session.is_completed(3));
}

#[test]
fn answers_are_kept_for_a_window() {
    let mut executor = open(&MemoryStore::new(), &NEVER);
    let window = Session::WINDOW;
    let all: Vec<Request> = (0..=window).map(|sequence| named(1, sequence)).collect();
    for (height, requests) in (1..).zip(all.chunks(13)) {
        executor.execute(&block(height, requests)).expect("works");
    }
    let height = executor.executed().expect("some").height().0;
    let executed = executor.execute(&block(height + 1, &all)).expect("works");
    let kept: Vec<u64> = (1..=window).collect();
    assert_eq!(sequences(&executed), kept, "the answer to request 0 is gone");
    assert_eq!(count(&executor, "1#0"), 1, "and it is not executed again");
}

#[test]
fn what_the_store_lost_is_replayed_to_the_same_roots() {
    let store = MemoryStore::new();
    let every_other = ExecutorConfig { durable_every: 4, ..NEVER };
    let mut executor = open(&store, &every_other);
    let first = execute_all(&mut executor, &history());
    let before = executor.executed().expect("some");
    assert_eq!(before.decided, Bytes::from("decided 6"));
    drop(executor);
    store.crash();
    let mut executor = open(&store, &every_other);
    assert_eq!(executor.executed().map(|executed| executed.height()), Some(Height(4)));
    assert_eq!(execute_all(&mut executor, &history()[4..]), first[4..]);
    assert_eq!(executor.executed(), Some(before.clone()));

    executor.make_durable().expect("works");
    drop(executor);
    store.crash();
    assert_eq!(open(&store, &every_other).executed(), Some(before));
}

#[test]
fn bytes_too_make_a_durable_commit_due() {
    let store = MemoryStore::new();
    let small = ExecutorConfig { durable_bytes: 300, ..NEVER };
    let mut executor = open(&store, &small);
    execute_all(&mut executor, &history()[..2]);
    store.crash();
    assert_eq!(open(&store, &small).executed().map(|executed| executed.height()), Some(Height(2)));
}

#[test]
fn the_stores_agree() {
    let directory = tempfile::tempdir().expect("made");
    let path = directory.path().join("state");
    let disk = DiskStore::open(&path, &Owner::nobody()).expect("opened");
    let mut on_disk = open_over(Box::new(disk), &OFTEN);
    let mut in_memory = open(&MemoryStore::new(), &OFTEN);
    let expected = execute_all(&mut in_memory, &history());
    assert_eq!(execute_all(&mut on_disk, &history()), expected);
    let executed = on_disk.executed();
    drop(on_disk);
    let disk = DiskStore::open(&path, &Owner::nobody()).expect("opened");
    let (executor, found) =
        Executor::open(Box::new(disk), Box::new(Census), OFTEN).expect("opened");
    let found = found.expect("it executed");
    let heights: Vec<u64> = found.recent.iter().map(|record| record.height.0).collect();
    assert_eq!(heights, (1..=found.height().0).collect::<Vec<_>>(), "kept to fill the log");
    assert_eq!(Some(ExecutedUpTo { recent: Vec::new(), ..found }), executed);
    assert_eq!(executor.executed(), in_memory.executed());
}

/// The roots of a fixed history. They change when what is hashed changes, and then every replica of
/// a network must change with them.
#[test]
fn golden_roots() {
    let executed = execute_all(&mut open(&MemoryStore::new(), &NEVER), &history());
    let roots: Vec<String> = executed.iter().map(|executed| executed.root().to_hex()).collect();
    assert_eq!(roots.join("\n") + "\n", include_str!("golden_roots.txt"));
    let distinct: BTreeSet<&String> = roots.iter().collect();
    assert_eq!(distinct.len(), roots.len(), "the height is in the root");
}

#[test]
#[should_panic(expected = "heights execute one after the other")]
fn a_height_is_never_skipped() {
    drop(open(&MemoryStore::new(), &NEVER).execute(&block(2, &[])));
}

#[test]
fn a_store_belongs_to_one_service() {
    struct Other;
    impl Service for Other {
        fn name(&self) -> &'static str {
            "other"
        }
        fn admit(&self, _: Operation<'_>) -> Result<(), String> {
            Ok(())
        }
        fn execute(
            &mut self,
            _: &mut dyn State,
            _: BlockContext,
            _: &[Operation<'_>],
        ) -> Result<Vec<Outcome>, StateError> {
            Ok(Vec::new())
        }
        fn root(&self, _: &dyn State) -> Result<Digest, StateError> {
            Ok(Digest::ZERO)
        }
    }
    let store = MemoryStore::new();
    open(&store, &OFTEN).execute(&block(1, &[])).expect("works");
    let refused = Executor::open(Box::new(store.clone()), Box::new(Other), OFTEN).err();
    assert_eq!(
        refused,
        Some(StorageError::OtherService {
            found: "census".into(),
            configured: "other".into(),
            height: Height(1),
        })
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Random traffic with crashes between: every request took effect as often as a set of numbers
    /// says, and the replayed heights have the roots they had.
    #[test]
    fn exactly_once_under_random_traffic(
        heights in prop::collection::vec(
            (prop::collection::vec((1_u8..3, 0_u64..80), 0..12), any::<bool>()),
            1..20,
        ),
    ) {
        let store = MemoryStore::new();
        let config = ExecutorConfig { durable_every: 3, ..NEVER };
        let mut executor = open(&store, &config);
        let mut completed: BTreeMap<u8, BTreeSet<u64>> = BTreeMap::new();
        let (mut blocks, mut results) = (Vec::new(), Vec::new());
        for (height, (traffic, crash)) in (1..).zip(heights) {
            let mut expected = 0;
            for (client, sequence) in &traffic {
                let seen = completed.entry(*client).or_default();
                let lowest = (0..).find(|n| !seen.contains(n)).expect("some");
                if *sequence < lowest + 64 && seen.insert(*sequence) {
                    expected += 1;
                }
            }
            let requests: Vec<Request> =
                traffic.iter().map(|(client, sequence)| named(*client, *sequence)).collect();
            blocks.push(block(height, &requests));
            results.push(executor.execute(&blocks[blocks.len() - 1]).expect("works"));
            prop_assert_eq!(results[results.len() - 1].operations, expected);
            if crash {
                drop(executor);
                store.crash();
                executor = open(&store, &config);
                let height = executor.executed().map_or(0, |executed| executed.height().0);
                let done = usize::try_from(height).expect("small");
                prop_assert_eq!(execute_all(&mut executor, &blocks[done..]), &results[done..]);
            }
        }
        for (client, sequences) in completed {
            for sequence in 0..80 {
                let times = count(&executor, &format!("{client}#{sequence}"));
                prop_assert_eq!(times, u8::from(sequences.contains(&sequence)));
            }
        }
    }
}

/// Each rule left out is noticed by the check that stands for it.
mod mutants {
    use super::*;
    use quorate_crypto::mutants::{Mutant, set};

    #[test]
    fn every_rule_is_guarded() {
        let guarded: [(Mutant, fn() -> Check); 3] = [
            (Mutant::ForgetSessions, a_request_takes_effect_once_across_restarts),
            (Mutant::ExecuteTwice, a_request_takes_effect_once_across_restarts),
            (Mutant::SplitCommit, a_height_is_committed_whole),
        ];
        for (mutant, check) in guarded {
            set(Some(mutant));
            let result = check();
            set(None);
            assert!(result.is_err(), "{mutant:?} went unnoticed");
        }
    }
}
