use super::{LeaderElection, RoundRobin};
use quorate_types::{ReplicaId, View};

#[test]
fn round_robin_takes_each_member_in_turn_from_view_1() {
    let leaders = RoundRobin::new(3);
    let named: Vec<u16> = (1..=7).map(|view| leaders.leader(View(view)).0).collect();
    assert_eq!(named, [0, 1, 2, 0, 1, 2, 0]);
    assert!(leaders.leader(View(u64::MAX)).0 < 3);
    assert_eq!(RoundRobin::new(1).leader(View(9)), ReplicaId(0));
}
