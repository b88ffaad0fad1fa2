//! Restarts: votes by view and phase, the lock and the highest certificate survive them (★).

use super::{after_timeouts, four, show, show_phase, voted_in};
use crate::block_tree::TreeBlock;
use crate::chained::tests::harness::{Check, Cluster, Recorded, ensure};
use crate::chained::{Block, Lock, Message, Phase};
use crate::{Input, ProtocolKind, ProtocolView, Statement};
use quorate_types::View;
use quorate_types::machine::Halt;
use std::collections::BTreeSet;

const PHASES: [Phase; 3] = [Phase::Prepare, Phase::PreCommit, Phase::Commit];

fn votes_said(cluster: &Cluster, id: u16) -> Vec<Message> {
    let is_vote = |m: &&Message| matches!(m, Message::Vote(_) | Message::PhaseVote(_));
    cluster.node(id).sent().filter(is_vote).cloned().collect()
}

/// Every vote of the last view is said again byte for byte, and no other.
pub(super) fn check_votes_survive_a_restart() -> Check {
    for last in PHASES {
        let mut cluster = four();
        let block = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[7]);
        show(&mut cluster, 3, &block)?;
        for phase in PHASES.into_iter().filter(|phase| *phase < last) {
            show_phase(&mut cluster, 3, phase, &block)?;
        }
        let said = votes_said(&cluster, 3);
        ensure(voted_in(&cluster, 3).last() == Some(&(1, last)), "it votes in every phase")?;
        cluster.restart(3);
        let again = votes_said(&cluster, 3);
        ensure(again == said, format!("after {last:?} it says {:?} again", voted_in(&cluster, 3)))?;
        show_phase(&mut cluster, 3, Phase::Prepare, &block)?;
        let more = voted_in(&cluster, 3).len() > said.len().max(2);
        ensure(!more, format!("after {last:?} it votes anew: {:?}", voted_in(&cluster, 3)))?;
    }
    Ok(())
}

#[test]
fn votes_survive_a_restart() {
    check_votes_survive_a_restart().unwrap();
}

/// The record holds view, phase, lock and certificate.
#[test]
fn the_record_holds_every_promise() {
    let mut cluster = four();
    let block = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[7]);
    show(&mut cluster, 3, &block).unwrap();
    show_phase(&mut cluster, 3, Phase::Prepare, &block).unwrap();
    let promised = cluster.node(3).promises().expect("it voted");
    assert_eq!((promised.voted_view, promised.high_qc.view), (View(1), View(1)));
    assert_eq!(promised.lock.map(|lock| lock.view), Some(View(0)));
    assert_eq!(promised.later.map(|later| later.voted), Some(Phase::PreCommit));
    show_phase(&mut cluster, 3, Phase::PreCommit, &block).unwrap();
    let promised = cluster.node(3).promises().expect("it voted");
    assert_eq!(promised.lock.map(|lock| lock.view), Some(View(1)));
    assert_eq!(
        promised.later.map(|later| (later.voted, later.votes.len())),
        Some((Phase::Commit, 2))
    );
}

pub(super) fn check_the_lock_survives_a_restart() -> Check {
    let mut cluster = four();
    let genesis = cluster.keys.genesis();
    let block = cluster.keys.block(1, &genesis, 1, &[7]);
    let against = after_timeouts(&cluster.keys, 2, &genesis, 1);
    show(&mut cluster, 3, &block)?;
    show_phase(&mut cluster, 3, Phase::PreCommit, &block)?;
    cluster.restart(3);
    show(&mut cluster, 3, &against)?;
    ensure(cluster.node(3).view() == 2, "the timeout certificate moves it")?;
    ensure(!voted_in(&cluster, 3).contains(&(2, Phase::Prepare)), "it forgot its lock")
}

#[test]
fn the_lock_survives_a_restart() {
    check_the_lock_survives_a_restart().unwrap();
}

/// Nor does it move to another block of its own view: that takes more faulty members than are
/// tolerated, and whoever holds to its lock even then does nothing to make it worse.
#[test]
fn a_lock_stays_on_its_block_after_a_restart() {
    let mut cluster = four();
    let genesis = cluster.keys.genesis();
    let [locked, twin] = [7, 8].map(|k| cluster.keys.block(1, &genesis, 1, &[k]));
    show(&mut cluster, 3, &locked).unwrap();
    show_phase(&mut cluster, 3, Phase::PreCommit, &locked).unwrap();
    cluster.restart(3);
    show_phase(&mut cluster, 3, Phase::PreCommit, &twin).unwrap();
    cluster.submit(9);
    cluster.fire(3).unwrap();
    let lock = cluster.node(3).promises().and_then(|promised| promised.lock);
    assert_eq!(lock, Some(Lock { view: View(1), id: locked.id() }));
}

/// A power cut of the whole committee in any phase: what was certified goes on.
#[test]
fn a_committee_goes_on_after_a_power_cut() {
    for messages in 0..40 {
        let mut cluster = four();
        cluster.submit(7);
        let mut left = messages;
        cluster.cut = Box::new(move |_| {
            left -= 1;
            left < 0
        });
        cluster.deliver();
        cluster.cut = Box::new(|_| false);
        for id in 0..4 {
            cluster.restart(id);
        }
        cluster.run("the body", |c| c.all_decided(&[7])).unwrap();
        cluster.ensure_agreement().unwrap();
    }
}

/// A faulty leader gives a member one block and everybody another, whose certificate outweighs the
/// member's own first vote: it votes for both, honestly, and its records say so.
#[test]
fn both_blocks_of_a_view_are_accounted_for() {
    let mut cluster = four();
    let genesis = cluster.keys.genesis();
    let [own, certified] = [7, 8].map(|k| cluster.keys.block(1, &genesis, 1, &[k]));
    show(&mut cluster, 3, &own).unwrap();
    show(&mut cluster, 3, &certified).unwrap();
    show_phase(&mut cluster, 3, Phase::Prepare, &certified).unwrap();
    assert_eq!(voted_in(&cluster, 3), [(1, Phase::Prepare), (1, Phase::PreCommit)]);
    let vote = |phase, block: &Block| Statement::Vote {
        phase,
        block: (View(1), block.id()),
        base: (View(0), block.justify.id),
    };
    for restarts in 0..2 {
        let known = |statement| cluster.node(3).machine.accounts_for(&statement);
        assert!(known(vote(Phase::Prepare, &own)), "{restarts}");
        assert!(known(vote(Phase::PreCommit, &certified)), "{restarts}");
        assert!(!known(vote(Phase::PreCommit, &own)), "{restarts}");
        assert!(!known(vote(Phase::Commit, &certified)), "{restarts}");
        cluster.restart(3);
    }
}

/// Without its bodies no vote of any phase is said again.
#[test]
fn votes_are_withheld_without_their_bodies() {
    let mut wrote = four();
    let block = wrote.keys.block(1, &wrote.keys.genesis(), 1, &[7]);
    show(&mut wrote, 3, &block).unwrap();
    show_phase(&mut wrote, 3, Phase::Prepare, &block).unwrap();
    let said = votes_said(&wrote, 3);
    let safety = wrote.node(3).safety.clone();
    let mut cluster = four();
    cluster.node_mut(3).has_bodies = false;
    let (executed, decided, stored) = (None, Vec::new(), BTreeSet::new());
    cluster.feed(3, Input::Recovered { slots: Vec::new(), safety, executed, decided, stored });
    show_phase(&mut cluster, 3, Phase::PreCommit, &block).unwrap();
    assert_eq!(votes_said(&cluster, 3), []);
    let id = block.id();
    cluster.feed(3, Input::Stored(id));
    assert_eq!(votes_said(&cluster, 3)[..2], said);
    assert_eq!(voted_in(&cluster, 3)[2..], [(1, Phase::Commit)]);
    let first = cluster.node(3).said.iter().find(|said| matches!(said, Recorded::Persist(_)));
    assert!(first.is_some(), "the new vote was promised");
}

/// Chained HotStuff's record is not basic HotStuff's, though both lock.
#[test]
fn a_record_of_chained_hotstuff_is_refused() {
    let kinds = [ProtocolKind::HotStuff, ProtocolKind::HotStuffBasic];
    for (wrote, reads) in [(kinds[0], kinds[1]), (kinds[1], kinds[0])] {
        let (mut wrote, mut reads) = (Cluster::running(wrote), Cluster::running(reads));
        wrote.submit(7);
        let safety = wrote.node(0).safety.clone();
        let (executed, decided, stored) = (None, Vec::new(), BTreeSet::new());
        reads.feed(0, Input::Recovered { slots: Vec::new(), safety, executed, decided, stored });
        let Some(Halt::CorruptRecovery(reason)) = &reads.node(0).halted else {
            panic!("it starts: {:?}", reads.node(0).halted);
        };
        assert!(reason.contains("of another protocol"), "{reason}");
    }
}
