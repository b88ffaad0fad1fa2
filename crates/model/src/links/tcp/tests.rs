use super::*;

const MS: Nanos = 1_000_000;
const SEGMENT: f64 = SEGMENT_BYTES as f64;

/// A path of 100 ms.
const PATH: Path = Path { round_trip: 100 * MS, loss: 0.0 };

impl Flow {
    /// Sends on a path without loss; returns when the last byte leaves.
    fn leave(&mut self, at: Nanos, bytes: usize) -> Nanos {
        let sent = self.send(at, bytes, &PATH, &mut Rng::new(1, "tcp", 0));
        assert_eq!(sent.late, 0);
        sent.left
    }
}

#[test]
fn a_new_connection_doubles_its_window_each_round_trip() {
    // 10 + 20 + 40 segments in three bursts; the fourth begins after the third round trip.
    for (segments, round_trips) in [(10, 0), (11, 1), (30, 1), (31, 2), (70, 2), (71, 3)] {
        let left = Flow::default().leave(0, segments * SEGMENT_BYTES);
        assert_eq!(left, round_trips * 100 * MS, "{segments} segments");
    }
}

#[test]
fn a_window_that_is_open_takes_a_frame_at_once_until_it_was_idle() {
    let mut flow = Flow::default();
    assert_eq!(flow.leave(0, 150 * SEGMENT_BYTES), 300 * MS);
    let frame = 80 * SEGMENT_BYTES;
    // It was 80 segments and grew by the last 80 that it took.
    assert_eq!(flow.leave(500 * MS, frame), 500 * MS);
    assert_eq!(flow.window, 160.0 * SEGMENT);
    // One timeout of 300 ms, and then a minute.
    assert_eq!(flow.leave(900 * MS, frame), 900 * MS);
    assert_eq!(flow.window, 80.0 * SEGMENT);
    assert_eq!(flow.leave(60_000 * MS, frame), 60_300 * MS, "10, 20 and 40 segments before it");
}

/// Two thousand segments are 2.9 MB: less than the receiver takes.
#[test]
fn a_warm_connection_waits_for_its_receiver_alone() {
    let mut flow = Flow::begin(true);
    assert_eq!((flow.leave(0, 2_000 * SEGMENT_BYTES), flow.waited()), (0, 0));
    assert_eq!(flow.leave(0, 2_000 * SEGMENT_BYTES), 100 * MS);
    assert_eq!(flow.waited(), 100 * MS);
    let mut cold = Flow::begin(false);
    assert_eq!((cold.leave(0, 71 * SEGMENT_BYTES), cold.waited()), (300 * MS, 300 * MS));
}

/// What is not used does not open a window further.
#[test]
fn a_window_grows_to_twice_what_is_sent() {
    let mut flow = Flow::default();
    for number in 0..100 {
        flow.leave(number * 100 * MS, 20 * SEGMENT_BYTES);
    }
    assert!((30.0..=60.0).contains(&(flow.window / SEGMENT)), "{}", flow.window / SEGMENT);
}

#[test]
fn the_receivers_window_bounds_what_is_under_way() {
    let mut flow = Flow::default();
    let left = flow.leave(0, 64 << 20);
    let rate = f64::from(64 << 20) / (left as f64 / 1e9);
    // 3 MiB each 100 ms, but for the first eight round trips.
    assert!((23e6..=32e6).contains(&rate), "{rate}");
    let under_way: usize = flow.bursts.iter().map(|burst| burst.bytes).sum();
    assert_eq!((under_way, flow.window), (flow.under_way, RECEIVER_WINDOW));
}

/// CUBIC's mean windows under random loss (RFC 9438 §5.1, with C = 0.4), a round trip of 100 ms:
/// what is sent comes to them, within what chance and the first slow start leave open.
#[test]
fn losses_bound_the_rate_as_cubics_do() {
    for loss in [1e-4, 1e-5] {
        let path = Path { loss, ..PATH };
        let (mut flow, mut rng) = (Flow::default(), Rng::new(7, "tcp", 0));
        let (mut left, mut bytes) = (0, 0.0);
        while left < 4_000_000 * MS {
            left = flow.send(left, 100_000, &path, &mut rng).left;
            bytes += 100_000.0;
        }
        let window = bytes / SEGMENT / (left as f64 / 100e6);
        let mean = 1.054 * (0.1_f64 / loss).powf(0.75);
        assert!((0.75..1.25).contains(&(window / mean)), "{loss}: {window} for {mean}");
    }
}

/// Time in which little is sent opens no window (RFC 9438 §5.8).
#[test]
fn a_window_does_not_grow_while_it_is_not_used() {
    let lossy = Path { loss: 0.999_999, ..PATH };
    let (mut flow, mut rng) = (Flow::default(), Rng::new(1, "tcp", 0));
    flow.leave(0, 400 * SEGMENT_BYTES);
    flow.send(800 * MS, SEGMENT_BYTES, &lossy, &mut rng);
    flow.leave(1_000 * MS, SEGMENT_BYTES);
    let shrunk = flow.window;
    for number in 0..300 {
        flow.leave((1_100 + number * 100) * MS, SEGMENT_BYTES);
    }
    assert_eq!(flow.window, shrunk, "half a minute of small frames");
    let frame = 2_000 * SEGMENT_BYTES;
    let left = flow.leave(31_200 * MS, frame);
    assert!(left > 31_700 * MS, "{left}");
}

/// Linux's `tcp_cwnd_restart` keeps three quarters of the window as the threshold.
#[test]
fn after_a_loss_and_a_pause_slow_start_ends_at_three_quarters() {
    let lossy = Path { loss: 0.999_999, ..PATH };
    let mut flow = Flow::default();
    flow.leave(0, 150 * SEGMENT_BYTES);
    flow.send(350 * MS, SEGMENT_BYTES, &lossy, &mut Rng::new(1, "tcp", 0));
    flow.leave(500 * MS, SEGMENT_BYTES);
    let before = flow.window;
    assert_eq!(flow.threshold, before);
    // Ten segments, twenty, forty, and what is left of 130 within three quarters at the least.
    let left = flow.leave(60_000 * MS, 100 * SEGMENT_BYTES);
    assert_eq!(flow.threshold, before.max(0.75 * before));
    assert_eq!(left, 60_300 * MS);
}

#[test]
fn a_lost_packet_is_a_round_trip_late_or_a_timeout_where_nothing_follows() {
    let path = Path { loss: 0.99, ..PATH };
    let mut rng = Rng::new(1, "tcp", 0);
    let many = Flow::default().send(0, 8 * SEGMENT_BYTES, &path, &mut rng);
    assert_eq!(many, Sent { left: 0, late: 100 * MS });
    let mut flow = Flow::default();
    let one = flow.send(0, 100, &path, &mut rng);
    assert_eq!(one, Sent { left: 0, late: 300 * MS });
    // The window shrinks for what was sent before, once a round trip.
    flow.acknowledge(100 * MS, &path);
    assert_eq!(flow.window, 7.0 * SEGMENT);
    flow.send(100 * MS, 100, &path, &mut rng);
    flow.acknowledge(200 * MS, &path);
    assert!((flow.window / SEGMENT - 4.9).abs() < 1e-9, "{}", flow.window);
}

#[test]
fn a_small_segment_waits_for_the_one_before_alone() {
    let mut flow = Flow::default();
    assert_eq!(flow.leave(0, 3 * SEGMENT_BYTES), 0);
    assert_eq!(flow.holds(0), None, "only whole segments are under way");
    flow.end_small(0, &PATH);
    assert_eq!(flow.holds(30 * MS), Some(120 * MS));
    assert_eq!(flow.holds(120 * MS), None, "it is acknowledged");
}
