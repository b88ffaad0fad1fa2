use super::*;
use crate::kv::Kv;
use crate::map::entries;
use crate::map::tree::Tree;
use proptest::prelude::*;
use quorate_storage::{MemoryStore, Store};
use quorate_types::service::{Service, State};
use std::collections::BTreeMap;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A tree over these, with the state.
fn with_tree<T>(model: &Model, check: impl FnOnce(&Tree, &dyn State) -> T) -> T {
    let mut store = MemoryStore::new();
    let mut state = store.begin().unwrap();
    for (key, value) in model {
        entries::set(&mut *state, key, Some(&entries::encode(value))).unwrap();
    }
    check(&Tree::default().reopened(&*state).unwrap(), &*state)
}

fn keys() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0, 1, b'a', 0x80, 0xff]), 1..4)
}

fn models() -> impl Strategy<Value = Model> {
    prop::collection::btree_map(keys(), prop::collection::vec(any::<u8>(), 0..2), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// A present key is shown with its value, an absent one as absent; nothing else can be shown.
    #[test]
    fn a_key_is_shown_as_it_is(model in models(), key in keys()) {
        with_tree(&model, |tree, state| {
            let proof = tree.newest().prove(state, Some(&key), Some(&key)).unwrap();
            let expected = model.get(&key).map(|value| value_hash(value));
            assert_eq!(verify_get(tree.root(), &key, &proof), Ok(expected));
        });
    }

    /// A proof that anything is changed in is refused.
    #[test]
    fn a_changed_proof_is_refused(
        model in models(),
        key in keys(),
        at in any::<prop::sample::Index>(),
        change in 1u8..,
    ) {
        with_tree(&model, |tree, state| {
            let root = tree.root();
            let proof = tree.newest().prove(state, Some(&key), Some(&key)).unwrap();
            let mut changed = proof.to_vec();
            changed[at.index(proof.len())] ^= change;
            assert!(verify_get(root, &key, &changed).is_err());
            assert!(verify_range(root, &key, None, 1_000, &changed).is_err());
            assert!(verify_get(root, &key, &proof[..at.index(proof.len())]).is_err());
            let longer = [&proof[..], &[change]].concat();
            let trailing = ProofError::Malformed("something follows it");
            assert_eq!(verify_get(root, &key, &longer), Err(trailing));
        });
    }

    /// Any bytes are answered, without a panic, and never believed.
    #[test]
    fn bytes_that_are_no_proof_are_refused(bytes in prop::collection::vec(0u8..4, 0..300)) {
        let root = Digest([7; 32]);
        prop_assert!(verify_get(root, b"a", &bytes).is_err());
        prop_assert!(verify_range(root, b"a", None, 1, &bytes).is_err());
    }

    /// However the tree is pruned, a range is what the state holds of it, or refused.
    #[test]
    fn no_pruning_hides_a_key_of_a_range(
        model in models(),
        shown in prop::collection::vec(any::<bool>(), 200),
        from in keys(),
        to in prop::option::of(keys()),
    ) {
        with_tree(&model, |tree, state| {
            let whole = tree.newest().prove(state, None, None).unwrap();
            let whole = Proof::open(tree.root(), &whole).unwrap();
            let pruned = prune(&whole, &mut shown.iter().copied());
            let proof = encode(model.len() as u64, &pruned);
            let is_in = |key: &[u8]| key >= &from[..] && to.as_ref().is_none_or(|to| key < &to[..]);
            let expected: Vec<(Bytes, Digest)> = model
                .iter()
                .filter(|(key, _)| is_in(key))
                .map(|(key, value)| (Bytes::copy_from_slice(key), value_hash(value)))
                .collect();
            match verify_range(tree.root(), &from, to.as_deref(), 1_000, &proof) {
                Ok(range) if range.complete => assert_eq!(range.entries, expected),
                Ok(range) => {
                    assert!(!range.entries.is_empty());
                    assert_eq!(range.entries, expected[..range.entries.len()]);
                }
                Err(error) => assert_eq!(error, ProofError::Gap),
            }
            for key in model.keys().chain([&from]) {
                match verify_get(tree.root(), key, &proof) {
                    Ok(value) => assert_eq!(value, model.get(key).map(|value| value_hash(value))),
                    Err(error) => assert_eq!(error, ProofError::KeyPruned),
                }
            }
        });
    }
}

/// The tree with some of its nodes pruned: one decision for each node, from the top.
fn prune(proof: &Proof, shown: &mut impl Iterator<Item = bool>) -> Vec<Node> {
    let mut pruned = Vec::new();
    let mut parts: Vec<(usize, usize)> = vec![(0, proof.nodes.len())];
    while let Some((at, end)) = parts.pop() {
        if at == end {
            continue;
        }
        if !shown.next().unwrap_or(true) && at > 0 {
            pruned.push(Node::Pruned(top_of(&proof.nodes[at..end], at)));
            continue;
        }
        pruned.push(match &proof.nodes[at] {
            Node::Inner { bit, right } => {
                parts.extend([(*right, end), (at + 1, *right)]);
                Node::Inner { bit: *bit, right: 0 }
            }
            Node::Leaf { key, value } => Node::Leaf { key: key.clone(), value: *value },
            Node::Pruned(hash) => Node::Pruned(*hash),
        });
    }
    pruned
}

fn top_of(nodes: &[Node], at: usize) -> Digest {
    match &nodes[0] {
        Node::Pruned(hash) => *hash,
        Node::Leaf { key, value } => hashes::leaf(key, value),
        Node::Inner { bit, right } => {
            let (left, right) = (&nodes[1..right - at], &nodes[right - at..]);
            hashes::inner(*bit, &top_of(left, at + 1), &top_of(right, at + 1 + left.len()))
        }
    }
}

fn encode(count: u64, nodes: &[Node]) -> Bytes {
    let mut proof = ProofWriter::new(count);
    for node in nodes {
        match node {
            Node::Pruned(hash) => proof.pruned(hash),
            Node::Leaf { key, value } => proof.leaf(key, value),
            Node::Inner { bit, .. } => proof.inner(*bit),
        }
    }
    proof.finish()
}

fn leaf(key: &str) -> Node {
    Node::Leaf { key: Bytes::copy_from_slice(key.as_bytes()), value: value_hash(b"") }
}

fn pruned(nodes: &[Node]) -> Node {
    Node::Pruned(top_of(nodes, 0))
}

fn inner(bit: u16) -> Node {
    Node::Inner { bit, right: 0 }
}

/// The root over `a`, `b` and `c`: (a, (b, c)) by their last bits.
fn root_of_three() -> Digest {
    let model = ["a", "b", "c"].map(|key| (key.as_bytes().to_vec(), Vec::new()));
    with_tree(&Model::from(model), |tree, _| tree.root())
}

fn b_and_c() -> Vec<Node> {
    vec![Node::Inner { bit: 8, right: 2 }, leaf("b"), leaf("c")]
}

/// ★ A node's position is part of its hash: a proof cannot turn a key's way off to another leaf.
fn a_key_is_not_led_astray() {
    let honest = [inner(7), leaf("a"), inner(8), leaf("b"), leaf("c")];
    let root = root_of_three();
    assert_eq!(verify_get(root, b"c", &encode(3, &honest)), Ok(Some(value_hash(b""))));
    // The highest bit of "c" is 0, so it would have to be where "a" is.
    let astray = [inner(1), leaf("a"), pruned(&b_and_c())];
    assert_eq!(verify_get(root, b"c", &encode(3, &astray)), Err(ProofError::OtherRoot));
}

/// ★ The number of keys is part of the root.
fn keys_are_counted() {
    let honest = [inner(7), leaf("a"), pruned(&b_and_c())];
    let root = root_of_three();
    assert_eq!(verify_get(root, b"a", &encode(3, &honest)), Ok(Some(value_hash(b""))));
    for count in [1, 2, 4, u64::MAX] {
        let other = verify_get(root, b"a", &encode(count, &honest));
        assert_eq!(other, Err(ProofError::OtherRoot), "{count} keys");
    }
}

/// ★ Absent is what the leaf that the key leads to says, and no other.
fn a_key_is_absent_only_where_it_would_be() {
    let proof = encode(3, &[inner(7), leaf("a"), pruned(&b_and_c())]);
    assert_eq!(verify_get(root_of_three(), b"c", &proof), Err(ProofError::KeyPruned));
    assert_eq!(verify_get(root_of_three(), b"aa", &proof), Ok(None));
}

/// ★ Nothing is left out of a range.
fn a_range_has_no_gap() {
    let root = root_of_three();
    let range = |from: &[u8], to: Option<&[u8]>, limit, nodes: &[Node]| {
        let range = verify_range(root, from, to, limit, &encode(3, nodes));
        range.map(|range| (range.entries.len(), range.complete))
    };
    let whole = [inner(7), leaf("a"), inner(8), leaf("b"), leaf("c")];
    assert_eq!(range(b"a", None, 3, &whole), Ok((3, true)));
    assert_eq!(range(b"a", Some(b"c"), 3, &whole), Ok((2, true)));
    assert_eq!(range(b"d", None, 3, &whole), Ok((0, true)));
    assert_eq!(range(b"", Some(b"a"), 3, &whole), Ok((0, true)));
    assert_eq!(range(b"a", None, 2, &whole), Err(ProofError::BeyondLimit));

    let without_a = [inner(7), pruned(&[leaf("a")]), inner(8), leaf("b"), leaf("c")];
    assert_eq!(range(b"a", None, 3, &without_a), Err(ProofError::Gap));
    assert_eq!(range(b"b", None, 3, &without_a), Err(ProofError::Gap), "it may be \"bb\"");
    assert_eq!(range(b"bb", None, 3, &without_a), Ok((1, true)));
    let without_b = [inner(7), leaf("a"), inner(8), pruned(&[leaf("b")]), leaf("c")];
    assert_eq!(range(b"a", None, 3, &without_b), Err(ProofError::Gap));
    assert_eq!(range(b"aa", Some(b"c"), 3, &without_b), Err(ProofError::Gap));
    let without_end = [inner(7), leaf("a"), pruned(&b_and_c())];
    assert_eq!(range(b"a", Some(b"b"), 3, &without_end), Ok((1, false)), "it may be \"aa\"");
    assert_eq!(range(b"b", None, 3, &without_end), Err(ProofError::Gap));
    assert_eq!(range(b"", None, 1, &without_end), Ok((1, false)));
}

#[test]
fn proofs_are_safe() {
    a_key_is_not_led_astray();
    keys_are_counted();
    a_key_is_absent_only_where_it_would_be();
    a_range_has_no_gap();
}

#[test]
fn every_rule_of_proofs_is_noticed() {
    use quorate_crypto::mutants::assert_noticed;
    assert_noticed(Mutant::KvUnboundPosition, a_key_is_not_led_astray);
    assert_noticed(Mutant::KvForgetCount, keys_are_counted);
    assert_noticed(Mutant::KvAbsentAnywhere, a_key_is_absent_only_where_it_would_be);
    assert_noticed(Mutant::KvRangeGap, a_range_has_no_gap);
}

/// Leaves, inner nodes, values and roots are hashed apart: the content of one is not that of
/// another.
#[test]
fn nothing_passes_for_another() {
    let (left, right) = (Digest([30; 32]), Digest([0; 32]));
    let content = [left.0, right.0].concat();
    // 64 bytes that are both an inner node's content and a leaf's: a key of 30 bytes.
    let mut as_leaf = content.clone();
    as_leaf[..2].copy_from_slice(&30u16.to_le_bytes());
    let left = Digest(as_leaf[..32].try_into().unwrap());
    let leaf = hashes::leaf(&as_leaf[2..32], &right);
    for bit in 0..POSITIONS {
        assert_ne!(hashes::inner(bit, &left, &right), leaf);
    }
    assert_ne!(value_hash(&as_leaf), leaf);
    assert_ne!(hashes::root(7, &right), value_hash(&[&7u64.to_le_bytes()[..], &right.0].concat()));
}

#[test]
fn a_proof_is_one_tree_of_known_nodes() {
    let malformed = |bytes: &[u8]| verify_get(Digest::ZERO, b"a", bytes).unwrap_err();
    let three = 3u64.to_le_bytes();
    let tree = |nodes: &[u8]| [&three[..], nodes].concat();
    assert_eq!(malformed(&[]), ProofError::Malformed("it ends early"));
    assert_eq!(malformed(&tree(&[])), ProofError::Malformed("it ends early"));
    assert_eq!(malformed(&tree(&[3])), ProofError::Malformed("a node is of no known kind"));
    let no_key = ProofError::Malformed("a key is empty or too long");
    assert_eq!(malformed(&tree(&[LEAF, 0, 0])), no_key);
    assert_eq!(malformed(&tree(&[LEAF, 1, 4])), no_key);
    let order = ProofError::Malformed("the positions do not increase downwards");
    assert_eq!(malformed(&tree(&[INNER, 7, 0, INNER, 7, 0])), order);
    assert_eq!(malformed(&tree(&[INNER, 0, 0x24])), order);
    let pruned = [0; 33];
    let right = [&[INNER, 7, 0][..], &pruned, &[INNER, 6, 0]].concat();
    assert_eq!(malformed(&tree(&right)), order, "on the right as on the left");
    let again = [&[INNER, 7, 0][..], &pruned, &[INNER, 7, 0]].concat();
    assert_eq!(malformed(&tree(&again)), order);
    assert_eq!(malformed(&vec![0; PROOF_BYTES_MAX + 1]), ProofError::TooLong);
    for length in [9, PROOF_BYTES_MAX] {
        assert_eq!(malformed(&vec![0; length]), ProofError::Malformed("something follows it"));
    }
}

/// Formats are for ever.
#[test]
fn the_proof_of_a_key_is_this() {
    let proof = encode(3, &[inner(7), leaf("a"), pruned(&b_and_c())]);
    let expected = concat!(
        "0300000000000000",
        "020700",
        "01010061",
        "bbee18105a4a456783f2665f03ba911f711be3b3e4ccdc8b877bde96ee93a12b",
        "00",
        "ec4973e16705f747e481143ea783cbbdc32b2c1f01d7d77bbbfc85114960a9e0"
    );
    assert_eq!(hex(&proof), expected);
    let model = ["a", "b", "c"].map(|key| (key.as_bytes().to_vec(), Vec::new()));
    with_tree(&Model::from(model), |tree, state| {
        assert_eq!(tree.newest().prove(state, Some(b"a"), Some(b"a")).unwrap(), proof);
    });
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Without keys there is nothing to show, and everything is absent.
#[test]
fn an_empty_state_has_a_root_and_proofs() {
    let mut store = MemoryStore::new();
    let root = Kv::default().root(&*store.begin().unwrap()).unwrap();
    let proof = encode(0, &[]);
    assert_eq!(verify_get(root, b"a", &proof), Ok(None));
    let range = verify_range(root, b"", None, 1, &proof).unwrap();
    assert!(range.complete && range.entries.is_empty());
    assert_ne!(root, Digest::ZERO);
}
