use super::{Line, ROOM_BYTES_MIN};
use crate::{Matrix, Topology};
use proptest::prelude::*;
use std::time::Duration;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn line(delay: Duration, megabits: Option<u64>) -> Line<u32> {
    Line::new(Topology::uniform(2, delay).with_bandwidth(megabits).route(0, 1))
}

#[test]
fn things_arrive_after_the_delay() {
    let mut line = line(ms(50), None);
    line.push(ms(10), 100, 1);
    line.push(ms(15), 100, 2);
    assert_eq!(line.due(), Some(ms(60)));
    assert_eq!(line.pop(ms(59)), None);
    assert_eq!(line.pop(ms(60)), Some(1));
    assert_eq!((line.pop(ms(60)), line.due()), (None, Some(ms(65))));
    assert_eq!(line.pop(ms(100)), Some(2));
    assert!(line.is_empty());
}

#[test]
fn a_slow_link_sends_one_thing_after_another() {
    // 8 megabits a second: 1,000 bytes in a millisecond.
    let mut line = line(ms(50), Some(8));
    line.push(ms(0), 10_000, 1);
    line.push(ms(0), 10_000, 2);
    line.push(ms(100), 10_000, 3);
    assert_eq!(line.due(), Some(ms(60)));
    line.pop(ms(60));
    assert_eq!(line.due(), Some(ms(70)), "behind the first");
    line.pop(ms(70));
    assert_eq!(line.due(), Some(ms(160)), "the link was idle meanwhile");
}

#[test]
fn no_more_is_under_way_than_the_link_holds() {
    // 800 megabits a second for 50 ms: five million bytes.
    let mut line = line(ms(50), Some(800));
    let pushed = (0..1_000).take_while(|n| {
        let room = line.has_room();
        if room {
            line.push(ms(0), 10_000, *n);
        }
        room
    });
    assert_eq!(pushed.count(), 500);
    assert_eq!(line.pop(ms(51)), Some(0));
    assert!(line.has_room());
}

#[test]
fn even_the_shortest_link_holds_a_thing_of_any_size() {
    let mut line = line(ms(0), None);
    line.push(ms(0), 100 * ROOM_BYTES_MIN, 1);
    assert!(!line.has_room());
    assert_eq!(line.take_all().collect::<Vec<_>>(), [1]);
    assert!(line.has_room() && line.is_empty());
}

proptest! {
    #[test]
    fn nothing_overtakes(gaps in prop::collection::vec((0..200_u64, 0..20_000_usize), 1..60)) {
        let regions = ["us-east-1", "us-west-1"].map(|name| Matrix::aws().region(name).unwrap());
        let topology = Topology::in_regions(Matrix::aws(), &regions, 2).with_bandwidth(Some(50));
        let mut line = Line::new(topology.route(0, 1));
        let mut now = Duration::ZERO;
        for (index, (gap, bytes)) in gaps.iter().enumerate() {
            now += ms(*gap);
            line.push(now, *bytes, (index, now));
        }
        let mut before = Duration::ZERO;
        let floor = topology.latency(0, 1).quantile(0.0);
        for index in 0..gaps.len() {
            let due = line.due().unwrap();
            let (popped, pushed) = line.pop(due).unwrap();
            prop_assert_eq!(popped, index);
            prop_assert!(due >= before && due >= pushed + floor);
            before = due;
        }
        prop_assert!(line.is_empty() && line.has_room());
    }
}
