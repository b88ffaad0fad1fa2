use super::Topology;
use crate::{Matrix, Region};
use std::time::Duration;

fn regions(names: &[&str]) -> Vec<Region> {
    names.iter().map(|name| Matrix::aws().region(name).expect("known")).collect()
}

fn two_regions(members: usize) -> Topology {
    let regions = regions(&["us-east-1", "eu-central-1"]);
    Topology::in_regions(Matrix::aws(), &regions, members)
}

#[test]
fn regions_go_round() {
    let topology = two_regions(3);
    assert_eq!(topology.members(), 3);
    assert_eq!(topology.regions(), ["us-east-1", "eu-central-1", "us-east-1"]);
    assert_eq!(topology.latency(0, 1).median(), Duration::from_micros(46_580));
    assert_eq!(topology.latency(1, 0).median(), Duration::from_micros(46_325));
    assert_eq!(topology.latency(0, 2), topology.latency(0, 0), "two hosts in one region");
    assert_eq!(topology.farthest_round_trip(), Duration::from_micros(92_905));
}

#[test]
fn a_uniform_delay_spares_whoever_sits_beside() {
    let topology = Topology::uniform(4, Duration::from_millis(50));
    assert_eq!(topology.latency(1, 1).median(), Duration::ZERO);
    assert_eq!(topology.latency(1, 2).median(), Duration::from_millis(50));
    assert_eq!(topology.farthest_round_trip(), Duration::from_millis(100));
    assert!(topology.regions().is_empty());
}

#[test]
fn jitter_is_the_same_for_all_lanes_of_a_link_and_differs_in_time_and_between_links() {
    let topology = two_regions(4);
    let delays = |from, to| -> Vec<Duration> {
        (0..50).map(|n| topology.route(from, to).delay(Duration::from_millis(100 * n))).collect()
    };
    assert_eq!(delays(0, 1), delays(0, 1));
    assert_ne!(delays(0, 1), delays(2, 1), "two links of the same two regions");
    let route = topology.route(0, 1);
    let at = |ms| route.delay(Duration::from_millis(ms));
    assert_eq!(at(100), at(199), "one draw lasts for a while");
    assert!(delays(0, 1).windows(2).any(|pair| pair[0] != pair[1]));
    let still = topology.without_jitter();
    assert_eq!(still.route(0, 1).delay(Duration::ZERO), Duration::from_micros(46_580));
}

#[test]
fn draws_follow_the_distribution() {
    let route = two_regions(2).route(0, 1);
    let mut delays: Vec<Duration> =
        (0..10_000).map(|n| route.delay(Duration::from_millis(100 * n))).collect();
    delays.sort_unstable();
    // The median and the 90th percentile of 10,000 draws lie within these quantiles but for one
    // seed in thousands, and the seed is fixed.
    let latency = route.latency();
    assert!(delays[5_000] > latency.quantile(0.48) && delays[5_000] < latency.quantile(0.52));
    assert!(delays[9_000] > latency.quantile(0.88) && delays[9_000] < latency.quantile(0.92));
    assert!(delays[9_999] <= latency.longest());
}

#[test]
fn bandwidth_takes_time() {
    let limited = Topology::uniform(2, Duration::ZERO).with_bandwidth(Some(8));
    assert_eq!(limited.route(0, 1).transmission(1_000_000), Duration::from_secs(1));
    let free = limited.with_bandwidth(None);
    assert_eq!(free.route(0, 1).transmission(1_000_000), Duration::ZERO);
}
