use super::*;
use crate::release::Decision;
use crate::testing::{ALICE, AuthorityHost, BOB, MALLORY, TestNetwork, certify, key, secret, to};
use crate::transaction::owner_statement;
use crate::{Coin, ColdSet, OrderVerifier, PayScheme, Transaction, Verdict, check_orders};

fn effects(machine: &mut Authority) -> Vec<AuthorityEffect> {
    std::iter::from_fn(|| machine.poll()).collect()
}

fn orders(host: &AuthorityHost, txs: &[&Transaction]) -> AuthorityEvent {
    let orders = (0..).zip(txs.iter().map(|tx| (*tx).clone())).collect();
    AuthorityEvent::Orders(check_orders(orders, &host.verifier))
}

fn is_vote(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Vote(_))
}

/// Two transactions of Mallory's over one coin.
fn conflict(testnet: &TestNetwork) -> [Transaction; 2] {
    let coins = &testnet.endowed(MALLORY)[..1];
    [to(ALICE, 5), to(BOB, 5)].map(|output| testnet.spend(MALLORY, coins, &[output]))
}

#[test]
fn locks_are_durable_before_their_vote_is_asked_for() {
    let testnet = TestNetwork::new();
    let mut host = AuthorityHost::new(&testnet, 0, 0);
    let tx = testnet.spend(ALICE, &testnet.endowed(ALICE), &[to(BOB, 60)]);
    let event = orders(&host, &[&tx]);
    host.machine.handle(Time(0), event);
    let effects = effects(&mut host.machine);
    let [AuthorityEffect::Persist(locks), AuthorityEffect::Sign(job)] = &effects[..] else {
        panic!("locks, then votes: {effects:?}")
    };
    let core = tx.core(testnet.network.id());
    assert_eq!(job.orders, [(0, core.id)]);
    assert_eq!(*locks, [Lock { sequence: 0, core }]);
}

/// A locked transaction is voted for again, by whoever comes, before and after a restart.
#[test]
fn a_repeated_transaction_gets_its_vote_again() {
    let testnet = TestNetwork::new();
    let mut host = AuthorityHost::new(&testnet, 0, 0);
    let tx = testnet.spend(ALICE, &testnet.endowed(ALICE), &[to(BOB, 60)]);
    let first = host.verdict(&tx);
    assert!(is_vote(&first));
    assert_eq!(host.verdict(&tx), first);
    assert_eq!(host.show(&[&tx, &tx]).len(), 2);
    let mut host = host.restart();
    assert_eq!(host.verdict(&tx), first);
    assert_eq!(host.log.len(), 1, "and locked once");
}

#[test]
fn an_input_is_voted_for_once() {
    let testnet = TestNetwork::new();
    let mut host = AuthorityHost::new(&testnet, 0, 0);
    let [first, second] = conflict(&testnet);
    assert!(is_vote(&host.verdict(&first)));
    let refusal = host.verdict(&second);
    let core = first.core(testnet.network.id());
    let expected = Verdict::Locked { input: core.locks[0], first: Some(Box::new(core)) };
    assert_eq!(refusal, expected);
    assert_eq!(host.evidence.len(), 1);
    assert!(host.evidence[0].is_proven(&testnet.network));
    assert!(is_vote(&host.verdict(&first)));
}

#[test]
fn a_serial_number_is_voted_for_once() {
    let testnet = TestNetwork::new();
    let mut host = AuthorityHost::new(&testnet, 0, 0);
    assert!(is_vote(&host.verdict(&testnet.issue(4, &[to(ALICE, 9)]))));
    let again = host.verdict(&testnet.issue(4, &[to(ALICE, 10)]));
    assert!(matches!(again, Verdict::Locked { .. }), "{again:?}");
    assert!(is_vote(&host.verdict(&testnet.issue(5, &[to(ALICE, 10)]))));
}

/// A conflict within one batch: the proof is read after the lock that it rests on was written.
#[test]
fn a_conflict_within_one_batch_is_refused_with_proof() {
    for scheme in [PayScheme::Plain, PayScheme::Merkle] {
        let testnet = TestNetwork::with(scheme, 4, 1);
        let mut host = AuthorityHost::new(&testnet, 0, 0);
        let [first, second] = conflict(&testnet);
        let mut answers = host.show(&[&first, &second]);
        answers.sort_by_key(|(ticket, _)| *ticket);
        assert!(is_vote(&answers[0].1.verdict));
        let Verdict::Locked { first: Some(shown), .. } = &answers[1].1.verdict else {
            panic!("refused with the first: {:?}", answers[1])
        };
        assert_eq!(**shown, first.core(testnet.network.id()));
        assert_eq!(host.evidence.len(), 1);
    }
}

#[test]
fn evidence_that_was_given_up_is_not_made_up() {
    let testnet = TestNetwork::new();
    let mut host = AuthorityHost::new(&testnet, 0, 0);
    let [first, second] = conflict(&testnet);
    assert!(is_vote(&host.verdict(&first)));
    host.log.clear();
    let input = second.locks()[0];
    assert_eq!(host.verdict(&second), Verdict::Locked { input, first: None });
    assert!(host.evidence.is_empty());
}

/// One is taken: the others stay free.
#[test]
fn all_inputs_are_locked_or_none() {
    let testnet = TestNetwork::new();
    let mut host = AuthorityHost::new(&testnet, 0, 0);
    let coins = testnet.endowed(ALICE);
    let spend = |coins: &[Coin], value| testnet.spend(ALICE, coins, &[to(BOB, value)]);
    assert!(is_vote(&host.verdict(&spend(&coins[..1], 10))));
    let both = spend(&coins[..2], 30);
    assert!(matches!(host.verdict(&both), Verdict::Locked { .. }));
    assert!(is_vote(&host.verdict(&spend(&coins[1..2], 20))), "it was not locked by halves");
    assert_eq!(host.spent.len(), 2);
}

/// n = 4 and nobody faulty. Paper 003's votes are for an output alone, under a name that its payer
/// picks: shown one each, three authorities certify one output for three inputs, and every input is
/// still free at the three others.
#[test]
fn three_inputs_for_one_named_output_make_no_money() {
    let testnet = TestNetwork::new();
    let mut hosts = testnet.hosts();
    // Three coins of 1 make it four units of three, as the paper's protocol has it.
    let issue = testnet.issue(1, &[to(MALLORY, 1), to(MALLORY, 1), to(MALLORY, 1)]);
    let coins = certify(&testnet, &mut hosts, &[0, 1, 2, 3], &issue).certificate(&testnet);
    let coins = issue.coins(testnet.network.id(), &coins.expect("all vote for an issue"));
    let mut votes = Vec::new();
    let mut names = Vec::new();
    for (one, coin) in coins.iter().enumerate() {
        let tx = testnet.spend(MALLORY, std::slice::from_ref(coin), &[to(BOB, 1)]);
        let found = certify(&testnet, &mut hosts, &[one], &tx);
        votes.extend(found.votes);
        names.push(found.id);
    }
    assert_eq!(votes.len(), 3, "an honest vote for each");
    let mut made = 0;
    names.sort_unstable();
    names.dedup();
    for id in names {
        let votes = crate::testing::Votes { id, votes: votes.clone() };
        made += u64::from(votes.certificate(&testnet).is_some());
    }
    for (one, coin) in coins.iter().enumerate() {
        let elsewhere: Vec<usize> = (0..4).filter(|other| *other != one).collect();
        let tx = testnet.spend(MALLORY, std::slice::from_ref(coin), &[to(MALLORY, 1)]);
        let votes = certify(&testnet, &mut hosts, &elsewhere, &tx);
        made += u64::from(votes.certificate(&testnet).is_some());
    }
    assert!(made <= 3, "{made} units were made of 3");
}

/// Paper 003 locks a name that whoever makes an output picks: spending a coin of a victim's coin's
/// name locks the victim's.
#[test]
fn spending_a_coin_of_the_same_name_freezes_nobody() {
    let testnet = TestNetwork::new();
    let mut hosts = testnet.hosts();
    let mut coin = |serial, person| {
        let issue = testnet.issue(serial, &[to(person, 1)]);
        let certificate =
            certify(&testnet, &mut hosts, &[0, 1, 2, 3], &issue).certificate(&testnet);
        certificate.map(|one| issue.coins(testnet.network.id(), &one).remove(0))
    };
    let (of_mallory, of_alice) = (coin(1, MALLORY), coin(2, ALICE));
    let all = [0, 1, 2, 3];
    let of_mallory = of_mallory.expect("issued");
    let theirs = testnet.spend(MALLORY, &[of_mallory], &[to(BOB, 1)]);
    assert!(certify(&testnet, &mut hosts, &all, &theirs).certificate(&testnet).is_some());
    let of_alice = of_alice.expect("issued");
    let tx = testnet.spend(ALICE, &[of_alice], &[to(BOB, 1)]);
    assert!(certify(&testnet, &mut hosts, &all, &tx).certificate(&testnet).is_some(), "frozen");
}

/// It voted, lost power, and is shown the other one.
#[test]
fn locks_survive_a_restart() {
    let testnet = TestNetwork::new();
    let mut host = AuthorityHost::new(&testnet, 0, 0);
    let [first, second] = conflict(&testnet);
    assert!(is_vote(&host.verdict(&first)));
    let mut host = host.restart();
    assert!(matches!(host.verdict(&second), Verdict::Locked { first: Some(_), .. }));
    let other = testnet.spend(ALICE, &testnet.endowed(ALICE), &[to(BOB, 60)]);
    assert!(is_vote(&host.verdict(&other)));
    assert!(is_vote(&host.verdict(&testnet.issue(1, &[to(BOB, 1)]))));
    let sequences: Vec<u64> = host.log.iter().map(|lock| lock.sequence).collect();
    assert_eq!(sequences, [0, 1, 2], "its count goes on");
}

#[test]
fn what_is_invalid_is_refused_with_the_reason() {
    let testnet = TestNetwork::new();
    let mut host = AuthorityHost::new(&testnet, 0, 0);
    let tx = Transaction::issue(&testnet.network, &secret(MALLORY), 1, vec![to(MALLORY, 1)]);
    assert_eq!(host.verdict(&tx), Verdict::Invalid(crate::Invalid::NotTheIssuer));
    assert_eq!((host.spent.len(), host.log.len()), (0, 0));
}

/// Checked before the other was locked: what counts is what is locked when the machine decides.
#[test]
fn orders_that_were_looked_at_too_early_are_judged_again() {
    let testnet = TestNetwork::new();
    let mut host = AuthorityHost::new(&testnet, 0, 0);
    let [first, second] = conflict(&testnet);
    let early = orders(&host, &[&second]);
    assert!(is_vote(&host.verdict(&first)));
    host.machine.handle(Time(0), early);
    let effects = effects(&mut host.machine);
    assert!(matches!(&effects[..], [AuthorityEffect::Read(0)]), "{effects:?}");
}

#[test]
fn questions_about_older_locks_are_bounded() {
    let testnet = TestNetwork::new();
    let mut host = AuthorityHost::new(&testnet, 0, 0);
    let [first, second] = conflict(&testnet);
    assert!(is_vote(&host.verdict(&first)));
    let event = orders(&host, &vec![&second; READS_MAX + 3]);
    host.machine.handle(Time(0), event);
    let effects = effects(&mut host.machine);
    let is_busy = |effect: &&AuthorityEffect| match effect {
        AuthorityEffect::Answer { answer, .. } => answer.verdict == Verdict::Busy,
        _ => false,
    };
    assert_eq!(effects.iter().filter(is_busy).count(), 3);
    let reads = effects.iter().filter(|effect| matches!(effect, AuthorityEffect::Read(_)));
    assert_eq!(reads.count(), 1, "one lock is read once");
}

/// Votes wait for company, and for no longer than the gathering takes.
#[test]
fn votes_are_gathered_for_2_milliseconds_or_a_full_tree() {
    let testnet = TestNetwork::with(PayScheme::Merkle, 4, 1);
    let together = testnet.network.votes().batch_size();
    let mut host = AuthorityHost::new(&testnet, 0, 0);
    let txs: Vec<_> =
        (0..together as u64).map(|serial| testnet.issue(serial, &[to(ALICE, 1)])).collect();
    let signs = |machine: &mut Authority| {
        let effects = effects(machine);
        let jobs = effects.iter().filter_map(|effect| match effect {
            AuthorityEffect::Sign(job) => Some(job.orders.len()),
            _ => None,
        });
        jobs.collect::<Vec<_>>()
    };
    let event = orders(&host, &[&txs[0]]);
    host.machine.handle(Time(0), event);
    assert_eq!(
        (signs(&mut host.machine), host.machine.next_timeout()),
        (vec![], Some(Time(2_000)))
    );
    host.machine.handle_timeout(Time(1_999));
    assert_eq!(signs(&mut host.machine), [] as [usize; 0]);
    host.machine.handle_timeout(Time(2_000));
    assert_eq!((signs(&mut host.machine), host.machine.next_timeout()), (vec![1], None));
    let event = orders(&host, &txs.iter().collect::<Vec<_>>());
    host.machine.handle(Time(5_000), event);
    assert_eq!(signs(&mut host.machine), [together]);
}

/// A cold part whose disk failed.
#[derive(Debug)]
struct Broken;

impl ColdSet for Broken {
    fn get(&self, _input: OutputId) -> Result<Option<Locked>, LookupFailed> {
        Err(LookupFailed("the disk failed".into()))
    }

    fn len(&self) -> u64 {
        1
    }
}

/// ★ Neither a vote nor a refusal: the host is told to stop, whoever looked it up.
#[test]
fn an_input_that_cannot_be_looked_up_stops_the_authority() {
    let testnet = TestNetwork::new();
    let tx = testnet.issue(1, &[to(ALICE, 1)]);
    let mut host = AuthorityHost::new(&testnet, 0, 0);
    let order = orders(&host, &[&tx]);
    let broken = Arc::new(SpentSet::default().over(Arc::new(Broken)));
    host.machine = Authority::new(&testnet.network, Arc::clone(&broken), 0);
    let reason = LookupFailed("the disk failed".into());
    let stops = |effects: &[AuthorityEffect]| match effects {
        [AuthorityEffect::Stop(failed)] => *failed == reason,
        _ => false,
    };
    host.machine.handle(Time(0), order);
    assert!(stops(&effects(&mut host.machine)), "looked up by the machine");
    host.verifier = OrderVerifier::new(Arc::clone(&testnet.network), 0, broken);
    let order = orders(&host, &[&tx]);
    host.machine.handle(Time(0), order);
    assert!(stops(&effects(&mut host.machine)), "looked up before");
    host.machine.handle_timeout(Time(1_000_000));
    assert!(effects(&mut host.machine).is_empty(), "and nothing is signed later");
}

#[test]
fn every_shard_locks_for_itself() {
    let testnet = TestNetwork::with(PayScheme::Plain, 4, 64);
    let (alice, mallory) =
        (testnet.network.shard_of(&key(ALICE)), testnet.network.shard_of(&key(MALLORY)));
    let tx = testnet.spend(ALICE, &testnet.endowed(ALICE), &[to(BOB, 60)]);
    assert!(is_vote(&AuthorityHost::new(&testnet, 0, alice).verdict(&tx)));
    let refusal = AuthorityHost::new(&testnet, 0, mallory).verdict(&tx);
    assert_eq!(refusal, Verdict::Invalid(crate::Invalid::WrongShard(alice)));
}

/// Each rule left out is noticed by the check that stands for it.
/// ★ The freeze is durable before anybody hears of it.
#[test]
fn a_freeze_is_durable_before_its_report() {
    let testnet = TestNetwork::new();
    let mut host = AuthorityHost::new(&testnet, 0, 0);
    let [first, _] = conflict(&testnet);
    assert!(is_vote(&host.verdict(&first)));
    let locked = first.core(testnet.network.id());
    let (coin, free) = (locked.locks[0], testnet.endowed(ALICE)[0].id);
    host.machine.handle(Time(0), AuthorityEvent::Freeze(vec![coin, free]));
    let effects = effects(&mut host.machine);
    let [
        AuthorityEffect::PersistReleases(entries),
        AuthorityEffect::Read(0),
        AuthorityEffect::Report(reported, Held::Free),
    ] = &effects[..]
    else {
        panic!("first the freeze: {effects:?}")
    };
    assert_eq!(entries[..], [coin, free].map(ReleaseEntry::Freeze));
    assert_eq!(*reported, free);
    let lock = Some(host.log[0].clone());
    host.machine.handle(Time(0), AuthorityEvent::Read { sequence: 0, lock });
    let Some(AuthorityEffect::Report(reported, held)) = host.machine.poll() else {
        panic!("then the report of what was locked")
    };
    assert_eq!((reported, held), (coin, Held::For(locked)));
}

/// ★ What reports came to is no judgement: a transaction whose coin never existed is not voted for
/// because it was decided.
#[test]
fn what_was_decided_is_checked_like_any_order() {
    let testnet = TestNetwork::new();
    let mut host = AuthorityHost::new(&testnet, 0, 0);
    let real = testnet.issue(1, &[to(MALLORY, 9)]);
    let other = testnet.certificate(&testnet.issue(2, &[to(MALLORY, 9)]));
    let forged = real.coins(testnet.network.id(), &other);
    let tx = testnet.spend(MALLORY, &forged, &[to(BOB, 9)]);
    let (coin, id) = (forged[0].id, tx.id(testnet.network.id()));
    host.execute(AuthorityEvent::Freeze(vec![coin]));
    host.execute(AuthorityEvent::Decided(vec![(coin, Decision::Spend(id))]));
    assert_eq!(host.verdict(&tx), Verdict::Invalid(crate::Invalid::Certificate(coin)));
    let good = real.coins(testnet.network.id(), &testnet.certificate(&real));
    let tx = testnet.spend(MALLORY, &good, &[to(BOB, 9)]);
    assert!(is_vote(&host.verdict(&tx)), "shown with the right certificate");
    assert!(is_vote(&host.verdict(&tx)), "and again");
    assert_eq!(host.log.len(), 1, "and locked once");
}

#[test]
fn a_refund_pays_its_owner_and_nobody_else() {
    let testnet = TestNetwork::new();
    let mut host = AuthorityHost::new(&testnet, 0, 0);
    let coin = &testnet.endowed(ALICE)[0];
    let back = Transaction::refund(&testnet.network, &secret(ALICE), coin);
    assert_eq!(host.verdict(&back), Verdict::Undecided { input: coin.id }, "nobody decided it");
    host.execute(AuthorityEvent::Freeze(vec![coin.id]));
    assert_eq!(host.verdict(&back), Verdict::Undecided { input: coin.id });
    host.execute(AuthorityEvent::Decided(vec![(coin.id, Decision::Refund)]));
    let mut away = Transaction { outputs: vec![to(BOB, 10)], ..back.clone() };
    let statement = owner_statement(&testnet.network, away.id(testnet.network.id()));
    away.signature = secret(ALICE).sign(&statement);
    assert_eq!(host.verdict(&away), Verdict::Invalid(crate::Invalid::Refund));
    assert!(is_vote(&host.verdict(&back)));
    let mut host = host.restart();
    assert!(is_vote(&host.verdict(&back)), "after a restart, too");
}

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
        assert_noticed(Mutant::PayReportBeforePersist, a_freeze_is_durable_before_its_report);
        assert_noticed(
            Mutant::PayFailedIsFree,
            an_input_that_cannot_be_looked_up_stops_the_authority,
        );
        assert_noticed(Mutant::PayTrustDecision, what_was_decided_is_checked_like_any_order);
        assert_noticed(Mutant::PayRefundToAnybody, a_refund_pays_its_owner_and_nobody_else);
    }
}
