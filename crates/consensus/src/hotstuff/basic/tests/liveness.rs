//! Liveness: decisions go on, whoever is gone.

use super::{certify, four, show, show_phase};
use crate::ProtocolKind;
use crate::chained::tests::harness::{Check, Cluster, Envelope, Keys, Node, certificates, ensure};
use crate::chained::{DecidedBlock, Message, Phase};
use quorate_types::{Time, View};

fn submit(cluster: &mut Cluster, bodies: &[u64]) {
    for body in bodies {
        cluster.submit(*body);
    }
}

fn timeouts(cluster: &Cluster) -> usize {
    cluster.nodes.iter().map(|node| node.timeouts().len()).sum()
}

/// One view a decision, and no timer: messages alone decide.
#[test]
fn a_committee_decides_in_every_view() {
    let mut cluster = four();
    submit(&mut cluster, &[1, 2, 3]);
    cluster.deliver();
    assert!(cluster.all_decided(&[1, 2, 3]));
    cluster.ensure_agreement().unwrap();
    let views: Vec<u64> = cluster.nodes.iter().map(Node::view).collect();
    assert_eq!((views, timeouts(&cluster)), (vec![4; 4], 0));
}

/// With nothing left to order everybody is silent, at one height, and no timer runs.
#[test]
fn a_committee_without_work_is_silent() {
    let mut cluster = four();
    assert_eq!((cluster.wire.len(), cluster.next_timeout()), (0, None));
    submit(&mut cluster, &[1]);
    cluster.deliver();
    assert!(cluster.wire.is_empty());
    assert_eq!(cluster.next_timeout(), None::<Time>);
    let heights: Vec<usize> = cluster.nodes.iter().map(|node| node.decided.len()).collect();
    assert_eq!(heights, [1; 4]);
}

#[test]
fn one_crashed_leader_of_four() {
    for crashed in 0..4 {
        let mut cluster = four();
        cluster.node_mut(crashed).up = false;
        submit(&mut cluster, &[1, 2, 3]);
        cluster.run("three bodies", |c| c.all_decided(&[1, 2, 3])).unwrap();
        cluster.ensure_agreement().unwrap();
    }
}

/// f dead leaders in a row.
#[test]
fn dead_leaders_in_a_row() {
    let keys = Keys::new(7).running(ProtocolKind::HotStuffBasic);
    let mut cluster = Cluster::with(keys, |_| {});
    for dead in [2, 3] {
        cluster.node_mut(dead).up = false;
    }
    submit(&mut cluster, &[1, 2, 3]);
    cluster.run("three bodies", |c| c.all_decided(&[1, 2, 3])).unwrap();
    cluster.ensure_agreement().unwrap();
}

/// Returns `true` if the envelope shows what the votes of this phase of view 1 have come to.
fn shows(envelope: &Envelope, phase: Phase) -> bool {
    match &envelope.message {
        Message::Certificates { high_qc, .. } => {
            let is_last = high_qc.base_view == high_qc.view;
            high_qc.view == View(1)
                && is_last == (phase == Phase::Commit)
                && phase != Phase::PreCommit
        }
        Message::PreCommitted(qc) => qc.view == View(1) && phase == Phase::PreCommit,
        _ => false,
    }
}

/// A leader withholds what it collected, in each phase: the others decide all the same.
#[test]
fn a_withheld_certificate_of_each_phase() {
    for phase in [Phase::Prepare, Phase::PreCommit, Phase::Commit] {
        let mut cluster = four();
        submit(&mut cluster, &[1]);
        cluster.cut = Box::new(move |envelope| envelope.from == 0 && shows(envelope, phase));
        cluster.run("the body", |c| c.all_decided(&[1])).unwrap();
        cluster.ensure_agreement().unwrap();
        assert!(timeouts(&cluster) > 0, "{phase:?} was withheld");
    }
}

/// A leader dies with the certificate that decides: the votes in complaints make it again, without
/// another view.
pub(super) fn check_a_withheld_decision_is_made_again() -> Check {
    let mut cluster = four();
    submit(&mut cluster, &[1]);
    cluster.cut = Box::new(|envelope| {
        let later = matches!(&envelope.message, Message::Proposal(p) if p.block.view > View(1));
        let tells = matches!(envelope.message, Message::NewView(_));
        later || (envelope.from == 0 && (tells || shows(envelope, Phase::Commit)))
    });
    cluster.run("the body", |c| c.all_decided(&[1]))?;
    let records = cluster.nodes.iter().map(|node| node.records[0].clone());
    for record in records {
        let record: DecidedBlock = borsh::from_slice(&record).map_err(|e| e.to_string())?;
        ensure(record.commit.view == View(1), "decided by a later view")?;
    }
    cluster.ensure_agreement()
}

#[test]
fn a_withheld_decision_is_made_again() {
    check_a_withheld_decision_is_made_again().unwrap();
}

/// A member that missed DECIDE decides with the next proposal, without a timer and in time to vote.
#[test]
fn a_laggard_catches_up_with_the_next_proposal() {
    let mut cluster = four();
    cluster.cut = Box::new(|envelope| envelope.to == 3 && shows(envelope, Phase::Commit));
    submit(&mut cluster, &[1, 2]);
    cluster.deliver();
    assert!(cluster.all_decided(&[1, 2]));
    assert_eq!(timeouts(&cluster), 0);
}

/// With nothing to follow, its own complaint brings the decision.
#[test]
fn a_laggard_of_an_idle_committee_is_answered() {
    let mut cluster = four();
    cluster.cut = Box::new(|envelope| envelope.to == 3 && shows(envelope, Phase::Commit));
    submit(&mut cluster, &[1]);
    cluster.deliver();
    assert_eq!((cluster.node(3).decided.len(), cluster.node(0).decided.len()), (0, 1));
    cluster.cut = Box::new(|_| false);
    cluster.run("the body at the laggard", |c| c.all_decided(&[1])).unwrap();
    assert_eq!(timeouts(&cluster), cluster.node(3).timeouts().len());
}

/// A replica that missed the proposal fetches the block for the certificate that it hears of, and
/// votes: it is needed, with another one down.
#[test]
fn who_missed_the_proposal_votes_in_later_phases() {
    let mut cluster = four();
    let mut shown = 0;
    cluster.cut = Box::new(move |envelope| {
        let missed = envelope.to == 3 && matches!(envelope.message, Message::Proposal(_));
        shown += usize::from(missed);
        let is_down = envelope.from == 2 && matches!(envelope.message, Message::PhaseVote(_));
        is_down || (missed && shown == 1)
    });
    submit(&mut cluster, &[1]);
    cluster.deliver();
    assert!(cluster.all_decided(&[1]));
    assert_eq!(timeouts(&cluster), 0);
}

/// A decision that arrives after its successors decides nothing again; one that contradicts them
/// stops the replica.
#[test]
fn an_old_decision_arriving_late() {
    let mut cluster = four();
    submit(&mut cluster, &[1, 2, 3]);
    cluster.deliver();
    let first: DecidedBlock = borsh::from_slice(&cluster.node(3).records[0]).unwrap();
    cluster.tell(3, 1, certificates(&first.commit, None)).unwrap();
    assert_eq!((cluster.node(3).decided.len(), cluster.node(3).view()), (3, 4));
    cluster.ensure_agreement().unwrap();
    let forged = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[9]);
    let forged = certify(&cluster.keys, Phase::Commit, &forged);
    cluster.tell(3, 1, certificates(&forged, None)).unwrap();
    assert!(cluster.node(3).halted.is_some());
}

/// A member that was left out by the leader that decided hears of it from the next one when all are
/// idle.
#[test]
fn a_decision_is_shown_to_who_said_nothing() {
    let mut cluster = four();
    let block = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[7]);
    show(&mut cluster, 1, &block).unwrap();
    for phase in [Phase::Prepare, Phase::PreCommit, Phase::Commit] {
        show_phase(&mut cluster, 1, phase, &block).unwrap();
    }
    let shown = |cluster: &Cluster| -> Vec<u16> {
        let certificates = |message: &Message| matches!(message, Message::Certificates { .. });
        let shown = cluster.wire.iter().filter(|envelope| certificates(&envelope.message));
        shown.map(|envelope| envelope.to).collect()
    };
    let decided = certify(&cluster.keys, Phase::Commit, &block);
    cluster.tell(1, 0, Message::NewView(decided.clone())).unwrap();
    assert!(shown(&cluster).is_empty(), "others may be on their way");
    cluster.tell(1, 2, Message::NewView(decided)).unwrap();
    assert_eq!(shown(&cluster), [3]);
}
