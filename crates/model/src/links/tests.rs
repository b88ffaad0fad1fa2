use super::*;
use crate::prices::Prices;
use crate::scene::HostProfile;

const MS: Nanos = 1_000_000;

/// Three members 10 ms apart, each on a host whose link takes a megabyte in 8 ms.
fn scene() -> Scene {
    let topology = Topology::uniform(3, Duration::from_millis(10));
    let mut scene = Scene::new(topology, 1_000.0, Prices::shipped("this-machine").unwrap());
    scene.host = HostProfile::cloud(1, 1_000.0);
    scene
}

const MEGABYTE: usize = 1_000_000;

#[test]
fn an_uplink_sends_one_frame_after_the_other() {
    let mut links = Links::new(&scene());
    assert_eq!(links.send(0, 0, 1, Lane::Bulk, MEGABYTE), 18 * MS);
    assert_eq!(links.send(0, 0, 2, Lane::Bulk, MEGABYTE), 26 * MS, "to another member too");
    assert_eq!(links.send(0, 1, 2, Lane::Bulk, MEGABYTE), 18 * MS, "another host has its own");
    assert_eq!(links.uplinks(Nanos::MAX).collect::<Vec<_>>(), [16 * MS, 8 * MS, 0]);
}

#[test]
fn a_downlink_takes_one_frame_after_the_other() {
    let mut links = Links::new(&scene());
    assert_eq!(links.receive(18 * MS, 0, 2, Lane::Bulk, MEGABYTE), 26 * MS);
    assert_eq!(links.receive(18 * MS, 1, 2, Lane::Bulk, MEGABYTE), 34 * MS);
}

#[test]
fn votes_do_not_wait_for_bodies() {
    let mut links = Links::new(&scene());
    links.send(0, 0, 1, Lane::Bulk, MEGABYTE);
    let vote = links.send(0, 0, 1, Lane::Votes, 125);
    assert_eq!(vote, 10 * MS + 1_000);
    // The body behind it yields what the vote took.
    assert_eq!(links.send(0, 0, 1, Lane::Bulk, MEGABYTE), 26 * MS + 1_000);
}

#[test]
fn nothing_overtakes_on_a_connection_and_delays_vary() {
    let mut scene = scene();
    let matrix = quorate_wan::Matrix::aws();
    let regions = ["us-east-1", "ap-southeast-2"].map(|name| matrix.region(name).unwrap());
    scene.topology = Topology::in_regions(matrix, &regions, 3);
    let mut links = Links::new(&scene);
    let arrivals: Vec<Nanos> =
        (0..200).map(|tenth| links.send(tenth * 100 * MS, 0, 1, Lane::Votes, 200)).collect();
    assert!(arrivals.windows(2).all(|pair| pair[0] <= pair[1]));
    let delays: Vec<Nanos> =
        (0_u64..).zip(&arrivals).map(|(tenth, arrival)| arrival - tenth * 100 * MS).collect();
    let (least, most) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
    assert!(*least > 90 * MS && most > least, "{least} to {most}");
}

#[test]
fn what_is_lost_comes_a_round_trip_late() {
    let mut scene = scene();
    scene.loss = 0.5;
    let mut links = Links::new(&scene);
    let late = (0..1_000).filter(|number| {
        let now = number * 1_000 * MS;
        let took = links.send(now, 0, 1, Lane::Votes, 125) - now;
        assert!([10, 30].contains(&(took / MS)), "{took}");
        took > 20 * MS
    });
    let late = late.count();
    assert!((400..600).contains(&late), "{late}");
}

#[test]
fn a_partition_holds_frames_back_until_it_ends() {
    let mut scene = scene();
    let (at, duration) = (Duration::from_millis(100), Duration::from_millis(400));
    scene.partitions = vec![Partition { members: vec![0], at, duration }];
    let mut links = Links::new(&scene);
    assert_eq!(links.send(50 * MS, 0, 1, Lane::Votes, 0), 60 * MS, "before");
    assert_eq!(links.send(200 * MS, 0, 1, Lane::Votes, 0), 510 * MS, "into it");
    assert_eq!(links.send(200 * MS, 1, 2, Lane::Votes, 0), 210 * MS, "on one side");
    assert_eq!(links.send(600 * MS, 1, 0, Lane::Votes, 0), 610 * MS, "after");
}

#[test]
fn on_one_host_nothing_passes_a_network_card() {
    let mut scene = scene();
    scene.host.validators_per_host = 3;
    let mut links = Links::new(&scene);
    assert_eq!(links.send(0, 0, 1, Lane::Bulk, MEGABYTE), 10 * MS);
    assert_eq!(links.receive(10 * MS, 0, 1, Lane::Bulk, MEGABYTE), 10 * MS);
}
