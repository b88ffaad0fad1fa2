//! Leaders whose last turns came to nothing are passed over, under every protocol of this machine.

use super::harness::*;
use crate::block_tree::TreeBlock;
use crate::chained::{Block, Qc};
use crate::leader::{LeaderReputation, RoundRobin};
use crate::{ProtocolConfig, ProtocolKind, ProtocolView, Rule};
use quorate_types::{ReplicaId, View};
use std::collections::BTreeSet;

const BODIES: u64 = 40;

/// Four members, of which the last is dead, after so many bodies; how many views timed out, and
/// how many the others complained about.
fn with_a_dead_member(
    protocol: ProtocolKind,
    tune: fn(&mut ProtocolConfig),
) -> Result<(Cluster, [usize; 2]), String> {
    let mut cluster = Cluster::with(Keys::new(4).running(protocol), tune);
    cluster.node_mut(3).up = false;
    for k in 0..BODIES {
        cluster.submit(k);
        cluster.run("a body", |c| c.all_decided(&[k]))?;
    }
    cluster.ensure_agreement()?;
    let timed_out = cluster.node(0).machine.status().view_changes as usize;
    let views = |id| cluster.node(id).timeouts().into_iter().map(|timeout| timeout.view);
    let complained: BTreeSet<View> = (0..3).flat_map(views).collect();
    let complained = complained.len();
    Ok((cluster, [timed_out, complained]))
}

fn reputation(config: &mut ProtocolConfig) {
    config.liveness.leader_reputation = true;
}

#[test]
fn a_dead_leader_is_passed_over() {
    for protocol in ProtocolKind::CHAINED {
        let (_, by_turns) = with_a_dead_member(protocol, |_| {}).unwrap();
        let (_, timed_out) = with_a_dead_member(protocol, reputation).unwrap();
        let fewer = timed_out.iter().zip(&by_turns).all(|(few, many)| few * 3 < *many);
        assert!(fewer, "{protocol}: {timed_out:?} of {by_turns:?}");
    }
}

/// It makes blocks again once it is back, without anybody being told: it is tried again later.
#[test]
fn whoever_comes_back_leads_again() {
    for protocol in ProtocolKind::CHAINED {
        let (mut cluster, _) = with_a_dead_member(protocol, reputation).unwrap();
        cluster.node_mut(3).up = true;
        cluster.restart(3);
        for k in BODIES..3 * BODIES {
            cluster.submit(k);
            cluster.run("a body", |c| c.all_decided(&[k])).unwrap();
        }
        cluster.ensure_agreement().unwrap();
        assert!(!cluster.node(3).proposals().is_empty(), "{protocol}: it leads again");
        let failures = &cluster.node(0).machine.leader_failures;
        assert!(failures.trusts(ReplicaId(3)), "{protocol}: its views have their full span again");
    }
}

/// Whom to pass over is in the blocks: a replica that starts again knows it from its records.
#[test]
fn standing_survives_a_restart() {
    for protocol in ProtocolKind::CHAINED {
        let (mut cluster, before) = with_a_dead_member(protocol, reputation).unwrap();
        for id in 0..3 {
            cluster.restart_executed(id);
        }
        let began = cluster.node(0).machine.status().view_changes;
        for k in BODIES..BODIES + 12 {
            cluster.submit(k);
            cluster.run("a body", |c| c.all_decided(&[k])).unwrap();
        }
        cluster.ensure_agreement().unwrap();
        let after = cluster.node(0).machine.status().view_changes - began;
        assert!(after <= 2, "{protocol}: {after} after {before:?}");
    }
}

/// A block whose reputation is not what its parent's comes to gets no vote, and its author is
/// reported.
#[test]
fn an_invented_standing_is_refused() {
    for (tune, protocol) in ProtocolKind::CHAINED
        .into_iter()
        .flat_map(|p| [(reputation as fn(&mut _), p), (|_: &mut _| {}, p)])
    {
        let mut cluster = Cluster::with(Keys::new(4).running(protocol), tune);
        cluster.submit(7);
        let keys = &cluster.keys;
        let weights = keys.committee.weights();
        let turns = RoundRobin::new(weights);
        let mut block = keys.block(1, &keys.genesis(), 1, &[7]);
        block.reputation =
            LeaderReputation::new().after((View(1), View(3)), ReplicaId(0), &turns, weights);
        assert!(!block.reputation.is_empty());
        let proposal = keys.propose(&block);
        cluster.tell(3, 0, proposal).unwrap();
        assert!(
            cluster.node(3).votes().is_empty(),
            "{protocol}: a vote for an invented reputation"
        );
        assert!(cluster.node(3).misbehaviour.contains(&(ReplicaId(0), Rule::LeaderReputation)));
        let honest = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[7]);
        let honest = cluster.keys.propose(&honest);
        cluster.tell(3, 0, honest).unwrap();
        assert!(!cluster.node(3).votes().is_empty(), "{protocol}: the honest block gets its vote");
    }
}

/// In a view that would be its own by turns, a member that is passed over is not heard.
#[test]
fn who_is_passed_over_does_not_lead() {
    let mut cluster = Cluster::with(Keys::new(4), reputation);
    cluster.node_mut(3).up = false;
    let its_turn = |cluster: &Cluster| {
        let machine = &cluster.node(0).machine;
        let (view, high) = (machine.view().0, machine.high_qc().clone());
        (cluster.keys.leader(view) == 3 && high.view.0 + 1 == view).then_some((view, high))
    };
    // One body or two at a time, or the committee would rest in every second view only.
    let mut bodies = 0;
    let (view, high) = loop {
        let batch: Vec<u64> = (bodies..=bodies + bodies % 3 % 2).collect();
        bodies += batch.len() as u64;
        for body in &batch {
            cluster.submit(*body);
        }
        cluster.run("bodies", |c| c.all_decided(&batch)).unwrap();
        match its_turn(&cluster) {
            Some(found) if bodies > 4 => break found,
            _ => assert!(bodies < 100, "its turn never came"),
        }
    };
    let upcoming = cluster.node(0).machine.upcoming_leaders(4);
    assert!(!upcoming.contains(&ReplicaId(3)), "{upcoming:?}");
    let seen = cluster.node(0).votes().len();
    let block = cluster.keys.block(view, &high, cluster.node(0).decided.len() as u64 + 1, &[]);
    cluster.tell(0, 3, cluster.keys.propose(&block)).unwrap();
    assert_eq!(cluster.node(0).votes().len(), seen);
    assert!(!cluster.node(0).machine.has_block(block.id()));
}

/// The block of `view` on a certified one of this reputation, with what comes of it.
fn extend(keys: &Keys, view: u64, justify: &Qc, height: u64, before: &LeaderReputation) -> Block {
    let weights = keys.committee.weights();
    let mut block = keys.block(view, justify, height, &[]);
    if view != justify.view.0 + 1 {
        block.tc = Some(keys.tc(view - 1, justify, &[(justify.view.0, &[0, 1, 2])]));
    }
    let (views, turns) = ((justify.view, block.view), RoundRobin::new(weights));
    block.reputation = before.after(views, block.author, &turns, weights);
    block
}

/// A chain up to view 7 in which member 3's turn, view 4, came to nothing: in view 8, its next one,
/// it is passed over for member 0, if the certificate of view 7 leads there.
fn past_a_failed_turn(keys: &Keys) -> Vec<(Block, Qc)> {
    let (mut justify, mut reputation) = (keys.genesis(), LeaderReputation::new());
    let mut chain = Vec::new();
    for (height, view) in (1..).zip([1, 2, 3, 5, 6, 7]) {
        let block = extend(keys, view, &justify, height, &reputation);
        (justify, reputation) = (keys.certify(&block), block.reputation.clone());
        chain.push((block, justify.clone()));
    }
    chain
}

/// A member that has the chain up to view 7, whose certificate it lacks, and stands in view 8 by
/// timeouts.
fn in_view_8_by_timeouts(id: u16) -> (Cluster, Vec<(Block, Qc)>) {
    let mut cluster = Cluster::with(Keys::new(4), reputation);
    let chain = past_a_failed_turn(&cluster.keys);
    for (block, _) in &chain {
        cluster.tell(id, block.author.0, cluster.keys.propose(block)).unwrap();
    }
    let tc = cluster.keys.tc(7, &chain[4].1, &[(6, &[1, 2, 3])]);
    cluster.tell(id, 1, certificates(&chain[4].1, Some(&tc))).unwrap();
    let upcoming = cluster.node(id).machine.upcoming_leaders(1);
    assert_eq!((cluster.node(id).view(), upcoming), (8, vec![ReplicaId(3)]), "by turns");
    (cluster, chain)
}

/// The certificate of the view before may come after its timeouts, and name another leader for the
/// view that both lead to: that one proposes.
#[test]
fn a_certificate_after_the_timeouts_makes_another_lead() {
    let (mut cluster, chain) = in_view_8_by_timeouts(0);
    let before = cluster.node(0).proposals().len();
    cluster.pending.push(body(9));
    cluster.tell(0, 1, certificates(&chain[5].1, None)).unwrap();
    assert_eq!(cluster.node(0).machine.upcoming_leaders(1), [ReplicaId(0)]);
    let proposals = cluster.node(0).proposals();
    assert_eq!(proposals.len(), before + 1);
    let block = &proposals[before].block;
    assert_eq!((block.view, block.author), (View(8), ReplicaId(0)));
    assert_eq!((&block.justify, &block.tc), (&chain[5].1, &None));
}

/// Unless it has voted for another's block in that view.
#[test]
fn who_voted_in_a_view_does_not_take_it_over() {
    let (mut cluster, chain) = in_view_8_by_timeouts(0);
    let before = cluster.node(0).proposals().len();
    cluster.pending.push(body(9));
    let others = extend(&cluster.keys, 8, &chain[4].1, 6, &chain[4].0.reputation);
    cluster.tell(0, 3, cluster.keys.propose(&others)).unwrap();
    let promised = cluster.node(0).promises().map(|promised| promised.voted_view);
    assert_eq!(promised, Some(View(8)));
    cluster.tell(0, 1, certificates(&chain[5].1, None)).unwrap();
    assert_eq!(cluster.node(0).machine.upcoming_leaders(1), [ReplicaId(0)]);
    assert_eq!(cluster.node(0).proposals().len(), before);
}

/// Whoever led the view that timed out has failed, not the one whose turn it was.
#[test]
fn a_failure_is_of_the_leader_that_was_waited_for() {
    let mut cluster = Cluster::with(Keys::new(4), reputation);
    let chain = past_a_failed_turn(&cluster.keys);
    for (block, _) in &chain {
        cluster.tell(1, block.author.0, cluster.keys.propose(block)).unwrap();
    }
    let qc = &chain[5].1;
    cluster.tell(1, 0, certificates(qc, None)).unwrap();
    let trusted = |cluster: &Cluster| {
        let failures = &cluster.node(1).machine.leader_failures;
        [0, 1, 2, 3].map(|member| failures.trusts(ReplicaId(member)))
    };
    assert_eq!(trusted(&cluster), [true, true, true, false]);
    let tc = cluster.keys.tc(8, qc, &[(7, &[1, 2, 3])]);
    cluster.tell(1, 2, certificates(qc, Some(&tc))).unwrap();
    assert_eq!(trusted(&cluster), [false, true, true, false]);
}
