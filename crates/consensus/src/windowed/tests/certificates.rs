//! Certificates and proofs, as the check lets them in.

use super::harness::{A, at, certificate, pre_prepare, proof, receive, value};
use super::*;

/// §V-C: `3f+c+1` shares make a full-commit-proof.
#[test]
pub(super) fn a_fast_proof_takes_all_but_the_redundant() {
    let verifier = verifier(ProtocolKind::Sbft);
    let proof = |signers: &[u8]| {
        let certificate = certificate(&verifier, Kind::Prepare, at(1, 1, 7), signers);
        Message::Proof(Proof { path: Path::Fast, certificate })
    };
    assert_eq!(receive(&verifier, proof(&[0, 1, 2])), Err(Rejected::BelowThreshold));
    assert!(receive(&verifier, proof(&[0, 1, 2, 3])).is_ok());
}

/// §V-C: of `n = 3f+2c+1`, `c` members may be missing.
#[test]
fn a_fast_proof_goes_without_the_redundant() {
    let verifier = verifier_of(ProtocolKind::Sbft, 6, 1);
    let proof = |signers: &[u8]| {
        let certificate = certificate(&verifier, Kind::Prepare, at(1, 1, 7), signers);
        Message::Proof(Proof { path: Path::Fast, certificate })
    };
    assert_eq!(receive(&verifier, proof(&[0, 1, 2, 3])), Err(Rejected::BelowThreshold));
    assert!(receive(&verifier, proof(&[0, 1, 2, 3, 5])).is_ok());
}

/// §V-E: linear PBFT has no fast path.
#[test]
fn a_fast_proof_is_refused_without_a_fast_path() {
    for protocol in [ProtocolKind::Pbft, ProtocolKind::LinearPbft] {
        let verifier = verifier(protocol);
        let certificate = certificate(&verifier, Kind::Prepare, at(1, 1, 7), &[0, 1, 2, 3]);
        let proof = Message::Proof(Proof { path: Path::Fast, certificate });
        let refused = Rejected::RuleBroken("nothing is decided fast where there is no fast path");
        assert_eq!(receive(&verifier, proof), Err(refused), "{protocol}");
    }
}

/// PBFT §4.2, §V-E: votes to prepare are no votes to commit.
#[test]
fn a_slow_proof_is_of_votes_to_commit() {
    let verifier = verifier(ProtocolKind::Pbft);
    let proof = |kind, signers: &[u8]| {
        let certificate = certificate(&verifier, kind, at(1, 1, 7), signers);
        Message::Proof(Proof { path: Path::Slow, certificate })
    };
    let wrong = Rejected::BadSignature("a slot's certificate");
    assert_eq!(receive(&verifier, proof(Kind::Prepare, &[0, 1, 2])), Err(wrong));
    assert_eq!(receive(&verifier, proof(Kind::Commit, &[0, 1])), Err(Rejected::BelowThreshold));
    assert!(receive(&verifier, proof(Kind::Commit, &[0, 1, 2])).is_ok());
}

/// PBFT §4.2: a certificate is of one view, slot and digest.
#[test]
fn a_certificate_is_of_its_proposal_alone() {
    let verifier = verifier(ProtocolKind::Pbft);
    let good = proof(&verifier, at(1, 1, 7));
    for other in [at(2, 1, 7), at(1, 2, 7), at(1, 1, 8)] {
        let mut moved = good.clone();
        moved.certificate.proposal = other;
        let refused = Rejected::BadSignature("a slot's certificate");
        assert_eq!(receive(&verifier, Message::Proof(moved)), Err(refused), "{other:?}");
    }
}

/// An unchecked certificate is not taken for a checked one of the same statement.
#[test]
fn a_known_statement_does_not_excuse_another_signature() {
    let verifier = verifier(ProtocolKind::Pbft);
    let good = certificate(&verifier, Kind::Commit, at(1, 1, 7), &[0, 1, 2]);
    let mut bad = good.clone();
    bad.certificate.aggregate.0[0] ^= 1;
    let proof = |certificate| Message::Proof(Proof { path: Path::Slow, certificate });
    assert!(receive(&verifier, proof(good)).is_ok());
    let refused = Rejected::BadSignature("a slot's certificate");
    assert_eq!(receive(&verifier, proof(bad)), Err(refused));
}

/// Several collectors make one certificate each of one statement, and view changes hold them in any
/// order: each is checked once, as long as there are few.
#[test]
fn each_certificate_of_a_statement_is_checked_once() {
    let verifier = verifier(ProtocolKind::Sbft);
    let proposal = at(1, 5, 7);
    let some = [[0, 1, 2], [0, 1, 3], [1, 2, 3]]
        .map(|signers| certificate(&verifier, Kind::Commit, proposal, &signers));
    let knows = |one| verifier.knows_slot(Kind::Commit, Purpose::Vote, one);
    for one in &some[..2] {
        let proof = Proof { path: Path::Slow, certificate: one.clone() };
        assert!(receive(&verifier, Message::Proof(proof)).is_ok());
    }
    assert!(some[..2].iter().all(knows), "whichever came last");
    assert!(!knows(&some[2]), "nobody checked it");
    assert!(!verifier.knows_slot(Kind::Prepare, Purpose::Vote, &some[0]), "another statement");
}

/// A decided slot is served by whoever has it: payload and proof must be of one value.
#[test]
fn a_decided_slot_is_the_one_that_its_proof_decides() {
    let verifier = verifier(ProtocolKind::Pbft);
    let sound = harness::decided(&verifier, 3, harness::value(1, 7));
    let mut other = sound.clone();
    other.payload = harness::value(1, 8);
    let refused = Rejected::RuleBroken("a decided slot's value is the one that its proof decides");
    assert!(receive(&verifier, Message::Decided(Box::new(sound))).is_ok());
    assert_eq!(receive(&verifier, Message::Decided(Box::new(other))), Err(refused));
}

/// ★ What a pre-prepare says of its primary's vote is under no signature: whoever sends another's
/// could have that primary blamed for a bad share.
#[test]
pub(super) fn a_pre_prepare_comes_from_its_primary_alone() {
    let verifier = verifier(ProtocolKind::Pbft);
    let message = verifier.protocol().windowed(pre_prepare(&verifier, 1, value(1, A)));
    let from = |member| {
        crate::Message::verify(message.clone(), Peer::Replica(ReplicaId(member)), &verifier)
    };
    assert!(from(1).is_ok());
    for relaying in [0, 2, 3] {
        assert_eq!(from(relaying).map(|_| ()), Err(Rejected::ForeignSender));
    }
}

/// Certificates are told apart by what they certify, not by who signed them.
#[test]
fn certificates_of_one_proposal_are_equal() {
    let verifier = verifier(ProtocolKind::Pbft);
    let certificate = |at, signers: &[u8]| certificate(&verifier, Kind::Commit, at, signers);
    let one = certificate(at(1, 1, 7), &[0, 1, 2]);
    assert_eq!(one, certificate(at(1, 1, 7), &[1, 2, 3]));
    for other in [at(2, 1, 7), at(1, 2, 7), at(1, 1, 8)] {
        assert_ne!(one, certificate(other, &[0, 1, 2]));
    }
}

/// A certificate that was made here needs no check when it comes back.
#[test]
fn own_certificates_are_known() {
    let slot = harness::slots_of_collector(0).next().expect("one of them");
    let at = at(1, slot, A);
    let mut bench = harness::Bench::new(ProtocolKind::LinearPbft, 0);
    let verifier = Arc::clone(&bench.verifier);
    let knows = |verifier: &Verifier, outputs: &harness::Outputs, purpose| {
        outputs.messages().any(|(_, message)| match message {
            Message::Prepare(one) => verifier.knows_slot(Kind::Prepare, purpose, one),
            Message::Proof(Proof { path: Path::Slow, certificate }) => {
                verifier.knows_slot(Kind::Commit, purpose, certificate)
            }
            Message::Proof(Proof { path: Path::Fast, certificate }) => {
                verifier.knows_slot(Kind::Prepare, purpose, certificate)
            }
            _ => false,
        })
    };
    bench.accept(1, slot, A);
    assert!(knows(&verifier, &bench.vote(2, at), Purpose::Vote), "votes to prepare");
    bench.commit(2, at);
    assert!(knows(&verifier, &bench.commit(3, at), Purpose::Vote), "votes to commit");

    let mut bench = harness::Bench::new(ProtocolKind::Sbft, 0);
    let verifier = Arc::clone(&bench.verifier);
    bench.accept(1, slot, A);
    bench.vote(2, at);
    assert!(knows(&verifier, &bench.vote(3, at), Purpose::Fast), "votes of all");
}
