use super::{DiskStore, MemoryStore, Store};
use crate::{Owner, StorageError};
use proptest::prelude::*;
use quorate_types::service::{KeyRange, StateError, Visitor};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

type Pairs<'a> = &'a [(&'a [u8], Option<&'a [u8]>)];

fn commit(store: &mut dyn Store, changes: Pairs<'_>, durable: bool) {
    let mut transaction = store.begin().expect("begun");
    for (key, value) in changes {
        match value {
            Some(value) => transaction.put(key, value).expect("put"),
            None => transaction.delete(key).expect("deleted"),
        }
    }
    transaction.commit(durable).expect("committed");
}

/// Changes of one transaction take effect together, in both stores.
fn transactions_take_effect_together(store: &mut dyn Store) {
    commit(store, &[(b"a", Some(b"1")), (b"b", Some(b""))], false);
    assert_eq!(store.get(b"a"), Ok(Some(b"1".to_vec())));
    assert_eq!(store.get(b"b"), Ok(Some(Vec::new())), "an empty value is a value");

    let mut transaction = store.begin().expect("begun");
    transaction.put(b"a", b"2").expect("put");
    transaction.delete(b"b").expect("deleted");
    transaction.delete(b"never there").expect("deleted");
    assert_eq!(transaction.get(b"a"), Ok(Some(b"2".to_vec())), "its own changes are seen");
    assert_eq!(transaction.get(b"b"), Ok(None));
    drop(transaction);
    assert_eq!(store.get(b"a"), Ok(Some(b"1".to_vec())), "dropped without a commit");

    commit(store, &[(b"a", None), (b"c", Some(b"3"))], true);
    assert_eq!(store.get(b"a"), Ok(None));
    assert_eq!(store.get(b"c"), Ok(Some(b"3".to_vec())));
}

#[test]
fn a_memory_store_is_a_store() {
    transactions_take_effect_together(&mut MemoryStore::new());
}

#[test]
fn a_disk_store_is_a_store() {
    let directory = tempfile::tempdir().expect("made");
    let mut store =
        DiskStore::open(&directory.path().join("state"), &Owner::nobody()).expect("opened");
    transactions_take_effect_together(&mut store);
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
type Scan<'a> = &'a dyn Fn(&mut Visitor<'_>) -> Result<(), StateError>;

/// Entries that a scan shows until it was shown so many.
fn shown(most: usize, scan: Scan<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut shown = Vec::new();
    scan(&mut |key, value| {
        shown.push((key.to_vec(), value.to_vec()));
        if shown.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .expect("read");
    shown
}

/// Scans of what is committed, and of changes on top of it, show what a map would have.
fn scans_agree_with_a_map(
    store: &mut dyn Store,
    committed: &Map,
    changes: &BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    (keys, most): (KeyRange<'_>, usize),
) {
    let mut transaction = store.begin().expect("begun");
    for (key, value) in committed {
        transaction.put(key, value).expect("put");
    }
    transaction.commit(false).expect("committed");
    let expected = |map: &Map| -> Vec<(Vec<u8>, Vec<u8>)> {
        let inside = |key: &[u8]| key >= keys.from && keys.to.is_none_or(|to| key < to);
        let entries = map.iter().filter(|(key, _)| inside(key)).take(most);
        entries.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    assert_eq!(shown(most, &|visit| store.scan(keys, visit)), expected(committed));
    let mut changed = committed.clone();
    let mut transaction = store.begin().expect("begun");
    for (key, value) in changes {
        match value {
            Some(value) => {
                transaction.put(key, value).expect("put");
                changed.insert(key.clone(), value.clone());
            }
            None => {
                transaction.delete(key).expect("deleted");
                changed.remove(key);
            }
        }
    }
    assert_eq!(shown(most, &|visit| transaction.scan(keys, visit)), expected(&changed));
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0u8..4, 0..4)
}

proptest! {
    #[test]
    fn scans_see_changes_in_order(
        committed in prop::collection::btree_map(key(), key(), 0..40),
        changes in prop::collection::btree_map(key(), prop::option::of(key()), 0..40),
        from in key(),
        to in prop::option::of(key()),
        most in 1usize..20,
    ) {
        let range = (KeyRange { from: &from, to: to.as_deref() }, most);
        scans_agree_with_a_map(&mut MemoryStore::new(), &committed, &changes, range);
        let directory = tempfile::tempdir().expect("made");
        let mut disk = DiskStore::open(&directory.path().join("state"), &Owner::nobody()).expect("opened");
        scans_agree_with_a_map(&mut disk, &committed, &changes, range);
    }
}

#[test]
fn a_crash_takes_a_memory_store_back_to_its_last_durable_commit() {
    let kept = MemoryStore::new();
    let mut store = kept.clone();
    commit(&mut store, &[(b"a", Some(b"1")), (b"b", Some(b"1"))], true);
    commit(&mut store, &[(b"a", Some(b"2")), (b"c", Some(b"2"))], false);
    commit(&mut store, &[(b"a", Some(b"3")), (b"b", None)], false);
    kept.crash();
    let values = [b"a", b"b", b"c"].map(|key| kept.get(key).expect("read"));
    assert_eq!(values, [Some(b"1".to_vec()), Some(b"1".to_vec()), None]);

    commit(&mut store, &[(b"a", Some(b"4"))], false);
    commit(&mut store, &[], true);
    kept.crash();
    assert_eq!(kept.get(b"a"), Ok(Some(b"4".to_vec())), "a durable commit keeps those before it");
}

/// ★ What a crash leaves is a checkpoint: the one that is on its way when somebody waited for it or
/// enough was committed meanwhile, otherwise the one before.
#[test]
fn a_crash_takes_a_memory_store_back_to_its_last_checkpoint_that_is_over() {
    for (later, waits, left) in
        [(0, false, b"1"), (1, false, b"1"), (2, false, b"2"), (0, true, b"2")]
    {
        let kept = MemoryStore::with_slow_checkpoints(2);
        let mut store = kept.clone();
        commit(&mut store, &[(b"a", Some(b"1"))], true);
        commit(&mut store, &[(b"a", Some(b"2"))], false);
        let checkpoint = store.checkpoint().expect("begun");
        for _ in 0..later {
            commit(&mut store, &[(b"a", Some(b"3"))], false);
        }
        if waits {
            checkpoint.wait().expect("durable");
        }
        assert_eq!(checkpoint.outcome().is_some(), left == b"2");
        for store in [kept.fork(), kept] {
            store.crash();
            assert_eq!(store.get(b"a"), Ok(Some(left.to_vec())), "{later} {waits}");
        }
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("made");
    for entry in std::fs::read_dir(from).expect("read") {
        let entry = entry.expect("read");
        std::fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
}

/// A process that dies closes nothing; a copy of the open folder is what it leaves.
#[test]
fn a_disk_store_opens_as_of_a_durable_commit() {
    let directory = tempfile::tempdir().expect("made");
    let (path, copy) = (directory.path().join("state"), directory.path().join("copy"));
    let mut store = DiskStore::open(&path, &Owner::nobody()).expect("opened");
    commit(&mut store, &[(b"a", Some(b"1"))], true);
    commit(&mut store, &[(b"a", Some(b"2"))], false);
    copy_folder(&path, &copy);
    let left = DiskStore::open(&copy, &Owner::nobody()).expect("opened");
    assert_eq!(left.get(b"a"), Ok(Some(b"1".to_vec())));
}

#[test]
fn two_processes_cannot_share_a_disk_store() {
    let directory = tempfile::tempdir().expect("made");
    let path = directory.path().join("state");
    let _first = DiskStore::open(&path, &Owner::nobody()).expect("opened");
    let error = DiskStore::open(&path, &Owner::nobody()).expect_err("locked");
    assert_eq!(error, StorageError::InUse { directory: path.display().to_string() });
}

#[test]
fn a_store_that_cannot_be_opened_says_which() {
    let directory = tempfile::tempdir().expect("made");
    let path = directory.path().join("a file");
    std::fs::write(&path, b"").expect("written");
    let error = DiskStore::open(&path.join("state"), &Owner::nobody()).expect_err("no folder");
    let said = format!("cannot create {}/state: ", path.display());
    assert!(error.to_string().starts_with(&said), "{error}");
}

#[test]
fn somebody_else_s_disk_store_is_refused() {
    let directory = tempfile::tempdir().expect("made");
    let path = directory.path().join("state");
    let somebody = Owner { protocol: "pbft".into(), ..Owner::nobody() };
    let mut store = DiskStore::open(&path, &Owner::nobody()).expect("opened");
    // Whatever replaces the state leaves the owner.
    let entry = Ok((b"k".to_vec(), b"v".to_vec()));
    store.replace(&mut std::iter::once(entry)).expect("replaced");
    drop(store);
    let refused = DiskStore::open(&path, &somebody).expect_err("refused");
    assert!(matches!(refused, StorageError::Foreign { .. }), "{refused}");
    let store = DiskStore::open(&path, &Owner::nobody()).expect("opened");
    assert_eq!(store.get(b"k"), Ok(Some(b"v".to_vec())));
}

/// What a view shows stays as it was, whatever is committed later.
#[test]
fn a_view_reads_what_was_committed_when_it_was_made() {
    let directory = tempfile::tempdir().expect("made");
    let path = directory.path().join("state");
    let on_disk = DiskStore::open(&path, &Owner::nobody()).expect("opened");
    for mut store in [Box::new(MemoryStore::new()) as Box<dyn Store>, Box::new(on_disk)] {
        commit(store.as_mut(), &[(b"a", Some(b"1")), (b"b", Some(b"2"))], false);
        let view = store.view().expect("made");
        commit(store.as_mut(), &[(b"a", Some(b"9")), (b"b", None)], false);
        assert_eq!(view.get(b"a"), Ok(Some(b"1".to_vec())));
        assert_eq!(view.get(b"c"), Ok(None));
        let range = KeyRange { from: b"b", to: None };
        let all = shown(9, &|visit| view.range(range, visit));
        assert_eq!(all, [(b"b".to_vec(), b"2".to_vec())]);
    }
}

#[test]
fn a_fork_of_a_memory_store_has_what_it_had() {
    let mut store = MemoryStore::new();
    commit(&mut store, &[(b"a", Some(b"1"))], true);
    commit(&mut store, &[(b"a", Some(b"2"))], false);
    let fork = store.fork();
    commit(&mut store, &[(b"a", Some(b"3"))], true);
    assert_eq!(fork.get(b"a"), Ok(Some(b"2".to_vec())));
    fork.crash();
    assert_eq!(fork.get(b"a"), Ok(Some(b"1".to_vec())), "and what is durable of it");
}

/// Step of a store's life.
#[derive(Clone, Debug)]
enum Step {
    Commit(BTreeMap<Vec<u8>, Option<Vec<u8>>>, bool),
    View,
    Checkpoint,
    Replace(BTreeMap<Vec<u8>, Vec<u8>>),
}

fn step() -> impl Strategy<Value = Step> {
    let changes = || prop::collection::btree_map(key(), prop::option::of(key()), 0..12);
    prop_oneof![
        8 => (changes(), prop::bool::weighted(0.1))
            .prop_map(|(changes, durable)| Step::Commit(changes, durable)),
        3 => Just(Step::View),
        2 => Just(Step::Checkpoint),
        1 => prop::collection::btree_map(key(), key(), 0..12).prop_map(Step::Replace),
    ]
}

/// Does one step, in the store and in a map beside it.
fn take(store: &mut dyn Store, map: &mut Map, step: &Step) {
    match step {
        Step::Commit(changes, durable) => {
            let pairs: Vec<(&[u8], Option<&[u8]>)> =
                changes.iter().map(|(key, value)| (&key[..], value.as_deref())).collect();
            commit(store, &pairs, *durable);
            for (key, value) in changes {
                match value {
                    Some(value) => drop(map.insert(key.clone(), value.clone())),
                    None => drop(map.remove(key)),
                }
            }
        }
        Step::Checkpoint => drop(store.checkpoint().expect("begun")),
        Step::Replace(entries) => {
            let mut all = entries.clone().into_iter().map(Ok);
            store.replace(&mut all).expect("replaced");
            map.clone_from(entries);
        }
        Step::View => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is in memory, in layers, on its way to the disk or there: a store is a map, and a
    /// view of it the map of its moment.
    #[test]
    fn stores_and_views_are_maps(steps in prop::collection::vec(step(), 1..40)) {
        let directory = tempfile::tempdir().expect("made");
        let path = directory.path().join("state");
        let on_disk = DiskStore::open(&path, &Owner::nobody()).expect("opened");
        for mut store in [Box::new(MemoryStore::new()) as Box<dyn Store>, Box::new(on_disk)] {
            let (mut map, mut views) = (Map::new(), Vec::new());
            for step in &steps {
                take(store.as_mut(), &mut map, step);
                if matches!(step, Step::View) {
                    views.push((store.view().expect("made"), map.clone()));
                }
                for key in map.keys() {
                    prop_assert_eq!(store.get(key).expect("read"), map.get(key).cloned());
                }
            }
            let expected: Vec<_> = map.into_iter().collect();
            prop_assert_eq!(shown(usize::MAX, &|visit| store.scan(KeyRange::ALL, visit)), expected);
            for (view, map) in views {
                let expected: Vec<_> = map.into_iter().collect();
                let mut all = Vec::new();
                view.scan(&mut |key, value| {
                    all.push((key.to_vec(), value.to_vec()));
                    Ok(())
                }).expect("read");
                prop_assert_eq!(all, expected);
            }
        }
    }
}

/// ★ A checkpoint that is over has all that was committed before it, and nothing since.
#[test]
fn a_disk_store_opens_as_of_its_last_checkpoint() {
    let directory = tempfile::tempdir().expect("made");
    let (path, copy) = (directory.path().join("state"), directory.path().join("copy"));
    let mut store = DiskStore::open(&path, &Owner::nobody()).expect("opened");
    commit(&mut store, &[(b"a", Some(b"1")), (b"b", Some(b"1"))], false);
    commit(&mut store, &[(b"a", Some(b"2"))], false);
    let pending = store.pending_bytes();
    let checkpoint = store.checkpoint().expect("begun");
    commit(&mut store, &[(b"a", Some(b"3")), (b"b", None)], false);
    checkpoint.wait().expect("written");
    assert!(store.pending_bytes() < pending, "what is written waits no more");
    copy_folder(&path, &copy);
    let left = DiskStore::open(&copy, &Owner::nobody()).expect("opened");
    let values = [b"a", b"b"].map(|key| left.get(key).expect("read"));
    assert_eq!(values, [Some(b"2".to_vec()), Some(b"1".to_vec())]);
    let values = [b"a", b"b"].map(|key| store.get(key).expect("read"));
    assert_eq!(values, [Some(b"3".to_vec()), None]);
}
