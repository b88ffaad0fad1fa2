//! Four replicas: what is decided, proposed and passed over.

use crate::testing::config;
use crate::testing::net::{ALL, LATENCY, Net};
use crate::{GivenUpFor, Message, Replica, Settings, Status};
use quorate_consensus::ProtocolKind;
use quorate_types::machine::Recovery;
use quorate_types::{Effect, Event, Height, Machine, ReplicaId, Time};
use std::time::Duration;

/// Every decided height goes to the log once, in its order; not again after a restart.
#[test]
fn decided_heights_are_appended_once() {
    let mut net = Net::new(&Settings::default(), |_, _, _| false);
    net.serve(6, &ALL);
    for member in &net.members {
        let heights = member.appended.iter().map(|record| record.height);
        assert!(heights.eq((1..=member.replica.status().decided.0).map(Height)));
    }
    let decided = net.members[1].appended.clone();
    let mut again = Replica::new(config(1, Settings::default()));
    let recovery = Recovery { decided, ..Recovery::default() };
    again.handle(Time(0), Event::Recovered(Box::new(recovery)));
    assert!(again.status().decided > Height(0), "it knows what was decided");
    let mut effects = std::iter::from_fn(|| again.poll());
    assert!(!effects.any(|effect| matches!(effect, Effect::Append(_))));
}

/// Inline proposals bring bodies; one that orders nothing is sent as any other.
#[test]
fn a_proposal_of_nothing_is_not_inline() {
    let settings = Settings { inline_bodies: true, ..Settings::default() };
    let mut net = Net::new(&settings, |_, _, _| false);
    net.serve(6, &ALL);
    let (mut inline, mut empty) = (0, 0);
    for (_, _, message) in &net.sent {
        match message {
            Message::Inline(_, bodies) => {
                assert!(!bodies.is_empty());
                inline += 1;
            }
            Message::Consensus(message) if message.proposed_bodies() == Some(&[][..]) => empty += 1,
            _ => {}
        }
    }
    assert!(inline > 0 && empty > 0, "{inline} {empty}");
}

/// Each sees the others' votes and turns, and how long decisions and its own requests take.
#[test]
fn contributions_and_latencies_are_counted() {
    let mut net = Net::new(&Settings::default(), |_, _, _| false);
    net.serve(60, &ALL);
    // The last height is handed to execution, and not back yet.
    let until = net.now + 3 * LATENCY;
    while net.now < until {
        net.step();
    }
    for (id, status) in net.statuses().iter().enumerate() {
        let counted = &status.contributions;
        let votes: u64 = counted.members().iter().map(|member| u64::from(member.votes)).sum();
        let certificates = counted.certificates() as u64;
        assert!(certificates > 0 && votes >= 3 * certificates, "{counted:?}");
        assert!(counted.members().iter().all(|member| member.turns > 0), "{counted:?}");
        assert_eq!(counted.given_up_total(), 0);
        assert!(status.decision_latency.count() > 0);
        assert!(status.decision_latency.sum_seconds() > 0.0);
        assert_eq!(status.request_latency.count(), if id < 3 { 20 } else { 0 }, "member {id}");
    }
}

/// A member that says nothing votes nowhere, and the views that it leads are given up.
#[test]
fn the_turns_of_a_dead_member_fail() {
    let mut net = Net::new(&Settings::default(), |from, to, _| from == 3 || to == 3);
    net.serve(60, &[0, 1, 2]);
    for status in &net.statuses()[..3] {
        let counted = &status.contributions;
        let dead = counted.members()[3];
        assert_eq!((dead.votes, dead.turns_failed > 0), (0, true), "{counted:?}");
        let mut given_up = counted.given_up();
        assert!(given_up.all(|one| one.reason == GivenUpFor::Timeout), "{counted:?}");
        assert!(counted.given_up().any(|one| one.leader == ReplicaId(3)), "{counted:?}");
    }
}

/// Serves member 2's clients for so long, while nobody's word of member 0's body reaches the
/// primary.
fn passed_over(span: Duration) -> Net {
    let settings = Settings { protocol: ProtocolKind::Pbft, ..Settings::default() };
    let mut net = Net::new(&settings, |from, to, message| match message {
        Message::Body(_) => (from, to) == (0, 1),
        Message::Announce(_) => to == 1,
        _ => false,
    });
    assert_eq!(net.statuses()[0].leader, ReplicaId(1));
    net.submit(0, 0);
    let end = net.now + span;
    let mut sequence = 1;
    while net.now < end {
        net.submit(2, sequence);
        sequence += 1;
        let until = net.now + Duration::from_millis(100);
        while net.now < until {
            net.step();
        }
    }
    net
}

/// ★ A primary that keeps ordering what is younger, and never one member's body, is replaced: after
/// as long as every honest primary would have had it.
#[test]
fn a_primary_that_passes_a_body_over_is_replaced() {
    let views = |net: &Net| net.statuses().iter().map(|s| s.view_changes).collect::<Vec<_>>();
    let net = passed_over(Duration::from_millis(3_900));
    assert_eq!(views(&net), [0; 4], "it may be on its way");
    let net = passed_over(Duration::from_secs(8));
    assert!(views(&net).iter().all(|changes| *changes > 0), "{:?}", views(&net));
    let censored = |status: &Status| {
        let mut given_up = status.contributions.given_up();
        given_up.any(|one| (one.leader, one.reason) == (ReplicaId(1), GivenUpFor::Censorship))
    };
    assert!(net.statuses().iter().any(censored), "it is said why");
    for member in &net.members {
        assert!(member.executed.iter().any(|name| name.author == ReplicaId(0)));
    }
}

/// An idle committee tells nobody again what it decided: whoever comes back is shown the last of it
/// by each member that it connects to, without having to ask.
#[test]
fn whoever_comes_back_is_shown_what_was_decided() {
    for protocol in [ProtocolKind::Jolteon, ProtocolKind::Pbft] {
        let settings = Settings { protocol, ..Settings::default() };
        let mut net = Net::new(&settings, |from, to, _| from == 3 || to == 3);
        net.serve(6, &ALL[..3]);
        let until = net.now + 4 * settings.timeout();
        while net.now < until {
            net.step();
        }
        net.lost = |_, _, _| false;
        assert_eq!(net.statuses()[3].decided, Height(0), "{protocol}");
        let before = net.sent.len();
        (0..3).for_each(|other| net.connect(other, 3));
        assert!(net.sent[before..].iter().any(|(from, to, _)| (*from, *to) == (0, 3)));
        let until = net.now + 2 * settings.timeout();
        while net.now < until {
            net.step();
        }
        let decided: Vec<_> = net.statuses().iter().map(|status| status.decided).collect();
        assert_eq!(decided[3], decided[0], "{protocol}: {decided:?}");
    }
}
