use super::{BlockTree, Root, TreeBlock};
use crate::leader::LeaderReputation;
use quorate_crypto::hash;
use quorate_types::{Anchor, BlockId, BodyRef, Height, Payload, ReplicaId, View};
use std::sync::Arc;

struct Leaf {
    id: u8,
    parent: u8,
    view: u64,
    payload: Payload,
}

fn id(name: u8) -> BlockId {
    BlockId(hash(&[name]))
}

impl TreeBlock for Leaf {
    fn id(&self) -> BlockId {
        id(self.id)
    }
    fn parent(&self) -> BlockId {
        id(self.parent)
    }
    fn parent_view(&self) -> View {
        View(self.parent.into())
    }
    fn view(&self) -> View {
        View(self.view)
    }
    fn payload(&self) -> &Payload {
        &self.payload
    }
    fn reputation(&self) -> &LeaderReputation {
        const NOBODY: &LeaderReputation = &LeaderReputation::new();
        NOBODY
    }
}

/// 0 ← 1 ← 2 ← 4, and 1 ← 3 beside it. A block's view is its name.
fn tree() -> BlockTree<Leaf> {
    let root = Root::genesis(id(0), Anchor::default());
    let mut tree = BlockTree::new(root);
    for (name, parent) in [(1, 0), (2, 1), (3, 1), (4, 2)] {
        let body = BodyRef { author: ReplicaId(0), sequence: u64::from(name), digest: hash(b"") };
        let bodies = if name == 3 { vec![body] } else { vec![] };
        let payload = Payload::new(Height(u64::from(name)), 10, bodies);
        tree.insert(Arc::new(Leaf { id: name, parent, view: u64::from(name), payload }));
    }
    tree
}

fn names(tree: &BlockTree<Leaf>, tip: u8) -> Option<Vec<u8>> {
    tree.path(id(tip)).map(|path| path.iter().map(|block| block.id).collect())
}

#[test]
fn a_path_goes_from_the_root_oldest_first() {
    let tree = tree();
    assert_eq!(names(&tree, 4), Some(vec![1, 2, 4]));
    assert_eq!(names(&tree, 0), Some(vec![]));
    assert_eq!(names(&tree, 9), None);
}

#[test]
fn deciding_drops_what_does_not_descend() {
    let mut tree = tree();
    assert!(tree.has_payload() && !tree.is_empty());
    tree.decide(id(2));
    assert_eq!((tree.root().id, tree.root().view, tree.len()), (id(2), View(2), 1));
    assert!(tree.contains(id(2)) && tree.contains(id(4)));
    assert!(!tree.contains(id(1)) && !tree.contains(id(3)));
    assert!(!tree.has_payload());
    assert_eq!(names(&tree, 4), Some(vec![4]));
}

#[test]
fn pruning_keeps_the_certified_chain_and_the_new() {
    let mut tree = tree();
    tree.prune(View(4), &[id(2)]);
    assert!(tree.contains(id(1)) && tree.contains(id(2)) && tree.contains(id(4)));
    assert!(!tree.contains(id(3)), "old, and no ancestor of what is kept");
    tree.prune(View(9), &[id(9)]);
    assert!(tree.is_empty(), "nothing hangs in the air");
}

#[test]
#[should_panic(expected = "a block is inserted after its parent")]
fn an_orphan_is_our_own_mistake() {
    let payload = Payload::new(Height(9), 0, vec![]);
    tree().insert(Arc::new(Leaf { id: 9, parent: 8, view: 9, payload }));
}
