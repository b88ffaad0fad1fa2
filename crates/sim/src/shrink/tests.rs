use super::*;
use crate::byzantine::Behaviour;
use crate::{Scenario, run};
use quorate_types::{Time, Weights};

fn seeds_of_all_kinds() -> impl Iterator<Item = Scenario> {
    let plain = (0..40).map(Scenario::from_seed);
    let twins = (0..5).map(|seed| Scenario::from_seed(seed).with_twins().with_storm());
    plain.chain(twins).chain((0..5).map(|seed| Scenario::from_seed(seed).with_retention()))
}

#[test]
fn every_scenario_survives_being_written_and_read() {
    for scenario in seeds_of_all_kinds() {
        let text = scenario.to_toml();
        let read = Scenario::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(read, Scenario { options: Vec::new(), ..scenario });
    }
}

#[test]
fn a_file_that_is_no_scenario_is_refused_with_a_reason() {
    let refused = |text: &str| Scenario::from_toml(text).expect_err("no scenario").to_string();
    assert!(refused("replicsa = 4").contains("replicsa"));
    assert!(refused("replicas = 5").contains("weights has an entry for each replica"));
    let crash = "[[schedule]]\nat_us = 0\nkind = \"crash\"\nhost = 9\ndown_us = 5\n";
    assert!(refused(crash).contains("faults befall hosts there are"));
    assert!(refused("mutant = \"JolteonTripleVote\"").contains("JolteonTripleVote"));
}

/// Simpler means that no count grows and something shrinks, or that an option is as in a calm run.
#[test]
fn no_pass_proposes_anything_larger() {
    for scenario in seeds_of_all_kinds() {
        let before = Size::of(&scenario);
        for candidate in Scenario::PASSES.iter().flat_map(|pass| (pass.propose)(&scenario)) {
            let after = Size::of(&candidate);
            assert!(after.faults <= before.faults && after.operations <= before.operations);
            assert!(after.replicas <= before.replicas && after.faulty <= before.faulty);
            assert_eq!(candidate.liveness_bound, scenario.liveness_bound);
            if candidate.is_survivable(&scenario) {
                let text = candidate.to_toml();
                let read = Scenario::from_toml(&text);
                let written = Scenario { options: Vec::new(), ..candidate };
                assert_eq!(read.unwrap_or_else(|error| panic!("{error}\n{text}")), written);
            }
        }
    }
}

/// Only the cause of the failure stays; everything beside it goes.
#[test]
fn only_the_cause_is_left() {
    let mut scenario = Scenario::from_seed(3).short();
    scenario.excessive = false;
    scenario.weights = Weights::equal(scenario.replicas);
    scenario.behaviours.fill(Behaviour::Honest);
    scenario.settings = Scenario::calm(0, 4).settings;
    // More silent members than are tolerated: nothing is ever decided.
    let silent = (scenario.replicas - 1) / 3 + 1;
    scenario.behaviours[..silent].fill(Behaviour::Silent);
    scenario.liveness_bound = Duration::from_secs(3);
    scenario.schedule.push((Time(7), Fault::Crash { host: 0, down: Duration::from_millis(40) }));
    let shrunk = shrink(&scenario, "progress", |step| step.runs < 400).expect("no progress");
    assert!(shrunk.complete, "it goes round in circles: {} runs", shrunk.runs);
    let size = Size::of(&shrunk.scenario);
    assert_eq!((size.faults, size.operations, size.clients), (0, 0, 1), "{size}");
    assert!(shrunk.scenario.faulty_weight() > shrunk.scenario.weights.faulty_max(), "{size}");
    assert_eq!(shrunk.report, run(&Scenario::from_toml(&file_of(&shrunk)).expect("its file")));
}

#[test]
fn what_does_not_fail_does_not_shrink_and_a_spent_budget_ends_it() {
    assert!(shrink(&Scenario::calm(1, 4), "progress", |_| true).is_none());
    let mut scenario = Scenario::calm(1, 4);
    scenario.behaviours[..2].fill(Behaviour::Silent);
    scenario.liveness_bound = Duration::from_secs(2);
    let shrunk = shrink(&scenario, "progress", |step| step.runs < 3).expect("it fails");
    assert!(!shrunk.complete && shrunk.runs <= 4, "{} runs", shrunk.runs);
}
