use super::*;
use crate::connections::testing::{Ends, connection};
use quorate_types::ReplicaId;

fn directly(ends: &Ends) -> Entry {
    Entry::new(ends.handle(), false)
}

#[tokio::test]
async fn a_newer_connection_takes_the_place_of_the_older() {
    let limits = ConnectionLimits::of(9);
    let (limiter, connected) =
        (ConnectionLimiter::new(limits, Default::default()), Connected::default());
    let peer = Peer::Replica(ReplicaId(1));
    let (older, newer) = (connection(&limiter).await, connection(&limiter).await);
    let (_, older_place) = connected.enter(peer, Lane::Votes, directly(&older));
    let other = connection(&limiter).await;
    let (replaces_other, _other_lane) = connected.enter(peer, Lane::Bulk, directly(&other));
    assert!(!older.is_cut());
    let (replaces, _newer_place) = connected.enter(peer, Lane::Votes, directly(&newer));
    assert!(older.is_cut());
    assert!(!newer.is_cut());
    assert_eq!((replaces_other, replaces), (false, true));
    drop(older_place);
    assert!(connected.0.lock().taken.contains_key(&(peer, Lane::Votes)), "the newer one stays");
}

#[test]
fn members_whose_connections_replace_each_other_are_named_once_a_minute() {
    let (replacements, began) = (Replacements::default(), Instant::now());
    let count = |member, after_s| {
        let at = began + Duration::from_secs(after_s);
        replacements.count(Peer::Replica(ReplicaId(member)), at)
    };
    let said = (0..20).filter(|after_s| count(1, *after_s)).count();
    assert_eq!(said, 1);
    assert!((0..5).all(|_| !count(2, 20)), "a restart is no news");
    let said = (61..81).filter(|after_s| count(1, *after_s)).count();
    assert_eq!(said, 1, "it goes on");
}

#[tokio::test]
async fn a_member_that_takes_another_way_is_one_process() {
    let limiter = ConnectionLimiter::new(ConnectionLimits::of(1), Default::default());
    let (ends, began) = (connection(&limiter).await, Instant::now());
    let at = |since, is_relayed| Entry { since, ..Entry::new(ends.handle(), is_relayed) };
    let goes_on = |is_relayed, span, then_relayed| {
        at(began, is_relayed).may_go_on_in(&at(began + span, then_relayed))
    };
    let soon = DIRECT_EVERY - Duration::from_millis(1);
    assert!(goes_on(false, Duration::ZERO, true), "lost the direct way");
    assert!(goes_on(true, DIRECT_EVERY, false), "found it again");
    assert!(!goes_on(true, soon, false), "nobody looked for it yet");
    for span in [soon, DIRECT_EVERY] {
        assert!(!goes_on(false, span, false));
        assert!(!goes_on(true, span, true));
    }
}
