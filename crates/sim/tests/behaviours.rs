//! Members that lie, one behaviour at a time, under each protocol.

use quorate_engine::ProtocolKind;
use quorate_sim::byzantine::Behaviour;
use quorate_sim::mutants::Mutant;
use quorate_sim::{Scenario, run};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Nothing else goes wrong: what is seen is the liar's work.
fn lying(protocol: ProtocolKind, behaviour: Behaviour) -> Scenario {
    let mut scenario = Scenario::calm(1, 4).running(protocol);
    scenario.behaviours[3] = behaviour;
    scenario
}

#[test]
fn one_member_of_four_may_behave_in_any_way() {
    for protocol in ProtocolKind::ALL {
        for behaviour in Behaviour::all().filter(|behaviour| *behaviour != Behaviour::Twin) {
            let report = run(&lying(protocol, behaviour));
            let verdict = report.verdict.map_err(|failure| failure.to_string());
            assert_eq!(verdict, Ok(()), "{protocol}, {behaviour}");
            assert!(report.completed >= 40, "{protocol}, {behaviour}");
        }
    }
}

/// A flood that nobody notices floods nobody.
#[test]
fn floods_arrive() {
    for protocol in ProtocolKind::ALL {
        let noticed = |behaviour| run(&lying(protocol, behaviour)).reactions;
        let (honest, certificates) =
            (noticed(Behaviour::Honest), noticed(Behaviour::CertificateFlood));
        assert!(certificates.refused > honest.refused + 100, "{protocol}: {certificates:?}");
        for behaviour in [Behaviour::VoteFlood, Behaviour::ReplayFlood, Behaviour::TimeoutFlood] {
            let (flooded, idle) = (noticed(behaviour), &honest);
            let seen = flooded.ignored + flooded.refused;
            assert!(
                seen > idle.ignored + idle.refused + 20,
                "{protocol}, {behaviour}: {flooded:?}"
            );
        }
    }
}

#[test]
fn behaviours_have_names() {
    for behaviour in Behaviour::all() {
        assert_eq!(behaviour.to_string().parse(), Ok(behaviour));
    }
    let refused = "flood".parse::<Behaviour>().expect_err("no behaviour").to_string();
    assert!(refused.contains("certificate-flood"), "{refused}");
}

#[test]
fn the_table_has_every_behaviour() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/behaviours.md");
    let table = fs::read_to_string(path).expect("docs/behaviours.md");
    for behaviour in Behaviour::all() {
        assert!(table.contains(&format!("| `{behaviour}` |")), "{behaviour} is missing");
    }
}

/// Twenty virtual seconds of load on a committee whose first primary, member 1, behaves so.
fn loaded(protocol: ProtocolKind, primary: Behaviour) -> Scenario {
    let mut scenario = Scenario::calm(1, 4).running(protocol);
    scenario.behaviours[1] = primary;
    scenario.fault_phase = Duration::from_secs(20);
    scenario.operations = 4_000;
    scenario.clients = 8;
    scenario.liveness_bound = Duration::from_secs(600);
    scenario
}

/// Pace of a committee.
#[derive(Debug)]
struct Pace {
    /// Operations completed in a virtual second.
    throughput: u64,
    /// Mean milliseconds from a request to its answer.
    latency_ms: u64,
    /// Views given up.
    view_changes: u64,
}

#[track_caller]
fn pace(scenario: &Scenario) -> Pace {
    let report = run(scenario);
    let verdict = report.verdict.map_err(|failure| failure.to_string());
    assert_eq!(verdict, Ok(()));
    Pace {
        throughput: report.completed / report.virtual_time.0.div_ceil(1_000_000),
        latency_ms: report.reactions.answered_ms,
        view_changes: report.reactions.view_changes,
    }
}

/// A primary that orders as little as keeps its view, or as late, is replaced, once and for all:
/// the committee is nearly as fast as without it.
#[test]
fn a_primary_that_only_keeps_its_view_loses_it() {
    for protocol in ProtocolKind::WINDOWED {
        let honest = pace(&loaded(protocol, Behaviour::Honest));
        assert_eq!(honest.view_changes, 0, "{protocol}");
        for behaviour in [Behaviour::SlowLeader, Behaviour::MiserlyLeader] {
            let scenario = loaded(protocol, behaviour);
            let kept = pace(&scenario.clone().with_mutant(Mutant::KeepSlowPrimary));
            let replaced = pace(&scenario);
            println!("{protocol}, {behaviour}: {honest:?}, kept {kept:?}, judged {replaced:?}");
            assert_eq!(kept.view_changes, 0, "{protocol}, {behaviour}: nothing else ends its view");
            assert!(kept.latency_ms > 10 * honest.latency_ms, "{protocol}, {behaviour}: {kept:?}");
            assert_eq!(replaced.view_changes, 1, "{protocol}, {behaviour}");
            assert!(replaced.throughput >= honest.throughput * 95 / 100, "{protocol}, {behaviour}");
            assert!(replaced.latency_ms < 3 * honest.latency_ms, "{protocol}, {behaviour}");
        }
    }
}

/// Where leaders rotate, its share of the views is what it costs.
#[test]
fn a_leader_that_only_keeps_its_view_costs_its_share_where_leaders_rotate() {
    let rotates = |protocol: &ProtocolKind| protocol.windowed_rules().is_none();
    for protocol in ProtocolKind::ALL.into_iter().filter(rotates) {
        let honest = pace(&loaded(protocol, Behaviour::Honest));
        for behaviour in [Behaviour::SlowLeader, Behaviour::MiserlyLeader] {
            let slowed = pace(&loaded(protocol, behaviour));
            println!("{protocol}, {behaviour}: {honest:?}, {slowed:?}");
            assert!(slowed.throughput >= honest.throughput * 9 / 10, "{protocol}, {behaviour}");
        }
    }
}

/// All clients are one member's.
fn of_one_gateway(protocol: ProtocolKind, primary: Behaviour) -> Scenario {
    Scenario { clients: 1, ..loaded(protocol, primary) }
}

/// All clients may be one member's: the others see its bodies wait longer than it could bring
/// about.
#[test]
fn a_miser_loses_its_view_whoever_its_victims_are() {
    for protocol in ProtocolKind::WINDOWED {
        let replaced = pace(&of_one_gateway(protocol, Behaviour::MiserlyLeader));
        assert!((1..=3).contains(&replaced.view_changes), "{protocol}: {replaced:?}");
    }
}

/// An author that makes up bodies and hides them from the primary has it replaced a few times,
/// until what is allowed for bodies like its own is as long as it can delay them. Proposals that
/// name them get their votes in time, and everybody else is served as before.
#[test]
fn an_author_that_hides_its_bodies_deposes_few_primaries() {
    for protocol in ProtocolKind::WINDOWED {
        let mut scenario = loaded(protocol, Behaviour::Honest);
        scenario.behaviours[3] = Behaviour::BodyHider;
        scenario.fault_phase = Duration::from_secs(60);
        let hidden = pace(&scenario);
        scenario.behaviours[3] = Behaviour::Honest;
        let honest = pace(&scenario);
        println!("{protocol}: {honest:?}, with hidden bodies {hidden:?}");
        assert!(hidden.view_changes <= 5, "{protocol}: {hidden:?}");
        assert!(hidden.latency_ms <= 2 * honest.latency_ms, "{protocol}: {hidden:?}");
        assert!(hidden.throughput >= honest.throughput * 95 / 100, "{protocol}: {hidden:?}");
    }
}

/// More than a committee can order, of which the honest are not to blame: they change their primary
/// a few times, then the allowance is as long as it has to be. From an eighth of a timeout to 16 it
/// doubles seven times, at each of the members, of whom two end a view.
#[test]
fn a_committee_that_is_overloaded_settles() {
    for protocol in ProtocolKind::WINDOWED {
        let mut scenario = loaded(protocol, Behaviour::Honest);
        scenario.settings.comparison.block_operations_max = 1;
        scenario.settings.concurrent_slots = 1;
        let unjudged = pace(&scenario.clone().with_mutant(Mutant::KeepSlowPrimary));
        let judged = pace(&scenario);
        println!("{protocol}: {unjudged:?}, judged {judged:?}");
        assert!(judged.view_changes <= 14, "{protocol}: {judged:?}");
        assert!(judged.throughput >= unjudged.throughput * 9 / 10, "{protocol}: {judged:?}");
    }
}

/// Members on several continents, whose timeout is eight round trips between the farthest: what
/// honest primaries need is more than is allowed at first.
#[test]
fn a_committee_between_continents_settles() {
    for protocol in ProtocolKind::WINDOWED {
        let mut scenario = loaded(protocol, Behaviour::Honest);
        scenario.conditions.base_us = 20_000..=125_000;
        scenario.settings.timeout_ms = 2_000;
        let unjudged = pace(&scenario.clone().with_mutant(Mutant::KeepSlowPrimary));
        let judged = pace(&scenario);
        println!("{protocol}: {unjudged:?}, judged {judged:?}");
        assert!(judged.view_changes <= unjudged.view_changes + 3, "{protocol}: {judged:?}");
        assert!(judged.throughput >= unjudged.throughput * 9 / 10, "{protocol}: {judged:?}");
    }
}
