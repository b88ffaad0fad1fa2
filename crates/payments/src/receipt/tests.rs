use super::*;
use crate::testing::{ALICE, BOB, ISSUER, MALLORY, Town, key, secret, to};
use quorate_crypto::Digest;

/// Alice paid Bob 4 and 5 of her 10, and kept 1.
fn receipt(town: &Town) -> PayReceipt {
    let coins = &town.endowed(ALICE)[..1];
    let tx = town.spend(ALICE, coins, &[to(BOB, 4), to(ALICE, 1), to(BOB, 5)]);
    let coins = town.coins(&tx);
    PayReceipt { coins: vec![coins[0].clone(), coins[2].clone()], memo: None }
}

fn with_memo(town: &Town, person: u8, text: &str) -> PayReceipt {
    let receipt = receipt(town);
    let memo = Memo::sign(&town.network, &secret(person), receipt.coins[0].id.tx, text.into());
    PayReceipt { memo: Some(memo), ..receipt }
}

fn error(town: &Town, change: impl FnOnce(&mut PayReceipt)) -> ReceiptError {
    let mut receipt = with_memo(town, ALICE, "invoice 17");
    change(&mut receipt);
    receipt.check(&town.network).expect_err("refused")
}

#[test]
fn a_receipt_says_who_paid_whom_how_much() {
    for scheme in crate::PayScheme::ALL {
        let town = Town::with(scheme, 4, 1);
        let receipt = with_memo(&town, ALICE, "invoice 17");
        let tx = receipt.coins[0].id.tx;
        let paid = Paid { tx, payer: Some(key(ALICE)), payee: key(BOB), value: 9 };
        assert_eq!(receipt.check(&town.network), Ok(paid));
        let bytes = borsh::to_vec(&receipt).expect("into memory");
        assert_eq!(borsh::from_slice::<PayReceipt>(&bytes).expect("as written"), receipt);
    }
}

#[test]
fn an_issue_and_the_genesis_are_paid_by_whom_they_say() {
    let town = Town::new();
    let coins = town.coins(&town.issue(1, &[to(BOB, 3)]));
    let paid = PayReceipt { coins, memo: None }.check(&town.network).expect("sound");
    assert_eq!(paid.payer, Some(key(ISSUER)));
    let coins = town.endowed(ALICE);
    let paid = PayReceipt { coins, memo: None }.check(&town.network).expect("sound");
    assert_eq!((paid.payer, paid.value), (None, 60));
}

#[test]
fn no_coins_prove_nothing() {
    let town = Town::new();
    assert_eq!(error(&town, |receipt| receipt.coins.clear()), ReceiptError::Empty);
}

#[test]
fn coins_belong_together_and_are_there_once() {
    let town = Town::new();
    let twice = |receipt: &mut PayReceipt| receipt.coins[1] = receipt.coins[0].clone();
    assert_eq!(error(&town, twice), ReceiptError::Mixed);
    assert_eq!(error(&town, |receipt| receipt.coins.swap(0, 1)), ReceiptError::Mixed);
    let owner = |receipt: &mut PayReceipt| receipt.coins[1].output.owner = key(MALLORY);
    assert_eq!(error(&town, owner), ReceiptError::Mixed);
    let mut other = town.coins(&town.issue(1, &[to(BOB, 3)])).remove(0);
    other.id.index = 9;
    assert_eq!(error(&town, |receipt| receipt.coins.push(other)), ReceiptError::Mixed);
}

#[test]
fn every_coin_exists() {
    let town = Town::new();
    let id = receipt(&town).coins[1].id;
    let dear = |receipt: &mut PayReceipt| receipt.coins[1].output.value += 1;
    assert_eq!(error(&town, dear), ReceiptError::Coin(Invalid::Path(id)));
    let other = town.certificate(&town.issue(1, &[to(BOB, 3)]));
    let forged = |receipt: &mut PayReceipt| {
        let Origin::Certified(proof) = &mut receipt.coins[1].origin else { panic!("certified") };
        proof.certificate = other;
    };
    assert_eq!(error(&town, forged), ReceiptError::Coin(Invalid::Certificate(id)));
    let mut genesis = PayReceipt { coins: town.endowed(ALICE), memo: None };
    let id = genesis.coins[2].id;
    genesis.coins[2].output.value += 1;
    let expected = ReceiptError::Coin(Invalid::NotInGenesis(id));
    assert_eq!(genesis.check(&town.network), Err(expected));
}

#[test]
fn a_memo_is_the_payers_word_about_this_payment() {
    let town = Town::new();
    let text = |receipt: &mut PayReceipt| {
        receipt.memo.as_mut().expect("a memo").text = "invoice 18".into();
    };
    assert_eq!(error(&town, text), ReceiptError::Memo);
    for memo in [
        with_memo(&town, MALLORY, "invoice 17").memo,
        Some(Memo::sign(&town.network, &secret(ALICE), TxId(Digest::ZERO), "invoice 17".into())),
        with_memo(&town, ALICE, &"x".repeat(Memo::BYTES_MAX + 1)).memo,
    ] {
        assert_eq!(error(&town, |receipt| receipt.memo = memo), ReceiptError::Memo);
    }
    let memo = with_memo(&town, ALICE, "endowed").memo;
    let genesis = PayReceipt { coins: town.endowed(ALICE), memo };
    assert_eq!(genesis.check(&town.network), Err(ReceiptError::Memo), "nobody paid it");
}
