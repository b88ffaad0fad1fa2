use super::*;
use quorate_crypto::hash;

fn root(number: usize) -> Digest {
    hash(&number.to_le_bytes())
}

#[test]
fn no_more_roots_are_remembered_than_two_generations() {
    let mut roots = Roots::default();
    let signature = Share(vec![1]);
    for number in 0..5 * ROOTS_MAX {
        roots.add(root(number), signature.clone());
        assert!(roots.young.len() <= ROOTS_MAX && roots.old.len() <= ROOTS_MAX);
        assert!(roots.has(&root(number), &signature));
        assert!(roots.has(&root(number.saturating_sub(ROOTS_MAX - 1)), &signature));
    }
    assert!(!roots.has(&root(0), &signature), "the oldest are evicted");
}

/// `"quorate/v1/MERKLE-ROOT/" ‖ network ‖ epoch id ‖ signer ‖ count ‖ root`.
#[test]
fn a_root_is_signed_as_whose_it_is_and_over_how_many() {
    let testnet = crate::testing::TestNetwork::with(crate::PayScheme::Merkle, 4, 1);
    let network = &testnet.network;
    let votes = MerkleVotes::new(network.scope(), Arc::clone(network.committee()));
    let found = votes.statement(2, 7, root(1));
    let mut expected = b"quorate/v1/MERKLE-ROOT/".to_vec();
    expected.extend(network.id().0);
    expected.extend(network.scope().epoch.0);
    expected.extend(2u16.to_le_bytes());
    expected.extend(7u32.to_le_bytes());
    expected.extend(root(1).0);
    assert_eq!(hex::encode(found), hex::encode(expected));
}
