use super::*;
use crate::testing::{ALICE, AuthorityHost, BOB, ISSUER, MALLORY, TestNetwork, key, to};
use crate::{Origin, PayScheme, Source, TxCertificate, Verdict};
use quorate_crypto::{IdentityKey, Signature, hash};

fn looked(host: &AuthorityHost, tx: &Transaction) -> CheckedOrder {
    let mut all = check_orders(vec![(7, tx.clone())], &host.verifier).into_inner().into_vec();
    let (ticket, looked) = all.remove(0);
    assert_eq!(ticket, 7);
    looked
}

fn refused(host: &AuthorityHost, tx: &Transaction) -> Option<Invalid> {
    match looked(host, tx) {
        CheckedOrder::Invalid(_, invalid) => Some(invalid),
        _ => None,
    }
}

/// Alice pays from a certified coin, whose certificate is spoilt.
fn with_certificate(
    testnet: &TestNetwork,
    change: impl FnOnce(&mut TxCertificate),
) -> (Transaction, crate::OutputId) {
    let mut coin = testnet.coins(&testnet.issue(1, &[to(ALICE, 10)])).remove(0);
    let Origin::Certified(proof) = &mut coin.origin else { panic!("a certified coin") };
    change(&mut proof.certificate);
    let id = coin.id;
    (testnet.spend(ALICE, &[coin], &[to(BOB, 10)]), id)
}

#[test]
fn a_sound_order_is_valid() {
    for scheme in PayScheme::ALL {
        let testnet = TestNetwork::with(scheme, 4, 1);
        let (tx, _) = with_certificate(&testnet, |_| ());
        let found = looked(&AuthorityHost::new(&testnet, 0, 0), &tx);
        assert_eq!(found, CheckedOrder::Valid(tx.core(testnet.network.id())));
    }
}

#[test]
fn the_payer_signs() {
    let testnet = TestNetwork::new();
    let host = AuthorityHost::new(&testnet, 0, 0);
    let mut tx = testnet.spend(ALICE, &testnet.endowed(ALICE), &[to(BOB, 60)]);
    let other = testnet.spend(ALICE, &testnet.endowed(ALICE), &[to(BOB, 30), to(BOB, 30)]);
    for signature in [Signature([0; 64]), other.signature] {
        tx.signature = signature;
        assert_eq!(refused(&host, &tx), Some(Invalid::OwnerSignature));
    }
    let mut theft = testnet.spend(MALLORY, &testnet.endowed(ALICE), &[to(MALLORY, 60)]);
    theft.payer = key(ALICE);
    assert_eq!(refused(&host, &theft), Some(Invalid::OwnerSignature));
    let mut issue = testnet.issue(1, &[to(MALLORY, 60)]);
    issue.signature = Signature([0; 64]);
    assert_eq!(refused(&host, &issue), Some(Invalid::OwnerSignature));
    // An owner that is no key can sign nothing.
    tx.payer = IdentityKey(hash(b"nobody").0);
    tx.source = Source::Issue { serial: 1 };
    assert_eq!(refused(&host, &tx), Some(Invalid::NotTheIssuer));
}

#[test]
fn every_input_is_certified_by_a_quorum() {
    for scheme in PayScheme::ALL {
        let testnet = TestNetwork::with(scheme, 4, 1);
        let host = AuthorityHost::new(&testnet, 0, 0);
        let other = testnet.certificate(&testnet.issue(2, &[to(ALICE, 10)]));
        let (tx, id) = with_certificate(&testnet, |certificate| *certificate = other);
        assert_eq!(refused(&host, &tx), Some(Invalid::Certificate(id)));
        // The good one is no worse for it, and once seen it is known.
        assert!(matches!(
            looked(&host, &with_certificate(&testnet, |_| ()).0),
            CheckedOrder::Valid(_)
        ));
        assert!(matches!(looked(&host, &tx), CheckedOrder::Valid(_)), "what is certified stays so");
    }
}

/// What is invalid already is refused for that, and its certificates cost no check.
#[test]
fn an_order_is_refused_for_the_first_rule_it_breaks() {
    let testnet = TestNetwork::new();
    let host = AuthorityHost::new(&testnet, 0, 0);
    let other = testnet.certificate(&testnet.issue(2, &[to(ALICE, 10)]));
    let (mut tx, _) = with_certificate(&testnet, |certificate| *certificate = other);
    tx.signature = Signature([0; 64]);
    assert_eq!(refused(&host, &tx), Some(Invalid::OwnerSignature));
}

#[test]
fn an_authority_votes_for_its_shards_owners_alone() {
    let testnet = TestNetwork::with(PayScheme::Plain, 4, 3);
    let tx = testnet.spend(ALICE, &testnet.endowed(ALICE), &[to(BOB, 60)]);
    let home = testnet.network.shard_of(&key(ALICE));
    for shard in 0..3 {
        let found = refused(&AuthorityHost::new(&testnet, 0, shard), &tx);
        let expected = (shard != home).then_some(Invalid::WrongShard(home));
        assert_eq!(found, expected, "shard {shard}");
    }
}

/// All inputs have the payer for their owner, who has one shard; a coin of another does not fit.
#[test]
fn no_transaction_has_inputs_of_two_shards() {
    let testnet = TestNetwork::with(PayScheme::Plain, 4, 64);
    let (alice, mallory) = (key(ALICE), key(MALLORY));
    assert_ne!(testnet.network.shard_of(&alice), testnet.network.shard_of(&mallory));
    let mut coins = testnet.endowed(ALICE);
    let foreign = testnet.endowed(MALLORY).remove(0);
    coins.push(foreign.clone());
    let tx = testnet.spend(ALICE, &coins, &[to(ALICE, 65)]);
    let host = AuthorityHost::new(&testnet, 0, testnet.network.shard_of(&alice));
    assert_eq!(refused(&host, &tx), Some(Invalid::NotInGenesis(foreign.id)));
}

#[test]
fn orders_are_judged_one_by_one() {
    let testnet = TestNetwork::new();
    let host = AuthorityHost::new(&testnet, 0, 0);
    let coins = testnet.endowed(ALICE);
    let mut orders: Vec<_> = coins
        .iter()
        .map(|coin| testnet.spend(ALICE, std::slice::from_ref(coin), &[to(BOB, coin.output.value)]))
        .collect();
    orders[1].signature = Signature([9; 64]);
    let orders = (10..).zip(orders).collect();
    let found = check_orders(orders, &host.verifier).into_inner().into_vec();
    let good: Vec<_> = found
        .iter()
        .map(|(ticket, looked)| (*ticket, matches!(looked, CheckedOrder::Valid(_))))
        .collect();
    assert_eq!(good, [(10, true), (11, false), (12, true)]);
}

/// Locked inputs prove an earlier check; an order that comes too late is checked as far as its
/// payer.
#[test]
fn what_is_locked_is_not_checked_again() {
    let testnet = TestNetwork::new();
    let mut host = AuthorityHost::new(&testnet, 0, 0);
    let coins = testnet.endowed(MALLORY);
    let first = testnet.spend(MALLORY, &coins, &[to(BOB, 12)]);
    assert!(matches!(host.verdict(&first), Verdict::Vote(_)));
    let id = first.id(testnet.network.id());
    assert_eq!(looked(&host, &first), CheckedOrder::Repeated(id));
    let second = testnet.spend(MALLORY, &coins[..1], &[to(BOB, 5)]);
    assert_eq!(looked(&host, &second), CheckedOrder::Late(second.core(testnet.network.id())));
    let mut forged = second;
    forged.signature = Signature([0; 64]);
    assert_eq!(refused(&host, &forged), Some(Invalid::OwnerSignature), "no proof of anything");
}

#[test]
fn an_issuer_is_an_owner_like_any_other() {
    let testnet = TestNetwork::with(PayScheme::Plain, 4, 3);
    let home = testnet.network.shard_of(&key(ISSUER));
    let tx = testnet.issue(1, &[to(ALICE, 1)]);
    assert!(matches!(looked(&AuthorityHost::new(&testnet, 0, home), &tx), CheckedOrder::Valid(_)));
    let elsewhere = (home + 1) % 3;
    let found = refused(&AuthorityHost::new(&testnet, 0, elsewhere), &tx);
    assert_eq!(found, Some(Invalid::WrongShard(home)), "or a serial number is used twice");
}

mod mutants {
    use super::*;
    use quorate_crypto::mutants::assert_noticed;

    #[test]
    fn every_check_is_missed() {
        assert_noticed(Mutant::PayAnyOwner, the_payer_signs);
        assert_noticed(Mutant::PayTrustCertificates, every_input_is_certified_by_a_quorum);
        assert_noticed(Mutant::PayAnyShard, an_authority_votes_for_its_shards_owners_alone);
    }
}

/// An authority that has not begun the next epoch yet is asked by wallets that have: it says that
/// it cannot tell, and no payment ends as invalid by that.
#[test]
fn a_coin_of_a_later_epoch_cannot_be_told_yet() {
    let testnet = TestNetwork::new();
    let (next, _) = testnet.next(&[]);
    let coins = next.coins(&testnet.issue(1, &[to(ALICE, 10)]));
    let tx = next.spend(ALICE, &coins, &[to(BOB, 10)]);
    let behind = looked(&AuthorityHost::new(&testnet, 0, 0), &tx);
    assert_eq!(behind, CheckedOrder::Unproven(tx.id(next.network.id()), coins[0].id));
}
