//! Heights that nobody has anything to order in (ADR 51).

use crate::Settings;
use crate::testing::net::{Lost, Net};
use quorate_consensus::ProtocolKind;
use quorate_types::Height;
use std::time::Duration;

const EVERY: Duration = Duration::from_millis(500);
const BEATS: u32 = 20;

/// Heights that members decide, by member, in a committee that nobody sends anything.
fn idle(protocol: ProtocolKind, heartbeat_ms: u64, lost: Lost) -> (Net, Vec<Height>) {
    let settings =
        Settings { protocol, heartbeat_ms, leader_reputation: false, ..Settings::default() };
    let mut net = Net::new(&settings, lost);
    let end = net.now + EVERY * BEATS;
    net.run_until(|net| net.now >= end);
    let decided = net.members.iter().map(|member| member.replica.schedule.decided()).collect();
    (net, decided)
}

fn none_lost() -> Lost {
    |_, _, _| false
}

/// No more of them than there are beats, whatever the protocol has under way at once; and as many
/// but for the last, which a chained protocol decides with the next.
#[test]
fn an_idle_committee_decides_a_height_each_time() {
    for protocol in ProtocolKind::ALL {
        let (net, decided) = idle(protocol, 500, none_lost());
        let fits = |height: &Height| (u64::from(BEATS) - 4..=u64::from(BEATS)).contains(&height.0);
        assert!(decided.iter().all(fits), "{protocol}: {decided:?}");
        let view_changes = |net: &Net| net.statuses().iter().map(|it| it.view_changes).sum::<u64>();
        assert_eq!(view_changes(&net), 0, "{protocol}");
    }
}

#[test]
fn without_a_heartbeat_it_decides_and_sends_nothing() {
    for protocol in ProtocolKind::ALL {
        let (mut net, decided) = idle(protocol, 0, none_lost());
        assert!(decided.iter().all(|height| *height == Height(0)), "{protocol}: {decided:?}");
        // Some say at the beginning where they stand.
        let (sent, end) = (net.sent.len(), net.now + EVERY * BEATS);
        net.run_until(|net| net.now >= end);
        assert!(net.sent[sent..].is_empty(), "{protocol}: {:?}", &net.sent[sent..]);
    }
}

/// A height that is owed is waited for: a dead leader's turn ends.
#[test]
fn a_dead_member_is_passed_over_for_a_heartbeat_too() {
    for protocol in ProtocolKind::ALL {
        for dead in [0, 1] {
            let lost: Lost = match dead {
                0 => |from, to, _| from == 0 || to == 0,
                _ => |from, to, _| from == 1 || to == 1,
            };
            let (_, decided) = idle(protocol, 500, lost);
            let alive = (0..4).filter(|member| *member != dead);
            let least = alive.map(|member| decided[member].0).min().expect("three");
            assert!(least > 1, "{protocol} without {dead}: {decided:?}");
        }
    }
}
