use super::*;
use quorate_types::ReplicaId;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

fn is_cut(accepted: &AcceptedConnection) -> bool {
    let leaving = pin!(accepted.leave.notified());
    leaving.poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn the_oldest_stranger_gives_way() {
    let pending = Pending::new(2);
    let (first, _) = pending.enter();
    let (second, crowded) = pending.enter();
    assert!(!crowded);
    let (third, crowded) = pending.enter();
    assert!(crowded);
    assert!(is_cut(&first));
    assert!(!is_cut(&second) && !is_cut(&third));
    pending.leave(&second);
    assert!(!pending.enter().1);
}

#[test]
fn a_newer_connection_takes_the_place_of_the_older() {
    let (pending, connected) = (Pending::new(9), Connected::default());
    let peer = Peer::Replica(ReplicaId(1));
    let (older, newer) = (pending.enter().0, pending.enter().0);
    let older_place = connected.enter(peer, Lane::Votes, &older);
    let _other_lane = connected.enter(peer, Lane::Bulk, &pending.enter().0);
    assert!(!is_cut(&older));
    let _newer_place = connected.enter(peer, Lane::Votes, &newer);
    assert!(is_cut(&older));
    drop(older_place);
    assert!(connected.0.lock().contains_key(&(peer, Lane::Votes)), "the newer one stays");
}
