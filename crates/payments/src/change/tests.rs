//! The border between two epochs from end to end: authorities, steps and rules, under real keys.

use super::*;
use crate::release::{Decision, Held};
use crate::spent::released;
use crate::testing::{
    ALICE, AuthorityHost, BOB, MALLORY, TestNetwork, certify, key, replica, secret, to,
};
use crate::{
    AuthorityEffect, AuthorityEvent, Coin, CoinStatus, Core, Invalid, LookupFailed, Network,
    NetworkError, Origin, OutputId, PayScheme, ReleaseEntry, Transaction, TxId, Verdict,
};
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_crypto::{Digest, KeyFile, Signature, hash};
use quorate_types::{Epoch, Machine, Time, Weights};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An epoch of four authorities, and the one after it, in which the first is another.
struct Scene {
    testnet: TestNetwork,
    hosts: Vec<AuthorityHost>,
    next: TestNetwork,
}

type Reports = BTreeMap<quorate_types::ReplicaId, Vec<LockEntry>>;

impl Scene {
    fn new() -> Self {
        Self::with(PayScheme::Plain)
    }

    fn with(scheme: PayScheme) -> Self {
        let testnet = TestNetwork::with(scheme, 4, 1);
        let (next, _) = testnet.next(&[0]);
        Self { hosts: testnet.hosts(), testnet, next }
    }

    /// Mallory spends the first of her coins, which is worth 5.
    fn spend(&self, payee: u8) -> Transaction {
        self.testnet.spend(MALLORY, &self.testnet.endowed(MALLORY)[..1], &[to(payee, 5)])
    }

    fn show(&mut self, tx: &Transaction, authorities: &[usize]) {
        for one in authorities {
            let verdict = self.hosts[*one].verdict(tx);
            assert!(matches!(verdict, Verdict::Vote(_)), "{verdict:?}");
        }
    }

    fn reports(&mut self, authorities: &[usize]) -> Reports {
        authorities.iter().map(|one| (replica(*one), self.hosts[*one].close())).collect()
    }

    /// Authorities of the next epoch that begin with these reports.
    fn begin(&self, reports: &Reports) -> Vec<AuthorityHost> {
        let left = Inheritance::default().after(&Weights::equal(4), reports).expect("a quorum");
        let left: Arc<dyn Inherited> = Arc::new(left);
        let host = |one| AuthorityHost::after(&self.next, one, Arc::clone(&left));
        (0..4).map(host).collect()
    }

    /// Coins of a transaction, certified by whoever has the keys of the first epoch.
    fn coins(&self, tx: &Transaction) -> Vec<Coin> {
        self.testnet.coins(tx)
    }

    fn is_certified(&self, hosts: &mut [AuthorityHost], tx: &Transaction) -> bool {
        certify(&self.next, hosts, &[0, 1, 2, 3], tx).certificate(&self.next).is_some()
    }
}

/// What was certified is money in the next epoch, under every scheme, and so is what comes of it.
#[test]
fn coins_of_an_epoch_are_spent_in_the_next() {
    for scheme in [PayScheme::Plain, PayScheme::Merkle, PayScheme::Bls] {
        let mut scene = Scene::with(scheme);
        let paid = scene.spend(BOB);
        scene.show(&paid, &[0, 1, 2]);
        let coins = scene.coins(&paid);
        let reports = scene.reports(&[1, 2, 3]);
        let mut hosts = scene.begin(&reports);
        coins[0].check(&scene.next.network).expect("its signers are known");
        let onward = scene.next.spend(BOB, &coins, &[to(ALICE, 5)]);
        assert!(scene.is_certified(&mut hosts, &onward), "{scheme}");
        let last = scene.next.spend(ALICE, &scene.next.coins(&onward), &[to(BOB, 5)]);
        assert!(scene.is_certified(&mut hosts, &last), "{scheme}");
        assert!(!scene.is_certified(&mut hosts, &scene.spend(ALICE)), "the coin itself is spent");
    }
}

/// The same bytes, shown again: no certificate of the former epoch is needed.
#[test]
fn a_payment_under_way_is_finished_in_the_next_epoch() {
    let mut scene = Scene::new();
    let half = scene.spend(BOB);
    scene.show(&half, &[1]);
    let reports = scene.reports(&[1, 2, 3]);
    let mut hosts = scene.begin(&reports);
    assert!(matches!(hosts[0].verdict(&scene.spend(ALICE)), Verdict::Locked { first: None, .. }));
    assert!(scene.is_certified(&mut hosts, &half));
    let coins = scene.next.coins(&half);
    assert!(scene.is_certified(&mut hosts, &scene.next.spend(BOB, &coins, &[to(ALICE, 5)])));
}

#[test]
fn an_authority_that_has_closed_votes_for_nothing_new() {
    let mut scene = Scene::new();
    let (before, after) = (scene.spend(BOB), scene.testnet.issue(1, &[to(ALICE, 1)]));
    scene.show(&before, &[0]);
    let report = scene.reports(&[0]);
    let host = scene.hosts.remove(0);
    let mut host = host.restart();
    assert_eq!(host.verdict(&after), Verdict::Closed);
    assert!(matches!(host.verdict(&before), Verdict::Vote(_)), "it voted for it before");
    assert_eq!(host.close(), report[&replica(0)], "told again, it reports the same");
    assert_eq!(host.releases, [ReleaseEntry::Close]);
}

#[test]
fn a_closing_is_durable_before_the_report_leaves() {
    let mut scene = Scene::new();
    let machine = &mut scene.hosts[0].machine;
    machine.handle(Time(0), AuthorityEvent::Close(Digest::ZERO));
    let effects: Vec<AuthorityEffect> = std::iter::from_fn(|| machine.poll()).collect();
    let [AuthorityEffect::PersistReleases(entries), AuthorityEffect::Closed(Digest::ZERO)] =
        &effects[..]
    else {
        panic!("close, then report: {effects:?}")
    };
    assert_eq!(*entries, [ReleaseEntry::Close]);
}

/// All keys of the former epoch sign what its owner likes; its authorities voted for another.
#[test]
fn leaked_keys_and_an_owner_make_no_second_spend() {
    let mut scene = Scene::new();
    let paid = scene.spend(BOB);
    scene.show(&paid, &[0, 1, 2, 3]);
    let reports = scene.reports(&[0, 1, 2]);
    let mut hosts = scene.begin(&reports);
    let forged = scene.coins(&scene.spend(MALLORY));
    let onward = scene.next.spend(MALLORY, &forged, &[to(ALICE, 5)]);
    let expected = Verdict::Undecided { input: forged[0].id };
    assert_eq!(hosts[1].verdict(&onward), expected);
    assert!(!scene.is_certified(&mut hosts, &onward));
}

/// That a certificate of the former epoch was found to be signed says nothing of one that names the
/// epoch in force.
#[test]
fn a_checked_certificate_of_a_former_epoch_stands_for_none_of_this_one() {
    let scene = &mut Scene::new();
    let reports = scene.reports(&[0, 1, 2]);
    let mut hosts = scene.begin(&reports);
    let mut forged = scene.coins(&scene.spend(MALLORY));
    let onward = scene.next.spend(MALLORY, &forged, &[to(ALICE, 5)]);
    assert_eq!(hosts[1].verdict(&onward), Verdict::Undecided { input: forged[0].id });
    let Origin::Certified(proof) = &mut forged[0].origin else { panic!("it was paid") };
    proof.certificate.epoch = scene.next.network.epoch();
    let onward = scene.next.spend(MALLORY, &forged, &[to(ALICE, 5)]);
    let refused = Verdict::Invalid(Invalid::Certificate(forged[0].id));
    assert_eq!(hosts[1].verdict(&onward), refused);
}

/// A liar reports what it made up with an owner: five units become a thousand. The keys leak later.
#[test]
fn what_one_report_names_is_checked_before_it_counts() {
    let mut scene = Scene::new();
    let made_up =
        scene.testnet.spend(MALLORY, &scene.testnet.endowed(MALLORY)[..1], &[to(MALLORY, 1_000)]);
    let mut reports = scene.reports(&[1, 2]);
    let tx = made_up.id(scene.testnet.network.id());
    reports.insert(replica(3), vec![(tx, made_up.locks()[0])]);
    let mut hosts = scene.begin(&reports);
    let verdict = hosts[0].verdict(&made_up);
    assert!(matches!(verdict, Verdict::Invalid(Invalid::Conservation { .. })), "{verdict:?}");
    let coins = scene.coins(&made_up);
    let onward = scene.next.spend(MALLORY, &coins, &[to(ALICE, 1_000)]);
    assert!(!scene.is_certified(&mut hosts, &onward));
}

/// Somebody signed for the owner: it is locked for what the report names, and still not voted for.
#[test]
fn what_one_report_names_needs_its_owners_signature() {
    let mut scene = Scene::new();
    let mut stolen = scene.spend(BOB);
    stolen.signature = Signature([7; 64]);
    let mut reports = scene.reports(&[1, 2]);
    let tx = stolen.id(scene.testnet.network.id());
    reports.insert(replica(3), vec![(tx, stolen.locks()[0])]);
    let mut hosts = scene.begin(&reports);
    assert_eq!(hosts[0].verdict(&stolen), Verdict::Invalid(Invalid::OwnerSignature));
}

/// Even among those who reported; whoever did not settles it.
#[test]
fn an_input_between_two_is_voted_for_once_more_reports_are_there() {
    let mut scene = Scene::new();
    let (first, second) = (scene.spend(BOB), scene.spend(ALICE));
    scene.show(&first, &[0, 1]);
    scene.show(&second, &[2]);
    let reports = scene.reports(&[1, 2, 3]);
    let mut hosts = scene.begin(&reports);
    let input = first.locks()[0];
    for tx in [&first, &second] {
        assert_eq!(hosts[0].verdict(tx), Verdict::Undecided { input });
    }
    // Nor is it free: its owner would sign a third one, and lose it to the one that was certified.
    let told = |host: &AuthorityHost| {
        let read = |_| -> Result<Option<Core>, LookupFailed> { Ok(None) };
        CoinStatus::of(input, &host.spent, key(MALLORY), read).expect("all is in memory")
    };
    let said: Vec<CoinStatus> = hosts.iter().map(told).collect();
    assert_eq!(said, vec![CoinStatus::Contested; 4]);
    let said: Vec<_> = (0..).zip(&said).map(|(from, status)| (replica(from), status)).collect();
    assert_eq!(CoinStatus::agreed(&scene.next.network, key(MALLORY), input, &said), None);
    assert!(hosts[0].execute(AuthorityEvent::Freeze(vec![input])).is_empty(), "nothing is said");
    let reports = scene.reports(&[0, 1, 2, 3]);
    let mut hosts = scene.begin(&reports);
    assert!(scene.is_certified(&mut hosts, &first));
    assert!(!scene.is_certified(&mut hosts, &second));
}

/// What was inherited is known to its owner, and reported when it is frozen.
#[test]
fn an_inherited_lock_is_reported_by_its_name() {
    let mut scene = Scene::new();
    let half = scene.spend(BOB);
    scene.show(&half, &[1, 2]);
    let reports = scene.reports(&[1, 2, 3]);
    let mut hosts = scene.begin(&reports);
    let frozen = hosts[0].execute(AuthorityEvent::Freeze(half.locks()));
    let tx = half.id(scene.testnet.network.id());
    assert_eq!(frozen[0].held, Held::Pruned(tx));
    assert_eq!(hosts[0].spent.is_contested(half.locks()[0]), Ok(false), "by that one alone");
}

/// Whoever freezes what an earlier epoch locked keeps nobody from being paid: it was reported as
/// that payment's. What was reported as free stays so.
#[test]
fn a_freeze_keeps_no_inherited_payment_from_being_finished() {
    let mut scene = Scene::new();
    let both = scene.testnet.endowed(MALLORY);
    let half = scene.testnet.spend(MALLORY, &both, &[to(BOB, 12)]);
    scene.show(&half, &[1]);
    let reports = scene.reports(&[1, 2, 3]);
    let mut hosts = scene.begin(&reports);
    for host in &mut hosts {
        let told = host.execute(AuthorityEvent::Freeze(half.locks()));
        assert!(
            told.iter()
                .all(|report| report.held == Held::Pruned(half.id(scene.testnet.network.id())))
        );
    }
    assert!(scene.is_certified(&mut hosts, &half));
    let mut hosts = scene.begin(&empty(&reports));
    for host in &mut hosts {
        host.execute(AuthorityEvent::Freeze(vec![both[0].id]));
    }
    assert!(!scene.is_certified(&mut hosts, &half), "its coin was reported as free");
}

fn empty(reports: &Reports) -> Reports {
    reports.keys().map(|from| (*from, Vec::new())).collect()
}

/// A transaction that a release gave the coin counts; what the coin was locked for before does not.
#[test]
fn decisions_are_handed_over() {
    let mut scene = Scene::new();
    let (lost, won) = (scene.spend(BOB), scene.spend(ALICE));
    scene.show(&lost, &[0]);
    let (coin, tx) = (won.locks()[0], won.id(scene.testnet.network.id()));
    for host in &mut scene.hosts {
        host.execute(AuthorityEvent::Freeze(vec![coin]));
        host.execute(AuthorityEvent::Decided(vec![(coin, Decision::Spend(tx))]));
    }
    scene.show(&won, &[0, 1, 2]);
    let reports = scene.reports(&[0, 1, 3]);
    let left = Inheritance::default().after(&Weights::equal(4), &reports).expect("a quorum");
    assert_eq!(left.admits(tx), Ok(true));
    assert_eq!(left.admits(lost.id(scene.testnet.network.id())), Ok(false));
    assert_eq!(left.candidates(coin), Ok(vec![tx]), "and the coin is that one's");
}

/// Whoever heard nothing of a release must not vote over what it gave back: neither before its
/// refund is certified, which goes on, nor after.
#[test]
fn what_a_release_gave_back_is_nobody_elses_in_the_next_epoch() {
    for shown in [&[][..], &[1], &[0, 1, 2]] {
        let mut scene = Scene::new();
        let coin = scene.testnet.endowed(MALLORY)[..1].to_vec();
        let refund = Transaction::refund(&scene.testnet.network, &secret(MALLORY), &coin[0]);
        scene.show(&scene.spend(BOB), &[0]);
        for host in &mut scene.hosts {
            host.execute(AuthorityEvent::Freeze(vec![coin[0].id]));
            host.execute(AuthorityEvent::Decided(vec![(coin[0].id, Decision::Refund)]));
        }
        scene.show(&refund, shown);
        let reports = scene.reports(&[0, 1, 3]);
        let mut hosts = scene.begin(&reports);
        for spent in [scene.spend(BOB), scene.spend(ALICE)] {
            assert!(!scene.is_certified(&mut hosts, &spent), "refund shown to {shown:?}");
        }
        let coins = if shown.len() == 3 {
            scene.coins(&refund)
        } else {
            assert!(scene.is_certified(&mut hosts, &refund), "it was decided");
            scene.next.coins(&refund)
        };
        let onward = scene.next.spend(MALLORY, &coins, &[to(ALICE, 5)]);
        assert!(scene.is_certified(&mut hosts, &onward), "refund shown to {shown:?}");
        assert!(!scene.is_certified(&mut hosts, &scene.spend(ALICE)));
        let evidence = hosts.iter().flat_map(|host| &host.evidence);
        assert_eq!(evidence.count(), 0, "a refund and a payment prove nothing");
    }
}

/// What lost one of its coins counts by none of the others, though keys of its epoch leaked.
#[test]
fn a_transaction_that_lost_a_release_counts_nowhere() {
    let mut scene = Scene::new();
    let both = scene.testnet.endowed(MALLORY);
    let lost = scene.testnet.spend(MALLORY, &both, &[to(BOB, 12)]);
    scene.show(&lost, &[0]);
    for host in &mut scene.hosts {
        host.execute(AuthorityEvent::Freeze(vec![both[0].id]));
        host.execute(AuthorityEvent::Decided(vec![(both[0].id, Decision::Refund)]));
    }
    let mut reports = scene.reports(&[0, 1]);
    let lie = lost.id(scene.testnet.network.id());
    reports.insert(replica(3), vec![(lie, both[1].id)]);
    let left = Inheritance::default().after(&Weights::equal(4), &reports).expect("a quorum");
    assert_eq!(left.admits(lie), Ok(false));
}

/// What a release of the founding epoch gave back, and the next one's authorities certified, counts
/// after that one, too; what a liar names there, and what takes other coins beside, does not.
#[test]
fn a_refund_that_a_later_epoch_certified_counts() {
    let weights = Weights::equal(4);
    let (refund, coin, other) = (entry(1, 9).0, entry(1, 9).1, entry(1, 8).1);
    let of = |named: &[usize], locks: &[OutputId]| -> Reports {
        let locks = |one| match named.contains(&one) {
            true => locks.iter().map(|lock| (refund, *lock)).collect(),
            false => Vec::new(),
        };
        (0..4).map(|one| (replica(one), locks(one))).collect()
    };
    let given_back = (0..4).map(|one| (replica(one), vec![(released(coin), coin)])).collect();
    let first = Inheritance::default().after(&weights, &given_back).expect("all");
    let second = first.after(&weights, &of(&[0, 1, 2], &[coin])).expect("all");
    assert_eq!(second.admits(refund), Ok(true));
    assert_eq!(second.candidates(coin), Ok(vec![released(coin)]), "it may be shown again");
    let lied = first.after(&weights, &of(&[3], &[coin])).expect("all");
    assert_eq!(lied.admits(refund), Ok(false));
    let mut both = [coin, other];
    both.sort_unstable();
    let more = first.after(&weights, &of(&[0, 1, 2], &both)).expect("all");
    assert_eq!(more.admits(refund), Ok(false));
}

/// The next epoch may have given away what this one reports as free.
#[test]
fn nothing_is_reported_of_coins_once_the_epoch_has_ended() {
    let mut scene = Scene::new();
    let coin = scene.spend(BOB).locks()[0];
    scene.reports(&[0]);
    let host = &mut scene.hosts[0];
    assert_eq!(host.execute(AuthorityEvent::Freeze(vec![coin])), []);
    host.execute(AuthorityEvent::Decided(vec![(coin, Decision::Refund)]));
    assert_eq!(scene.reports(&[0])[&replica(0)], [], "the report stays what it was");
}

fn check(present: &Network, change: &Change) -> Result<(), ChangeError> {
    ChangeStep::Change(Box::new(change.clone())).check(present, None)
}

/// A change signed by these authorities, of whom number 4 is the newcomer.
fn signed_by(testnet: &TestNetwork, signers: &[usize]) -> Change {
    let (next, full) = testnet.next(&[0]);
    let mut change = Change::draft(full.next);
    for one in signers {
        let keys: &KeyFile = testnet.keys.get(*one).unwrap_or(&next.keys[0]);
        change.sign(&testnet.network, &keys.identity);
    }
    change
}

#[test]
fn a_change_takes_quorums_of_both_epochs_and_every_newcomer() {
    let testnet = TestNetwork::new();
    let open = |signers: &[usize]| check(&testnet.network, &signed_by(&testnet, signers));
    assert_eq!(open(&[1, 2, 3, 4]), Ok(()));
    assert_eq!(open(&[0, 1, 2, 4]), Ok(()));
    assert_eq!(open(&[1, 2, 4]), Err(ChangeError::TooFew { found: 2, least: 3 }));
    assert_eq!(open(&[0, 1, 2, 3]), Err(ChangeError::NotReady { found: 3, least: 3 }));
    assert_eq!(open(&[0, 1, 2]), Err(ChangeError::NotReady { found: 2, least: 3 }));
}

/// Whoever passes a change on adds nothing to it.
#[test]
fn a_change_has_no_strangers_signatures() {
    let testnet = TestNetwork::new();
    let mut change = signed_by(&testnet, &[1, 2, 3, 4]);
    change.signatures.insert(key(MALLORY), Signature([0; 64]));
    assert_eq!(check(&testnet.network, &change), Err(ChangeError::Strangers));
}

#[test]
fn signatures_are_for_the_whole_file() {
    let testnet = TestNetwork::new();
    let mut change = signed_by(&testnet, &[1, 2, 3, 4]);
    change.next.authorities[0].addresses[0] = "elsewhere.example:1".into();
    let error = check(&testnet.network, &change).expect_err("another file");
    assert_eq!(error, ChangeError::TooFew { found: 0, least: 3 });
}

#[test]
fn a_change_keeps_the_money_as_it_is() {
    let testnet = TestNetwork::new();
    let refused = |edit: fn(&mut crate::NetworkFile)| {
        let mut file = testnet.file.next_epoch(testnet.network.id());
        edit(&mut file);
        testnet.network.load_next(&file).expect_err("refused")
    };
    assert_eq!(refused(|file| file.genesis[0].value += 1), ChangeError::OtherMoney);
    assert_eq!(refused(|file| file.issuer = key(BOB).to_string()), ChangeError::OtherMoney);
    assert_eq!(refused(|file| file.name = "other".into()), ChangeError::OtherMoney);
    let (found, expected) = (Epoch(5), Epoch(4));
    assert_eq!(refused(|file| file.epoch = Epoch(5)), ChangeError::NotNext { found, expected });
    assert!(matches!(refused(|file| file.network = None), ChangeError::NotNext { .. }));
    assert!(matches!(refused(|file| file.authorities.clear()), ChangeError::File(_)));
    let later = testnet.file.next_epoch(testnet.network.id());
    let error = crate::Network::load(&later).expect_err("nothing leads there");
    assert_eq!(error, NetworkError::NotFounding(Epoch(4)));
}

/// Votes of the next epoch are none of this one's, nor of an epoch of that number after another
/// change.
#[test]
fn votes_are_bound_to_the_change() {
    let testnet = TestNetwork::new();
    let (next, _) = testnet.next(&[0]);
    let (other, _) = testnet.next(&[1]);
    let tx = testnet.spend(ALICE, &testnet.endowed(ALICE)[..1], &[to(BOB, 10)]);
    let certificate = next.certificate(&tx);
    let id = tx.id(next.network.id());
    assert_eq!(certificate.epoch, Epoch(4));
    assert_eq!(next.network.votes().verify(&[(id, &certificate)]), [true]);
    for network in [&testnet.network, &other.network] {
        assert_eq!(network.votes().verify(&[(id, &certificate)]), [false]);
    }
    let former = testnet.certificate(&tx);
    assert_eq!(next.network.votes().verify(&[(id, &former), (id, &certificate)]), [true, true]);
    let relabelled = crate::TxCertificate { epoch: Epoch(4), ..former };
    assert_eq!(next.network.votes().verify(&[(id, &relabelled)]), [false]);
}

fn closing(testnet: &TestNetwork, authority: usize, next: Digest) -> ChangeStep {
    let identity = &testnet.keys[authority].identity;
    let place = (replica(authority), 0);
    let leaves = [chunk_leaf(0, b"")];
    ChangeStep::Closing(Closing::sign(&testnet.network, identity, place, next, (1, &leaves)))
}

#[test]
fn the_first_change_and_the_first_report_of_each_authority_count() {
    let testnet = TestNetwork::new();
    let (first, second) = (testnet.next(&[0]).1, testnet.next(&[1]).1);
    let mut border = Border::default();
    let next = first.next.digest();
    let early = closing(&testnet, 1, next);
    assert_eq!(border.apply(&early), Err(BorderRefusal::NotEnded));
    assert_eq!(border.apply(&ChangeStep::Change(Box::new(first))), Ok(()));
    assert_eq!(
        border.apply(&ChangeStep::Change(Box::new(second.clone()))),
        Err(BorderRefusal::Ended)
    );
    assert_eq!(border.next(), Some(next));
    let stray = closing(&testnet, 1, second.next.digest());
    assert_eq!(border.apply(&stray), Err(BorderRefusal::NotEnded));
    let weights = Weights::equal(4);
    for authority in [3, 1, 0] {
        assert!(!border.is_reported(1, &weights));
        assert_eq!(border.apply(&closing(&testnet, authority, next)), Ok(()));
    }
    assert!(border.is_reported(1, &weights));
    assert!(!border.is_reported(2, &weights), "each shard");
    let identity = &testnet.keys[1].identity;
    let other = Closing::sign(&testnet.network, identity, (replica(1), 0), next, (0, &[]));
    assert_eq!(border.apply(&ChangeStep::Closing(other)), Err(BorderRefusal::Repeated));
    assert!(border.closings(0).all(|one| one.count == 1));
}

#[test]
fn an_epoch_has_begun_once_a_quorum_of_its_own_authorities_says_so() {
    let testnet = TestNetwork::new();
    let (next, change) = testnet.next(&[0]);
    let entered = |one: usize| {
        let place = (replica(one), 0);
        Entered::sign(&next.network, &next.keys[one].identity, place)
    };
    let check = |entered: Entered| {
        ChangeStep::Entered(entered).check(&next.network, Some(&testnet.network))
    };
    let mut border = Border::default();
    assert_eq!(border.apply(&ChangeStep::Entered(entered(0))), Err(BorderRefusal::NotEnded));
    assert_eq!(border.apply(&ChangeStep::Change(Box::new(change))), Ok(()));
    for one in [0, 2, 3] {
        assert!(!border.has_begun(1, &Weights::equal(4)));
        assert_eq!(check(entered(one)), Ok(()));
        assert_eq!(border.apply(&ChangeStep::Entered(entered(one))), Ok(()));
    }
    assert!(border.has_begun(1, &Weights::equal(4)));
    assert!(!border.has_begun(2, &Weights::equal(4)), "each shard");
    assert_eq!(border.apply(&ChangeStep::Entered(entered(2))), Err(BorderRefusal::Known));
    let forged = [
        Entered { authority: replica(1), ..entered(0) },
        Entered { shard: 1, ..entered(0) },
        Entered::sign(&next.network, &next.keys[0].identity, (replica(0), 1)),
        Entered::sign(&testnet.network, &next.keys[0].identity, (replica(0), 0)),
    ];
    for entered in forged {
        assert_eq!(check(entered), Err(ChangeError::Entrant));
    }
    let early = ChangeStep::Entered(entered(0)).check(&next.network, None);
    assert_eq!(early, Err(ChangeError::NotEnded));
}

#[test]
fn a_report_is_signed_by_its_authority() {
    let testnet = TestNetwork::new();
    let next = testnet.next(&[0]).1.next.digest();
    let ChangeStep::Closing(sound) = closing(&testnet, 1, next) else { panic!("a report") };
    let check = |closing: Closing| {
        let after = testnet.next(&[0]).0.network;
        ChangeStep::Closing(closing).check(&after, Some(&testnet.network))
    };
    assert_eq!(check(sound), Ok(()));
    let forged = [
        Closing { authority: replica(2), ..sound },
        Closing { count: 2, ..sound },
        Closing { root: Digest::ZERO, ..sound },
        Closing { next: Digest::ZERO, ..sound },
    ];
    for closing in forged {
        assert_eq!(check(closing), Err(ChangeError::Reporter));
    }
    let beyond =
        Closing::sign(&testnet.network, &testnet.keys[1].identity, (replica(1), 1), next, (0, &[]));
    assert_eq!(check(beyond), Err(ChangeError::Reporter), "there is one shard");
    let early = ChangeStep::Closing(sound).check(&testnet.network, None);
    assert_eq!(early, Err(ChangeError::NotEnded));
}

fn entry(tx: u8, input: u8) -> LockEntry {
    let name = |number: u8| TxId(hash(&[number]));
    (name(tx), OutputId { tx: name(input), index: u16::from(input) })
}

#[test]
fn chunks_are_read_as_they_are_written() {
    let mut entries: Vec<LockEntry> = (0..9).map(|one| entry(one / 2, one)).collect();
    entries.sort_unstable();
    let bytes = encode_chunk(&entries);
    assert_eq!(decode_chunk(&bytes), Some(entries.clone()));
    assert_eq!(decode_chunk(&bytes[1..]), None);
    entries.swap(3, 4);
    assert_eq!(decode_chunk(&encode_chunk(&entries)), None, "out of order");
    assert_eq!(decode_chunk(&[bytes.clone(), bytes].concat()), None, "twice");
}

#[test]
fn a_report_has_the_chunks_that_it_was_signed_for() {
    let testnet = TestNetwork::new();
    let leaves: Vec<Digest> = (0..3).map(|number| chunk_leaf(number, &[7])).collect();
    let count = 2 * CHUNK_ENTRIES as u64 + 1;
    let sign = |count| {
        let identity = &testnet.keys[0].identity;
        let place = (replica(0), 0);
        Closing::sign(&testnet.network, identity, place, Digest::ZERO, (count, &leaves))
    };
    assert!(sign(count).has_leaves(&leaves));
    assert!(!sign(count).has_leaves(&leaves[..2]));
    assert!(!sign(count - 1).has_leaves(&leaves), "that many take two chunks");
    assert_ne!(leaves[0], leaves[1], "a chunk has one place");
}

/// An input that is another's for good stays so, whoever names what in the next report.
#[test]
fn what_counts_is_never_contested_again() {
    let (good, bad, coin) = (entry(1, 9).0, entry(2, 9).0, entry(1, 9).1);
    let report = |tx: TxId| vec![(tx, coin)];
    let of = |reports: &[(usize, TxId)]| -> Reports {
        let all = [0, 1, 2].map(|one| (replica(one), Vec::new()));
        let named = reports.iter().map(|(from, tx)| (replica(*from), report(*tx)));
        all.into_iter().chain(named).collect()
    };
    let weights = Weights::equal(4);
    let first =
        Inheritance::default().after(&weights, &of(&[(0, good), (1, good)])).expect("three");
    assert_eq!((first.candidates(coin), first.admits(good)), (Ok(vec![good]), Ok(true)));
    let second = first.after(&weights, &of(&[(2, bad)])).expect("three");
    assert_eq!((second.candidates(coin), second.admits(good)), (Ok(vec![good]), Ok(true)));
    assert_eq!(second.admits(bad), Ok(false));
}

/// Of what one report alone named, an honest vote in the next epoch knows better.
#[test]
fn an_honest_vote_outlives_a_lie_of_the_epoch_before() {
    let (lie, paid, coin) = (entry(1, 9).0, entry(2, 9).0, entry(1, 9).1);
    let weights = Weights::equal(4);
    let of = |named: &[(usize, TxId)]| -> Reports {
        let named = named.iter().map(|(from, tx)| (replica(*from), vec![(*tx, coin)]));
        [1, 2, 3].map(|one| (replica(one), Vec::new())).into_iter().chain(named).collect()
    };
    let first = Inheritance::default().after(&weights, &of(&[(3, lie)])).expect("three");
    assert_eq!(first.candidates(coin), Ok(vec![lie]));
    let half = first.after(&weights, &of(&[(1, paid)])).expect("three");
    assert_eq!(half.candidates(coin).map(|both| both.len()), Ok(2), "one of them may be a lie");
    let paid_for = first.after(&weights, &of(&[(1, paid), (2, paid)])).expect("three");
    assert_eq!(paid_for.candidates(coin), Ok(vec![paid]));
    assert_eq!(paid_for.admits(paid), Ok(true));
}

#[test]
fn every_left_out_rule_is_noticed() {
    let checks: [(Mutant, fn()); 13] = [
        (Mutant::PayCloseUndecided, what_a_release_gave_back_is_nobody_elses_in_the_next_epoch),
        (Mutant::PayReportAfterClosing, nothing_is_reported_of_coins_once_the_epoch_has_ended),
        (Mutant::PayVoteAfterClosing, an_authority_that_has_closed_votes_for_nothing_new),
        (Mutant::PayCloseBeforePersist, a_closing_is_durable_before_the_report_leaves),
        (Mutant::PayTrustFormerEpochs, leaked_keys_and_an_owner_make_no_second_spend),
        (Mutant::PayAdmitOnOneReport, what_one_report_names_is_checked_before_it_counts),
        (Mutant::PayTrustInherited, what_one_report_names_needs_its_owners_signature),
        (Mutant::PayReportTwice, the_first_change_and_the_first_report_of_each_authority_count),
        (Mutant::PayChangeByAnybody, a_change_takes_quorums_of_both_epochs_and_every_newcomer),
        (Mutant::PayChangeUnready, a_change_takes_quorums_of_both_epochs_and_every_newcomer),
        (
            Mutant::PayEnterForAnybody,
            an_epoch_has_begun_once_a_quorum_of_its_own_authorities_says_so,
        ),
        (Mutant::PayCloseForAnybody, a_report_is_signed_by_its_authority),
        (
            Mutant::PayReleaseContested,
            an_input_between_two_is_voted_for_once_more_reports_are_there,
        ),
    ];
    for (rule, test) in checks {
        assert_noticed(rule, test);
    }
}

/// Chunks as they are written, and none that is anything else.
#[test]
fn a_chunk_is_whole_and_in_order_or_none() {
    let entry = |number: u16| {
        let name = |text: &[u8]| TxId(quorate_crypto::hash(text));
        (name(b"one"), OutputId { tx: name(b"parent"), index: number })
    };
    let two = encode_chunk(&[entry(1), entry(2)]);
    assert_eq!(decode_chunk(&two), Some(vec![entry(1), entry(2)]));
    assert_eq!(decode_chunk(&[]), Some(vec![]));
    assert_eq!(decode_chunk(&two[1..]), None);
    assert_eq!(decode_chunk(&encode_chunk(&[entry(2), entry(1)])), None);
    assert_eq!(decode_chunk(&encode_chunk(&[entry(1), entry(1)])), None);
    let full: Vec<LockEntry> = (0..u16::try_from(CHUNK_ENTRIES).expect("few")).map(entry).collect();
    assert_eq!(decode_chunk(&encode_chunk(&full)).map(|all| all.len()), Some(CHUNK_ENTRIES));
    let more = [full, vec![entry(u16::MAX)]].concat();
    assert_eq!(decode_chunk(&encode_chunk(&more)), None);
}

/// Of what was admitted nothing is another's, whoever names it.
#[test]
fn an_input_of_a_transaction_that_counts_excludes_all_others() {
    let name = |text: &[u8]| TxId(quorate_crypto::hash(text));
    let (one, other) = (name(b"one"), name(b"other"));
    let before = |is_admitted| Before { candidates: vec![one], is_admitted };
    let coin = OutputId { tx: name(b"parent"), index: 0 };
    let excludes = |is_admitted, tx| before(is_admitted).excludes(coin, (tx, &[coin]));
    assert!(excludes(true, other));
    assert!(!excludes(true, one));
    assert!(!excludes(false, other));
}

#[test]
fn a_network_knows_how_many_epochs_came_before() {
    let scene = Scene::new();
    let (first, second) = (&scene.testnet.network, &scene.next.network);
    assert!(first.is_founding() && !second.is_founding());
    assert_eq!((first.former_epochs(), second.former_epochs()), (0, 1));
}

#[test]
fn a_signature_on_a_change_is_its_keys() {
    let testnet = TestNetwork::new();
    let mut change = signed_by(&testnet, &[1, 4]);
    let key = |one: usize| testnet.keys[one].identity.public();
    assert!(change.is_signed_by(&testnet.network, &key(1)));
    assert!(!change.is_signed_by(&testnet.network, &key(2)));
    let theirs = change.signatures[&key(1)];
    change.signatures.insert(key(2), theirs);
    assert!(!change.is_signed_by(&testnet.network, &key(2)), "it is another's");
}

#[test]
fn a_report_that_cannot_be_read_ends_the_merge() {
    let name = |text: &[u8]| TxId(quorate_crypto::hash(text));
    let entry = (name(b"one"), OutputId { tx: name(b"parent"), index: 0 });
    let reports = [(1, vec![Ok(entry)].into_iter()), (1, vec![Err("torn")].into_iter())];
    let merged: Vec<Result<Claimed, &str>> = Claims::of(reports).collect();
    assert_eq!(merged, [Err("torn")]);
}

/// At a start decisions are known before locks are: what was free when it was voted for is locked.
#[test]
fn a_decided_coin_is_locked_after_a_restart_too() {
    let mut scene = Scene::new();
    let won = scene.spend(BOB);
    let (coin, tx) = (won.locks()[0], won.id(scene.testnet.network.id()));
    let mut host = scene.hosts.remove(0);
    host.execute(AuthorityEvent::Freeze(vec![coin]));
    host.execute(AuthorityEvent::Decided(vec![(coin, Decision::Spend(tx))]));
    assert!(matches!(host.verdict(&won), Verdict::Vote(_)));
    let host = host.restart();
    assert_eq!(host.spent.get(coin).map(|locked| locked.map(|one| one.tx)), Ok(Some(tx)));
    assert_eq!(host.spent.is_contested(coin), Ok(false));
}
