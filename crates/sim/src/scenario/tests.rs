use super::*;
use crate::{Report, run, run_many};
use quorate_types::{Height, View};
use std::collections::BTreeMap;

#[track_caller]
fn passes(report: &Report) {
    if let Err(failure) = &report.verdict {
        panic!("seed {}: {failure}", report.seed);
    }
    let promised = !report.tried.contains_key("scenarios beyond tolerance");
    let progressed = report.completed > 0 && report.decided_height > Height(0);
    assert!(progressed || !promised, "{report:?}");
}

#[test]
fn fifty_seeds_hold_every_property_and_make_progress() {
    run_many(0..50, 2, short, |_| ()).iter().for_each(passes);
}

fn short(seed: u64) -> Scenario {
    Scenario::from_seed(seed).short()
}

fn weighted(seed: u64, weights: &str) -> Scenario {
    Scenario::weighted(seed, weights.parse().expect("sound weights")).short()
}

/// A heavy member, a light majority of heads, and the largest weight that is allowed.
#[test]
fn committees_that_weigh_differently_hold_every_property() {
    for weights in ["3,1,1,1", "4,4,4,4,1,1,1", "6,1,1,1", "50,30,19,1,7"] {
        run_many(0..8, 2, |seed| weighted(seed, weights), |_| ()).iter().for_each(passes);
        let twins = |seed| weighted(seed, weights).with_twins();
        run_many(8..12, 2, twins, |_| ()).iter().for_each(passes);
    }
}

/// The command that a weighted seed prints draws the same, and other weights change the committee
/// alone.
#[test]
fn drawn_weights_are_part_of_the_command_and_draw_the_same_when_given() {
    let mut seen = 0;
    for seed in 0..400 {
        let drawn = Scenario::from_seed(seed);
        let given = Scenario::weighted(seed, drawn.weights.clone());
        let expected = format!("quorate sim --seed {seed} --weights {}", drawn.weights);
        assert_eq!(given.replay(), expected);
        if drawn.weights.are_equal() {
            assert_eq!(drawn.replay(), format!("quorate sim --seed {seed}"));
            assert_eq!(Scenario { options: Vec::new(), ..given }, drawn);
        } else {
            seen += 1;
            assert_eq!(given, drawn);
        }
    }
    assert!((50..150).contains(&seen), "a quarter of the seeds or less: {seen}");
}

/// Whoever is faulty weighs no more than is tolerated, and where light members are many that is
/// sometimes more heads than a third.
#[test]
fn faulty_members_are_chosen_by_weight() {
    let (mut heads, mut liars) = (0, 0);
    for seed in 0..600 {
        let drawn = [
            Scenario::from_seed(seed),
            Scenario::from_seed(seed).with_twins(),
            weighted(seed, "4,4,4,4,1,1,1"),
        ];
        for scenario in drawn {
            if scenario.excessive {
                assert!(scenario.faulty_weight() > scenario.weights.faulty_max(), "{scenario:?}");
                continue;
            }
            assert!(scenario.faulty_weight() <= scenario.weights.faulty_max(), "{scenario:?}");
            let is_faulty = |member: &usize| scenario.behaviours[*member] != Behaviour::Honest;
            let faulty: Vec<usize> = (0..scenario.replicas).filter(is_faulty).collect();
            let weight: u64 = faulty.iter().map(|member| scenario.weights.of(*member)).sum();
            assert!(weight <= scenario.weights.faulty_max(), "{scenario:?}");
            heads += usize::from(3 * faulty.len() >= scenario.replicas);
            liars += usize::from(scenario.behaviours.contains(&Behaviour::FalseReplies));
        }
    }
    assert!(heads > 20 && liars > 20, "{heads} with a third of the heads, {liars} with liars");
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
    let draw = |seed| short(seed).with_twins();
    run_many(0..20, 2, draw, |_| ()).iter().for_each(passes);
}

/// With next to no log, replicas that were away catch up by snapshots; and everything else still
/// holds.
#[test]
fn replicas_catch_up_when_next_to_nothing_is_kept() {
    let draw = |seed| Scenario::from_seed(seed).with_retention();
    let reports = run_many(0..24, 2, draw, |_| ());
    reports.iter().for_each(passes);
    let installed = reports.iter().filter(|report| report.installed > 0).count();
    assert!(installed >= 4, "snapshots were installed in {installed} of {} runs", reports.len());
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

/// With threshold keys too, or what stands in for them.
#[test]
fn threshold_keys_carry_a_committee() {
    for protocol in ProtocolKind::WINDOWED {
        let mut scenario = Scenario::calm(3, 4).running(protocol);
        scenario.scheme = SchemeKind::BlsThreshold;
        scenario.operations = 8;
        passes(&run(&scenario));
    }
}

#[test]
fn the_same_seed_is_the_same_run_on_any_number_of_threads() {
    let one = run_many(100..110, 1, short, |_| ());
    let two = run_many(100..110, 2, short, |_| ());
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

/// The faults of the specification's list are all drawn.
#[test]
fn every_kind_of_fault_and_behaviour_is_tried() {
    let mut tried = BTreeMap::<&str, u64>::new();
    let (mut largest, mut excessive) = (0, 0);
    for seed in 0..3_000 {
        let scenario = Scenario::from_seed(seed);
        largest = largest.max(scenario.replicas);
        excessive += u64::from(scenario.excessive);
        for (kind, count) in scenario.tried() {
            *tried.entry(kind).or_default() += count;
        }
    }
    assert_eq!(largest, 13);
    assert!((200..400).contains(&excessive), "one in ten: {excessive}");
    for behaviour in Behaviour::FAULTY {
        assert!(tried.get(behaviour.name()).is_some_and(|count| *count > 20), "{behaviour:?}");
    }
    for kind in [
        "partitions",
        "one-way partitions",
        "bridges",
        "clogs",
        "crashes",
        "lost bodies",
        "lost disks",
        "full disks",
        "failed writes",
        "failed syncs",
        "clock steps",
        "power cuts",
        "pauses",
        "slow disks",
        "lossy networks",
        "duplicating networks",
        "reordering networks",
        "corrupting networks",
    ] {
        assert!(tried.get(kind).is_some_and(|count| *count > 50), "{kind}: {tried:?}");
    }
}

/// Beyond what is tolerated correct members may part. They must not contradict themselves, and the
/// runs must be such that something happens in them.
#[test]
fn beyond_tolerance_nobody_correct_contradicts_itself() {
    let beyond = (0..400).filter(|seed| Scenario::from_seed(*seed).excessive);
    let reports: Vec<Report> = beyond.take(20).map(|seed| run(&short(seed))).collect();
    assert_eq!(reports.len(), 20);
    reports.iter().for_each(passes);
    assert!(reports.iter().filter(|report| report.views > View(4)).count() > 5);
}

/// Nothing else goes wrong: the same members go on from epoch to epoch, and their protocols change.
#[test]
fn every_protocol_goes_on_from_every_other() {
    for (seed, before) in (0..).zip(ProtocolKind::ALL) {
        for after in ProtocolKind::ALL {
            let mut scenario = Scenario::calm(seed, 4).running(before);
            scenario.scheme = SchemeKind::Stub;
            let mut change = PlannedChange::of(&scenario, Duration::from_millis(300));
            change.settings.protocol = after.to_string();
            scenario.changes.push(change);
            let report = run(&scenario);
            assert_eq!(report.epochs, 2, "{before} to {after}: {report:?}");
            passes(&report);
        }
    }
}
