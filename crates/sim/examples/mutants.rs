//! For every rule that can be left out, the first seed whose oracles notice: `cargo run --release
//! -p quorate-sim --features mutants --example mutants -- 200 [NAME [storm|stale|changes]]`.

use quorate_engine::ProtocolKind;
use quorate_sim::byzantine::Behaviour;
use quorate_sim::{Scenario, mutants, run};

fn main() {
    let count = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100);
    let only = std::env::args().nth(2).unwrap_or_default();
    let storm = std::env::args().nth(3).is_some_and(|word| word == "storm");
    let stale = std::env::args().nth(3).is_some_and(|word| word == "stale");
    let changes = std::env::args().nth(3).is_some_and(|word| word == "changes");
    let draw = |seed| {
        let scenario = Scenario::from_seed(seed);
        if changes {
            let protocols = ProtocolKind::ALL.len() as u64;
            let protocol = usize::try_from(seed % protocols).expect("few");
            scenario.running(ProtocolKind::ALL[protocol]).short().with_changes()
        } else if stale {
            let mut scenario = scenario.with_faulty(Behaviour::StaleLeader);
            scenario.conditions.loss_percent = 20;
            scenario
        } else if storm {
            scenario.with_twins().with_storm()
        } else {
            scenario
        }
    };
    for mutant in mutants::ALL.into_iter().filter(|m| format!("{m:?}").contains(&only)) {
        let found = (0..count).find_map(|seed| {
            let report = run(&draw(seed).with_mutant(mutant));
            let failure = report.verdict.err()?;
            // Without the mutant nothing is wrong with this seed.
            run(&draw(seed)).verdict.ok()?;
            Some((seed, failure))
        });
        match found {
            Some((seed, failure)) => {
                println!("{mutant:?}: seed {seed}, {}: {}", failure.oracle, failure.text);
            }
            None => println!("{mutant:?}: nothing in {count} seeds"),
        }
    }
}
