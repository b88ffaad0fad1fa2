//! Restarts: what survives them (jolteon.md: PERSIST; common.md, machine contract 6).

use super::harness::*;
use crate::block_tree::TreeBlock;
use crate::chained::{Message, Phase};
use crate::{Input, ProtocolView, Statement};
use bytes::Bytes;
use quorate_crypto::Digest;
use quorate_types::machine::Halt;
use quorate_types::{BlockId, BodyRef, View};
use std::collections::{BTreeMap, BTreeSet};

/// The same vote is sent again byte for byte; another id for the same view is refused.
pub(super) fn check_a_vote_survives_a_restart() -> Check {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let block = cluster.keys.block(1, &genesis, 1, &[7]);
    let proposal = cluster.keys.propose(&block);
    cluster.tell(3, 0, proposal.clone())?;
    let vote = cluster.node(3).votes().pop().ok_or("it votes")?;
    cluster.restart(3);
    ensure(cluster.node(3).votes() == [vote.clone()], "the vote is sent again by itself")?;
    let other = cluster.keys.block(1, &genesis, 1, &[8]);
    let other = cluster.keys.propose(&other);
    cluster.tell(3, 0, other)?;
    cluster.tell(3, 0, proposal)?;
    let votes = cluster.node(3).votes();
    ensure(votes.iter().all(|v| *v == vote), "it voted for something else")?;
    ensure(votes.len() == 2, "and the same proposal gets the same vote again")
}

#[test]
fn a_vote_survives_a_restart() {
    check_a_vote_survives_a_restart().unwrap();
}

/// ★ Of whoever may not sign any more nobody hears a vote again.
#[test]
fn a_member_that_stops_signing_repeats_nothing() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let block = cluster.keys.block(1, &genesis, 1, &[7]);
    let proposal = cluster.keys.propose(&block);
    cluster.tell(3, 0, proposal.clone()).unwrap();
    assert_eq!(cluster.node(3).votes().len(), 1);
    cluster.feed(3, Input::StopSigning);
    cluster.tell(3, 0, proposal).unwrap();
    assert_eq!(cluster.node(3).votes().len(), 1);
}

/// ★ The record of a vote accounts for it and for all before it: not for another in its view, nor
/// for a later one.
#[test]
fn records_account_for_what_was_signed_and_for_nothing_else() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let block = cluster.keys.block(2, &genesis, 1, &[7]);
    let tc = cluster.keys.tc(1, &genesis, &[(0, &[0, 1, 2])]);
    cluster.tell(3, 0, certificates(&genesis, Some(&tc))).unwrap();
    let block = crate::chained::Block { tc: Some(tc), ..block };
    cluster.tell(3, 1, cluster.keys.propose(&block)).unwrap();
    assert_eq!(cluster.node(3).votes().len(), 1);
    cluster.restart(3);
    let known = |statement| cluster.node(3).machine.accounts_for(&statement);
    let vote = |view, id| {
        let (block, base) = ((View(view), id), (View(0), block.justify.id));
        Statement::Vote { phase: Phase::Prepare, block, base }
    };
    let other = BlockId(Digest([9; 32]));
    assert!(known(vote(2, block.id())) && known(vote(1, other)));
    assert!(!known(vote(2, other)) && !known(vote(3, other)));
    let timeout =
        |view, reported| known(Statement::Timeout { view: View(view), reported: View(reported) });
    assert!(timeout(0, 0) && !timeout(2, 0), "no view timed out here");
    assert!(!known(Statement::Proposal { view: View(2), id: block.id() }), "that was another's");
}

/// A timeout survives: no vote in a view that timed out before the restart.
#[test]
fn a_timeout_survives_a_restart() {
    let mut cluster = Cluster::new();
    cluster.submit(7);
    cluster.fire(3).unwrap();
    cluster.restart(3);
    let block = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[7]);
    cluster.tell(3, 0, cluster.keys.propose(&block)).unwrap();
    assert!(cluster.node(3).votes().is_empty());
}

/// The timeout certificate survives: the view is the one that it led to.
pub(super) fn check_a_timeout_certificate_survives_a_restart() -> Check {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let tc = cluster.keys.tc(6, &genesis, &[(0, &[0, 1, 2])]);
    cluster.submit(7);
    cluster.tell(3, 0, certificates(&genesis, Some(&tc)))?;
    cluster.fire(3)?;
    cluster.restart(3);
    ensure(cluster.node(3).view() == 7, format!("it stands in {}", cluster.node(3).view()))?;
    cluster.fire(3)?;
    let timeout = cluster.node(3).timeouts().pop().ok_or("it times out again")?;
    ensure(timeout.high_tc == Some(tc), "and shows what led there")
}

#[test]
fn a_timeout_certificate_survives_a_restart() {
    check_a_timeout_certificate_survives_a_restart().unwrap();
}

/// A leader that restarts proposes the stored bytes again, nothing else.
#[test]
fn a_proposal_survives_a_restart() {
    let mut cluster = Cluster::new();
    cluster.submit(7);
    let proposal = cluster.node(0).proposals().pop().expect("it leads view 1");
    cluster.pending = vec![body(8)];
    cluster.restart(0);
    let again = cluster.node(0).proposals();
    assert_eq!(again.len(), 1);
    assert_eq!(borsh::to_vec(&again[0]).unwrap(), borsh::to_vec(&proposal).unwrap());
}

/// The lock survives: the first timeout after a restart reports the certificate that was locked.
#[test]
fn the_highest_certificate_survives_a_restart() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let one = cluster.keys.block(1, &genesis, 1, &[7]);
    let two = cluster.keys.block(2, &cluster.keys.certify(&one), 2, &[]);
    cluster.tell(3, 0, cluster.keys.propose(&one)).unwrap();
    cluster.tell(3, 1, cluster.keys.propose(&two)).unwrap();
    cluster.restart(3);
    cluster.fire(3).unwrap();
    let timeout = cluster.node(3).timeouts().pop().expect("undecided blocks are work");
    assert_eq!((timeout.view, timeout.high_qc.view), (View(2), View(1)));
}

/// Decisions are made again for the engine to execute, in order, and nothing twice.
#[test]
fn decisions_survive_a_restart() {
    let mut cluster = Cluster::new();
    for k in 0..4 {
        cluster.submit(k);
    }
    cluster.run("decisions", |c| c.all_decided(&[0, 1, 2, 3])).unwrap();
    let before: Vec<_> = cluster.node(2).decided.iter().map(|d| d.block).collect();
    cluster.restart(2);
    let after: Vec<_> = cluster.node(2).decided.iter().map(|d| d.block).collect();
    assert_eq!(before, after);
    cluster.restart_executed(2);
    assert!(cluster.node(2).decided.is_empty(), "what was executed is not said again");
    cluster.pending.clear();
    cluster.submit(9);
    cluster.run("another decision", |c| c.all_decided(&[9])).unwrap();
}

/// A replica that restarted knows no certificate older than its last decided block. One that comes
/// late contradicts nothing.
#[test]
fn restart_ignores_certificates_older_than_its_root() {
    let mut cluster = Cluster::new();
    for k in 0..6 {
        cluster.submit(k);
    }
    cluster.run("decisions", |c| c.all_decided(&[0, 1, 2, 3, 4, 5])).unwrap();
    let proposals: Vec<_> = cluster.nodes.iter().flat_map(Node::proposals).collect();
    for restart in [Cluster::restart, Cluster::restart_executed] {
        restart(&mut cluster, 3);
        for proposal in &proposals {
            let author = proposal.block.author.0;
            if author != 3 {
                cluster.give(3, author, Message::Proposal(proposal.clone())).ok();
            }
        }
        assert_eq!(cluster.node(3).halted, None);
    }
}

/// Everybody loses power at once, at any moment, and goes on.
#[test]
fn all_restart_at_once_and_go_on() {
    for moment in 0..40 {
        let mut cluster = Cluster::new();
        cluster.submit(7);
        cluster.submit(8);
        let mut left = moment;
        cluster.cut = Box::new(move |_| {
            left -= 1;
            left < 0
        });
        cluster.deliver();
        cluster.wire.clear();
        cluster.cut = Box::new(|_| false);
        for id in 0..4 {
            cluster.restart(id);
        }
        let what = format!("decisions after a power cut at message {moment}");
        cluster.run(&what, |c| c.all_decided(&[7, 8])).unwrap();
        cluster.ensure_agreement().unwrap();
    }
}

/// Three of four time out, restart all at once with the fourth dead, and go on: each counts its own
/// timeout again.
#[test]
fn all_restart_after_timing_out_and_go_on_with_one_dead() {
    let mut cluster = Cluster::new();
    cluster.node_mut(0).up = false;
    cluster.submit(7);
    cluster.cut = Box::new(|_| true);
    cluster
        .run("timeouts", |c| [1, 2, 3].iter().all(|id| !c.node(*id).timeouts().is_empty()))
        .unwrap();
    cluster.wire.clear();
    cluster.cut = Box::new(|_| false);
    for id in 1..4 {
        cluster.restart(id);
    }
    cluster.run("a decision", |c| c.all_decided(&[7])).unwrap();
}

/// A record of another epoch, or bytes that are none, stop the replica.
#[test]
fn a_record_that_is_not_ours_halts() {
    let mut cluster = Cluster::new();
    cluster.submit(7);
    let mut promises = cluster.node(0).promises().expect("it proposed");
    promises.epoch = quorate_types::EpochId([9; 32]);
    let foreign = Bytes::from(borsh::to_vec(&promises).unwrap());
    for safety in [foreign, Bytes::from_static(b"torn")] {
        let mut cluster = Cluster::new();
        let recovered = Input::Recovered {
            slots: Vec::new(),
            safety: Some(safety),
            executed: None,
            decided: vec![],
            stored: BTreeSet::new(),
        };
        cluster.feed(3, recovered);
        let halted = cluster.node(3).halted.clone();
        assert!(matches!(halted, Some(Halt::CorruptRecovery(_))), "{halted:?}");
    }
}

/// What passed for whole and is not: a list of bodies that the header does not commit to.
#[test]
fn a_record_of_other_bodies_than_its_header_names_halts() {
    let mut cluster = Cluster::new();
    cluster.submit(7);
    let promises = cluster.node(0).promises().expect("it proposed");
    cluster.run("a decision", |c| c.all_decided(&[7])).unwrap();
    let record = cluster.node(3).records[0].clone();
    let mut decided: crate::chained::DecidedBlock = borsh::from_slice(&record).unwrap();
    decided.block.payload.bodies.push(BodyRef::of_change(Digest::ZERO));
    let decided = vec![Bytes::from(borsh::to_vec(&decided).unwrap())];
    let mut chain = promises.clone();
    chain.blocks[0].payload.bodies.push(BodyRef::of_change(Digest::ZERO));
    let mut proposal = promises;
    let proposed = proposal.last_proposal.as_mut().expect("it proposed");
    proposed.block.payload.bodies.push(BodyRef::of_change(Digest::ZERO));
    let safety = |record| Some(Bytes::from(borsh::to_vec(&record).unwrap()));
    for (safety, decided) in [(None, decided), (safety(chain), vec![]), (safety(proposal), vec![])]
    {
        let mut cluster = Cluster::new();
        let (slots, executed, stored) = (Vec::new(), None, BTreeSet::new());
        cluster.feed(3, Input::Recovered { slots, safety, executed, decided, stored });
        let Some(Halt::CorruptRecovery(reason)) = cluster.node(3).halted.clone() else {
            panic!("it goes on")
        };
        assert!(reason.contains("names other bodies"), "{reason}");
    }
}

/// Decided records with a gap stop the replica.
#[test]
fn decided_records_with_a_gap_halt() {
    let mut cluster = Cluster::new();
    for k in 0..4 {
        cluster.submit(k);
    }
    cluster.run("decisions", |c| c.all_decided(&[0, 1, 2, 3])).unwrap();
    cluster.node_mut(3).records.remove(1);
    cluster.restart(3);
    assert!(matches!(cluster.node(3).halted, Some(Halt::CorruptRecovery(_))));
}

/// The undecided chain is in the record: a certified block exists after everybody lost power.
#[test]
fn the_record_holds_the_undecided_chain() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let one = cluster.keys.block(1, &genesis, 1, &[7]);
    let two = cluster.keys.block(2, &cluster.keys.certify(&one), 2, &[]);
    cluster.tell(3, 0, cluster.keys.propose(&one)).unwrap();
    cluster.tell(3, 1, cluster.keys.propose(&two)).unwrap();
    cluster.restart(3);
    for block in [&one, &two] {
        assert!(cluster.node(3).machine.has_block(block.id()));
    }
}

/// Votes after the highest certificate are remembered over a restart, with their blocks: views that
/// go by after it do not drop them, nor does another restart.
#[test]
fn a_block_voted_for_before_a_restart_survives_views_after_it() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let one = cluster.keys.block(1, &genesis, 1, &[]);
    let qc = cluster.keys.certify(&one);
    let two = cluster.keys.block(2, &qc, 2, &[]);
    cluster.tell(3, 0, cluster.keys.propose(&one)).unwrap();
    cluster.tell(3, 1, cluster.keys.propose(&two)).unwrap();
    cluster.restart(3);
    let voted = |cluster: &Cluster| cluster.node(3).machine.voted.clone();
    assert_eq!(voted(&cluster), BTreeMap::from([(View(2), two.id())]));
    let tc = cluster.keys.tc(20, &qc, &[(1, &[0, 1, 2])]);
    cluster.tell(3, 0, certificates(&qc, Some(&tc))).unwrap();
    assert_eq!(cluster.node(3).view(), 21);
    assert!(cluster.node(3).machine.has_block(two.id()), "dropped with its view");
    cluster.submit(7);
    cluster.fire(3).unwrap();
    cluster.restart(3);
    assert!(cluster.node(3).machine.has_block(two.id()), "lost in another restart");
}
