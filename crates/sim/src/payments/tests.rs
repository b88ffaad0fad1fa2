use super::*;
use crate::network::Conditions;
use crate::shrink::{Shrinks, file_of, shrink};
use quorate_payments::PayScheme;

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..4 {
        let (first, second) = (run(&Scenario::from_seed(seed)), run(&Scenario::from_seed(seed)));
        assert_eq!(first.trace_hash, second.trace_hash, "seed {seed}");
        assert_eq!((first.events, first.certified), (second.events, second.certified));
    }
}

#[test]
fn seeds_hold_and_payments_are_certified() {
    let reports = run_many(0..80, 2, Scenario::from_seed, |_| ());
    for report in &reports {
        assert!(
            report.verdict.is_ok(),
            "seed {}: {}",
            report.seed,
            report.verdict.as_ref().unwrap_err()
        );
    }
    let total = |value: fn(&Report) -> u64| reports.iter().map(value).sum::<u64>();
    // Some four fifths of what it was when last measured.
    assert!(total(|report| report.certified) > 1_200);
    assert!(total(|report| report.conflicts) > 1_400, "thieves were caught");
    assert!(total(|report| report.invalid) > 4_800, "and refused");
    assert!(total(|report| report.thieves_certified) > 140, "they pay at times");
    assert!(total(|report| report.frozen) > 130, "coins are frozen");
    assert!(total(|report| report.decided) > 120, "most of them are decided");
    assert!(total(|report| report.refunded) > 4, "some go back to honest payers");
}

/// Seeds whose authorities change, once or twice: what was paid before is spent after.
#[test]
fn seeds_with_changes_of_authorities_hold() {
    let seeds = (0..240).filter(|seed| !Scenario::from_seed(*seed).changes.is_empty());
    let (mut runs, mut twice, mut lost) = (0, 0, 0);
    for seed in seeds {
        let scenario = Scenario::from_seed(seed);
        let report = run(&scenario);
        assert_eq!(report.verdict, Ok(()), "seed {seed}");
        runs += 1;
        twice += usize::from(scenario.changes.len() > 1);
        lost += report.tried["lost authorities"];
    }
    assert!(runs > 40 && twice > 10 && lost > 5, "{runs} runs, {twice} twice, {lost} lost");
}

/// Seeds that broke: what a release of the founding epoch gave back, certified in the next one,
/// counted nowhere after that; and its refund was shown as a proof that its owner cheated.
#[test]
fn refunds_cross_two_borders() {
    for seed in [398, 1263] {
        assert_eq!(run(&Scenario::from_seed(seed)).verdict, Ok(()), "seed {seed}");
    }
}

/// Seeds that broke. An authority had checked a certificate under leaked keys of an ended epoch,
/// and took a certificate of nothing, which named the epoch in force, for another of the same
/// transaction (3891). Others were the swarm's own: a newcomer left its first epoch out (3380,
/// 5055), a payment that lost a coin to a release waited for its other coins (3749), a wallet took
/// up again what had been certified while it wrote (254), orders of a payer that asks in vain for
/// ever counted as forgotten (32139); and without a border, a payment that a restored wallet began
/// again while its record was on its way, and whose machine then waited for ever (53130).
#[test]
fn seeds_that_broke_at_borders_hold() {
    for seed in [254, 3380, 3749, 3891, 5055, 32139, 53130] {
        assert_eq!(run(&Scenario::from_seed(seed)).verdict, Ok(()), "seed {seed}");
    }
}

/// Nothing else goes wrong, under every scheme with real signatures.
#[test]
fn payments_complete_with_f_silent_authorities() {
    for scheme in PayScheme::ALL {
        for authorities in [4, 7] {
            let mut scenario = Scenario::from_seed(1);
            scenario.scheme = scheme;
            scenario.real_signatures = true;
            scenario.authorities = authorities;
            scenario.remove_changes();
            scenario.shards = 1;
            scenario.behaviours = vec![Behaviour::Honest; authorities];
            scenario.schedule.clear();
            scenario.payer_crashes.clear();
            scenario.mishaps.clear();
            scenario.follow_us = vec![1_000; authorities];
            scenario.conditions = Conditions { loss_percent: 0, ..scenario.conditions };
            let report = run(&scenario.with_faulty(Behaviour::Silent));
            assert!(report.verdict.is_ok(), "{scheme}: {:?}", report.verdict);
            assert!(report.certified >= 4, "{scheme}: {}", report.certified);
        }
    }
}

/// A scenario of one payer's mishap, and nothing else that goes wrong.
fn only(mishap: Mishap, seed: u64) -> Scenario {
    let mut scenario = Scenario::from_seed(seed);
    scenario.remove_changes();
    scenario.behaviours.fill(Behaviour::Honest);
    scenario.schedule.clear();
    scenario.payer_crashes.clear();
    scenario.crimes.clear();
    let end_us = u64::try_from(scenario.fault_phase.as_micros()).expect("seconds");
    scenario.backups = vec![(end_us / 4, 0)];
    scenario.mishaps = vec![(end_us / 2, 0, 1_000, mishap)];
    scenario
}

/// A wallet that was made again by the rules has all that it had, and signed nothing twice.
#[test]
fn wallets_come_back_with_all_that_they_had() {
    for seed in 0..12 {
        for mishap in [Mishap::Lost, Mishap::Restored] {
            let report = run(&only(mishap, seed));
            assert!(report.verdict.is_ok(), "seed {seed}, {mishap:?}: {:?}", report.verdict);
            assert_eq!(report.lost, 0, "seed {seed}, {mishap:?}");
        }
    }
}

/// One that goes on from a copy spends twice; what is decided of that is taken, and the rest is
/// named as lost.
#[test]
fn what_a_copied_wallet_spends_twice_is_released() {
    let reports: Vec<Report> = (0..24).map(|seed| run(&only(Mishap::Copied, seed))).collect();
    for report in &reports {
        assert!(report.verdict.is_ok(), "seed {}: {:?}", report.seed, report.verdict);
    }
    let total = |value: fn(&Report) -> u64| reports.iter().map(value).sum::<u64>();
    assert!(total(|report| report.conflicts) > 0, "they spent twice");
    assert!(total(|report| report.decided) > 0, "and had it released");
}

#[test]
fn every_scenario_survives_being_written_and_read() {
    for scenario in (0..60).map(Scenario::from_seed) {
        let text = scenario.to_toml();
        let read = Scenario::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(read, scenario);
        assert!(Scenario::is_file(&text) && !Scenario::is_file("replicas = 4"));
    }
}

#[test]
fn a_file_whose_parts_do_not_fit_is_refused_with_a_reason() {
    let refused = |change: fn(&mut Scenario)| {
        let mut scenario = Scenario::from_seed(3);
        change(&mut scenario);
        Scenario::from_toml(&scenario.to_toml()).expect_err("no scenario").to_string()
    };
    assert!(refused(|s| s.behaviours.clear()).contains("behaviours has each authority"));
    assert!(refused(|s| s.wishes.push((0, 9))).contains("only payers pay"));
    assert!(refused(|s| s.backups.push((0, 9))).contains("only payers have books"));
    assert!(refused(|s| s.follow_us.clear()).contains("follow_us"));
    let change = |leaving, lost| AuthorityChange {
        at_us: 1_000,
        leaving,
        newcomers: 0,
        lost,
        begin_us: 1,
        follow_us: 1,
    };
    let with_change = |leaving: Vec<usize>, lost| {
        let mut scenario = Scenario::from_seed(3);
        scenario.remove_changes();
        scenario.changes = vec![change(leaving, lost)];
        Scenario::from_toml(&scenario.to_toml()).expect_err("no scenario").to_string()
    };
    assert!(with_change(vec![20], None).contains("only authorities of the epoch that ends"));
    assert!(with_change(vec![], Some((0, 5))).contains("an authority that is lost leaves"));
    assert!(with_change((0..4).collect(), None).contains("four authorities at least"));
}

/// Simpler means that nothing grows, and that its file is a scenario.
#[test]
fn no_pass_proposes_anything_larger() {
    for scenario in (0..40).map(Scenario::from_seed) {
        let before = scenario.size();
        for candidate in Scenario::PASSES.iter().flat_map(|pass| (pass.propose)(&scenario)) {
            let after = candidate.size();
            assert!(after.faults <= before.faults && after.payments <= before.payments);
            assert!(after.authorities <= before.authorities && after.faulty <= before.faulty);
            assert!(after.changes <= before.changes);
            assert!(after.mishaps <= before.mishaps && after.crimes <= before.crimes);
            assert_eq!(candidate.liveness_bound, scenario.liveness_bound);
            let read = Scenario::from_toml(&candidate.to_toml());
            assert_eq!(read, Ok(candidate));
        }
    }
}

/// Only the cause of the failure stays: two authorities of four that say nothing.
#[test]
fn only_the_cause_is_left() {
    let mut scenario = Scenario::from_seed(2);
    scenario.remove_changes();
    scenario.mishaps.clear();
    scenario.behaviours.fill(Behaviour::Honest);
    let silent = (scenario.authorities - 1) / 3 + 1;
    scenario.behaviours[..silent].fill(Behaviour::Silent);
    let shrunk = shrink(&scenario, "progress", |step| step.runs < 600).expect("nothing is paid");
    assert!(shrunk.complete, "it goes round in circles: {} runs", shrunk.runs);
    let size = shrunk.scenario.size();
    assert_eq!((size.faults, size.payers, size.thieves, size.mishaps), (0, 2, 0, 0), "{size}");
    let read = Scenario::from_file(&file_of(&shrunk), "a file".to_owned()).expect("its file");
    let again = run(&read);
    assert_eq!(again.trace_hash, shrunk.report.trace_hash);
    let failure = again.verdict.expect_err("it fails as before");
    assert_eq!((failure.oracle, &*failure.replay), ("progress", "quorate sim --replay a file"));
}

#[test]
fn a_failure_says_how_to_see_it_again() {
    let mut scenario = Scenario::from_seed(5);
    scenario.remove_changes();
    scenario.liveness_bound = std::time::Duration::ZERO;
    scenario.wishes.clear();
    scenario.mishaps.clear();
    let failure = run(&scenario).verdict.expect_err("nothing was paid");
    assert_eq!(failure.oracle, "progress");
    assert_eq!(failure.replay, "quorate sim --payments --seed 5");
}

/// A tenth of `quorate sim --payments-model 1000000`.
#[test]
fn an_authority_answers_as_the_model_foretells() {
    let tally = model::run(7, 100_000, None).unwrap_or_else(|broken| panic!("{}", broken.text));
    // Every kind of answer: all reasons but that of bytes which do not decode, votes, conflicts
    // with their proofs, restarts.
    assert_eq!(tally.len(), 16, "{tally:?}");
    assert!(tally["votes"] > 50_000 && tally["conflicts"] > 5_000, "{tally:?}");
}
