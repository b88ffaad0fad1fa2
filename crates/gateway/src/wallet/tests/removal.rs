//! Records that authorities removed: a wallet made again from its key has what it had.

use super::network::{Lie, key};
use super::{ANNE, BOB, Order, Place, TIMEOUT, free, pay};
use crate::wallet::{PaymentService, Wallet};
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_types::ReplicaId;
use std::sync::Arc;
use std::time::Duration;

/// Anne has 1000 of the genesis, took in a coin of 9 of Bob's, and made ten payments of 30, of
/// which some are folded; nothing is removed yet. The coin of 9 is an old line that is not over.
async fn much_paid() -> Place {
    let place = Place::new(&[(ANNE, 1_000), (BOB, 109)]).folding();
    drop((place.create(ANNE), place.create(BOB)));
    place.authorities.refuse_removals(true);
    let gift = paid(&place, BOB, pay(ANNE, 9), "gift").await;
    place.open(ANNE).receive(&gift).expect("taken");
    let service = place.service(place.open(ANNE));
    service.store_receipts(TIMEOUT).await.expect("noted");
    place.release(service).await;
    for number in 0..10 {
        let order = Order { memo: Some(format!("order {number}")), ..pay(BOB, 30) };
        paid(&place, ANNE, order, &format!("key {number}")).await;
    }
    place.authorities.refuse_removals(false);
    place
}

async fn paid(place: &Place, by: u8, order: Order, key: &str) -> quorate_payments::PayReceipt {
    let payment = place.paid(by, order, key).await;
    place.open(by).receipt(&payment).expect("certified")
}

async fn remove(place: &Place) {
    remove_within(place, TIMEOUT).await;
}

async fn remove_within(place: &Place, within: Duration) {
    let service = place.service(place.open(ANNE));
    service.remove_records(within).await.expect("noted");
    place.release(service).await;
}

/// Makes Anne's wallet again from her key, and checks that it has what she has.
async fn check_restored(place: &Place, name: &str) -> Arc<PaymentService> {
    let service = place.restored(name, None);
    service.recover(TIMEOUT).await.expect("recovered");
    service.with(|wallet| {
        let balance = wallet.balance();
        assert_eq!((balance.free, balance.coins_free), (709, 2), "{balance:?}");
        assert_eq!((balance.unasked, balance.stuck, balance.reserved), (0, 0, 0), "{balance:?}");
    });
    assert_eq!(place.authorities.evidence(), 0);
    service
}

fn on_this_thread(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(test);
}

/// Folds Anne's book, and checks that no authority will be asked to remove the record of a coin
/// that she has.
fn fold_with_every_coin(place: &Place) {
    let mut wallet = place.open(ANNE);
    wallet.fold().expect("folded");
    let authority = *place.network.committee().identity(ReplicaId(0)).expect("a member");
    let removable = wallet.removable(authority).expect("read").expect("some");
    assert!(removable.names.len() > 5, "{}", removable.names.len());
    assert!(removable.names.iter().all(|name| !wallet.state.has_coin_of(name.tx)));
}

/// ★ The records that are left tell of every coin that is not spent.
async fn what_is_left_has_every_coin() {
    let place = much_paid().await;
    let before = place.authorities.records(key(ANNE));
    fold_with_every_coin(&place);
    remove(&place).await;
    let after = place.authorities.records(key(ANNE));
    assert!(after.iter().zip(&before).all(|(after, before)| *after < before - 5), "{after:?}");
    let service = check_restored(&place, "again").await;
    let lines = service.with(|wallet| wallet.history().expect("read").len());
    assert!(lines < 8, "{lines}: the history is shorter");
    let next = service.pay(pay(BOB, 705), None, TIMEOUT).await.expect("paid");
    assert_eq!(next.state.name(), "certified");
}

#[test]
fn a_wallet_comes_back_from_what_was_not_removed() {
    on_this_thread(what_is_left_has_every_coin());
}

#[test]
fn a_wallet_that_removes_records_of_its_coins_is_noticed() {
    let test: fn() = || on_this_thread(what_is_left_has_every_coin());
    assert_noticed(Mutant::PayRemoveUnspent, test);
}

/// A removal reaches some authorities only, and any quorum of them is asked by the restored wallet.
#[tokio::test]
async fn a_removal_that_reached_some_authorities_changes_nothing() {
    let cases = [(&[0][..], &[1][..]), (&[1, 2], &[0]), (&[0, 1, 2], &[3]), (&[3, 2], &[])];
    for (unreached, silent) in cases {
        let place = much_paid().await;
        place.authorities.silence(unreached);
        remove_within(&place, Duration::from_millis(200)).await;
        place.authorities.silence(silent);
        let service = check_restored(&place, "again").await;
        place.release(service).await;
        place.authorities.silence(&[]);
        remove(&place).await;
        check_restored(&place, "at-last").await;
    }
}

/// Killed between what an authority did and the word of it in the book, the wallet asks again.
#[tokio::test]
async fn a_removal_that_was_not_noted_is_asked_for_again() {
    let place = much_paid().await;
    let authority = *place.network.committee().identity(quorate_types::ReplicaId(1)).expect("one");
    let removable = place.open(ANNE).removable(authority).expect("read").expect("some");
    place.authorities.remove_at(1, key(ANNE), &removable.names);
    check_restored(&place, "again").await;
    remove(&place).await;
    let counts = place.authorities.records(key(ANNE));
    assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
    assert!(place.open(ANNE).removable(authority).expect("read").is_none());
    check_restored(&place, "once-more").await;
}

/// An authority that lies about what it has costs nothing, whatever was removed at the others.
#[tokio::test]
async fn one_authority_that_lies_costs_nothing_after_removals() {
    for lie in [Lie::Omits, Lie::Alters, Lie::Invents] {
        let place = much_paid().await;
        remove(&place).await;
        place.authorities.lie(2, lie);
        check_restored(&place, "again").await;
    }
}

/// What a restored wallet took in and that was spent long ago is folded away and removed again.
#[tokio::test]
async fn a_restored_wallet_removes_what_it_found_to_be_spent() {
    let place = much_paid().await;
    place.authorities.silence(&[0]);
    remove_within(&place, Duration::from_millis(200)).await;
    place.authorities.silence(&[]);
    let service = check_restored(&place, "again").await;
    service.with(|wallet: &mut Wallet| wallet.fold().expect("folded"));
    service.remove_records(TIMEOUT).await.expect("noted");
    let counts = place.authorities.records(key(ANNE));
    assert!(counts[0] < 8, "{counts:?}");
    assert_eq!(service.with(|wallet| free(wallet)), 709);
}
