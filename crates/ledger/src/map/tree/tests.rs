use super::*;
use crate::map::proof::{verify_get, verify_range};
use proptest::prelude::*;
use quorate_crypto::hash_keyed;
use quorate_storage::{MemoryStore, Store};
use std::collections::BTreeMap;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// The root by the definition, key by key, sharing nothing with the tree.
pub(crate) fn expected_root(model: &Model) -> Digest {
    let leaves: Vec<(Vec<u8>, Digest)> =
        model.iter().map(|(key, value)| (bits_of(key), expected_leaf(key, value))).collect();
    let top = if leaves.is_empty() { [0; 32] } else { expected_top(&leaves).0 };
    let content = [&(model.len() as u64).to_le_bytes()[..], &top].concat();
    hash_keyed(b"quorate v1 key-value: the root  ", &content)
}

fn bits_of(key: &[u8]) -> Vec<u8> {
    let bits =
        key.iter().flat_map(|byte| (0..=8).map(move |n| (0x100 | u16::from(*byte)) >> (8 - n) & 1));
    bits.chain([0; 100]).map(|bit| bit as u8).collect()
}

fn expected_leaf(key: &[u8], value: &[u8]) -> Digest {
    let value = hash_keyed(b"quorate v1 key-value: a value   ", value);
    let length = u16::try_from(key.len()).unwrap().to_le_bytes();
    let content = [&length, key, &value.0].concat();
    hash_keyed(b"quorate v1 key-value: a leaf    ", &content)
}

fn expected_top(leaves: &[(Vec<u8>, Digest)]) -> Digest {
    if let [(_, hash)] = leaves {
        return *hash;
    }
    let at = (0..).find(|at| leaves.iter().any(|leaf| leaf.0[*at] != leaves[0].0[*at])).unwrap();
    let (left, right): (Vec<_>, Vec<_>) = leaves.iter().cloned().partition(|leaf| leaf.0[at] == 0);
    let mut key = *b"quorate v1 key-value: a node, at";
    key[30..].copy_from_slice(&u16::try_from(at).unwrap().to_le_bytes());
    hash_keyed(&key, &[expected_top(&left).0, expected_top(&right).0].concat())
}

/// Nodes of the tree that are in memory, from the top.
fn shape(tree: &Tree) -> Vec<String> {
    let mut shape = Vec::new();
    let mut below: Vec<NodeId> = tree.top.into_iter().collect();
    while let Some(id) = below.pop() {
        shape.push(match tree.arena.node(id) {
            Node::Inner(Inner { bit, stale, children: [left, right], hash }) => {
                below.extend([right, left]);
                assert!(!stale);
                format!("{bit} {hash}")
            }
            Node::Bucket(Bucket { prefix, count, hash }) => format!("{prefix:?} {count} {hash}"),
            Node::Vacant => panic!("part of the tree"),
        });
    }
    let vacant = tree.arena.nodes.iter().filter(|node| matches!(node, Node::Vacant)).count();
    assert_eq!(shape.len() + vacant, tree.arena.nodes.len(), "every node is in the tree or free");
    assert_eq!(vacant, tree.arena.vacant.len());
    shape
}

/// A store and the tree over it.
#[derive(Default)]
struct Kept {
    store: MemoryStore,
    tree: Tree,
    model: Model,
}

impl Kept {
    fn change(&mut self, changes: &BTreeMap<Vec<u8>, Option<Vec<u8>>>) {
        let mut state = self.store.begin().unwrap();
        let mut changed = Vec::new();
        for (key, value) in changes {
            let entry = value.as_deref().map(entries::encode);
            entries::set(&mut *state, key, entry.as_deref()).unwrap();
            changed.push((key.as_slice(), value.as_deref().map(hashes::value)));
            match value {
                Some(value) => drop(self.model.insert(key.clone(), value.clone())),
                None => drop(self.model.remove(key)),
            }
        }
        self.tree.update(&*state, &changed).unwrap();
        state.commit(true).unwrap();
    }

    fn opened(&mut self) -> Tree {
        Tree::open(&*self.store.begin().unwrap()).unwrap()
    }
}

fn keys() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0, 1, b'a', 0x80, 0xff]), 1..5)
}

fn changes() -> impl Strategy<Value = BTreeMap<Vec<u8>, Option<Vec<u8>>>> {
    let value = prop::option::weighted(0.6, prop::collection::vec(any::<u8>(), 0..3));
    prop::collection::btree_map(keys(), value, 0..80)
}

proptest! {
    /// The root is that of the keys that there are, whatever was done to come there, and the tree
    /// in memory is the one that opening the state gives.
    #[test]
    fn the_tree_follows_from_what_the_state_holds(
        blocks in prop::collection::vec(changes(), 1..8),
    ) {
        let mut kept = Kept::default();
        for changes in &blocks {
            kept.change(changes);
            prop_assert_eq!(kept.tree.root(), expected_root(&kept.model));
            prop_assert_eq!(kept.tree.count(), kept.model.len() as u64);
            let opened = kept.opened();
            prop_assert_eq!(shape(&opened), shape(&kept.tree));
        }
        let all = kept.model.keys().map(|key| (key.clone(), None)).collect();
        kept.change(&all);
        prop_assert_eq!(kept.tree.root(), Tree::default().root());
        prop_assert!(shape(&kept.tree).is_empty());
    }

    #[test]
    fn the_last_key_below_is_found(changes in changes(), key in keys()) {
        let mut kept = Kept::default();
        kept.change(&changes);
        let expected = kept.model.range(..key.clone()).next_back().map(|(key, _)| key.clone());
        let state = kept.store.begin().unwrap();
        prop_assert_eq!(kept.tree.last_below(&*state, &key).unwrap(), expected);
    }
}

/// A longest key, and for each of its bits one that departs there: the deepest tree that there is.
fn chain() -> BTreeMap<Vec<u8>, Option<Vec<u8>>> {
    const LONGEST: usize = super::super::bits::KEY_BYTES_MAX;
    let mut keys = BTreeMap::from([(vec![0xff; LONGEST], Some(vec![1]))]);
    for bytes in 0..LONGEST {
        for bits in 0..8 {
            let mut key = vec![0xff; bytes];
            key.push(!(0xffu16 >> bits) as u8);
            keys.insert(key, Some(vec![2]));
        }
    }
    for bytes in 1..LONGEST {
        keys.insert(vec![0xff; bytes], Some(vec![3]));
    }
    keys
}

#[test]
fn the_deepest_tree_takes_no_stack() {
    let mut kept = Kept::default();
    // A thread with little of it: a walk that recursed would not return.
    let thread = std::thread::Builder::new().stack_size(128 * 1024);
    let walk = move || {
        let keys = chain();
        assert_eq!(keys.len(), 9_216);
        kept.change(&keys);
        let root = kept.tree.root();
        assert_eq!(kept.opened().root(), root);
        let deepest = vec![0xff; 1_024];
        let state = kept.store.begin().unwrap();
        let proof = kept.tree.prove(&*state, Some(&deepest), Some(&deepest)).unwrap();
        let value = verify_get(root, &deepest, &proof).unwrap();
        assert_eq!(value, Some(hashes::value(&[1])));
        let before = kept.tree.last_below(&*state, &deepest).unwrap().unwrap();
        let proof = kept.tree.prove(&*state, Some(&before), None).unwrap();
        let range = verify_range(root, &deepest, None, 1, &proof).unwrap();
        assert!(range.complete && range.entries.len() == 1);
        drop(state);
        kept.change(&keys.into_keys().map(|key| (key, None)).collect());
        assert_eq!(kept.tree.root(), Tree::default().root());
    };
    thread.spawn(walk).unwrap().join().unwrap();
}

/// In whatever order blocks bring the keys of the deepest tree.
#[test]
fn a_deep_tree_grows_from_both_ends() {
    let keys: Vec<_> = chain().into_iter().step_by(40).collect();
    let expected = {
        let mut kept = Kept::default();
        kept.change(&keys.iter().cloned().collect());
        kept.tree.root()
    };
    for mut blocks in [keys.chunks(7).collect::<Vec<_>>(), keys.rchunks(7).collect()] {
        for _ in 0..2 {
            let mut kept = Kept::default();
            blocks.iter().for_each(|block| kept.change(&block.iter().cloned().collect()));
            assert_eq!(kept.tree.root(), expected);
            blocks.reverse();
        }
    }
}

/// One key on the left, on the right as many as a bucket holds and one fewer, and back.
#[test]
fn neighbours_are_one_bucket_as_soon_as_they_fit() {
    let mut kept = Kept::default();
    let right = |number: u8| vec![0x80 | number];
    let mut keys: BTreeMap<_, _> = (1..16).map(|number| (right(number), Some(vec![1]))).collect();
    keys.insert(vec![0], Some(vec![1]));
    kept.change(&keys);
    assert_eq!(shape(&kept.tree).len(), 1, "16 keys");
    kept.change(&BTreeMap::from([(right(16), Some(vec![1]))]));
    assert_eq!(shape(&kept.tree).len(), 3, "17 keys");
    kept.change(&BTreeMap::from([(right(16), None)]));
    assert_eq!(shape(&kept.tree).len(), 1, "16 keys again");
}

#[test]
fn memory_is_that_of_nodes_and_of_the_prefixes_beside_them() {
    let mut kept = Kept::default();
    assert_eq!(kept.tree.memory_bytes(), 0);
    let keys = [0, 0xff].map(|byte| (vec![byte; 1_000], Some(vec![1])));
    let few: BTreeMap<_, _> = (0..16).map(|number| (vec![0, number], Some(vec![1]))).collect();
    kept.change(&few.into_iter().chain(keys).collect());
    let Tree { arena, .. } = &kept.tree;
    let places = arena.nodes.capacity() * size_of::<Node>();
    let free = arena.vacant.capacity() * size_of::<NodeId>();
    let prefixes = kept.tree.memory_bytes() - places - free;
    assert!((1_000..1_100).contains(&prefixes), "{prefixes}: of the lone key, and of a few bytes");
    assert!(free > 0 && places > free);
}

#[test]
fn a_state_that_is_not_the_services_is_noticed() {
    let mut kept = Kept::default();
    kept.change(&BTreeMap::from([(b"a".to_vec(), Some(Vec::new()))]));
    let mut state = kept.store.begin().unwrap();
    state.put(b"kb", &[0; 31]).unwrap();
    assert_eq!(Tree::open(&*state).unwrap_err(), entries::damaged());
    state.delete(b"kb").unwrap();
    let entry = entries::encode(&[]);
    for key in [Vec::new(), vec![0xff; 1_025]] {
        let key = [b"k", &key[..]].concat();
        state.put(&key, &entry).unwrap();
        assert_eq!(Tree::open(&*state).unwrap_err(), entries::damaged());
        state.delete(&key).unwrap();
    }
    Tree::open(&*state).unwrap();
    state.delete(b"ka").unwrap();
    let error = kept.tree.prove(&*state, None, None).unwrap_err();
    assert_eq!(error.0, "the state of the map is damaged");
}

/// Formats are for ever.
#[test]
fn the_root_of_a_few_keys_is_this() {
    let mut kept = Kept::default();
    assert_eq!(
        kept.tree.root().to_hex(),
        "90136d9e83452efdc1c94878bdb8a4bb345940fbdeb11dfec76bba824cdb0863"
    );
    let pairs = [("a", "1"), ("ab", ""), ("b", "22"), ("\u{0}", "3")];
    let changes = pairs.map(|(key, value)| (key.into(), Some(value.into())));
    kept.change(&BTreeMap::from(changes));
    assert_eq!(
        kept.tree.root().to_hex(),
        "108cbac79305719ac506f0b983c6e7ec98d98bd6de8068d7b8590e9e18d47343"
    );
}
