use super::*;
use crate::testing::{ALICE, BOB, TestNetwork, replica, to};
use quorate_crypto::mutants::assert_noticed;

#[test]
fn a_receipt_is_former_once_its_epoch_has_ended() {
    let testnet = TestNetwork::new();
    let (next, _) = testnet.next(&[]);
    let genesis = PayReceipt { coins: testnet.endowed(ALICE), memo: None };
    let paid = testnet.spend(ALICE, &genesis.coins[..1], &[to(BOB, 10)]);
    let (old, new) = (testnet.coins(&paid), next.coins(&paid));
    let former = |coins: &[Coin], of: &TestNetwork| {
        PayReceipt { coins: coins.to_vec(), memo: None }.former_epoch(&of.network)
    };
    assert_eq!(former(&genesis.coins, &next), None, "the beginning is of no epoch");
    assert_eq!(former(&old, &testnet), None);
    assert_eq!(former(&old, &next), Some(testnet.network.epoch()));
    assert_eq!(former(&new, &next), None);
    assert_eq!(former(&new, &testnet), None, "whoever is behind cannot check it at all");
}

/// ★
#[test]
fn a_quorum_says_what_counts() {
    let testnet = TestNetwork::new();
    let said = |those: &[(usize, bool)]| {
        let said = those.iter().map(|(from, counts)| (replica(*from), *counts));
        is_counted(&testnet.network, said)
    };
    assert!(said(&[(0, true), (1, true), (3, true)]));
    assert!(said(&[(0, true), (1, true), (2, false), (3, true)]));
    for too_few in [&[][..], &[(0, true)], &[(0, true), (1, true), (2, false), (3, false)]] {
        assert!(!said(too_few), "{too_few:?}");
    }
    assert!(!said(&[(0, true), (0, true), (0, true)]), "one says it once");
}

#[test]
fn fewer_than_a_quorum_are_noticed() {
    assert_noticed(Mutant::PayCountByFewer, a_quorum_says_what_counts);
}
