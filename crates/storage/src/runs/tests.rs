use super::*;
use crate::{Fault, Faults, FaultyDisk, MemoryDisk, Owner};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Few to a piece: a block and a bit.
const PIECE: u64 = 70;

fn key(number: u64) -> [u8; RUN_KEY_BYTES] {
    let hash = blake3::hash(&number.to_le_bytes());
    let mut key = [0; RUN_KEY_BYTES];
    key[..32].copy_from_slice(hash.as_bytes());
    key
}

fn value(number: u64) -> [u8; RUN_VALUE_BYTES] {
    let mut value = [7; RUN_VALUE_BYTES];
    value[..8].copy_from_slice(&number.to_le_bytes());
    value
}

fn items(numbers: impl Iterator<Item = u64>) -> Vec<RunItem> {
    let mut items: Vec<RunItem> = numbers.map(|number| (key(number), value(number))).collect();
    items.sort_unstable();
    items
}

fn open(disk: &MemoryDisk) -> Result<Runs, StorageError> {
    Runs::open_with(Box::new(disk.clone()), &Owner::nobody(), PIECE)
}

fn add(runs: &Runs, from: u64, to: u64) -> Result<(), StorageError> {
    runs.add(to, items(from..to).into_iter())
}

/// Everything below `count` is found, and nothing from there on.
fn assert_has(runs: &Runs, count: u64) {
    assert_eq!((runs.covered(), runs.len()), (count, count));
    for number in 0..count + 200 {
        let expected = (number < count).then(|| value(number));
        assert_eq!(runs.get(&key(number)), Ok(expected), "{number} of {count}");
    }
}

fn listed(runs: &RunsSnapshot) -> Vec<RunItem> {
    runs.iter().collect::<Result<_, _>>().expect("reads")
}

#[test]
fn what_was_added_is_found_and_survives_a_crash() {
    let disk = MemoryDisk::new();
    let runs = open(&disk).expect("opens");
    assert_has(&runs, 0);
    add(&runs, 0, 1).expect("adds");
    add(&runs, 1, 500).expect("adds");
    runs.add(500, std::iter::empty()).expect("adds nothing");
    assert_has(&runs, 500);
    disk.crash(&mut || true);
    assert_has(&open(&disk).expect("opens"), 500);
}

/// Whoever picks keys knows nothing of the filters that they go to: the same ones make another.
#[test]
fn each_filter_has_a_secret_of_its_own() {
    let index = || {
        let disk = MemoryDisk::new();
        add(&open(&disk).expect("opens"), 0, 50).expect("adds");
        let names = disk.list().expect("lists");
        let name = names.iter().find(|name| name.starts_with("index")).expect("an index");
        super::files::read_file(&disk, name).expect("reads")
    };
    assert_ne!(index(), index());
}

#[test]
fn runs_of_like_size_become_one_and_are_read_in_order() {
    let disk = MemoryDisk::new();
    let runs = open(&disk).expect("opens");
    add(&runs, 0, 300).expect("adds");
    let snapshot = runs.snapshot();
    add(&runs, 300, 400).expect("adds");
    assert!(!runs.is_merge_due(), "300 are more than twice 100");
    add(&runs, 400, 500).expect("adds");
    assert!(runs.is_merge_due());
    runs.merge().expect("merges");
    assert!(!runs.is_merge_due());
    assert_eq!(runs.view.load().runs.len(), 1, "300 and 200 go together");
    assert_has(&runs, 500);
    assert_eq!(listed(&runs.snapshot()), items(0..500));
    assert_eq!((snapshot.covered(), listed(&snapshot)), (300, items(0..300)), "as it was");
    disk.crash(&mut || true);
    assert_has(&open(&disk).expect("opens"), 500);
}

/// Keys with one beginning may fill several blocks, and names in the filter may be one.
#[test]
fn keys_that_begin_alike_are_told_apart() {
    let runs = open(&MemoryDisk::new()).expect("opens");
    let crafted = |number: u16, end: u8| {
        let mut key = [9; RUN_KEY_BYTES];
        key[8..10].copy_from_slice(&number.to_be_bytes());
        key[31] = end;
        (key, value(u64::from(number)))
    };
    let added: Vec<RunItem> = (0..180).map(|number| crafted(2 * number, 1)).collect();
    runs.add(1, added.iter().copied()).expect("adds");
    for number in 0..180 {
        let (key, value) = crafted(2 * number, 1);
        assert_eq!(runs.get(&key), Ok(Some(value)));
        assert_eq!(runs.get(&crafted(2 * number + 1, 1).0), Ok(None));
        assert_eq!(runs.get(&crafted(2 * number, 2).0), Ok(None));
    }
}

/// ★ Whatever file is gone or short, and whatever byte of an index or a manifest is another: a
/// start says so.
#[test]
fn what_is_missing_or_damaged_is_noticed_at_a_start() {
    let disk = MemoryDisk::new();
    let runs = open(&disk).expect("opens");
    add(&runs, 0, 300).expect("adds");
    drop(runs);
    let names = disk.list().expect("lists");
    assert_eq!(names.len(), 2 * 5 + 1, "five pieces and a manifest: {names:?}");
    for name in &names {
        let changed = |change: &dyn Fn(&mut MemoryDisk)| {
            let mut other = disk.copy();
            change(&mut other);
            open(&other)
        };
        let removed = changed(&|disk| disk.remove(name).expect("removes"));
        if name.starts_with("runs-") {
            // Its host misses what came before the log begins.
            assert_eq!(removed.expect("opens").covered(), 0);
        } else {
            assert!(matches!(removed, Err(StorageError::Corrupt { .. })), "{name}: {removed:?}");
        }
        let short = changed(&|disk| disk.write(name, &[1; 60]).expect("writes"));
        assert!(matches!(short, Err(StorageError::Corrupt { .. })), "{name}: {short:?}");
        if name.starts_with("piece-") {
            continue;
        }
        let length = disk.open(name).expect("opens").length().expect("has one");
        for offset in (0..length).step_by(7) {
            let fault = Fault::FlipBit { file: name.clone(), offset, bit: 2 };
            let faulty = FaultyDisk::new(disk.copy(), vec![fault]);
            let opened = Runs::open_with(Box::new(faulty), &Owner::nobody(), PIECE);
            assert!(opened.is_err(), "{name} at {offset}");
        }
    }
}

/// ★ A key whose block is damaged is never absent: it is an error.
#[test]
fn a_damaged_block_is_an_error_for_all_its_keys() {
    let disk = MemoryDisk::new();
    add(&open(&disk).expect("opens"), 0, 50).expect("adds");
    let fault = Fault::FlipBit { file: "piece-000000000000".into(), offset: 99, bit: 1 };
    let faulty = FaultyDisk::new(disk, vec![fault]);
    let runs = Runs::open_with(Box::new(faulty), &Owner::nobody(), PIECE).expect("opens");
    for number in 0..50 {
        let found = runs.get(&key(number));
        assert!(matches!(found, Err(StorageError::Corrupt { .. })), "{number}: {found:?}");
    }
    assert!(runs.snapshot().iter().any(|item| item.is_err()), "nor is it left out");
}

/// Every step of adding and of merging fails once, with a crash: all that was there before is there
/// again, and the rest whole or not at all.
#[test]
fn a_crash_at_any_step_loses_nothing() {
    let work = |runs: &mut Runs| {
        runs.sweep()?;
        add(runs, 300, 400)?;
        add(runs, 400, 500)?;
        runs.merge()
    };
    let steps = |nth| {
        [
            Fault::FailWrite { nth },
            Fault::FailSync { nth },
            Fault::FailDirectorySync { nth },
            Fault::FailNameChange { nth },
        ]
    };
    let mut fired = 0;
    for fault in (0..40).flat_map(steps) {
        let disk = MemoryDisk::new();
        add(&open(&disk).expect("opens"), 0, 300).expect("adds");
        let faulty = FaultyDisk::new(disk.clone(), vec![fault.clone()]);
        let faults: Faults = faulty.faults();
        let mut runs = Runs::open_with(Box::new(faulty), &Owner::nobody(), PIECE).expect("opens");
        let outcome = work(&mut runs);
        let covered = runs.covered();
        assert_eq!(outcome.is_err(), faults.fired(), "{fault:?}");
        drop(runs);
        fired += usize::from(faults.fired());
        disk.crash(&mut || true);
        let mut again = open(&disk).expect("opens");
        // A manifest that was durable though its writer could not tell counts.
        assert!(again.covered() >= covered && [300, 400, 500].contains(&again.covered()));
        again.sweep().expect("sweeps");
        assert_has(&again, again.covered());
        let pieces: u64 = again.view.load().runs.iter().map(|run| run.pieces.len() as u64).sum();
        assert_eq!(disk.list().expect("lists").len() as u64, 2 * pieces + 1, "{fault:?}");
    }
    assert!(fired > 60, "{fired} faults met a step");
}

/// Readers on other threads find what was there before, at every moment of adding and merging.
#[test]
fn readers_miss_nothing_while_runs_come_and_go() {
    let runs = open(&MemoryDisk::new()).expect("opens");
    add(&runs, 0, 200).expect("adds");
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for from in (200..3_000).step_by(100) {
                add(&runs, from, from + 100).expect("adds");
                runs.merge().expect("merges");
            }
        });
        while !writing.is_finished() {
            let there = runs.covered();
            for number in (0..there).step_by(17) {
                assert_eq!(runs.get(&key(number)), Ok(Some(value(number))), "{number} of {there}");
            }
        }
    });
    assert_has(&runs, 3_000);
}

#[derive(Clone, Debug)]
enum Step {
    Add(Vec<u64>),
    Merge,
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => prop::collection::vec(0..5_000_u64, 0..300).prop_map(Step::Add),
        2 => Just(Step::Merge),
        1 => Just(Step::Crash),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Against a plain map: the same keys, the same values, in the same order.
    #[test]
    fn runs_are_a_map(steps in prop::collection::vec(step(), 1..20)) {
        let disk = MemoryDisk::new();
        let mut runs = open(&disk).expect("opens");
        let mut model = BTreeMap::new();
        for step in steps {
            match step {
                Step::Add(numbers) => {
                    let is_new = |number: &u64| !model.contains_key(&key(*number));
                    let mut added = items(numbers.into_iter().filter(is_new));
                    added.dedup();
                    model.extend(added.iter().copied());
                    runs.add(model.len() as u64, added.into_iter()).expect("adds");
                }
                Step::Merge => runs.merge().expect("merges"),
                Step::Crash => {
                    drop(runs);
                    disk.crash(&mut || true);
                    runs = open(&disk).expect("opens");
                    runs.sweep().expect("sweeps");
                }
            }
            let expected: Vec<RunItem> = model.iter().map(|(key, value)| (*key, *value)).collect();
            prop_assert_eq!(listed(&runs.snapshot()), expected);
            prop_assert_eq!((runs.covered(), runs.len()), (model.len() as u64, model.len() as u64));
        }
        for number in 0..5_000 {
            prop_assert_eq!(runs.get(&key(number)), Ok(model.get(&key(number)).copied()));
        }
    }
}
