//! Links that are cut for ever: two pairs of four members that do not reach each other, while each
//! member reaches a quorum.

use quorate_engine::ProtocolKind;
use quorate_sim::network::Cuts;
use quorate_sim::{Report, Scenario, run};
use std::time::Duration;

/// Members 0 and 2, and 1 and 3, do not reach each other: each proposal misses a member, and of the
/// three that get it one does not reach the next leader.
const OPPOSITE: [(usize, usize); 2] = [(0, 2), (1, 3)];

/// More operations than heights, one way of two milliseconds on each link.
fn loaded(protocol: ProtocolKind, cuts: Cuts) -> Report {
    let mut scenario = Scenario::calm(1, 4).running(protocol);
    scenario.conditions.base_us = 2_000..=2_000;
    scenario.fault_phase = Duration::from_secs(4);
    scenario.liveness_bound = Duration::from_secs(8);
    scenario.operations = 1_200;
    scenario.clients = 12;
    scenario.cuts = cuts;
    run(&scenario)
}

fn heights_per_second(report: &Report) -> f64 {
    report.decided_height.0 as f64 * 1e6 / report.virtual_time.0 as f64
}

fn opposite(relayed: bool) -> Cuts {
    Cuts { links: OPPOSITE.to_vec(), relayed }
}

/// The rate of a protocol in heights a second: with all links, and with these cut.
fn rates(protocol: ProtocolKind, cut: &Report) -> (f64, f64) {
    let whole = loaded(protocol, Cuts::default());
    assert_eq!(whole.verdict.as_ref().map_err(ToString::to_string), Ok(&()), "{protocol}");
    let (before, after) = (heights_per_second(&whole), heights_per_second(cut));
    println!("{protocol}: {before:.1} heights a second, {after:.1} with links cut");
    (before, after)
}

#[test]
fn with_opposite_links_cut_decisions_go_on_at_half_the_rate_and_more() {
    for protocol in ProtocolKind::ALL {
        let cut = loaded(protocol, opposite(true));
        assert_eq!(cut.verdict.as_ref().map_err(ToString::to_string), Ok(&()), "{protocol}");
        let (before, after) = rates(protocol, &cut);
        assert!(after >= before / 2.0, "{protocol}: {before:.1} before, {after:.1} after");
    }
}

/// What the relays are for: without them the next leader lacks a vote, or the member that was
/// not shown a proposal lacks its block, view after view.
#[test]
fn without_relays_no_protocol_keeps_half_of_its_rate() {
    for protocol in ProtocolKind::ALL {
        let (before, after) = rates(protocol, &loaded(protocol, opposite(false)));
        assert!(after < before / 2.0, "{protocol}: {before:.1} before, {after:.1} after");
    }
}
