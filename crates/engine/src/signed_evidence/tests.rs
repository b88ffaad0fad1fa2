use super::*;
use crate::Settings;
use crate::testing::{config, history_to, vote};
use quorate_consensus as consensus;
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_types::Epoch;

const LIAR: ReplicaId = ReplicaId(1);

fn verifier() -> Arc<crate::Verifier> {
    config(0, Settings::default()).verifier
}

fn signed(message: &consensus::Message) -> SignedStatement {
    let (signer, signed) =
        message.signed_statement(LIAR, verifier().consensus()).expect("it is signed");
    assert_eq!(signer, LIAR);
    signed
}

fn votes(first: (u64, u64), second: (u64, u64)) -> Option<SignedEvidence> {
    let [first, second] = [first, second].map(|(view, block)| signed(&vote(1, view, block)));
    SignedEvidence::of_statements(LIAR, [&first, &second])
}

#[test]
fn two_votes_of_a_view_convict() {
    let verifier = verifier();
    let verifier = verifier.consensus();
    let evidence = votes((5, 1), (5, 2)).expect("they conflict");
    assert_eq!(evidence.check(verifier), Ok(Rule::DoubleVote));
    let bytes = borsh::to_vec(&evidence).expect("it has an encoding");
    let read: SignedEvidence = borsh::from_slice(&bytes).expect("its encoding");
    assert_eq!(read.check(verifier), Ok(Rule::DoubleVote));
    for innocent in [votes((5, 1), (5, 1)), votes((5, 1), (6, 2))] {
        assert_eq!(innocent, None);
    }
    let other = SignedEvidence { signer: ReplicaId(2), ..evidence.clone() };
    assert!(other.check(verifier).is_err(), "another signed it");
    let SignedPair::Statements(both) = evidence.signed else { unreachable!("two votes") };
    let twice = [both[0].clone(), both[0].clone()];
    let twice = SignedEvidence { signer: LIAR, signed: SignedPair::Statements(Box::new(twice)) };
    assert!(twice.check(verifier).is_err(), "one vote, shown twice");
}

/// Whoever sends shares that are false must not convict anybody, nor have them checked for ever.
#[test]
fn false_shares_prove_nothing_and_are_checked_a_few_times() {
    let verifier = verifier();
    let mut log = EvidenceLog::default();
    let forged = |block| {
        let mut evidence = votes((5, 0), (5, block)).expect("they conflict");
        if let SignedPair::Statements(both) = &mut evidence.signed {
            let good = signed(&vote(1, 6, block)).proof;
            both[1].proof = good;
        }
        evidence
    };
    for block in 1..=u64::from(FALSE_PAIRS_MAX) {
        assert!(!log.take(forged(block), verifier.consensus()));
    }
    assert_eq!(log.iter().count(), 0);
    let good = votes((5, 1), (5, 2)).expect("they conflict");
    assert!(!log.take(good.clone(), verifier.consensus()), "its pairs are not checked any more");
    assert!(EvidenceLog::default().take(good, verifier.consensus()));
}

#[test]
fn the_first_evidence_of_a_member_and_rule_is_kept() {
    let verifier = verifier();
    let mut log = EvidenceLog::default();
    let first = votes((5, 1), (5, 2)).expect("they conflict");
    assert!(log.take(first.clone(), verifier.consensus()));
    let before = log.clone();
    assert!(!log.take(votes((6, 1), (6, 2)).expect("they conflict"), verifier.consensus()));
    let kept: Vec<_> = log.iter().collect();
    assert_eq!(kept, [(LIAR, Rule::DoubleVote, &first)]);
    assert_eq!(log.occupancy(4).map(|one| (one.entries, one.bound)), [(1, 4 * 3), (1, 4)]);
    assert_eq!(log.since(&before).count(), 0);
    assert_eq!(log.since(&EvidenceLog::default()).count(), 1);
}

/// ★ What a member signed in one epoch is evidence in that one alone, though the same members with
/// the same keys serve in the next.
fn check_evidence_counts_in_its_epoch() {
    let history = history_to(&[0, 1, 2, 3]);
    let evidence = votes((5, 1), (5, 2)).expect("they conflict");
    let check = |epoch| {
        let committee = history.committee_of(Epoch(epoch))?;
        let verifier = crate::Verifier::new(Arc::clone(committee), &Settings::default());
        Some(evidence.check(verifier.consensus()))
    };
    let refused = Rejected::BadSignature("a statement of the receiver");
    assert_eq!(check(1), Some(Ok(Rule::DoubleVote)));
    assert_eq!(check(2), Some(Err(refused)));
    assert_eq!(check(3), None);
}

#[test]
fn evidence_counts_in_its_epoch() {
    check_evidence_counts_in_its_epoch();
}

#[test]
fn evidence_of_another_epoch_is_noticed() {
    assert_noticed(Mutant::ProofOfAnyEpoch, check_evidence_counts_in_its_epoch);
}
