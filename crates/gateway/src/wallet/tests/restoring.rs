//! Wallets that lost their book, or have an older one: made again from what authorities keep.

use super::network::Lie;
use super::*;
use crate::wallet::regain::GenuineRecords;
use crate::wallet::{Backup, Recovery};
use quorate_crypto::hash;
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_payments::{
    Coin, CoinStatus, Memo, PaymentOutcome, RecordContent, Transaction, WalletRecord,
};
use quorate_types::ReplicaId;

impl Place {
    pub(super) fn service(&self, wallet: Wallet) -> Arc<PaymentService> {
        PaymentService::new(wallet, Arc::clone(&self.authorities) as _, None)
    }

    /// Pays by way of a service, as wallets do, and gives the wallet back.
    pub(super) async fn paid(&self, owner: u8, order: Order, key: &str) -> Payment {
        let service = self.service(self.open(owner));
        let payment = service.pay(order, Some(key.to_owned()), TIMEOUT).await.expect("begun");
        self.release(service).await;
        payment
    }

    /// Begins a payment that too few authorities vote for. Its task holds the book for good.
    async fn begun(&self, owner: u8, order: Order, key: &str) -> Payment {
        let service = self.service(self.open(owner));
        let payment = service.pay(order, Some(key.to_owned()), SHORT).await.expect("begun");
        assert_eq!(payment.state, PaymentState::Begun);
        payment
    }

    /// Waits until nobody else has a service, and lets go of its wallet's book here: whoever has it
    /// last closes the book a moment after it is counted no more.
    pub(super) async fn release(&self, mut service: Arc<PaymentService>) {
        while let Err(shared) = Arc::try_unwrap(service) {
            service = shared;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Makes a wallet again from its key and the authorities, in a folder of its own: the task of
    /// an unfinished payment holds the old one.
    pub(super) fn restored(&self, name: &str, backup: Option<&Backup>) -> Arc<PaymentService> {
        let path = self.folder.path().join(name);
        Wallet::restore(&path, &secret(ANNE), backup).expect("made");
        self.service(self.open_at(&path, ANNE).expect("a wallet"))
    }
}

/// Anne has 100 and 40 of the genesis and 7 of Bob's, paid 30 with a memo, and began to pay 35 when
/// two authorities were silent.
async fn half_paid() -> (Place, Payment) {
    let place = Place::new(&[(ANNE, 100), (ANNE, 40), (BOB, 7)]);
    drop((place.create(ANNE), place.create(BOB)));
    let gift = place.paid(BOB, pay(ANNE, 7), "gift").await;
    let receipt = place.open(BOB).receipt(&gift).expect("certified");
    place.open(ANNE).receive(&receipt).expect("taken");
    let with_memo = Order { memo: Some("invoice 7".into()), ..pay(BOB, 30) };
    assert_eq!(place.paid(ANNE, with_memo, "one").await.state.name(), "certified");
    place.authorities.silence(&[0, 1]);
    let half = place.begun(ANNE, pay(BOB, 75), "two").await;
    place.authorities.silence(&[]);
    (place, half)
}

async fn recover(service: &Arc<PaymentService>) -> Recovery {
    service.recover(TIMEOUT).await.expect("recovered")
}

fn check_whole(place: &Place, service: &Arc<PaymentService>, half: TxId) {
    let (balance, lines) =
        service.with(|wallet| (wallet.balance(), wallet.history().expect("read")));
    assert_eq!(balance.free, 100 + 40 + 7 - 30 - 75, "{balance:?}");
    assert_eq!((balance.reserved, balance.unasked, balance.stuck), (0, 0, 0));
    let keys: BTreeSet<_> = lines.iter().filter_map(|line| line.key.as_deref()).collect();
    assert_eq!(keys, BTreeSet::from(["one", "two"]));
    assert!(lines.iter().any(|line| line.memo.as_deref() == Some("invoice 7")));
    let state = service.with(|wallet| wallet.payment(half).expect("known").state.name());
    assert_eq!(state, "certified");
    assert_eq!(place.authorities.evidence(), 0);
}

#[tokio::test]
async fn a_wallet_comes_back_from_its_key_and_the_half_payment_is_finished() {
    let (place, half) = half_paid().await;
    let service = place.restored("again", None);
    let recovery = recover(&service).await;
    assert_eq!((recovery.answered, recovery.regained.payments), (4, 2));
    assert_eq!(recovery.regained.receipts, 1);
    check_whole(&place, &service, half.id);
    let key = Some("two".to_owned());
    let again = service.pay(pay(BOB, 75), key, TIMEOUT).await.expect("the same");
    assert_eq!(again.id, half.id, "the caller's names came back");
    let next = service.pay(pay(BOB, 42), None, TIMEOUT).await.expect("paid");
    assert_eq!(next.state.name(), "certified");
    assert_eq!(place.authorities.evidence(), 0);
}

#[tokio::test]
async fn an_old_backup_learns_what_came_after_it() {
    let place = Place::new(&[(ANNE, 100), (ANNE, 40), (BOB, 7)]);
    drop((place.create(ANNE), place.create(BOB)));
    place.paid(ANNE, pay(BOB, 10), "before").await;
    let file = place.folder.path().join("backup");
    place.open(ANNE).backup(None).expect("made").write(&file).expect("written");
    assert!(place.open(ANNE).backup(None).expect("made").write(&file).is_err(), "never replaced");
    place.paid(ANNE, pay(BOB, 20), "after").await;
    let backup = Backup::read(&file).expect("a backup");
    let service = place.restored("again", Some(&backup));
    assert!(service.with(|wallet| wallet.begin(&pay(BOB, 1), None).is_err()), "not asked yet");
    assert_eq!(recover(&service).await.regained.payments, 1);
    service.with(|wallet| {
        assert_eq!(free(wallet), 110);
        let keys = wallet.history().expect("read").into_iter().filter_map(|line| line.key);
        assert_eq!(keys.collect::<Vec<_>>(), ["before", "after"]);
    });
    let refused = Wallet::restore(&place.path(BOB), &secret(BOB), Some(&backup));
    assert!(matches!(refused, Err(WalletError::OtherOwner { .. })));
    let mut bytes = fs::read(&file).expect("read");
    *bytes.last_mut().expect("some") ^= 1;
    fs::write(&file, &bytes).expect("written");
    let altered = Backup::read(&file).expect("it reads");
    let refused = Wallet::restore(&place.path(ANNE), &secret(ANNE), Some(&altered));
    assert!(matches!(refused, Err(WalletError::Backup(_))));
}

/// ★ Who knows of a lock is not among the quorum that says a coin is free, whatever it can show.
#[test]
fn a_coin_is_free_when_a_quorum_says_so() {
    on_this_thread(free_by_a_quorum());
}

#[test]
fn a_coin_that_is_free_by_fewer_is_noticed() {
    let test: fn() = || on_this_thread(free_by_a_quorum());
    assert_noticed(Mutant::PayFreeByFewer, test);
}

/// Where a mutant is active.
fn on_this_thread(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(test);
}

async fn free_by_a_quorum() {
    let place = Place::new(&[(ANNE, 100)]);
    drop(place.create(ANNE));
    let service = place.restored("again", None);
    service.with(|wallet| {
        wallet.receive_genesis().expect("stored");
        wallet.end_recovery().expect("stored");
        let coins = wallet.unasked();
        let locked = || CoinStatus::Locked { tx: TxId(hash(b"pruned")), core: None };
        let mut told = |states: &[(u16, CoinStatus)]| {
            let of = |(from, state): &(u16, CoinStatus)| (ReplicaId(*from), vec![state.clone()]);
            let answers: Vec<_> = states.iter().map(of).collect();
            wallet.take_states(&coins, &answers).expect("stored");
            free(wallet)
        };
        let free = |from| (from, CoinStatus::Free);
        assert_eq!(told(&[free(0), free(1), (2, locked())]), 0);
        assert_eq!(told(&[free(0), free(1), (2, locked()), free(3)]), 100);
    });
}

#[test]
fn no_request_is_paid_before_the_wallet_is_whole() {
    on_this_thread(requests_wait_for_the_records());
}

#[test]
fn a_request_that_is_paid_before_is_noticed() {
    let test: fn() = || on_this_thread(requests_wait_for_the_records());
    assert_noticed(Mutant::PayRequestUnrecovered, test);
}

/// ★ Before all that authorities keep is back nothing tells an old receipt from a new one.
async fn requests_wait_for_the_records() {
    let place = Place::new(&[(ANNE, 100), (BOB, 7)]);
    drop((place.create(ANNE), place.create(BOB)));
    let gift = place.paid(BOB, pay(ANNE, 7), "gift").await;
    let service = place.restored("again", None);
    let request = service.with(|wallet| wallet.request(7, Some("cup".into()), TIMEOUT, None));
    let request = request.expect("made");
    let text = Memo::sign(&place.network, &secret(BOB), gift.id, request.text());
    let old = place.open(BOB).receipt(&gift).expect("certified");
    let old = PayReceipt { memo: Some(text), ..old };
    let brought = service.with(|wallet| wallet.receive_for_request(&old).map(drop));
    assert!(matches!(brought, Err(WalletError::TooFewAuthorities { .. })), "{brought:?}");
    service.with(|wallet| assert_eq!(wallet.receive(&old).expect("taken").request, None));
}

/// A backup does not take the place of a book that goes on from it.
#[tokio::test]
async fn restoring_from_a_backup_twice_loses_nothing() {
    let place = Place::new(&[(ANNE, 100), (BOB, 7)]);
    drop((place.create(ANNE), place.create(BOB)));
    let backup = place.open(ANNE).backup(None).expect("made");
    let gift = place.paid(BOB, pay(ANNE, 7), "gift").await;
    let receipt = place.open(BOB).receipt(&gift).expect("certified");
    place.open(ANNE).receive(&receipt).expect("taken");
    let kept = Wallet::restore(&place.path(ANNE), &secret(ANNE), Some(&backup)).expect("made");
    assert!(kept.is_some_and(|kept| kept.exists()));
    let unasked = place.open(ANNE).balance().unasked;
    assert_eq!(unasked, 107, "nobody has the receipt but this book");
}

#[tokio::test]
async fn one_authority_that_lies_costs_nothing() {
    for lie in [Lie::Omits, Lie::Alters, Lie::Invents] {
        for liar in [0, 3] {
            let (place, half) = half_paid().await;
            place.authorities.lie(liar, lie);
            let service = place.restored("again", None);
            recover(&service).await;
            check_whole(&place, &service, half.id);
        }
    }
}

#[tokio::test]
async fn nothing_is_paid_before_a_quorum_told_what_it_keeps() {
    let (place, half) = half_paid().await;
    let service = place.restored("again", None);
    place.authorities.silence(&[1, 2]);
    let refused = service.pay(pay(BOB, 1), None, SHORT).await.expect_err("too few");
    assert!(matches!(refused, WalletError::TooFewAuthorities { answered: 2, of: 4 }), "{refused}");
    place.authorities.silence(&[]);
    recover(&service).await;
    check_whole(&place, &service, half.id);
}

/// A coin that is locked for a transaction which nobody recorded is named, and not spent.
#[tokio::test]
async fn a_coin_of_an_unknown_transaction_is_stuck() {
    let place = Place::new(&[(ANNE, 100), (ANNE, 40)]);
    let mut anne = place.create(ANNE);
    place.authorities.silence(&[0, 1, 2]);
    let lost = place.apply(&mut anne, &pay(BOB, 60)).expect("begun");
    drop(anne);
    place.authorities.silence(&[]);
    let service = place.restored("again", None);
    recover(&service).await;
    service.with(|wallet| {
        assert_eq!((wallet.balance().free, wallet.balance().stuck), (40, 100));
        assert_eq!(wallet.stuck(), BTreeMap::from([(lost.id, 100)]));
    });
    let refused = service.pay(pay(BOB, 50), None, TIMEOUT).await.expect_err("too little");
    assert!(refused.to_string().contains("100 were taken by a transaction"), "{refused}");
    assert_eq!(place.authorities.evidence(), 0);
}

/// A receipt of long ago is taken in by a restored wallet, and asked for before it is spent.
#[tokio::test]
async fn what_comes_in_after_a_restore_is_asked_for() {
    let place = Place::new(&[(ANNE, 100)]);
    drop(place.create(ANNE));
    let service = place.restored("again", None);
    recover(&service).await;
    let mut bob = {
        drop(place.create(BOB));
        place.open(BOB)
    };
    let mut issuer = place.create(ISSUER);
    let issued = place.apply(&mut issuer, &order(Purpose::Issue { payee: key(ANNE), value: 9 }));
    let receipt = issuer.receipt(&issued.expect("issued")).expect("certified");
    assert!(bob.receive(&receipt).is_err());
    service.with(|wallet| {
        wallet.receive(&receipt).expect("taken");
        assert_eq!((free(wallet), wallet.balance().unasked), (100, 9));
    });
    let paid = service.pay(pay(BOB, 109), None, TIMEOUT).await.expect("paid");
    assert_eq!(paid.state.name(), "certified");
}

/// ★ Nothing is signed over a coin whose state no quorum told since the book was made again.
fn unasked_coins_are_not_spent() {
    let place = Place::new(&[(ANNE, 100)]);
    let mut anne = place.create(ANNE);
    place.authorities.silence(&[0, 1]);
    place.apply(&mut anne, &pay(BOB, 60)).expect("begun");
    drop(anne);
    Wallet::restore(&place.folder.path().join("again"), &secret(ANNE), None).expect("made");
    let mut anne = place.open_at(&place.folder.path().join("again"), ANNE).expect("a wallet");
    anne.receive_genesis().expect("stored");
    let refused = anne.begin(&pay(ISSUER, 60), None);
    assert!(matches!(refused, Err(WalletError::TooFewAuthorities { .. })));
    anne.end_recovery().expect("stored");
    let refused = anne.begin(&pay(ISSUER, 60), None);
    assert!(matches!(refused, Err(WalletError::TooLittle { unasked: 100, .. })));
}

#[test]
fn a_restored_wallet_spends_what_was_asked_for_alone() {
    unasked_coins_are_not_spent();
}

#[test]
fn a_wallet_that_spends_unasked_coins_is_noticed() {
    assert_noticed(Mutant::PaySpendUnasked, unasked_coins_are_not_spent);
}

/// ★ A book set back to an older copy is refused.
fn an_older_book_is_refused() {
    let place = Place::new(&[(ANNE, 100)]);
    let mut anne = place.create(ANNE);
    let old = fs::read(place.path(ANNE)).expect("read");
    place.apply(&mut anne, &pay(BOB, 60)).expect("paid");
    drop(anne);
    fs::write(place.path(ANNE), old).expect("written");
    let refused = place.open_at(&place.path(ANNE), ANNE).expect_err("behind");
    assert!(matches!(refused, WalletError::Behind { .. }), "{refused}");
}

#[test]
fn a_book_that_is_set_back_is_not_opened() {
    an_older_book_is_refused();
}

#[test]
fn a_wallet_that_opens_a_book_behind_its_mark_is_noticed() {
    assert_noticed(Mutant::PayOpenBehindMark, an_older_book_is_refused);
}

#[test]
fn a_lost_book_is_not_made_anew_for_its_key() {
    let place = Place::new(&[(ANNE, 100)]);
    drop(place.create(ANNE));
    fs::remove_file(place.path(ANNE)).expect("removed");
    for made in [
        Wallet::create(&place.path(ANNE), key(ANNE)),
        Wallet::create_for_used_key(&place.path(ANNE), key(ANNE)),
    ] {
        assert!(matches!(made, Err(WalletError::Lost { .. })), "{made:?}");
    }
}

/// A receipt of which authorities recorded different coins comes back with all of them.
#[test]
fn coins_of_one_receipt_are_united_over_answers() {
    let place = Place::new(&[]);
    let outputs = [20, 30].map(|value| Output { owner: key(ANNE), value }).to_vec();
    let transaction = Transaction::issue(&place.network, &secret(ISSUER), 7, outputs);
    let transaction = Arc::new(transaction);
    let outcome = place.authorities.outcome(&transaction).expect("an outcome");
    let PaymentOutcome::Certified(certificate) = outcome else { panic!("{outcome:?}") };
    let coins = transaction.coins(place.network.id(), &certificate);
    let record = |coins: &[Coin]| WalletRecord {
        content: RecordContent::Received(coins.to_vec()),
        note: Vec::new(),
    };
    Wallet::restore(&place.path(ANNE), &secret(ANNE), None).expect("made");
    let mut anne = place.open(ANNE);
    let records = vec![record(&coins[..1]), record(&coins[1..]), record(&coins[..1])];
    let mut genuine = GenuineRecords::default();
    anne.add_genuine(records, &mut genuine);
    assert_eq!(anne.take_records(genuine).expect("stored").receipts, 1);
    assert_eq!(anne.balance().unasked, 50);
}
