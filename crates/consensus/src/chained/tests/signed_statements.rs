//! What members can show of each other's signatures: who said what, and that it is true.

use super::harness::*;
use crate::block_tree::TreeBlock;
use crate::chained::{Message, Phase, PhaseVote};
use crate::{
    ProposalKey, ProtocolKind, ProtocolView, Rule, SignedStatement, Statement, StatementProof,
    Verifier, windowed,
};
use quorate_crypto::Digest;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{BlockId, Height, Rejected, ReplicaId, View};
use std::sync::Arc;

fn keys(protocol: ProtocolKind) -> Keys {
    Keys::of_ed25519(4).running(protocol)
}

fn shown(keys: &Keys, message: Message) -> Option<(ReplicaId, SignedStatement)> {
    let message = keys.protocol.message(message);
    message.signed_statement(ReplicaId(0), &keys.verifier())
}

/// ★ Nobody but its signer can have made a statement: not under another name, nor of another block.
#[test]
fn a_signed_message_shows_its_signers_statement() {
    let keys = keys(ProtocolKind::HotStuffBasic);
    let (genesis, verifier) = (keys.genesis(), keys.verifier());
    let block = keys.block(1, &genesis, 1, &[7]);
    let (view, id) = (View(1), block.id());
    let vote = |phase| {
        let vote = keys.vote_in(phase, 3, &block);
        let base = (vote.base_view, vote.base_id);
        let statement = Statement::Vote { phase, block: (view, id), base };
        match phase {
            Phase::Prepare => (Message::Vote(vote), 3, statement),
            _ => (Message::PhaseVote(PhaseVote { phase, vote }), 3, statement),
        }
    };
    let timeout = Statement::Timeout { view, reported: View(0) };
    let messages = [
        (keys.propose(&block), block.author.0, Statement::Proposal { view, id }),
        vote(Phase::Prepare),
        vote(Phase::Commit),
        (Message::Timeout(keys.timeout(3, 1, &genesis, None)), 3, timeout),
    ];
    let is_refused = |found| matches!(found, Err(Rejected::BadSignature(_)));
    for (message, signer, statement) in &messages {
        let (by, signed) = shown(&keys, message.clone()).expect("it is signed");
        assert_eq!((by, signed.statement), (ReplicaId(*signer), *statement));
        assert_eq!(signed.check(by, &verifier), Ok(()), "{statement}");
        assert!(is_refused(signed.check(ReplicaId(2), &verifier)), "{statement}");
        for (.., other) in messages.iter().filter(|(.., other)| other != statement) {
            let forged = SignedStatement { statement: *other, ..signed.clone() };
            assert!(is_refused(forged.check(by, &verifier)), "{statement}, {other}");
        }
    }
    let value = windowed::Proposal { view, slot: Height(1), digest: Digest::ZERO };
    let proof = StatementProof::Signature(Vec::new());
    let foreign = SignedStatement { statement: Statement::Prepare(value), proof };
    let rule = Err(Rejected::RuleBroken("a statement is of the committee's protocol"));
    assert_eq!(foreign.check(ReplicaId(1), &verifier), rule);
    for unsigned in [Message::NewView(keys.certify(&block)), certificates(&genesis, None)] {
        assert_eq!(shown(&keys, unsigned), None, "nobody signs it alone");
    }
}

fn check_phases_that_a_protocol_lacks() {
    for protocol in [ProtocolKind::Jolteon, ProtocolKind::HotStuff] {
        let keys = keys(protocol);
        let block = keys.block(1, &keys.genesis(), 1, &[7]);
        let vote = Message::Vote(keys.vote(3, &block));
        let (signer, signed) = shown(&keys, vote).expect("it is signed");
        let Statement::Vote { block, base, .. } = signed.statement else { panic!("{signed:?}") };
        for phase in [Phase::PreCommit, Phase::Commit] {
            let statement = Statement::Vote { phase, block, base };
            let forged = SignedStatement { statement, ..signed.clone() };
            let refused = forged.check(signer, &keys.verifier());
            let rule = Rejected::RuleBroken("a later phase is of a protocol that has one");
            assert_eq!(refused, Err(rule), "{protocol}, {phase:?}");
        }
    }
}

/// ★ A vote that names no phase is not shown as one of another phase.
#[test]
fn a_vote_is_of_no_phase_that_its_protocol_lacks() {
    check_phases_that_a_protocol_lacks();
}

#[test]
fn phases_that_nobody_signed_are_noticed() {
    mutants::assert_noticed(Mutant::AnyPhase, check_phases_that_a_protocol_lacks);
}

/// A certificate shows the votes of those whom it names: of which phase follows from what it
/// decides, or from the message.
#[test]
fn a_certificate_shows_what_each_of_its_signers_voted_for() {
    let keys = keys(ProtocolKind::HotStuffBasic);
    let verifier = keys.verifier();
    let block = keys.block(1, &keys.genesis(), 1, &[7]);
    let certified = |phase| keys.certify_in(phase, &block, &[0, 1, 2]);
    let on_it = keys.block(2, &certified(Phase::Commit), 2, &[]);
    let messages = [
        (certificates(&certified(Phase::Prepare), None), Phase::Prepare),
        (certificates(&certified(Phase::Commit), None), Phase::Commit),
        (Message::PreCommitted(certified(Phase::PreCommit)), Phase::PreCommit),
        (Message::NewView(certified(Phase::Commit)), Phase::Commit),
        (keys.propose(&on_it), Phase::Commit),
    ];
    for (message, expected) in messages {
        let message = keys.protocol.message(message);
        let shown = |member| message.certified_statement(ReplicaId(member), &verifier);
        let Some(Statement::Vote { phase, block: shown_block, .. }) = shown(2) else {
            panic!("{message:?}")
        };
        assert_eq!((phase, shown_block), (expected, (View(1), block.id())), "{message:?}");
        assert_eq!([shown(3), shown(4)], [None; 2], "{message:?}");
    }
    // What it shows is checked late, if at all.
    let timeout = Message::Timeout(keys.timeout(3, 2, &certified(Phase::Prepare), None));
    let timeout = keys.protocol.message(timeout);
    assert_eq!(timeout.certified_statement(ReplicaId(2), &verifier), None);
}

/// Certificates that a machine keeps anyway are shown to those whose votes and timeouts they prove.
#[test]
fn a_member_is_shown_what_the_kept_certificates_prove() {
    let mut cluster = Cluster::with(keys(ProtocolKind::Jolteon), |_| {});
    let genesis = cluster.keys.genesis();
    let verifier = cluster.keys.verifier();
    let machine = |cluster: &Cluster, signer| {
        let shown = cluster.node(3).machine.certified_statements(ReplicaId(signer));
        let good = |signed: &SignedStatement| signed.check(ReplicaId(signer), &verifier) == Ok(());
        assert!(shown.iter().all(good), "{shown:?}");
        shown.into_iter().map(|signed| signed.statement).collect::<Vec<_>>()
    };
    assert_eq!(machine(&cluster, 1), [], "the first block's certificate has no signers");
    let one = cluster.keys.block(1, &genesis, 1, &[7]);
    let two = cluster.keys.block(2, &cluster.keys.certify(&one), 2, &[]);
    let certified = cluster.keys.certify(&two);
    let tc = cluster.keys.tc(3, &certified, &[(0, &[0, 3]), (2, &[1])]);
    cluster.tell(3, 0, cluster.keys.propose(&one)).unwrap();
    cluster.tell(3, 1, cluster.keys.propose(&two)).unwrap();
    cluster.tell(3, 1, certificates(&certified, Some(&tc))).unwrap();
    let vote = Statement::Vote {
        phase: Phase::Prepare,
        block: (View(2), two.id()),
        base: (View(1), one.id()),
    };
    let timeout = |reported| Statement::Timeout { view: View(3), reported: View(reported) };
    // The highest certificate is the one that decided last.
    assert_eq!(machine(&cluster, 1), [vote, vote, timeout(2)]);
    assert_eq!(machine(&cluster, 2), [vote, vote]);
    assert_eq!(machine(&cluster, 3), [timeout(0)]);
}

/// ★ The record of a proposal accounts for it and for those of earlier views: not for another of
/// its view, nor for a later one.
#[test]
fn a_leaders_record_accounts_for_its_last_proposal() {
    let mut cluster = Cluster::new();
    cluster.submit(7);
    let last = cluster.node(0).proposals().pop().expect("it leads view 1").block;
    let other = BlockId(Digest([9; 32]));
    for restarts in 0..2 {
        let known = |view, id| {
            let statement = Statement::Proposal { view: View(view), id };
            cluster.node(0).machine.accounts_for(&statement)
        };
        assert!(known(1, last.id()) && known(0, other), "{restarts}");
        assert!(!known(1, other) && !known(2, last.id()), "{restarts}");
        cluster.restart(0);
    }
}

/// What an honest member says once: one block of a view, and one vote of each phase.
#[test]
fn two_blocks_of_one_view_conflict() {
    let [one, other] = [1, 2].map(|byte| BlockId(Digest([byte; 32])));
    let proposal = |view, id| Statement::Proposal { view: View(view), id };
    let vote = |phase, view, id| {
        let (block, base) = ((View(view), id), (View(0), one));
        Statement::Vote { phase, block, base }
    };
    let first = proposal(5, one);
    assert_eq!(first.conflict_with(&proposal(5, other)), Some(Rule::Equivocation));
    assert_eq!([first.conflict_with(&first), first.conflict_with(&proposal(6, other))], [None; 2]);
    let first = vote(Phase::Prepare, 5, one);
    let conflict = |phase, view, id| first.conflict_with(&vote(phase, view, id));
    assert_eq!(conflict(Phase::Prepare, 5, other), Some(Rule::DoubleVote));
    assert_eq!(conflict(Phase::Prepare, 5, one), None);
    assert_eq!(conflict(Phase::Prepare, 6, other), None);
    assert_eq!(conflict(Phase::PreCommit, 5, other), None, "the first vote may be outweighed");
    let timeout = |reported| Statement::Timeout { view: View(5), reported: View(reported) };
    assert_eq!(timeout(1).conflict_with(&timeout(2)), None, "worded anew");
    assert_eq!(first.conflict_with(&proposal(5, other)), None);
}

/// Where leaders sign proposals by their voting keys, so is the statement checked.
#[test]
fn a_proposal_is_checked_by_the_key_that_signs_proposals() {
    let keys = keys(ProtocolKind::Jolteon);
    let block = keys.block(1, &keys.genesis(), 1, &[7]);
    let (by, signed) = shown(&keys, keys.propose(&block)).expect("it is signed");
    assert_eq!(signed.check(by, &keys.verifier()), Ok(()));
    let committee = Arc::clone(&keys.committee);
    let by_voting = Verifier::new(committee, ProtocolKind::Jolteon, ProposalKey::Voting);
    let refused = Err(Rejected::BadSignature("a statement of the receiver"));
    assert_eq!(signed.check(by, &by_voting), refused);
}

/// Whose certificate decides is seen at the newest block that it decides: those below have votes of
/// their own, counted when they came.
#[test]
fn the_signers_of_a_decision_are_those_of_its_newest_block() {
    let mut cluster = Cluster::new();
    let genesis = cluster.keys.genesis();
    let one = cluster.keys.block(1, &genesis, 1, &[7]);
    let two = cluster.keys.block(3, &cluster.keys.certify(&one), 2, &[8]);
    let tc = cluster.keys.tc(2, &cluster.keys.certify(&one), &[(1, &[0, 1, 2])]);
    let two = crate::chained::Block { tc: Some(tc), ..two };
    let three = cluster.keys.block(4, &cluster.keys.certify(&two), 3, &[]);
    for block in [&one, &two, &three] {
        cluster.tell(3, block.author.0, cluster.keys.propose(block)).unwrap();
    }
    assert_eq!(cluster.node(3).decided.len(), 0, "views 1 and 3 do not follow");
    let certified = cluster.keys.certify_by(&three, &[0, 1, 3]);
    cluster.tell(3, 0, certificates(&certified, None)).unwrap();
    let signers: Vec<_> =
        cluster.node(3).decided.iter().map(|decided| decided.signers.clone()).collect();
    assert_eq!(signers, [None, Some(certified.certificate.signers)]);
}
