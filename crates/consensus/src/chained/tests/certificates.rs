//! Validity of certificates, blocks and messages (jolteon.md: QC valid, TC valid, Block valid).

use super::harness::*;
use crate::block_tree::TreeBlock;
use crate::chained::check::{check_qc, check_tc};
use crate::chained::{Block, Message, Qc};
use quorate_crypto::{Aggregate, Bitmap, Certificate, hash};
use quorate_types::{BlockId, EpochId, Height, Payload, Rejected, ReplicaId, View};

fn refused<T: std::fmt::Debug>(
    result: Result<T, Rejected>,
    reason: &Rejected,
    what: &str,
) -> Check {
    match result {
        Err(found) if found == *reason => Ok(()),
        other => Err(format!("{what}: {other:?}, not {reason:?}")),
    }
}

/// QC valid: exact genesis.
#[test]
fn qc_of_view_0_is_genesis_exactly() {
    let keys = Keys::new(4);
    let verifier = keys.verifier();
    let rule = Rejected::RuleBroken("only genesis has view 0");
    assert_eq!(check_qc(keys.genesis(), &verifier), Ok(keys.genesis()));
    let mut other = keys.genesis();
    other.id = BlockId(quorate_crypto::hash(b"another"));
    refused(check_qc(other, &verifier), &rule, "another block").unwrap();
    let mut other = keys.genesis();
    other.certificate.aggregate = Aggregate(vec![1]);
    refused(check_qc(other, &verifier), &rule, "a signature on genesis").unwrap();
    let mut other = keys.genesis();
    other.certificate.signers = Bitmap::from_indices(4, [0, 1, 2]);
    refused(check_qc(other, &verifier), &rule, "signers of genesis").unwrap();
}

/// QC valid: a quorum of distinct signers, asked before the signature is (★).
pub(super) fn check_qc_needs_a_quorum() -> Check {
    let keys = Keys::new(4);
    let block = keys.block(1, &keys.genesis(), 1, &[]);
    for signers in [&[0][..], &[1, 3]] {
        let verifier = keys.verifier();
        let qc = keys.certify_by(&block, signers);
        refused(check_qc(qc, &verifier), &Rejected::BelowThreshold, "too few")?;
    }
    let mut nobody = keys.certify(&block);
    nobody.certificate = Certificate { signers: Bitmap::new(4), aggregate: Aggregate(vec![0; 16]) };
    refused(check_qc(nobody, &keys.verifier()), &Rejected::BelowThreshold, "nobody")?;
    let mut foreign = keys.certify(&block);
    foreign.certificate.signers = Bitmap::from_indices(9, 0..9);
    refused(check_qc(foreign, &keys.verifier()), &Rejected::BelowThreshold, "another committee's")?;
    for signers in [&[0, 1, 2][..], &[0, 1, 2, 3]] {
        let qc = keys.certify_by(&block, signers);
        ensure(check_qc(qc, &keys.verifier()).is_ok(), "a quorum is enough")?;
    }
    Ok(())
}

#[test]
fn qc_needs_a_quorum() {
    check_qc_needs_a_quorum().unwrap();
}

/// QC valid: the signature is good, and over all that the certificate says.
#[test]
fn qc_signature_covers_view_id_and_parent() {
    let keys = Keys::new(4);
    let block = keys.block(3, &keys.certify(&keys.block(1, &keys.genesis(), 1, &[])), 2, &[]);
    let good = keys.certify(&block);
    let bad = Rejected::BadSignature("a certificate");
    let forgeries: [fn(&mut Qc); 5] = [
        |qc| qc.view = View(4),
        |qc| qc.id = BlockId(quorate_crypto::hash(b"another")),
        |qc| qc.base_view = View(2),
        |qc| qc.base_id = BlockId(quorate_crypto::hash(b"another")),
        |qc| qc.certificate.signers = Bitmap::from_indices(4, [1, 2, 3]),
    ];
    for (index, forge) in forgeries.into_iter().enumerate() {
        let mut qc = good.clone();
        forge(&mut qc);
        refused(check_qc(qc, &keys.verifier()), &bad, &format!("forgery {index}")).unwrap();
    }
    assert_eq!(check_qc(good.clone(), &keys.verifier()), Ok(good));
}

/// QC valid: `base_view < r`.
#[test]
fn qc_parent_is_older() {
    let keys = Keys::new(4);
    let rule = Rejected::RuleBroken("a block's view is later than its ancestors'");
    for parent in [3, 4, u64::MAX] {
        let mut block = keys.block(3, &keys.genesis(), 1, &[]);
        block.justify.view = View(parent);
        refused(check_qc(keys.certify(&block), &keys.verifier()), &rule, "parent").unwrap();
    }
}

/// A known certificate is answered with the copy that was checked: other bytes for it change
/// nothing.
#[test]
fn a_known_certificate_comes_out_as_the_checked_copy() {
    let keys = Keys::new(4);
    let verifier = keys.verifier();
    let good = keys.certify(&keys.block(1, &keys.genesis(), 1, &[]));
    check_qc(good.clone(), &verifier).unwrap();
    let mut junk = good.clone();
    junk.certificate.aggregate = Aggregate(vec![9; 1_000]);
    let known = check_qc(junk, &verifier).unwrap();
    assert_eq!(known.certificate, good.certificate);
    let mut lie = good;
    lie.base_id = BlockId(quorate_crypto::hash(b"another"));
    refused(check_qc(lie, &verifier), &Rejected::BadSignature("a certificate"), "a lie").unwrap();
}

/// Two valid certificates of one block are equal (common.md, what is signed).
#[test]
fn certificates_are_equal_by_what_they_certify() {
    let keys = Keys::new(4);
    let block = keys.block(1, &keys.genesis(), 1, &[]);
    let (one, two) = (keys.certify_by(&block, &[0, 1, 2]), keys.certify_by(&block, &[1, 2, 3]));
    assert_ne!(one.certificate, two.certificate);
    assert_eq!(one, two);
    let (child_one, child_two) = (keys.block(2, &one, 2, &[]), keys.block(2, &two, 2, &[]));
    assert_eq!(child_one.id(), child_two.id(), "they make no two children");
}

/// TC valid (★): a quorum of distinct signers.
pub(super) fn check_tc_needs_a_quorum_of_distinct_signers() -> Check {
    let keys = Keys::new(4);
    let one = keys.certify(&keys.block(1, &keys.genesis(), 1, &[]));
    let few = keys.tc(5, &one, &[(0, &[0]), (1, &[2])]);
    refused(check_tc(few, &keys.verifier()), &Rejected::BelowThreshold, "two signers")?;
    let twice = keys.tc(5, &one, &[(0, &[0, 2]), (1, &[2])]);
    let rule = Rejected::RuleBroken("a timeout certificate's signers are distinct");
    refused(check_tc(twice, &keys.verifier()), &rule, "one signer twice")?;
    let good = keys.tc(5, &one, &[(0, &[0, 1]), (1, &[2])]);
    ensure(check_tc(good, &keys.verifier()).is_ok(), "a quorum in two groups is enough")
}

#[test]
fn tc_needs_a_quorum_of_distinct_signers() {
    check_tc_needs_a_quorum_of_distinct_signers().unwrap();
}

/// TC valid (★): every reported view is before its own. One liar's 2⁶⁴−1 would make a certificate
/// that no block can satisfy.
pub(super) fn check_tc_bounds_what_it_reports() -> Check {
    let keys = Keys::new(4);
    let rule = Rejected::RuleBroken("a timeout reports a view before its own");
    for poison in [u64::MAX, 6, 5] {
        let mut high = keys.certify(&keys.block(1, &keys.genesis(), 1, &[]));
        high.view = View(poison);
        let poisoned = keys.tc(5, &high, &[(0, &[0, 1]), (poison, &[3])]);
        refused(check_tc(poisoned, &keys.verifier()), &rule, "poisoned")?;
    }
    Ok(())
}

#[test]
fn tc_bounds_what_it_reports() {
    check_tc_bounds_what_it_reports().unwrap();
}

/// TC valid (★): it shows the highest certificate that it reports, no lower and no higher one.
pub(super) fn check_tc_shows_the_highest() -> Check {
    let keys = Keys::new(4);
    let first = keys.block(1, &keys.genesis(), 1, &[]);
    let one = keys.certify(&first);
    let two = keys.certify(&keys.block(2, &one, 2, &[]));
    let rule = Rejected::RuleBroken("a timeout certificate shows the highest it reports");
    let low = keys.tc(5, &one, &[(0, &[0]), (1, &[1]), (2, &[2])]);
    refused(check_tc(low, &keys.verifier()), &rule, "lower than reported")?;
    let high = keys.tc(5, &two, &[(0, &[0]), (1, &[1, 2])]);
    refused(check_tc(high, &keys.verifier()), &rule, "higher than reported")?;
    let good = keys.tc(5, &two, &[(0, &[0]), (1, &[1]), (2, &[2])]);
    ensure(check_tc(good, &keys.verifier()).is_ok(), "the highest")
}

#[test]
fn tc_shows_the_highest() {
    check_tc_shows_the_highest().unwrap();
}

/// TC valid (★): the certificate shown is valid, and so are the signatures.
#[test]
fn tc_signatures_and_certificate_are_checked() {
    let keys = Keys::new(4);
    let one = keys.certify(&keys.block(1, &keys.genesis(), 1, &[]));
    let mut forged = keys.tc(5, &one, &[(0, &[0, 1]), (1, &[2])]);
    forged.high_qc.id = BlockId(quorate_crypto::hash(b"another"));
    let bad = Rejected::BadSignature("a certificate");
    refused(check_tc(forged, &keys.verifier()), &bad, "forged certificate").unwrap();
    let mut moved = keys.tc(5, &one, &[(0, &[0, 1]), (1, &[2])]);
    moved.view = View(6);
    let bad = Rejected::BadSignature("a timeout certificate");
    refused(check_tc(moved, &keys.verifier()), &bad, "another view's shares").unwrap();
    let mut unordered = keys.tc(5, &one, &[(0, &[0, 1]), (1, &[2])]);
    unordered.groups.swap(0, 1);
    let rule = Rejected::RuleBroken("a timeout certificate's groups ascend");
    refused(check_tc(unordered, &keys.verifier()), &rule, "groups").unwrap();
}

fn offer(keys: &Keys, block: &Block) -> Result<(), Rejected> {
    let mut cluster = Cluster::new();
    cluster.give(3, block.author.0, keys.propose(block))
}

/// Block valid: (A) `r == justify.r + 1` without a timeout certificate, or (B) with one of `r − 1`.
#[test]
fn block_follows_its_parent_or_carries_a_timeout_certificate() {
    let keys = Keys::new(4);
    let one = keys.certify(&keys.block(1, &keys.genesis(), 1, &[]));
    let reported = |view| if view > 1 { (one.clone(), 1) } else { (keys.genesis(), 0) };
    let tc = |view| {
        let (high, at) = reported(view);
        Some(keys.tc(view, &high, &[(at, &[0, 1, 2])]))
    };
    let with_tc = |view, tc| {
        let mut block = keys.block(view, &one, 2, &[]);
        block.tc = tc;
        offer(&keys, &block)
    };
    let follow =
        Rejected::RuleBroken("a block follows its parent's view or carries a timeout certificate");
    let before = Rejected::RuleBroken("a timeout certificate is of the view before, if needed");
    assert_eq!(with_tc(2, None), Ok(()), "(A)");
    assert_eq!(with_tc(3, None), Err(follow), "a gap without reason");
    assert_eq!(with_tc(3, tc(2)), Ok(()), "(B)");
    assert_eq!(with_tc(4, tc(2)), Err(before.clone()), "another view's reason");
    assert_eq!(with_tc(2, tc(1)), Err(before), "both");
}

/// Block valid: `r > justify.r`, the author is who sends it, and the epoch is ours.
#[test]
fn block_is_later_than_its_parent_by_its_author_in_this_epoch() {
    let keys = Keys::new(4);
    let one = keys.certify(&keys.block(1, &keys.genesis(), 1, &[]));
    let later = Rejected::RuleBroken("a block's view is later than its parent's");
    assert_eq!(offer(&keys, &keys.block(1, &one, 2, &[])), Err(later));
    let block = keys.block(2, &one, 2, &[]);
    let mut cluster = Cluster::new();
    assert_eq!(cluster.give(3, 2, keys.propose(&block)), Err(Rejected::ForeignSender));
    let mut foreign = block.clone();
    foreign.epoch = EpochId([2; 32]);
    assert_eq!(offer(&keys, &foreign), Err(Rejected::ForeignEpoch));
    let mut unnamed = block;
    unnamed.payload.bodies.push(body(7));
    let form = Rejected::RuleBroken("a payload is what its header names, without repeats");
    assert_eq!(offer(&keys, &unnamed), Err(form.clone()));
    let twice = Block {
        payload: Payload::new(Height(2), 0, vec![body(7), body(7)]),
        ..keys.block(2, &one, 2, &[])
    };
    assert_eq!(offer(&keys, &twice), Err(form));
}

/// Block valid: only the leader of its view is voted for.
#[test]
fn block_author_is_the_leader() {
    let mut cluster = Cluster::new();
    let mut block = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[]);
    block.author = ReplicaId(2);
    let proposal = cluster.keys.propose(&block);
    cluster.tell(3, 2, proposal).unwrap();
    assert!(cluster.node(3).votes().is_empty());
}

/// Block valid (★, B): `justify.r ≥ tc.high_qc.r`.
pub(super) fn check_block_extends_what_its_tc_reports() -> Check {
    let keys = Keys::new(4);
    let one = keys.certify(&keys.block(1, &keys.genesis(), 1, &[]));
    let two = keys.certify(&keys.block(2, &one, 2, &[]));
    let mut block = keys.block(5, &one, 2, &[]);
    block.tc = Some(keys.tc(4, &two, &[(1, &[0, 1]), (2, &[2])]));
    let rule = Rejected::RuleBroken("a block extends what its timeout certificate reports");
    refused(offer(&keys, &block), &rule, "stale parent")?;
    let mut block = keys.block(5, &two, 3, &[]);
    block.tc = Some(keys.tc(4, &one, &[(1, &[0, 1, 2])]));
    ensure(offer(&keys, &block).is_ok(), "a later parent than reported is welcome")
}

#[test]
fn block_extends_what_its_tc_reports() {
    check_block_extends_what_its_tc_reports().unwrap();
}

/// A block id hashes every header field, the timeout certificate's content among them.
#[test]
fn block_id_covers_every_header_field() {
    let keys = Keys::new(4);
    let one = keys.certify(&keys.block(1, &keys.genesis(), 1, &[]));
    let two = keys.certify(&keys.block(2, &one, 2, &[]));
    let mut base = keys.block(5, &one, 2, &[7]);
    base.tc = Some(keys.tc(4, &one, &[(0, &[0]), (1, &[1, 2])]));
    let id = base.id();
    let tc = |reports: &[(u64, &[u16])]| Some(keys.tc(4, &one, reports));
    let changed: Vec<(&str, Block)> = vec![
        ("epoch", Block { epoch: EpochId([2; 32]), ..base.clone() }),
        ("view", Block { view: View(6), ..base.clone() }),
        ("author", Block { author: ReplicaId(3), ..base.clone() }),
        ("justify", Block { justify: two, ..base.clone() }),
        ("no tc", Block { tc: None, ..base.clone() }),
        ("tc signers", Block { tc: tc(&[(0, &[0]), (1, &[1, 3])]), ..base.clone() }),
        ("tc reports", Block { tc: tc(&[(1, &[0, 1, 2])]), ..base.clone() }),
        ("height", Block { payload: Payload::new(Height(3), 0, vec![body(7)]), ..base.clone() }),
        ("stamp", Block { payload: Payload::new(Height(2), 1, vec![body(7)]), ..base.clone() }),
        ("bodies", Block { payload: Payload::new(Height(2), 0, vec![body(8)]), ..base.clone() }),
    ];
    for (field, block) in changed {
        assert_ne!(block.id(), id, "{field}");
    }
}

/// Any certificate, wherever it arrives, moves the view.
#[test]
fn any_certificate_moves_the_view() {
    let keys = Keys::new(4);
    let one = keys.certify(&keys.block(1, &keys.genesis(), 1, &[]));
    let tc = keys.tc(6, &one, &[(0, &[0]), (1, &[1, 2])]);
    let mut later = keys.block(7, &one, 2, &[]);
    later.tc = Some(tc.clone());
    let cases = [
        ("qc in certificates", 0, certificates(&one, None), 2),
        ("tc in certificates", 0, certificates(&one, Some(&tc)), 7),
        ("qc in a timeout", 1, Message::Timeout(keys.timeout(1, 2, &one, None)), 2),
        ("tc in a timeout", 1, Message::Timeout(keys.timeout(1, 7, &one, Some(&tc))), 7),
        ("qc in a proposal", 1, keys.propose(&keys.block(2, &one, 2, &[])), 2),
        ("tc in a proposal", 2, keys.propose(&later), 7),
    ];
    for (name, from, message, view) in cases {
        let mut cluster = Cluster::new();
        cluster.tell(3, from, message).unwrap();
        assert_eq!(cluster.node(3).view(), view, "{name}");
    }
    let mut cluster = Cluster::new();
    let mut strangers = keys.block(2, &one, 2, &[]);
    strangers.author = ReplicaId(0);
    cluster.tell(3, 0, keys.propose(&strangers)).unwrap();
    assert_eq!(cluster.node(3).view(), 2, "whatever becomes of the block");
}

/// A vote for this network and epoch is good in no other (common.md, what is signed).
#[test]
fn another_networks_or_epochs_certificate_is_refused() {
    for other in [Keys::of_network(4, "other", 1), Keys::of_network(4, "test", 2)] {
        let keys = Keys::new(4);
        let mut qc = other.certify(&other.block(1, &other.genesis(), 1, &[]));
        qc.base_id = keys.genesis().id;
        let bad = Rejected::BadSignature("a certificate");
        refused(check_qc(qc, &keys.verifier()), &bad, "replayed").unwrap();
    }
}

/// ★ A vote is bound to the hand-over that began its epoch, not to the epoch's number.
pub(super) fn check_certificates_name_the_hand_over() -> Check {
    let [ours, theirs] = [b"root", b"fork"].map(|root| Keys::begun_with(hash(root)));
    let certified = |keys: &Keys| keys.certify(&keys.block(1, &keys.genesis(), 1, &[]));
    check_qc(certified(&ours), &ours.verifier()).expect("its own");
    let mut qc = certified(&theirs);
    qc.base_id = ours.genesis().id;
    let bad = Rejected::BadSignature("a certificate");
    refused(check_qc(qc, &ours.verifier()), &bad, "a certificate after another hand-over")
}

#[test]
fn a_certificate_after_another_hand_over_is_refused() {
    check_certificates_name_the_hand_over().unwrap();
}

/// Sender and signer are one, in votes, timeouts and the votes inside timeouts.
#[test]
fn nobody_speaks_for_another() {
    let mut cluster = Cluster::new();
    let block = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[]);
    let genesis = cluster.keys.genesis();
    let vote = cluster.keys.vote(0, &block);
    assert_eq!(cluster.give(1, 2, Message::Vote(vote.clone())), Err(Rejected::ForeignSender));
    let timeout = cluster.keys.timeout(0, 1, &genesis, None);
    assert_eq!(cluster.give(1, 2, Message::Timeout(timeout)), Err(Rejected::ForeignSender));
    let mut timeout = cluster.keys.timeout(2, 1, &genesis, None);
    timeout.last_vote = Some(vote);
    assert_eq!(cluster.give(1, 2, Message::Timeout(timeout)), Err(Rejected::ForeignSender));
}
