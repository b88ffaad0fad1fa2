//! Wallets that go from one epoch of their network to the next while they run.

use super::network::{change_of, network_file};
use super::*;
use crate::wallet::Authorities;
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_node::payments::{NetworkFollower, change_beside};
use quorate_payments::change::{Change, Inheritance};
use quorate_payments::{NetworkFile, RecordContent, WalletRecord, WalletRequest};
use quorate_types::{Epoch, ReplicaId};

/// A network on disk with Anne's 100, its founding epoch, and the change to the next.
struct Border {
    place: Place,
    path: PathBuf,
    change: Change,
}

impl Border {
    fn new() -> Self {
        let place = Place::new(&[(ANNE, 100)]);
        let file: NetworkFile = network_file(4, "test", &[(ANNE, 100)]);
        let path = place.folder.path().join("network.toml");
        fs::write(&path, toml::to_string(&file).expect("a table")).expect("written");
        let change = change_of(&place.network, &file);
        Self { place, path, change }
    }

    fn next(&self) -> Arc<Network> {
        Arc::new(self.place.network.succeed(&self.change).expect("all have signed"))
    }

    /// A service of Anne's new wallet in the founding epoch, with these authorities of the next.
    fn serve(&self, next: &Arc<Local>) -> Arc<PaymentService> {
        let wallet = self.place.create(ANNE);
        let epochs = [Arc::clone(&self.place.authorities), Arc::clone(next)];
        let connect = move |network: Arc<Network>| {
            let at = usize::try_from(network.epoch().0 - 1).expect("two epochs");
            Ok(Arc::clone(&epochs[at]) as Arc<dyn Authorities>)
        };
        let follower = NetworkFollower::open(&self.path).expect("a network");
        PaymentService::follow(wallet, follower, Box::new(connect), None).expect("connected")
    }

    /// Bob's wallet in the next epoch.
    fn bob(&self) -> Wallet {
        let path = self.place.path(BOB);
        Wallet::create(&path, key(BOB)).expect("made");
        Wallet::open(&path, self.next(), secret(BOB)).expect("a wallet")
    }

    /// What the next epoch inherits: all that was locked, or nothing.
    fn left(&self, is_reported: bool) -> Inheritance {
        if is_reported { self.place.authorities.left() } else { Inheritance::default() }
    }

    /// Anne pays Bob in the founding epoch: its receipt.
    fn paid(&self) -> PayReceipt {
        let mut anne = self.place.create(ANNE);
        let payment = self.place.apply(&mut anne, &pay(BOB, 30)).expect("paid");
        anne.receipt(&payment).expect("certified")
    }
}

/// ★ Nobody starts it again: the same bytes go to the authorities of the next epoch.
#[tokio::test]
async fn a_payment_under_way_goes_to_the_authorities_of_the_next_epoch() {
    let border = Border::new();
    let (former, next) = (Arc::clone(&border.place.authorities), Local::new(&border.next()));
    former.silence(&[0, 1]);
    let service = border.serve(&next);
    let open = service.pay(pay(BOB, 30), None, SHORT).await.expect("begun");
    assert_eq!(open.state, PaymentState::Begun);
    former.announce(border.change.clone());
    let paid = service.settle(open.id, TIMEOUT).await.expect("stored");
    assert_eq!(paid.state.name(), "certified");
    assert_eq!(former.shown().last(), next.shown().last(), "the same bytes");
    assert!(change_beside(&border.path, Epoch(2)).exists());
    assert_eq!((service.network().epoch(), service.trouble()), (Epoch(2), None));
    let again = service.pay(pay(BOB, 10), None, TIMEOUT).await.expect("paid");
    assert_eq!(again.state.name(), "certified", "with change of the new epoch");
}

/// A file that somebody puts there leads on by itself, and one that holds nothing says why.
#[tokio::test]
async fn a_wallet_goes_on_over_a_file_that_is_put_beside_its_own() {
    let border = Border::new();
    let next = Local::new(&border.next());
    border.place.authorities.silence(&[0, 1, 2, 3]);
    let service = border.serve(&next);
    let beside = change_beside(&border.path, Epoch(2));
    fs::write(&beside, "next = 1").expect("written");
    let refused = service.catch_up(TIMEOUT).await.expect_err("no change");
    assert!(matches!(refused, WalletError::NotFollowed(_)), "{refused}");
    quorate_node::payments::write_change(&beside, &border.change).expect("written");
    service.catch_up(TIMEOUT).await.expect("followed");
    assert_eq!(service.network().epoch(), Epoch(2));
    let paid = service.pay(pay(BOB, 30), None, TIMEOUT).await.expect("paid");
    assert_eq!(paid.state.name(), "certified");
}

#[tokio::test]
async fn a_receipt_of_an_ended_epoch_is_taken_in_once_a_quorum_says_that_it_counts() {
    // What keys of long ago signed alone is named by no report.
    for (is_reported, silent, is_taken) in
        [(true, &[3][..], true), (true, &[2, 3], false), (false, &[], false)]
    {
        let border = Border::new();
        let receipt = border.paid();
        let tx = receipt.coins[0].id.tx;
        let inherited = border.left(is_reported);
        let next = Local::after(&border.next(), inherited);
        next.silence(silent);
        let service = PaymentService::new(border.bob(), Arc::clone(&next) as _, None);
        let within = if silent.len() < 2 { TIMEOUT } else { SHORT };
        let taken = service.receive(receipt.clone(), within).await;
        match taken {
            Ok(received) => assert!(is_taken && received.added == 30),
            Err(WalletError::FormerEpoch { tx: of, epoch: Epoch(1), .. }) => {
                assert!(!is_taken && of == tx);
            }
            Err(WalletError::TooFewAuthorities { .. }) => assert_eq!(silent.len(), 2),
            Err(other) => panic!("{other}"),
        }
        let known = service.receive(receipt.clone(), SHORT).await;
        assert_eq!(known.is_ok(), is_taken, "what is known asks nobody");
    }
}

/// ★
fn a_receipt_of_an_ended_epoch_proves_nothing_offline() {
    let border = Border::new();
    let receipt = border.paid();
    let mut bob = border.bob();
    let refused = bob.receive(&receipt).expect_err("keys of then may have leaked");
    assert!(matches!(refused, WalletError::FormerEpoch { newest: Epoch(2), .. }), "{refused}");
    assert_eq!(bob.balance(), Balance::default());
}

#[test]
fn taking_in_what_keys_of_long_ago_signed_is_noticed() {
    assert_noticed(Mutant::PayReceiveFormer, a_receipt_of_an_ended_epoch_proves_nothing_offline);
}

/// One authority invents records, with certificates of keys that leaked.
#[tokio::test]
async fn a_restored_wallet_leaves_out_what_does_not_count() {
    for (is_reported, received) in [(true, 1), (false, 0)] {
        let border = Border::new();
        let receipt = border.paid();
        let next = Local::after(&border.next(), border.left(is_reported));
        next.asked_by(BOB);
        let path = border.place.path(BOB);
        Wallet::create_for_used_key(&path, key(BOB)).expect("made");
        let bob = Wallet::open(&path, border.next(), secret(BOB)).expect("a wallet");
        let record = WalletRecord {
            content: RecordContent::Received(receipt.coins.clone()),
            note: Vec::new(),
        };
        next.ask(ReplicaId(0), WalletRequest::Store(Box::new(record))).await;
        let service = PaymentService::new(bob, Arc::clone(&next) as _, None);
        let regained = service.recover(TIMEOUT).await.expect("all answer").regained;
        assert_eq!((regained.receipts, regained.uncounted.len()), (received, 1 - received));
        let free = service.with(|wallet| wallet.balance().free);
        assert_eq!(free, if is_reported { 30 } else { 0 });
    }
}
