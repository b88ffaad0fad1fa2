use super::{Capacity, Limits, Mempool, Refusal};
use crate::flow::Flow;
use crate::testing::request;
use crate::{FlowControl, Sealing};
use quorate_types::{ReplicaId, Time};
use std::time::Duration;

const DELAY: Duration = Duration::from_millis(5);

fn limits(batch_bytes: usize, bytes_max: usize) -> Limits {
    Limits {
        capacity: Capacity { bytes: batch_bytes, operations: usize::MAX },
        batch_delay: DELAY,
        sealing: Sealing::Delay,
        bytes_max,
        window_max: 1 << 20,
        filters: true,
        flow_control: FlowControl::Delay,
        slack: 10 * DELAY,
    }
}

fn mempool(batch_bytes: usize, bytes_max: usize) -> Mempool {
    Mempool::new(ReplicaId(2), 3, limits(batch_bytes, bytes_max))
}

#[test]
fn with_nothing_under_way_a_body_is_sealed_at_once() {
    let mut pool = mempool(10_000, 100_000);
    assert!(pool.seal(Time(0)).is_none());
    pool.admit(Time(0), request(1, 10)).unwrap();
    let body = pool.seal(Time(0)).unwrap();
    assert_eq!((body.reference.author, body.reference.sequence), (ReplicaId(2), 3 << 40));
    assert_eq!(body.requests.len(), 1);
}

#[test]
fn with_a_body_under_way_the_next_waits_until_it_is_full_or_old() {
    let mut pool = mempool(1_000, 100_000);
    pool.admit(Time(0), request(1, 10)).unwrap();
    let first = pool.seal(Time(0)).unwrap();
    pool.admit(Time(10), request(2, 10)).unwrap();
    assert!(pool.seal(Time(10)).is_none());
    assert_eq!(pool.deadline(), Some(Time(5_010)));
    assert_eq!(pool.seal(Time(5_010)).unwrap().requests.len(), 1, "it is old");
    for sequence in 3..6 {
        pool.admit(Time(6_000), request(sequence, 400)).unwrap();
    }
    let full = pool.seal(Time(6_000)).expect("it is full");
    assert!(full.raw.len() <= 1_000 && full.requests.len() == 1);
    pool.executed(Time(9), &first);
    assert_eq!(full.reference.sequence, (3 << 40) + 2, "numbers go up by one");
}

/// What costs its receivers much more than its bytes comes to them in small parts.
#[test]
fn a_body_takes_no_more_than_half_of_the_window() {
    let mut pool = mempool(1 << 20, 1 << 20);
    for sequence in 0..60 {
        pool.admit(Time(0), request(sequence, 4_000)).unwrap();
    }
    let half = pool.flow.window() / 2;
    let body = pool.seal(Time(0)).unwrap();
    assert!((half / 2..=half).contains(&body.raw.len()), "{} of {half}", body.raw.len());
}

#[test]
fn a_body_takes_no_more_operations_than_it_may() {
    let capacity = Capacity { bytes: 10_000, operations: 3 };
    let limits = Limits { capacity, ..limits(10_000, 100_000) };
    let mut pool = Mempool::new(ReplicaId(2), 3, limits);
    for sequence in 0..8 {
        pool.admit(Time(0), request(sequence, 10)).unwrap();
    }
    let mut sealed = |now| pool.seal(now).map(|body| body.operations());
    assert_eq!(sealed(Time(0)), Some(3));
    assert_eq!(sealed(Time(0)), Some(3), "it is full");
    assert_eq!(sealed(Time(0)), None);
    assert_eq!(sealed(Time(0) + DELAY), Some(2), "it is old");
}

#[test]
fn on_demand_nothing_is_sealed_for_its_age_and_full_bodies_keep_their_distance() {
    let limits = Limits { sealing: Sealing::Demand, ..limits(1_000, 100_000) };
    let mut pool = Mempool::new(ReplicaId(2), 3, limits);
    assert_eq!(pool.seal_on_demand(Time(0)).unwrap().map(|body| body.operations()), None);
    pool.admit(Time(0), request(0, 10)).unwrap();
    assert!(pool.seal(Time(0) + 2 * DELAY).is_none() && pool.deadline().is_none(), "it is old");
    let asked = Time(0) + 2 * DELAY;
    assert_eq!(pool.seal_on_demand(asked).unwrap().unwrap().requests.len(), 1);
    for sequence in 1..6 {
        pool.admit(asked, request(sequence, 350)).unwrap();
    }
    assert_eq!(pool.seal(asked).expect("it is full").requests.len(), 2);
    assert!(pool.seal(asked).is_none(), "it is full, and too soon");
    assert_eq!(pool.deadline(), Some(asked + DELAY));
    assert_eq!(pool.seal_on_demand(asked).unwrap_err(), asked + DELAY);
    assert_eq!(pool.seal(asked + DELAY).expect("it has rested").requests.len(), 2);
    assert!(pool.seal(asked + 3 * DELAY).is_none(), "one is left");
    assert_eq!(pool.seal_on_demand(asked + 3 * DELAY).unwrap().unwrap().requests.len(), 1);
}

#[test]
fn what_a_batch_throws_away_is_missed() {
    use quorate_crypto::mutants::{self, Mutant};
    mutants::assert_noticed(
        Mutant::HotStuffDropBeyondBatch,
        a_body_takes_no_more_operations_than_it_may,
    );
}

/// Of what came to two members at once neither knew of the other when it came.
#[test]
fn what_another_body_carries_is_sealed_again_only_without_the_filter() {
    for (filters, expected) in [(true, vec![4]), (false, vec![4, 5, 6])] {
        let limits = Limits { filters, ..limits(10_000, 100_000) };
        let mut pool = Mempool::new(ReplicaId(2), 3, limits);
        let mut other = Mempool::new(ReplicaId(1), 3, limits);
        pool.admit(Time(0), request(1, 10)).unwrap();
        let under_way = pool.seal(Time(0)).unwrap();
        for sequence in 4..6 {
            pool.admit(Time(1), request(sequence, 10)).unwrap();
        }
        for sequence in 5..8 {
            other.admit(Time(1), request(sequence, 10)).unwrap();
        }
        let elsewhere = other.seal(Time(1)).unwrap();
        pool.note(&elsewhere);
        pool.admit(Time(1), request(6, 10)).unwrap();
        let body = pool.seal(Time(0) + 2 * DELAY).unwrap();
        let sequences: Vec<u64> = body.requests.iter().map(|request| request.sequence).collect();
        assert_eq!(sequences, expected);
        for done in [&under_way, &elsewhere, &body] {
            pool.executed(Time(9_000), done);
        }
        assert_eq!(pool.bytes(), 0, "nothing is counted twice or for ever");
    }
}

#[test]
fn a_repeat_is_dropped_until_it_is_executed() {
    let mut pool = mempool(10_000, 100_000);
    for _ in 0..3 {
        pool.admit(Time(0), request(1, 10)).unwrap();
    }
    let body = pool.seal(Time(0)).unwrap();
    assert_eq!(body.requests.len(), 1);
    pool.admit(Time(0), request(1, 10)).unwrap();
    assert!(pool.seal(Time(0) + DELAY).is_none());
    pool.executed(Time(9), &body);
    assert_eq!(pool.bytes(), 0);
    pool.admit(Time(9), request(1, 10)).unwrap();
    assert!(pool.seal(Time(9)).is_some());
}

/// The arrivals of what this author took, and of nothing that it only heard of.
#[test]
fn an_executed_body_tells_when_its_requests_arrived() {
    let mut pool = mempool(10_000, 100_000);
    pool.admit(Time(7), request(1, 10)).unwrap();
    let body = quorate_types::Body::seal(ReplicaId(1), 5, &[request(1, 10), request(2, 10)]);
    pool.note(&body);
    assert_eq!(pool.executed(Time(9), &body), [Time(7)]);
    assert_eq!(pool.executed(Time(9), &body), [], "once");
}

#[test]
fn a_full_pool_refuses_until_something_is_executed() {
    let mut pool = mempool(1_000, 2_000);
    let mut taken = 0;
    while pool.admit(Time(0), request(taken, 500)).is_ok() {
        taken += 1;
    }
    assert_eq!(taken, 3);
    assert_eq!(pool.admit(Time(0), request(99, 500)), Err(Refusal::Full));
    assert!(pool.bytes() <= 2_000);
    let body = pool.seal(Time(0)).unwrap();
    pool.executed(Time(9), &body);
    assert_eq!(pool.admit(Time(0), request(99, 500)), Ok(()));
}

/// A request that another author's body carried too is not counted twice when it is executed twice.
#[test]
fn a_request_executed_elsewhere_leaves_the_count_right() {
    let mut pool = mempool(10_000, 100_000);
    pool.admit(Time(0), request(1, 10)).unwrap();
    let elsewhere = crate::testing::body(0, 1, 10);
    pool.executed(Time(9), &elsewhere);
    assert_eq!(pool.bytes(), 0);
    let own = pool.seal(Time(0)).unwrap();
    pool.executed(Time(9), &own);
    assert_eq!(pool.bytes(), 0);
}

/// Own bodies that a snapshot skipped are not under way for ever.
#[test]
fn what_was_skipped_makes_room() {
    let mut mempool = mempool(1, 10_000);
    mempool.admit(Time(0), request(1, 10)).unwrap();
    let first = mempool.seal(Time(0)).unwrap();
    mempool.admit(Time(0), request(2, 10)).unwrap();
    mempool.admit(Time(0), request(1, 10)).unwrap();
    mempool.skipped(&first);
    assert!(mempool.flow.is_idle());
    assert_eq!(mempool.bytes(), request(2, 10).raw().len());
    assert!(mempool.seal(Time(0)).is_some());
    mempool.admit(Time(0), request(1, 10)).unwrap();
    assert!(mempool.bytes() > request(2, 10).raw().len(), "it may be asked again");
}

fn request_of(client: u8, sequence: u64, bytes: usize) -> quorate_types::Request {
    let operation = bytes::Bytes::from(vec![7; bytes]);
    let secret = quorate_crypto::IdentitySecret::from_seed([client; 32]);
    let network = crate::testing::committee().network();
    quorate_types::Request::sign(&secret, network, sequence, &[operation]).expect("within limits")
}

#[test]
fn while_the_window_is_full_requests_wait_and_nothing_is_due() {
    let window = Limits { window_max: 256 * 1024, ..limits(10_000, 1 << 20) };
    let mut pool = Mempool::new(ReplicaId(2), 3, window);
    let mut sealed = Vec::new();
    for sequence in 0..60 {
        pool.admit(Time(0), request(sequence, 9_000)).unwrap();
        sealed.extend(pool.seal(Time(0)));
    }
    assert!(sealed.len() < 31, "{} bodies of 9 kB in a window of 256 KiB", sealed.len());
    assert_eq!(pool.deadline(), None);
    assert!(pool.seal(Time(60_000_000)).is_none());
    pool.executed(Time(1_000), &sealed[0]);
    assert!(pool.seal(Time(1_000)).is_some(), "room again");
}

/// One client that floods is told so; others still find room.
#[test]
fn when_room_is_scarce_nobody_has_more_than_an_equal_share() {
    let mut pool = mempool(1_000, 100_000);
    pool.admit(Time(0), request_of(9, 0, 100)).unwrap();
    let refused = (0..200).map(|sequence| pool.admit(Time(0), request_of(1, sequence, 900)));
    let refusal = refused.into_iter().find_map(Result::err);
    assert_eq!(refusal, Some(Refusal::Share));
    for client in 2..6 {
        assert_eq!(pool.admit(Time(0), request_of(client, 0, 900)), Ok(()), "client {client}");
    }
    assert_eq!(pool.admit(Time(0), request_of(9, 1, 900)), Ok(()), "under its share");
    assert_eq!(pool.admit(Time(0), request_of(1, 999, 900)), Err(Refusal::Share));
}

/// A request of exactly so many bytes.
fn request_sized(client: u8, sequence: u64, bytes: usize) -> quorate_types::Request {
    let overhead = request_of(client, sequence, 0).raw().len();
    let request = request_of(client, sequence, bytes - overhead);
    assert_eq!(request.raw().len(), bytes);
    request
}

/// Bounds of shares, exact: up to half of the room anybody may have it; beyond that nobody more
/// than an equal part, but for a newcomer's first request.
#[test]
fn shares_bind_from_half_of_the_room_on() {
    let mut pool = mempool(1_000, 100_000);
    for client in 2..6 {
        pool.admit(Time(0), request_sized(client, 0, 1_000)).unwrap();
    }
    for sequence in 0..46 {
        pool.admit(Time(0), request_sized(1, sequence, 1_000)).expect("no more than half");
    }
    assert_eq!(pool.bytes(), 50_000);
    assert_eq!(pool.admit(Time(0), request_sized(1, 99, 1_000)), Err(Refusal::Share));
    for sequence in 1..20 {
        pool.admit(Time(0), request_sized(2, sequence, 1_000)).expect("no more than a fifth");
    }
    assert_eq!(pool.admit(Time(0), request_sized(2, 99, 1_000)), Err(Refusal::Share));
    assert_eq!(pool.admit(Time(0), request_sized(7, 0, 25_000)), Ok(()), "the first of its own");
    assert_eq!(pool.admit(Time(0), request_sized(8, 0, 6_001)), Err(Refusal::Full));
    assert_eq!(pool.admit(Time(0), request_sized(8, 0, 6_000)), Ok(()), "to the last byte");
    assert_eq!(pool.bytes(), 100_000);
}

const KIB: usize = 1_024;

/// Admits requests of 64 KiB, sealing none, until one is refused; gives their number.
fn fill(pool: &mut Mempool, from: u64) -> u64 {
    let mut admit = |sequence: u64| pool.admit(Time(1), request_sized(1, sequence, 64 * KIB));
    let full = (from..).find(|sequence| admit(*sequence) == Err(Refusal::Full));
    assert_eq!(pool.admit(Time(1), request_sized(2, 0, 300)), Err(Refusal::Full), "to the end");
    full.expect("it is full") - from
}

/// Where bodies are large two of them may wait to be sealed, and as much as the window besides.
#[test]
fn two_bodies_may_wait_and_a_window_beside_them() {
    let large = || mempool(KIB * KIB, usize::MAX);
    assert_eq!(fill(&mut large(), 0), 32, "two mebibytes wait");
    // What is sealed waits no longer.
    let mut pool = large();
    pool.admit(Time(0), request_sized(1, 0, 64 * KIB)).unwrap();
    assert!(pool.seal(Time(0)).is_some());
    assert_eq!(fill(&mut pool, 1), 32);
    // With half a mebibyte under way, all that the window has.
    let mut pool = large();
    pool.flow = Flow::fixed(KIB * KIB / 2);
    for sequence in 0..16 {
        pool.admit(Time(0), request_sized(1, sequence, 64 * KIB)).unwrap();
    }
    let sealed = std::iter::from_fn(|| pool.seal(Time(0)));
    assert_eq!(sealed.map(|body| body.raw.len()).sum::<usize>(), KIB * KIB / 2);
    assert_eq!(fill(&mut pool, 16), 24, "two mebibytes and a half in all");
}

/// Another body that carries nothing but what waits here has it dropped here.
#[test]
fn what_another_body_carries_alone_is_dropped() {
    let (mut pool, mut other) = (mempool(10_000, 100_000), mempool(10_000, 100_000));
    pool.admit(Time(0), request(1, 10)).unwrap();
    pool.seal(Time(0)).unwrap();
    pool.admit(Time(0), request(2, 10)).unwrap();
    other.author = ReplicaId(1);
    other.admit(Time(0), request(2, 10)).unwrap();
    pool.note(&other.seal(Time(0)).unwrap());
    assert!(pool.seal(Time(0) + 2 * DELAY).is_none());
}
