//! What the driver may read of a machine: figures, leaders, blocks, and how full it is.

use super::harness::*;
use crate::block_tree::TreeBlock;
use crate::chained::messages::encode;
use crate::chained::{Message, Phase, PhaseVote};
use crate::{ProtocolKind, ProtocolView};
use quorate_types::{ReplicaId, View};
use std::collections::{BTreeMap, BTreeSet};

/// Leaders take turns from the current view on, which timeouts may have led to.
#[test]
fn upcoming_leaders_take_turns() {
    let mut cluster = Cluster::new();
    let upcoming = |cluster: &Cluster, views| -> Vec<u16> {
        let leaders = cluster.node(3).machine.upcoming_leaders(views);
        leaders.into_iter().map(|leader| leader.0).collect()
    };
    assert_eq!(upcoming(&cluster, 5), [0, 1, 2, 3, 0]);
    assert_eq!(upcoming(&cluster, 0), [0; 0]);
    let genesis = cluster.keys.genesis();
    let tc = cluster.keys.tc(6, &genesis, &[(0, &[0, 1, 2])]);
    cluster.tell(3, 0, certificates(&genesis, Some(&tc))).unwrap();
    assert_eq!(upcoming(&cluster, 3), [2, 3, 0]);
}

#[test]
fn the_status_is_of_the_current_view() {
    let mut cluster = Cluster::new();
    let figures = |cluster: &Cluster| {
        let status = cluster.node(3).machine.status();
        (status.view, status.leader, status.view_changes, status.certificate_bytes)
    };
    // A bitmap of four members and a length of nothing.
    assert_eq!(figures(&cluster), (View(1), ReplicaId(0), 0, 2 + 1 + 4));
    let genesis = cluster.keys.genesis();
    let one = cluster.keys.certify(&cluster.keys.block(1, &genesis, 1, &[]));
    cluster.tell(3, 0, certificates(&one, None)).unwrap();
    let signature = one.certificate.aggregate.0.len() as u64;
    assert_eq!(figures(&cluster), (View(2), ReplicaId(1), 0, 2 + 1 + 4 + signature));
    let tc = cluster.keys.tc(3, &one, &[(1, &[0, 1, 2])]);
    cluster.tell(3, 0, certificates(&one, Some(&tc))).unwrap();
    assert_eq!(figures(&cluster), (View(4), ReplicaId(3), 1, 2 + 1 + 4 + signature));
}

/// A driver fetches bodies for what may still get a vote, and keeps those that blocks order.
#[test]
fn undecided_blocks_are_of_use_while_their_view_lasts() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let [block, unknown] = [7, 8].map(|k| cluster.keys.block(1, &genesis, 1, &[k]));
    cluster.tell(3, 0, cluster.keys.propose(&block)).unwrap();
    let says = |cluster: &Cluster| {
        let machine = &cluster.node(3).machine;
        (machine.may_vote(block.id()), machine.may_vote(unknown.id()), machine.undecided_bodies())
    };
    assert_eq!(says(&cluster), (true, false, BTreeSet::from([body(7)])));
    let tc = cluster.keys.tc(1, &genesis, &[(0, &[0, 1, 2])]);
    cluster.tell(3, 0, certificates(&genesis, Some(&tc))).unwrap();
    assert_eq!(says(&cluster), (false, false, BTreeSet::from([body(7)])));
    assert!(!cluster.node(3).machine.has_stable_leader(), "leaders take turns");
    assert_eq!(cluster.node(3).machine.checkpoint_every(), None);
}

/// A chain that leads to what a message rests on comes before it. Votes show no certificate: the
/// highest that is known stands in for theirs.
#[test]
fn a_message_rests_on_a_certified_block() {
    let mut cluster = Cluster::running(ProtocolKind::HotStuffBasic);
    let keys = &cluster.keys;
    let block = keys.block(1, &keys.genesis(), 1, &[]);
    let of = |phase| keys.certify_in(phase, &block, &[0, 1, 2]);
    let (known, shown) = (of(Phase::Prepare), of(Phase::Commit));
    let vote = keys.vote_in(Phase::Commit, 2, &block);
    let phase_vote = PhaseVote { phase: Phase::Commit, vote: vote.clone() };
    let cases = [
        (keys.propose(&keys.block(2, &shown, 2, &[])), View(2), &shown, true),
        (Message::Timeout(keys.timeout(2, 3, &shown, None)), View(3), &shown, true),
        (Message::NewView(shown.clone()), View(1), &shown, true),
        (certificates(&shown, None), View(1), &shown, false),
        (certificates(&shown, Some(&keys.tc(4, &shown, &[]))), View(4), &shown, false),
        (Message::Vote(vote), View(1), &known, false),
        (Message::PhaseVote(phase_vote), View(1), &known, false),
        (Message::PreCommitted(of(Phase::PreCommit)), View(1), &known, false),
    ];
    cluster.tell(3, 0, certificates(&known, None)).unwrap();
    for (said, view, qc, reports) in cases {
        let message = ProtocolKind::HotStuffBasic.message(said);
        let (id, bytes) = cluster.node(3).machine.rests_on(&message).expect("a certificate");
        assert_eq!((id, bytes.as_ref()), (qc.id, &encode(qc)[..]), "{message:?}");
        assert_eq!((message.view(), message.reports()), (view, reports), "{message:?}");
    }
}

/// A certificate is told by view, block and base.
#[test]
fn a_certificate_is_written_by_what_it_certifies() {
    let keys = Keys::new(4);
    let block = keys.block(2, &keys.certify(&keys.block(1, &keys.genesis(), 1, &[])), 2, &[]);
    let written = format!("{:?}", keys.certify(&block));
    assert_eq!(written, format!("Qc(v2 {} based on v1)", block.id()));
}

/// How full each collection is, and the bounds that docs/bounds.md has for it.
fn fill(cluster: &Cluster) -> BTreeMap<&'static str, Vec<(usize, usize)>> {
    let mut rows: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for row in cluster.node(1).machine.occupancy() {
        assert!(!row.is_exceeded(), "{row:?}");
        rows.entry(row.field).or_default().push((row.entries, row.bound));
    }
    rows
}

#[test]
fn collections_are_as_full_as_they_may_be() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let tc = cluster.keys.tc(20, &genesis, &[(0, &[0, 1, 2])]);
    cluster.tell(1, 0, certificates(&genesis, Some(&tc))).unwrap();
    let mut block = cluster.keys.block(21, &genesis, 1, &[7]);
    block.tc = Some(tc.clone());
    cluster.tell(1, 0, cluster.keys.propose(&block)).unwrap();
    let timeout = cluster.keys.timeout(2, 21, &genesis, Some(&tc));
    cluster.tell(1, 2, Message::Timeout(timeout)).unwrap();
    // 2 blocks of each author in 16 views and two more, and one a view since the last decision.
    let tree = 2 * 4 * 18 + 22;
    let expected = BTreeMap::from([
        ("outputs", vec![(0, 0)]),
        ("voted", vec![(1, 22)]),
        ("parked", vec![(0, 16)]),
        ("proposals_seen", vec![(1, 13), (1, 8)]),
        ("blocks", vec![(1, tree)]),
        ("stored", vec![(1, tree)]),
        ("decided", vec![(1, 256)]),
        ("tallies", vec![(1, 10), (1, 24)]),
        ("reported", vec![(1, 4)]),
        ("shown_at", vec![(0, 4)]),
        ("new_views", vec![(0, 4)]),
    ]);
    assert_eq!(fill(&cluster), expected);
}
