use super::*;
use crate::connections::testing::connection;
use quorate_types::ReplicaId;

#[tokio::test]
async fn a_newer_connection_takes_the_place_of_the_older() {
    let limits = ConnectionLimits::of(9);
    let (limiter, connected) =
        (ConnectionLimiter::new(limits, Default::default()), Connected::default());
    let peer = Peer::Replica(ReplicaId(1));
    let (older, newer) = (connection(&limiter).await, connection(&limiter).await);
    let older_place = connected.enter(peer, Lane::Votes, older.handle());
    let other = connection(&limiter).await;
    let _other_lane = connected.enter(peer, Lane::Bulk, other.handle());
    assert!(!older.is_cut());
    let _newer_place = connected.enter(peer, Lane::Votes, newer.handle());
    assert!(older.is_cut());
    assert!(!newer.is_cut());
    drop(older_place);
    assert!(connected.0.lock().taken.contains_key(&(peer, Lane::Votes)), "the newer one stays");
}
