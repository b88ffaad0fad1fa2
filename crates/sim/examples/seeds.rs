//! Runs a range of seeds: `cargo run --release -p quorate-sim --example seeds -- 0 1000 [KIND]
//! [show]`, where a kind is calm, twins, storm, changes, long-changes or harsh-changes; or tells
//! what happens in a scenario from a file: `... --example seeds -- FILE.toml`.

use quorate_engine::ProtocolKind;
use quorate_sim::world::World;
use quorate_sim::{Scenario, run_many};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(file) = arguments.first().filter(|argument| argument.ends_with(".toml")) {
        let text = std::fs::read_to_string(file).expect("a file that can be read");
        show(&Scenario::from_toml(&text).expect("a scenario"));
        return;
    }
    let number = |index: usize, default: u64| {
        arguments.get(index).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (first, count) = (number(0, 0), number(1, 100));
    let kind = arguments.get(2).cloned().unwrap_or_default();
    let draw = |seed| match kind.as_str() {
        "calm" => Scenario::calm(seed, 4),
        "storm" => Scenario::from_seed(seed).with_twins().with_storm(),
        "changes" => turning(seed).short().with_changes(),
        "long-changes" => turning(seed).with_changes(),
        "harsh-changes" => {
            turning(seed).short().with_retention().with_storm().with_learner().with_changes()
        }
        "twins" => Scenario::from_seed(seed).with_twins(),
        _ => Scenario::from_seed(seed),
    };
    let (mut failed, mut heights, mut events) = (0_u64, 0, 0);
    if let Some("show") = arguments.get(3).map(String::as_str) {
        show(&draw(first));
    }
    let reports = run_many(first..first + count, 2, draw, |report| {
        if let Err(failure) = &report.verdict {
            failed += 1;
            if failed <= 20 {
                println!("seed {}: {}: {}", report.seed, failure.oracle, failure.text);
                println!("{}\n", failure.replay);
            }
        }
        heights += report.decided_height.0;
        events += report.events;
    });
    println!("{} seeds, {failed} failed, {heights} heights, {events} events", reports.len());
}

/// A seed with each protocol in turn.
fn turning(seed: u64) -> Scenario {
    let protocols = ProtocolKind::ALL.len() as u64;
    let protocol = usize::try_from(seed % protocols).expect("few");
    Scenario::from_seed(seed).running(ProtocolKind::ALL[protocol])
}

/// Runs one scenario, line by line.
fn show(scenario: &Scenario) {
    println!("{scenario:#?}");
    let mut world = World::new(scenario);
    world.narrate(Box::new(|line| println!("{line}")));
    println!("{:?}", world.run());
}
