//! Runs scenarios of Twins: `cargo run --release -p quorate-sim --features mutants --example plans
//! -- 0 1000 [MUTANT|none] [PROTOCOL]`.

use quorate_engine::ProtocolKind;
use quorate_sim::mutants;
use quorate_sim::twins::{Ground, Plan, run_plans};

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
    let plans = first..first + count;
    let campaign = run_plans(plans, 2, mutant, || Ground::of(protocol), |_| ());
    for found in campaign.found.iter().take(3) {
        println!("{}{}: {}", Plan::draw(found.number), found.number, found.violation.text);
    }
    println!(
        "{} plans, {} broken, {} heights, {} views, {} timers, {} messages",
        campaign.plans,
        campaign.broken,
        campaign.heights,
        campaign.views,
        campaign.rings,
        campaign.messages
    );
}
