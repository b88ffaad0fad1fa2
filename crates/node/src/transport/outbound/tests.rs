use super::*;

#[test]
fn waits_grow_to_two_seconds_and_differ() {
    let mut backoff = Backoff::new();
    let waits: Vec<_> = (0..10).map(|_| backoff.next()).collect();
    assert!(waits[0] >= BACKOFF_MIN / 2 && waits[0] <= BACKOFF_MIN);
    assert!(waits[9] >= BACKOFF_MAX / 2 && waits[9] <= BACKOFF_MAX);
    backoff.reset();
    assert!(backoff.next() <= BACKOFF_MIN);
}
