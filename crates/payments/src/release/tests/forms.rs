//! Steps in every form that is refused, and what single rules come to.

use super::Scene;
use crate::release::{
    Decision, Docket, Freeze, Held, Known, MemoryDocket, ReleaseStep, Report, Standing, StepError,
};
use crate::testing::{ALICE, BOB, MALLORY, replica, secret};
use crate::{AuthorityEvent, Coin, Core, Equivocation, OutputId, TxId, Verdict};
use crate::{release::Cause, release::Releases};
use quorate_crypto::Signature;
use quorate_types::{Epoch, Weights};
use std::collections::BTreeSet;

impl Scene {
    fn refusal(&self, step: &ReleaseStep) -> Option<StepError> {
        ReleaseStep::open(&self.testnet.network, &step.encode()).err()
    }

    fn core(&self, tx: &crate::Transaction) -> Core {
        tx.core(self.testnet.network.id())
    }
}

/// A freeze of these coins, in this order, that their owner signed.
fn freeze(scene: &Scene, coins: Vec<Coin>) -> ReleaseStep {
    let mut freeze = Freeze::by_owner(&scene.testnet.network, &secret(MALLORY), coins.clone());
    let names: Vec<OutputId> = coins.iter().map(|coin| coin.id).collect();
    if names.is_sorted() {
        freeze.coins = coins;
    } else {
        let digest = quorate_crypto::hash(&borsh::to_vec(&names).expect("into memory"));
        let scope = quorate_types::Scope::network(scene.testnet.network.id());
        let wish = quorate_types::sign::statement(quorate_types::Kind::TxRelease, scope, &digest);
        let cause = Cause::Owner(secret(MALLORY).sign(&wish));
        freeze = Freeze { coins, cause };
    }
    ReleaseStep::Freeze(freeze)
}

/// So many coins of Mallory's, none of which exists.
fn invented(scene: &Scene, count: u16) -> Vec<Coin> {
    let like = &scene.coins()[0];
    let name = |index| OutputId { tx: like.id.tx, index: 1_000 + index };
    (0..count).map(|index| Coin { id: name(index), ..like.clone() }).collect()
}

#[test]
fn a_freeze_names_coins_of_one_owner_each_once_and_in_order() {
    let scene = Scene::new();
    let coins = scene.coins();
    assert_eq!(scene.refusal(&freeze(&scene, coins.clone())), None);
    let refused = |coins: &[&Coin]| {
        let coins = coins.iter().map(|coin| (*coin).clone()).collect();
        assert_eq!(scene.refusal(&freeze(&scene, coins)), Some(StepError::Coins));
    };
    refused(&[]);
    refused(&[&coins[1], &coins[0]]);
    refused(&[&coins[0], &coins[0]]);
    let of_alice = scene.testnet.endowed(ALICE)[0].clone();
    let mut two_owners = [&coins[0], &of_alice];
    two_owners.sort_by_key(|coin| coin.id);
    refused(&two_owners);
    let most = u16::try_from(Freeze::COINS_MAX).expect("few");
    let found = scene.refusal(&freeze(&scene, invented(&scene, most)));
    assert!(matches!(found, Some(StepError::Coin(_))), "as many as may be: {found:?}");
    let found = scene.refusal(&freeze(&scene, invented(&scene, most + 1)));
    assert_eq!(found, Some(StepError::Coins));
}

/// What an owner wished of one coin is no wish about another.
#[test]
fn a_wish_is_about_its_coins() {
    let scene = Scene::new();
    let coins = scene.coins();
    let ReleaseStep::Freeze(mut freeze) = freeze(&scene, coins[..1].to_vec()) else {
        unreachable!("it is one")
    };
    freeze.coins = coins[1..].to_vec();
    let found = scene.refusal(&ReleaseStep::Freeze(freeze));
    assert_eq!(found, Some(StepError::Cause));
}

/// A coin of either of the two transactions may be frozen by the proof, and no third one.
#[test]
fn a_double_spend_has_the_coins_of_both_frozen() {
    let scene = Scene::new();
    let (both, one) = (scene.spend(&[0, 1], BOB), scene.spend(&[0], ALICE));
    let by = |first: &crate::Transaction, second: &crate::Transaction, which: usize| {
        let proof = Equivocation { first: scene.core(first), second: scene.core(second) };
        let cause = Cause::Equivocation(Box::new(proof));
        scene.refusal(&ReleaseStep::Freeze(Freeze {
            coins: vec![scene.coins()[which].clone()],
            cause,
        }))
    };
    for which in [0, 1] {
        assert_eq!(by(&both, &one, which), None);
        assert_eq!(by(&one, &both, which), None);
    }
    let other = scene.spend(&[0], BOB);
    assert_eq!(by(&one, &other, 1), Some(StepError::Cause));
}

#[test]
fn a_report_names_what_its_payer_signed() {
    let scene = Scene::new();
    let (network, coin) = (&scene.testnet.network, scene.name(0));
    let report = |held| {
        let identity = &scene.testnet.keys[1].identity;
        scene.refusal(&ReleaseStep::Report(Report::sign(network, identity, replica(1), coin, held)))
    };
    let core = scene.core(&scene.spend(&[0, 1], BOB));
    assert_eq!(report(Held::For(core.clone())), None);
    let forged = Core { signature: Signature([7; 64]), ..core.clone() };
    assert_eq!(report(Held::For(forged)), Some(StepError::Payer));
    let mut locks = core.locks.clone();
    locks.reverse();
    assert_eq!(report(Held::For(Core { locks, ..core.clone() })), Some(StepError::Payer));
    let twice = vec![core.locks[0], core.locks[0]];
    assert_eq!(report(Held::For(Core { locks: twice, ..core.clone() })), Some(StepError::Payer));
    let other = scene.core(&scene.spend(&[0], BOB));
    assert_eq!(report(Held::For(Core { id: other.id, ..core })), Some(StepError::Payer));
}

/// Two that may both be certified, whatever is reported yet, and nothing less.
#[test]
fn a_coin_is_stuck_between_two_that_an_honest_one_may_have_voted_for() {
    let scene = Scene::new();
    let weights = Weights::equal(4);
    let names = [BOB, ALICE].map(|payee| scene.core(&scene.spend(&[0], payee)).id);
    let standing = |named: [Option<usize>; 4]| Standing {
        epoch: Epoch(1),
        owner: Some(secret(MALLORY).public()),
        claims: BTreeSet::from(names),
        reports: (0..)
            .zip(named)
            .map(|(at, one)| (replica(at), one.map(|one| names[one])))
            .collect(),
        decision: None,
    };
    let split = standing([Some(0), Some(0), Some(1), Some(1)]);
    assert!(split.is_stuck(&weights));
    assert!(!Standing { decision: Some(Decision::Refund), ..split }.is_stuck(&weights));
    assert!(!standing([Some(0), Some(0), Some(1), None]).is_stuck(&weights));
    assert!(!standing([Some(0), Some(0), Some(0), Some(1)]).is_stuck(&weights));
    assert!(!standing([None; 4]).is_stuck(&weights));
}

/// Of a certified transaction's coins those are decided that are frozen.
#[test]
fn a_certificate_decides_what_is_frozen_and_is_shown_again_in_vain() {
    let mut scene = Scene::new();
    let paid = scene.spend(&[0, 1], BOB);
    scene.show(&paid, &[0, 1, 2]);
    scene.release(&[0], &[]);
    let certified = ReleaseStep::Certified {
        core: scene.core(&paid),
        certificate: scene.testnet.certificate(&paid),
    };
    let tx = scene.core(&paid).id;
    let decided = scene.order(&certified).expect("it is certified");
    assert_eq!(decided, [(scene.name(0), Decision::Spend(tx))]);
    let Ok(other) = scene.docket.coin(scene.name(1));
    assert_eq!((other.decision, other.is_frozen()), (None, false));
    assert_eq!(scene.order(&certified), Ok(vec![]));
    assert_eq!(scene.release(&[1], &[]), [(scene.name(1), Decision::Spend(tx))]);
    let rival = scene.spend(&[0], ALICE);
    let against = ReleaseStep::Certified {
        core: scene.core(&rival),
        certificate: scene.testnet.certificate(&rival),
    };
    assert_eq!(scene.order(&against), Err("what is certified was decided against".to_owned()));
}

/// ★ Keys of an epoch that ended may have leaked since, all of them.
#[test]
pub(super) fn a_certificate_decides_in_its_own_epoch_alone() {
    let scene = Scene::new();
    let paid = scene.spend(&[0], BOB);
    let certificate = scene.testnet.certificate(&paid);
    let step = ReleaseStep::Certified { core: scene.core(&paid), certificate };
    assert_eq!(scene.refusal(&step), None);
    let next = scene.testnet.next(&[0]).0.network;
    assert_eq!(step.check(&next), Err(StepError::FormerEpoch));
}

/// Nothing is decided of a coin that nobody froze, whatever is known of what takes it.
#[test]
fn a_coin_that_is_not_frozen_is_not_decided() {
    let mut scene = Scene::new();
    let (both, rival) = (scene.spend(&[0, 1], BOB), scene.spend(&[0], ALICE));
    scene.show(&rival, &[0, 1]);
    scene.show(&scene.spend(&[1], BOB), &[0, 1]);
    scene.show(&both, &[2]);
    let decided = scene.release(&[0], &[0, 1, 2, 3]);
    assert_eq!(decided, [(scene.name(0), Decision::Spend(scene.core(&rival).id))]);
    let weights = Weights::equal(4);
    let name = scene.name(1);
    let Ok(standing) = scene.docket.coin(name);
    assert!(!standing.is_frozen() && standing.decision.is_none(), "{standing:?}");
    let mut releases = Releases::new(&mut scene.docket, &weights);
    let Ok(again) = releases.freeze(scene.testnet.endowed(MALLORY)[0].id, secret(MALLORY).public());
    assert_eq!(again, [], "it is decided");
}

/// With one coin decided for it and another frozen, a transaction waits.
#[test]
fn a_transaction_is_not_voted_for_while_any_of_its_coins_is_frozen() {
    let mut scene = Scene::new();
    let both = scene.spend(&[0, 1], BOB);
    let (first, second) = (both.locks()[0], both.locks()[1]);
    let decided = vec![(second, Decision::Spend(scene.core(&both).id))];
    let host = &mut scene.hosts[0];
    assert_eq!(host.execute(AuthorityEvent::Freeze(vec![first, second])).len(), 2);
    let entries = host.releases.len();
    assert_eq!(host.execute(AuthorityEvent::Freeze(vec![first, second])).len(), 2, "again");
    assert_eq!(host.releases.len(), entries, "but durable once");
    host.execute(AuthorityEvent::Decided(decided));
    assert_eq!(host.verdict(&both), Verdict::Undecided { input: first });
}

#[test]
fn decisions_have_words() {
    let scene = Scene::new();
    let tx = scene.core(&scene.spend(&[0], BOB)).id;
    assert_eq!(Decision::Refund.to_string(), "it goes back to its owner");
    assert_eq!(Decision::Spend(tx).to_string(), format!("it goes to transaction {tx}"));
}

/// A docket that counts how often it is read.
#[derive(Default)]
struct CountingDocket {
    kept: MemoryDocket,
    reads: std::cell::Cell<u64>,
}

impl Docket for CountingDocket {
    type Error = std::convert::Infallible;

    fn coin(&self, coin: OutputId) -> Result<Standing, Self::Error> {
        self.reads.set(self.reads.get() + 1);
        self.kept.coin(coin)
    }

    fn set_coin(&mut self, coin: OutputId, standing: &Standing) -> Result<(), Self::Error> {
        self.kept.set_coin(coin, standing)
    }

    fn transaction(&self, tx: TxId) -> Result<Option<Known>, Self::Error> {
        self.reads.set(self.reads.get() + 1);
        self.kept.transaction(tx)
    }

    fn set_transaction(&mut self, tx: TxId, known: &Known) -> Result<(), Self::Error> {
        self.kept.set_transaction(tx, known)
    }
}

/// A transaction of as many coins as may be, which another one takes the last of: every replica
/// executes each report of every authority.
#[test]
fn a_report_costs_no_more_than_its_transaction_is_long() {
    let weights = Weights::equal(4);
    let most = u16::try_from(Freeze::COINS_MAX).expect("few");
    let scene = Scene::new();
    let core = |index: u16, locks: &[OutputId]| Core {
        id: TxId(quorate_crypto::hash(&index.to_le_bytes())),
        locks: locks.to_vec(),
        ..scene.core(&scene.spend(&[0], BOB))
    };
    let coins: Vec<OutputId> = invented(&scene, most).iter().map(|coin| coin.id).collect();
    let (whole, last) = (core(1, &coins), core(2, &coins[coins.len() - 1..]));
    let mut docket = CountingDocket::default();
    let mut releases = Releases::new(&mut docket, &weights);
    for coin in &coins {
        let Ok(_) = releases.freeze(*coin, secret(MALLORY).public());
    }
    let mut costliest = 0;
    for (from, at_last) in [(0, &whole), (1, &whole), (2, &last), (3, &last)] {
        for coin in &coins {
            let is_last = Some(coin) == coins.last();
            let held = if is_last || from < 2 {
                Held::For(if is_last { at_last.clone() } else { whole.clone() })
            } else {
                Held::Free
            };
            let before = docket.reads.get();
            let mut releases = Releases::new(&mut docket, &weights);
            let Ok(counted) = releases.report(replica(from), *coin, &held);
            assert_eq!(counted, Ok(vec![]), "two stay possible at the last coin");
            costliest = costliest.max(docket.reads.get() - before);
        }
    }
    let coins = u64::from(most);
    assert!(costliest <= 5 * coins * coins, "a report read {costliest} times");
}
