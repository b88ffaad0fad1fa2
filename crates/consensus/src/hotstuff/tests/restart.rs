//! Restarts: the lock survives them (★), and a record tells which protocol wrote it.

use super::{chain, extend, four, show, voted_in};
use crate::Input;
use crate::block_tree::TreeBlock;
use crate::chained::tests::harness::{Check, Cluster, certificates, ensure};
use quorate_types::machine::Halt;
use std::collections::BTreeSet;

/// The lock is on a branch that the highest certificate has left behind, so nothing else in the
/// record tells of it.
pub(super) fn check_a_lock_survives_a_restart() -> Check {
    let mut cluster = four();
    let keys = &cluster.keys;
    let main = chain(keys, &[1, 2, 3, 4, 5], &keys.genesis(), 1);
    // Block 3 is locked by QC(4); the branch goes on from block 2, without this replica.
    let branch = chain(keys, &[7], &main[1].1, 3);
    let below = extend(keys, 9, &main[1].1, 3);
    for (block, _) in &main {
        show(&mut cluster, 3, block)?;
    }
    for (block, _) in &branch {
        show(&mut cluster, 3, block)?;
    }
    cluster.tell(3, 0, certificates(&branch[0].1, None))?;
    cluster.submit(7);
    cluster.fire(3)?;
    cluster.restart(3);
    show(&mut cluster, 3, &below)?;
    ensure(!voted_in(&cluster, 3).contains(&9), "it voted against the lock it had")
}

#[test]
fn a_lock_survives_a_restart() {
    check_a_lock_survives_a_restart().unwrap();
}

/// Seed 32 of the simulator: a vote was withheld because its bodies were lost, views timed out,
/// the bodies came, and the vote was said after all. What nobody heard before a complaint nobody
/// hears after it.
#[test]
fn a_withheld_vote_is_not_said_after_a_complaint() {
    let mut wrote = four();
    let block = wrote.keys.block(1, &wrote.keys.genesis(), 1, &[7]);
    show(&mut wrote, 3, &block).unwrap();
    let safety = wrote.node(3).safety.clone();
    let mut cluster = four();
    cluster.node_mut(3).has_bodies = false;
    let (executed, decided, stored) = (None, Vec::new(), BTreeSet::new());
    cluster.feed(3, Input::Recovered { slots: Vec::new(), safety, executed, decided, stored });
    cluster.submit(7);
    cluster.fire(3).unwrap();
    cluster.feed(3, Input::Stored(block.id()));
    cluster.fire(3).unwrap();
    assert_eq!(cluster.node(3).timeouts().len(), 2);
    assert!(cluster.node(3).timeouts().iter().all(|timeout| timeout.last_vote.is_none()));
    assert_eq!(cluster.node(3).votes(), []);
}

/// A record is of one protocol. Another one refuses to start on it, and says what to do.
#[test]
fn a_record_of_another_protocol_is_refused() {
    for (mut wrote, mut reads) in [(four(), Cluster::new()), (Cluster::new(), four())] {
        wrote.submit(7);
        let safety = wrote.node(0).safety.clone();
        assert!(safety.is_some());
        reads.feed(
            0,
            Input::Recovered {
                slots: Vec::new(),
                safety,
                executed: None,
                decided: Vec::new(),
                stored: BTreeSet::new(),
            },
        );
        let Some(Halt::CorruptRecovery(reason)) = &reads.node(0).halted else {
            panic!("it starts: {:?}", reads.node(0).halted);
        };
        assert!(reason.contains("of another protocol"), "{reason}");
    }
}
