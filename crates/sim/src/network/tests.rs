use super::Cuts;
use super::*;

const NOW: Time = Time(1_000_000);

fn network(change: impl FnOnce(&mut Conditions)) -> Network {
    let mut conditions = Conditions {
        base_us: 100..=5_000,
        jitter_us: 2_000,
        loss_percent: 0,
        duplicate_percent: 0,
        reorder_percent: 0,
        corrupt_permille: 0,
        spell_us: 0,
    };
    change(&mut conditions);
    Network::new(4, conditions, Rng::new(7, "network", 0))
}

fn arrives(network: &mut Network, from: usize, to: usize) -> bool {
    !network.route(NOW, from, to, Lane::Votes).is_empty()
}

/// One spell is bad, the next is fair; a frame counts by when it is sent.
#[test]
fn links_are_bad_in_spells() {
    let mut network = network(|conditions| {
        conditions.loss_percent = 100;
        conditions.spell_us = 1_000;
    });
    let mut gets_through = |at| !network.route(Time(at), 0, 1, Lane::Votes).is_empty();
    for (at, fair) in [(0, false), (999, false), (1_000, true), (1_999, true), (2_000, false)] {
        assert_eq!(gets_through(at), fair, "at {at} µs");
    }
}

#[test]
fn a_lane_is_first_in_first_out() {
    let mut network = network(|_| ());
    let arrivals: Vec<_> =
        (0..200).flat_map(|i| network.route(Time(i * 10), 0, 1, Lane::Consensus)).collect();
    assert_eq!(arrivals.len(), 200);
    assert!(arrivals.is_sorted());
}

#[test]
fn reordering_overtakes() {
    let mut network = network(|conditions| conditions.reorder_percent = 30);
    let arrivals: Vec<_> =
        (0..200).flat_map(|i| network.route(Time(i * 10), 0, 1, Lane::Consensus)).collect();
    assert!(!arrivals.is_sorted());
}

#[test]
fn loss_and_duplicates_come_as_often_as_told() {
    let mut network = network(|conditions| {
        conditions.loss_percent = 30;
        conditions.duplicate_percent = 50;
    });
    let copies: Vec<_> = (0..1_000).map(|_| network.route(NOW, 0, 1, Lane::Bulk).len()).collect();
    let count = |n| copies.iter().filter(|copies| **copies == n).count();
    assert!((250..350).contains(&count(0)), "{} of 1000 lost", count(0));
    assert!((300..400).contains(&count(2)), "{} of 1000 twice", count(2));
}

#[test]
fn partitions_cut_what_their_shape_says_and_heal() {
    let side = 0b0011;
    let mut both = network(|_| ());
    both.partition(NOW, side, Shape::Symmetric, Duration::from_secs(1));
    assert!(!arrives(&mut both, 0, 2) && !arrives(&mut both, 2, 0) && arrives(&mut both, 0, 1));

    let mut one_way = network(|_| ());
    one_way.partition(NOW, side, Shape::OneWay, Duration::from_secs(1));
    assert!(!arrives(&mut one_way, 0, 2) && arrives(&mut one_way, 2, 0));

    let mut bridge = network(|_| ());
    bridge.partition(NOW, side, Shape::Bridge(3), Duration::from_secs(1));
    assert!(
        !arrives(&mut bridge, 0, 2) && arrives(&mut bridge, 0, 3) && arrives(&mut bridge, 3, 1)
    );

    let healed = NOW + Duration::from_secs(1);
    assert!(!both.route(healed, 0, 2, Lane::Votes).is_empty());
}

#[test]
fn a_clog_delays_and_loses_nothing() {
    let mut network = network(|_| ());
    network.clog(NOW, 0, 1, Duration::from_secs(2));
    let arrival = network.route(NOW, 0, 1, Lane::Votes);
    assert!(arrival[0] > NOW + Duration::from_secs(2));
    assert!(network.route(NOW, 1, 0, Lane::Votes)[0] < NOW + Duration::from_millis(10));
}

/// Over the first host in turn that reaches both ends, or not at all.
#[test]
fn what_a_cut_link_does_not_carry_goes_over_another_host() {
    let steady = || network(|conditions| conditions.jitter_us = 0);
    let cut = |relayed| {
        let cuts = Cuts { links: vec![(0, 2), (1, 3)], relayed };
        steady().with_cuts(cuts, 4)
    };
    let took = |network: &mut Network, from, to| -> Vec<u64> {
        let arrivals = network.route(NOW, from, to, Lane::Votes).into_iter();
        arrivals.map(|at| at.0 - NOW.0).collect()
    };
    let one = |from, to| took(&mut steady(), from, to)[0];
    for (from, to, relay) in [(0, 2, 3), (2, 0, 1), (1, 3, 0), (3, 1, 2)] {
        assert_eq!(took(&mut cut(true), from, to), [one(from, relay) + one(relay, to)]);
        assert!(took(&mut cut(false), from, to).is_empty());
    }
    assert_eq!(took(&mut cut(false), 0, 1), [one(0, 1)]);
}
