use super::*;
use quorate_crypto::SchemeKind;
use quorate_engine::{ProtocolKind, Sealing};
use quorate_storage::Durability;
use quorate_types::ReplicaId;
use quorate_wan::{Matrix, Topology};
use std::num::NonZeroUsize;
use std::time::Duration;

const REGIONS: [&str; 4] = ["us-east-1", "us-west-1", "ap-southeast-2", "eu-central-1"];

fn wide(validators: usize) -> Topology {
    let matrix = Matrix::aws();
    let regions = REGIONS.map(|name| matrix.region(name).unwrap());
    Topology::in_regions(matrix, &regions, validators)
}

fn scene(validators: usize, rate: f64) -> Scene {
    let prices = Prices::shipped("this-machine").unwrap();
    let mut scene = Scene::new(wide(validators), rate, prices);
    // Windows of flow control open meanwhile, and what waited for that is worked off.
    scene.warmup = Duration::from_secs(5);
    scene.duration = Duration::from_secs(3);
    scene
}

fn outcome(scene: &Scene) -> Estimate {
    run(scene, &mut |_| {}).unwrap()
}

#[test]
fn four_validators_on_four_continents_commit_what_is_offered() {
    let outcome = outcome(&scene(4, 2_000.0));
    assert!((1_900.0..=2_100.0).contains(&outcome.committed_tps), "{outcome:#?}");
    let latency = outcome.one_validator.p50_ms;
    assert!((200.0..=900.0).contains(&latency), "{outcome:#?}");
    assert!(outcome.first_validator.p50_ms <= latency);
    assert!(outcome.slowest_validator.p50_ms >= latency);
    assert!(outcome.acknowledged.p50_ms >= outcome.first_validator.p50_ms);
    assert_eq!((outcome.timeouts, outcome.refused, outcome.dropped), (0, 0, 0));
}

#[test]
fn the_same_scene_is_the_same_run_and_another_seed_another() {
    let mut scene = scene(7, 3_000.0);
    scene.load.arrivals = Arrivals::Poisson;
    let first = outcome(&scene);
    let again = outcome(&scene);
    assert_eq!(first.trace_hash, again.trace_hash);
    assert_eq!(Estimate { wall_s: first.wall_s, ..again }, first);
    scene.seed = 2;
    assert_ne!(outcome(&scene).trace_hash, first.trace_hash);
}

/// Nobody pays for what nobody signs; everything else is as it was.
#[test]
fn without_signatures_processors_have_less_to_do() {
    let mut scene = scene(4, 2_000.0);
    let signed = outcome(&scene);
    scene.settings.comparison.signatures = false;
    let unsigned = outcome(&scene);
    let work = |outcome: &Estimate| outcome.utilisation.iter().map(|one| one.mean).sum::<f64>();
    assert!(work(&unsigned) < 0.8 * work(&signed), "{} {}", work(&unsigned), work(&signed));
    assert!(unsigned.committed_tps > 0.9 * signed.committed_tps);
}

/// Each request is in several bodies, counts once, and costs more.
#[test]
fn a_request_that_goes_to_all_counts_once() {
    let mut scene = scene(4, 2_000.0);
    let one = outcome(&scene);
    scene.load.receivers = Receivers::All;
    scene.settings.comparison.filter_requests = false;
    let all = outcome(&scene);
    assert!((all.committed_tps / one.committed_tps - 1.0).abs() < 0.1, "{}", all.committed_tps);
    assert!(all.bytes_sent_per_second > 1.5 * one.bytes_sent_per_second);
}

/// Prices are charged for what is called, and stand-ins call the same: only the time that a run
/// takes may differ.
#[test]
fn real_signatures_make_no_difference_to_any_figure() {
    for scheme in [SchemeKind::Ed25519, SchemeKind::Bls] {
        let mut scene = scene(4, 400.0);
        (scene.scheme, scene.warmup) = (scheme, Duration::from_secs(1));
        scene.duration = Duration::from_secs(1);
        let priced = outcome(&scene);
        scene.real_signatures = true;
        let real = outcome(&scene);
        assert_eq!((priced.signatures, real.signatures), (Signatures::Priced, Signatures::Real));
        let (wall_s, signatures) = (real.wall_s, real.signatures);
        assert_eq!(Estimate { wall_s, signatures, ..priced }, real, "{scheme}");
    }
}

#[test]
fn a_saturated_station_works_at_the_rate_of_its_price() {
    let mut scene = scene(4, 3_000.0);
    scene.prices.execution.operation_us = 1_000.0;
    scene.prices.crowded = PerStation::all(1.0);
    let outcome = outcome(&scene);
    let executed = outcome.acknowledged.operations as f64 / 3.0;
    assert!((850.0..=1_100.0).contains(&executed), "{executed}");
    assert!(outcome.station(Station::Execution).unwrap().mean > 0.8, "{outcome:#?}");
    assert!(outcome.committed_tps > 1_100.0, "what is decided does not wait for it: {outcome:#?}");
}

/// Transactions cost their price at execution, and every validator pays for each sender once.
#[test]
fn transactions_cost_their_execution_and_every_validator_their_senders() {
    let used = |work: Work, recover_us: f64| {
        let mut scene = scene(4, 2_000.0);
        scene.host.cores = 8;
        scene.load.work = work;
        scene.prices.secp256k1.recover_us = recover_us;
        scene.prices.execution.evm_tx_us = 200.0;
        let outcome = outcome(&scene);
        let of = |station| outcome.station(station).unwrap().mean;
        (of(Station::Checks), of(Station::Execution))
    };
    let (nothing, idle) = used(Work::Noop, 100.0);
    let (free, executing) = used(Work::Evm, 0.0);
    let (paid, _) = used(Work::Evm, 100.0);
    assert!((free - nothing).abs() < 0.2 * nothing, "{free} {nothing}");
    assert!((0.38..0.5).contains(&(executing - idle)), "2,000 times 200 µs: {executing} {idle}");
    assert!((0.18..0.22).contains(&(paid - free)), "2,000 times 100 µs: {paid} {free}");
}

#[test]
fn work_costs_its_multiple_while_all_cores_are_taken() {
    let executed = |cores: u32, times: f64| {
        let mut scene = scene(4, 3_000.0);
        scene.host.cores = cores;
        scene.prices.execution.operation_us = 1_000.0;
        scene.prices.crowded = PerStation { execution: times, ..PerStation::all(1.0) };
        outcome(&scene).acknowledged.operations as f64
    };
    // One thread executes: with eight cores some are always free.
    let free = executed(8, 1.0);
    assert!((0.95..1.05).contains(&(executed(8, 2.0) / free)), "{free}");
    let ratio = executed(1, 2.0) / executed(1, 1.0);
    assert!(ratio < 0.75, "{ratio}");
}

#[test]
fn a_shared_host_has_its_cores_and_no_more() {
    let mut scene = scene(4, 2_000.0);
    scene.topology = Topology::uniform(4, Duration::ZERO);
    // A core and a half of execution, on one core for all four.
    scene.prices.execution.operation_us = 190.0;
    scene.host = HostProfile::local(1, 4);
    let outcome = outcome(&scene);
    assert!(outcome.cores_busiest <= 1.0 && outcome.cores_busiest > 0.8, "{outcome:#?}");
    let executed = outcome.acknowledged.operations as f64 / 3.0;
    assert!(executed < 1_500.0, "{executed}");
}

/// Its parts follow one another, and what was offered is committed after it.
#[test]
fn a_view_change_is_timed_by_its_parts() {
    let mut scene = scene(4, 500.0);
    scene.settings.protocol = ProtocolKind::Sbft;
    scene.settings.timeout_ms = 1_000;
    scene.leader_crashes = Some(Duration::from_millis(2_500));
    scene.duration = Duration::from_secs(6);
    let outcome = outcome(&scene);
    let change = outcome.view_change.expect("a primary that crashed");
    assert!(change.given_up_ms > 0.0, "{change:?}");
    assert!(change.given_up_ms <= change.last_report_ms, "{change:?}");
    assert!(Some(change.given_up_ms) < change.new_view_ms, "{change:?}");
    assert!(change.new_view_ms < change.resumed_ms, "{change:?}");
    assert!(change.report_bytes > 0);
    assert!(outcome.committed_tps > 250.0, "{outcome:#?}");
}

/// With a quarter of the members dead, clients in a closed loop have their answers all the same.
#[test]
fn a_closed_loop_offers_what_is_answered() {
    let mut scene = scene(7, 1.0);
    scene.settings.protocol = ProtocolKind::Sbft;
    scene.load.arrivals = Arrivals::Closed(NonZeroUsize::new(8).unwrap());
    scene.load.sessions = NonZeroUsize::new(3);
    scene.load.receivers = Receivers::Leader;
    scene.crashed = vec![(ReplicaId(6), Duration::ZERO)];
    let outcome = outcome(&scene);
    let answered: u64 = outcome.answered.iter().map(|one| u64::from(one.count)).sum();
    assert!(answered >= 3 * 8 * 3, "three requests of each client at least: {answered}");
    assert!(outcome.offered - answered <= 3 * 8, "one request of each is open at most");
}

/// Taking arrivals up by spans leaves the same protocol at about the same pace.
#[test]
fn arrivals_by_spans_change_little() {
    for protocol in [ProtocolKind::Pbft, ProtocolKind::Jolteon] {
        let mut scene = scene(7, 1_000.0);
        scene.settings.protocol = protocol;
        let exact = outcome(&scene);
        scene.take_up = Duration::from_millis(1);
        let by_spans = outcome(&scene);
        let ratio = by_spans.acknowledged.p50_ms / exact.acknowledged.p50_ms;
        assert!((0.9..1.15).contains(&ratio), "{protocol}: {ratio}");
        assert!(by_spans.events < exact.events, "{protocol}");
    }
}

#[test]
fn a_host_has_validators_of_one_region() {
    let mut scene = scene(8, 1_000.0);
    scene.host.validators_per_host = 3;
    let refused = run(&scene, &mut |_| {}).unwrap_err();
    assert_eq!(refused, SceneError::Hosts { validators: 8, hosts: 3 });
    scene.host.validators_per_host = 2;
    assert!(outcome(&scene).committed_tps > 0.0);
}

#[test]
fn every_receiver_is_charged_for_what_is_computed_once() {
    let outcome = outcome(&scene(7, 3_000.0));
    let checks = outcome.station(Station::Checks).unwrap();
    assert!(checks.mean > 0.0 && checks.busiest < 1.1 * checks.mean, "{checks:?}");
}

#[test]
fn a_crashed_validator_costs_views_and_nothing_else() {
    let mut scene = scene(4, 1_000.0);
    scene.settings.timeout_ms = 1_000;
    scene.crashed = vec![(ReplicaId(3), Duration::from_millis(1_500))];
    scene.duration = Duration::from_secs(8);
    let outcome = outcome(&scene);
    assert!(outcome.timeouts > 0, "{outcome:#?}");
    assert!(outcome.committed_tps > 700.0, "{outcome:#?}");
    assert!(outcome.slowest_validator.operations > 0, "three are all that live");
}

#[test]
fn the_reference_answers_nobody_and_checks_each_vote() {
    let mut scene = scene(10, 2_000.0);
    scene.scheme = SchemeKind::Bls;
    scene.prices.bls.pairing_us = 10_000.0;
    let aggregate = outcome(&scene);
    let reference = outcome(&scene.clone().as_reference());
    assert_eq!(reference.acknowledged.operations, 0);
    assert!((1_800.0..=2_200.0).contains(&reference.committed_tps), "{reference:#?}");
    let votes =
        |outcome: &Estimate| outcome.station(Station::Votes).unwrap().mean / outcome.views as f64;
    assert!(votes(&reference) > 1.5 * votes(&aggregate), "{reference:#?} {aggregate:#?}");
}

#[test]
fn the_reference_pays_for_no_clients_signatures() {
    let reference = scene(4, 2_000.0).as_reference();
    let mut dear = reference.clone();
    dear.prices.ed25519.batch_item_us = 5_000.0;
    dear.prices.ed25519.batch_key_us = 5_000.0;
    let (cheap, dear) = (outcome(&reference), outcome(&dear));
    let checks = |outcome: &Estimate| outcome.station(Station::Checks).unwrap().mean;
    // Its votes and certificates cost more, and with that moments move a little.
    let ratio = checks(&dear) / checks(&cheap);
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
    let own = outcome(&scene(4, 2_000.0));
    assert!(checks(&own) > 1.5 * checks(&cheap), "{own:#?} {cheap:#?}");
}

#[test]
fn sleeping_threads_are_paid_for_and_busy_ones_are_not() {
    let net = |rate: f64, wake_us: f64| {
        let mut scene = scene(4, rate);
        scene.topology = Topology::uniform(4, Duration::from_millis(5));
        scene.prices.wake_us = PerStation { net: wake_us, ..PerStation::all(0.0) };
        let outcome = outcome(&scene);
        let net = outcome.station(Station::Net).unwrap();
        (net.mean, net.wakes_per_second)
    };
    let (free, _) = net(500.0, 0.0);
    let (paid, wakes) = net(500.0, 50.0);
    let charged = wakes * 50e-6;
    assert!((0.8..1.2).contains(&((paid - free) / charged)), "{free} {paid} {wakes}");
    // Frames that wait for a thread wake nobody: four times the load is not four times the wakes.
    let (_, more) = net(32_000.0, 50.0);
    assert!(more < 3.0 * wakes, "{wakes} then {more}");
}

/// A core that has to be woken makes what it is woken for late, and nobody pays for that.
#[test]
fn waking_a_core_takes_time_and_no_core() {
    let mut scene = scene(4, 500.0);
    scene.topology = Topology::uniform(4, Duration::from_millis(5));
    (scene.settings.batch_delay_ms, scene.load.bundle_delay) = (1, Duration::from_millis(1));
    let quick = outcome(&scene);
    scene.prices.wake_delay_us = 100.0;
    let slow = outcome(&scene);
    let later = slow.one_validator.p50_ms - quick.one_validator.p50_ms;
    assert!((1.0..=20.0).contains(&later), "{quick:#?} {slow:#?}");
    assert!(slow.cores_busiest < 1.1 * quick.cores_busiest, "{quick:#?} {slow:#?}");
}

#[test]
fn a_sync_takes_a_part_of_its_time_from_a_core() {
    let log = |durability, sync_core_us| {
        let mut scene = scene(4, 500.0);
        scene.durability = durability;
        (scene.prices.log.sync_us, scene.prices.log.sync_core_us) = (2_000.0, sync_core_us);
        let outcome = outcome(&scene);
        (outcome.station(Station::Log).unwrap().mean, outcome.one_validator.p50_ms)
    };
    let (free, paid) = (log(Durability::Fsync, 0.0), log(Durability::Fsync, 1_500.0));
    assert!(paid.0 > 2.0 * free.0, "{free:?} {paid:?}");
    assert!((0.95..1.05).contains(&(paid.1 / free.1)), "no later for it: {free:?} {paid:?}");
    assert_eq!(log(Durability::Os, 1_500.0), log(Durability::Os, 0.0), "nothing is synced");
}

/// Leaders pause where their threads wait for processors, as running validators do.
#[test]
fn leaders_pause_where_processors_are_scarce() {
    let pace = |cores: u32| {
        let mut scene = scene(10, 5_000.0);
        scene.topology = Topology::uniform(10, Duration::ZERO);
        scene.host = HostProfile::local(cores, 10);
        (scene.settings.batch_delay_ms, scene.load.bundle_delay) = (1, Duration::from_millis(1));
        outcome(&scene).pace_ms
    };
    assert!(pace(1) > 0);
    assert_eq!(pace(64), 0);
}

/// What a quorum has is not sent to those to whom it was not written yet: they ask for it, and no
/// backlog grows behind a narrow window.
#[test]
fn the_reference_takes_back_what_a_quorum_has() {
    let mut scene = scene(10, 30_000.0).as_reference();
    scene.loss = 0.0002;
    let outcome = outcome(&scene);
    assert!(outcome.dropped > 0, "{outcome:#?}");
    assert!(outcome.committed_tps > 27_000.0, "{outcome:#?}");
}

#[test]
fn the_references_three_chains_have_a_mempool_of_their_own() {
    let mut scene = scene(4, 4_000.0);
    assert_eq!(scene.clone().as_reference().profile, Profile::Reference);
    scene.settings.protocol = ProtocolKind::HotStuff;
    // A body of 500 KB is a quarter of a second of all.
    scene.duration = Duration::from_secs(12);
    let three = scene.as_reference();
    assert_eq!(three.profile, Profile::ReferenceThreeChain);
    let comparison = &three.settings.comparison;
    assert_eq!((comparison.sealing, comparison.block_bodies_max), (Sealing::Demand, 31));
    let outcome = outcome(&three);
    assert!((3_600.0..=4_400.0).contains(&outcome.committed_tps), "{outcome:#?}");
    // A second fills a body of 500 KB, and a leader without one seals what it has.
    assert!(outcome.one_validator.p50_ms > 500.0, "{outcome:#?}");
}

#[test]
fn sessions_go_round_the_members() {
    let mut scene = scene(4, 2_000.0);
    scene.load.sessions = NonZeroUsize::new(2);
    let outcome = outcome(&scene);
    assert!((1_900.0..=2_100.0).contains(&outcome.committed_tps), "{outcome:#?}");
    let client = outcome.station(Station::Client).unwrap();
    assert!(client.busiest > 1.8 * client.mean, "two of four have clients: {client:?}");
}

/// Makes a scene impossible.
type Spoil<'a> = &'a dyn Fn(&mut Scene);

#[test]
fn scenes_that_cannot_be_run_are_refused_with_a_reason() {
    let good = scene(4, 1_000.0);
    let refused = |change: &dyn Fn(&mut Scene)| {
        let mut scene = good.clone();
        change(&mut scene);
        run(&scene, &mut |_| {}).unwrap_err().to_string()
    };
    let cases: [(Spoil<'_>, &str); 6] = [
        (&|scene| scene.validators = 5, "the topology is for 4 members"),
        (&|scene| scene.scheme = SchemeKind::Stub, "the stub scheme has no price"),
        (&|scene| scene.load.rate = 0.0, "rate is 0"),
        (&|scene| scene.loss = 1.0, "loss is 1"),
        (&|scene| scene.host.cores = 0, "cores is 0"),
        (&|scene| scene.settings.timeout_ms = 1, "timeout_ms"),
    ];
    for (change, reason) in cases {
        let said = refused(change);
        assert!(said.contains(reason), "{said}");
    }
}

#[test]
fn a_steady_run_raises_no_doubt_and_its_operations_are_accounted_for() {
    let outcome = outcome(&scene(4, 2_000.0));
    assert_eq!(outcome.doubts, []);
    let seconds = outcome.seconds.len() as f64;
    let under_way = outcome.seconds.iter().map(|second| second.under_way).sum::<f64>() / seconds;
    let accounted = outcome.committed_tps * outcome.first_validator.mean_ms / 1e3;
    assert!((0.9..1.1).contains(&(under_way / accounted)), "{under_way} {accounted}");
    let offered: i64 = outcome.seconds.iter().map(|second| second.offered).sum();
    assert!((5_900..=6_100).contains(&offered), "{offered}");
}

#[test]
fn a_window_around_an_interruption_is_in_doubt_and_those_after_it_are_not() {
    let mut scene = scene(4, 2_000.0);
    scene.warmup = Duration::from_secs(1);
    scene.duration = Duration::from_secs(2);
    let at = Duration::from_millis(1_500);
    scene.partitions =
        vec![Partition { members: vec![0, 1], at, duration: Duration::from_secs(1) }];
    let stopped = outcome(&scene);
    let drifts = |doubt: &Doubt| match doubt {
        Doubt::LatencyDrifts { first, second } => *second > 1.5 * first,
        _ => false,
    };
    assert!(stopped.doubts.iter().any(drifts), "{:?}", stopped.doubts);
    scene.windows_more = 3;
    let later = outcome(&scene);
    assert_eq!(later.doubts, []);
    assert!(later.window_s.0 >= 3.0, "{:?}", later.window_s);
    let rate = later.committed_tps;
    assert!((1_900.0..=2_100.0).contains(&rate), "{rate}");
}

/// Views that are too short for the way between the members time out one after the other; that
/// nobody crashed makes it no measurement of the protocol.
#[test]
fn view_changes_are_a_doubt_unless_somebody_crashes() {
    let mut scene = scene(4, 2_000.0);
    scene.settings.timeout_ms = 120;
    let views = outcome(&scene).timeouts;
    assert!(views > 0);
    assert!(outcome(&scene).doubts.contains(&Doubt::ViewChanges { views }));
    scene.crashed = vec![(ReplicaId(3), Duration::ZERO)];
    let meant = outcome(&scene);
    let is_view_change = |doubt: &Doubt| matches!(doubt, Doubt::ViewChanges { .. });
    assert!(meant.timeouts > 0 && !meant.doubts.iter().any(is_view_change), "{:?}", meant.doubts);
}

#[test]
fn what_is_offered_beyond_capacity_is_in_doubt_and_windows_end() {
    let mut scene = scene(4, 6_000.0);
    scene.host.uplink_mbps = Some(20.0);
    scene.warmup = Duration::from_secs(1);
    scene.duration = Duration::from_secs(1);
    scene.windows_more = 3;
    let long = outcome(&scene);
    assert!(long.doubts.iter().any(Doubt::is_growth), "{:?}", long.doubts);
    // One second has no halves; the backlog grew in the two windows after it.
    assert_eq!(long.window_s, (4.0, 8.0));
    assert_eq!(long.seconds.len(), 4);
    // Where a run may be given up, one is enough.
    scene.give_up = Some(Duration::from_mins(1));
    assert_eq!(outcome(&scene).window_s, (2.0, 4.0));
}

/// What cannot be kept up with is known to be so long before the window.
#[test]
fn a_run_is_given_up_once_too_much_is_under_way() {
    let mut scene = scene(4, 6_000.0);
    scene.host.uplink_mbps = Some(20.0);
    scene.warmup = Duration::from_secs(20);
    scene.give_up = Some(Duration::from_secs(2));
    let outcome = outcome(&scene);
    let &[Doubt::GivenUp { under_way, at_s }] = &outcome.doubts[..] else {
        panic!("{:?}", outcome.doubts);
    };
    assert!(under_way > 12_000 && at_s < 10.0, "{under_way} after {at_s} s");
    assert_eq!(outcome.window_s, (0.2, at_s));
    assert!((500.0..5_000.0).contains(&outcome.committed_tps), "{}", outcome.committed_tps);
    assert_eq!(outcome.bottleneck.resource, Resource::Uplink);
    assert!(outcome.bottleneck.share > 0.5, "{:?}", outcome.bottleneck);
}

#[test]
fn few_samples_and_what_nobody_accounts_for_are_in_doubt() {
    let mut scene = scene(4, 100.0);
    scene.duration = Duration::from_secs(1);
    let few = outcome(&scene);
    let (operations, heights) = (few.first_validator.operations, few.heights);
    assert_eq!(few.doubts[0], Doubt::FewSamples { operations, heights });
    assert!(operations < 1_000, "{operations}");
    // As where 16,384 were under way and throughput times latency was 1,123.
    scene.load.rate = 2_000.0;
    scene.duration = Duration::from_secs(4);
    let mut estimate = outcome(&scene);
    assert_eq!(estimate.doubts, []);
    estimate.committed_tps /= 2.0;
    let doubts = validity::doubts(&scene, &estimate);
    assert!(matches!(doubts[..], [Doubt::LittlesLaw { .. }]), "{doubts:?}");
    scene.crashed = vec![(ReplicaId(3), scene.warmup)];
    assert_eq!(validity::doubts(&scene, &estimate), [], "the window is of the crash");
}
