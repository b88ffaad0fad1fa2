//! Timeouts, view synchronisation, idling (jolteon.md: Timer fires, On Timeout; common.md: Idle).

use super::harness::*;
use crate::Input;
use crate::chained::Message;
use quorate_types::{Payload, Recipients, Rejected, ReplicaId, View};
use std::time::Duration;

/// Timer fires: persisted, then broadcast to all, with what led to the view.
#[test]
fn timer_fires_persisted_then_broadcast() {
    let mut cluster = Cluster::new();
    cluster.submit(7);
    cluster.node_mut(3).said.clear();
    cluster.fire(3).unwrap();
    let said = &cluster.node(3).said;
    assert!(matches!(said[0], Recorded::Persist(_)), "{said:?}");
    let Recorded::Send(Recipients::All, message) = &said[1] else { panic!("{said:?}") };
    assert!(matches!(**message, Message::Timeout(_)), "{message:?}");
    let promises = cluster.node(3).promises().expect("persisted");
    assert_eq!((promises.voted_view, promises.timeout_view), (View(1), View(1)));
}

/// After a timeout for r no vote in r (★).
pub(super) fn check_no_vote_after_a_timeout() -> Check {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    cluster.submit(7);
    cluster.fire(3)?;
    let block = cluster.keys.block(1, &genesis, 1, &[7]);
    cluster.tell(3, 0, cluster.keys.propose(&block))?;
    ensure(cluster.node(3).votes().is_empty(), "voted in a view that timed out for it")
}

#[test]
fn no_vote_after_a_timeout() {
    check_no_vote_after_a_timeout().unwrap();
}

/// A vote, then a timeout, is fine: and the timeout shows the vote.
#[test]
fn a_vote_then_a_timeout_is_fine() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let block = cluster.keys.block(1, &genesis, 1, &[7]);
    cluster.tell(3, 0, cluster.keys.propose(&block)).unwrap();
    cluster.fire(3).unwrap();
    let timeout = cluster.node(3).timeouts().pop().expect("it timed out");
    assert_eq!(timeout.last_vote, Some(cluster.keys.vote(3, &block)));
}

/// The timer is armed again and the timeout said again, in the same view: nobody moves without a
/// certificate (★, view synchronisation).
pub(super) fn check_no_view_without_a_certificate() -> Check {
    let mut cluster = Cluster::new();
    cluster.submit(7);
    for round in 1..=4 {
        cluster.fire(3)?;
        ensure(cluster.node(3).timeouts().len() == round, "it says so again")?;
        ensure(cluster.node(3).view() == 1, "a view was entered without a certificate")?;
    }
    let views: Vec<View> = cluster.node(3).timeouts().iter().map(|t| t.view).collect();
    ensure(views.iter().all(|v| *v == View(1)), format!("{views:?}"))
}

#[test]
fn no_view_without_a_certificate() {
    check_no_view_without_a_certificate().unwrap();
}

/// On Timeout: f+1 of the current view make a replica join, one alone does not.
#[test]
fn enough_timeouts_make_a_replica_join() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    for (signer, joined) in [(0, 0), (0, 0), (1, 1)] {
        let timeout = cluster.keys.timeout(signer, 1, &genesis, None);
        cluster.tell(3, signer, Message::Timeout(timeout)).unwrap();
        assert_eq!(cluster.node(3).timeouts().len(), joined, "after {signer}");
    }
}

/// On Timeout: a quorum makes a timeout certificate, which is broadcast and leads to the next view.
#[test]
fn a_quorum_of_timeouts_makes_a_certificate() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    for signer in [0, 1] {
        let timeout = cluster.keys.timeout(signer, 1, &genesis, None);
        cluster.tell(3, signer, Message::Timeout(timeout)).unwrap();
    }
    assert_eq!(cluster.node(3).view(), 2, "two others and its own");
    let shown = cluster.node(3).sent().any(
        |m| matches!(m, Message::Certificates { high_tc: Some(tc), .. } if tc.view == View(1)),
    );
    assert!(shown, "the certificate is broadcast");
}

/// On Timeout: one for an older view is answered with the certificates that move its sender.
#[test]
fn an_older_timeout_is_answered_with_certificates() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let one = cluster.keys.certify(&cluster.keys.block(1, &genesis, 1, &[]));
    let tc = cluster.keys.tc(4, &one, &[(1, &[0, 1, 2])]);
    cluster.tell(3, 0, certificates(&one, Some(&tc))).unwrap();
    cluster.wire.clear();
    let old = cluster.keys.timeout(2, 1, &genesis, None);
    cluster.tell(3, 2, Message::Timeout(old)).unwrap();
    let answer = cluster.wire.pop_back().expect("an answer");
    assert_eq!((answer.to, &answer.message), (2, &certificates(&one, Some(&tc))));
    cluster.tell(2, 3, answer.message).unwrap();
    assert_eq!(cluster.node(2).view(), 5);
}

/// An older timeout is answered unread: nothing that it carries is taken in.
#[test]
fn nothing_is_taken_from_an_older_timeout() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let one = cluster.keys.certify(&cluster.keys.block(1, &genesis, 1, &[]));
    cluster.tell(3, 0, certificates(&one, None)).unwrap();
    let mut forged = cluster.keys.certify_by(&cluster.keys.block(1, &genesis, 1, &[9]), &[2]);
    forged.view = View(50);
    let mut old = cluster.keys.timeout(2, 1, &genesis, None);
    old.high_qc = forged;
    cluster.tell(3, 2, Message::Timeout(old)).unwrap();
    assert_eq!(cluster.node(3).view(), 2);
    assert_eq!(cluster.node(3).behind, Some(one.id), "only what was certified is wanted");
}

/// On Timeout: the last votes make the certificate that a faulty collector withheld.
#[test]
fn last_votes_make_the_withheld_certificate() {
    let mut cluster = Cluster::new();
    cluster.submit(7);
    // The collector of view 1 takes the votes and says nothing.
    cluster.cut = Box::new(|e| e.from == 1 || e.to == 1);
    cluster.deliver();
    assert!(cluster.nodes.iter().all(|n| n.view() == 1));
    cluster
        .run("the certificate of view 1", |c| [0, 2, 3].iter().all(|id| c.node(*id).view() > 1))
        .unwrap();
    let first = cluster.node(0).proposals()[0].block.clone();
    let timeouts = cluster.node(2).timeouts();
    assert!(timeouts.iter().all(|t| t.last_vote.is_some()), "{timeouts:?}");
    cluster
        .run("the first block", |c| {
            [0, 2, 3].iter().all(|id| c.node(*id).bodies().contains(&body(7)))
        })
        .unwrap();
    let decided = cluster.node(2).decided[0].block;
    assert_eq!(decided, crate::block_tree::TreeBlock::id(&first), "not a block beside it");
}

/// View synchronisation (★): a timeout certificate shown to one replica alone does not stop
/// everybody.
#[test]
fn a_timeout_certificate_shown_to_one_alone_stops_nobody() {
    let mut cluster = Cluster::new();
    cluster.submit(7);
    // Replica 0 is faulty: it is silent, but it shows replica 3 a certificate for view 1.
    cluster.wire.clear();
    cluster.node_mut(0).up = false;
    let genesis = cluster.keys.genesis();
    let tc = cluster.keys.tc(1, &genesis, &[(0, &[0, 1, 2])]);
    cluster.tell(3, 0, certificates(&genesis, Some(&tc))).unwrap();
    assert_eq!(cluster.node(3).view(), 2);
    assert_eq!((cluster.node(1).view(), cluster.node(2).view()), (1, 1));
    cluster.run("a decision", |c| c.all_decided(&[7])).unwrap();
    cluster.ensure_agreement().unwrap();
}

/// View synchronisation (★): replicas scattered over views meet again, whatever was lost before.
#[test]
fn scattered_views_meet() {
    let mut cluster = Cluster::new();
    cluster.submit(7);
    let mut lost = 0u32;
    cluster.cut = Box::new(move |_| {
        lost += 1;
        !lost.is_multiple_of(3)
    });
    for _ in 0..25 {
        cluster.deliver();
        cluster.pass();
    }
    cluster.cut = Box::new(|_| false);
    cluster.submit(8);
    cluster.run("decisions once nothing is lost", |c| c.all_decided(&[7, 8])).unwrap();
    cluster.ensure_agreement().unwrap();
}

/// A timeout shows the certificate that led to its view; anything else is refused.
#[test]
fn a_timeout_shows_what_led_to_its_view() {
    let keys = Keys::new(4);
    let genesis = keys.genesis();
    let one = keys.certify(&keys.block(1, &genesis, 1, &[]));
    let tc = keys.tc(4, &one, &[(1, &[0, 1, 2])]);
    let rule = Rejected::RuleBroken("a timeout shows the certificate that led to its view");
    let cases = [
        ("by a certificate", keys.timeout(1, 2, &one, None), Ok(())),
        ("by a timeout certificate", keys.timeout(1, 5, &one, Some(&tc)), Ok(())),
        ("by nothing", keys.timeout(1, 5, &one, None), Err(rule.clone())),
        ("by another view's", keys.timeout(1, 6, &one, Some(&tc)), Err(rule.clone())),
        ("by both", keys.timeout(1, 2, &one, Some(&tc)), Err(rule.clone())),
        ("far ahead", keys.timeout(1, u64::MAX, &one, None), Err(rule)),
    ];
    for (name, timeout, expected) in cases {
        let mut cluster = Cluster::new();
        assert_eq!(cluster.give(3, 1, Message::Timeout(timeout)), expected, "{name}");
    }
}

/// With `vote_wait`, a view change waits for nobody: timeouts are not votes.
#[test]
fn vote_wait_does_not_delay_a_view_change() {
    let mut cluster = Cluster::tuned(|c| c.vote_wait = Duration::from_millis(50));
    cluster.node_mut(0).up = false;
    cluster.submit(7);
    cluster.run("a decision", |c| c.all_decided(&[7])).unwrap();
}

/// The span grows by half with each view that timed out but the first, whose leader may be dead.
#[test]
fn the_span_grows_until_something_is_decided() {
    let mut cluster = Cluster::tuned(|c| c.liveness.shorten_failed_turns = false);
    let genesis = cluster.keys.genesis();
    cluster.submit(7);
    let span = |c: &Cluster| c.node(3).machine_timeout().map(|at| at.since(c.now));
    assert_eq!(span(&cluster), Some(TIMEOUT));
    for (view, quarters) in [(1, 4), (2, 6), (3, 9)] {
        let tc = cluster.keys.tc(view, &genesis, &[(0, &[0, 1, 2])]);
        cluster.tell(3, 0, certificates(&genesis, Some(&tc))).unwrap();
        assert_eq!(span(&cluster), Some(TIMEOUT * quarters / 4), "view {}", view + 1);
    }
}

/// Idle: no payload, no rounds, no timer.
#[test]
fn without_payload_nothing_happens() {
    let mut cluster = Cluster::new();
    cluster.deliver();
    assert_eq!(cluster.next_timeout(), None);
    assert!(cluster.nodes.iter().all(|n| n.said.is_empty()));
}

/// Idle: after deciding the last block nobody waits for anything, and nobody times out.
#[test]
fn after_the_last_decision_all_is_quiet() {
    let mut cluster = Cluster::new();
    for k in 0..3 {
        cluster.submit(k);
        cluster.deliver();
        assert!(cluster.all_decided(&[k]), "{k} is decided without a timer");
        assert_eq!(cluster.next_timeout(), None, "after {k}");
    }
    assert!(cluster.nodes.iter().all(|n| n.timeouts().is_empty()));
    let views: Vec<u64> = cluster.nodes.iter().map(super::harness::Node::view).collect();
    assert!(views.windows(2).all(|w| w[0] == w[1]), "they stand in one view: {views:?}");
}

/// Idle: a leader that was idle when its view began proposes as soon as there is something.
#[test]
fn an_idle_leader_proposes_when_work_comes() {
    let mut cluster = Cluster::new();
    cluster.submit(1);
    cluster.deliver();
    for k in 2..6 {
        cluster.submit(k);
        cluster.deliver();
        assert!(cluster.all_decided(&[k]), "{k}");
    }
    assert!(cluster.nodes.iter().all(|n| n.timeouts().is_empty()));
}

/// Idle: the last certificate is lost on its way to one replica. It finds out by its own timer.
#[test]
fn a_lost_last_certificate_is_found_again() {
    let mut cluster = Cluster::new();
    cluster.submit(7);
    cluster.cut = Box::new(|e| e.to == 3 && matches!(e.message, Message::Certificates { .. }));
    cluster.deliver();
    assert!(!cluster.node(3).bodies().contains(&body(7)));
    cluster.cut = Box::new(|_| false);
    cluster.run("the decision at 3", |c| c.all_decided(&[7])).unwrap();
    cluster.run("quiet", |c| c.next_timeout().is_none()).unwrap();
}

/// Idle: a block whose bodies exist nowhere is forgotten in the end, and with it the work that it
/// seemed to be: the timers stop.
#[test]
fn idle_after_a_phantom_block_the_timer_stops() {
    let mut cluster = Cluster::new();
    for id in 0..4 {
        cluster.node_mut(id).has_bodies = false;
    }
    let genesis = cluster.keys.genesis();
    let phantom = cluster.keys.block(1, &genesis, 1, &[99]);
    let proposal = cluster.keys.propose(&phantom);
    for id in 1..4 {
        cluster.tell(id, 0, proposal.clone()).unwrap();
    }
    cluster.run("quiet after the phantom", |c| c.next_timeout().is_none()).unwrap();
}

/// A replica that may not sign follows, and says nothing that needs a signature.
#[test]
fn a_replica_that_does_not_sign_follows_in_silence() {
    let mut cluster = Cluster::tuned(|c| c.signs = c.id != ReplicaId(2));
    for k in 0..4 {
        cluster.submit(k);
    }
    cluster.run("decisions without its votes", |c| c.all_decided(&[0, 1, 2, 3])).unwrap();
    let silent = cluster.node(2).sent().all(|m| matches!(m, Message::Certificates { .. }));
    assert!(silent, "{:?}", cluster.node(2).said);
    cluster.ensure_agreement().unwrap();
}

/// A payload for a view that is over, or for another parent, is dropped.
#[test]
fn a_late_payload_is_dropped() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let tc = cluster.keys.tc(1, &genesis, &[(0, &[1, 2, 3])]);
    cluster.tell(0, 1, certificates(&genesis, Some(&tc))).unwrap();
    let payload = Payload::new(quorate_types::Height(1), 0, vec![body(7)]);
    cluster.feed(0, Input::Payload { view: View(1), parent: genesis.id, payload });
    assert!(cluster.node(0).proposals().is_empty());
}

/// The first timeout certificate of a view is what is shown for it, whoever makes others.
#[test]
fn the_first_timeout_certificate_of_a_view_stays() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let [first, other] =
        [&[0, 1, 2], &[1, 2, 3]].map(|signers| cluster.keys.tc(4, &genesis, &[(0, signers)]));
    assert_ne!(first, other);
    cluster.submit(7);
    for tc in [&first, &other] {
        cluster.tell(3, 0, certificates(&genesis, Some(tc))).unwrap();
    }
    cluster.fire(3).unwrap();
    let shown = cluster.node(3).timeouts().pop().and_then(|timeout| timeout.high_tc);
    assert_eq!(shown, Some(first));
}

/// An answer shows the timeout certificate only where the other one does not lead as far.
#[test]
fn an_answer_shows_one_reason_for_the_view() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let one = cluster.keys.certify(&cluster.keys.block(1, &genesis, 1, &[]));
    let tc = cluster.keys.tc(1, &genesis, &[(0, &[0, 1, 2])]);
    let answer = |cluster: &mut Cluster| {
        cluster.wire.clear();
        let old = cluster.keys.timeout(2, 1, &genesis, None);
        cluster.tell(3, 2, Message::Timeout(old)).unwrap();
        cluster.wire.pop_back().expect("an answer").message
    };
    cluster.tell(3, 0, certificates(&genesis, Some(&tc))).unwrap();
    assert_eq!(answer(&mut cluster), certificates(&genesis, Some(&tc)));
    cluster.tell(3, 0, certificates(&one, None)).unwrap();
    assert_eq!(answer(&mut cluster), certificates(&one, None), "both lead to view 2");
}
