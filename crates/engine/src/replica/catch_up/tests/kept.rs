//! What of its own it tells the host to let go, and what it knows of an earlier run.

use super::{asked, executed, start};
use crate::replica::Replica;
use crate::replica::tests::{NOW, effects, give, stores};
use crate::testing::body;
use crate::testing::history::History;
use crate::{Incoming, Message, Settings};
use quorate_types::machine::{DecidedRecord, ExecutedUpTo, Recovery, Release, SnapshotsOnDisk};
use quorate_types::{Effect, Event, Height, Machine, Peer, ReplicaId};
use std::sync::Arc;

fn releases(replica: &mut Replica) -> Vec<Release> {
    let release = |effect| match effect {
        Effect::Release(release) => Some(release),
        _ => None,
    };
    asked(replica).others.into_iter().filter_map(release).collect()
}

/// Heights that an earlier run executed durably: their bodies may go, and are not taken again.
#[test]
fn bodies_of_an_earlier_run_are_released_and_not_taken_again() {
    let bodies: Vec<_> = (1..=4).map(|height| body(0, height, 10)).collect();
    let names: Vec<_> = bodies.iter().map(|body| body.reference).collect();
    let of = |height: u64| names[usize::try_from(height - 1).expect("few")];
    let history = History::new(1..=3, |height| vec![of(height)]);
    let record = |height| DecidedRecord { height: Height(height), bytes: history.record(height) };
    let executed = ExecutedUpTo { recent: vec![record(2), record(3)], ..executed(&history, 3) };
    let recovery =
        Recovery { executed: Some(executed), bodies: names[1..3].to_vec(), ..Recovery::default() };
    let mut replica = start(1, Settings::default(), recovery);
    let bodies_of = |height| (Height(height), vec![of(height)]);
    let expected = Release { below: Height(0), bodies: vec![bodies_of(2), bodies_of(3)] };
    assert_eq!(releases(&mut replica), [expected]);
    for (copy, is_new) in bodies.iter().zip([true, false, false, true]) {
        give(&mut replica, Peer::Replica(ReplicaId(0)), &Message::Body(Arc::clone(copy)));
        let stored = !stores(&effects(&mut replica)).is_empty();
        assert_eq!(stored, is_new, "{:?}", copy.reference);
    }
}

/// Snapshots of these heights are complete.
fn complete(heights: &[u64]) -> Event<Incoming> {
    let heights = heights.iter().copied().map(Height).collect();
    Event::Snapshotted(SnapshotsOnDisk { heights, newest_bytes: 0 })
}

/// Records are released below the older snapshot, as far as what is executed is durable, and each
/// height once.
#[test]
fn records_are_released_below_the_older_snapshot() {
    let history = History::empty(1..=9);
    let recovery = Recovery { executed: Some(executed(&history, 9)), ..Recovery::default() };
    let mut replica = start(1, Settings::default(), recovery);
    assert_eq!(releases(&mut replica), [], "there is no snapshot");
    let mut release = |event| {
        replica.handle(NOW, event);
        releases(&mut replica).iter().map(|release| release.below.0).collect::<Vec<_>>()
    };
    assert_eq!(release(Event::Durable(Height(5))), [], "it was durable further than that");
    assert_eq!(release(complete(&[4, 8])), [4]);
    assert_eq!(release(complete(&[4, 8])), []);
    assert_eq!(release(complete(&[8, 12])), [8]);
    assert_eq!(release(complete(&[12])), [9], "no more is durable");
    assert_eq!(release(Event::Durable(Height(10))), [10]);
    assert_eq!(release(Event::Durable(Height(20))), [12]);
    assert_eq!(release(Event::Durable(Height(21))), []);
}
