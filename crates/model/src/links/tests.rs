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

/// A frame of so many bytes, whatever is in it.
fn frame(bytes: usize) -> Rc<Frame> {
    let from = quorate_types::Peer::Replica(quorate_types::ReplicaId(0));
    let message = quorate_engine::Message::FetchBodies(Vec::new());
    let mut frame = Frame::new(0, from, None, &message, None);
    Rc::get_mut(&mut frame).expect("nobody else has it").bytes = bytes;
    frame
}

impl Links {
    /// Hands over a frame; returns when each that leaves with it arrives, and until when it is held
    /// back.
    fn hand_over(
        &mut self,
        now: Nanos,
        id: ConnectionId,
        bytes: usize,
    ) -> (Vec<Nanos>, Option<Nanos>) {
        let mut flights = Vec::new();
        let to = Destination::Validator(self.ends(id).1);
        let held = self.send(now, id, (to, frame(bytes)), &mut flights);
        (flights.iter().map(|flight| flight.arrives).collect(), held)
    }

    /// Hands over a frame to a validator whose windows are open; returns when it arrives.
    fn deliver(&mut self, now: Nanos, from: usize, to: usize, lane: Lane, bytes: usize) -> Nanos {
        let id = self.connection(from, Destination::Validator(to), lane);
        if self.host(from) != self.host(to) {
            self.connections[id.0].flow.get_or_insert_default().open();
        }
        let (arrivals, held) = self.hand_over(now, id, bytes);
        assert_eq!((arrivals.len(), held), (1, None));
        arrivals[0]
    }
}

#[test]
fn an_uplink_sends_one_frame_after_the_other() {
    let mut links = Links::new(&scene());
    assert_eq!(links.deliver(0, 0, 1, Lane::Bulk, MEGABYTE), 18 * MS);
    assert_eq!(links.deliver(0, 0, 2, Lane::Bulk, MEGABYTE), 26 * MS, "to another member too");
    assert_eq!(links.deliver(0, 1, 2, Lane::Bulk, MEGABYTE), 18 * MS, "another host has its own");
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
    links.deliver(0, 0, 1, Lane::Bulk, MEGABYTE);
    let vote = links.deliver(0, 0, 1, Lane::Votes, 125);
    assert_eq!(vote, 10 * MS + 1_000);
    // The body behind it yields what the vote took.
    assert_eq!(links.deliver(0, 0, 1, Lane::Bulk, MEGABYTE), 26 * MS + 1_000);
}

#[test]
fn nothing_overtakes_on_a_connection_and_delays_vary() {
    let mut scene = scene();
    let matrix = quorate_wan::Matrix::aws();
    let regions = ["us-east-1", "ap-southeast-2"].map(|name| matrix.region(name).unwrap());
    scene.topology = Topology::in_regions(matrix, &regions, 3);
    let mut links = Links::new(&scene);
    let arrivals: Vec<Nanos> =
        (0..200).map(|tenth| links.deliver(tenth * 100 * MS, 0, 1, Lane::Votes, 200)).collect();
    assert!(arrivals.windows(2).all(|pair| pair[0] <= pair[1]));
    let delays: Vec<Nanos> =
        (0_u64..).zip(&arrivals).map(|(tenth, arrival)| arrival - tenth * 100 * MS).collect();
    let (least, most) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
    assert!(*least > 90 * MS && most > least, "{least} to {most}");
}

#[test]
fn what_is_lost_comes_a_timeout_late() {
    let mut scene = scene();
    scene.loss = 0.5;
    let mut links = Links::new(&scene);
    let late = (0..1_000).filter(|number| {
        let now = number * 1_000 * MS;
        let took = links.deliver(now, 0, 1, Lane::Votes, 125) - now;
        assert!([10, 230].contains(&(took / MS)), "{took}");
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
    assert_eq!(links.deliver(50 * MS, 0, 1, Lane::Votes, 0), 60 * MS, "before");
    assert_eq!(links.deliver(200 * MS, 0, 1, Lane::Votes, 0), 510 * MS, "into it");
    assert_eq!(links.deliver(200 * MS, 1, 2, Lane::Votes, 0), 210 * MS, "on one side");
    assert_eq!(links.deliver(600 * MS, 1, 0, Lane::Votes, 0), 610 * MS, "after");
}

#[test]
fn on_one_host_nothing_passes_a_network_card() {
    let mut scene = scene();
    scene.host.validators_per_host = 3;
    let mut links = Links::new(&scene);
    assert_eq!(links.deliver(0, 0, 1, Lane::Bulk, MEGABYTE), 10 * MS);
    assert_eq!(links.receive(10 * MS, 0, 1, Lane::Bulk, MEGABYTE), 10 * MS);
}

/// Links of the reference, 10 ms each way without a card that takes time, and a connection.
fn with_nagle() -> (Links, ConnectionId) {
    let mut scene = scene().as_reference();
    scene.host.uplink_mbps = None;
    let links = Links::new(&scene);
    let id = links.connection(0, Destination::Validator(1), Lane::Votes);
    (links, id)
}

#[test]
fn what_is_held_back_leaves_when_what_was_before_it_is_acknowledged() {
    let (mut links, id) = with_nagle();
    // A round trip and the 20 ms for which its acknowledgement waits.
    assert_eq!(links.hand_over(0, id, 100), (vec![10 * MS], None), "the first");
    assert_eq!(links.hand_over(5 * MS, id, 100), (vec![], Some(40 * MS)));
    assert_eq!(links.hand_over(6 * MS, id, 100), (vec![], None), "it waits with the one before");
    let mut flights = Vec::new();
    links.release(40 * MS - 1, id, &mut flights);
    assert!(flights.is_empty(), "it is not time");
    links.release(40 * MS, id, &mut flights);
    let arrivals: Vec<Nanos> = flights.iter().map(|flight| flight.arrives).collect();
    assert_eq!(arrivals, [50 * MS, 50 * MS]);
    links.release(40 * MS, id, &mut flights);
    assert_eq!(flights.len(), 2, "they left once");
    // They were a small segment themselves.
    assert_eq!(links.hand_over(45 * MS, id, 100), (vec![], Some(80 * MS)));
}

#[test]
fn what_is_held_back_leaves_when_a_segment_is_full() {
    let (mut links, id) = with_nagle();
    links.hand_over(0, id, 100);
    assert_eq!(links.hand_over(5 * MS, id, 1_000), (vec![], Some(40 * MS)));
    // 448 bytes of it make a whole segment, and the other 1,000 wait in their turn.
    let (arrivals, held) = links.hand_over(7 * MS, id, SEGMENT_BYTES);
    assert_eq!((arrivals, held), (vec![17 * MS], Some(40 * MS)));
    let (arrivals, held) = links.hand_over(8 * MS, id, 448);
    assert_eq!((arrivals, held), (vec![18 * MS, 18 * MS], None), "nothing is behind it");
}

/// The moment of a release is none at which bytes could not leave yet, and what is lost is late.
#[test]
fn what_is_held_back_waits_for_its_window_and_what_it_lost() {
    let (mut links, id) = with_nagle();
    links.hand_over(0, id, 100);
    // 27 segments and a rest: ten now, the others a round trip later.
    let long = 27 * SEGMENT_BYTES + 10;
    assert_eq!(links.hand_over(50 * MS, id, long), (vec![80 * MS], None));
    links.paths.iter_mut().for_each(|path| path.loss = 0.999_999);
    let (_, held) = links.hand_over(72 * MS, id, 10);
    let until = held.expect("the one before ends with a small segment");
    let mut flights = Vec::new();
    links.release(until, id, &mut flights);
    assert_eq!(flights[0].arrives, until + 220 * MS + 10 * MS, "a timeout late");
}
