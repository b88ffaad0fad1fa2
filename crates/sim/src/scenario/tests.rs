use super::*;
use crate::run_many;

#[track_caller]
fn passes(report: &Report) {
    if let Err(failure) = &report.verdict {
        panic!("seed {}: {failure}", report.seed);
    }
    assert!(report.completed > 0 && report.decided_height > Height(0), "{report:?}");
}

#[test]
fn fifty_seeds_hold_every_property_and_make_progress() {
    run_many(0..50, 2, Scenario::from_seed, |_| ()).iter().for_each(passes);
}

#[test]
fn nothing_goes_wrong_when_nothing_goes_wrong() {
    for replicas in [1, 4, 7] {
        let report = run(&Scenario::calm(1, replicas));
        passes(&report);
        assert!(report.views.0 <= 2 * report.decided_height.0 + 2, "views were wasted: {report:?}");
    }
}

#[test]
fn twins_cannot_part_the_others() {
    let draw = |seed| Scenario::from_seed(seed).with_twins();
    run_many(0..20, 2, draw, |_| ()).iter().for_each(passes);
}

#[test]
fn every_scheme_carries_a_committee() {
    for scheme in [SchemeKind::Ed25519, SchemeKind::Bls] {
        let mut scenario = Scenario::calm(3, 4);
        scenario.scheme = scheme;
        scenario.operations = 8;
        passes(&run(&scenario));
    }
}

#[test]
fn the_same_seed_is_the_same_run_on_any_number_of_threads() {
    let one = run_many(100..110, 1, Scenario::from_seed, |_| ());
    let two = run_many(100..110, 2, Scenario::from_seed, |_| ());
    assert_eq!(one, two);
    let hashes: std::collections::BTreeSet<_> =
        one.iter().map(|report| report.trace_hash).collect();
    assert_eq!(hashes.len(), one.len(), "different seeds are different runs");
}

#[test]
fn a_failure_names_the_command_that_shows_it_again() {
    // Nothing gets through, ever: no progress is a failure too.
    let mut scenario = Scenario::calm(5, 4);
    scenario.behaviours[..2].fill(Behaviour::Silent);
    scenario.liveness_bound = Duration::from_secs(3);
    let failure = run(&scenario).verdict.expect_err("two of four are silent");
    assert_eq!(failure.oracle, "progress");
    assert_eq!(failure.replay, "quorate sim --seed 5");
}
