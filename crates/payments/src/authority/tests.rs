use super::*;
use crate::testing::{ALICE, BOB, MALLORY, Office, Town, certify, key, secret, to};
use crate::{Coin, PayScheme, Transaction, Verdict, look};

fn effects(machine: &mut Authority) -> Vec<AuthorityEffect> {
    std::iter::from_fn(|| machine.poll()).collect()
}

fn orders(office: &Office, txs: &[&Transaction]) -> AuthorityEvent {
    let orders = (0..).zip(txs.iter().map(|tx| (*tx).clone())).collect();
    AuthorityEvent::Orders(look(orders, &office.verifier))
}

fn is_vote(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Vote(_))
}

/// Two transactions of Mallory's over one coin.
fn conflict(town: &Town) -> [Transaction; 2] {
    let coins = &town.endowed(MALLORY)[..1];
    [to(ALICE, 5), to(BOB, 5)].map(|output| town.spend(MALLORY, coins, &[output]))
}

#[test]
fn locks_are_durable_before_their_vote_is_asked_for() {
    let town = Town::new();
    let mut office = Office::new(&town, 0, 0);
    let tx = town.spend(ALICE, &town.endowed(ALICE), &[to(BOB, 60)]);
    let event = orders(&office, &[&tx]);
    office.machine.handle(Time(0), event);
    let effects = effects(&mut office.machine);
    let [AuthorityEffect::Persist(locks), AuthorityEffect::Sign(job)] = &effects[..] else {
        panic!("locks, then votes: {effects:?}")
    };
    let core = tx.core(town.network.chain());
    assert_eq!(job.orders, [(0, core.id)]);
    assert_eq!(*locks, [Lock { sequence: 0, core }]);
}

/// What was voted for is voted for again, by whoever comes, before and after a restart.
#[test]
fn a_repeated_transaction_gets_its_vote_again() {
    let town = Town::new();
    let mut office = Office::new(&town, 0, 0);
    let tx = town.spend(ALICE, &town.endowed(ALICE), &[to(BOB, 60)]);
    let first = office.verdict(&tx);
    assert!(is_vote(&first));
    assert_eq!(office.verdict(&tx), first);
    assert_eq!(office.show(&[&tx, &tx]).len(), 2);
    let mut office = office.restart();
    assert_eq!(office.verdict(&tx), first);
    assert_eq!(office.log.len(), 1, "and locked once");
}

#[test]
fn an_input_is_voted_for_once() {
    let town = Town::new();
    let mut office = Office::new(&town, 0, 0);
    let [first, second] = conflict(&town);
    assert!(is_vote(&office.verdict(&first)));
    let refusal = office.verdict(&second);
    let core = first.core(town.network.chain());
    let expected = Verdict::Locked { input: core.locks[0], first: Some(Box::new(core)) };
    assert_eq!(refusal, expected);
    assert_eq!(office.evidence.len(), 1);
    assert!(office.evidence[0].is_proven(&town.network));
    assert!(is_vote(&office.verdict(&first)));
}

#[test]
fn a_serial_number_is_voted_for_once() {
    let town = Town::new();
    let mut office = Office::new(&town, 0, 0);
    assert!(is_vote(&office.verdict(&town.issue(4, &[to(ALICE, 9)]))));
    let again = office.verdict(&town.issue(4, &[to(ALICE, 10)]));
    assert!(matches!(again, Verdict::Locked { .. }), "{again:?}");
    assert!(is_vote(&office.verdict(&town.issue(5, &[to(ALICE, 10)]))));
}

/// Both at once, in one batch: the proof is read after the lock that it rests on was written.
#[test]
fn a_conflict_within_one_batch_is_refused_with_proof() {
    for scheme in [PayScheme::Plain, PayScheme::Merkle] {
        let town = Town::with(scheme, 4, 1);
        let mut office = Office::new(&town, 0, 0);
        let [first, second] = conflict(&town);
        let mut answers = office.show(&[&first, &second]);
        answers.sort_by_key(|(ticket, _)| *ticket);
        assert!(is_vote(&answers[0].1.verdict));
        let Verdict::Locked { first: Some(shown), .. } = &answers[1].1.verdict else {
            panic!("refused with the first: {:?}", answers[1])
        };
        assert_eq!(**shown, first.core(town.network.chain()));
        assert_eq!(office.evidence.len(), 1);
    }
}

#[test]
fn evidence_that_was_given_up_is_not_made_up() {
    let town = Town::new();
    let mut office = Office::new(&town, 0, 0);
    let [first, second] = conflict(&town);
    assert!(is_vote(&office.verdict(&first)));
    office.log.clear();
    let input = second.locks()[0];
    assert_eq!(office.verdict(&second), Verdict::Locked { input, first: None });
    assert!(office.evidence.is_empty());
}

/// One is taken: the others stay free.
#[test]
fn all_inputs_are_locked_or_none() {
    let town = Town::new();
    let mut office = Office::new(&town, 0, 0);
    let coins = town.endowed(ALICE);
    let spend = |coins: &[Coin], value| town.spend(ALICE, coins, &[to(BOB, value)]);
    assert!(is_vote(&office.verdict(&spend(&coins[..1], 10))));
    let both = spend(&coins[..2], 30);
    assert!(matches!(office.verdict(&both), Verdict::Locked { .. }));
    assert!(is_vote(&office.verdict(&spend(&coins[1..2], 20))), "it was not locked by halves");
    assert_eq!(office.spent.len(), 2);
}

/// n = 4 and nobody faulty. Paper 003's votes are for an output alone, under a name that its payer
/// picks: shown one each, three authorities certify one output for three inputs, and every input is still
/// free at the three others.
#[test]
fn three_inputs_for_one_named_output_make_no_money() {
    let town = Town::new();
    let mut offices = town.offices();
    // Three coins of 1 make it four units of three, as the paper's protocol has it.
    let issue = town.issue(1, &[to(MALLORY, 1), to(MALLORY, 1), to(MALLORY, 1)]);
    let coins = certify(&town, &mut offices, &[0, 1, 2, 3], &issue).certificate(&town);
    let coins = issue.coins(town.network.chain(), &coins.expect("all vote for an issue"));
    let mut votes = Vec::new();
    let mut names = Vec::new();
    for (one, coin) in coins.iter().enumerate() {
        let tx = town.spend(MALLORY, std::slice::from_ref(coin), &[to(BOB, 1)]);
        let found = certify(&town, &mut offices, &[one], &tx);
        votes.extend(found.votes);
        names.push(found.id);
    }
    assert_eq!(votes.len(), 3, "an honest vote for each");
    let mut made = 0;
    names.sort_unstable();
    names.dedup();
    for id in names {
        let votes = crate::testing::Votes { id, votes: votes.clone() };
        made += u64::from(votes.certificate(&town).is_some());
    }
    for (one, coin) in coins.iter().enumerate() {
        let elsewhere: Vec<usize> = (0..4).filter(|other| *other != one).collect();
        let tx = town.spend(MALLORY, std::slice::from_ref(coin), &[to(MALLORY, 1)]);
        let votes = certify(&town, &mut offices, &elsewhere, &tx);
        made += u64::from(votes.certificate(&town).is_some());
    }
    assert!(made <= 3, "{made} units were made of 3");
}

/// Paper 003 locks a name that whoever makes an output picks: spending a coin of a victim's coin's
/// name locks the victim's.
#[test]
fn spending_a_coin_of_the_same_name_freezes_nobody() {
    let town = Town::new();
    let mut offices = town.offices();
    let mut coin = |serial, person| {
        let issue = town.issue(serial, &[to(person, 1)]);
        let certificate = certify(&town, &mut offices, &[0, 1, 2, 3], &issue).certificate(&town);
        certificate.map(|one| issue.coins(town.network.chain(), &one).remove(0))
    };
    let (of_mallory, of_alice) = (coin(1, MALLORY), coin(2, ALICE));
    let all = [0, 1, 2, 3];
    let of_mallory = of_mallory.expect("issued");
    let theirs = town.spend(MALLORY, &[of_mallory], &[to(BOB, 1)]);
    assert!(certify(&town, &mut offices, &all, &theirs).certificate(&town).is_some());
    let of_alice = of_alice.expect("issued");
    let tx = town.spend(ALICE, &[of_alice], &[to(BOB, 1)]);
    assert!(certify(&town, &mut offices, &all, &tx).certificate(&town).is_some(), "frozen");
}

/// It voted, lost power, and is shown the other one.
#[test]
fn locks_survive_a_restart() {
    let town = Town::new();
    let mut office = Office::new(&town, 0, 0);
    let [first, second] = conflict(&town);
    assert!(is_vote(&office.verdict(&first)));
    let mut office = office.restart();
    assert!(matches!(office.verdict(&second), Verdict::Locked { first: Some(_), .. }));
    let other = town.spend(ALICE, &town.endowed(ALICE), &[to(BOB, 60)]);
    assert!(is_vote(&office.verdict(&other)));
    let sequences: Vec<u64> = office.log.iter().map(|lock| lock.sequence).collect();
    assert_eq!(sequences, [0, 1], "its count goes on");
}

#[test]
fn what_is_invalid_is_refused_with_the_reason() {
    let town = Town::new();
    let mut office = Office::new(&town, 0, 0);
    let tx = Transaction::issue(&town.network, &secret(MALLORY), 1, vec![to(MALLORY, 1)]);
    assert_eq!(office.verdict(&tx), Verdict::Invalid(crate::Invalid::NotTheIssuer));
    assert_eq!((office.spent.len(), office.log.len()), (0, 0));
}

/// Looked at before the other was locked: what counts is what is locked when the machine decides.
#[test]
fn orders_that_were_looked_at_too_early_are_judged_again() {
    let town = Town::new();
    let mut office = Office::new(&town, 0, 0);
    let [first, second] = conflict(&town);
    let early = orders(&office, &[&second]);
    assert!(is_vote(&office.verdict(&first)));
    office.machine.handle(Time(0), early);
    let effects = effects(&mut office.machine);
    assert!(matches!(&effects[..], [AuthorityEffect::Read(0)]), "{effects:?}");
}

#[test]
fn questions_about_older_locks_are_bounded() {
    let town = Town::new();
    let mut office = Office::new(&town, 0, 0);
    let [first, second] = conflict(&town);
    assert!(is_vote(&office.verdict(&first)));
    let event = orders(&office, &vec![&second; READS_MAX + 3]);
    office.machine.handle(Time(0), event);
    let effects = effects(&mut office.machine);
    let is_busy = |effect: &&AuthorityEffect| matches!(effect, AuthorityEffect::Answer { answer, .. } if answer.verdict == Verdict::Busy);
    assert_eq!(effects.iter().filter(is_busy).count(), 3);
    let reads = effects.iter().filter(|effect| matches!(effect, AuthorityEffect::Read(_)));
    assert_eq!(reads.count(), 1, "one lock is read once");
}

/// Votes wait for company, and for no longer than the gathering takes.
#[test]
fn votes_are_gathered_for_2_milliseconds_or_a_full_tree() {
    let town = Town::with(PayScheme::Merkle, 4, 1);
    let together = town.network.votes().together();
    let mut office = Office::new(&town, 0, 0);
    let txs: Vec<_> =
        (0..together as u64).map(|serial| town.issue(serial, &[to(ALICE, 1)])).collect();
    let signs = |machine: &mut Authority| {
        let effects = effects(machine);
        let jobs = effects.iter().filter_map(|effect| match effect {
            AuthorityEffect::Sign(job) => Some(job.orders.len()),
            _ => None,
        });
        jobs.collect::<Vec<_>>()
    };
    let event = orders(&office, &[&txs[0]]);
    office.machine.handle(Time(0), event);
    assert_eq!(
        (signs(&mut office.machine), office.machine.next_timeout()),
        (vec![], Some(Time(2_000)))
    );
    office.machine.handle_timeout(Time(1_999));
    assert_eq!(signs(&mut office.machine), [] as [usize; 0]);
    office.machine.handle_timeout(Time(2_000));
    assert_eq!((signs(&mut office.machine), office.machine.next_timeout()), (vec![1], None));
    let event = orders(&office, &txs.iter().collect::<Vec<_>>());
    office.machine.handle(Time(5_000), event);
    assert_eq!(signs(&mut office.machine), [together]);
}

#[test]
fn every_shard_locks_for_itself() {
    let town = Town::with(PayScheme::Plain, 4, 64);
    let (alice, mallory) =
        (town.network.shard_of(&key(ALICE)), town.network.shard_of(&key(MALLORY)));
    let tx = town.spend(ALICE, &town.endowed(ALICE), &[to(BOB, 60)]);
    assert!(is_vote(&Office::new(&town, 0, alice).verdict(&tx)));
    let refusal = Office::new(&town, 0, mallory).verdict(&tx);
    assert_eq!(refusal, Verdict::Invalid(crate::Invalid::WrongShard(alice)));
}

/// Each rule left out is noticed by the check that stands for it.
#[cfg(feature = "mutants")]
mod mutants {
    use super::*;
    use quorate_crypto::mutants::assert_noticed;

    #[test]
    fn every_rule_about_locks_is_missed() {
        assert_noticed(
            Mutant::PayVoteNamedOutputs,
            three_inputs_for_one_named_output_make_no_money,
        );
        assert_noticed(Mutant::PayLockByName, spending_a_coin_of_the_same_name_freezes_nobody);
        assert_noticed(Mutant::PayNoLocks, an_input_is_voted_for_once);
        assert_noticed(Mutant::PayPartialLock, all_inputs_are_locked_or_none);
        assert_noticed(
            Mutant::PayVoteBeforePersist,
            locks_are_durable_before_their_vote_is_asked_for,
        );
        assert_noticed(Mutant::PayVoteBeforePersist, locks_survive_a_restart);
        assert_noticed(Mutant::PayRefuseRepeats, a_repeated_transaction_gets_its_vote_again);
    }
}
