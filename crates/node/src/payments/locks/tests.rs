use super::*;
use proptest::prelude::*;
use quorate_crypto::{Digest, IdentityKey, Signature, hash};
use quorate_payments::{Core, CoreKind, LockStatus, Locked, OutputId, TxId};
use quorate_storage::{Fault, FaultyDisk, MemoryDisk};
use std::sync::atomic::{AtomicU64, Ordering};

fn config() -> LogConfig {
    LogConfig { segment_bytes: 8 * 1024, retention_bytes: 16 * 1024, ..LogConfig::default() }
}

fn lock(sequence: u64) -> Lock {
    let input = |index| OutputId { tx: TxId(hash(&sequence.to_le_bytes())), index };
    let core = Core {
        id: TxId(hash(&[b"spender", &sequence.to_le_bytes()[..]].concat())),
        payer: IdentityKey([7; 32]),
        locks: vec![input(3), input(259)],
        kind: CoreKind::Spend,
        outputs: Digest::ZERO,
        signature: Signature([9; 64]),
    };
    Lock { sequence, core }
}

/// The two disks of an authority.
#[derive(Clone, Default)]
struct Disks {
    log: MemoryDisk,
    runs: MemoryDisk,
}

impl Disks {
    fn crash(&self) {
        self.log.crash(&mut || true);
        self.runs.crash(&mut || true);
    }

    /// Moves whatever there is at every commit, or nothing by itself.
    fn open(&self, hot_max: usize) -> Result<Locks, StorageError> {
        self.open_with(Box::new(self.runs.clone()), hot_max)
    }

    fn open_with(&self, runs: Box<dyn Disk>, hot_max: usize) -> Result<Locks, StorageError> {
        let disks: (Box<dyn Disk>, _) = (Box::new(self.log.clone()), runs);
        Locks::open(disks, &Owner::nobody(), (config(), hot_max), Ok)
    }
}

const NEVER: usize = usize::MAX;

fn add(locks: &mut Locks, count: u64) {
    for _ in 0..count {
        let one = lock(locks.next());
        locks.append(&one).expect("appends");
        locks.spent().lock(&one);
    }
    locks.commit().expect("commits");
}

fn assert_locked(spent: &SpentSet, sequences: impl Iterator<Item = u64>) {
    for sequence in sequences {
        let core = lock(sequence).core;
        assert_eq!(spent.locked(core.id, &core.locks), Ok(LockStatus::Own), "{sequence}");
    }
}

fn assert_all_locked(locks: &Locks, count: u64) {
    assert_eq!((locks.next(), locks.spent().len()), (count, 2 * count));
    assert_locked(locks.spent(), 0..count);
    let free = lock(count).core;
    assert_eq!(locks.spent().locked(free.id, &free.locks), Ok(LockStatus::Free));
}

#[test]
fn committed_locks_survive_a_crash_in_memory_and_on_disk() {
    let disks = Disks::default();
    let mut locks = disks.open(NEVER).expect("opens");
    add(&mut locks, 300);
    disks.crash();
    let mut locks = disks.open(NEVER).expect("opens");
    assert_all_locked(&locks, 300);
    locks.move_all().expect("moves");
    assert_eq!(locks.spent().hot_len(), 0);
    assert_all_locked(&locks, 300);
    assert!(locks.archive.oldest() > 0, "the log is short, and what it gave up is in a run");
    assert_eq!(locks.read(0), Ok(None));
    assert_eq!(locks.read(299), Ok(Some(lock(299))));
    add(&mut locks, 50);
    disks.crash();
    let locks = disks.open(NEVER).expect("opens");
    assert_eq!(locks.spent().hot_len(), 100);
    assert_all_locked(&locks, 350);
}

/// A release gives a coin to another transaction than the one that it was locked for, on disk.
#[test]
fn an_input_is_on_disk_once() {
    let disks = Disks::default();
    let mut locks = disks.open(NEVER).expect("opens");
    add(&mut locks, 10);
    locks.move_all().expect("moves");
    let (coin, first) = (lock(0).core.locks[0], lock(0).core.id);
    let (second, sequence) = (lock(7).core.id, 7);
    locks.spent().insert(coin, Locked { tx: second, sequence });
    assert_eq!(locks.spent().get(coin).map(|found| found.map(|one| one.tx)), Ok(Some(second)));
    locks.move_all().expect("moves, and merges");
    assert_all_locked(&locks, 10);
    assert_eq!(locks.spent().get(coin).map(|found| found.map(|one| one.tx)), Ok(Some(first)));
}

#[test]
fn a_run_has_nothing_that_is_not_durable() {
    let disks = Disks::default();
    let mut locks = disks.open(NEVER).expect("opens");
    add(&mut locks, 10);
    // The machine locks before the log thread writes.
    locks.spent().lock(&lock(10));
    locks.move_all().expect("moves");
    assert_eq!(locks.spent().hot_len(), 2, "it stays where it is");
    drop(locks);
    assert_all_locked(&disks.open(NEVER).expect("opens"), 10);
}

/// ★ An authority without all of its locks does not start.
#[test]
fn a_log_or_a_run_that_is_missing_is_refused() {
    let disks = Disks::default();
    let mut locks = disks.open(NEVER).expect("opens");
    add(&mut locks, 300);
    locks.move_all().expect("moves");
    drop(locks);
    let lost_runs = Disks { runs: MemoryDisk::new(), ..disks.clone() }.open(NEVER);
    assert!(matches!(lost_runs, Err(StorageError::Corrupt { .. })), "{lost_runs:?}");
    let lost_log = Disks { log: MemoryDisk::new(), ..disks.clone() }.open(NEVER);
    assert!(matches!(lost_log, Err(StorageError::Corrupt { .. })), "{lost_log:?}");
    for name in disks.runs.list().expect("lists") {
        let mut runs = disks.runs.copy();
        runs.remove(&name).expect("removes");
        let lost = Disks { runs: runs.clone(), ..disks.clone() }.open(NEVER);
        assert!(matches!(lost, Err(StorageError::Corrupt { .. })), "{name}: {lost:?}");
        assert!(runs.list().expect("lists").len() > 1, "and what is left is left as it is");
    }
}

/// ★ A key whose block is damaged is not free, and a move that fails is an error of the next
/// commit.
#[test]
fn a_failing_disk_is_never_an_answer() {
    let disks = Disks::default();
    let mut locks = disks.open(NEVER).expect("opens");
    add(&mut locks, 10);
    locks.move_all().expect("moves");
    drop(locks);
    let piece =
        disks.runs.list().expect("lists").into_iter().find(|name| name.starts_with("piece"));
    let flip = Fault::FlipBit { file: piece.expect("one"), offset: 100, bit: 0 };
    let faulty = FaultyDisk::new(disks.runs.clone(), vec![flip]);
    let locks = disks.open_with(Box::new(faulty), NEVER).expect("opens");
    let core = lock(3).core;
    assert!(locks.spent().locked(core.id, &core.locks).is_err());
    drop(locks);

    let full = FaultyDisk::new(disks.runs.clone(), vec![Fault::Full { bytes: 0 }]);
    let mut locks = disks.open_with(Box::new(full), NEVER).expect("opens");
    add(&mut locks, 10);
    let failed = locks.move_all();
    assert!(matches!(failed, Err(StorageError::Full { .. })), "{failed:?}");
    assert_locked(locks.spent(), 0..20);
}

/// Moves and merges of every size go on beside commits and look-ups.
#[test]
fn readers_never_see_a_locked_input_as_free() {
    let disks = Disks::default();
    let mut locks = disks.open(40).expect("opens");
    let spent = Arc::clone(locks.spent());
    let locked = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for _ in 0..200 {
                add(&mut locks, 10);
                locked.store(locks.next(), Ordering::Release);
            }
        });
        while !writing.is_finished() {
            assert_locked(&spent, (0..locked.load(Ordering::Acquire)).step_by(13));
        }
    });
    locks.move_all().expect("moves");
    assert_all_locked(&locks, 2_000);
}

#[derive(Clone, Debug)]
enum Step {
    Lock(u64),
    Move,
    Crash,
    /// A step of the next move fails, and the machine crashes.
    Fail(Fault),
}

fn step() -> impl Strategy<Value = Step> {
    let fault = (0..12_u64, 0..4_u8).prop_map(|(nth, kind)| match kind {
        0 => Fault::FailWrite { nth },
        1 => Fault::FailSync { nth },
        2 => Fault::FailDirectorySync { nth },
        _ => Fault::FailNameChange { nth },
    });
    prop_oneof![
        4 => (0..40_u64).prop_map(Step::Lock),
        2 => Just(Step::Move),
        1 => Just(Step::Crash),
        2 => fault.prop_map(Step::Fail),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Against a count: every lock that was committed is there, wherever it is, and nothing else.
    #[test]
    fn locks_are_never_lost(steps in prop::collection::vec(step(), 1..16)) {
        let disks = Disks::default();
        let mut locks = disks.open(60).expect("opens");
        let mut count = 0;
        for step in steps {
            match step {
                Step::Lock(more) => {
                    add(&mut locks, more);
                    count += more;
                }
                Step::Move => locks.move_all().expect("moves"),
                Step::Crash => {
                    drop(locks);
                    disks.crash();
                    locks = disks.open(60).expect("opens");
                }
                Step::Fail(fault) => {
                    locks.await_work().expect("ends");
                    drop(locks);
                    let faulty = FaultyDisk::new(disks.runs.clone(), vec![fault]);
                    if let Ok(mut locks) = disks.open_with(Box::new(faulty), NEVER) {
                        let _ = locks.move_all();
                        // What is found twice, for a step after the manifest failed, is found.
                        assert_locked(locks.spent(), 0..count);
                    }
                    disks.crash();
                    locks = disks.open(60).expect("opens");
                }
            }
            locks.await_work().expect("ends");
            assert_all_locked(&locks, count);
        }
    }
}
