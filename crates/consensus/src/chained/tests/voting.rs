//! Proposing, voting and deciding (jolteon.md: Propose, Vote, Commit).

use super::harness::*;
use crate::block_tree::TreeBlock;
use crate::chained::{Message, Phase, Qc, Rules, SafetyRecord};
use crate::{Ignored, Input, MessageKind, ProtocolView, Rule};
use quorate_types::machine::Halt;
use quorate_types::{Height, ReplicaId, View};

fn one_of_four() -> (Cluster, Qc) {
    let cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    (cluster, genesis)
}

/// A vote goes to the leader of the next view, names block and parent, and is sent once.
#[test]
fn vote_goes_to_the_next_leader() {
    let (mut cluster, genesis) = one_of_four();
    let block = cluster.keys.block(1, &genesis, 1, &[7]);
    cluster.tell(3, 0, cluster.keys.propose(&block)).unwrap();
    assert_eq!(cluster.node(3).votes(), vec![cluster.keys.vote(3, &block)]);
    assert_eq!(cluster.wire.back().map(|e| e.to), Some(1));
}

/// Vote: `r > voted view` (★).
pub(super) fn check_one_vote_a_view() -> Check {
    let (mut cluster, genesis) = one_of_four();
    for k in [7, 8] {
        let block = cluster.keys.block(1, &genesis, 1, &[k]);
        cluster.tell(3, 0, cluster.keys.propose(&block))?;
    }
    let votes = cluster.node(3).votes();
    ensure(votes.len() == 1, format!("{} votes in one view", votes.len()))?;
    let reported = cluster.node(3).misbehaviour.contains(&(ReplicaId(0), Rule::Equivocation));
    ensure(reported, "the equivocating leader is reported")
}

#[test]
fn one_vote_a_view() {
    check_one_vote_a_view().unwrap();
}

/// Vote: `r == current`.
#[test]
fn no_vote_in_a_view_that_is_over() {
    let (mut cluster, genesis) = one_of_four();
    let old = cluster.keys.block(1, &genesis, 1, &[7]);
    let current = cluster.keys.block(2, &cluster.keys.certify(&old), 2, &[]);
    cluster.tell(3, 1, cluster.keys.propose(&current)).unwrap();
    cluster.tell(3, 0, cluster.keys.propose(&old)).unwrap();
    let views: Vec<View> = cluster.node(3).votes().iter().map(|v| v.view).collect();
    assert_eq!(views, [View(2)], "the old block is let in for its child, and gets no vote");
    let third = cluster.keys.block(1, &genesis, 1, &[9]);
    cluster.tell(3, 0, cluster.keys.propose(&third)).unwrap();
    let ignored = cluster.node(3).machine.ignored();
    assert_eq!(ignored.of(MessageKind::Proposal, Ignored::StaleView), 1, "{ignored:?}");
}

/// Vote: the block's bodies are stored.
pub(super) fn check_vote_needs_the_bodies() -> Check {
    let (mut cluster, genesis) = one_of_four();
    cluster.node_mut(3).has_bodies = false;
    let block = cluster.keys.block(1, &genesis, 1, &[7]);
    for _ in 0..2 {
        cluster.tell(3, 0, cluster.keys.propose(&block))?;
    }
    ensure(cluster.node(3).votes().is_empty(), "voted without the bodies")?;
    cluster.feed(3, Input::Stored(block.id()));
    ensure(cluster.node(3).votes().len() == 1, "no vote once they are stored")
}

#[test]
fn vote_needs_the_bodies() {
    check_vote_needs_the_bodies().unwrap();
}

/// Vote: the parent chain is known down to the last decision; a missing ancestor is fetched, and
/// then the vote is given.
#[test]
fn vote_needs_the_parent_chain() {
    let (mut cluster, genesis) = one_of_four();
    let one = cluster.keys.block(1, &genesis, 1, &[7]);
    let two = cluster.keys.block(2, &cluster.keys.certify(&one), 2, &[]);
    cluster.tell(3, 1, cluster.keys.propose(&two)).unwrap();
    assert!(cluster.node(3).votes().is_empty());
    assert_eq!(cluster.node(3).behind, Some(one.id()), "it asks for the parent");
    cluster.tell(3, 0, cluster.keys.propose(&one)).unwrap();
    assert_eq!(cluster.node(3).votes(), vec![cluster.keys.vote(3, &two)]);
}

/// A block that contradicts its parent gets no vote: its height follows, its stamp neither goes
/// back nor runs ahead of our clock.
#[test]
fn vote_needs_a_height_and_a_stamp_that_follow() {
    for (height, stamp, votes) in [(2, 0, 0), (0, 0, 0), (1, 5_001, 1), (1, 5_002, 0)] {
        let (mut cluster, genesis) = one_of_four();
        let mut block = cluster.keys.block(1, &genesis, height, &[]);
        block.payload = quorate_types::Payload::new(Height(height), stamp, vec![]);
        cluster.now = quorate_types::Time(1_000);
        cluster.tell(3, 0, cluster.keys.propose(&block)).unwrap();
        assert_eq!(cluster.node(3).votes().len(), votes, "height {height} stamp {stamp}");
    }
}

/// Vote: no lock check on path (B). A replica whose own certificate is higher than the one the
/// timeout certificate reports still votes: otherwise the others could not go on without it
/// (liveness).
#[test]
fn vote_has_no_lock_check_on_the_timeout_path() {
    let (mut cluster, genesis) = one_of_four();
    let one = cluster.keys.block(1, &genesis, 1, &[7]);
    let qc_one = cluster.keys.certify(&one);
    cluster.tell(3, 0, cluster.keys.propose(&one)).unwrap();
    cluster.tell(3, 0, certificates(&qc_one, None)).unwrap();
    assert_eq!(cluster.node(3).promises().map(|p| p.voted_view), Some(View(1)));
    let mut block = cluster.keys.block(3, &genesis, 1, &[8]);
    block.tc = Some(cluster.keys.tc(2, &genesis, &[(0, &[0, 1, 2])]));
    cluster.tell(3, 2, cluster.keys.propose(&block)).unwrap();
    // Its own collector: the vote shows in what it promised.
    let promised = cluster.node(3).promises().and_then(|p| p.last_vote);
    assert_eq!(promised, Some(cluster.keys.vote(3, &block)));
}

/// Everything that binds is durable before it is said (★): votes, proposals, timeouts.
pub(super) fn check_nothing_leaves_before_it_is_durable() -> Check {
    check_durable_first(Cluster::new())
}

pub(crate) fn check_durable_first(mut cluster: Cluster) -> Check {
    cluster.submit(7);
    cluster.run("a decision", |c| c.all_decided(&[7]))?;
    cluster.submit(8);
    cluster.cut = Box::new(|e| matches!(e.message, Message::Proposal(_)));
    cluster.run("timeouts", |c| c.nodes.iter().all(|n| !n.timeouts().is_empty()))?;
    for node in &cluster.nodes {
        let mut durable: Option<SafetyRecord> = None;
        for said in &node.said {
            match said {
                Recorded::Persist(bytes) => {
                    durable = Some(borsh::from_slice(bytes).map_err(|e| e.to_string())?);
                }
                Recorded::Send(_, message) => {
                    ensure_promised(
                        message,
                        durable.as_ref(),
                        cluster.keys.protocol.chained_rules().expect("a chained one"),
                    )?;
                }
            }
        }
    }
    let said = |wanted: fn(&Message) -> bool| cluster.nodes.iter().any(|n| n.sent().any(wanted));
    ensure(said(|m| matches!(m, Message::Vote(_))), "nobody voted")?;
    ensure(said(|m| matches!(m, Message::Proposal(_))), "nobody proposed")
}

fn ensure_promised(message: &Message, durable: Option<&SafetyRecord>, rules: &Rules) -> Check {
    let promised = match message {
        Message::Vote(vote) => durable.is_some_and(|d| {
            d.voted_view >= vote.view
                && (d.last_vote.as_ref() == Some(vote) || d.voted_view > vote.view)
        }),
        Message::Proposal(proposal) => {
            durable.is_some_and(|d| d.last_proposal.as_ref() == Some(proposal))
        }
        Message::Timeout(timeout) => durable.is_some_and(|d| {
            (d.voted_view >= timeout.view || !rules.timeout_ends_voting)
                && d.timeout_view >= timeout.view
                && d.high_qc.view >= timeout.high_qc.view
        }),
        // A vote on a lock is said after the lock is kept.
        Message::PhaseVote(said) => durable.is_some_and(|d| {
            let (locked, voted) = (d.lock.map(|lock| lock.view), d.later.as_ref());
            d.voted_view >= said.vote.view
                && voted.is_some_and(|voted| voted.votes.contains(said))
                && (said.phase < Phase::Commit || locked >= Some(said.vote.view))
        }),
        Message::Certificates { .. } | Message::PreCommitted(_) | Message::NewView(_) => true,
    };
    ensure(promised, format!("left before it was durable: {message:?}"))
}

#[test]
fn nothing_leaves_before_it_is_durable() {
    check_nothing_leaves_before_it_is_durable().unwrap();
}

/// The record before a vote holds the parent's certificate: that is the lock.
#[test]
fn a_vote_locks_the_parents_certificate_first() {
    let (mut cluster, genesis) = one_of_four();
    let one = cluster.keys.block(1, &genesis, 1, &[7]);
    let two = cluster.keys.block(2, &cluster.keys.certify(&one), 2, &[]);
    cluster.tell(3, 0, cluster.keys.propose(&one)).unwrap();
    cluster.tell(3, 1, cluster.keys.propose(&two)).unwrap();
    let promises = cluster.node(3).promises().expect("it voted");
    assert_eq!((promises.voted_view, promises.high_qc.view), (View(2), View(1)));
}

/// Propose: justify is the highest certificate, and a timeout certificate comes along exactly when
/// that certificate is not of the view before.
#[test]
fn propose_carries_the_highest_certificate_and_the_reason_for_a_gap() {
    let (mut cluster, genesis) = one_of_four();
    let one = cluster.keys.block(1, &genesis, 1, &[7]);
    let qc_one = cluster.keys.certify(&one);
    cluster.pending.push(body(8));
    cluster.tell(1, 0, cluster.keys.propose(&one)).unwrap();
    cluster.tell(1, 0, certificates(&qc_one, None)).unwrap();
    let plain = cluster.node(1).proposals().pop().expect("it leads view 2").block;
    assert_eq!((plain.view, plain.justify, plain.tc), (View(2), qc_one.clone(), None));
    cluster.tell(2, 0, cluster.keys.propose(&one)).unwrap();
    let tc = cluster.keys.tc(2, &qc_one, &[(0, &[0]), (1, &[1, 3])]);
    cluster.tell(2, 0, certificates(&qc_one, Some(&tc))).unwrap();
    let after = cluster.node(2).proposals().pop().expect("it leads view 3").block;
    assert_eq!((after.view, after.justify, after.tc), (View(3), qc_one, Some(tc)));
}

/// Propose: a higher certificate that comes while the payload is made does not cost the view.
#[test]
fn a_leader_whose_certificate_was_overtaken_asks_again() {
    let (mut cluster, genesis) = one_of_four();
    let one = cluster.keys.block(1, &genesis, 1, &[7]);
    let two = cluster.keys.block(2, &cluster.keys.certify(&one), 2, &[8]);
    for (from, block) in [(0, &one), (1, &two)] {
        cluster.tell(2, from, cluster.keys.propose(block)).unwrap();
    }
    let tc = cluster.keys.tc(2, &cluster.keys.certify(&one), &[(0, &[0]), (1, &[1, 3])]);
    // The certificate of view 2 arrives in view 3, after the timeout certificate and before the
    // work.
    cluster.tell(2, 0, certificates(&cluster.keys.certify(&two), None)).unwrap();
    cluster.tell(2, 0, certificates(&tc.high_qc.clone(), Some(&tc))).unwrap();
    cluster.submit(9);
    let proposed = cluster.node(2).proposals().pop().expect("it leads view 3").block;
    assert_eq!((proposed.view, proposed.justify.view), (View(3), View(2)));
}

fn chain(cluster: &Cluster, views: &[u64]) -> Vec<(crate::chained::Block, Qc)> {
    let mut justify = cluster.keys.genesis();
    let mut blocks = Vec::new();
    for (height, view) in views.iter().enumerate() {
        let mut block = cluster.keys.block(*view, &justify, height as u64 + 1, &[*view]);
        if *view != justify.view.0 + 1 {
            let reported = justify.view.0;
            block.tc = Some(cluster.keys.tc(view - 1, &justify, &[(reported, &[0, 1, 2])]));
        }
        justify = cluster.keys.certify(&block);
        blocks.push((block, justify.clone()));
    }
    blocks
}

fn decided_views(cluster: &Cluster, id: u16) -> Vec<u64> {
    cluster.node(id).bodies().iter().map(|b| b.sequence).collect()
}

/// Commit: on consecutive views only, the parent and its ancestors, oldest first, once each.
pub(super) fn check_commit_needs_consecutive_views() -> Check {
    let mut cluster = Cluster::new();
    // Certificates of 1, 3, 5 have gaps between them; 6 follows 5 and decides all below it.
    let steps: [(u64, &[u64]); 5] =
        [(1, &[]), (3, &[]), (5, &[]), (6, &[1, 3, 5]), (8, &[1, 3, 5])];
    let blocks = chain(&cluster, &steps.map(|(view, _)| view));
    for ((block, qc), (view, expected)) in blocks.iter().zip(steps) {
        let leader = cluster.keys.leader(view);
        cluster
            .tell(3, if leader == 3 { 0 } else { leader }, certificates(&block.justify, None))
            .ok();
        if leader != 3 {
            cluster.tell(3, leader, cluster.keys.propose(block))?;
        }
        cluster.tell(3, 0, certificates(qc, None))?;
        let decided = decided_views(&cluster, 3);
        ensure(decided == expected, format!("after the certificate of {view}: {decided:?}"))?;
    }
    cluster.ensure_agreement()
}

#[test]
fn commit_needs_consecutive_views() {
    check_commit_needs_consecutive_views().unwrap();
}

/// Commit: once each. Nothing is delivered again across a gap in the views, nor when the same
/// certificate comes again.
#[test]
fn commit_delivers_nothing_twice() {
    let mut cluster = Cluster::new();
    let blocks = chain(&cluster, &[1, 2, 5, 6]);
    for (block, qc) in &blocks {
        cluster.tell(3, block.author.0, cluster.keys.propose(block)).unwrap();
        for _ in 0..2 {
            cluster.give(3, 0, certificates(qc, None)).ok();
        }
    }
    assert_eq!(decided_views(&cluster, 3), [1, 2, 5]);
    cluster.ensure_agreement().unwrap();
}

/// Commit: a missing ancestor is fetched first, and then all is decided in order.
#[test]
fn commit_fetches_a_missing_ancestor_first() {
    let mut cluster = Cluster::new();
    let blocks = chain(&cluster, &[1, 2, 3]);
    for (block, _) in &blocks {
        cluster.tell(0, block.author.0, cluster.keys.propose(block)).ok();
    }
    for (block, _) in &blocks {
        cluster.tell(1, block.author.0, cluster.keys.propose(block)).ok();
    }
    cluster.wire.clear();
    cluster.tell(3, 0, certificates(&blocks[2].1, None)).unwrap();
    assert!(cluster.node(3).decided.is_empty());
    cluster.deliver();
    assert!(decided_views(&cluster, 3).starts_with(&[1, 2]));
    cluster.ensure_agreement().unwrap();
}

/// Commit: a certificate that contradicts a decision halts the replica.
#[test]
fn commit_of_a_conflicting_block_halts() {
    let mut cluster = Cluster::new();
    let blocks = chain(&cluster, &[1, 2, 3]);
    for (block, qc) in &blocks {
        cluster.tell(3, block.author.0, cluster.keys.propose(block)).unwrap();
        cluster.tell(3, 0, certificates(qc, None)).unwrap();
    }
    let other = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[99]);
    let other = cluster.keys.block(2, &cluster.keys.certify(&other), 2, &[99]);
    let mut later = cluster.keys.block(4, &blocks[2].1, 4, &[]);
    later.justify = cluster.keys.certify(&other);
    // View 3 is over for it only if a certificate says so: the conflicting one comes in a timeout.
    let tc = cluster.keys.tc(3, &later.justify, &[(2, &[0, 1, 2])]);
    cluster.tell(3, 0, certificates(&later.justify, Some(&tc))).unwrap();
    assert!(
        matches!(cluster.node(3).halted, Some(Halt::ConflictingDecisions { .. })),
        "{:?}",
        cluster.node(3).halted
    );
    let said = cluster.node(3).said.len();
    let next = cluster.keys.block(4, &blocks[2].1, 4, &[]);
    cluster.give(3, next.author.0, cluster.keys.propose(&next)).ok();
    assert_eq!(cluster.node(3).said.len(), said, "it says nothing any more");
    assert_eq!(cluster.node(3).machine_timeout(), None);
}

/// The happy path: four replicas decide what is submitted, in one order.
pub(super) fn check_the_committee_decides() -> Check {
    let mut cluster = Cluster::new();
    let all: Vec<u64> = (0..12).collect();
    for k in &all {
        cluster.submit(*k);
    }
    cluster.run("twelve decisions", |c| c.all_decided(&all))?;
    let timed_out = cluster.nodes.iter().any(|n| !n.timeouts().is_empty());
    ensure(!timed_out, "nobody times out on the happy path")?;
    for node in &cluster.nodes {
        let bodies = node.bodies();
        ensure(bodies.len() == all.len(), format!("{} bodies decided", bodies.len()))?;
    }
    cluster.ensure_agreement()
}

#[test]
fn the_committee_decides() {
    check_the_committee_decides().unwrap();
}

/// With any one replica dead, decisions go on.
#[test]
fn the_committee_decides_with_one_dead() {
    for dead in 0..4 {
        let mut cluster = Cluster::new();
        cluster.node_mut(dead).up = false;
        for k in 0..6 {
            cluster.submit(k);
        }
        let what = format!("six decisions without {dead}");
        cluster.run(&what, |c| c.all_decided(&[0, 1, 2, 3, 4, 5])).unwrap();
        cluster.ensure_agreement().unwrap();
    }
}

/// A single member is a committee too.
#[test]
fn a_committee_of_one_decides() {
    let mut cluster = Cluster::of(1, |_| {});
    cluster.submit(7);
    cluster.run("a decision alone", |c| c.all_decided(&[7])).unwrap();
}

/// `has_block`: it has this block, or has decided something at or beyond it. Whoever waits for a
/// block must see that it has come, also when decisions have passed it meanwhile.
#[test]
fn has_block_knows_decided_blocks() {
    let mut cluster = Cluster::new();
    let blocks = chain(&cluster, &[1, 2, 3, 5, 6, 7]);
    for (block, qc) in &blocks {
        cluster.tell(3, block.author.0, cluster.keys.propose(block)).ok();
        cluster.tell(3, 0, certificates(qc, None)).ok();
        cluster.deliver();
    }
    let decided: Vec<_> = cluster.node(3).decided.iter().map(|d| d.block).collect();
    assert!(decided.len() >= 2, "{decided:?}");
    for block in decided {
        assert!(cluster.node(3).machine.has_block(block));
    }
}

/// Propose: one block a view, by its leader alone, in that view alone, if it may sign.
#[test]
fn a_payload_is_proposed_once_by_the_leader_of_its_view() {
    let propose = |cluster: &mut Cluster, id: u16, view: u64, k: u64| {
        let payload = quorate_types::Payload::new(Height(1), 0, vec![body(k)]);
        let parent = cluster.keys.genesis().id;
        cluster.feed(id, Input::Payload { view: View(view), parent, payload });
        cluster.node(id).proposals().iter().map(|p| p.block.view.0).collect::<Vec<_>>()
    };
    let mut cluster = Cluster::new();
    assert_eq!(propose(&mut cluster, 0, 1, 7), [1]);
    assert_eq!(propose(&mut cluster, 0, 1, 8), [1], "another payload for the same view");
    assert_eq!(propose(&mut cluster, 3, 1, 7), [0; 0], "it does not lead view 1");
    let genesis = cluster.keys.genesis();
    let tc = cluster.keys.tc(4, &genesis, &[(0, &[1, 2, 3])]);
    let mut cluster = Cluster::new();
    cluster.tell(0, 1, certificates(&genesis, Some(&tc))).unwrap();
    assert_eq!(propose(&mut cluster, 0, 1, 7), [0; 0], "view 1 is over, though it leads view 5");
    assert_eq!(propose(&mut cluster, 0, 5, 7), [5]);
    let mut silent = Cluster::tuned(|config| config.signs = false);
    assert_eq!(propose(&mut silent, 0, 1, 7), [0; 0], "it may not sign");
}

/// Propose: a payload for another parent than the highest certificate's block has another height;
/// it is not proposed, and one for the right parent is asked for.
#[test]
fn a_payload_for_another_parent_is_asked_for_again() {
    let (mut cluster, genesis) = one_of_four();
    let one = cluster.keys.block(1, &genesis, 1, &[]);
    let two = cluster.keys.block(2, &cluster.keys.certify(&one), 2, &[]);
    for (from, block) in [(0, &one), (1, &two)] {
        cluster.tell(2, from, cluster.keys.propose(block)).unwrap();
    }
    cluster.tell(2, 0, certificates(&cluster.keys.certify(&two), None)).unwrap();
    cluster.node_mut(2).request = None;
    let payload = quorate_types::Payload::new(Height(2), 0, vec![body(7)]);
    cluster.feed(2, Input::Payload { view: View(3), parent: one.id(), payload });
    assert!(cluster.node(2).proposals().is_empty());
    let request = cluster.node(2).request.as_ref().expect("it leads view 3");
    assert_eq!((request.parent, request.height), (two.id(), Height(3)));
}

/// Commit: a certificate that contradicts a decision halts the replica, also where that decision is
/// the oldest that it knows.
#[test]
fn a_conflict_with_the_oldest_decision_halts() {
    let mut cluster = Cluster::new();
    let blocks = chain(&cluster, &[1, 2]);
    let (block, commit) = (blocks[0].0.clone(), blocks[1].1.clone());
    let record = crate::chained::DecidedBlock::new(block, commit);
    let record = borsh::to_vec(&record).unwrap();
    cluster.feed(3, Input::Installed(record.into()));
    let first = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[99]);
    let second = cluster.keys.block(2, &cluster.keys.certify(&first), 2, &[99]);
    let conflict = cluster.keys.certify(&second);
    assert_eq!(cluster.node(3).halted, None);
    cluster.tell(3, 0, certificates(&conflict, None)).unwrap();
    let halted = &cluster.node(3).halted;
    assert!(matches!(halted, Some(Halt::ConflictingDecisions { .. })), "{halted:?}");
    // The evidence names the certificate and its signers.
    let Some(Halt::ConflictingDecisions { evidence, .. }) = halted else { return };
    assert!(evidence.contains(&format!("{}", second.id())), "{evidence}");
}

/// Whatever else the message would have brought, nothing follows a halt.
#[test]
fn a_halt_is_the_last_word() {
    let mut cluster = Cluster::new();
    let blocks = chain(&cluster, &[1, 2]);
    for (block, qc) in &blocks {
        cluster.tell(3, block.author.0, cluster.keys.propose(block)).unwrap();
        cluster.tell(3, 0, certificates(qc, None)).unwrap();
    }
    let first = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[99]);
    let second = cluster.keys.block(2, &cluster.keys.certify(&first), 2, &[99]);
    // Its block is not here either: the proposal on it would be put aside, and its parent sought.
    let third = cluster.keys.block(3, &cluster.keys.certify(&second), 3, &[99]);
    cluster.node_mut(3).behind = None;
    cluster.tell(3, third.author.0, cluster.keys.propose(&third)).unwrap();
    let halted = &cluster.node(3).halted;
    assert!(matches!(halted, Some(Halt::ConflictingDecisions { .. })), "{halted:?}");
    assert_eq!(cluster.node(3).behind, None, "it still asks for blocks");
}
