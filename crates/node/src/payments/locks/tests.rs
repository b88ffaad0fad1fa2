use super::*;
use quorate_crypto::{Digest, IdentityKey, Signature, hash};
use quorate_payments::{Core, LockStatus, TxId};
use quorate_storage::MemoryDisk;

fn config() -> LogConfig {
    LogConfig { segment_bytes: 8 * 1024, retention_bytes: 16 * 1024, ..LogConfig::default() }
}

fn lock(sequence: u64) -> Lock {
    let input = OutputId { tx: TxId(hash(&sequence.to_le_bytes())), index: 3 };
    let core = Core {
        id: TxId(hash(&[b"spender", &sequence.to_le_bytes()[..]].concat())),
        payer: IdentityKey([7; 32]),
        locks: vec![input],
        kind: CoreKind::Spend,
        outputs: Digest::ZERO,
        signature: Signature([9; 64]),
    };
    Lock { sequence, core }
}

fn open(log: &MemoryDisk, checkpoints: &MemoryDisk) -> Result<Locks, StorageError> {
    Locks::open(Box::new(log.clone()), Box::new(checkpoints.clone()), &Owner::nobody(), config())
}

fn add(locks: &mut Locks, count: u64) {
    for _ in 0..count {
        let one = lock(locks.next());
        locks.append(&one).expect("appends");
        locks.spent().lock(&one);
    }
    locks.commit().expect("commits");
}

fn assert_all_locked(locks: &Locks, count: u64) {
    assert_eq!((locks.next(), locks.spent().len() as u64), (count, count));
    for sequence in 0..count {
        let core = lock(sequence).core;
        assert_eq!(locks.spent().status(core.id, &core.locks), LockStatus::Own, "{sequence}");
    }
}

#[test]
fn committed_locks_survive_a_crash_with_and_without_a_checkpoint() {
    let (log, checkpoints) = (MemoryDisk::new(), MemoryDisk::new());
    let mut locks = open(&log, &checkpoints).expect("opens");
    add(&mut locks, 300);
    log.crash(&mut || true);
    let mut locks = open(&log, &checkpoints).expect("opens");
    assert_all_locked(&locks, 300);
    locks.checkpoint().expect("writes");
    assert!(
        locks.archive.oldest() > 0,
        "the log is short, and what it gave up is in the checkpoint"
    );
    assert_eq!(locks.read(0), Ok(None));
    assert_eq!(locks.read(299), Ok(Some(lock(299))));
    add(&mut locks, 50);
    log.crash(&mut || true);
    checkpoints.crash(&mut || true);
    assert_all_locked(&open(&log, &checkpoints).expect("opens"), 350);
}

#[test]
fn a_checkpoint_has_nothing_that_is_not_durable() {
    let (log, checkpoints) = (MemoryDisk::new(), MemoryDisk::new());
    let mut locks = open(&log, &checkpoints).expect("opens");
    add(&mut locks, 10);
    // The machine locks before the log thread writes.
    locks.spent().lock(&lock(10));
    locks.checkpoint().expect("writes");
    drop(locks);
    assert_all_locked(&open(&log, &checkpoints).expect("opens"), 10);
}

#[test]
fn a_log_without_what_the_checkpoint_lacks_is_refused() {
    let (log, checkpoints) = (MemoryDisk::new(), MemoryDisk::new());
    let mut locks = open(&log, &checkpoints).expect("opens");
    add(&mut locks, 300);
    locks.checkpoint().expect("writes");
    drop(locks);
    let lost_checkpoint = open(&log, &MemoryDisk::new());
    assert!(matches!(lost_checkpoint, Err(StorageError::Corrupt { .. })), "{lost_checkpoint:?}");
    let lost_log = open(&MemoryDisk::new(), &checkpoints);
    assert!(matches!(lost_log, Err(StorageError::Corrupt { .. })), "{lost_log:?}");
}
