//! Scenarios in which something was once wrong, kept by the name of its cause.
//!
//! A file in `crates/sim/regressions/` is a scenario as `quorate sim` writes it when it has shrunk
//! a failure (`--out`), or a plan of Twins, with a comment at its top that says what was wrong.
//! Unlike a seed, it means the same however scenarios come to be drawn.

use quorate_sim::mutants::Mutant;
use quorate_sim::twins::{Ground, PlanFile, is_plan_file, run_plan};
use quorate_sim::{Scenario, run};
use std::path::Path;
use std::sync::Arc;

#[test]
fn no_mended_scenario_fails_again() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let mut ran = 0;
    for entry in std::fs::read_dir(&folder).expect("the folder is there") {
        let file = entry.expect("it can be listed").path();
        if file.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let name = file.display();
        let text = std::fs::read_to_string(&file).expect("a file of text");
        assert!(text.starts_with("# "), "{name} begins with a comment that names its cause");
        let broken = if is_plan_file(&text) { broken_plan(&text) } else { broken_scenario(&text) };
        assert_eq!(broken, None, "{name}");
        ran += 1;
    }
    assert!(ran > 0, "no scenario in {}", folder.display());
}

fn broken_scenario(text: &str) -> Option<String> {
    let scenario = Scenario::from_toml(text).unwrap_or_else(|error| panic!("{error}"));
    assert!(scenario.mutant.is_none(), "a mutant is no regression");
    run(&scenario).verdict.err().map(|failure| failure.to_string())
}

fn broken_plan(text: &str) -> Option<String> {
    let file = PlanFile::from_toml(text).unwrap_or_else(|error| panic!("{error}"));
    assert!(file.mutant.is_none(), "a mutant is no regression");
    let outcome = run_plan(&Arc::new(file.plan), &Ground::of(file.protocol));
    outcome.verdict.err().map(|violation| format!("{}: {}", violation.oracle, violation.text))
}

/// ★ The scenario that showed it fails where the rule is left out.
#[test]
fn a_promise_shown_too_early_is_noticed() {
    let text = include_str!("../regressions/a-promise-shown-in-a-block-before-it-was-durable.toml");
    let scenario = Scenario::from_toml(text).expect("a scenario");
    let failure = run(&scenario.with_mutant(Mutant::ShowBeforePersist)).verdict;
    let failure = failure.expect_err("a vote that nobody remembers").to_string();
    assert!(failure.contains("do not account for"), "{failure}");
}
