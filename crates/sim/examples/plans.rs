//! Runs scenarios of Twins: `cargo run --release -p quorate-sim --example plans -- 0 1000
//! [MUTANT|none] [PROTOCOL] [changes]`.

use quorate_engine::ProtocolKind;
use quorate_sim::mutants;
use quorate_sim::twins::{Found, Ground, Plan, run_plans};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| {
        arguments.get(index).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (first, count) = (number(0, 0), number(1, 1_000));
    let named = |name: &String| mutants::ALL.into_iter().find(|m| format!("{m:?}") == *name);
    let mutant = arguments.get(2).and_then(named);
    let protocol: ProtocolKind =
        arguments.get(3).map_or(Ok(ProtocolKind::default()), |name| name.parse()).expect("one");
    let changes = arguments.get(4).is_some_and(|text| text == "changes");
    let draw = if changes { Plan::draw_changing } else { Plan::draw };
    let plans = first..first + count;
    let campaign = run_plans(plans, 2, mutant, draw, || Ground::of(protocol), |_| ());
    for found in campaign.found.iter().take(3) {
        let Found { plan, violation, .. } = found;
        println!("{plan}{} {}: {}", plan.number, violation.oracle, violation.text);
    }
    println!(
        "{} plans, {} broken, {} heights, {} views, {} timers, {} messages, trace {}",
        campaign.plans,
        campaign.broken,
        campaign.heights,
        campaign.views,
        campaign.rings,
        campaign.messages,
        campaign.hash()
    );
}
