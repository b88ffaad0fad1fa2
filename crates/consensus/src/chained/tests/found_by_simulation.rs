//! Regressions: what simulated committees stumbled over. The seed is that of the scenario which
//! showed it, in the simulator of its time; the test is its cause, driven by hand.

use super::harness::*;
use crate::ProtocolView;
use crate::block_tree::TreeBlock;
use crate::chained::{Block, Message, Qc};
use quorate_types::{Recipients, ReplicaId};

fn answers(cluster: &Cluster, id: u16, to: u16) -> Vec<Message> {
    cluster
        .node(id)
        .said
        .iter()
        .filter_map(|said| match said {
            Recorded::Send(Recipients::One(one), message) if *one == ReplicaId(to) => {
                Some(message.as_ref().clone())
            }
            _ => None,
        })
        .collect()
}

/// A chain of empty blocks in consecutive views from 1 on, each with its certificate.
pub(super) fn chain(keys: &Keys, length: u64) -> Vec<(Block, Qc)> {
    let mut justify = keys.genesis();
    let mut chain = Vec::new();
    for view in 1..=length {
        let block = keys.block(view, &justify, view, &[]);
        justify = keys.certify(&block);
        chain.push((block, justify.clone()));
    }
    chain
}

/// Seed 20036 with twins: a certificate is shown long after its view, and nobody has its block any
/// more.
#[test]
fn a_block_voted_for_survives_until_a_later_certificate() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let block = cluster.keys.block(1, &genesis, 1, &[]);
    let proposal = cluster.keys.propose(&block);
    cluster.tell(3, 0, proposal).unwrap();
    assert_eq!(cluster.node(3).votes().len(), 1);
    for view in 1..=20 {
        let tc = cluster.keys.tc(view, &genesis, &[(0, &[0, 1, 2])]);
        cluster.tell(3, 0, certificates(&genesis, Some(&tc))).unwrap();
    }
    assert_eq!(cluster.node(3).view(), 21);
    assert!(cluster.node(3).machine.has_block(block.id()), "pruned");
    cluster.restart(3);
    assert!(cluster.node(3).machine.has_block(block.id()), "lost in a restart");
}

/// Seed 31249 with twins: same view, but one replica entered it knowing less; everybody else is
/// idle.
#[test]
fn a_timeout_of_the_same_view_that_knows_less_is_answered() {
    let mut cluster = Cluster::new();
    let (_, one) = chain(&cluster.keys, 1).remove(0);
    cluster.tell(3, 0, certificates(&one, None)).unwrap();
    let genesis = cluster.keys.genesis();
    let tc = cluster.keys.tc(1, &genesis, &[(0, &[0, 1, 2])]);
    let timeout = cluster.keys.timeout(2, 2, &genesis, Some(&tc));
    cluster.tell(3, 2, Message::Timeout(timeout)).unwrap();
    assert!(answers(&cluster, 3, 2).contains(&certificates(&one, None)));
}

/// Seed 504 with twins and storms: a later certificate that decides nothing hides the one that
/// decided.
#[test]
fn a_deciding_certificate_is_shown_and_taken_however_old() {
    let mut cluster = Cluster::new();
    let mut blocks = chain(&cluster.keys, 2);
    let (second, decides_first) = blocks.pop().unwrap();
    let (first, _) = blocks.pop().unwrap();
    // View 3 is skipped: the block of view 4 decides nothing by itself.
    let tc = cluster.keys.tc(3, &decides_first, &[(2, &[0, 1, 2])]);
    let mut fourth = cluster.keys.block(4, &decides_first, 3, &[]);
    fourth.tc = Some(tc);
    let hides = cluster.keys.certify(&fourth);
    for block in [&first, &second, &fourth] {
        let proposal = cluster.keys.propose(block);
        // Replica 2 misses the certificate inside the last one, and so the decision.
        if block.view != fourth.view {
            cluster.tell(2, block.author.0, proposal.clone()).unwrap();
        }
        cluster.tell(1, block.author.0, proposal).unwrap();
    }
    for id in [1, 2] {
        cluster.tell(id, 0, certificates(&hides, None)).unwrap();
    }
    assert_eq!((cluster.node(1).decided.len(), cluster.node(2).decided.len()), (1, 0));
    let timeout = cluster.keys.timeout(2, 5, &hides, None);
    cluster.tell(1, 2, Message::Timeout(timeout)).unwrap();
    let answer = answers(&cluster, 1, 2).pop().expect("an answer");
    assert_eq!(answer, certificates(&decides_first, None));
    cluster.tell(2, 1, answer).unwrap();
    assert_eq!(cluster.node(2).decided.len(), 1);
}
