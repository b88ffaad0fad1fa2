//! Coins that a wallet and its copy spent, released: the production rules over real authorities'
//! machines.

use super::*;
use crate::wallet::{CoinRelease, HistoryLine, OrderingError, ReleaseOrdering, Released};
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_payments::release::{Decision, Standing};
use quorate_payments::{OutputId, PaymentOutcome};

/// A wallet of 100 and copies of it, each of which began to pay otherwise.
struct Split {
    place: Place,
    wallets: Vec<Wallet>,
    payments: Vec<TxId>,
}

impl Split {
    /// Each part of the authorities is shown the payment of another copy, and nobody all of them.
    fn new(authorities: u8, parts: &[&[u16]]) -> Self {
        let place = Place::of(authorities, &[(ANNE, 100)]);
        let mut wallets = vec![place.create(ANNE)];
        for copy in 1..parts.len() {
            let path = place.folder.path().join(format!("copy-{copy}"));
            copy_wallet(&place.path(ANNE), &path);
            wallets.push(place.open_at(&path, ANNE).expect("a wallet"));
        }
        let mut split = Self { place, wallets, payments: Vec::new() };
        for (number, part) in parts.iter().enumerate() {
            split.listen_alone(part);
            let value = 60 - 10 * u64::try_from(number).expect("few");
            let wallet = &mut split.wallets[number];
            let payment = wallet.begin(&pay(BOB, value), None).expect("begun").clone();
            let note = wallet.note(&payment);
            let outcome = split.place.authorities.outcome_with(&payment.transaction, note);
            if let Some(outcome) = outcome {
                wallet.end(payment.id, outcome).expect("stored");
            }
            split.payments.push(payment.id);
        }
        split.place.authorities.silence(&[]);
        split
    }

    fn listen_alone(&self, listening: &[u16]) {
        let size = u16::try_from(self.place.network.committee().size()).expect("few");
        let silent: Vec<u16> = (0..size).filter(|one| !listening.contains(one)).collect();
        self.place.authorities.silence(&silent);
    }

    /// Two halves of four of five authorities; the first copy was told that it lost.
    fn lost() -> Self {
        let mut split = Self::new(5, &[&[0, 1], &[2, 3]]);
        split.listen_alone(&[0, 1, 2, 3]);
        split.lose(0);
        split.place.authorities.silence(&[]);
        split
    }

    fn lose(&mut self, copy: usize) {
        let wallet = &mut self.wallets[copy];
        let payment = wallet.payment(self.payments[copy]).expect("begun").clone();
        let outcome = self.place.authorities.outcome(&payment.transaction).expect("an end");
        assert!(matches!(outcome, PaymentOutcome::Conflicting(Some(_))), "{outcome:?}");
        wallet.end(payment.id, outcome).expect("stored");
    }

    /// A service of one of the copies, with the committee.
    fn service(&mut self, copy: usize) -> Arc<PaymentService> {
        self.place.with_committee(self.wallets.remove(copy))
    }

    fn coin(&self) -> OutputId {
        let mut outputs = self.place.network.genesis_outputs();
        outputs.next().expect("one").0
    }

    fn standing(&self) -> Standing {
        self.place.authorities.coin(self.coin())
    }
}

impl Place {
    fn with_committee(&self, wallet: Wallet) -> Arc<PaymentService> {
        let ordering: Arc<dyn ReleaseOrdering> = Arc::clone(&self.authorities) as _;
        PaymentService::new(wallet, Arc::clone(&self.authorities) as _, Some(ordering))
    }

    /// Names of the refunds that authorities were shown.
    fn refunds(&self) -> BTreeSet<TxId> {
        let is_refund = |transaction: &&Arc<quorate_payments::Transaction>| {
            matches!(transaction.source, quorate_payments::Source::Refund(_))
        };
        let shown = self.authorities.shown();
        shown.iter().filter(is_refund).map(|one| one.id(self.network.id())).collect()
    }
}

async fn release(service: &Arc<PaymentService>, of: Option<TxId>) -> Vec<CoinRelease> {
    release_within(service, of, TIMEOUT).await.expect("answered")
}

/// How coins stand; none where a certificate was shown.
async fn release_within(
    service: &Arc<PaymentService>,
    of: Option<TxId>,
    within: Duration,
) -> Result<Vec<CoinRelease>, WalletError> {
    Ok(match service.release(of, within, |_| {}).await? {
        Released::Certified => Vec::new(),
        Released::Coins(coins) => coins,
    })
}

fn is_whole(service: &Arc<PaymentService>) {
    let balance = service.with(|wallet| wallet.balance());
    assert_eq!(balance, Balance { free: 100, coins_free: 1, ..Balance::default() });
}

fn name_of(service: &Arc<PaymentService>, tx: TxId) -> &'static str {
    service.with(|wallet| wallet.view(&wallet.payment(tx).expect("known").clone()).state)
}

#[tokio::test]
async fn a_coin_that_neither_payment_can_have_comes_back_and_can_be_spent() {
    let mut split = Split::lost();
    let (service, lost) = (split.service(0), split.payments[0]);
    let forecast = service.forecast(Some(lost), TIMEOUT).await.expect("answered");
    assert_eq!(forecast[0].standing.decision, Some(Decision::Refund));
    assert_eq!(forecast[0].standing.reports.len(), 5, "what each of them says");
    assert!(!split.standing().is_frozen(), "nobody asked for anything yet");
    let released = release(&service, Some(lost)).await;
    assert_eq!((released.len(), released[0].coin), (1, split.coin()));
    assert_eq!(released[0].standing, split.standing());
    assert_eq!(released[0].standing.decision, Some(Decision::Refund));
    is_whole(&service);
    assert_eq!((name_of(&service, lost), split.place.refunds().len()), ("refunded", 1));
    let last = service.with(|wallet| wallet.history().expect("read").pop().expect("a line"));
    assert_eq!(
        (last.kind, last.value, last.direction, last.state),
        ("refund", 100, "self", "certified")
    );
    let paid = service.pay(pay(BOB, 100), None, TIMEOUT).await.expect("begun");
    assert_eq!(paid.state.name(), "certified");
}

/// The payment's own bytes are sent again, though some are locked for the other one.
#[tokio::test]
async fn a_payment_that_its_release_is_decided_for_is_finished() {
    let mut split = Split::new(5, &[&[0, 1, 4], &[2, 3]]);
    split.lose(0);
    let (service, mine) = (split.service(0), split.payments[0]);
    let released = release(&service, Some(mine)).await;
    assert_eq!(released[0].standing.decision, Some(Decision::Spend(mine)));
    assert_eq!(name_of(&service, mine), "certified");
    let balance = service.with(|wallet| wallet.balance());
    assert_eq!(balance, Balance { free: 40, coins_free: 1, ..Balance::default() });
}

/// What a copy began is taken in from the authorities' records, and finished.
#[tokio::test]
async fn a_payment_of_a_copy_that_a_release_is_decided_for_is_finished_by_either() {
    let mut split = Split::new(5, &[&[0, 1], &[2, 3, 4]]);
    split.lose(0);
    let (service, [mine, other]) = (split.service(0), [split.payments[0], split.payments[1]]);
    release(&service, None).await;
    assert_eq!(split.standing().decision, Some(Decision::Spend(other)));
    assert_eq!((name_of(&service, mine), name_of(&service, other)), ("conflicting", "certified"));
    let balance = service.with(|wallet| wallet.balance());
    assert_eq!(balance, Balance { free: 50, coins_free: 1, ..Balance::default() });
}

/// With 3f + 1 authorities nothing tells two halves apart.
#[tokio::test]
async fn an_even_split_of_four_is_told_before_and_stays_locked() {
    let mut split = Split::new(4, &[&[0, 1], &[2, 3]]);
    let (service, lost) = (split.service(0), split.payments[0]);
    let finished = service.finish(lost, TIMEOUT).await.expect("asked");
    assert_eq!(finished.state.name(), "conflicting");
    assert!(!split.standing().is_frozen(), "no release is asked for in vain");
    let forecast = service.forecast(None, TIMEOUT).await.expect("answered");
    let network = Arc::clone(&split.place.network);
    let weights = network.committee().weights();
    assert_eq!(forecast[0].view(weights).end, "locked-for-ever");
    assert_eq!(release(&service, None).await, forecast);
    assert!(!split.standing().is_frozen());
    assert_eq!(service.with(|wallet| wallet.balance().frozen), 100);
    assert_eq!((name_of(&service, lost), split.place.refunds().len()), ("conflicting", 0));
    // Where somebody has it frozen, nobody is kept waiting for ever.
    for step in service.with(|wallet| wallet.freezes(&[split.coin()])) {
        split.place.authorities.submit(step).await.expect("ordered");
    }
    service.with(|wallet| wallet.note_release(vec![split.coin()])).expect("stored");
    let released = release(&service, None).await;
    assert!(released[0].standing.is_stuck(weights) && split.standing().is_frozen());
    assert_eq!((name_of(&service, lost), split.place.refunds().len()), ("releasing", 0));
}

#[tokio::test]
async fn a_payment_that_lost_for_good_is_released_by_itself() {
    let mut split = Split::new(5, &[&[0, 1], &[2, 3]]);
    // The fifth authority answers neither, and reports later that it is locked for nothing.
    split.listen_alone(&[0, 1, 2, 3]);
    let (service, lost) = (split.service(0), split.payments[0]);
    service.finish(lost, TIMEOUT).await.expect("asked");
    is_whole(&service);
    assert_eq!(name_of(&service, lost), "refunded");
}

/// Where the other payment won, its change is all that there is.
#[tokio::test]
async fn no_release_is_asked_for_where_another_payment_can_be_finished() {
    for other in [&[0, 1, 2, 3][..], &[1, 2, 3]] {
        let mut split = Split::new(4, &[&[], other]);
        let (service, lost) = (split.service(0), split.payments[0]);
        let finished = service.finish(lost, TIMEOUT).await.expect("asked");
        assert_eq!(finished.state.name(), "conflicting");
        assert!(!split.standing().is_frozen());
    }
}

/// ★ What was certified stays so: a copy that asks for a release ends nothing else.
#[tokio::test]
async fn a_certificate_ends_the_release_that_a_copy_asked_for() {
    let mut split = Split::new(4, &[&[0, 1, 2], &[3]]);
    split.lose(1);
    split.place.authorities.deafen(&[2]);
    let (copy, [paid, lost]) = (split.service(1), [split.payments[0], split.payments[1]]);
    let waited = release_within(&copy, Some(lost), Duration::from_secs(1)).await.expect("answered");
    assert_eq!(
        waited[0].standing.decision, None,
        "one that is locked for what was paid is unheard"
    );
    let anne = split.service(0);
    assert_eq!(release(&anne, Some(paid)).await, []);
    assert_eq!(split.standing().decision, Some(Decision::Spend(paid)));
    split.place.authorities.deafen(&[]);
    copy.follow_releases(TIMEOUT).await.expect("answered");
    assert_eq!((name_of(&copy, lost), name_of(&copy, paid)), ("conflicting", "certified"));
    assert_eq!(split.place.refunds().len(), 0);
}

/// Steps of a release, in order, at each of which the wallet may be killed.
const STAGES: usize = 6;

/// Takes the first steps of the release of what the first copy lost.
async fn begin_release(split: &mut Split, steps: usize) {
    let (coin, authorities) = (split.coin(), Arc::clone(&split.place.authorities));
    let wallet = &mut split.wallets[0];
    let done = |step| steps > step;
    if done(0) {
        wallet.note_release(vec![coin]).expect("stored");
    }
    if done(1) {
        for step in wallet.freezes(&[coin]) {
            authorities.submit(step).await.expect("ordered");
        }
    }
    if done(2) {
        let mut releases = wallet.locked(None);
        releases[0].standing = authorities.coin(coin);
        wallet.take_standings(&releases).expect("stored");
    }
    if done(3) {
        wallet.begin_refunds().expect("stored");
    }
    if done(4) {
        let refund = wallet.unfinished().pop().expect("begun").0;
        let payment = wallet.payment(refund).expect("begun").clone();
        let note = wallet.note(&payment);
        let outcome = authorities.outcome_with(&payment.transaction, note);
        assert!(matches!(outcome, Some(PaymentOutcome::Certified(_))), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_wallet_that_is_killed_at_any_step_goes_on_from_its_book() {
    for steps in 0..STAGES {
        let mut split = Split::lost();
        begin_release(&mut split, steps).await;
        drop(split.wallets.remove(0));
        let service = split.place.with_committee(split.place.open(ANNE));
        let releasing = service.with(|wallet| wallet.balance().releasing);
        assert_eq!(releasing, if (1..=3).contains(&steps) { 100 } else { 0 }, "{steps}");
        release(&service, None).await;
        is_whole(&service);
        assert_eq!(split.place.refunds().len(), 1, "{steps}");
    }
}

#[tokio::test]
async fn a_wallet_made_again_from_its_key_goes_on_from_what_others_know() {
    for steps in 0..STAGES {
        let mut split = Split::lost();
        begin_release(&mut split, steps).await;
        split.wallets.clear();
        let path = split.place.folder.path().join("again");
        Wallet::restore(&path, &secret(ANNE), None).expect("made");
        let wallet = split.place.open_at(&path, ANNE).expect("a wallet");
        let service = split.place.with_committee(wallet);
        release(&service, None).await;
        let (balance, history) =
            service.with(|wallet| (wallet.balance(), wallet.history().expect("read")));
        let is_paid = |line: &&HistoryLine| line.kind == "pay" && line.state == "certified";
        let paid: u64 = history.iter().filter(is_paid).map(|line| line.value).sum();
        let free = 100 - u128::from(paid);
        assert_eq!(balance, Balance { free, coins_free: 1, ..Balance::default() }, "{steps}");
        // Before it is frozen a payment that is sent again may still reach the fifth authority.
        let refunds = split.place.refunds().len();
        assert!(refunds == 1 && paid == 0 || steps < 3 && refunds == 0, "{steps}: {refunds}");
    }
}

/// A coin that nobody is locked for, and whose refund is decided, is not free.
#[tokio::test]
async fn a_coin_that_others_had_frozen_is_not_spent_by_a_wallet_made_again() {
    let place = Place::new(&[(ANNE, 100)]);
    let anne = place.create(ANNE);
    let coin = anne.network().genesis_outputs().next().expect("one").0;
    for step in anne.freezes(&[coin]) {
        place.authorities.submit(step).await.expect("ordered");
    }
    assert_eq!(place.authorities.coin(coin).decision, Some(Decision::Refund));
    drop(anne);
    let path = place.folder.path().join("again");
    Wallet::restore(&path, &secret(ANNE), None).expect("made");
    let service = place.with_committee(place.open_at(&path, ANNE).expect("a wallet"));
    let refused = service.pay(pay(BOB, 1), None, TIMEOUT).await.expect_err("under release");
    assert!(matches!(refused, WalletError::TooLittle { releasing: 100, .. }), "{refused}");
    release(&service, None).await;
    is_whole(&service);
}

/// Half a payment of which only one authority and no book knows.
#[tokio::test]
async fn a_coin_of_an_unknown_transaction_comes_back() {
    let place = Place::new(&[(ANNE, 100)]);
    let mut anne = place.create(ANNE);
    place.authorities.silence(&[0, 1, 2]);
    let lost = place.apply(&mut anne, &pay(BOB, 60)).expect("begun");
    drop(anne);
    place.authorities.silence(&[]);
    let path = place.folder.path().join("again");
    Wallet::restore(&path, &secret(ANNE), None).expect("made");
    let service = place.with_committee(place.open_at(&path, ANNE).expect("a wallet"));
    service.recover(TIMEOUT).await.expect("recovered");
    assert_eq!(service.with(|wallet| wallet.stuck()), BTreeMap::from([(lost.id, 100)]));
    release(&service, Some(lost.id)).await;
    is_whole(&service);
    let nothing = release_within(&service, Some(lost.id), TIMEOUT).await.expect_err("it came back");
    assert!(matches!(nothing, WalletError::NothingLocked(tx) if tx == lost.id), "{nothing}");
}

#[tokio::test]
async fn a_release_that_the_committee_did_not_answer_is_kept_and_followed() {
    let mut split = Split::lost();
    split.place.authorities.silence_committee(true);
    let (service, lost) = (split.service(0), split.payments[0]);
    let silent = release_within(&service, Some(lost), SHORT).await.expect_err("nobody answers");
    assert!(matches!(silent, WalletError::Release(OrderingError::Unanswered(_))), "{silent}");
    assert_eq!(service.with(|wallet| wallet.balance().releasing), 100);
    assert_eq!(name_of(&service, lost), "releasing");
    split.place.authorities.silence_committee(false);
    service.follow_releases(TIMEOUT).await.expect("answered");
    is_whole(&service);
}

#[tokio::test]
async fn without_a_committee_nothing_is_asked_for() {
    let mut split = Split::lost();
    let wallet = split.wallets.remove(0);
    let service = PaymentService::new(wallet, Arc::clone(&split.place.authorities) as _, None);
    let refused = release_within(&service, None, TIMEOUT).await.expect_err("none is known");
    assert!(matches!(refused, WalletError::NoCommittee), "{refused}");
    service.follow_releases(TIMEOUT).await.expect("nothing to do");
    assert_eq!(
        service.finish(split.payments[0], TIMEOUT).await.expect("asked").state.name(),
        "conflicting"
    );
}

/// An authority that had not followed the decision yet says that it is locked for another one.
#[test]
fn a_payment_that_was_decided_for_does_not_lose() {
    let mut split = Split::lost();
    let (wallet, mine) = (&mut split.wallets[0], split.payments[0]);
    wallet.note_release(wallet.locked(None).iter().map(|one| one.coin).collect()).expect("stored");
    let mut releases = wallet.locked(None);
    releases[0].standing.owner = Some(wallet.owner());
    releases[0].standing.decision = Some(Decision::Spend(mine));
    wallet.take_standings(&releases).expect("stored");
    assert_eq!(wallet.payment(mine).expect("known").state, PaymentState::Begun);
    let ended = wallet.end(mine, PaymentOutcome::Conflicting(None)).expect("not stored");
    assert_eq!(ended.state, PaymentState::Begun);
    assert_eq!(wallet.balance().reserved, 100);
}

/// ★ A second transaction over a coin is its refund, once that was decided.
fn only_what_was_decided_is_signed() {
    let mut split = Split::lost();
    let wallet = &mut split.wallets[0];
    let mut releases = wallet.locked(None);
    wallet.note_release(vec![releases[0].coin]).expect("stored");
    let refunds = |wallet: &mut Wallet| {
        wallet.begin_refunds().expect("stored");
        wallet.unfinished().len()
    };
    assert_eq!(refunds(wallet), 0, "nothing is decided");
    // Of another owner's coin nothing follows, whatever its name.
    releases[0].standing.owner = Some(key(BOB));
    releases[0].standing.decision = Some(Decision::Refund);
    wallet.take_standings(&releases).expect("left out");
    assert_eq!(refunds(wallet), 0, "another's");
    releases[0].standing.owner = Some(wallet.owner());
    wallet.take_standings(&releases).expect("stored");
    assert_eq!((refunds(wallet), refunds(wallet)), (1, 1), "once");
    let balance = wallet.balance();
    assert_eq!((balance.free, balance.reserved), (0, 100), "nothing is spent before a certificate");
}

#[test]
fn a_refund_is_made_once_it_is_decided() {
    only_what_was_decided_is_signed();
}

#[test]
fn a_wallet_that_signs_a_refund_which_nobody_decided_is_noticed() {
    assert_noticed(Mutant::PayRefundUndecided, only_what_was_decided_is_signed);
}

/// Of a payment that is final, nothing is asked where nobody has its coins frozen; that is no
/// refusal of the committee's.
#[tokio::test]
async fn a_final_payment_over_nothing_frozen_has_nothing_to_release() {
    let mut split = Split::new(4, &[&[0, 1, 2], &[3]]);
    let (anne, paid) = (split.service(0), split.payments[0]);
    let nothing = release_within(&anne, Some(paid), TIMEOUT).await.expect_err("it is final");
    assert!(matches!(nothing, WalletError::NothingLocked(tx) if tx == paid), "{nothing}");
    assert!(!split.standing().is_frozen());
}

/// Authorities that do not answer are no reason to ask for a release.
#[tokio::test]
async fn without_a_quorums_answers_no_release_is_due() {
    let mut split = Split::lost();
    let (service, lost) = (split.service(0), split.payments[0]);
    let forecast = service.forecast(Some(lost), TIMEOUT).await.expect("answered");
    assert!(service.with(|wallet| wallet.is_release_due(lost, &forecast)));
    let silent: Vec<CoinRelease> = forecast
        .iter()
        .map(|one| CoinRelease { standing: Standing::default(), ..one.clone() })
        .collect();
    assert!(!service.with(|wallet| wallet.is_release_due(lost, &silent)));
}

/// What the committee refuses keeps nothing else waiting.
#[tokio::test]
async fn a_refused_coin_keeps_no_other_waiting() {
    let mut split = Split::lost();
    let (service, coin) = (split.service(0), split.coin());
    let foreign = OutputId { index: coin.index + 1, ..coin };
    let invent = |wallet: &mut Wallet| {
        let mut held = wallet.state.coins[&coin].clone();
        held.coin.id = foreign;
        wallet.state.coins.insert(foreign, held);
    };
    service.with(invent);
    let refused = release_within(&service, None, TIMEOUT).await.expect_err("of one");
    assert!(matches!(refused, WalletError::Release(OrderingError::Refused(_))), "{refused}");
    assert_eq!(split.standing().decision, Some(Decision::Refund), "the other is decided");
}
