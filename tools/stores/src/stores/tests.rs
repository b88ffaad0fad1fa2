use super::Kind;
use crate::workload::{Key, changes, key, value};
use clap::ValueEnum;
use std::collections::BTreeMap;

const KEYS: u64 = 500;
const VALUE_BYTES: usize = 100;

/// Every store says what the last of several checkpoints left, at once and when it is opened again.
#[test]
fn stores_say_what_was_written() {
    for &kind in Kind::value_variants() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut expected = BTreeMap::new();
        let mut store = kind.open(folder.path(), KEYS);
        let all: Vec<u64> = (0..KEYS).collect();
        for (checkpoint, numbers) in [&all[..], &all[100..300], &all[200..]].iter().enumerate() {
            let changes = changes(checkpoint as u64, numbers, VALUE_BYTES);
            store.write(&changes);
            expected.extend(changes);
        }
        store.settle();
        for _ in 0..2 {
            for (key, value) in &expected {
                assert_eq!(store.get(key).as_ref(), Some(value), "{kind:?}");
            }
            assert_eq!(store.get(&key(KEYS)), None, "{kind:?}");
            if let Some(bytes) = store.scan(&Key::default(), 16) {
                assert_eq!(bytes, 16 * VALUE_BYTES as u64, "{kind:?}");
            }
            drop(store);
            store = kind.open(folder.path(), KEYS);
        }
    }
}

/// A value names its version, and others of its key and of its version differ from it.
#[test]
fn values_differ() {
    let all = [(1, 1), (1, 2), (2, 1), (2, 2)].map(|(number, version)| {
        let value = value(number, version, VALUE_BYTES);
        assert_eq!(crate::workload::version(&value), version);
        value
    });
    assert!(all.iter().enumerate().all(|(at, value)| !all[..at].contains(value)));
}
