//! The tree as it was.

use super::super::undo::UPDATES_MAX;
use super::*;

/// Bytes that hold all that these tests do.
const ALL: usize = 64 << 20;

impl Kept {
    fn with_versions(bytes_max: usize, leaves_bytes_max: usize) -> Self {
        let mut kept = Self::within(leaves_bytes_max);
        kept.tree.keep_versions(bytes_max);
        kept
    }

    /// Holds a version against what the map held by then, for these keys too.
    fn check_version<'a>(
        &mut self,
        updates: usize,
        model: &Model,
        keys: impl Iterator<Item = &'a Vec<u8>>,
    ) {
        let state = self.store.begin().unwrap();
        let version = self.tree.version(updates).expect("it is kept");
        assert_eq!(version.root(), expected_root(model), "{updates} updates ago");
        assert_eq!(version.count(), model.len() as u64);
        for key in keys {
            let value = model.get(key);
            let proof = version.prove(&*state, Some(key), Some(key)).unwrap();
            let proven = verify_get(version.root(), key, &proof).unwrap();
            assert_eq!(proven, value.map(|value| hashes::value(value)));
            let below = model.range(..key.clone()).next_back().map(|(key, _)| key.clone());
            assert_eq!(version.last_below(&*state, key).unwrap(), below);
            #[cfg(feature = "evm")]
            assert_eq!(
                version.entry(&*state, key).unwrap(),
                value.map(|value| entries::encode(value))
            );
        }
        let all = version.prove(&*state, None, None).unwrap();
        let range = verify_range(version.root(), &[0], None, usize::MAX, &all).unwrap();
        assert!(range.complete && range.entries.len() == model.len());
    }
}

proptest! {
    /// Each state that can still be asked of is the one that was, by the definition, whatever came
    /// since; as many can as fit.
    #[test]
    fn versions_are_what_was(
        blocks in prop::collection::vec(worded_changes(), 1..10),
        bytes_max in prop::sample::select(vec![3_000, 12_000, ALL]),
        leaves_bytes_max in prop::sample::select(vec![0, 1_500, LEAVES_BYTES_MAX]),
    ) {
        let mut kept = Kept::with_versions(bytes_max, leaves_bytes_max);
        let mut models = vec![Model::default()];
        for changes in &blocks {
            kept.change_saying(changes);
            models.push(kept.model.clone());
        }
        let versions = kept.tree.versions();
        prop_assert!(versions == blocks.len() || bytes_max < ALL);
        prop_assert!(kept.tree.undo.bytes() <= bytes_max);
        prop_assert!(kept.tree.version(versions + 1).is_none());
        let keys: Vec<_> = blocks.iter().flat_map(BTreeMap::keys).collect();
        for (updates, model) in models.iter().rev().enumerate().take(versions + 1) {
            kept.check_version(updates, model, keys.iter().copied());
        }
    }
}

/// Many keys, few changes to each of many states: nodes above them are of all, most of none.
#[test]
fn the_last_versions_are_kept_and_no_more() {
    let mut kept = Kept::with_versions(ALL, LEAVES_BYTES_MAX);
    kept.change(&all_put(&many()));
    let keys: Vec<_> = kept.model.keys().step_by(7).cloned().collect();
    let mut models = Vec::new();
    let changes = keys.iter().cycle().zip(0..UPDATES_MAX as u32 + 30);
    for (key, number) in changes {
        models.push(kept.model.clone());
        let value = (number % 5 > 0).then(|| number.to_le_bytes().to_vec());
        kept.change(&BTreeMap::from([(key.clone(), value)]));
    }
    assert_eq!(kept.tree.versions(), UPDATES_MAX);
    for updates in [1, 2, 40, UPDATES_MAX - 1, UPDATES_MAX] {
        kept.check_version(updates, &models[models.len() - updates], keys.iter().step_by(9));
    }
    assert!(kept.tree.version(UPDATES_MAX + 1).is_none());
}

/// An update takes room for the nodes above what it changes, once each, and not for the others.
#[test]
fn a_version_takes_room_for_what_changed() {
    let mut kept = Kept::with_versions(ALL, LEAVES_BYTES_MAX);
    kept.change(&all_put(&many()));
    let of_all = kept.tree.undo.bytes();
    let key = kept.model.keys().nth(77).cloned().expect("there are many");
    kept.change(&BTreeMap::from([(key, Some(vec![9]))]));
    let of_one = kept.tree.undo.bytes() - of_all;
    let depth = shape(&kept.tree).len().ilog2() as usize * 2;
    assert!(of_one <= 300 + depth * size_of::<(NodeId, Node)>(), "{of_one} bytes");
    kept.change(&BTreeMap::new());
    let of_none = kept.tree.undo.bytes() - of_all - of_one;
    assert!(of_none < 200, "{of_none} bytes");
    let (without, memory) = (kept.opened(), kept.tree.memory_bytes());
    assert!(memory >= without.memory_bytes() + kept.tree.undo.bytes());
}

/// A tree that is opened has no past, and keeps what comes as the one before it did.
#[test]
fn versions_begin_where_a_tree_is_opened() {
    let mut kept = Kept::with_versions(ALL, LEAVES_BYTES_MAX);
    kept.change(&all_put(&many()));
    kept.tree = kept.opened();
    assert_eq!(kept.tree.versions(), 0);
    let (model, key) = (kept.model.clone(), kept.model.keys().next().cloned().expect("many"));
    kept.change(&BTreeMap::from([(key.clone(), None)]));
    kept.check_version(1, &model, [key].iter());
    kept.tree.keep_versions(0);
    kept.change(&BTreeMap::from([(vec![1], Some(vec![1]))]));
    assert_eq!((kept.tree.versions(), kept.tree.undo.bytes()), (0, 0));
}
