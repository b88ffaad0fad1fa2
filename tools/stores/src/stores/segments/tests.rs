use super::{SEGMENT_BYTES, Segments, Store, whole_batches};
use crate::workload::{changes, key, value};
use std::fs::{self, OpenOptions};

const VALUE_BYTES: usize = 1 << 16;
const KEYS: u64 = 256;

/// Segments that are half dead go, and no value with them, whether the store is opened again or
/// not.
#[test]
fn living_values_are_copied() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = Segments::open(folder.path());
    let all: Vec<u64> = (0..KEYS).collect();
    store.write(&changes(0, &all, VALUE_BYTES));
    let first_of_each = |checkpoint: u64| all[(checkpoint as usize % 4)..].iter().step_by(4);
    for checkpoint in 1..41 {
        let numbers: Vec<u64> = first_of_each(checkpoint).copied().collect();
        store.write(&changes(checkpoint, &numbers, VALUE_BYTES));
    }
    let most = 3 * (KEYS * VALUE_BYTES as u64 / SEGMENT_BYTES + 2);
    assert!((store.segments.len() as u64) < most, "{} segments", store.segments.len());
    for _ in 0..2 {
        for &number in &all {
            let last = (1..41).rfind(|last| last % 4 == number % 4).expect("one of four");
            assert_eq!(store.get(&key(number)), Some(value(number, last, VALUE_BYTES)));
        }
        store = Segments::open(folder.path());
    }
}

/// A batch that came to the disk in part is not there, and the next takes its place.
#[test]
fn torn_batches_are_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = Segments::open(folder.path());
    store.write(&changes(0, &[1, 2], 100));
    store.write(&changes(1, &[2], 100));
    let path = folder.path().join("0");
    let length = fs::metadata(&path).expect("a length").len();
    let content = fs::read(&path).expect("reads");
    assert_eq!(whole_batches(&content) as u64, length);
    OpenOptions::new().write(true).open(&path).and_then(|f| f.set_len(length - 1)).expect("cuts");
    let mut store = Segments::open(folder.path());
    assert_eq!(store.get(&key(2)), Some(value(2, 0, 100)));
    store.write(&changes(2, &[1], 100));
    let mut store = Segments::open(folder.path());
    assert_eq!(store.get(&key(1)), Some(value(1, 2, 100)));
    assert_eq!(store.get(&key(2)), Some(value(2, 0, 100)));
}
