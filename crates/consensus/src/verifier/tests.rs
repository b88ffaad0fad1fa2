use super::*;
use crate::block_tree::TreeBlock;
use crate::chained::tests::harness::Keys;
use quorate_crypto::{Aggregate, Bitmap};
use quorate_types::Height;

fn certificate() -> Certificate {
    Certificate { signers: Bitmap::from_indices(4, [0, 1, 2]), aggregate: Aggregate(vec![7; 16]) }
}

fn slot(slot: u64) -> SlotCertificate {
    let proposal = Proposal { view: View(1), slot: Height(slot), digest: hash(b"a value") };
    SlotCertificate { proposal, certificate: certificate() }
}

/// A committee's proposals are signed by the one kind of key or by the other, and by members alone.
#[test]
fn what_is_signed_alone_is_checked_by_the_key_that_signed_it() {
    let keys = Keys::new(4);
    let member = ReplicaId(2);
    for key in [ProposalKey::Identity, ProposalKey::Voting] {
        let committee = Arc::clone(&keys.committee);
        let verifier = Arc::new(Verifier::new(committee, ProtocolKind::Jolteon, key));
        assert_eq!(verifier.proposal_key(), key);
        let config = keys.config(member.0, &verifier);
        let signature = verifier.sign_alone(&config.identity, &config.voting, b"said");
        let check = |member, message: &[u8], signature: &[u8]| {
            verifier.check_alone(member, message, signature, "what was said")
        };
        assert_eq!(check(member, b"said", &signature), Ok(()), "{key}");
        let refused = |found| matches!(found, Err(Rejected::BadSignature(_)));
        assert!(refused(check(member, b"not said", &signature)), "{key}");
        assert!(refused(check(ReplicaId(1), b"said", &signature)), "{key}: another member's");
        assert!(refused(check(member, b"said", &signature[1..])), "{key}: too short");
        assert_eq!(check(ReplicaId(4), b"said", &signature), Err(Rejected::NotAMember), "{key}");
    }
}

#[test]
fn a_proposal_key_is_written_as_it_is_read() {
    for (key, name) in [(ProposalKey::Identity, "identity"), (ProposalKey::Voting, "voting")] {
        assert_eq!((key.to_string().as_str(), name.parse()), (name, Ok(key)));
    }
    let refused = "both".parse::<ProposalKey>().expect_err("neither");
    assert!(refused.contains("'both'") && refused.contains("'voting'"), "{refused}");
}

/// The highest certificates are remembered, up to the bound and no fewer.
#[test]
fn the_highest_certificates_are_remembered() {
    let keys = Keys::new(4);
    let (verifier, genesis) = (keys.verifier(), keys.genesis());
    let kind = verifier.rules().vote;
    let last = CACHE_MAX as u64;
    let qcs: Vec<Qc> = (1..=last + 1)
        .map(|view| {
            let (id, base_id) = (keys.block(view, &genesis, 1, &[]).id(), genesis.id);
            Qc { view: View(view), id, base_view: View(0), base_id, certificate: certificate() }
        })
        .collect();
    let tcs: Vec<Tc> = (1..=last + 1)
        .map(|view| Tc { view: View(view), high_qc: genesis.clone(), groups: Vec::new() })
        .collect();
    let knows = |place: usize| {
        let qc = verifier.known_qc(kind, &qcs[place]).is_some();
        assert_eq!(verifier.known_tc(&tcs[place]).is_some(), qc, "at {place}");
        qc
    };
    for (count, (qc, tc)) in qcs.iter().zip(&tcs).enumerate() {
        assert!(!knows(count));
        verifier.remember_qc(kind, qc);
        verifier.remember_tc(tc);
        assert!(knows(count) && knows(usize::from(count == CACHE_MAX)), "after {count}");
    }
    assert!(!knows(0), "the lowest makes room");
}

/// So are those of slots, each in the bytes that were checked.
#[test]
fn the_latest_slots_are_remembered() {
    let verifier = Keys::new(4).running(ProtocolKind::Pbft).verifier();
    let (kind, purpose) = (sign::Kind::Prepare, Purpose::Vote);
    let knows = |at: u64| verifier.knows_slot(kind, purpose, &slot(at));
    let last = SLOT_CACHE_MAX as u64;
    for at in 1..=last {
        verifier.remember_slot(kind, purpose, &slot(at));
    }
    assert!((1..=last).all(knows));
    let mut other = slot(last);
    other.certificate.aggregate = Aggregate(vec![8; 16]);
    assert!(!verifier.knows_slot(kind, purpose, &other), "other bytes were not checked");
    verifier.remember_slot(kind, purpose, &slot(last + 1));
    assert!(!knows(1) && (2..=last + 1).all(knows));
}
