//! Writes the table of docs/behaviours.md: each behaviour under each protocol, over some seeds:
//! `cargo run --release -p quorate-sim --example behaviours -- SEEDS`.

use quorate_engine::ProtocolKind;
use quorate_sim::byzantine::Behaviour;
use quorate_sim::world::Reactions;
use quorate_sim::{Report, Scenario, run_many};
use std::collections::BTreeSet;

fn main() {
    let seeds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(4);
    let names: Vec<String> = ProtocolKind::ALL.iter().map(ToString::to_string).collect();
    println!("| behaviour | {} | named |", names.join(" | "));
    println!("|---|{}---|", "---|".repeat(ProtocolKind::ALL.len()));
    for behaviour in [Behaviour::Honest].into_iter().chain(Behaviour::all()) {
        let mut broken = BTreeSet::new();
        let cells = ProtocolKind::ALL.map(|protocol| {
            let reports =
                run_many(0..seeds, 2, |seed| draw(seed, protocol, behaviour), tell_failure);
            broken.extend(reports.iter().flat_map(|report| report.reactions.broken.clone()));
            cell(&reports)
        });
        let broken: Vec<&str> = broken.into_iter().collect();
        println!("| `{behaviour}` | {} | {} |", cells.join(" | "), broken.join(", "));
    }
}

/// Whatever their behaviour, faulty members send frames now and then that are no messages: none
/// here.
fn draw(seed: u64, protocol: ProtocolKind, behaviour: Behaviour) -> Scenario {
    let mut scenario = Scenario::from_seed(seed).running(protocol).short().lying(behaviour);
    scenario.conditions.corrupt_permille = 0;
    scenario
}

fn tell_failure(report: &Report) {
    if let Err(failure) = &report.verdict {
        eprintln!("seed {}: {failure}", report.seed);
    }
}

/// Heights decided, views given up, frames refused and messages ignored, over all seeds.
fn cell(reports: &[Report]) -> String {
    let total = |value: fn(&Report) -> u64| reports.iter().map(value).sum::<u64>();
    let noticed = |value: fn(&Reactions) -> u64| -> u64 {
        reports.iter().map(|report| value(&report.reactions)).sum()
    };
    let broken = reports.iter().filter(|report| report.verdict.is_err()).count();
    let mark = if broken > 0 { format!(" **{broken} broken**") } else { String::new() };
    format!(
        "{} · {} · {} · {}{mark}",
        total(|report| report.decided_height.0),
        noticed(|seen| seen.view_changes),
        noticed(|seen| seen.refused),
        noticed(|seen| seen.ignored),
    )
}
