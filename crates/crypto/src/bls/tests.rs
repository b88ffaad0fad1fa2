use super::*;
use crate::VotingSecret;
use crate::committee_scheme;
use crate::scheme::tests::{Committee, MESSAGE, entry, secret};
use blst::min_sig::AggregateSignature;
use proptest::prelude::*;
use serde_json::Value;

const SIGN_BIT: u8 = 0x20;

/// The encoding of the identity: compressed, at infinity, nothing else.
fn identity(bytes: usize) -> Vec<u8> {
    let mut encoding = vec![0; bytes];
    encoding[0] = 0xc0;
    encoding
}

/// A point of the curve outside the subgroup (nearly every small `x` gives one).
fn outside_subgroup(bytes: usize, on_curve: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut encoding = vec![0; bytes];
    encoding[0] = 0x80;
    (1..=255)
        .find_map(|x| {
            encoding[bytes - 1] = x;
            on_curve(&encoding).then(|| encoding.clone())
        })
        .expect("half of all x are on the curve")
}

fn signature_outside_subgroup() -> Vec<u8> {
    outside_subgroup(48, |bytes| {
        Signature::uncompress(bytes).is_ok_and(|signature| !signature.subgroup_check())
    })
}

fn add(left: &Share, right: &[u8]) -> Share {
    let points = [&left.0[..], right].map(|bytes| Signature::uncompress(bytes).unwrap());
    let sum = AggregateSignature::aggregate(&[&points[0], &points[1]], false).unwrap();
    Share(sum.to_signature().to_bytes().to_vec())
}

fn negate(encoding: &[u8]) -> Vec<u8> {
    let mut negated = encoding.to_vec();
    negated[0] ^= SIGN_BIT;
    negated
}

/// The secret `−x` to a secret `x`.
fn negate_secret(secret: &VotingSecret) -> VotingSecret {
    const ORDER: &str = "73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001";
    let mut difference = hex::decode(ORDER).unwrap();
    let mut borrow = 0;
    for (digit, subtrahend) in difference.iter_mut().zip(secret.to_bytes().iter()).rev() {
        let value = i16::from(*digit) - i16::from(*subtrahend) - borrow;
        borrow = i16::from(value < 0);
        *digit = value.rem_euclid(256) as u8;
    }
    VotingSecret::from_bytes(SchemeKind::Bls, &difference).unwrap()
}

fn load(key: Vec<u8>, proof: Vec<u8>) -> Result<(), KeyError> {
    let keys = [(VotingKey(key), PossessionProof(proof))];
    match committee_scheme(SchemeKind::Bls, &keys, KeyCache::On) {
        Ok(_) => Ok(()),
        Err(KeyError::Member { member: 0, cause }) => Err(*cause),
        Err(other) => panic!("{other}"),
    }
}

/// RFC 9380, J.9.1. The secret 1 signs a message with the point it hashes to.
#[test]
fn hashes_to_the_curve_as_rfc9380_says() {
    let file: Value =
        serde_json::from_str(include_str!("../../tests/vectors/rfc9380_bls12381g1.json")).unwrap();
    let mut one = [0; 32];
    one[31] = 1;
    let one = SecretKey::from_bytes(&one).unwrap();
    let cases = file["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 5);
    for case in cases {
        let message = case["message"].as_str().unwrap().as_bytes();
        let point = one.sign(message, file["tag"].as_str().unwrap().as_bytes(), &[]).serialize();
        assert_eq!(hex::encode(&point[..48]), case["x"].as_str().unwrap());
        assert_eq!(hex::encode(&point[48..]), case["y"].as_str().unwrap());
    }
}

/// Pins the tags, the key derivation and the encodings, by their hashes.
#[test]
fn golden_key_share_and_proof() {
    let secret = VotingSecret::from_seed(SchemeKind::Bls, &[1; 32]);
    let show = |bytes: &[u8]| crate::hash(bytes).to_hex();
    assert_eq!(
        [&secret.public().0[..], &secret.sign(b"m").0, &secret.prove_possession().0].map(show),
        [
            "714f5f9f5d0df6b481940f03561d16c08ee0bd1889258bb6e2ac18ef89bfe5cd",
            "47dc00c9ffea55d26aff160e44eab9cc9b19e61e6e78619f27f102205d6be768",
            "1f5cd055fd72b51f1b35fc3d884cdb2032da0e8522214f988e1f2db7427b4fef",
        ]
    );
}

#[test]
fn a_proof_of_possession_is_not_a_share() {
    let secret = secret(SchemeKind::Bls, 0);
    let committee = Committee::of(vec![secret.clone()], KeyCache::On);
    let proof = Share(secret.prove_possession().0);
    let key = secret.public();
    assert_eq!(committee.scheme.verify_share(&key.0, 0, &proof), Err(SignatureError::Mismatch));
    let share = secret.sign(&key.0);
    assert_eq!(load(key.0, share.0), Err(KeyError::Possession));
}

#[test]
pub(crate) fn the_identity_is_refused_as_a_key() {
    assert_eq!(load(identity(96), identity(48)), Err(KeyError::Identity));
    let (_, proof) = entry(&secret(SchemeKind::Bls, 0));
    assert_eq!(load(identity(96), proof.0), Err(KeyError::Identity));
}

#[test]
fn keys_outside_the_subgroup_are_refused() {
    let (_, proof) = entry(&secret(SchemeKind::Bls, 0));
    let key = outside_subgroup(96, |bytes| PublicKey::uncompress(bytes).is_ok());
    assert_eq!(load(key, proof.0), Err(KeyError::Subgroup));
}

#[test]
fn keys_are_encoded_in_one_way() {
    let (key, proof) = entry(&secret(SchemeKind::Bls, 0));
    let mut uncompressed = key.0.clone();
    uncompressed[0] &= 0x7f;
    assert_eq!(load(uncompressed, proof.0.clone()), Err(KeyError::Encoding));
    let mut stained_identity = identity(96);
    stained_identity[95] = 1;
    assert_eq!(load(stained_identity, proof.0.clone()), Err(KeyError::Encoding));
    // x + p for x: the same residue, not below the modulus.
    let mut too_large = key.0.clone();
    too_large[0] |= 0x1f;
    too_large[1..48].fill(0xff);
    assert_eq!(load(too_large, proof.0), Err(KeyError::Encoding));
}

#[test]
fn proofs_are_required_and_checked() {
    let (key, proof) = entry(&secret(SchemeKind::Bls, 0));
    let (_, other) = entry(&secret(SchemeKind::Bls, 1));
    let missing = KeyError::Length {
        kind: SchemeKind::Bls,
        what: "proof of possession",
        expected: 48,
        found: 0,
    };
    assert_eq!(load(key.0.clone(), proof.0.clone()), Ok(()));
    assert_eq!(load(key.0.clone(), vec![]), Err(missing));
    for bad in [other.0, negate(&proof.0), identity(48), signature_outside_subgroup()] {
        assert_eq!(load(key.0.clone(), bad), Err(KeyError::Possession));
    }
}

/// A key chosen as `attacker − victim` makes the pair's aggregate the attacker's own, who then
/// signs for both. It is refused for want of a proof that anyone knows its secret.
#[test]
fn a_rogue_key_is_refused() {
    let (victim, attacker) = (secret(SchemeKind::Bls, 0), secret(SchemeKind::Bls, 1));
    let read = |key: VotingKey| PublicKey::uncompress(&key.0).unwrap();
    let mut rogue = AggregatePublicKey::from_public_key(&read(attacker.public()));
    rogue.sub_aggregate(&AggregatePublicKey::from_public_key(&read(victim.public())));
    let rogue = rogue.to_public_key();

    let pair = points::sum_keys(&[read(victim.public()), rogue]).to_public_key();
    assert_eq!(pair, read(attacker.public()), "the attack would work");

    let bytes = rogue.to_bytes().to_vec();
    for proof in [
        points::prove_possession(&generate(&[9; 32])),
        attacker.prove_possession().0,
        victim.prove_possession().0,
        attacker.sign(&bytes).0,
    ] {
        assert_eq!(load(bytes.clone(), proof), Err(KeyError::Possession));
    }
}

#[test]
pub(crate) fn identity_shares_and_aggregates_are_refused() {
    let committee = Committee::new(SchemeKind::Bls, 4);
    let share = Share(identity(48));
    assert_eq!(committee.scheme.verify_share(MESSAGE, 0, &share), Err(SignatureError::Identity));
    let mut shares = committee.shares(MESSAGE, 0..4);
    shares[1].1 = share;
    for policy in [Policy::Each, Policy::Batch, Policy::Aggregate] {
        assert_eq!(committee.combine(&shares, policy).bad, [1]);
    }
    let certificate =
        Certificate { signers: Bitmap::from_indices(4, 0..3), aggregate: Aggregate(identity(48)) };
    assert_eq!(committee.scheme.verify(MESSAGE, &certificate), Err(SignatureError::Identity));
}

/// Honest proofs of possession for `x` and `−x`: together the two sign anything with the identity.
#[test]
pub(crate) fn keys_that_cancel_prove_nothing() {
    for cache in [KeyCache::On, KeyCache::Off] {
        let one = secret(SchemeKind::Bls, 0);
        let pair = vec![one.clone(), negate_secret(&one), secret(SchemeKind::Bls, 2)];
        let committee = Committee::of(pair, cache);
        let signers = Bitmap::from_indices(3, [0, 1]);
        let forged = Certificate { signers: signers.clone(), aggregate: Aggregate(identity(48)) };
        assert_eq!(committee.scheme.verify(MESSAGE, &forged), Err(SignatureError::Identity));
        let any = Aggregate(committee.secrets[0].sign(MESSAGE).0);
        assert_eq!(
            committee.scheme.verify(MESSAGE, &Certificate { signers, aggregate: any }),
            Err(SignatureError::Identity)
        );
        for policy in [Policy::Each, Policy::Batch, Policy::Aggregate] {
            // Both shares are valid, so nobody is blamed; but there is nothing to certify with.
            let combined = committee.combine(&committee.shares(MESSAGE, 0..2), policy);
            assert_eq!(combined, Combined { certificate: None, bad: vec![] });
            let combined = committee.combine(&committee.shares(MESSAGE, 0..3), policy);
            assert!(combined.bad.is_empty());
            let certificate = combined.certificate.unwrap();
            assert_eq!(committee.scheme.verify(MESSAGE, &certificate), Ok(()));
        }
    }
}

#[test]
fn signatures_outside_the_subgroup_are_refused() {
    let committee = Committee::new(SchemeKind::Bls, 4);
    let torsion = signature_outside_subgroup();
    let shifted = add(&committee.secrets[0].sign(MESSAGE), &torsion);
    for share in [Share(torsion), shifted.clone()] {
        assert_eq!(
            committee.scheme.verify_share(MESSAGE, 0, &share),
            Err(SignatureError::Subgroup)
        );
    }
    let alone = Certificate {
        signers: Bitmap::from_indices(4, [0]),
        aggregate: Aggregate(shifted.0.clone()),
    };
    assert_eq!(committee.scheme.verify(MESSAGE, &alone), Err(SignatureError::Subgroup));
    let mut shares = committee.shares(MESSAGE, 0..4);
    shares[0].1 = shifted;
    for policy in [Policy::Each, Policy::Batch, Policy::Aggregate] {
        let combined = committee.combine(&shares, policy);
        assert_eq!(combined.bad, [0]);
        let certificate = combined.certificate.unwrap();
        assert_eq!(committee.scheme.verify(MESSAGE, &certificate), Ok(()));
    }
}

#[test]
fn signatures_are_encoded_in_one_way() {
    let committee = Committee::new(SchemeKind::Bls, 1);
    let share = committee.secrets[0].sign(MESSAGE);
    let mut uncompressed = share.clone();
    uncompressed.0[0] &= 0x7f;
    let mut stained_identity = identity(48);
    stained_identity[0] |= SIGN_BIT;
    let mut too_large = share.clone();
    too_large.0[0] |= 0x1f;
    too_large.0[1..].fill(0xff);
    let full = Signature::uncompress(&share.0).unwrap().serialize().to_vec();
    for bad in [uncompressed.0, stained_identity, too_large.0] {
        assert_eq!(
            committee.scheme.verify_share(MESSAGE, 0, &Share(bad)),
            Err(SignatureError::Encoding)
        );
    }
    assert_eq!(
        committee.scheme.verify_share(MESSAGE, 0, &Share(full)),
        Err(SignatureError::Length { expected: 48, found: 96 })
    );
    assert_eq!(
        committee.scheme.verify_share(MESSAGE, 0, &Share(negate(&share.0))),
        Err(SignatureError::Mismatch)
    );
}

/// Two colluders send `σ₁ + δ` and `σ₂ − δ`. Their sum is right and the certificate good, and it
/// must not be taken to say anything of either: neither share verifies, and where single validity
/// is asked for, both are refused.
#[test]
fn bisect_bait_never_passes_for_valid_shares() {
    let committee = Committee::new(SchemeKind::Bls, 7);
    let delta = secret(SchemeKind::Bls, 99).sign(b"delta").0;
    for (left, right) in [(0, 1), (0, 6), (3, 4)] {
        let mut shares = committee.shares(MESSAGE, 0..7);
        shares[left].1 = add(&shares[left].1, &delta);
        shares[right].1 = add(&shares[right].1, &negate(&delta));
        for one in [left, right] {
            assert_eq!(
                committee.scheme.verify_share(MESSAGE, one, &shares[one].1),
                Err(SignatureError::Mismatch)
            );
        }

        let combined = committee.combine(&shares, Policy::Aggregate);
        assert!(combined.bad.is_empty(), "nobody can be blamed");
        let certificate = combined.certificate.unwrap();
        assert_eq!(certificate.signers.count(), 7);
        assert_eq!(committee.scheme.verify(MESSAGE, &certificate), Ok(()));

        for policy in [Policy::Each, Policy::Batch] {
            let combined = committee.combine(&shares, policy);
            assert_eq!(combined.bad, [left, right]);
            let certificate = combined.certificate.unwrap();
            assert_eq!(committee.scheme.verify(MESSAGE, &certificate), Ok(()));
        }

        let suspects = Bitmap::from_indices(7, [right]);
        let combined = committee.scheme.combine(MESSAGE, &shares, &suspects, Policy::Aggregate);
        assert_eq!(combined.bad, [left, right], "a suspect's half gives the other away");
    }
}

/// With a third, plainly bad share among them the pair may fall or stand, depending on where the
/// halves are cut; nobody honest is blamed either way and the certificate is good.
#[test]
fn bisect_bait_with_a_bad_share_blames_no_honest_member() {
    let committee = Committee::new(SchemeKind::Bls, 8);
    let delta = secret(SchemeKind::Bls, 99).sign(b"delta").0;
    for (left, right, third) in [(0, 1, 7), (0, 4, 7), (3, 4, 5), (6, 7, 0), (1, 2, 3)] {
        let mut shares = committee.shares(MESSAGE, 0..8);
        shares[left].1 = add(&shares[left].1, &delta);
        shares[right].1 = add(&shares[right].1, &negate(&delta));
        shares[third].1 = committee.secrets[third].sign(b"something else");
        let combined = committee.combine(&shares, Policy::Aggregate);
        assert!(combined.bad.contains(&third));
        assert!(combined.bad.iter().all(|one| [left, right, third].contains(one)));
        let certificate = combined.certificate.unwrap();
        assert_eq!(committee.scheme.verify(MESSAGE, &certificate), Ok(()));
    }
}

/// Errors that cancel between two certificates pass neither alone nor checked together, whether the
/// same members signed both or not.
#[test]
fn errors_in_two_certificates_do_not_cancel() {
    let committee = Committee::new(SchemeKind::Bls, 4);
    let delta = secret(SchemeKind::Bls, 99).sign(b"delta").0;
    for second in [0..3, 1..4] {
        let mut certificates =
            [committee.certificate(b"one", 0..3), committee.certificate(b"two", second)];
        for (certificate, shift) in certificates.iter_mut().zip([delta.clone(), negate(&delta)]) {
            let share = Share(certificate.aggregate.0.clone());
            certificate.aggregate = Aggregate(add(&share, &shift).0);
        }
        let items: [(&[u8], _); 2] = [(b"one", &certificates[0]), (b"two", &certificates[1])];
        assert_eq!(committee.scheme.verify_many(&items), Err(SignatureError::Mismatch));
    }
}

/// Certificates of as many signer sets as there are, some sets twice: a bad one is felt at every
/// place.
#[test]
fn a_bad_certificate_is_felt_wherever_it_stands() {
    let committee = Committee::new(SchemeKind::Bls, 6);
    let sets = (0..1_u8 << 6).filter(|set| set.count_ones() == 3);
    let sets: Vec<u8> = sets.chain([0b0111, 0b11_1000]).collect();
    let messages: Vec<Vec<u8>> = (0..sets.len()).map(|number| vec![number as u8]).collect();
    let sign = |text: &[u8], set: u8| {
        committee.certificate(text, (0..6).filter(|member| set >> member & 1 == 1))
    };
    let certificates: Vec<Certificate> =
        messages.iter().zip(&sets).map(|(text, set)| sign(text, *set)).collect();
    let items: Vec<(&[u8], &Certificate)> =
        messages.iter().map(|text| &text[..]).zip(&certificates).collect();
    assert_eq!(committee.scheme.verify_many(&items), Ok(()));
    for place in 0..items.len() {
        let bad = sign(b"something else", sets[place]);
        let mut items = items.clone();
        items[place].1 = &bad;
        let verdict = committee.scheme.verify_many(&items);
        assert_eq!(verdict, Err(SignatureError::Mismatch), "place {place}");
    }
}

#[test]
fn only_signers_of_this_committee_have_a_key() {
    let committee = Committee::new(SchemeKind::Bls, 4);
    assert_eq!(committee.scheme.signers_key(&Bitmap::new(4)), None, "nobody");
    assert_eq!(committee.scheme.signers_key(&Bitmap::from_indices(5, [0, 1])), None, "others");
    let ed25519 = Committee::new(SchemeKind::Ed25519, 4);
    assert_eq!(ed25519.scheme.signers_key(&Bitmap::from_indices(4, [0, 1])), None);
}

/// Adding the signers and subtracting the absentees give the same key, whoever signs.
#[test]
fn the_cached_key_changes_no_verdict() {
    let secrets: Vec<_> = (0..6).map(|member| secret(SchemeKind::Bls, member)).collect();
    let cached = Committee::of(secrets.clone(), KeyCache::On);
    let subtracting = Committee::of(secrets.clone(), KeyCache::Subtract);
    let fresh = Committee::of(secrets, KeyCache::Off);
    for subset in 1..64_usize {
        let signers: Vec<usize> = (0..6).filter(|member| subset & (1 << member) != 0).collect();
        let certificate = cached.certificate(MESSAGE, signers.iter().copied());
        assert_eq!(certificate, fresh.certificate(MESSAGE, signers.iter().copied()));
        let key = fresh.scheme.signers_key(&certificate.signers);
        assert!(key.is_some(), "{signers:?} have a key");
        for committee in [&cached, &subtracting, &fresh] {
            assert_eq!(committee.scheme.signers_key(&certificate.signers), key);
            assert_eq!(committee.scheme.verify(MESSAGE, &certificate), Ok(()));
            assert_eq!(
                committee.scheme.verify(b"other", &certificate),
                Err(SignatureError::Mismatch)
            );
        }
    }
}

#[test]
fn secrets_out_of_range_are_refused() {
    let read = |bytes: &[u8]| VotingSecret::from_bytes(SchemeKind::Bls, bytes).map(|_| ());
    assert_eq!(read(&[0; 32]), Err(KeyError::Secret));
    assert_eq!(read(&[0xff; 32]), Err(KeyError::Secret));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Asserts that every policy blames exactly those whose shares fail alone, where nobody
    /// colludes.
    #[test]
    fn policies_agree_without_collusion(
        members in 1..9_usize,
        bad in any::<u8>(),
        suspected in any::<u8>(),
    ) {
        let committee = Committee::new(SchemeKind::Bls, members);
        let chosen = |set: u8| (0..members).filter(move |member| set & (1 << member) != 0);
        let mut shares = committee.shares(MESSAGE, 0..members);
        for signer in chosen(bad) {
            shares[signer].1 = committee.secrets[signer].sign(b"something else");
        }
        let suspects = Bitmap::from_indices(members, chosen(suspected));
        let blamed: Vec<usize> = chosen(bad).collect();
        for policy in [Policy::Each, Policy::Batch, Policy::Aggregate] {
            let combined = committee.scheme.combine(MESSAGE, &shares, &suspects, policy);
            prop_assert_eq!(&combined.bad, &blamed);
            prop_assert_eq!(combined.certificate.is_none(), blamed.len() == members);
            if let Some(certificate) = combined.certificate {
                prop_assert_eq!(certificate.signers.absent().collect::<Vec<_>>(), blamed.clone());
                prop_assert_eq!(committee.scheme.verify(MESSAGE, &certificate), Ok(()));
            }
        }
    }
}

#[cfg(feature = "count")]
mod counted {
    use super::*;
    use crate::counts;

    fn certificate_check(members: usize, signers: usize, cache: KeyCache) -> counts::OpCounts {
        let secrets = (0..members).map(|member| secret(SchemeKind::Bls, member)).collect();
        let committee = Committee::of(secrets, cache);
        let certificate = committee.certificate(MESSAGE, 0..signers);
        counts::take();
        committee.scheme.verify(MESSAGE, &certificate).unwrap();
        counts::take()
    }

    #[test]
    fn a_certificate_takes_the_fewer_additions() {
        let additions = |signers, cache| certificate_check(10, signers, cache).bls_key_additions;
        for (signers, on, subtract, off) in
            [(10, 0, 0, 9), (9, 1, 1, 8), (7, 3, 3, 6), (6, 4, 4, 5), (5, 4, 5, 4), (1, 0, 9, 0)]
        {
            assert_eq!(additions(signers, KeyCache::On), on, "{signers} signers, cached");
            let found = additions(signers, KeyCache::Subtract);
            assert_eq!(found, subtract, "{signers} signers, always subtracted");
            assert_eq!(additions(signers, KeyCache::Off), off, "{signers} signers, not cached");
        }
    }

    #[test]
    fn proofs_are_counted_as_signatures() {
        let secret = SecretKey::key_gen(&[7; 32], &[]).unwrap();
        counts::take();
        for _ in 0..2 {
            points::prove_possession(&secret);
            points::prove_dealing(&secret, MESSAGE);
        }
        let counts = counts::take();
        assert_eq!((counts.bls_sign, counts.bls_hash_to_curve), (4, 4));
    }

    #[test]
    fn a_certificate_takes_one_pairing_check() {
        assert_eq!(certificate_check(10, 7, KeyCache::On).bls_verify, 1);
    }

    #[test]
    fn good_shares_are_checked_once_under_aggregate_and_batch() {
        let committee = Committee::new(SchemeKind::Bls, 10);
        let shares = committee.shares(MESSAGE, 0..10);
        for (policy, checks) in [(Policy::Each, 10), (Policy::Batch, 1), (Policy::Aggregate, 1)] {
            counts::take();
            committee.combine(&shares, policy);
            assert_eq!(counts::take().bls_verify, checks, "{policy}");
        }
    }

    #[test]
    fn many_certificates_take_one_pairing_check() {
        let committee = Committee::new(SchemeKind::Bls, 4);
        let certificates =
            [committee.certificate(b"one", 0..3), committee.certificate(b"two", 1..4)];
        let items: [(&[u8], _); 2] = [(b"one", &certificates[0]), (b"two", &certificates[1])];
        counts::take();
        committee.scheme.verify_many(&items).unwrap();
        let count = counts::take();
        assert_eq!((count.bls_verify, count.bls_hash_to_curve), (1, 2));
    }

    /// One bad share among 16: one check of all, then one or two a level.
    #[test]
    fn a_bad_share_is_found_in_logarithmic_checks() {
        let committee = Committee::new(SchemeKind::Bls, 16);
        for (bad, checks) in [(0, 9), (15, 5)] {
            let mut shares = committee.shares(MESSAGE, 0..16);
            shares[bad].1 = committee.secrets[bad].sign(b"something else");
            counts::take();
            assert_eq!(committee.combine(&shares, Policy::Aggregate).bad, [bad]);
            assert_eq!(counts::take().bls_verify, checks);
        }
    }
}
