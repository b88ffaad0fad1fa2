//! What a message has to be before a machine sees it: signed by its author, of the right size, and
//! of a view that it is of use in (common.md: Bounded everything).

use super::found_by_simulation::chain;
use super::harness::*;
use crate::block_tree::TreeBlock;
use crate::chained::check::check_tc;
use crate::chained::statements::proposal_message;
use crate::chained::{Block, Message, Proposal};
use quorate_crypto::Share;
use quorate_types::{Rejected, ReplicaId};

/// Block valid: its author signed its id, in its view, and nothing is let in under another
/// signature.
#[test]
fn a_proposal_is_signed_by_its_author() {
    let keys = Keys::new(4);
    let signed = |author: u16, block: &Block| {
        let verifier = keys.verifier();
        let message = proposal_message(&verifier, block.view, block.id());
        keys.config(author, &verifier).identity.sign(&message).0.to_vec()
    };
    let block = keys.block(1, &keys.genesis(), 1, &[7]);
    let good = signed(0, &block);
    let forged = Rejected::BadSignature("an identity signature");
    let length = Rejected::BadSignature("a proposal's signature");
    let cases = [
        ("of another block", signed(0, &keys.block(1, &keys.genesis(), 1, &[8])), forged.clone()),
        ("by another member", signed(2, &block), forged),
        ("none", Vec::new(), length.clone()),
        ("with something after it", [&good[..], &[0]].concat(), length),
    ];
    for (what, signature, refusal) in cases {
        let mut cluster = Cluster::new();
        let proposal = Proposal { block: block.clone(), signature };
        let refused = cluster.give(3, 0, Message::Proposal(proposal));
        assert_eq!(refused, Err(refusal), "{what}");
        assert!(cluster.node(3).votes().is_empty(), "{what}");
    }
    let proposal = Proposal { block, signature: good };
    assert_eq!(Cluster::new().give(3, 0, Message::Proposal(proposal)), Ok(()));
}

/// Shares are checked when they are combined; until then they take no more room than they need.
#[test]
fn a_share_is_as_long_as_its_scheme_makes_it() {
    let wrong = Err(Rejected::BadSignature("a share of the wrong length"));
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let block = cluster.keys.block(1, &genesis, 1, &[]);
    let vote = cluster.keys.vote(2, &block);
    let timeout = cluster.keys.timeout(2, 1, &genesis, None);
    let length = vote.share.0.len();
    for bytes in [0, length - 1, length + 1, 10_000] {
        let share = Share(vec![0; bytes]);
        let mut vote = vote.clone();
        vote.share = share.clone();
        let mut shows_it = timeout.clone();
        shows_it.last_vote = Some(vote.clone());
        let mut timeout = timeout.clone();
        timeout.share = share;
        assert_eq!(cluster.give(1, 2, Message::Vote(vote)), wrong, "a vote of {bytes} bytes");
        assert_eq!(cluster.give(1, 2, Message::Timeout(shows_it)), wrong, "shown: {bytes} bytes");
        assert_eq!(cluster.give(1, 2, Message::Timeout(timeout)), wrong, "{bytes} bytes");
    }
    assert_eq!(cluster.give(1, 2, Message::Vote(vote)), Ok(()));
    assert_eq!(cluster.give(1, 2, Message::Timeout(timeout)), Ok(()));
}

/// A member of this committee whose view is 5, by timeouts, and who knows no certificate.
fn in_view_5(id: u16) -> Cluster {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let tc = cluster.keys.tc(4, &genesis, &[(0, &[0, 1, 2])]);
    cluster.tell(id, 0, certificates(&genesis, Some(&tc))).unwrap();
    assert_eq!(cluster.node(id).view(), 5);
    cluster
}

/// A collector may be a view ahead of its voters, and they may be some ahead of it.
#[test]
fn a_vote_is_of_use_from_the_view_before_to_the_end_of_the_window() {
    let stale = Err(Rejected::Stale);
    let far = Err(Rejected::TooFarAhead);
    let views = [(1, &stale), (3, &stale), (4, &Ok(())), (5, &Ok(())), (13, &Ok(())), (14, &far)];
    for (view, expected) in views {
        let mut cluster = in_view_5(1);
        let block = cluster.keys.block(view, &cluster.keys.genesis(), 1, &[]);
        let vote = cluster.keys.vote(0, &block);
        assert_eq!(&cluster.give(1, 0, Message::Vote(vote)), expected, "a vote of view {view}");
    }
}

/// Certificates that lead to the view, or beyond, may be news; older ones only if they decide.
#[test]
fn older_certificates_are_refused_unless_they_decide() {
    let stale = Err(Rejected::Stale);
    for (view, expected) in [(1, &stale), (3, &stale), (4, &Ok(())), (9, &Ok(()))] {
        let mut cluster = in_view_5(1);
        let genesis = cluster.keys.genesis();
        // On genesis a gap before it, or, in view 1, the genesis itself: it decides nothing.
        let qc = match view {
            1 => genesis.clone(),
            _ => cluster.keys.certify(&cluster.keys.block(view, &genesis, 1, &[])),
        };
        assert_eq!(&cluster.give(1, 0, certificates(&qc, None)), expected, "of view {view}");
        let mut cluster = in_view_5(1);
        let tc = cluster.keys.tc(view, &genesis, &[(0, &[0, 1, 2])]);
        let shown = cluster.give(1, 0, certificates(&genesis, Some(&tc)));
        assert_eq!(&shown, expected, "a timeout certificate of view {view}");
    }
    let mut cluster = in_view_5(1);
    let (_, decides) = chain(&cluster.keys, 2).pop().unwrap();
    assert_eq!(cluster.give(1, 0, certificates(&decides, None)), Ok(()));
}

/// An older timeout is answered whatever it shows; a vote that is not its sender's, or not of its
/// view, is left out and proves nothing against anybody.
#[test]
fn an_older_timeout_brings_its_senders_votes_alone() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let [one, other] = [7, 8].map(|k| cluster.keys.block(1, &genesis, 1, &[k]));
    let tc = cluster.keys.tc(1, &genesis, &[(0, &[0, 1, 2])]);
    cluster.tell(1, 0, certificates(&genesis, Some(&tc))).unwrap();
    let show = |cluster: &mut Cluster, from: u16, vote| {
        let mut timeout = cluster.keys.timeout(from, 1, &genesis, None);
        timeout.last_vote = Some(vote);
        cluster.tell(1, from, Message::Timeout(timeout)).unwrap();
    };
    for block in [&one, &other] {
        let forged = cluster.keys.vote(0, block);
        show(&mut cluster, 2, forged);
    }
    let next = cluster.keys.vote(2, &cluster.keys.block(2, &genesis, 1, &[9]));
    show(&mut cluster, 2, next);
    assert_eq!(cluster.node(1).misbehaviour, [], "for two votes that 0 did not send");
    assert_eq!(cluster.node(1).machine.votes.len(), 0);
    for from in [0, 2, 3] {
        let vote = cluster.keys.vote(from, &one);
        show(&mut cluster, from, vote);
    }
    assert_eq!(cluster.node(1).machine.high_qc(), &cluster.keys.certify(&one));
    assert_eq!(cluster.node(1).misbehaviour, []);
}

/// TC valid: the signers of one report are one group.
#[test]
fn a_timeout_certificate_has_one_group_a_report() {
    let keys = Keys::new(4);
    let one = keys.certify(&keys.block(1, &keys.genesis(), 1, &[]));
    let rule = Rejected::RuleBroken("a timeout certificate's groups ascend");
    let split = keys.tc(5, &one, &[(1, &[0]), (1, &[1, 2])]);
    assert_eq!(check_tc(split, &keys.verifier()), Err(rule.clone()));
    let none = keys.tc(5, &one, &[]);
    assert_eq!(check_tc(none, &keys.verifier()), Err(rule));
    assert!(check_tc(keys.tc(5, &one, &[(1, &[0, 1, 2])]), &keys.verifier()).is_ok());
}

/// A timeout certificate that was checked comes out as the copy that was, whatever bytes stand for
/// its signatures when it comes again.
#[test]
fn a_known_timeout_certificate_comes_out_as_the_checked_copy() {
    let keys = Keys::new(4);
    let verifier = keys.verifier();
    let one = keys.certify(&keys.block(1, &keys.genesis(), 1, &[]));
    let good = keys.tc(5, &one, &[(0, &[0, 1]), (1, &[2])]);
    let mut junk = good.clone();
    junk.groups[0].1.aggregate.0 = vec![9; 1_000];
    junk.high_qc.certificate.aggregate.0 = vec![9; 1_000];
    assert!(check_tc(junk.clone(), &verifier).is_err(), "it is not known yet");
    check_tc(good.clone(), &verifier).unwrap();
    let known = check_tc(junk, &verifier).unwrap();
    assert_eq!(borsh::to_vec(&known).unwrap(), borsh::to_vec(&good).unwrap());
    let others = keys.tc(5, &one, &[(0, &[0, 3]), (1, &[2])]);
    assert_ne!(others, good, "other signers make another certificate");
}

/// A replica that made a timeout certificate itself knows it too.
#[test]
fn a_timeout_certificate_made_here_is_known() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    for signer in [0, 1] {
        let timeout = cluster.keys.timeout(signer, 1, &genesis, None);
        cluster.tell(3, signer, Message::Timeout(timeout)).unwrap();
    }
    let shown = cluster.node(3).sent().find_map(|message| match message {
        Message::Certificates { high_tc, .. } => high_tc.clone(),
        _ => None,
    });
    let made = shown.expect("it shows what it made");
    let mut junk = made.clone();
    junk.groups[0].1.aggregate.0 = vec![9; 1_000];
    let known = check_tc(junk, &cluster.node(3).verifier).unwrap();
    assert_eq!(borsh::to_vec(&known).unwrap(), borsh::to_vec(&made).unwrap());
    assert_eq!(known.groups[0].1.signers.iter().collect::<Vec<_>>(), [0, 1, 3]);
    assert_eq!(cluster.node(3).machine.leader(), ReplicaId(1));
}
