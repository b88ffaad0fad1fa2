//! Liveness: decisions go on, whoever is gone.

use super::four;
use crate::chained::Message;
use crate::chained::tests::harness::{Check, Cluster, Keys, body, ensure};
use crate::{ProtocolKind, ProtocolView};

fn submit(cluster: &mut Cluster, bodies: &[u64]) {
    for body in bodies {
        cluster.submit(*body);
    }
}

pub(super) fn check_a_committee_decides() -> Check {
    let mut cluster = four();
    submit(&mut cluster, &[1, 2, 3]);
    cluster.run("three bodies", |c| c.all_decided(&[1, 2, 3]))?;
    cluster.ensure_agreement()
}

#[test]
fn a_committee_decides() {
    check_a_committee_decides().unwrap();
}

/// With nothing left to order everybody is silent, at one height, and no timer runs.
#[test]
fn a_committee_without_work_is_silent() {
    let mut cluster = four();
    submit(&mut cluster, &[1]);
    cluster.run("the only body", |c| c.all_decided(&[1])).unwrap();
    cluster.deliver();
    assert!(cluster.wire.is_empty());
    assert_eq!(cluster.next_timeout(), None);
    let heights: Vec<usize> = cluster.nodes.iter().map(|node| node.decided.len()).collect();
    assert_eq!(heights, [1; 4]);
}

/// Of four members with one crashed, no four leaders in a row are up. Its three predecessors'
/// blocks are decided all the same, for complaints bring the votes that were sent to it.
pub(super) fn check_one_crashed_leader_of_four() -> Check {
    for crashed in 0..4 {
        let mut cluster = four();
        cluster.node_mut(crashed).up = false;
        submit(&mut cluster, &[1, 2, 3]);
        cluster.run("three bodies", |c| c.all_decided(&[1, 2, 3]))?;
        cluster.ensure_agreement()?;
    }
    Ok(())
}

#[test]
fn one_crashed_leader_of_four() {
    check_one_crashed_leader_of_four().unwrap();
}

/// f dead leaders in a row: the next leader of the first is dead itself.
pub(super) fn check_dead_leaders_in_a_row() -> Check {
    let keys = Keys::new(7).running(ProtocolKind::HotStuff);
    let mut cluster = Cluster::with(keys, |_| {});
    for dead in [2, 3] {
        cluster.node_mut(dead).up = false;
    }
    submit(&mut cluster, &[1, 2, 3]);
    cluster.run("three bodies", |c| c.all_decided(&[1, 2, 3]))?;
    cluster.ensure_agreement()
}

#[test]
fn dead_leaders_in_a_row() {
    check_dead_leaders_in_a_row().unwrap();
}

/// A leader collects a certificate and never shows it: the others make it themselves, from
/// complaints, and go on from its block.
#[test]
fn a_withheld_certificate_is_made_again() {
    let mut cluster = four();
    submit(&mut cluster, &[1]);
    // Replica 2 leads view 3 and collects view 2: all that it would show is lost.
    cluster.cut = Box::new(|envelope| {
        let shows = matches!(envelope.message, Message::Proposal(_) | Message::Certificates { .. });
        envelope.from == 2 && shows
    });
    cluster.deliver();
    let high = |cluster: &Cluster, id: u16| cluster.node(id).machine.high_qc().view.0;
    assert_eq!((high(&cluster, 2), high(&cluster, 0)), (2, 1));
    cluster
        .run("the certificate of view 2 elsewhere", |c| high(c, 0) >= 2 && high(c, 1) >= 2)
        .unwrap();
    cluster.run("the body", |c| c.all_decided(&[1])).unwrap();
    cluster.ensure_agreement().unwrap();
}

/// The same, by a leader who also hurries everybody on: its complaint is among the quorum's that
/// end a view, and the vote that its certificate would need comes with the one after them.
pub(super) fn check_a_hurried_withheld_certificate_is_made_again() -> Check {
    let mut cluster = four();
    // Replica 3 leads view 4 and collects view 3.
    cluster.cut = Box::new(|envelope| envelope.from == 3);
    submit(&mut cluster, &[1]);
    for _ in 0..8 {
        cluster.deliver();
        for to in 0..3 {
            let machine = &cluster.node(to).machine;
            let (view, high_qc) = (machine.status().view, machine.high_qc().clone());
            let high_tc = machine.entered_by_tc();
            let hurried = cluster.keys.timeout(3, view.0, &high_qc, high_tc.as_ref());
            cluster.tell(to, 3, Message::Timeout(hurried))?;
        }
        cluster.pass();
    }
    cluster.deliver();
    let decided = |id| cluster.node(id).bodies().contains(&body(1));
    ensure((0..3).all(decided), "blocks of three honest leaders in a row decide nothing")?;
    cluster.ensure_agreement()
}

#[test]
fn a_hurried_withheld_certificate_is_made_again() {
    check_a_hurried_withheld_certificate_is_made_again().unwrap();
}
