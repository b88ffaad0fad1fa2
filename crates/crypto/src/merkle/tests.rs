use super::*;
use crate::hash;
use proptest::prelude::*;

fn node(left: &Digest, right: &Digest) -> Digest {
    hash_keyed(NODE, &pair(left, right))
}

fn leaves(count: u32) -> Vec<Digest> {
    (0..count).map(|leaf| hash(&leaf.to_le_bytes())).collect()
}

#[test]
fn every_leaf_of_every_small_tree_is_at_its_place_alone() {
    for count in 0..40 {
        let leaves = leaves(count);
        let tree = Tree::new(&leaves);
        assert_eq!(tree.path(count), None);
        for index in 0..count {
            let path = tree.path(index).unwrap();
            for (other, leaf) in (0..).zip(&leaves) {
                assert_eq!(path.leads(leaf, &tree.root()), other == index, "{index} of {count}");
            }
            for place in (0..count).filter(|place| *place != index) {
                let moved = Path { index: place, ..path.clone() };
                assert!(!moved.leads(&leaves[index as usize], &tree.root()), "{index} at {place}");
            }
        }
    }
}

#[test]
fn trees_of_different_sizes_have_different_roots() {
    let roots: std::collections::BTreeSet<Digest> =
        (0..40).map(|count| Tree::new(&leaves(count)).root()).collect();
    assert_eq!(roots.len(), 40);
    assert!(roots.contains(&Tree::new(&[]).root()));
}

#[test]
fn the_shape_is_that_of_rfc_6962() {
    let hashes: Vec<Digest> = leaves(7).iter().map(leaf).collect();
    let pair = |at: usize| node(&hashes[at], &hashes[at + 1]);
    let left = node(&pair(0), &pair(2));
    let right = node(&pair(4), &hashes[6]);
    assert_eq!(Tree::new(&leaves(7)).root(), root(7, &node(&left, &right)));
}

/// Of trees of all small sizes, and of paths that are too long, too short or beyond the tree.
#[test]
fn many_paths_lead_where_each_alone_does() {
    let leaves = leaves(70);
    let mut cases = Vec::new();
    for count in 1..=70 {
        let tree = Tree::new(&leaves[..count as usize]);
        for (index, leaf) in (0..count).zip(&leaves) {
            let path = tree.path(index).unwrap();
            let mut long = path.clone();
            long.siblings.push(tree.root());
            let mut short = path.clone();
            short.siblings.pop();
            let beyond = Path { index: path.count, ..path.clone() };
            cases.extend([path, long, short, beyond].map(|path| (*leaf, path)));
        }
    }
    let paths: Vec<_> = cases.iter().map(|(leaf, path)| (leaf, path)).collect();
    let alone: Vec<_> = cases.iter().map(|(leaf, path)| path.root(leaf)).collect();
    assert_eq!(Path::roots(&paths), alone);
    assert!(alone.iter().any(Option::is_none) && alone.iter().any(Option::is_some));
    assert_eq!(Path::roots(&[]), []);
}

/// Written as any list is, read back whatever its length, and refused where it is cut.
#[test]
fn paths_of_any_length_are_read_as_they_were_written() {
    for length in [0, 1, 7, 31, 32, 33, 64, 100] {
        let path = Path { index: 1, count: 2, siblings: leaves(length) };
        let bytes = borsh::to_vec(&path).unwrap();
        assert_eq!(bytes, borsh::to_vec(&(1u32, 2u32, leaves(length))).unwrap());
        assert_eq!(borsh::from_slice::<Path>(&bytes).unwrap(), path);
        assert!(borsh::from_slice::<Path>(&bytes[..bytes.len() - 1]).is_err(), "{length}");
    }
}

/// An inner node is no leaf, though both are hashes: a path that ends early leads nowhere.
#[test]
fn an_inner_node_is_no_leaf() {
    let leaves = leaves(4);
    let tree = Tree::new(&leaves);
    let inner = node(&leaf(&leaves[0]), &leaf(&leaves[1]));
    let short = Path { index: 0, count: 2, siblings: vec![tree.path(0).unwrap().siblings[1]] };
    assert!(!short.leads(&inner, &tree.root()));
    let empty = Path { index: 0, count: 1, siblings: Vec::new() };
    assert!(!empty.leads(&tree.root(), &tree.root()));
}

proptest! {
    /// Whatever is changed in a path, it leads nowhere.
    #[test]
    fn a_changed_path_leads_nowhere(
        count in 1u32..200,
        index in any::<prop::sample::Index>(),
        change in any::<prop::sample::Index>(),
        bit in 0usize..256,
        way in 0..5,
    ) {
        let leaves = leaves(count);
        let tree = Tree::new(&leaves);
        let index = u32::try_from(index.index(count as usize)).unwrap();
        let path = tree.path(index).unwrap();
        let mut changed = path.clone();
        match way {
            0 if !path.siblings.is_empty() => {
                let at = change.index(path.siblings.len());
                changed.siblings[at].0[bit / 8] ^= 1 << (bit % 8);
            }
            1 if !path.siblings.is_empty() => drop(changed.siblings.pop()),
            2 => changed.siblings.push(tree.root()),
            3 => changed.count += 1 + u32::try_from(bit).unwrap(),
            _ => changed.index = changed.index.wrapping_add(1 + u32::try_from(bit).unwrap()),
        }
        prop_assume!(changed != path);
        prop_assert!(path.leads(&leaves[index as usize], &tree.root()));
        prop_assert!(!changed.leads(&leaves[index as usize], &tree.root()));
    }
}
