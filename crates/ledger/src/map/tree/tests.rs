use super::arena::Bucket;
use super::leaves::{HashedLeaf, Head, Leaves};
use super::*;
use crate::map::hashes;
use crate::map::proof::{verify_get, verify_range};
use proptest::prelude::*;
use quorate_crypto::hash_keyed;
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_storage::{MemoryStore, Store};
use quorate_types::service::Visitor;
use std::collections::BTreeMap;

mod versions;

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
            Node::Inner(Inner { bit, stale, children: [left, right], hash, .. }) => {
                below.extend([right, left]);
                assert!(!stale);
                format!("{bit} {hash}")
            }
            Node::Bucket(Bucket { prefix, count, hash, .. }) => {
                format!("{prefix:?} {count} {hash}")
            }
            Node::Vacant => panic!("part of the tree"),
        });
    }
    let vacant = tree.arena.nodes().iter().filter(|node| matches!(node, Node::Vacant)).count();
    assert_eq!(shape.len() + vacant, tree.arena.nodes().len(), "every node is in the tree or free");
    assert_eq!(vacant, tree.arena.vacant().len());
    shape
}

/// Leaves that are kept are those of the model, by its definition. Returns how many buckets of two
/// keys and more there are, and the bytes of leaves of each that has them.
fn leaves_of(tree: &Tree, model: &Model) -> (usize, Vec<usize>) {
    let (mut buckets, mut kept) = (0, Vec::new());
    for node in tree.arena.nodes() {
        let Node::Bucket(Bucket { prefix, count: 2.., leaves, .. }) = node else { continue };
        buckets += 1;
        if leaves.is_empty() {
            continue;
        }
        let of_model = model.iter().filter(|(key, _)| prefix.departure(key).is_none());
        let bits: Vec<_> = of_model.clone().map(|(key, _)| bits_of(key)).collect();
        let split = |at: usize| match &bits[at..] {
            [this, next, ..] => (0..).find(|bit| this[*bit] != next[*bit]).unwrap() as u16,
            _ => 0,
        };
        let expected: Box<[HashedLeaf]> = (0..)
            .zip(of_model)
            .map(|(at, (key, value))| HashedLeaf {
                head: Head::of(key),
                hash: expected_leaf(key, value),
                split: split(at),
            })
            .collect();
        assert_eq!(leaves.0, expected);
        kept.push(expected.len() * Leaves::LEAF_BYTES);
    }
    (buckets, kept)
}

/// A store and the tree over it.
#[derive(Default)]
struct Kept {
    store: MemoryStore,
    tree: Tree,
    model: Model,
}

/// What a tree is told of the value that a changed key had.
#[derive(Clone, Copy, Debug)]
enum Word {
    Right,
    None,
    /// That of a change before it in the block, if there is one.
    OfAnother,
}

impl Kept {
    fn within(leaves_bytes_max: usize) -> Self {
        Self { tree: Tree::new(leaves_bytes_max), ..Self::default() }
    }

    fn change(&mut self, changes: &BTreeMap<Vec<u8>, Option<Vec<u8>>>) {
        let changes =
            changes.iter().map(|(key, value)| (key.clone(), (value.clone(), Word::Right)));
        self.change_saying(&changes.collect());
    }

    fn change_saying(&mut self, changes: &Changes) {
        let mut state = self.store.begin().unwrap();
        let mut changed = Vec::new();
        let mut last = None;
        let entry = |key| self.model.get(key).map(|value| entries::encode(value));
        let before: Vec<_> = changes.keys().map(entry).collect();
        for ((key, (value, word)), entry_before) in changes.iter().zip(&before) {
            let entry = value.as_deref().map(entries::encode);
            entries::set(&mut *state, key, entry.as_deref()).unwrap();
            let before = match value {
                Some(value) => self.model.insert(key.clone(), value.clone()),
                None => self.model.remove(key),
            };
            let before = before.as_deref().map(hashes::value);
            let said = match word {
                Word::Right => before,
                Word::None => None,
                Word::OfAnother => last,
            };
            last = before.or(last);
            let now = value.as_deref().map(hashes::value);
            changed.push(Change { key, before: said, entry: entry_before.as_deref(), now });
        }
        self.tree.update(&*state, &changed).unwrap();
        state.commit(true).unwrap();
    }

    fn opened(&mut self) -> Tree {
        self.tree.reopened(&*self.store.begin().unwrap()).unwrap()
    }
}

/// Short ones, and some that differ about where their heads end.
fn keys() -> impl Strategy<Value = Vec<u8>> {
    let end = prop::collection::vec(prop::sample::select(vec![0, 1, b'a', 0x80, 0xff]), 1..5);
    let common = prop::sample::select(vec![0, 0, 0, 14, 16]);
    (common, end).prop_map(|(common, end)| [vec![b'a'; common], end].concat())
}

type Changes = BTreeMap<Vec<u8>, (Option<Vec<u8>>, Word)>;

/// Changes of few different keys and values, so that many meet.
fn worded_changes() -> impl Strategy<Value = Changes> {
    let word = prop::sample::select(vec![Word::Right, Word::Right, Word::None, Word::OfAnother]);
    changes().prop_flat_map(move |changes| {
        let words = prop::collection::vec(word.clone(), changes.len());
        words.prop_map(move |words| {
            let with_words = changes.clone().into_iter().zip(words);
            with_words.map(|((key, value), word)| (key, (value, word))).collect()
        })
    })
}

fn changes() -> impl Strategy<Value = BTreeMap<Vec<u8>, Option<Vec<u8>>>> {
    let value = prop::option::weighted(0.6, prop::collection::vec(any::<u8>(), 0..3));
    prop::collection::btree_map(keys(), value, 0..80)
}

proptest! {
    /// The root is that of the keys that there are, whatever was done to come there and said of it,
    /// and the tree in memory is the one that opening the state gives. Leaves that are kept are the
    /// state's: all of them, some, or none, as their budget allows.
    #[test]
    fn the_tree_follows_from_what_the_state_holds(
        blocks in prop::collection::vec(worded_changes(), 1..8),
        leaves_bytes_max in prop::sample::select(vec![0, 1_500, LEAVES_BYTES_MAX]),
    ) {
        let mut kept = Kept::within(leaves_bytes_max);
        for changes in &blocks {
            kept.change_saying(changes);
            prop_assert_eq!(kept.tree.root(), expected_root(&kept.model));
            prop_assert_eq!(kept.tree.count(), kept.model.len() as u64);
            let opened = kept.opened();
            prop_assert_eq!(shape(&opened), shape(&kept.tree));
            for tree in [&opened, &kept.tree] {
                let (buckets, leaves) = leaves_of(tree, &kept.model);
                let bytes = leaves.iter().sum::<usize>();
                prop_assert_eq!(bytes, tree.arena.leaves_bytes());
                prop_assert!(bytes <= leaves_bytes_max);
                prop_assert!(leaves.len() == buckets || leaves_bytes_max < LEAVES_BYTES_MAX);
            }
        }
        let all = kept.model.keys().map(|key| (key.clone(), None)).collect();
        kept.change(&all);
        prop_assert_eq!(kept.tree.root(), Tree::default().root());
        prop_assert!(shape(&kept.tree).is_empty());
        prop_assert_eq!(kept.tree.arena.leaves_bytes(), 0);
    }

    #[test]
    fn the_last_key_below_is_found(changes in changes(), key in keys()) {
        let mut kept = Kept::default();
        kept.change(&changes);
        let expected = kept.model.range(..key.clone()).next_back().map(|(key, _)| key.clone());
        let state = kept.store.begin().unwrap();
        prop_assert_eq!(kept.tree.newest().last_below(&*state, &key).unwrap(), expected);
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
        let proof = kept.tree.newest().prove(&*state, Some(&deepest), Some(&deepest)).unwrap();
        let value = verify_get(root, &deepest, &proof).unwrap();
        assert_eq!(value, Some(hashes::value(&[1])));
        let before = kept.tree.newest().last_below(&*state, &deepest).unwrap().unwrap();
        let proof = kept.tree.newest().prove(&*state, Some(&before), None).unwrap();
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
fn memory_is_that_of_nodes_and_of_the_prefixes_and_leaves_beside_them() {
    let mut kept = Kept::default();
    assert_eq!(kept.tree.memory_bytes(), 0);
    let keys = [0, 0xff].map(|byte| (vec![byte; 1_000], Some(vec![1])));
    let few: BTreeMap<_, _> = (0..16).map(|number| (vec![0, number], Some(vec![1]))).collect();
    kept.change(&few.into_iter().chain(keys).collect());
    let Tree { arena, .. } = &kept.tree;
    let places = arena.nodes().capacity() * size_of::<Node>();
    let free = arena.vacant().capacity() * size_of::<NodeId>();
    assert_eq!(arena.leaves_bytes(), 17 * 52, "of all but the lone key");
    let prefixes = kept.tree.memory_bytes() - places - free - arena.leaves_bytes();
    assert!((1_000..1_100).contains(&prefixes), "{prefixes}: of the lone key, and of a few bytes");
    assert!(free > 0 && places > free);
}

#[test]
fn a_state_that_is_not_the_services_is_noticed() {
    let mut kept = Kept::default();
    kept.change(&BTreeMap::from([(b"a".to_vec(), Some(Vec::new()))]));
    let mut state = kept.store.begin().unwrap();
    state.put(b"kb", &[0; 31]).unwrap();
    assert_eq!(kept.tree.reopened(&*state).unwrap_err(), entries::damaged());
    state.delete(b"kb").unwrap();
    let entry = entries::encode(&[]);
    for key in [Vec::new(), vec![0xff; 1_025]] {
        let key = [b"k", &key[..]].concat();
        state.put(&key, &entry).unwrap();
        assert_eq!(kept.tree.reopened(&*state).unwrap_err(), entries::damaged());
        state.delete(&key).unwrap();
    }
    kept.tree.reopened(&*state).unwrap();
    state.delete(b"ka").unwrap();
    let error = kept.tree.newest().prove(&*state, None, None).unwrap_err();
    assert_eq!(error.0, "the state of the map is damaged");
}

/// A state that nobody may read.
struct Unread;

impl State for Unread {
    fn get(&self, _: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        Err(StateError("read".into()))
    }

    fn put(&mut self, _: &[u8], _: &[u8]) -> Result<(), StateError> {
        unreachable!("a tree does not write")
    }

    fn delete(&mut self, _: &[u8]) -> Result<(), StateError> {
        unreachable!("a tree does not write")
    }

    fn scan(&self, _: KeyRange<'_>, _: &mut Visitor<'_>) -> Result<(), StateError> {
        Err(StateError("read".into()))
    }
}

/// As many keys as a few hundred buckets have, with their values.
fn many() -> Model {
    let key = |number: u16| hash_keyed(&[0; 32], &number.to_le_bytes()).0.to_vec();
    (0..2_000).map(|number| (key(number), number.to_le_bytes().to_vec())).collect()
}

fn all_put(model: &Model) -> BTreeMap<Vec<u8>, Option<Vec<u8>>> {
    model.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect()
}

#[test]
fn values_that_are_replaced_are_followed_without_reading_the_state() {
    for leaves_bytes_max in [LEAVES_BYTES_MAX, 0] {
        let mut kept = Kept::within(leaves_bytes_max);
        kept.change(&all_put(&many()));
        let opened = kept.opened();
        for mut tree in [kept.tree, opened] {
            let mut model = kept.model.clone();
            let mut change = |(key, value): (&Vec<u8>, &mut Vec<u8>)| {
                let before = Some(hashes::value(value));
                value.push(7);
                (key.clone(), before, Some(hashes::value(value)))
            };
            let third = model.iter_mut().step_by(3).map(&mut change).collect::<Vec<_>>();
            let changes = third.iter().map(|(key, before, now)| Change {
                key,
                before: *before,
                entry: None,
                now: *now,
            });
            let followed = tree.update(&Unread, &changes.collect::<Vec<_>>());
            if leaves_bytes_max == 0 {
                assert_eq!(followed, Err(StateError("read".into())));
            } else {
                assert_eq!(followed, Ok(()));
                assert_eq!(tree.root(), expected_root(&model));
                leaves_of(&tree, &model);
            }
        }
    }
}

/// Keys that are new to buckets with room for them, one after the other.
#[test]
fn keys_that_are_new_are_followed_without_reading_the_state() {
    let mut kept = Kept::default();
    kept.change(&all_put(&many()));
    let mut followed = 0;
    for number in 0..500_u16 {
        let key = hash_keyed(&[1; 32], &number.to_le_bytes()).0.to_vec();
        let now = Some(hashes::value(&[7]));
        let has_followed =
            kept.tree.update(&Unread, &[Change { key: &key, before: None, entry: None, now }]);
        if has_followed.is_ok() {
            kept.model.insert(key, vec![7]);
            followed += 1;
        } else {
            // Its bucket was full; the tree is of no use any more.
            let mut state = kept.store.begin().unwrap();
            for (key, value) in &kept.model {
                entries::set(&mut *state, key, Some(&entries::encode(value))).unwrap();
            }
            kept.tree = kept.tree.reopened(&*state).unwrap();
            state.commit(true).unwrap();
        }
    }
    assert!(followed > 250, "{followed} of 500: most buckets have room for some more");
    assert_eq!(kept.tree.root(), expected_root(&kept.model));
    leaves_of(&kept.tree, &kept.model);
}

/// ★ Two keys, and a third whose neighbour goes on behind its head.
fn a_key_is_not_taken_to_end_with_its_head() {
    let mut kept = Kept::default();
    let key = |end: &[u8]| [&[b'a'; 16], end].concat();
    let put = |end| (key(end), Some(vec![1]));
    kept.change(&[put(&[0x80]), put(&[0xff])].into());
    kept.change(&[put(&[0x81])].into());
    assert_eq!(kept.tree.root(), expected_root(&kept.model));
}

#[test]
fn a_head_is_all_of_a_short_key_alone() {
    assert_noticed(Mutant::KvHeadIsKey, a_key_is_not_taken_to_end_with_its_head);
}

/// ★ A key that is new, of which the tree is told that it had the value of its neighbour.
fn a_new_key_is_not_taken_for_its_neighbour() {
    let mut kept = Kept::default();
    let put = |value: u8, word| (Some(vec![value]), word);
    kept.change_saying(&[0x10, 0x30].map(|key| (vec![key], put(key, Word::None))).into());
    let new = [(vec![0x10], put(0x10, Word::Right)), (vec![0x12], put(7, Word::OfAnother))];
    kept.change_saying(&new.into());
    assert_eq!(kept.tree.count(), 3);
    assert_eq!(kept.tree.root(), expected_root(&kept.model));
}

#[test]
fn the_tree_believes_nobody_that_a_key_was_there() {
    assert_noticed(Mutant::KvAnyLeaf, a_new_key_is_not_taken_for_its_neighbour);
}

/// Leaves that are used stay in memory, where there is room for half of them.
#[test]
fn leaves_that_are_of_no_use_are_given_up() {
    let mut kept = Kept::within(1_000 * Leaves::LEAF_BYTES);
    kept.change(&all_put(&many()));
    let used: Vec<_> = kept.model.keys().take(400).cloned().collect();
    for round in 0..20_u8 {
        // The others are changed in turn, and read again.
        let other = kept.model.keys().skip(400 + usize::from(round)).step_by(50).cloned();
        let changed = used.iter().cloned().chain(other.collect::<Vec<_>>());
        kept.change(&changed.map(|key| (key, Some(vec![round]))).collect());
    }
    let change = |key| {
        let before = Some(hashes::value(&kept.model[key]));
        Change { key, before, entry: None, now: Some(hashes::value(b"new")) }
    };
    let followed = used.iter().filter(|key| kept.tree.update(&Unread, &[change(key)]).is_ok());
    assert!(followed.count() >= 380, "those in use are there, but for a bucket at their end");
}

/// A budget that is smaller holds for what is kept already, and for trees that are opened later.
#[test]
fn leaves_are_given_up_when_their_budget_shrinks() {
    let mut kept = Kept::default();
    kept.change(&all_put(&many()));
    let root = kept.tree.root();
    kept.tree.limit_leaves(10_000);
    let opened = kept.opened();
    for tree in [&kept.tree, &opened] {
        let (buckets, leaves) = leaves_of(tree, &kept.model);
        assert!(tree.arena.leaves_bytes() <= 10_000);
        assert!(!leaves.is_empty() && leaves.len() < buckets);
        assert_eq!(tree.root(), root);
    }
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
