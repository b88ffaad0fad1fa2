use super::*;
use crate::network::Conditions;
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
    assert!(total(|report| report.certified) > 800);
    assert!(total(|report| report.conflicts) > 100, "thieves were caught");
    assert!(total(|report| report.invalid) > 100, "and refused");
    assert!(total(|report| report.thieves_certified) > 20, "they pay at times");
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
            scenario.shards = 1;
            scenario.behaviours = vec![Behaviour::Honest; authorities];
            scenario.schedule.clear();
            scenario.payer_crashes.clear();
            scenario.conditions = Conditions { loss_percent: 0, ..scenario.conditions };
            let report = run(&scenario.with_faulty(Behaviour::Silent));
            assert!(report.verdict.is_ok(), "{scheme}: {:?}", report.verdict);
            assert!(report.certified >= 4, "{scheme}: {}", report.certified);
        }
    }
}

#[test]
fn a_failure_says_how_to_see_it_again() {
    let mut scenario = Scenario::from_seed(5);
    scenario.liveness_bound = std::time::Duration::ZERO;
    scenario.wishes.clear();
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
