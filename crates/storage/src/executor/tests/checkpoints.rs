//! Checkpoints on their way while heights go on.

use super::super::{DECIDED_KEPT, PENDING_BYTES_MAX};
use super::*;
use crate::Snapshots;
use crate::disk::MemoryDisk;
use crate::history::{Before, Kept, MemoryHistory, StateHistory};
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_types::service::{Index, IndexEntries, ScanOrder};

/// A store whose checkpoints end when a test says so.
struct SlowStore {
    inner: MemoryStore,
    begun: Arc<Mutex<Vec<Checkpoint>>>,
    pending_bytes: u64,
}

impl Store for SlowStore {
    fn begin(&mut self) -> Result<Box<dyn Transaction + '_>, StateError> {
        self.inner.begin()
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
        first();
        let checkpoint = Checkpoint::default();
        self.begun.lock().push(checkpoint.clone());
        Ok(checkpoint)
    }

    fn pending_bytes(&self) -> u64 {
        self.pending_bytes
    }

    fn replace(&mut self, entries: &mut Entries<'_>) -> Result<(), StorageError> {
        self.inner.replace(entries)
    }
}

fn slow(durable_every: u64) -> (Executor, Arc<Mutex<Vec<Checkpoint>>>) {
    holding(0, durable_every)
}

/// As [`slow`], with so many bytes in memory.
fn holding(pending_bytes: u64, durable_every: u64) -> (Executor, Arc<Mutex<Vec<Checkpoint>>>) {
    let begun: Arc<Mutex<Vec<Checkpoint>>> = Arc::default();
    let store = SlowStore { inner: MemoryStore::new(), begun: Arc::clone(&begun), pending_bytes };
    let config = ExecutorConfig { durable_every, durable_bytes: u64::MAX };
    (open_over(Box::new(store), &config), begun)
}

/// ★ A height is not called durable before its checkpoint is: the log lets go of what is.
fn a_height_is_durable_when_its_checkpoint_is() {
    let (mut executor, begun) = slow(2);
    for block in &history()[..3] {
        executor.execute(block).expect("works");
        assert_eq!(executor.durable(), Height(0), "the checkpoint is on its way");
    }
    assert_eq!(begun.lock().len(), 1);
    begun.lock()[0].end(Ok(()));
    executor.execute(&history()[3]).expect("works");
    assert_eq!(executor.durable(), Height(2));
    assert_eq!(begun.lock().len(), 2);
}

#[test]
fn heights_are_durable_when_their_checkpoint_is() {
    a_height_is_durable_when_its_checkpoint_is();
}

#[test]
fn a_height_that_is_called_durable_early_is_noticed() {
    assert_noticed(Mutant::DurableEarly, a_height_is_durable_when_its_checkpoint_is);
}

#[test]
fn a_checkpoint_that_fails_is_the_end() {
    let (mut executor, begun) = slow(1);
    executor.execute(&history()[0]).expect("works");
    begun.lock()[0].end(Err(StateError("injected".into())));
    let error = executor.execute(&history()[1]).expect_err("it failed");
    assert_eq!(executor.make_durable().expect_err("final"), error);
    assert_eq!(executor.durable(), Height(0));
}

/// No snapshot is ahead of the state that it was taken of.
#[test]
fn a_snapshot_is_written_when_its_state_is_durable() {
    for outcome in [Ok(()), Err(StateError("injected".into()))] {
        let (mut executor, begun) = slow(u64::MAX);
        executor.execute(&history()[0]).expect("works");
        let snapshots = Snapshots::open(Box::new(MemoryDisk::new()), &Owner::nobody());
        let snapshots = snapshots.expect("opened");
        let job = executor.snapshot().expect("taken");
        begun.lock()[0].end(outcome.clone());
        assert_eq!(job.write(&snapshots).is_ok(), outcome.is_ok());
        assert_eq!(snapshots.heights().len(), usize::from(outcome.is_ok()));
    }
}

/// Checkpoints that take for ever unless somebody waits: execution does when the next one is due.
#[test]
fn a_checkpoint_that_is_due_waits_for_the_one_before() {
    const EVERY: u64 = 3;
    let store = MemoryStore::with_slow_checkpoints(u64::MAX);
    let config = ExecutorConfig { durable_every: EVERY, durable_bytes: u64::MAX };
    let mut executor = open_over(Box::new(store.clone()), &config);
    for height in 1..=5 * EVERY {
        executor.execute(&block(height, &[])).expect("works");
        let begun = height / EVERY * EVERY;
        assert_eq!(executor.durable(), Height(begun.saturating_sub(EVERY)), "at {height}");
        assert!(height - executor.durable().0 < 2 * EVERY);
        let left = store.fork();
        left.crash();
        assert_eq!(open(&left, &config).height(), executor.durable(), "what it says is there");
    }
    executor.make_durable().expect("works");
    assert_eq!(executor.durable(), Height(5 * EVERY));
    assert!(!executor.is_checkpoint_under_way());
}

/// Records are kept of all heights that may not be durable, and of as many before.
#[test]
fn the_default_schedule_fits_what_is_kept() {
    let most = 2 * ExecutorConfig::default().durable_every;
    assert_eq!(2 * most, DECIDED_KEPT);
}

#[test]
fn a_checkpoint_is_due_when_much_is_in_memory() {
    for (bytes, begins) in [(PENDING_BYTES_MAX - 1, 0), (PENDING_BYTES_MAX, 1)] {
        let (mut executor, begun) = holding(bytes, u64::MAX);
        executor.execute(&history()[0]).expect("works");
        assert_eq!(begun.lock().len(), begins);
    }
}

/// A checkpoint that ended while there was nothing to execute.
#[test]
fn whoever_looks_finds_a_checkpoint_that_is_over() {
    let (mut executor, begun) = slow(1);
    executor.execute(&history()[0]).expect("works");
    executor.look_at_checkpoint().expect("works");
    assert!(executor.is_checkpoint_under_way());
    begun.lock()[0].end(Ok(()));
    executor.look_at_checkpoint().expect("works");
    assert_eq!((executor.durable(), executor.is_checkpoint_under_way()), (Height(1), false));
}

/// A history that notes how many checkpoints had begun to be written before it was made durable.
#[derive(Debug)]
struct Watched {
    inner: MemoryHistory,
    begun: Arc<Mutex<Vec<Checkpoint>>>,
    seen: Mutex<Vec<usize>>,
}

impl Index for Watched {
    fn known_after(&self) -> Option<Height> {
        self.inner.known_after()
    }

    fn scan_index(
        &self,
        keys: KeyRange<'_>,
        order: ScanOrder,
        visit: &mut Visitor<'_>,
    ) -> Result<(), StateError> {
        self.inner.scan_index(keys, order, visit)
    }
}

impl StateHistory for Watched {
    fn oldest(&self) -> Option<Height> {
        self.inner.oldest()
    }

    fn begin(&self, height: Height) {
        self.inner.begin(height);
    }

    fn record(&self, height: Height, before: Before, index: IndexEntries) {
        self.inner.record(height, before, index);
    }

    fn pending_bytes(&self) -> u64 {
        self.inner.pending_bytes()
    }

    fn make_durable(&self) {
        self.seen.lock().push(self.begun.lock().len());
        self.inner.make_durable();
    }

    fn before_change(&self, key: &[u8], height: Height) -> Result<Option<Kept>, StateError> {
        self.inner.before_change(key, height)
    }

    fn close(&self) {
        self.inner.close();
    }
}

/// ★ A state is not durable before its history.
#[test]
fn a_history_is_durable_before_its_state() {
    let (mut executor, begun) = slow(1);
    let (inner, seen) = (MemoryHistory::default(), Mutex::default());
    let watched = Arc::new(Watched { inner, begun: Arc::clone(&begun), seen });
    executor.keep_history(Arc::clone(&watched) as Arc<dyn StateHistory>);
    for (height, block) in history()[..3].iter().enumerate() {
        executor.execute(block).expect("works");
        begun.lock()[height].end(Ok(()));
    }
    assert_eq!(*watched.seen.lock(), [0, 1, 2]);
}
