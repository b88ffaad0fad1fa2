//! Power cuts at every write and sync, damage at every byte, and what goes round in the log.

mod damage;
mod power;

use super::*;
use crate::disk::{Disk, Fault, Faults, FaultyDisk, MemoryDisk};
use proptest::prelude::*;
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_types::service::KeyRange;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

pub(super) type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// So small that a batch spans segments, and a frame has a few entries.
pub(super) const SMALL: Sizes = Sizes { segment_min: 6_000, segment_max: 9_000, frame: 500 };

pub(super) fn open(disk: impl Disk + 'static) -> Result<ValueLog, StorageError> {
    ValueLog::open(Box::new(disk), &Owner::nobody(), SMALL)
}

pub(super) fn content(snapshot: &Snapshot) -> Result<Map, StateError> {
    let mut map = Map::new();
    snapshot.scan(KeyRange::ALL, &mut |key, value| {
        map.insert(key.to_vec(), value.to_vec());
        ControlFlow::Continue(())
    })?;
    Ok(map)
}

/// Puts and removals, in the log's terms, made in a map too.
pub(super) fn changed(map: &mut Map, changes: &BTreeMap<Vec<u8>, Option<Vec<u8>>>) -> Changes {
    for (key, value) in changes {
        match value {
            Some(value) => drop(map.insert(key.clone(), value.clone())),
            None => drop(map.remove(key)),
        }
    }
    let shared = |bytes: &Vec<u8>| bytes[..].into();
    changes.iter().map(|(key, value)| (shared(key), value.as_ref().map(shared))).collect()
}

/// Changes number `number` of a store of 120 keys: some are put, some removed.
pub(super) fn some_changes(number: u32) -> BTreeMap<Vec<u8>, Option<Vec<u8>>> {
    let change = |turn: u32| {
        let key = (number * 31 + turn * 7) % 120;
        let value = vec![turn as u8; 40 + (number as usize * turn as usize) % 60];
        (key.to_be_bytes().to_vec(), (!turn.is_multiple_of(5)).then_some(value))
    };
    (0..40).map(change).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Write(BTreeMap<Vec<u8>, Option<Vec<u8>>>),
    Replace(Map),
    View,
    Reopen,
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0u8..6, 0..4)
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    (any::<u8>(), 0usize..700).prop_map(|(byte, length)| vec![byte; length])
}

fn step() -> impl Strategy<Value = Step> {
    let changes = prop::collection::btree_map(key(), prop::option::weighted(0.7, value()), 0..12);
    prop_oneof![
        40 => changes.prop_map(Step::Write),
        1 => prop::collection::btree_map(key(), value(), 0..20).prop_map(Step::Replace),
        4 => Just(Step::View),
        4 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever was changed, cleaned and opened again: a log is a map, and a view of it the map of
    /// its moment, though the segments that it reads are long removed.
    #[test]
    fn a_log_is_a_map(steps in prop::collection::vec(step(), 1..90)) {
        let disk = MemoryDisk::new();
        let mut log = open(disk.clone()).expect("opened");
        let (mut map, mut views) = (Map::new(), Vec::new());
        for step in steps {
            match step {
                Step::Write(changes) => log.write(&changed(&mut map, &changes)).expect("written"),
                Step::Replace(entries) => {
                    let mut all = entries.clone().into_iter().map(Ok);
                    log.replace(&mut all).expect("replaced");
                    map = entries;
                }
                Step::View => views.push((log.snapshot(), map.clone())),
                Step::Reopen => {
                    drop(log);
                    log = open(disk.clone()).expect("opened");
                }
            }
            let snapshot = log.snapshot();
            for (key, value) in &map {
                prop_assert_eq!(snapshot.get(key).expect("read"), Some(value.clone()));
            }
            let living: usize = map.iter().map(|(key, value)| 10 + key.len() + value.len()).sum();
            prop_assert_eq!(snapshot.index.living(), living as u64);
        }
        views.push((log.snapshot(), map));
        for (view, map) in views {
            prop_assert_eq!(content(&view).expect("read"), map);
        }
    }
}

/// Bytes of all files, in their whole length.
fn length(disk: &MemoryDisk) -> u64 {
    let names = disk.list().expect("listed");
    names.iter().map(|name| disk.open(name).expect("opened").length().expect("known")).sum()
}

/// A draw of this number.
fn random(draw: u64) -> u64 {
    let hash = blake3::hash(&draw.to_le_bytes());
    u64::from_le_bytes(*hash.as_bytes().first_chunk().expect("32 bytes"))
}

/// A log of this many keys of 512 bytes, then changed at random; its disk; bytes an update.
fn updated(keys: u64, batches: u64, updates: u64) -> (ValueLog, MemoryDisk, f64) {
    let disk = MemoryDisk::new();
    let faulty = FaultyDisk::new(disk.clone(), Vec::new());
    let faults = faulty.faults();
    let log = ValueLog::open(Box::new(faulty), &Owner::nobody(), Sizes::DEFAULT).expect("opened");
    let key = |number: u64| blake3::hash(&number.to_le_bytes()).as_bytes()[..].into();
    let put = |number: u64, with: u64| (key(number), Some(vec![with as u8; 512][..].into()));
    log.write(&(0..keys).map(|number| put(number, 0)).collect()).expect("written");
    let before = faults.bytes();
    for batch in 0..batches {
        let draws = batch * updates..(batch + 1) * updates;
        let changes = draws.map(|draw| put(random(draw) % keys, batch)).collect();
        log.write(&changes).expect("written");
    }
    let bytes = (faults.bytes() - before) as f64 / (batches * updates) as f64;
    (log, disk, bytes)
}

/// An update writes its entry once, and a part of another: of 512 bytes and a key of 32 less than
/// 2 KB, the length of new files counted as written too.
#[test]
fn an_update_writes_little_more_than_its_value() {
    let (_, _, bytes) = updated(10_000, 60, 1_000);
    assert!(bytes <= 2_000.0, "{bytes} bytes an update");
}

/// What does not live takes no more room than what does, and some small segments.
#[test]
fn the_log_stays_within_its_bounds() {
    let (log, disk, _) = updated(4_000, 100, 500);
    let living = log.snapshot().index.living();
    let bytes = length(&disk);
    assert!(bytes <= 5 * living / 2 + (6 << 20), "{bytes} bytes for {living}");
}

/// Old keys that never change are copied in pieces: no batch writes more than thrice what changes,
/// and a little.
#[test]
fn no_batch_cleans_more_than_its_share() {
    let disk = FaultyDisk::new(MemoryDisk::new(), Vec::new());
    let faults = disk.faults();
    let sizes = Sizes { segment_min: 300_000, ..Sizes::DEFAULT };
    let log = ValueLog::open(Box::new(disk), &Owner::nobody(), sizes).expect("opened");
    let put = |number: u32| (number.to_be_bytes()[..].into(), Some(vec![7; 1_000][..].into()));
    log.write(&(0..4_000).map(put).collect()).expect("written");
    let mut most = 0;
    for _ in 0..200 {
        let before = faults.bytes();
        log.write(&(0..100).map(put).collect()).expect("written");
        most = most.max(faults.bytes() - before);
    }
    // Two segments may be made, each counted with its length, and keys be kept.
    assert!(most < 3 * 102_000 + (512 << 10) + 2 * 400_000, "{most} bytes in one batch");
}

/// What is removed and what was removed goes round and ends: removals do not pile up behind keys
/// that never change.
#[test]
fn removals_do_not_pile_up() {
    let disk = MemoryDisk::new();
    let log = open(disk.clone()).expect("opened");
    let put = |number: u32| (number.to_be_bytes()[..].into(), Some([7; 100][..].into()));
    log.write(&(0..100).map(put).collect()).expect("written");
    for height in 1_000..3_000_u32 {
        let removed = ((height - 2).to_be_bytes()[..].into(), None);
        log.write(&[put(height), removed].into_iter().collect()).expect("written");
    }
    let bytes = length(&disk);
    assert!(bytes < 200_000, "{bytes} bytes");
    let reopened = open(disk).expect("opened").snapshot();
    assert_eq!(content(&reopened).expect("read").len(), 102);
}

/// An entry larger than a segment has one of its own.
#[test]
fn a_large_value_is_a_value() {
    let disk = MemoryDisk::new();
    let log = open(disk.clone()).expect("opened");
    let (large, long) = (vec![7; 100_000], vec![9; 60_000]);
    let mut map = Map::new();
    let changes = [(b"a".to_vec(), Some(large)), (long, Some(b"v".to_vec())), (Vec::new(), None)];
    log.write(&changed(&mut map, &changes.into_iter().collect())).expect("written");
    assert_eq!(content(&log.snapshot()).expect("read"), map);
    assert_eq!(content(&open(disk).expect("opened").snapshot()).expect("read"), map);
}

/// Entries that end with an error change nothing, and what comes next is written as if they had not
/// been.
#[test]
fn a_replacement_that_ends_amid_is_none() {
    let disk = MemoryDisk::new();
    let log = open(disk.clone()).expect("opened");
    let mut map = Map::new();
    log.write(&changed(&mut map, &some_changes(1))).expect("written");
    let entry = |number: u32| Ok((number.to_be_bytes().to_vec(), vec![1_u8; 300]));
    let failure = StorageError::StateDamaged { entry: "chunk" };
    let mut entries = (0..100).map(entry).chain([Err(failure.clone())]);
    assert_eq!(log.replace(&mut entries), Err(failure));
    assert_eq!(content(&log.snapshot()).expect("read"), map);
    log.write(&changed(&mut map, &some_changes(2))).expect("written");
    assert_eq!(content(&log.snapshot()).expect("read"), map);
    assert_eq!(content(&open(disk).expect("opened").snapshot()).expect("read"), map);
}

#[test]
fn of_two_entries_with_one_key_the_later_holds() {
    let log = open(MemoryDisk::new()).expect("opened");
    let entry = |value: u8| Ok((b"k".to_vec(), vec![value; 400]));
    log.replace(&mut (0..9).map(entry)).expect("replaced");
    assert_eq!(log.snapshot().get(b"k"), Ok(Some(vec![8; 400])));
}

/// A log after its first batch, on a disk that can be made to fail; what it holds.
fn over_faults() -> (ValueLog, MemoryDisk, Faults, Map) {
    let (disk, mut map) = (MemoryDisk::new(), Map::new());
    let faulty = FaultyDisk::new(disk.clone(), Vec::new());
    let faults = faulty.faults();
    let log = open(faulty).expect("opened");
    log.write(&changed(&mut map, &some_changes(1))).expect("written");
    (log, disk, faults, map)
}

/// ★ After a sync that failed nobody knows what is on the disk: nothing more is written to it.
#[test]
fn a_sync_that_fails_is_the_end() {
    let (log, disk, faults, map) = over_faults();
    faults.set(vec![Fault::FailSync { nth: faults.syncs() }]);
    let failed = log.write(&changed(&mut map.clone(), &some_changes(2))).expect_err("no sync");
    assert!(failed.0.starts_with(STATE_REFUSED), "{failed}");
    assert_eq!(log.write(&changed(&mut map.clone(), &some_changes(3))), Err(failed.clone()));
    assert_eq!(log.replace(&mut std::iter::empty()), Err(failed.into()));
    assert_eq!(content(&log.snapshot()).expect("read"), map, "what was durable is shown");
    drop(log);
    disk.crash(&mut || true);
    assert_eq!(content(&open(disk).expect("opened").snapshot()).expect("read"), map);
}

#[test]
fn a_log_that_goes_on_after_a_failure_is_noticed() {
    assert_noticed(Mutant::GoOnAfterFailure, a_sync_that_fails_is_the_end);
}

/// A disk that is full says so, and has what it had.
#[test]
fn a_disk_without_room_is_told_apart() {
    let (log, disk, faults, map) = over_faults();
    faults.set(vec![Fault::Full { bytes: faults.bytes() + 700 }]);
    let full = log.write(&changed(&mut map.clone(), &some_changes(2))).expect_err("no room");
    assert!(StorageError::State(full).is_full());
    drop(log);
    assert_eq!(content(&open(disk).expect("opened").snapshot()).expect("read"), map);
}

#[test]
fn somebody_else_s_log_and_a_later_format_are_refused() {
    let disk = MemoryDisk::new();
    open(disk.clone())
        .expect("opened")
        .write(&changed(&mut Map::new(), &some_changes(1)))
        .expect("written");
    let somebody = Owner { protocol: "pbft".into(), ..Owner::nobody() };
    let refused = ValueLog::open(Box::new(disk), &somebody, SMALL).expect_err("refused");
    assert!(matches!(refused, StorageError::Foreign { .. }), "{refused}");

    let mut later = MemoryDisk::new();
    let record = Owner::nobody().record(format::FORMAT + 1);
    later.write(&segment::Segment::name(0), &[record, vec![0; 9_000]].concat()).expect("written");
    let refused = open(later).expect_err("refused");
    assert!(matches!(refused, StorageError::Format { found: 5, expected: 4, .. }), "{refused}");
}
