//! Collecting votes (common.md: Collecting votes, aggregate first; jolteon.md: Leader wait).

use super::harness::*;
use crate::block_tree::TreeBlock;
use crate::chained::{Block, Message, Vote, verify_run};
use crate::{Ignored, Input, MessageKind, ProtocolView, Rule, VerifiedRun};
use quorate_types::{Height, Recipients, ReplicaId, Time, View};
use std::time::Duration;

/// Replica 1 collects the votes for a block of view 1.
fn collector(tune: fn(&mut crate::ProtocolConfig)) -> (Cluster, Block) {
    let mut cluster = Cluster::tuned(tune);
    let block = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[7]);
    cluster.jobs = Some(Vec::new());
    (cluster, block)
}

fn jobs(cluster: &Cluster) -> Vec<usize> {
    cluster.jobs.iter().flatten().map(|(_, job)| job.shares.len()).collect()
}

fn run_jobs(cluster: &mut Cluster) {
    for (id, job) in cluster.jobs.replace(Vec::new()).into_iter().flatten() {
        cluster.feed(id, Input::Combined(job.run()));
    }
}

fn corrupt(mut vote: Vote) -> Vote {
    vote.share.0[0] ^= 1;
    vote
}

/// Aggregate first: no share is looked at before the quorum, then one job checks all of them.
#[test]
fn collector_combines_once_at_the_quorum() {
    let (mut cluster, block) = collector(|_| {});
    for (signer, expected) in [(0, vec![]), (2, vec![]), (3, vec![3])] {
        cluster.tell(1, signer, Message::Vote(cluster.keys.vote(signer, &block))).unwrap();
        assert_eq!(jobs(&cluster), expected, "after {signer}");
    }
    run_jobs(&mut cluster);
    assert_eq!(cluster.node(1).view(), 2);
    assert_eq!(cluster.node(1).machine_timeout(), None);
}

/// A bad share is dropped and its sender reported; the next good one completes the certificate, and
/// meanwhile no timer spins.
#[test]
fn collector_drops_a_bad_share_and_goes_on() {
    let (mut cluster, block) = collector(|_| {});
    cluster.tell(1, 0, Message::Vote(corrupt(cluster.keys.vote(0, &block)))).unwrap();
    for signer in [2, 3] {
        cluster.tell(1, signer, Message::Vote(cluster.keys.vote(signer, &block))).unwrap();
    }
    run_jobs(&mut cluster);
    assert_eq!(cluster.node(1).misbehaviour, [(ReplicaId(0), Rule::InvalidShare)]);
    assert_eq!(cluster.node(1).view(), 1);
    assert_eq!(cluster.node(1).machine_timeout(), None, "a deadline in the past would spin");
    cluster.tell(1, 1, Message::Vote(cluster.keys.vote(1, &block))).unwrap();
    run_jobs(&mut cluster);
    assert_eq!(cluster.node(1).view(), 2);
}

/// A good share that came while a bad one was sought is not lost.
#[test]
fn collector_takes_shares_while_it_combines() {
    let (mut cluster, block) = collector(|_| {});
    cluster.tell(1, 0, Message::Vote(corrupt(cluster.keys.vote(0, &block)))).unwrap();
    for signer in [2, 3, 1] {
        cluster.tell(1, signer, Message::Vote(cluster.keys.vote(signer, &block))).unwrap();
    }
    assert_eq!(jobs(&cluster), [3]);
    run_jobs(&mut cluster);
    run_jobs(&mut cluster);
    assert_eq!(cluster.node(1).view(), 2);
}

/// A duplicate signer neither counts twice nor stops the others.
#[test]
fn collector_ignores_a_duplicate_signer() {
    let (mut cluster, block) = collector(|_| {});
    for signer in [0, 0, 0, 2] {
        cluster.tell(1, signer, Message::Vote(cluster.keys.vote(signer, &block))).unwrap();
    }
    assert_eq!(jobs(&cluster), [0; 0]);
    cluster.tell(1, 3, Message::Vote(cluster.keys.vote(3, &block))).unwrap();
    assert_eq!(jobs(&cluster), [3]);
    assert!(cluster.node(1).misbehaviour.is_empty());
    let ignored = cluster.node(1).machine.ignored();
    assert_eq!(ignored.of(MessageKind::Vote, Ignored::Duplicate), 2, "{ignored:?}");
}

/// Votes that differ in anything are counted apart; who votes twice is reported.
#[test]
fn collector_counts_different_votes_apart() {
    let (mut cluster, block) = collector(|_| {});
    let other = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[8]);
    let mut lie = cluster.keys.vote(3, &block);
    lie.base_id = quorate_types::BlockId(quorate_crypto::hash(b"another"));
    for (signer, vote) in [
        (0, cluster.keys.vote(0, &block)),
        (2, cluster.keys.vote(2, &other)),
        (3, lie),
        (0, cluster.keys.vote(0, &other)),
    ] {
        cluster.tell(1, signer, Message::Vote(vote)).unwrap();
    }
    assert_eq!(jobs(&cluster), [0; 0], "no three agree");
    assert_eq!(cluster.node(1).misbehaviour, [(ReplicaId(0), Rule::DoubleVote)]);
}

/// Leader wait: after the quorum it waits for the rest, and goes on at once when all are here.
#[test]
fn collector_waits_for_the_rest() {
    let (mut cluster, block) = collector(|c| c.vote_wait = Duration::from_millis(50));
    for signer in [0, 2, 3] {
        cluster.tell(1, signer, Message::Vote(cluster.keys.vote(signer, &block))).unwrap();
    }
    assert_eq!(jobs(&cluster), [0; 0]);
    assert_eq!(cluster.node(1).machine_timeout(), Some(Time(51_000)));
    cluster.fire(1).unwrap();
    assert_eq!(jobs(&cluster), [3], "the wait is over");

    let (mut cluster, block) = collector(|c| c.vote_wait = Duration::from_millis(50));
    for signer in [0, 2, 3, 1] {
        cluster.tell(1, signer, Message::Vote(cluster.keys.vote(signer, &block))).unwrap();
    }
    assert_eq!(jobs(&cluster), [4], "everybody is here");
}

/// A timeout certificate whose bad share is dropped still forms, with several wordings.
#[test]
fn timeouts_with_a_bad_share_still_make_a_certificate() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let one = cluster.keys.certify(&cluster.keys.block(1, &genesis, 1, &[]));
    let before = cluster.keys.tc(2, &one, &[(0, &[0]), (1, &[1, 2])]);
    let mut bad = cluster.keys.timeout(0, 3, &genesis, Some(&before));
    bad.share.0[0] ^= 1;
    cluster.tell(3, 0, Message::Timeout(bad)).unwrap();
    for signer in [1, 2] {
        let timeout = cluster.keys.timeout(signer, 3, &one, Some(&before));
        cluster.tell(3, signer, Message::Timeout(timeout)).unwrap();
    }
    assert_eq!(cluster.node(3).misbehaviour, [(ReplicaId(0), Rule::InvalidShare)]);
    assert_eq!(cluster.node(3).view(), 4, "the two others and its own are enough");
}

/// The own vote counts when the collector is the voter itself.
#[test]
fn the_collectors_own_vote_counts() {
    let mut cluster = Cluster::new();
    let block = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[7]);
    cluster.tell(1, 0, cluster.keys.propose(&block)).unwrap();
    for signer in [2, 3] {
        cluster.tell(1, signer, Message::Vote(cluster.keys.vote(signer, &block))).unwrap();
    }
    assert_eq!(cluster.node(1).view(), 2);
    let to_itself = cluster
        .node(1)
        .said
        .iter()
        .any(|s| matches!(s, Recorded::Send(Recipients::One(ReplicaId(1)), _)));
    assert!(!to_itself);
}

/// Far-future flood: beyond the window only certificates are looked at, and what is kept of one
/// signer is bounded (common.md, Bounded everything).
#[test]
fn a_flood_of_votes_is_bounded() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let mut taken = 0;
    for view in 1..2_000 {
        for k in 0..3 {
            let mut block = cluster.keys.block(view, &genesis, 1, &[k]);
            block.author = ReplicaId(0);
            let vote = cluster.keys.vote(2, &block);
            taken += usize::from(cluster.give(1, 2, Message::Vote(vote)).is_ok());
        }
    }
    assert_eq!(taken, 9 * 3, "the current view and eight after it are let in");
    assert!(cluster.node(1).machine.votes.len() <= 9 * 2);
}

/// An equivocating leader fills at most two places a view, and both get a chance of bodies.
#[test]
fn an_equivocating_leader_is_bounded() {
    let mut cluster = Cluster::new();
    cluster.node_mut(3).has_bodies = false;
    let genesis = cluster.keys.genesis();
    for k in 0..100 {
        let block = cluster.keys.block(1, &genesis, 1, &[k]);
        cluster.tell(3, 0, cluster.keys.propose(&block)).unwrap();
    }
    assert_eq!(cluster.node(3).machine.tree.len(), 2);
    assert_eq!(cluster.node(3).misbehaviour.len(), 99);
}

/// Blocks whose parent is missing wait in bounded places.
#[test]
fn parked_blocks_are_bounded() {
    let mut cluster = Cluster::new();
    let mut justify = cluster.keys.genesis();
    let mut blocks = Vec::new();
    for view in 1..100 {
        let block = cluster.keys.block(view, &justify, view, &[]);
        justify = cluster.keys.certify(&block);
        blocks.push(block);
    }
    for block in blocks.iter().skip(1).filter(|b| b.author != ReplicaId(3)) {
        cluster.tell(3, block.author.0, cluster.keys.propose(block)).unwrap();
    }
    assert!(cluster.node(3).machine.parked.len() <= 16);
    assert_eq!(cluster.node(3).machine.view(), View(99));
}

/// The same with the lowest views given up for higher ones, at the bound and no sooner.
#[test]
fn the_lowest_of_too_many_parked_blocks_is_dropped() {
    let mut cluster = Cluster::of(10, |_| {});
    let keys = &cluster.keys;
    let mut justify =
        keys.certify_by(&keys.block(1, &keys.genesis(), 1, &[]), &[0, 1, 2, 3, 4, 5, 6]);
    let mut blocks = Vec::new();
    for view in 2..=10 {
        let twins = [7, 8].map(|k| keys.block(view, &justify, view, &[k]));
        justify = keys.certify_by(&twins[0], &[0, 1, 2, 3, 4, 5, 6]);
        blocks.extend(twins);
    }
    for block in &blocks {
        cluster.tell(0, block.author.0, cluster.keys.propose(block)).unwrap();
    }
    let parked: Vec<u64> = cluster.node(0).machine.parked.keys().map(|(view, _)| view.0).collect();
    let expected: Vec<u64> = (3..=10).flat_map(|view| [view, view]).collect();
    assert_eq!(parked, expected);
}

/// A parked block waits for its parent over views that go by meanwhile, but not for ever.
#[test]
fn a_parked_block_outlives_some_views() {
    for (until, waits) in [(3, true), (10, true), (11, false)] {
        let mut cluster = Cluster::new();
        let genesis = cluster.keys.genesis();
        let one = cluster.keys.block(1, &genesis, 1, &[]);
        let qc = cluster.keys.certify(&one);
        let two = cluster.keys.block(2, &qc, 2, &[]);
        cluster.tell(3, 1, cluster.keys.propose(&two)).unwrap();
        let tc = cluster.keys.tc(until - 1, &qc, &[(1, &[0, 1, 2])]);
        cluster.tell(3, 0, certificates(&qc, Some(&tc))).unwrap();
        assert_eq!(cluster.node(3).view(), until);
        let served = [borsh::to_vec(&one).unwrap().into()];
        let verifier = &cluster.node(3).verifier;
        let run = verify_run(Height(0), Some(genesis.id), one.id(), &[], &served, verifier);
        cluster.feed(3, Input::Run(Box::new(VerifiedRun::Chained(run.unwrap()))));
        assert_eq!(cluster.node(3).machine.has_block(two.id()), waits, "in view {until}");
    }
}

/// Entering a view drops what was collected for those before it, and nothing that is of use: votes
/// of the view before may still make a certificate.
#[test]
fn views_that_are_over_keep_nothing() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let collected = |cluster: &Cluster| {
        let machine = &cluster.node(1).machine;
        let (tallies, reported) = (&machine.timeouts.tallies, &machine.timeouts.reported);
        let votes: Vec<u64> = machine.votes.tallies.keys().map(|view| view.0).collect();
        (votes, tallies.len(), reported.len(), machine.proposals_seen.len())
    };
    let first = cluster.keys.block(1, &genesis, 1, &[]);
    cluster.tell(1, 0, cluster.keys.propose(&first)).unwrap();
    let timeout = cluster.keys.timeout(0, 1, &genesis, None);
    cluster.tell(1, 0, Message::Timeout(timeout)).unwrap();
    for view in [2, 3] {
        let block = cluster.keys.block(view, &genesis, 1, &[]);
        cluster.tell(1, 2, Message::Vote(cluster.keys.vote(2, &block))).unwrap();
    }
    assert_eq!(collected(&cluster), (vec![1, 2, 3], 1, 1, 1), "its own vote is of view 1");
    let tc = cluster.keys.tc(2, &genesis, &[(0, &[0, 2, 3])]);
    cluster.tell(1, 0, certificates(&genesis, Some(&tc))).unwrap();
    assert_eq!(collected(&cluster), (vec![2, 3], 0, 0, 0));
}

/// Decisions are remembered up to a bound, the latest of them.
#[test]
fn so_many_decisions_are_remembered() {
    let mut cluster = Cluster::new();
    for (block, _) in super::found_by_simulation::chain(&cluster.keys, 270) {
        cluster.tell(3, block.author.0, cluster.keys.propose(&block)).unwrap();
    }
    let decided: Vec<_> = cluster.node(3).decided.iter().map(|d| d.block).collect();
    assert_eq!(decided.len(), 268);
    let known = |id: &quorate_types::BlockId| cluster.node(3).machine.has_block(*id);
    assert_eq!(decided.iter().filter(|id| known(id)).count(), 256);
    assert!(decided[268 - 256..].iter().all(known));
}

/// An equivocating leader takes nothing from its first block: shown again, it gets the same vote
/// again.
#[test]
fn a_second_block_does_not_hide_the_first() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let [one, other] = [7, 8].map(|k| cluster.keys.block(1, &genesis, 1, &[k]));
    for block in [&one, &other, &one] {
        cluster.tell(3, 0, cluster.keys.propose(block)).unwrap();
    }
    let vote = cluster.keys.vote(3, &one);
    assert_eq!(cluster.node(3).votes(), [vote.clone(), vote]);
    assert_eq!(cluster.node(3).misbehaviour, [(ReplicaId(0), Rule::Equivocation)]);
}

/// A vote for what has its certificate is ignored, and counted as such.
#[test]
fn a_vote_after_the_certificate_is_ignored() {
    let mut cluster = Cluster::new();
    let block = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[7]);
    for signer in [0, 2, 3, 1] {
        cluster.tell(1, signer, Message::Vote(cluster.keys.vote(signer, &block))).unwrap();
    }
    let ignored = cluster.node(1).machine.ignored();
    assert_eq!(ignored.of(MessageKind::Vote, Ignored::AlreadyCertified), 1, "{ignored:?}");
    assert_eq!(cluster.node(1).machine.votes.len(), 1);
}

/// Members' links are none of the same length: a collector may have the votes for a block before
/// the block, and before the one under it. It proposes as soon as both are there, in either order.
#[test]
fn blocks_that_come_after_their_certificates_are_taken() {
    for late_first in [true, false] {
        let mut cluster = Cluster::new();
        let first = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[7]);
        let second = cluster.keys.block(2, &cluster.keys.certify(&first), 2, &[8]);
        for signer in [0, 1, 3] {
            let vote = cluster.keys.vote(signer, &second);
            cluster.tell(2, signer, Message::Vote(vote)).unwrap();
        }
        assert_eq!(cluster.node(2).view(), 3);
        assert_eq!(cluster.node(2).proposals(), [], "on nothing that it has");
        let mut late = [(0, &first), (1, &second)];
        if !late_first {
            late.reverse();
        }
        for (author, block) in late {
            cluster.tell(2, author, cluster.keys.propose(block)).unwrap();
        }
        let proposals = cluster.node(2).proposals();
        assert_eq!(proposals.len(), 1, "as soon as it has both: {late_first}");
        assert_eq!(proposals[0].block.parent(), second.id());
    }
}

/// Nobody keeps what is late and leads nowhere.
#[test]
fn a_late_block_that_nothing_rests_on_is_ignored() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let first = cluster.keys.block(1, &genesis, 1, &[7]);
    let second = cluster.keys.block(2, &cluster.keys.certify(&first), 2, &[8]);
    let third = cluster.keys.block(3, &cluster.keys.certify(&second), 3, &[9]);
    cluster.tell(3, 0, cluster.keys.propose(&first)).unwrap();
    cluster.tell(3, 1, cluster.keys.propose(&second)).unwrap();
    cluster.tell(3, 2, cluster.keys.propose(&third)).unwrap();
    let other = cluster.keys.block(1, &genesis, 1, &[10]);
    cluster.tell(3, 0, cluster.keys.propose(&other)).unwrap();
    let ignored = cluster.node(3).machine.ignored();
    assert_eq!(ignored.of(MessageKind::Proposal, Ignored::StaleView), 1, "{ignored:?}");
}

/// While a certified block is missing any late one may lead to it: of a leader that makes up more
/// of them two are kept, as of a view that is not over, and they show that it lies.
#[test]
fn a_leader_of_a_view_that_is_over_fills_nothing() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let first = cluster.keys.block(1, &genesis, 1, &[7]);
    let second = cluster.keys.block(2, &cluster.keys.certify(&first), 2, &[8]);
    for signer in [0, 1, 3] {
        let vote = cluster.keys.vote(signer, &second);
        cluster.tell(2, signer, Message::Vote(vote)).unwrap();
    }
    for k in 10..20 {
        let made_up = cluster.keys.block(1, &genesis, 1, &[k]);
        cluster.tell(2, 0, cluster.keys.propose(&made_up)).unwrap();
    }
    let machine = &cluster.node(2).machine;
    assert_eq!(machine.ignored().of(MessageKind::Proposal, Ignored::Conflicting), 8);
    assert_eq!(cluster.node(2).misbehaviour, [(ReplicaId(0), Rule::Equivocation); 9]);
    assert!(machine.occupancy().iter().all(|row| !row.is_exceeded()));
}
