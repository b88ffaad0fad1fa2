use super::*;
use crate::Origin;
use crate::testing::{ALICE, BOB, ISSUER, MALLORY, TestNetwork, key, secret, to};
use quorate_crypto::Digest;

/// Alice paid Bob 4 and 5 of her 10, and kept 1.
fn receipt(testnet: &TestNetwork) -> PayReceipt {
    let coins = &testnet.endowed(ALICE)[..1];
    let tx = testnet.spend(ALICE, coins, &[to(BOB, 4), to(ALICE, 1), to(BOB, 5)]);
    let coins = testnet.coins(&tx);
    PayReceipt { coins: vec![coins[0].clone(), coins[2].clone()], memo: None }
}

fn with_memo(testnet: &TestNetwork, person: u8, text: &str) -> PayReceipt {
    let receipt = receipt(testnet);
    let memo = Memo::sign(&testnet.network, &secret(person), receipt.coins[0].id.tx, text.into());
    PayReceipt { memo: Some(memo), ..receipt }
}

fn error(testnet: &TestNetwork, change: impl FnOnce(&mut PayReceipt)) -> ReceiptError {
    let mut receipt = with_memo(testnet, ALICE, "invoice 17");
    change(&mut receipt);
    receipt.check(&testnet.network).expect_err("refused")
}

#[test]
fn a_receipt_says_who_paid_whom_how_much() {
    for scheme in crate::PayScheme::ALL {
        let testnet = TestNetwork::with(scheme, 4, 1);
        let receipt = with_memo(&testnet, ALICE, "invoice 17");
        let tx = receipt.coins[0].id.tx;
        let paid = Paid { tx, payer: Some(key(ALICE)), payee: key(BOB), value: 9 };
        assert_eq!(receipt.check(&testnet.network), Ok(paid));
        let longest = with_memo(&testnet, ALICE, &"x".repeat(Memo::BYTES_MAX));
        assert_eq!(longest.check(&testnet.network).map(|paid| paid.value), Ok(9));
        let bytes = borsh::to_vec(&receipt).expect("into memory");
        assert_eq!(borsh::from_slice::<PayReceipt>(&bytes).expect("as written"), receipt);
    }
}

#[test]
fn an_issue_and_the_genesis_are_paid_by_whom_they_say() {
    let testnet = TestNetwork::new();
    let coins = testnet.coins(&testnet.issue(1, &[to(BOB, 3)]));
    let paid = PayReceipt { coins, memo: None }.check(&testnet.network).expect("sound");
    assert_eq!(paid.payer, Some(key(ISSUER)));
    let coins = testnet.endowed(ALICE);
    let paid = PayReceipt { coins, memo: None }.check(&testnet.network).expect("sound");
    assert_eq!((paid.payer, paid.value), (None, 60));
}

#[test]
fn no_coins_prove_nothing() {
    let testnet = TestNetwork::new();
    assert_eq!(error(&testnet, |receipt| receipt.coins.clear()), ReceiptError::Empty);
}

#[test]
fn coins_belong_together_and_are_there_once() {
    let testnet = TestNetwork::new();
    let twice = |receipt: &mut PayReceipt| receipt.coins[1] = receipt.coins[0].clone();
    assert_eq!(error(&testnet, twice), ReceiptError::Mixed);
    assert_eq!(error(&testnet, |receipt| receipt.coins.swap(0, 1)), ReceiptError::Mixed);
    let owner = |receipt: &mut PayReceipt| receipt.coins[1].output.owner = key(MALLORY);
    assert_eq!(error(&testnet, owner), ReceiptError::Mixed);
    let mut other = testnet.coins(&testnet.issue(1, &[to(BOB, 3)])).remove(0);
    other.id.index = 9;
    assert_eq!(error(&testnet, |receipt| receipt.coins.push(other)), ReceiptError::Mixed);
}

#[test]
fn every_coin_exists() {
    let testnet = TestNetwork::new();
    let id = receipt(&testnet).coins[1].id;
    let dear = |receipt: &mut PayReceipt| receipt.coins[1].output.value += 1;
    assert_eq!(error(&testnet, dear), ReceiptError::Coin(Invalid::Path(id)));
    let other = testnet.certificate(&testnet.issue(1, &[to(BOB, 3)]));
    let forged = |receipt: &mut PayReceipt| {
        let Origin::Certified(proof) = &mut receipt.coins[1].origin else { panic!("certified") };
        proof.certificate = other;
    };
    assert_eq!(error(&testnet, forged), ReceiptError::Coin(Invalid::Certificate(id)));
    let mut genesis = PayReceipt { coins: testnet.endowed(ALICE), memo: None };
    let id = genesis.coins[2].id;
    genesis.coins[2].output.value += 1;
    let expected = ReceiptError::Coin(Invalid::NotInGenesis(id));
    assert_eq!(genesis.check(&testnet.network), Err(expected));
}

#[test]
fn a_memo_is_the_payers_word_about_this_payment() {
    let testnet = TestNetwork::new();
    let text = |receipt: &mut PayReceipt| {
        receipt.memo.as_mut().expect("a memo").text = "invoice 18".into();
    };
    assert_eq!(error(&testnet, text), ReceiptError::Memo);
    for memo in [
        with_memo(&testnet, MALLORY, "invoice 17").memo,
        Some(Memo::sign(&testnet.network, &secret(ALICE), TxId(Digest::ZERO), "invoice 17".into())),
        with_memo(&testnet, ALICE, &"x".repeat(Memo::BYTES_MAX + 1)).memo,
    ] {
        assert_eq!(error(&testnet, |receipt| receipt.memo = memo), ReceiptError::Memo);
    }
    let memo = with_memo(&testnet, ALICE, "endowed").memo;
    let genesis = PayReceipt { coins: testnet.endowed(ALICE), memo };
    assert_eq!(genesis.check(&testnet.network), Err(ReceiptError::Memo), "nobody paid it");
}
