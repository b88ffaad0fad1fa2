mod folding;
mod following;
pub(crate) mod network;
mod releasing;
mod removal;
mod requests;
mod restoring;

use super::folding::Folding;
use super::state::Newest;
use super::{
    Balance, Evidence, Order, Payment, PaymentFileError, PaymentReceipt, PaymentRequest,
    PaymentService, PaymentState, Purpose, Wallet, WalletError, mark,
};
use network::{ISSUER, Local, key, network, network_of, secret};
use proptest::prelude::*;
use quorate_crypto::IdentityKey;
use quorate_node::proof_file::ProofFile as _;
use quorate_payments::{Network, Output, PayReceipt, TxId};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const ANNE: u8 = 1;
const BOB: u8 = 2;
const TIMEOUT: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(20);

/// Folders of wallets beside a network.
struct Place {
    folder: tempfile::TempDir,
    network: Arc<Network>,
    authorities: Arc<Local>,
    folding: Folding,
}

impl Place {
    fn new(genesis: &[(u8, u64)]) -> Self {
        Self::of(4, genesis)
    }

    /// A network of so many authorities.
    fn of(authorities: u8, genesis: &[(u8, u64)]) -> Self {
        let network = network_of(authorities, "test", genesis);
        let authorities = Local::new(&network);
        let folding = Folding::default();
        Self { folder: tempfile::tempdir().expect("a folder"), network, authorities, folding }
    }

    /// The same, whose wallets fold their books after a few lines.
    fn folding(self) -> Self {
        let newest = Newest { lines: 2, bytes: usize::MAX };
        let folding = Folding { newest, lines_min: 4, growth_bytes: u64::MAX };
        Self { folding, ..self }
    }

    fn path(&self, owner: u8) -> PathBuf {
        self.folder.path().join(format!("wallet-{owner}"))
    }

    fn create(&self, owner: u8) -> Wallet {
        Wallet::create(&self.path(owner), key(owner)).expect("made");
        let mut wallet = self.open(owner);
        wallet.receive_genesis().expect("stored");
        wallet
    }

    fn open(&self, owner: u8) -> Wallet {
        self.open_at(&self.path(owner), owner).expect("a wallet")
    }

    fn open_at(&self, path: &Path, owner: u8) -> Result<Wallet, WalletError> {
        Wallet::open_folding(path, Arc::clone(&self.network), secret(owner), self.folding)
    }

    /// Begins a payment and shows it to the authorities.
    fn apply(&self, wallet: &mut Wallet, order: &Order) -> Result<Payment, WalletError> {
        let payment = wallet.begin(order, None)?;
        match self.authorities.outcome(&payment.transaction) {
            Some(outcome) => wallet.end(payment.id, outcome),
            None => Ok(payment),
        }
    }
}

/// Copies a wallet's book and its mark.
fn copy_wallet(from: &Path, to: &Path) {
    fs::copy(from, to).expect("copied");
    fs::copy(mark::path_of(from), mark::path_of(to)).expect("copied");
}

fn order(purpose: Purpose) -> Order {
    Order { purpose, memo: None }
}

fn pay(payee: u8, value: u64) -> Order {
    order(Purpose::Pay { payee: key(payee), value })
}

fn free(wallet: &Wallet) -> u128 {
    wallet.balance().free
}

#[test]
fn a_payment_gives_change_and_a_receipt_that_its_payee_takes_offline() {
    let place = Place::new(&[(ANNE, 100)]);
    let (mut anne, mut bob) = (place.create(ANNE), place.create(BOB));
    let order = Order { memo: Some("invoice 7".into()), ..pay(BOB, 30) };
    let payment = place.apply(&mut anne, &order).expect("paid");
    assert_eq!((payment.state.name(), payment.value()), ("certified", 30));
    assert_eq!(free(&anne), 70);
    let receipt = anne.receipt(&payment).expect("a receipt");
    let text = PaymentReceipt::new(&place.network, &receipt).expect("a file").to_text();
    let (paper, receipt) = PaymentReceipt::parse(&text, &place.network).expect("it holds");
    assert_eq!((paper.value, paper.memo.as_deref()), (30, Some("invoice 7")));
    assert_eq!(bob.receive(&receipt).expect("taken").added, 30);
    assert_eq!(bob.receive(&receipt).expect("harmless").added, 0);
    assert_eq!(free(&bob), 30);
    let refused = anne.receive(&receipt).expect_err("not hers");
    assert!(matches!(refused, WalletError::NotMine { payee, .. } if payee == key(BOB)));
    assert_eq!(bob.history().expect("read").len(), 1, "a duplicate is no line");
}

#[test]
fn what_this_wallet_spent_does_not_come_back() {
    let place = Place::new(&[(ANNE, 100)]);
    let (mut anne, mut bob) = (place.create(ANNE), place.create(BOB));
    let payment = place.apply(&mut anne, &pay(BOB, 100)).expect("paid");
    let receipt = anne.receipt(&payment).expect("a receipt");
    bob.receive(&receipt).expect("taken");
    place.apply(&mut bob, &order(Purpose::Redeem { value: 100 })).expect("redeemed");
    assert_eq!(bob.receive(&receipt).expect("it holds").added, 0);
    assert_eq!(bob.balance(), Balance::default());
    assert_eq!(anne.receive_genesis().expect("known"), 0);
    assert_eq!(free(&anne), 0);
}

#[test]
fn only_the_issuer_issues_and_a_serial_is_used_once() {
    let place = Place::new(&[]);
    let (mut anne, mut issuer) = (place.create(ANNE), place.create(ISSUER));
    let issue = order(Purpose::Issue { payee: key(ANNE), value: 50 });
    let refused = place.apply(&mut anne, &issue).expect_err("not the issuer");
    assert!(matches!(refused, WalletError::NotTheIssuer { issuer } if issuer == key(ISSUER)));
    let mut ids = Vec::new();
    for _ in 0..2 {
        let payment = place.apply(&mut issuer, &issue).expect("issued");
        anne.receive(&issuer.receipt(&payment).expect("certified")).expect("taken");
        ids.push(payment.id);
        drop(issuer);
        issuer = place.open(ISSUER);
    }
    assert_ne!(ids[0], ids[1], "the serial number is kept");
    assert_eq!(free(&anne), 100);
    let redeemed = place.apply(&mut anne, &order(Purpose::Redeem { value: 60 }));
    let redeemed = redeemed.expect("redeemed");
    assert_eq!((redeemed.payee(), free(&anne)), (Output::BURNT, 40));
}

#[test]
fn a_key_names_one_payment() {
    let place = Place::new(&[(ANNE, 100), (ANNE, 100)]);
    let mut anne = place.create(ANNE);
    let first = anne.begin(&pay(BOB, 30), Some("order 1")).expect("begun").id;
    assert_eq!(anne.begin(&pay(BOB, 30), Some("order 1")).expect("the same").id, first);
    drop(anne);
    let mut anne = place.open(ANNE);
    assert_eq!(anne.begin(&pay(BOB, 30), Some("order 1")).expect("the same").id, first);
    let with_memo = Order { memo: Some("x".into()), ..pay(BOB, 30) };
    for other in [pay(BOB, 31), pay(ISSUER, 30), with_memo, order(Purpose::Redeem { value: 30 })] {
        let refused = anne.begin(&other, Some("order 1")).expect_err("another content");
        assert!(matches!(refused, WalletError::KeyTaken { payment, .. } if payment == first));
    }
    assert_ne!(anne.begin(&pay(BOB, 30), Some("order 2")).expect("another").id, first);
    assert_eq!(anne.unfinished().len(), 2);
}

#[test]
fn orders_that_cannot_be_are_refused_and_nothing_is_stored() {
    let place = Place::new(&[(ANNE, 100)]);
    let mut anne = place.create(ANNE);
    let before = fs::read(place.path(ANNE)).expect("read");
    let mut refused = |order: Order, key: Option<&str>, reason: &str| {
        let error = anne.begin(&order, key).expect_err(reason).to_string();
        assert!(error.contains(reason), "{error}");
    };
    refused(pay(BOB, 0), None, "at least 1");
    refused(pay(ANNE, 1), None, "does not pay itself");
    refused(order(Purpose::Pay { payee: Output::BURNT, value: 1 }), None, "by redeeming");
    let nobody = IdentityKey([2; 32]);
    assert!(nobody.prepare().is_err(), "it encodes no key");
    refused(order(Purpose::Pay { payee: nobody, value: 1 }), None, "is no key");
    refused(pay(BOB, 101), None, "101 are needed, and 100 are free");
    refused(order(Purpose::Consolidate), None, "fewer than two");
    refused(Order { memo: Some("x".repeat(1_025)), ..pay(BOB, 1) }, None, "1024 bytes");
    refused(pay(BOB, 1), Some(""), "1 to 255 bytes");
    refused(pay(BOB, 1), Some(&"k".repeat(256)), "1 to 255 bytes");
    assert_eq!(fs::read(place.path(ANNE)).expect("read"), before);
}

#[test]
fn consolidation_makes_one_coin_of_many() {
    let genesis: Vec<(u8, u64)> = (0..70).map(|_| (ANNE, 1)).collect();
    let place = Place::new(&genesis);
    let mut anne = place.create(ANNE);
    let refused = anne.begin(&pay(BOB, 70), None).expect_err("too many coins");
    assert!(matches!(refused, WalletError::TooManyCoins { most: 64, needed: 70 }));
    place.apply(&mut anne, &order(Purpose::Consolidate)).expect("consolidated");
    let balance = anne.balance();
    assert_eq!((balance.free, balance.coins_free), (70, 7));
    place.apply(&mut anne, &pay(BOB, 70)).expect("paid");
    assert_eq!(free(&anne), 0);
}

#[test]
fn coins_of_an_unfinished_payment_are_reserved_and_the_same_bytes_go_again() {
    let place = Place::new(&[(ANNE, 100)]);
    let mut anne = place.create(ANNE);
    place.authorities.silence(&[0, 1]);
    let payment = place.apply(&mut anne, &pay(BOB, 30)).expect("begun");
    assert_eq!(payment.state, PaymentState::Begun);
    let refused = anne.begin(&pay(BOB, 1), None).expect_err("reserved");
    assert!(matches!(refused, WalletError::TooLittle { free: 0, reserved: 100, .. }));
    drop(anne);
    let mut anne = place.open(ANNE);
    assert_eq!(anne.balance(), Balance { reserved: 100, ..Balance::default() });
    place.authorities.silence(&[3]);
    for (tx, transaction) in anne.unfinished() {
        let outcome = place.authorities.outcome(&transaction).expect("three answer");
        anne.end(tx, outcome).expect("stored");
    }
    assert_eq!((free(&anne), anne.unfinished().len()), (70, 0));
    let shown = place.authorities.shown();
    assert_eq!(shown.len(), 2);
    assert_eq!(shown[0], shown[1]);
}

#[test]
fn two_copies_of_a_wallet_freeze_their_coins_and_the_evidence_is_shown() {
    let place = Place::new(&[(ANNE, 100), (ANNE, 5)]);
    drop(place.create(ANNE));
    let copy = place.folder.path().join("copy");
    copy_wallet(&place.path(ANNE), &copy);
    let mut first = place.open(ANNE);
    let mut second = place.open_at(&copy, ANNE).expect("a wallet");
    place.apply(&mut first, &pay(BOB, 60)).expect("paid");
    let lost = place.apply(&mut second, &pay(ISSUER, 70)).expect("told");
    let PaymentState::Conflicting { evidence: Some(evidence), .. } = &lost.state else {
        panic!("a double spend with evidence: {:?}", lost.state)
    };
    assert_eq!(
        second.balance(),
        Balance { free: 5, frozen: 100, coins_free: 1, ..Balance::default() }
    );
    assert_eq!(second.frozen(), BTreeMap::from([(lost.id, 100)]));
    assert!(second.receipt(&lost).is_none());
    let refused = second.begin(&pay(BOB, 50), None).expect_err("frozen").to_string();
    assert!(refused.contains("100 are frozen"), "{refused}");

    let paper = Evidence::new(&place.network, evidence);
    assert_eq!((paper.payer.clone(), paper.disputed.len()), (key(ANNE).to_string(), 1));
    let file = place.folder.path().join("evidence.json");
    fs::write(&file, paper.to_text()).expect("written");
    assert_eq!(Evidence::read(&file, &place.network).expect("proven"), paper);
    // The payer's name stands before the proof, which has it too.
    let slander = paper.to_text().replacen(&paper.payer, &key(BOB).to_string(), 1);
    fs::write(&file, slander).expect("written");
    let refused = Evidence::read(&file, &place.network).expect_err("Bob is slandered");
    assert!(matches!(refused, PaymentFileError::OtherText(field) if field == "payer"));
}

#[test]
fn wallets_are_one_keys_and_one_networks() {
    let place = Place::new(&[(ANNE, 100)]);
    drop(place.create(ANNE));
    let path = place.path(ANNE);
    let refused = place.open_at(&path, BOB).expect_err("not Bob's");
    assert!(matches!(refused, WalletError::OtherOwner { .. }));
    let other = Wallet::open(&path, network("other", &[]), secret(ANNE)).expect_err("refused");
    assert!(matches!(other, WalletError::OtherNetwork { .. }));
    let held = place.open(ANNE);
    assert!(matches!(place.open_at(&path, ANNE), Err(WalletError::InUse { .. })));
    drop(held);
    fs::write(&path, []).expect("emptied");
    let empty = place.open_at(&path, ANNE).expect_err("no new wallet in its place");
    assert!(matches!(empty, WalletError::Behind { .. }), "{empty}");
}

#[test]
fn papers_say_what_they_prove_or_are_refused() {
    let place = Place::new(&[(ANNE, 100)]);
    let mut anne = place.create(ANNE);
    let order = Order { memo: Some("invoice 7".into()), ..pay(BOB, 30) };
    let payment = place.apply(&mut anne, &order).expect("paid");
    let receipt = anne.receipt(&payment).expect("a receipt");
    let text = PaymentReceipt::new(&place.network, &receipt).expect("a file").to_text();
    for (from, to, reason) in [
        ("\"value\": 30", "\"value\": 31", "its 'value' is not what its proof shows"),
        ("invoice 7", "invoice 8", "its 'memo' is not"),
        ("receipt v1", "receipt v2", "its format is"),
        ("\"proof\": \"", "\"proof\": \"00", "its proof"),
        ("\"value\"", "\"worth\"", "unknown field"),
    ] {
        assert!(text.contains(from));
        let refused = PaymentReceipt::parse(&text.replacen(from, to, 1), &place.network);
        let refused = refused.expect_err(reason).to_string();
        assert!(refused.contains(reason), "{refused}");
    }
    let other = PaymentReceipt::parse(&text, &network("other", &[]));
    assert!(matches!(other, Err(PaymentFileError::OtherNetwork { .. })));

    let request = PaymentRequest::new(&place.network, key(BOB), 30, Some("invoice 7".into()));
    let read = PaymentRequest::parse(&request.to_text(), &place.network).expect("a request");
    assert_eq!((read.payee().expect("a key"), &read), (key(BOB), &request));
    let other = PaymentRequest::parse(&request.to_text(), &network("other", &[]));
    assert!(matches!(other, Err(PaymentFileError::OtherNetwork { .. })));
}

/// A receipt whose votes are too few proves nothing, whoever shows it.
#[test]
fn a_receipt_with_too_few_votes_is_refused() {
    let place = Place::new(&[(ANNE, 100)]);
    let (mut anne, mut bob) = (place.create(ANNE), place.create(BOB));
    let payment = place.apply(&mut anne, &pay(BOB, 30)).expect("paid");
    let mut receipt = anne.receipt(&payment).expect("a receipt");
    for coin in &mut receipt.coins {
        let quorate_payments::Origin::Certified(proof) = &mut coin.origin else { panic!() };
        let quorate_payments::QuorumVotes::Signatures(certificate) = &mut proof.certificate.votes
        else {
            panic!()
        };
        certificate.signers = quorate_crypto::Bitmap::from_indices(4, [0, 1]);
        certificate.aggregate.0.truncate(128);
    }
    assert!(matches!(bob.receive(&receipt), Err(WalletError::Receipt(_))));
    assert_eq!(bob.balance(), Balance::default());
}

#[test]
fn the_table_for_auditors_has_a_line_for_everything() {
    let place = Place::new(&[(ANNE, 100)]);
    let mut anne = place.create(ANNE);
    let memo = Some("=HYPERLINK(\"x\"), please".into());
    place.apply(&mut anne, &Order { memo, ..pay(BOB, 30) }).expect("paid");
    place.authorities.silence(&[0, 1]);
    place.apply(&mut anne, &order(Purpose::Redeem { value: 20 })).expect("begun");
    let table = anne.to_csv().expect("read");
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 4, "{table}");
    assert!(lines[1].contains(",in,genesis,100,,"), "{table}");
    assert!(lines[2].contains(&format!(",out,pay,30,{},", key(BOB))), "{table}");
    assert!(lines[2].contains(",\"'=HYPERLINK(\"\"x\"\"), please\",certified,20"), "{table}");
    assert!(
        lines[3].contains(",out,redeem,20,") && lines[3].ends_with(",,unfinished,,,"),
        "{table}"
    );
}

#[test]
fn a_wallet_killed_after_any_byte_loses_nothing() {
    let place = Place::new(&[(ANNE, 100), (ANNE, 20)]);
    let mut anne = place.create(ANNE);
    let mut ends = vec![fs::metadata(place.path(ANNE)).expect("there").len()];
    let mark = fs::read(mark::path_of(&place.path(ANNE))).expect("read");
    for step in 0..3 {
        let order = Order { memo: Some(format!("{step}")), ..pay(BOB, 10) };
        place.apply(&mut anne, &order).expect("paid");
        ends.push(fs::metadata(place.path(ANNE)).expect("there").len());
    }
    drop(anne);
    let bytes = fs::read(place.path(ANNE)).expect("read");
    let before = usize::try_from(ends[0]).expect("small");
    let path = place.folder.path().join("killed");
    for cut in before..=bytes.len() {
        fs::write(&path, &bytes[..cut]).expect("written");
        fs::write(mark::path_of(&path), &mark).expect("written");
        let mut anne = place.open_at(&path, ANNE).expect("a wallet");
        // What it had begun is sent again: the authorities know these bytes, and vote again.
        for (tx, transaction) in anne.unfinished() {
            let outcome = place.authorities.outcome(&transaction).expect("an outcome");
            let ended = anne.end(tx, outcome).expect("stored");
            assert_eq!(ended.state.name(), "certified", "cut at {cut}");
        }
        let Balance { free, reserved, frozen, .. } = anne.balance();
        let lines = anne.history().expect("read");
        let paid: u64 = lines.iter().filter(|line| line.kind == "pay").map(|line| line.value).sum();
        assert_eq!((free + u128::from(paid), reserved, frozen), (120, 0, 0), "cut at {cut}");
        drop(anne);
    }
}

#[tokio::test]
async fn a_cashier_waits_goes_on_and_never_sends_two() {
    let place = Place::new(&[(ANNE, 100), (ANNE, 100)]);
    let service =
        PaymentService::new(place.create(ANNE), Arc::clone(&place.authorities) as _, None);
    let (first, second) = tokio::join!(
        service.pay(pay(BOB, 30), Some("one".into()), TIMEOUT),
        service.pay(pay(BOB, 30), Some("one".into()), TIMEOUT),
    );
    let first = first.expect("paid");
    assert_eq!(first.state.name(), "certified");
    assert_eq!(first.id, second.expect("the same").id);
    let unknown = service.settle(TxId(quorate_crypto::Digest::ZERO), SHORT).await;
    assert!(matches!(unknown, Err(WalletError::NoPayment(_))));

    place.authorities.silence(&[0, 1]);
    let open = service.pay(pay(BOB, 40), None, SHORT).await.expect("begun");
    assert_eq!(open.state, PaymentState::Begun);
    drop(service);
    place.authorities.silence(&[]);
    // The task that waits for ever holds the first one's wallet: the file is looked at as after a
    // kill.
    let copy = place.folder.path().join("after");
    copy_wallet(&place.path(ANNE), &copy);
    let wallet = place.open_at(&copy, ANNE).expect("a wallet");
    let service = PaymentService::new(wallet, Arc::clone(&place.authorities) as _, None);
    assert_eq!(service.resume().expect("sent"), [open.id]);
    let settled = service.settle(open.id, TIMEOUT).await.expect("settled");
    assert_eq!(settled.state.name(), "certified");
}

/// A step of a wallet's life.
#[derive(Clone, Debug)]
enum Step {
    Pay {
        from: u8,
        to: u8,
        value: u64,
        key: Option<u8>,
    },
    Redeem {
        from: u8,
        value: u64,
    },
    Issue {
        to: u8,
        value: u64,
    },
    Consolidate {
        from: u8,
    },
    /// The payee gets the receipt of some payment, perhaps again.
    Deliver {
        number: usize,
    },
    Silence(bool),
    Retry {
        of: u8,
    },
    /// Killed and opened again.
    Kill {
        whom: u8,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let who = || 1u8..=3;
    prop_oneof![
        4 => (who(), who(), 1u64..60, proptest::option::of(0u8..4))
            .prop_map(|(from, to, value, key)| Step::Pay { from, to, value, key }),
        1 => (who(), 1u64..30).prop_map(|(from, value)| Step::Redeem { from, value }),
        1 => (who(), 1u64..50).prop_map(|(to, value)| Step::Issue { to, value }),
        1 => who().prop_map(|from| Step::Consolidate { from }),
        4 => (0usize..40).prop_map(|number| Step::Deliver { number }),
        1 => any::<bool>().prop_map(Step::Silence),
        2 => who().prop_map(|of| Step::Retry { of }),
        2 => who().prop_map(|whom| Step::Kill { whom }),
    ]
}

/// Three wallets and the issuer's, and what they should be worth.
struct World {
    place: Place,
    wallets: BTreeMap<u8, Wallet>,
    /// Value that each owns by the certified payments, whether the receipt arrived or not.
    owned: BTreeMap<u8, u64>,
    burnt: u64,
    made: u64,
    receipts: Vec<(u8, PayReceipt)>,
    settled: BTreeSet<TxId>,
}

impl World {
    fn new() -> Self {
        let place = Place::new(&[(1, 100), (1, 7), (2, 50)]).folding();
        let wallets = [1, 2, 3, ISSUER].map(|owner| (owner, place.create(owner)));
        Self {
            place,
            wallets: BTreeMap::from(wallets),
            owned: BTreeMap::from([(1, 107), (2, 50), (3, 0), (ISSUER, 0)]),
            burnt: 0,
            made: 157,
            receipts: Vec::new(),
            settled: BTreeSet::new(),
        }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Pay { from, to, value, key } => {
                let key = key.map(|key| key.to_string());
                self.order(*from, &pay(*to, *value), key.as_deref());
            }
            Step::Redeem { from, value } => {
                self.order(*from, &order(Purpose::Redeem { value: *value }), None);
            }
            Step::Issue { to, value } => {
                let purpose = Purpose::Issue { payee: key(*to), value: *value };
                self.order(ISSUER, &order(purpose), None);
            }
            Step::Consolidate { from } => self.order(*from, &order(Purpose::Consolidate), None),
            Step::Deliver { number } => self.deliver(*number),
            Step::Silence(silent) => {
                self.place.authorities.silence(if *silent { &[1, 2] } else { &[] });
            }
            Step::Retry { of } => {
                for (tx, _) in self.wallets[of].unfinished() {
                    self.settle(*of, tx);
                }
            }
            Step::Kill { whom } => {
                let before = self.wallets.remove(whom).expect("a wallet").state;
                let after = self.place.open(*whom);
                assert_eq!(after.state, before, "what was read again is what there was");
                self.wallets.insert(*whom, after);
            }
        }
    }

    fn order(&mut self, from: u8, order: &Order, key: Option<&str>) {
        let wallet = self.wallets.get_mut(&from).expect("a wallet");
        if let Ok(payment) = wallet.begin(order, key) {
            let tx = payment.id;
            self.settle(from, tx);
        }
    }

    fn settle(&mut self, of: u8, tx: TxId) {
        let wallet = self.wallets.get_mut(&of).expect("a wallet");
        let transaction = wallet.payment(tx).expect("begun").transaction;
        let Some(outcome) = self.place.authorities.outcome(&transaction) else { return };
        let payment = wallet.end(tx, outcome).expect("stored");
        assert_eq!(payment.state.name(), "certified", "honest wallets never conflict");
        if !self.settled.insert(tx) {
            return;
        }
        let value = payment.value();
        let seed = self.owned.keys().copied().find(|seed| key(*seed) == payment.payee());
        match payment.order.purpose {
            Purpose::Pay { .. } => *self.owned.get_mut(&of).expect("one") -= value,
            Purpose::Redeem { .. } => {
                *self.owned.get_mut(&of).expect("one") -= value;
                self.burnt += value;
            }
            Purpose::Issue { .. } => self.made += value,
            Purpose::Consolidate | Purpose::Refund => return,
        }
        if let Some(seed) = seed {
            *self.owned.get_mut(&seed).expect("one") += value;
            let receipt = self.wallets[&of].receipt(&payment).expect("certified");
            self.receipts.push((seed, receipt));
        }
    }

    fn deliver(&mut self, number: usize) {
        if let Some((payee, receipt)) = self.receipts.get(number).cloned() {
            self.wallets.get_mut(&payee).expect("a wallet").receive(&receipt).expect("it holds");
        }
    }

    /// After all receipts arrived and all payments ended, everybody has what the model says.
    fn finish(mut self) {
        self.take(&Step::Silence(false));
        let owners: Vec<u8> = self.wallets.keys().copied().collect();
        for of in &owners {
            self.take(&Step::Retry { of: *of });
        }
        for number in 0..self.receipts.len() {
            self.deliver(number);
        }
        for whom in &owners {
            self.take(&Step::Kill { whom: *whom });
            let balance = self.wallets[whom].balance();
            let expected = u128::from(self.owned[whom]);
            assert_eq!((balance.free, balance.reserved, balance.frozen), (expected, 0, 0));
        }
        assert_eq!(self.owned.values().sum::<u64>() + self.burnt, self.made);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn wallets_are_worth_what_a_model_says_whatever_happens(
        steps in proptest::collection::vec(step(), 1..40)
    ) {
        let mut world = World::new();
        for step in &steps {
            world.take(step);
        }
        world.finish();
    }
}

/// ★ A transaction is durable before anybody is shown it.
#[test]
fn a_wallet_that_shows_before_it_stores_is_noticed() {
    quorate_crypto::mutants::assert_noticed(
        quorate_crypto::mutants::Mutant::PayShowUnstored,
        coins_of_an_unfinished_payment_are_reserved_and_the_same_bytes_go_again,
    );
}
