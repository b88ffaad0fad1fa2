//! Releases from end to end: authorities, steps and rules, in every way that one can end.

mod forms;

use super::*;
use crate::testing::{ALICE, AuthorityHost, BOB, MALLORY, TestNetwork, certify, key, secret, to};
use crate::{AuthorityEvent, Coin, Equivocation, OutputId, Transaction, Verdict};

/// Four authorities, a coin of Mallory's worth 5, and the order that all follow.
struct Scene {
    testnet: TestNetwork,
    hosts: Vec<AuthorityHost>,
    docket: MemoryDocket,
}

impl Scene {
    fn new() -> Self {
        let testnet = TestNetwork::new();
        Self { hosts: testnet.hosts(), docket: MemoryDocket::default(), testnet }
    }

    fn coins(&self) -> Vec<Coin> {
        self.testnet.endowed(MALLORY)
    }

    fn name(&self, which: usize) -> OutputId {
        self.coins()[which].id
    }

    /// Mallory spends these of her coins.
    fn spend(&self, which: &[usize], payee: u8) -> Transaction {
        let coins: Vec<Coin> = which.iter().map(|one| self.coins()[*one].clone()).collect();
        let value = coins.iter().map(|coin| coin.output.value).sum();
        self.testnet.spend(MALLORY, &coins, &[to(payee, value)])
    }

    fn show(&mut self, tx: &Transaction, authorities: &[usize]) {
        for one in authorities {
            let verdict = self.hosts[*one].verdict(tx);
            assert!(matches!(verdict, Verdict::Vote(_)), "{verdict:?}");
        }
    }

    /// Orders a step, as the committee does: its bytes, checked.
    fn order(&mut self, step: &ReleaseStep) -> Result<Decided, String> {
        let network = &self.testnet.network;
        let step = ReleaseStep::open(network, &step.encode()).map_err(|error| error.to_string())?;
        let weights = network.committee().weights();
        let mut releases = Releases::new(&mut self.docket, weights);
        let Ok(result) = releases.apply(&step);
        result.map_err(|refusal| refusal.to_string())
    }

    /// The owner's freeze of coins, executed by these authorities, whose reports are ordered.
    fn release(&mut self, which: &[usize], authorities: &[usize]) -> Decided {
        let coins = which.iter().map(|one| self.coins()[*one].clone()).collect();
        let freeze = Freeze::by_owner(&self.testnet.network, &secret(MALLORY), coins);
        let names: Vec<OutputId> = which.iter().map(|one| self.name(*one)).collect();
        let mut decided = self.order(&ReleaseStep::Freeze(freeze)).expect("a freeze");
        for one in authorities {
            for report in self.hosts[*one].execute(AuthorityEvent::Freeze(names.clone())) {
                let more = self.order(&ReleaseStep::Report(report));
                decided.extend(more.unwrap_or_default());
            }
        }
        decided
    }

    fn decide(&mut self, decided: &Decided, authorities: &[usize]) {
        for one in authorities {
            self.hosts[*one].execute(AuthorityEvent::Decided(decided.clone()));
        }
    }

    fn is_certified(&mut self, tx: &Transaction) -> bool {
        certify(&self.testnet, &mut self.hosts, &[0, 1, 2, 3], tx)
            .certificate(&self.testnet)
            .is_some()
    }
}

/// A wallet was restored from an old copy: its first payment reached one authority, and is lost.
#[test]
fn half_a_payment_is_refunded_where_nobody_knows_it() {
    let mut scene = Scene::new();
    let lost = scene.spend(&[0], ALICE);
    scene.show(&lost, &[3]);
    let decided = scene.release(&[0], &[0, 1, 2]);
    assert_eq!(decided, [(scene.name(0), Decision::Refund)]);
    scene.decide(&decided, &[0, 1, 2, 3]);
    let back = Transaction::refund(&scene.testnet.network, &secret(MALLORY), &scene.coins()[0]);
    assert!(scene.is_certified(&back));
    assert!(!scene.is_certified(&lost));
    assert!(!scene.is_certified(&scene.spend(&[0], BOB)), "the coin itself is never free again");
    let returned = scene.testnet.coins(&back);
    assert_eq!(returned[0].output, to(MALLORY, 5));
    let onward = scene.testnet.spend(MALLORY, &returned, &[to(BOB, 5)]);
    assert!(scene.is_certified(&onward), "and what came back is money");
    assert!(scene.hosts.iter().all(|host| host.evidence.is_empty()));
}

#[test]
fn half_a_payment_that_was_reported_is_finished() {
    let mut scene = Scene::new();
    let half = scene.spend(&[0], ALICE);
    scene.show(&half, &[0]);
    let tx = half.id(scene.testnet.network.id());
    let decided = scene.release(&[0], &[0, 1, 2]);
    assert_eq!(decided, [(scene.name(0), Decision::Spend(tx))]);
    scene.decide(&decided, &[0, 1, 2, 3]);
    assert!(scene.is_certified(&half));
}

/// Two transactions, of which one alone can still be certified: the other's locks are overruled.
#[test]
fn the_only_possible_one_is_voted_for_by_those_who_locked_the_other() {
    let mut scene = Scene::new();
    let (first, second) = (scene.spend(&[0], ALICE), scene.spend(&[0], BOB));
    scene.show(&first, &[0, 1]);
    scene.show(&second, &[2]);
    let tx = first.id(scene.testnet.network.id());
    let decided = scene.release(&[0], &[0, 1, 2, 3]);
    assert_eq!(decided, [(scene.name(0), Decision::Spend(tx))]);
    scene.decide(&decided, &[0, 1, 2, 3]);
    assert!(matches!(scene.hosts[2].verdict(&first), Verdict::Vote(_)));
    let refused = scene.hosts[2].verdict(&second);
    let released = Verdict::Released { input: scene.name(0), decision: Decision::Spend(tx) };
    assert_eq!(refused, released);
}

#[test]
fn an_even_split_of_four_stays_locked_until_a_certificate_is_shown() {
    let mut scene = Scene::new();
    let (first, second) = (scene.spend(&[0], ALICE), scene.spend(&[0], BOB));
    scene.show(&first, &[0, 1]);
    scene.show(&second, &[2, 3]);
    assert_eq!(scene.release(&[0], &[0, 1, 2, 3]), []);
    let Ok(standing) = scene.docket.coin(scene.name(0));
    assert!(standing.is_stuck(scene.testnet.network.committee().weights()));
    // One of those who locked the second had voted for the first all the same.
    let core = first.core(scene.testnet.network.id());
    let (certificate, tx) = (scene.testnet.certificate(&first), core.id);
    let decided = scene.order(&ReleaseStep::Certified { core, certificate });
    assert_eq!(decided, Ok(vec![(scene.name(0), Decision::Spend(tx))]));
}

/// What takes two coins is decided for both, or for none; what cannot be any more leaves its other
/// coin.
#[test]
fn a_transaction_that_is_out_at_one_coin_is_out_at_the_other() {
    let mut scene = Scene::new();
    let (both, one) = (scene.spend(&[0, 1], ALICE), scene.spend(&[0], BOB));
    scene.show(&both, &[0]);
    scene.show(&one, &[1, 2]);
    assert_eq!(scene.release(&[1], &[0, 1, 2]), [], "of the other coin nothing is known");
    let tx = one.id(scene.testnet.network.id());
    let mut decided = scene.release(&[0], &[0, 1, 2, 3]);
    decided.sort();
    let mut expected = [(scene.name(0), Decision::Spend(tx)), (scene.name(1), Decision::Refund)];
    expected.sort();
    assert_eq!(decided, expected);
}

#[test]
fn an_authority_that_executes_a_freeze_late_votes_for_nothing_meanwhile() {
    let mut scene = Scene::new();
    let early = scene.spend(&[0], ALICE);
    scene.show(&early, &[0]);
    scene.release(&[0], &[0, 1]);
    let undecided = Verdict::Undecided { input: scene.name(0) };
    assert_eq!(scene.hosts[1].verdict(&early), undecided);
    let mut host = scene.hosts.remove(1).restart();
    assert_eq!(host.verdict(&early), undecided, "nor after a restart");
    assert!(matches!(scene.hosts[0].verdict(&early), Verdict::Vote(_)), "it had voted before");
}

#[test]
fn freezes_take_the_owners_word_or_the_proof_against_it() {
    let mut scene = Scene::new();
    let network = std::sync::Arc::clone(&scene.testnet.network);
    let coins = scene.coins()[..1].to_vec();
    let foreign = Freeze::by_owner(&network, &secret(BOB), coins.clone());
    assert!(scene.order(&ReleaseStep::Freeze(foreign)).is_err());
    let cores = [ALICE, BOB].map(|payee| scene.spend(&[0], payee).core(network.id()));
    let [first, second] = cores;
    let proof = Equivocation { first: first.clone(), second };
    let cause = Cause::Equivocation(Box::new(proof));
    let other = Freeze { coins: scene.coins()[1..].to_vec(), cause: cause.clone() };
    assert!(scene.order(&ReleaseStep::Freeze(other)).is_err(), "not of that coin");
    let twice = Equivocation { first: first.clone(), second: first };
    let alone = Freeze { coins: coins.clone(), cause: Cause::Equivocation(Box::new(twice)) };
    assert!(scene.order(&ReleaseStep::Freeze(alone)).is_err(), "one transaction is no proof");
    let mut invented = coins.clone();
    invented[0].output.value += 1;
    let invented = Freeze::by_owner(&network, &secret(MALLORY), invented);
    assert!(scene.order(&ReleaseStep::Freeze(invented)).is_err(), "no such coin");
    let twice = vec![coins[0].clone(), coins[0].clone()];
    let twice = Freeze::by_owner(&network, &secret(MALLORY), twice);
    assert!(scene.order(&ReleaseStep::Freeze(twice)).is_err());
    assert_eq!(scene.order(&ReleaseStep::Freeze(Freeze { coins, cause })), Ok(vec![]));
}

#[test]
fn a_report_is_its_authoritys_and_counts_once() {
    let mut scene = Scene::new();
    let network = std::sync::Arc::clone(&scene.testnet.network);
    let half = scene.spend(&[0], ALICE);
    scene.show(&half, &[0]);
    scene.release(&[0], &[]);
    let coin = scene.name(0);
    let report = scene.hosts[0].execute(AuthorityEvent::Freeze(vec![coin])).remove(0);
    let forged = Report { authority: quorate_types::ReplicaId(1), ..report.clone() };
    assert!(scene.order(&ReleaseStep::Report(forged)).is_err());
    let stripped = Report { held: Held::Pruned(report.held.tx().expect("one")), ..report.clone() };
    assert!(scene.order(&ReleaseStep::Report(stripped)).is_err(), "signed with all it says");
    assert!(scene.order(&ReleaseStep::Report(report.clone())).is_ok());
    let repeated = scene.order(&ReleaseStep::Report(report));
    assert_eq!(repeated, Err(Refusal::Repeated.to_string()));
    let identity = scene.testnet.keys[1].identity.clone();
    let sign = |coin, held| {
        ReleaseStep::Report(Report::sign(
            &network,
            &identity,
            quorate_types::ReplicaId(1),
            coin,
            held,
        ))
    };
    let other = scene.name(1);
    assert_eq!(scene.order(&sign(other, Held::Free)), Err(Refusal::NotFrozen.to_string()));
    let elsewhere = scene.spend(&[1], ALICE).core(network.id());
    let refused = scene.order(&sign(coin, Held::For(elsewhere)));
    assert_eq!(refused, Err(Refusal::OtherCoin.to_string()));
    let mut altered = half.core(network.id());
    altered.payer = key(BOB);
    assert!(scene.order(&sign(coin, Held::For(altered))).is_err(), "nobody signed that");
}

/// ★ A lying authority signs a transaction over a coin with a key of its own: it takes nothing, and
/// keeps nobody's coin from its owner.
#[test]
fn what_the_owner_did_not_sign_is_not_decided_for() {
    let mut scene = Scene::new();
    let coins = scene.coins()[..1].to_vec();
    let theft = scene.testnet.spend(BOB, &coins, &[to(BOB, 5)]).core(scene.testnet.network.id());
    assert!(theft.is_genuine(&scene.testnet.network), "it is Bob's signature");
    scene.release(&[0], &[0, 1]);
    let (network, keys) = (&scene.testnet.network, &scene.testnet.keys[3].identity);
    let coin = coins[0].id;
    let lie = Report::sign(network, keys, quorate_types::ReplicaId(3), coin, Held::For(theft));
    let refused = scene.order(&ReleaseStep::Report(lie));
    assert_eq!(refused, Err(Refusal::OtherOwner.to_string()));
    let report = scene.hosts[2].execute(AuthorityEvent::Freeze(vec![coin])).remove(0);
    let decided = scene.order(&ReleaseStep::Report(report));
    assert_eq!(decided, Ok(vec![(coin, Decision::Refund)]));
}

/// ★ Nor for what one owner signed over another's coin beside its own, whoever names it there.
#[test]
fn a_coin_is_not_decided_for_what_another_owner_signed_over_it() {
    let mut scene = Scene::new();
    let network = std::sync::Arc::clone(&scene.testnet.network);
    let (theirs, own) = (scene.coins()[0].clone(), scene.testnet.endowed(ALICE)[0].clone());
    let both = [theirs.clone(), own.clone()];
    let theft = scene.testnet.spend(ALICE, &both, &[to(ALICE, 15)]).core(network.id());
    let freeze = Freeze::by_owner(&network, &secret(ALICE), vec![own.clone()]);
    assert_eq!(scene.order(&ReleaseStep::Freeze(freeze)), Ok(vec![]));
    scene.release(&[0], &[]);
    let lie = |scene: &mut Scene, coin, held| {
        let keys = scene.testnet.keys[3].identity.clone();
        let lie = Report::sign(&network, &keys, quorate_types::ReplicaId(3), coin, held);
        scene.order(&ReleaseStep::Report(lie)).expect("counted")
    };
    let mut decided = lie(&mut scene, own.id, Held::For(theft.clone()));
    decided.extend(lie(&mut scene, theirs.id, Held::Pruned(theft.id)));
    for one in 0..2 {
        for report in scene.hosts[one].execute(AuthorityEvent::Freeze(vec![own.id, theirs.id])) {
            decided.extend(scene.order(&ReleaseStep::Report(report)).expect("counted"));
        }
    }
    decided.sort();
    let mut refunds = [(own.id, Decision::Refund), (theirs.id, Decision::Refund)];
    refunds.sort();
    assert_eq!(decided, refunds);
}

#[test]
fn a_certificate_over_nothing_frozen_is_not_kept() {
    let mut scene = Scene::new();
    let payment = scene.spend(&[0], ALICE);
    let (core, certificate) =
        (payment.core(scene.testnet.network.id()), scene.testnet.certificate(&payment));
    let refused = scene.order(&ReleaseStep::Certified { core, certificate });
    assert_eq!(refused, Err(Refusal::NotFrozen.to_string()));
}

/// An authority that pruned what it locked says which it was: ruled out by reports enough, and
/// never decided.
#[test]
fn a_pruned_lock_holds_the_coin_until_enough_deny_it() {
    let mut scene = Scene::new();
    let lost = scene.spend(&[0], ALICE).id(scene.testnet.network.id());
    let weights = scene.testnet.network.committee().weights().clone();
    let coin = scene.name(0);
    let mut releases = Releases::new(&mut scene.docket, &weights);
    assert_eq!(releases.freeze(coin, key(MALLORY)), Ok(vec![]));
    let mut report = |from, held| releases.report(quorate_types::ReplicaId(from), coin, &held);
    assert_eq!(report(0, Held::Pruned(lost)), Ok(Ok(vec![])));
    assert_eq!(report(1, Held::Free), Ok(Ok(vec![])));
    assert_eq!(report(2, Held::Free), Ok(Ok(vec![])), "it may be certified");
    assert_eq!(report(3, Held::Free), Ok(Ok(vec![(coin, Decision::Refund)])));
}

mod mutants {
    use super::*;
    use quorate_crypto::mutants::{Mutant, assert_noticed};

    #[test]
    fn broken_rules_are_noticed() {
        let refunded: fn() = half_a_payment_is_refunded_where_nobody_knows_it;
        assert_noticed(Mutant::PayRefundSetsFree, refunded);
        let late: fn() = an_authority_that_executes_a_freeze_late_votes_for_nothing_meanwhile;
        assert_noticed(Mutant::PayVoteOverFrozen, late);
        assert_noticed(
            Mutant::PayReleaseOneInput,
            a_transaction_that_is_out_at_one_coin_is_out_at_the_other,
        );
        assert_noticed(Mutant::PayReleaseUnheard, half_a_payment_that_was_reported_is_finished);
        assert_noticed(
            Mutant::PayReleaseMostReported,
            an_even_split_of_four_stays_locked_until_a_certificate_is_shown,
        );
        assert_noticed(
            Mutant::PayFreezeByAnybody,
            freezes_take_the_owners_word_or_the_proof_against_it,
        );
        let stolen: fn() = what_the_owner_did_not_sign_is_not_decided_for;
        assert_noticed(Mutant::PayReleaseToAnybody, stolen);
        assert_noticed(
            Mutant::PayReleaseToAnybody,
            a_coin_is_not_decided_for_what_another_owner_signed_over_it,
        );
        assert_noticed(Mutant::PayReportByAnybody, a_report_is_its_authoritys_and_counts_once);
        let leaked: fn() = forms::a_certificate_decides_in_its_own_epoch_alone;
        assert_noticed(Mutant::PayReleaseByFormerKeys, leaked);
    }
}
