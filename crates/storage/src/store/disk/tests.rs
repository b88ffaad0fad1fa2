//! What a height costs that changes nothing, failing checkpoints, and disks without room.

use super::*;
use crate::RoomConfig;
use crate::disk::{Fault, FaultyDisk, MemoryDisk};
use parking_lot::Mutex;
use quorate_crypto::mutants::assert_noticed;
use std::time::Duration;

fn open(disk: impl Disk + 'static) -> DiskStore {
    DiskStore::over(Box::new(disk), &Owner::nobody(), Sizes::DEFAULT).expect("opened")
}

fn put(store: &mut DiskStore, number: u64) {
    let mut transaction = store.begin().expect("begun");
    transaction.put(&number.to_be_bytes(), &[7; 100]).expect("put");
    transaction.commit(false).expect("committed");
}

/// A height without requests writes three small entries: nothing is written to the disk for it.
#[test]
fn commits_of_a_few_entries_do_not_touch_the_disk() {
    let disk = FaultyDisk::new(MemoryDisk::new(), Vec::new());
    let faults = disk.faults();
    let mut store = open(disk);
    let before = (faults.writes(), faults.syncs());
    for height in 0..200_u64 {
        let mut transaction = store.begin().expect("begun");
        transaction.put(b"e", &height.to_be_bytes()).expect("put");
        transaction.put(&height.to_be_bytes(), b"decided").expect("put");
        transaction.delete(&(height + 1_000).to_be_bytes()).expect("deleted");
        transaction.commit(false).expect("committed");
    }
    assert_eq!((faults.writes(), faults.syncs()), before);
    store.checkpoint().expect("begun").wait().expect("durable");
    assert_eq!((faults.writes(), faults.syncs()), (before.0 + 1, before.1 + 1), "one of each");
}

/// ★ Nothing of a checkpoint is on the disk before what it waits for is done.
#[test]
fn a_checkpoint_waits_for_what_comes_first() {
    let disk = FaultyDisk::new(MemoryDisk::new(), Vec::new());
    let faults = disk.faults();
    let mut store = open(disk);
    put(&mut store, 1);
    let before = (faults.writes(), faults.syncs());
    let (done, seen) = (Arc::new(Mutex::new(None)), faults.clone());
    let note = Arc::clone(&done);
    let first = Box::new(move || *note.lock() = Some((seen.writes(), seen.syncs())));
    store.checkpoint_after(first).expect("begun").wait().expect("durable");
    assert_eq!(*done.lock(), Some(before));
    assert_eq!((faults.writes(), faults.syncs()), (before.0 + 1, before.1 + 1));
}

#[test]
fn a_checkpoint_ahead_of_what_it_waits_for_is_noticed() {
    assert_noticed(Mutant::CheckpointAhead, a_checkpoint_waits_for_what_comes_first);
}

/// Whoever waits is told of a panic too.
#[test]
fn a_checkpoint_whose_writer_panics_is_the_end_of_a_store() {
    let mut store = open(MemoryDisk::new());
    put(&mut store, 1);
    let checkpoint = store.checkpoint_after(Box::new(|| panic!("injected"))).expect("begun");
    let failure = checkpoint.wait().expect_err("it panicked");
    assert!(failure.0.starts_with(STATE_REFUSED), "{failure}");
    assert_eq!(store.begin().err(), Some(failure));
}

/// A thread or a disk that fails: whoever waits is told, and so is all that comes later.
#[test]
fn a_checkpoint_that_fails_is_the_end_of_a_store() {
    let disk = FaultyDisk::new(MemoryDisk::new(), Vec::new());
    let faults = disk.faults();
    let mut store = open(disk);
    put(&mut store, 1);
    faults.set(vec![Fault::FailSync { nth: faults.syncs() }]);
    let checkpoint = store.checkpoint().expect("begun");
    let failure = checkpoint.wait().expect_err("a sync failed");
    assert!(failure.0.starts_with(STATE_REFUSED), "{failure}");
    assert_eq!(store.begin().err(), Some(failure.clone()));
    assert_eq!(store.checkpoint().err(), Some(failure.clone()));
    assert_eq!(store.view().err(), Some(failure));
}

/// A disk that is full is waited for: nothing is lost, and nothing is over.
#[test]
fn a_checkpoint_waits_for_room() {
    let folder = tempfile::tempdir().expect("made");
    let config = RoomConfig { reserve_bytes: Some(0), low_bytes: 0 };
    let room = Room::open(folder.path(), &config).expect("opened");
    room.wait_from_now_on();
    let memory = MemoryDisk::new();
    let disk = FaultyDisk::new(memory.clone(), Vec::new());
    let faults = disk.faults();
    let mut store = open(RoomyDisk::new(disk, room.clone()));
    // Larger than a segment: files, names and writes all find no room.
    (0..12_000).for_each(|number| put(&mut store, number));
    faults.set(vec![Fault::Full { bytes: faults.bytes() }]);
    let checkpoint = store.checkpoint().expect("begun");
    while !room.is_out() {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(checkpoint.outcome(), None, "it waits");
    put(&mut store, 1 << 40);
    faults.set(vec![Fault::FullAmid { from: faults.writes() + 3, bytes: 1_000 }]);
    thread::sleep(Duration::from_millis(300));
    faults.set(Vec::new());
    checkpoint.wait().expect("there is room");
    drop(store);
    memory.crash(&mut || true);
    let store = open(memory);
    for number in 0..12_000_u64 {
        assert_eq!(store.get(&number.to_be_bytes()), Ok(Some(vec![7; 100])), "{number}");
    }
}
