use super::{Limits, Mempool, Refusal};
use crate::testing::request;
use quorate_types::{ReplicaId, Time};
use std::time::Duration;

const DELAY: Duration = Duration::from_millis(5);

fn limits(batch_bytes: usize, bytes_max: usize) -> Limits {
    Limits {
        batch_bytes,
        batch_delay: DELAY,
        bytes_max,
        window_max: 1 << 20,
        slack: Some(10 * DELAY),
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
    pool.decided(Time(9), &first);
    assert_eq!(full.reference.sequence, (3 << 40) + 2, "numbers go up by one");
}

#[test]
fn a_repeat_is_dropped_until_it_is_decided() {
    let mut pool = mempool(10_000, 100_000);
    for _ in 0..3 {
        pool.admit(Time(0), request(1, 10)).unwrap();
    }
    let body = pool.seal(Time(0)).unwrap();
    assert_eq!(body.requests.len(), 1);
    pool.admit(Time(0), request(1, 10)).unwrap();
    assert!(pool.seal(Time(0) + DELAY).is_none());
    pool.decided(Time(9), &body);
    assert_eq!(pool.bytes(), 0);
    pool.admit(Time(9), request(1, 10)).unwrap();
    assert!(pool.seal(Time(9)).is_some());
}

#[test]
fn a_full_pool_refuses_until_something_is_decided() {
    let mut pool = mempool(1_000, 2_000);
    let mut taken = 0;
    while pool.admit(Time(0), request(taken, 500)).is_ok() {
        taken += 1;
    }
    assert_eq!(taken, 3);
    assert_eq!(pool.admit(Time(0), request(99, 500)), Err(Refusal::Full));
    assert!(pool.bytes() <= 2_000);
    let body = pool.seal(Time(0)).unwrap();
    pool.decided(Time(9), &body);
    assert_eq!(pool.admit(Time(0), request(99, 500)), Ok(()));
}

/// What another author's body carried too is not counted twice when it is decided twice.
#[test]
fn a_request_decided_elsewhere_leaves_the_count_right() {
    let mut pool = mempool(10_000, 100_000);
    pool.admit(Time(0), request(1, 10)).unwrap();
    let elsewhere = crate::testing::body(0, 1, 10);
    pool.decided(Time(9), &elsewhere);
    assert_eq!(pool.bytes(), 0);
    let own = pool.seal(Time(0)).unwrap();
    pool.decided(Time(9), &own);
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
    let chain = crate::testing::committee().chain();
    quorate_types::Request::sign(&secret, chain, sequence, &[operation]).expect("within limits")
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
    pool.decided(Time(1_000), &sealed[0]);
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
