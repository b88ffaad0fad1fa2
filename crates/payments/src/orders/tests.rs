use super::*;
use crate::testing::{ALICE, BOB, ISSUER, MALLORY, Office, Town, key, to};
use crate::{Origin, PayScheme, Source, TxCertificate, Verdict};
use quorate_crypto::{IdentityKey, Signature, hash};

fn looked(office: &Office, tx: &Transaction) -> Looked {
    let mut all = look(vec![(7, tx.clone())], &office.verifier).into_inner().into_vec();
    let (ticket, looked) = all.remove(0);
    assert_eq!(ticket, 7);
    looked
}

fn refused(office: &Office, tx: &Transaction) -> Option<Invalid> {
    match looked(office, tx) {
        Looked::Invalid(_, invalid) => Some(invalid),
        _ => None,
    }
}

/// Alice pays from a certified coin, whose certificate is spoilt.
fn with_certificate(
    town: &Town,
    change: impl FnOnce(&mut TxCertificate),
) -> (Transaction, crate::OutputId) {
    let mut coin = town.coins(&town.issue(1, &[to(ALICE, 10)])).remove(0);
    let Origin::Certified(proof) = &mut coin.origin else { panic!("a certified coin") };
    change(&mut proof.certificate);
    let id = coin.id;
    (town.spend(ALICE, &[coin], &[to(BOB, 10)]), id)
}

#[test]
fn a_sound_order_is_valid() {
    for scheme in PayScheme::ALL {
        let town = Town::with(scheme, 4, 1);
        let (tx, _) = with_certificate(&town, |_| ());
        let found = looked(&Office::new(&town, 0, 0), &tx);
        assert_eq!(found, Looked::Valid(tx.core(town.network.chain())));
    }
}

#[test]
fn the_payer_signs() {
    let town = Town::new();
    let office = Office::new(&town, 0, 0);
    let mut tx = town.spend(ALICE, &town.endowed(ALICE), &[to(BOB, 60)]);
    let other = town.spend(ALICE, &town.endowed(ALICE), &[to(BOB, 30), to(BOB, 30)]);
    for signature in [Signature([0; 64]), other.signature] {
        tx.signature = signature;
        assert_eq!(refused(&office, &tx), Some(Invalid::OwnerSignature));
    }
    let mut theft = town.spend(MALLORY, &town.endowed(ALICE), &[to(MALLORY, 60)]);
    theft.payer = key(ALICE);
    assert_eq!(refused(&office, &theft), Some(Invalid::OwnerSignature));
    let mut issue = town.issue(1, &[to(MALLORY, 60)]);
    issue.signature = Signature([0; 64]);
    assert_eq!(refused(&office, &issue), Some(Invalid::OwnerSignature));
    // An owner that is no key can sign nothing.
    tx.payer = IdentityKey(hash(b"nobody").0);
    tx.source = Source::Issue { serial: 1 };
    assert_eq!(refused(&office, &tx), Some(Invalid::NotTheIssuer));
}

#[test]
fn every_input_is_certified_by_a_quorum() {
    for scheme in PayScheme::ALL {
        let town = Town::with(scheme, 4, 1);
        let office = Office::new(&town, 0, 0);
        let other = town.certificate(&town.issue(2, &[to(ALICE, 10)]));
        let (tx, id) = with_certificate(&town, |certificate| *certificate = other);
        assert_eq!(refused(&office, &tx), Some(Invalid::Certificate(id)));
        // The good one is no worse for it, and once seen it is known.
        assert!(matches!(looked(&office, &with_certificate(&town, |_| ()).0), Looked::Valid(_)));
        assert!(matches!(looked(&office, &tx), Looked::Valid(_)), "what is certified stays so");
    }
}

#[test]
fn an_authority_votes_for_its_shards_owners_alone() {
    let town = Town::with(PayScheme::Plain, 4, 3);
    let tx = town.spend(ALICE, &town.endowed(ALICE), &[to(BOB, 60)]);
    let home = town.network.shard_of(&key(ALICE));
    for shard in 0..3 {
        let found = refused(&Office::new(&town, 0, shard), &tx);
        let expected = (shard != home).then_some(Invalid::WrongShard(home));
        assert_eq!(found, expected, "shard {shard}");
    }
}

/// All inputs have the payer for their owner, who has one shard; a coin of another does not fit.
#[test]
fn no_transaction_has_inputs_of_two_shards() {
    let town = Town::with(PayScheme::Plain, 4, 64);
    let (alice, mallory) = (key(ALICE), key(MALLORY));
    assert_ne!(town.network.shard_of(&alice), town.network.shard_of(&mallory));
    let mut coins = town.endowed(ALICE);
    let foreign = town.endowed(MALLORY).remove(0);
    coins.push(foreign.clone());
    let tx = town.spend(ALICE, &coins, &[to(ALICE, 65)]);
    let office = Office::new(&town, 0, town.network.shard_of(&alice));
    assert_eq!(refused(&office, &tx), Some(Invalid::NotInGenesis(foreign.id)));
}

#[test]
fn orders_are_judged_one_by_one() {
    let town = Town::new();
    let office = Office::new(&town, 0, 0);
    let coins = town.endowed(ALICE);
    let mut orders: Vec<_> = coins
        .iter()
        .map(|coin| town.spend(ALICE, std::slice::from_ref(coin), &[to(BOB, coin.output.value)]))
        .collect();
    orders[1].signature = Signature([9; 64]);
    let orders = (10..).zip(orders).collect();
    let found = look(orders, &office.verifier).into_inner().into_vec();
    let good: Vec<_> = found
        .iter()
        .map(|(ticket, looked)| (*ticket, matches!(looked, Looked::Valid(_))))
        .collect();
    assert_eq!(good, [(10, true), (11, false), (12, true)]);
}

/// What is locked for a transaction was checked; what comes too late is checked as far as its payer.
#[test]
fn what_is_locked_is_not_checked_again() {
    let town = Town::new();
    let mut office = Office::new(&town, 0, 0);
    let coins = town.endowed(MALLORY);
    let first = town.spend(MALLORY, &coins, &[to(BOB, 12)]);
    assert!(matches!(office.verdict(&first), Verdict::Vote(_)));
    let id = first.id(town.network.chain());
    assert_eq!(looked(&office, &first), Looked::Again(id));
    let second = town.spend(MALLORY, &coins[..1], &[to(BOB, 5)]);
    assert_eq!(looked(&office, &second), Looked::Late(second.core(town.network.chain())));
    let mut forged = second;
    forged.signature = Signature([0; 64]);
    assert_eq!(refused(&office, &forged), Some(Invalid::OwnerSignature), "no proof of anything");
}

#[test]
fn no_more_certified_names_are_remembered_than_two_generations() {
    let mut certified = Certified::default();
    let id = |number: usize| TxId(hash(&number.to_le_bytes()));
    for number in 0..=2 * CERTIFIED_MAX {
        certified.add(id(number));
        assert!(certified.young.len() <= CERTIFIED_MAX && certified.old.len() <= CERTIFIED_MAX);
    }
    assert!(certified.contains(&id(2 * CERTIFIED_MAX)));
    assert!(certified.contains(&id(CERTIFIED_MAX)));
    assert!(!certified.contains(&id(0)), "the oldest are given up");
}

#[test]
fn an_issuer_is_an_owner_like_any_other() {
    let town = Town::with(PayScheme::Plain, 4, 3);
    let home = town.network.shard_of(&key(ISSUER));
    let tx = town.issue(1, &[to(ALICE, 1)]);
    assert!(matches!(looked(&Office::new(&town, 0, home), &tx), Looked::Valid(_)));
    let elsewhere = (home + 1) % 3;
    let found = refused(&Office::new(&town, 0, elsewhere), &tx);
    assert_eq!(found, Some(Invalid::WrongShard(home)), "or a serial number is used twice");
}

#[cfg(feature = "mutants")]
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
