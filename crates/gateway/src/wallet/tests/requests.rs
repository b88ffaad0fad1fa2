//! Requests that receipts pay, and limits of those who pay.

use super::network::{key, secret};
use super::{ANNE, BOB, Place, TIMEOUT, free, order, pay};
use crate::wallet::{
    HistoryLine, Limits, Order, Orderer, Purpose, REQUEST_MEMO_BYTES_MAX, REQUEST_TIME_MAX,
    Request, RequestState, Wallet, WalletError,
};
use quorate_node::unix_ms;
use quorate_payments::{Memo, PayReceipt};
use std::time::Duration;

/// Bob's wallet with two open requests of 30, and the receipt of what Anne paid for the first.
fn two_requests_and_a_receipt(place: &Place) -> (Wallet, [Request; 2], PayReceipt) {
    let (mut anne, mut bob) = (place.create(ANNE), place.create(BOB));
    let mut ask = || {
        let made = bob.request(30, Some("table 4".into()), TIMEOUT, Some("till".into()));
        made.expect("stored")
    };
    let requests = [ask(), ask()];
    let order = Order { memo: Some(requests[0].text()), ..pay(BOB, 30) };
    let payment = place.apply(&mut anne, &order).expect("paid");
    let receipt = anne.receipt(&payment).expect("a receipt");
    (bob, requests, receipt)
}

/// The same coins with another memo, which their payer signs as easily as the first.
fn signed_again(place: &Place, receipt: &PayReceipt, memo: String) -> PayReceipt {
    let tx = receipt.coins[0].id.tx;
    let memo = Some(Memo::sign(&place.network, &secret(ANNE), tx, memo));
    PayReceipt { memo, ..receipt.clone() }
}

#[test]
fn one_payment_pays_one_request() {
    let place = Place::new(&[(ANNE, 100)]);
    let (mut bob, [first, second], receipt) = two_requests_and_a_receipt(&place);
    let taken = bob.receive_for_request(&receipt).expect("it pays");
    assert_eq!((taken.added, taken.request), (30, Some(first.id)));
    let again = signed_again(&place, &receipt, second.text());
    let refused = bob.receive_for_request(&again).expect_err("known coins");
    assert!(matches!(refused, WalletError::PaysTooLittle { found: 0, .. }), "{refused}");
    // Nor from whoever has a token for it.
    assert_eq!(bob.receive(&again).expect("harmless").request, None);
    let state = |wallet: &Wallet, request: &Request| {
        wallet.requested(request.id).expect("kept").state(unix_ms())
    };
    for _ in 0..2 {
        assert_eq!(state(&bob, &first), RequestState::Paid);
        assert_eq!(state(&bob, &second), RequestState::Open);
        drop(bob);
        bob = place.open(BOB);
    }
    let paid = bob.requested(first.id).expect("kept").paid.clone().expect("paid");
    assert_eq!((paid.tx, paid.payer, paid.value), (receipt.coins[0].id.tx, Some(key(ANNE)), 30));
}

/// Two tills count from 1, each for itself.
#[test]
fn a_key_is_its_orderers() {
    let place = Place::new(&[(ANNE, 100)]);
    let mut anne = place.create(ANNE);
    let by = |name: &str| Orderer { name: name.into(), limits: None };
    let first = anne.begin_for(&pay(BOB, 5), Some("1"), Some(&by("left"))).expect("begun").id;
    let again = anne.begin_for(&pay(BOB, 5), Some("1"), Some(&by("left"))).expect("begun").id;
    assert_eq!(first, again);
    let other = anne.begin_for(&pay(BOB, 5), Some("1"), Some(&by("right")));
    assert!(matches!(other, Err(WalletError::KeyTaken { .. })), "{other:?}");
}

/// ★ A request is paid by coins that were not here before.
#[test]
fn a_wallet_whose_requests_known_coins_pay_is_noticed() {
    quorate_crypto::mutants::assert_noticed(
        quorate_crypto::mutants::Mutant::PayRequestByKnownCoins,
        one_payment_pays_one_request,
    );
}

#[test]
fn a_request_is_paid_by_its_own_memo_to_the_letter() {
    let place = Place::new(&[(ANNE, 100)]);
    let (mut bob, [first, second], receipt) = two_requests_and_a_receipt(&place);
    for memo in [
        format!("table 5 #{}", first.id),
        format!("#{}", first.id),
        format!("{}x", first.text()),
        first.text().to_uppercase(),
        "table 4".to_owned(),
    ] {
        let other = signed_again(&place, &receipt, memo);
        let refused = bob.receive_for_request(&other).expect_err("another memo");
        assert!(matches!(refused, WalletError::PaysNoRequest), "{refused}");
    }
    bob.cancel(second.id).expect("cancelled");
    let cancelled = signed_again(&place, &receipt, second.text());
    let refused = bob.receive_for_request(&cancelled).expect_err("cancelled");
    let state = RequestState::Cancelled;
    assert!(matches!(refused, WalletError::NotOpen { state: found, .. } if found == state));
    assert_eq!(free(&bob), 0, "nothing was stored");
    drop(bob);
    let mut bob = place.open(BOB);
    let refused = bob.receive_for_request(&cancelled).expect_err("cancelled for good");
    assert!(matches!(refused, WalletError::NotOpen { .. }));
    // Whoever may take in any receipt does, and the request is paid, if late.
    assert_eq!(bob.receive(&cancelled).expect("taken").request, Some(second.id));
    let refused = bob.cancel(second.id).expect_err("paid");
    assert!(matches!(refused, WalletError::NotOpen { state: RequestState::Paid, .. }));
}

#[test]
fn a_request_expires_and_has_bounds() {
    let place = Place::new(&[(ANNE, 1)]);
    let mut bob = place.create(BOB);
    let made = bob.request(1, None, Duration::from_secs(5), None).expect("made");
    let Request { terms, .. } = &made;
    assert_eq!(terms.expires_ms - terms.made_ms, 5_000);
    assert_eq!(made.state(terms.expires_ms - 1), RequestState::Open);
    assert_eq!(made.state(terms.expires_ms), RequestState::Expired);
    for (value, memo, open_for) in [
        (0, None, TIMEOUT),
        (1, Some("m".repeat(REQUEST_MEMO_BYTES_MAX + 1)), TIMEOUT),
        (1, None, Duration::ZERO),
        (1, None, REQUEST_TIME_MAX + Duration::from_millis(1)),
    ] {
        assert!(matches!(bob.request(value, memo, open_for, None), Err(WalletError::Order(_))));
    }
    let memo = Some("m".repeat(REQUEST_MEMO_BYTES_MAX));
    let longest = bob.request(1, memo, REQUEST_TIME_MAX, None).expect("made");
    assert_eq!(longest.text().len(), Memo::BYTES_MAX);
}

#[test]
fn limits_hold_over_restarts_and_by_name() {
    let place = Place::new(&[(ANNE, 100), (ANNE, 100)]);
    let mut anne = place.create(ANNE);
    let limits = Some(Limits { payment_max: 30, day_max: 50 });
    let till = Orderer { name: "till".to_owned(), limits };
    let refused = |wallet: &mut Wallet, value: u64| {
        let refused = wallet.begin_for(&pay(BOB, value), None, Some(&till)).expect_err("beyond");
        refused.to_string()
    };
    assert!(refused(&mut anne, 31).contains("at most 30 at once"));
    anne.begin_for(&pay(BOB, 30), Some("a"), Some(&till)).expect("within");
    drop(anne);
    let mut anne = place.open(ANNE);
    assert!(refused(&mut anne, 21).contains("has paid 30"));
    anne.begin_for(&pay(BOB, 30), Some("a"), Some(&till)).expect("the same");
    let other = Orderer { name: "other".to_owned(), limits };
    anne.begin_for(&pay(BOB, 21), Some("b"), Some(&other)).expect("another's limits");
    let by = |line: HistoryLine| line.by;
    let names: Vec<_> = anne.history().expect("read").into_iter().filter_map(by).collect();
    assert_eq!(names, ["till", "other"]);
    let table = anne.to_csv().expect("read");
    assert!(table.contains(",a,till\n"), "{table}");
    let redeem = anne.begin_for(&order(Purpose::Redeem { value: 1 }), None, Some(&till));
    assert!(redeem.expect_err("not to pay").to_string().contains("nothing else"));
}
