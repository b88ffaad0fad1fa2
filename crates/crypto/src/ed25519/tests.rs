use super::*;
use crate::KeyCache;
use crate::committee_scheme;
#[cfg(feature = "count")]
use crate::counts;
use crate::scheme::tests::{Committee, MESSAGE, entry, secret};
use curve25519_dalek::constants::{ED25519_BASEPOINT_POINT, EIGHT_TORSION};
use curve25519_dalek::scalar::Scalar;
use proptest::prelude::*;

fn load(key: [u8; 32]) -> Result<(), KeyError> {
    let keys = [(VotingKey(key.to_vec()), PossessionProof(vec![]))];
    match committee_scheme(SchemeKind::Ed25519, &keys, KeyCache::Off) {
        Ok(_) => Ok(()),
        Err(KeyError::Member { member: 0, cause }) => Err(*cause),
        Err(other) => panic!("{other}"),
    }
}

/// Signatures are judged by ZIP-215, but a committee's own keys are held to more.
#[test]
pub(crate) fn small_order_keys_are_refused() {
    for point in &EIGHT_TORSION {
        assert_eq!(load(point.compress().to_bytes()), Err(KeyError::Identity));
    }
}

#[test]
fn mixed_order_and_non_canonical_keys_are_refused() {
    for torsion in &EIGHT_TORSION[1..] {
        let mixed = ED25519_BASEPOINT_POINT + torsion;
        assert_eq!(load(mixed.compress().to_bytes()), Err(KeyError::Subgroup));
    }
    let mut identity_again = [0xff; 32];
    (identity_again[0], identity_again[31]) = (0xee, 0x7f); // p + 1, for 1
    assert_eq!(load(identity_again), Err(KeyError::Encoding));
    assert_eq!(load([2; 32]), Err(KeyError::Encoding), "no such point");
}

#[test]
fn keys_carry_no_proof() {
    let (key, _) = entry(&secret(SchemeKind::Ed25519, 0));
    let keys = [(key, PossessionProof(vec![1]))];
    let cause = Box::new(KeyError::UnexpectedProof { kind: SchemeKind::Ed25519 });
    assert_eq!(
        committee_scheme(SchemeKind::Ed25519, &keys, KeyCache::On).map(|_| ()).unwrap_err(),
        KeyError::Member { member: 0, cause }
    );
}

/// An error in one signer's `s` must not be made good by another's.
#[test]
fn errors_in_a_certificate_do_not_cancel() {
    let committee = Committee::new(SchemeKind::Ed25519, 4);
    let mut certificate = committee.certificate(MESSAGE, 0..3);
    for (signer, shift) in [(0, Scalar::ONE), (1, -Scalar::ONE)] {
        let response = &mut certificate.aggregate.0[signer * 64 + 32..][..32];
        let scalar = Scalar::from_canonical_bytes(response.try_into().unwrap()).unwrap() + shift;
        response.copy_from_slice(scalar.as_bytes());
    }
    assert_eq!(committee.scheme.verify(MESSAGE, &certificate), Err(SignatureError::Mismatch));
    let items = [(MESSAGE, &certificate), (MESSAGE, &certificate)];
    assert_eq!(committee.scheme.verify_many(&items), Err(SignatureError::Mismatch));
}

/// `R` shifted by a point of small order: a share that some libraries accept only in a batch. Here
/// it is valid alone and in a certificate, under every policy.
#[test]
fn torsion_in_a_share_splits_nobody() {
    let committee = Committee::new(SchemeKind::Ed25519, 4);
    for torsion in &EIGHT_TORSION {
        let share = shifted_share(&committee, MESSAGE, torsion);
        assert_eq!(committee.scheme.verify_share(MESSAGE, 0, &share), Ok(()));
        let mut shares = committee.shares(MESSAGE, 1..4);
        shares.push((0, share));
        for policy in [Policy::Each, Policy::Batch, Policy::Aggregate] {
            let combined = committee.combine(&shares, policy);
            assert!(combined.bad.is_empty());
            let certificate = combined.certificate.unwrap();
            assert_eq!(committee.scheme.verify(MESSAGE, &certificate), Ok(()));
        }
    }
}

/// Certificates over messages of their own, as many as make a batch beyond what tables are for.
fn beyond_tables(committee: &Committee) -> (Vec<Vec<u8>>, Vec<Certificate>) {
    let messages: Vec<Vec<u8>> =
        (0..batch::TABLES_MAX / 3 + 2).map(|number| number.to_le_bytes().to_vec()).collect();
    let certificate = |text: &Vec<u8>| committee.certificate(text, 0..3);
    let certificates: Vec<Certificate> = messages.iter().map(certificate).collect();
    assert!(3 * certificates.len() > batch::TABLES_MAX);
    (messages, certificates)
}

/// However many certificates are checked together, a bad signature in any of them is felt, wherever
/// it stands in its certificate.
#[test]
fn a_bad_signature_is_felt_at_every_place_of_a_large_batch() {
    let committee = Committee::new(SchemeKind::Ed25519, 4);
    let (messages, mut certificates) = beyond_tables(&committee);
    let check = |certificates: &[Certificate]| {
        let items: Vec<_> = messages.iter().map(|text| &text[..]).zip(certificates).collect();
        committee.scheme.verify_many(&items)
    };
    assert_eq!(check(&certificates), Ok(()));
    for place in 0..certificates.len() {
        let position = (place % 3) * SIGNATURE_BYTES + SIGNATURE_BYTES / 2;
        certificates[place].aggregate.0[position] ^= 1;
        assert_eq!(check(&certificates), Err(SignatureError::Mismatch), "certificate {place}");
        certificates[place].aggregate.0[position] ^= 1;
    }
}

/// Points of small order are judged in a large batch as they are alone: the cofactor is multiplied
/// in.
#[test]
fn torsion_splits_nobody_in_a_large_batch() {
    let committee = Committee::new(SchemeKind::Ed25519, 4);
    let (messages, mut certificates) = beyond_tables(&committee);
    for (place, torsion) in EIGHT_TORSION.iter().enumerate() {
        let share = shifted_share(&committee, &messages[place], torsion);
        certificates[place].aggregate.0[..SIGNATURE_BYTES].copy_from_slice(&share.0);
        assert_eq!(committee.scheme.verify(&messages[place], &certificates[place]), Ok(()));
    }
    let items: Vec<_> = messages.iter().map(|text| &text[..]).zip(&certificates).collect();
    assert_eq!(committee.scheme.verify_many(&items), Ok(()));
}

/// Member 0's signature with a point of small order added to `R`.
fn shifted_share(committee: &Committee, message: &[u8], torsion: &EdwardsPoint) -> Share {
    use sha2::{Digest, Sha512};
    let expanded = Sha512::digest(&committee.secrets[0].to_bytes()[..]);
    let mut clamped: [u8; 32] = expanded[..32].try_into().unwrap();
    clamped[0] &= 248;
    clamped[31] = (clamped[31] & 127) | 64;
    let secret = Scalar::from_bytes_mod_order(clamped);
    let nonce = (ED25519_BASEPOINT_POINT + torsion).compress().to_bytes();
    let key = committee.secrets[0].public();
    let challenge = Sha512::new_with_prefix(nonce).chain_update(&key.0).chain_update(message);
    let response = Scalar::ONE + Scalar::from_hash(challenge) * secret;
    Share([nonce, response.to_bytes()].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A certificate holds exactly when each of its signatures does.
    #[test]
    fn certificates_hold_when_their_signatures_do(
        signers in prop::collection::btree_set(0..6_usize, 1..=6),
        tampering in prop::collection::vec((0..6 * 64_usize, 0..8_u8), 0..3),
    ) {
        let committee = Committee::new(SchemeKind::Ed25519, 6);
        let mut certificate = committee.certificate(MESSAGE, signers.iter().copied());
        for (position, bit) in tampering {
            if let Some(byte) = certificate.aggregate.0.get_mut(position) {
                *byte ^= 1 << bit;
            }
        }
        let singly = signers.iter().zip(certificate.aggregate.0.chunks(64)).all(|(signer, bytes)| {
            committee.scheme.verify_share(MESSAGE, *signer, &Share(bytes.to_vec())).is_ok()
        });
        prop_assert_eq!(committee.scheme.verify(MESSAGE, &certificate).is_ok(), singly);
        let items = [(MESSAGE, &certificate), (MESSAGE, &certificate)];
        prop_assert_eq!(committee.scheme.verify_many(&items).is_ok(), singly);
    }
}

#[cfg(feature = "count")]
#[test]
fn counts_single_and_batch_checks() {
    let committee = Committee::new(SchemeKind::Ed25519, 4);
    let shares = committee.shares(MESSAGE, 0..4);
    counts::take();
    committee.combine(&shares, Policy::Aggregate);
    let count = counts::take();
    assert_eq!((count.ed25519_verify, count.ed25519_batch_items), (0, 4));
    committee.combine(&shares, Policy::Each);
    let count = counts::take();
    assert_eq!((count.ed25519_verify, count.ed25519_batch_items), (4, 0));
}
