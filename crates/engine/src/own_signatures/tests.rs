//! Answers to a member's question: nothing in them is taken on trust.

use super::*;
use crate::testing::{config, content, identity, verifier, voting, weighted};
use crate::{Incoming, Settings, Verifier};
use quorate_consensus::chained::Phase;
use quorate_consensus::{StatementProof, windowed};
use quorate_crypto::{Digest, Policy, Share, Signature};
use quorate_types::{BlockId, Kind, Peer, Purpose, Rejected, Verified, View};

const SIGNER: ReplicaId = ReplicaId(3);

fn vote() -> Statement {
    let block = |view, byte| (View(view), BlockId(Digest([byte; 32])));
    Statement::Vote { phase: Phase::Prepare, block: block(7, 1), base: block(6, 2) }
}

/// Bytes that a vote of Jolteon signs.
fn voted(verifier: &Verifier) -> Vec<u8> {
    let Statement::Vote { block, base, .. } = vote() else { unreachable!("a vote") };
    verifier.consensus().statement(Kind::JolteonVote, &(block, base))
}

fn share(verifier: &Verifier, member: u8) -> Share {
    let committee = verifier.committee();
    committee.sign(Purpose::Vote, &voting(member), &voted(verifier))
}

fn signed(proof: StatementProof) -> SignedStatement {
    SignedStatement { statement: vote(), proof }
}

/// Certificate of these members' votes.
fn certificate(verifier: &Verifier, members: &[u8]) -> StatementProof {
    let (scheme, _) = verifier.committee().scheme(Purpose::Vote);
    let shares: Vec<_> =
        members.iter().map(|it| (usize::from(*it), share(verifier, *it))).collect();
    let combined = scheme.combine(&voted(verifier), &shares, &Bitmap::new(4), Policy::Aggregate);
    StatementProof::Certificate(combined.certificate.expect("good shares"))
}

fn check(questions: Vec<OwnQuestion>, statements: Vec<SignedStatement>) -> Result<(), Rejected> {
    let answer = OwnSignaturesAnswer { signer: SIGNER, asked: (1, 2), questions, statements };
    let frame = content(&Message::OwnSignatures(answer));
    let from = Peer::Replica(ReplicaId(0));
    Verified::<Incoming>::check(frame, from, &verifier()).map(drop)
}

#[test]
fn only_what_the_member_signed_is_taken_for_its_own() {
    let verifier = verifier();
    let alone = |member| signed(StatementProof::Signature(share(&verifier, member).0));
    let together = |members: &[u8]| signed(certificate(&verifier, members));
    assert_eq!(check(vec![], vec![alone(3), together(&[0, 3]), together(&[3])]), Ok(()));

    let refused = Err(Rejected::BadSignature("a statement of the receiver"));
    assert_eq!(check(vec![], vec![alone(3), alone(2)]), refused);
    let unnamed = Err(Rejected::RuleBroken("a certificate names the signer"));
    assert_eq!(check(vec![], vec![together(&[0, 1, 2])]), unnamed);
    let StatementProof::Certificate(mut forged) = certificate(&verifier, &[0, 1]) else {
        unreachable!("a certificate")
    };
    forged.signers = Bitmap::from_indices(4, [0, 3]);
    assert_eq!(check(vec![], vec![signed(StatementProof::Certificate(forged))]), refused);

    let value = windowed::Proposal { view: View(1), slot: Height(1), digest: Digest::ZERO };
    let foreign = SignedStatement { statement: Statement::Prepare(value), ..alone(3) };
    let rule = Err(Rejected::RuleBroken("a statement is of the committee's protocol"));
    assert_eq!(check(vec![], vec![foreign]), rule);
    assert_eq!(check(vec![], vec![alone(3); OWN_STATEMENTS_MAX]), Ok(()));
    let many = vec![alone(3); OWN_STATEMENTS_MAX + 1];
    assert_eq!(check(vec![], many), Err(Rejected::TooLarge("a member's own signatures")));
}

#[test]
fn a_question_is_its_askers() {
    let of = |member| {
        let config = config(member, Settings::default());
        assert_eq!(config.identity.public(), identity(member).public());
        OwnQuestion::signed(&config.identity, config.verifier.consensus(), 4, 5)
    };
    assert_eq!(check(vec![of(3)], vec![]), Ok(()));
    let refused = Err(Rejected::BadSignature("an identity signature"));
    assert_eq!(check(vec![of(2)], vec![]), refused);
    assert_eq!(check(vec![OwnQuestion { incarnation: 6, ..of(3) }], vec![]), refused);
    let ask = |from: Peer| {
        let frame = content(&Message::OwnQuestion(of(3)));
        Verified::<Incoming>::check(frame, from, &verifier()).map(drop)
    };
    assert_eq!(ask(Peer::Replica(SIGNER)), Ok(()));
    assert_eq!(ask(Peer::Replica(ReplicaId(1))), refused);
    assert_eq!(
        ask(Peer::Learner(quorate_types::ClientId(identity(9).public()))),
        Err(Rejected::NotAMember)
    );
}

#[test]
fn the_newest_of_each_kind_is_kept() {
    let mut kept = OwnSignatures::new(&config(0, Settings::default()));
    let at = |view, byte| {
        let statement = Statement::Proposal { view: View(view), id: BlockId(Digest([byte; 32])) };
        SignedStatement { statement, proof: StatementProof::Signature(vec![byte]) }
    };
    let vote = signed(StatementProof::Signature(vec![0]));
    for said in [at(3, 1), at(5, 2), at(4, 3), at(5, 4), vote.clone()] {
        kept.keep(SIGNER, said);
    }
    let question = |starts| OwnQuestion {
        incarnation: starts,
        started_ms: starts,
        signature: Signature([0; 64]),
    };
    for starts in [2, 9, 3, 9, 5] {
        kept.answer(Time(0), (SIGNER, question(starts)), Vec::new);
    }
    let later = Time(0) + kept.retry;
    let answer = kept.answer(later, (SIGNER, question(5)), || vec![vote.clone()]);
    let Some(Message::OwnSignatures(answer)) = answer else { unreachable!("an answer") };
    assert_eq!(answer.statements, [at(5, 2), vote.clone(), vote]);
    assert_eq!(answer.questions, [question(9), question(5)], "of this start and later ones");
    assert!(kept.occupancy().iter().all(|collection| collection.entries <= collection.bound));
}

/// A question of some hundred bytes asks for statements with certificates.
#[test]
fn whoever_asks_all_the_time_is_answered_as_often_as_starts_that_wait() {
    let mut kept = OwnSignatures::new(&config(0, Settings::default()));
    let question =
        |number| OwnQuestion { incarnation: 1, started_ms: number, signature: Signature([0; 64]) };
    let (asked, each) = (1_000, kept.retry / 100);
    let mut answers = |start: fn(u64) -> u64| {
        let answered = (0..asked).filter(|number| {
            let now = Time(0) + each * u32::try_from(*number).expect("few");
            kept.answer(now, (SIGNER, question(start(*number))), Vec::new).is_some()
        });
        let answered = answered.count();
        kept.witnessed.clear();
        answered
    };
    assert_eq!(answers(|_| 5), 20, "twice in the time after which one that waits asks again");
    assert_eq!(answers(|number| number % 2), 40, "two processes with one key do not disturb");
    assert_eq!(answers(|number| number), 40, "each start a new one");
    assert_eq!(answers(|number| 1_000 - number), 22, "each start an older one");
    let other = kept.answer(Time(0), (ReplicaId(2), question(0)), Vec::new);
    assert!(other.is_some(), "another's questions are its own");
}

/// A question of the same start is answered again once half a wait has passed, and not before.
#[test]
fn a_question_is_answered_again_after_half_a_wait() {
    let mut kept = OwnSignatures::new(&config(0, Settings::default()));
    let question = OwnQuestion { incarnation: 1, started_ms: 1, signature: Signature([0; 64]) };
    let pause = kept.retry / 2;
    let mut is_answered =
        |at: Time| kept.answer(at, (SIGNER, question.clone()), Vec::new).is_some();
    assert!(is_answered(Time(0)));
    assert!(!is_answered(Time(0) + (pause - Duration::from_micros(1))));
    assert!(is_answered(Time(0) + pause));
}

/// Whoever weighs so much that the others are fewer than `weak` needs those that are not faulty.
#[test]
fn a_heavy_member_needs_as_much_as_answers_without_the_faulty() {
    for (weights, needed) in [(&[1, 1, 1, 1][..], 2), (&[4, 1, 1, 1], 1)] {
        let (committee, settings) = (weighted(weights), Settings::default());
        let verifier = Arc::new(Verifier::new(committee, &settings));
        let config = ReplicaConfig { verifier, ..config(0, settings) };
        assert_eq!(OwnSignatures::new(&config).needed(), needed, "{weights:?}");
    }
}
