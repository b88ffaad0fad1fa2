//! Committees whose members weigh differently: every threshold is a weight (common.md, fault
//! model).

use super::harness::*;
use crate::chained::Message;
use crate::chained::check::{check_qc, check_tc};
use quorate_types::Rejected;

/// A quorum is 13 of 19, and 6 may be faulty: the three light members at once, or one heavy one and
/// two light ones.
const MIXED: [u64; 7] = [4, 4, 4, 4, 1, 1, 1];

/// QC valid (★): its signers weigh a quorum, however many they are.
pub(super) fn check_qc_weighs_its_signers() -> Check {
    let keys = Keys::weighted(&MIXED);
    let block = keys.block(1, &keys.genesis(), 1, &[]);
    let check = |signers: &[u16]| check_qc(keys.certify_by(&block, signers), &keys.verifier());
    for few in [&[1, 2, 4, 5, 6][..], &[0, 1, 2]] {
        let found = check(few);
        ensure(found == Err(Rejected::BelowThreshold), format!("{few:?}: {found:?}"))?;
    }
    for enough in [&[0, 1, 2, 3][..], &[0, 1, 2, 6]] {
        ensure(check(enough).is_ok(), format!("{enough:?} are a quorum"))?;
    }
    Ok(())
}

#[test]
fn qc_weighs_its_signers() {
    check_qc_weighs_its_signers().unwrap();
}

/// TC valid (★): the signers of all its groups together weigh a quorum.
pub(super) fn check_tc_weighs_its_signers() -> Check {
    let keys = Keys::weighted(&MIXED);
    let one = keys.certify_by(&keys.block(1, &keys.genesis(), 1, &[]), &[0, 1, 2, 3]);
    let check = |groups: &[(u64, &[u16])]| check_tc(keys.tc(5, &one, groups), &keys.verifier());
    let few = check(&[(0, &[4, 5, 6]), (1, &[2, 3])]);
    ensure(few == Err(Rejected::BelowThreshold), format!("11 of 19: {few:?}"))?;
    ensure(check(&[(0, &[0, 1]), (1, &[2, 6])]).is_ok(), "13 in two groups are a quorum")
}

#[test]
fn tc_weighs_its_signers() {
    check_tc_weighs_its_signers().unwrap();
}

/// Collecting votes (★): the job starts with the share that completes the weight, not before. Five
/// heads of seven are not enough, and four may be.
pub(super) fn check_votes_are_combined_by_weight() -> Check {
    for (order, enough) in [(&[4, 5, 6, 0, 2, 3][..], 6), (&[0, 2, 3, 4], 4)] {
        let mut cluster = Cluster::weighted(&MIXED);
        let block = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[7]);
        let collector = cluster.keys.leader(2);
        ensure(collector == 1, "member 1 collects the votes of view 1")?;
        cluster.jobs = Some(Vec::new());
        for (count, signer) in (1..).zip(order) {
            let vote = cluster.keys.vote(*signer, &block);
            cluster.tell(collector, *signer, Message::Vote(vote))?;
            let jobs = cluster.jobs.as_ref().map_or(0, Vec::len);
            ensure((jobs > 0) == (count >= enough), format!("{order:?}: {jobs} after {count}"))?;
        }
    }
    Ok(())
}

#[test]
fn votes_are_combined_by_weight() {
    check_votes_are_combined_by_weight().unwrap();
}

/// On Timeout (★): those whose timeouts make a replica join weigh more than may be faulty.
pub(super) fn check_timeouts_make_join_by_weight() -> Check {
    for (signers, joins) in [(&[4, 5, 6][..], false), (&[2, 6], false), (&[2, 3], true)] {
        let mut cluster = Cluster::weighted(&MIXED);
        let genesis = cluster.keys.genesis();
        for signer in signers {
            let timeout = cluster.keys.timeout(*signer, 1, &genesis, None);
            cluster.tell(0, *signer, Message::Timeout(timeout))?;
        }
        let joined = !cluster.node(0).timeouts().is_empty();
        ensure(joined == joins, format!("after timeouts of {signers:?}"))?;
    }
    Ok(())
}

#[test]
fn timeouts_make_join_by_weight() {
    check_timeouts_make_join_by_weight().unwrap();
}

/// A quorum's weight of timeouts makes the certificate, whoever they come from.
#[test]
fn a_heavy_member_and_two_light_ones_leave_a_view() {
    let mut cluster = Cluster::weighted(&[3, 1, 1, 1]);
    let genesis = cluster.keys.genesis();
    let timeout = cluster.keys.timeout(2, 1, &genesis, None);
    cluster.tell(1, 2, Message::Timeout(timeout)).unwrap();
    assert_eq!(cluster.node(1).view(), 1, "2 of 6 with its own");
    let timeout = cluster.keys.timeout(0, 1, &genesis, None);
    cluster.tell(1, 0, Message::Timeout(timeout)).unwrap();
    assert_eq!(cluster.node(1).view(), 2, "5 of 6");
}

/// Whoever is dead, as long as they weigh no more than is tolerated, the others decide; one more
/// dead and nobody does.
#[test]
fn the_committee_decides_without_what_may_fail() {
    for (dead, decides) in [
        (&[4, 5, 6][..], true),
        (&[3, 5, 6], true),
        (&[0], true),
        (&[0, 4, 5], true),
        (&[0, 4, 5, 6], false),
        (&[2, 3], false),
    ] {
        let mut cluster = Cluster::weighted(&MIXED);
        for id in dead {
            cluster.node_mut(*id).up = false;
        }
        (0..4).for_each(|k| cluster.submit(k));
        let decided = cluster.run("decisions", |c| c.all_decided(&[0, 1, 2, 3]));
        assert_eq!(decided.is_ok(), decides, "without {dead:?}: {decided:?}");
        cluster.ensure_agreement().unwrap();
    }
}
