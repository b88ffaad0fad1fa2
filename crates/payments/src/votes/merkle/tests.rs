use super::*;
use quorate_crypto::hash;

fn root(number: usize) -> Digest {
    hash(&number.to_le_bytes())
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
