use super::*;
use curve25519_dalek::constants::{ED25519_BASEPOINT_POINT, EIGHT_TORSION};
use curve25519_dalek::edwards::CompressedEdwardsY;
use curve25519_dalek::scalar::Scalar;
use proptest::prelude::*;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::Value;

fn unhex(value: &Value) -> Vec<u8> {
    hex::decode(value.as_str().unwrap()).unwrap()
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().unwrap()
}

/// The library's own batch verifier, which decompresses keys and draws weights in its own way.
fn zebra_batch(items: &[(IdentityKey, &[u8], Signature)]) -> bool {
    let mut verifier = ed25519_zebra::batch::Verifier::new();
    for (key, message, signature) in items {
        let signature = ed25519_zebra::Signature::from_bytes(&signature.0);
        verifier.queue((VerificationKeyBytes::from(key.0), signature, message));
    }
    verifier.verify(ChaCha20Rng::seed_from_u64(1)).is_ok()
}

/// The verdict on one signature, which single, batch and the library's batch must share, also in
/// the company of a good signature.
fn verdict(key: IdentityKey, message: &[u8], signature: Signature) -> bool {
    let single = key.verify(message, &signature).is_ok();
    let item = (key, message, signature);
    let secret = IdentitySecret::from_seed([7; 32]);
    let good = (secret.public(), &b"good"[..], secret.sign(b"good"));
    for batch in [vec![item], vec![item, item], vec![item, good], vec![good, item, good]] {
        assert_eq!(verify_batch(&batch).is_ok(), single, "batch of {}", batch.len());
        assert_eq!(zebra_batch(&batch), single, "library batch of {}", batch.len());
    }
    single
}

#[test]
fn rfc8032_vectors() {
    let file: Value =
        serde_json::from_str(include_str!("../../tests/vectors/rfc8032_ed25519.json")).unwrap();
    for case in file["cases"].as_array().unwrap() {
        let secret = IdentitySecret::from_seed(array(&unhex(&case["secret"])));
        let message = unhex(&case["message"]);
        assert_eq!(secret.public().0.to_vec(), unhex(&case["public"]));
        assert_eq!(secret.sign(&message).0.to_vec(), unhex(&case["signature"]));
        assert!(verdict(secret.public(), &message, secret.sign(&message)));
    }
}

/// Wycheproof judges by RFC 8032 read strictly. ZIP-215 differs from it in exactly one vector,
/// which encodes the identity as `R` with its sign bit set; signatures of another length cannot be
/// put into a [`Signature`] at all.
#[test]
fn wycheproof_vectors() {
    const ACCEPTED_BY_ZIP_215: [u64; 1] = [151];
    let file: Value =
        serde_json::from_str(include_str!("../../tests/vectors/wycheproof_ed25519.json")).unwrap();
    let (mut judged, mut other_length) = (0, 0);
    for group in file["testGroups"].as_array().unwrap() {
        let key = IdentityKey(array(&unhex(&group["publicKey"]["pk"])));
        for test in group["tests"].as_array().unwrap() {
            let id = test["tcId"].as_u64().unwrap();
            let valid = test["result"] == "valid";
            let Ok(signature) = <[u8; 64]>::try_from(unhex(&test["sig"])) else {
                assert!(!valid, "{id}");
                other_length += 1;
                continue;
            };
            let expected = valid || ACCEPTED_BY_ZIP_215.contains(&id);
            assert_eq!(verdict(key, &unhex(&test["msg"]), Signature(signature)), expected, "{id}");
            judged += 1;
        }
    }
    assert_eq!(judged + other_length, file["numberOfTests"].as_u64().unwrap());
}

/// The edge cases of "Taming the many EdDSAs", with the verdicts of a ZIP-215 verifier.
#[test]
fn speccheck_vectors() {
    let file: Value =
        serde_json::from_str(include_str!("../../tests/vectors/speccheck_ed25519.json")).unwrap();
    let cases = file["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 12);
    for case in cases {
        let key = IdentityKey(array(&unhex(&case["public"])));
        let signature = Signature(array(&unhex(&case["signature"])));
        let accepted = verdict(key, &unhex(&case["message"]), signature);
        assert_eq!(accepted, case["zip215"].as_bool().unwrap(), "{}", case["name"]);
    }
}

/// The eight points of small order, and the six other encodings that decode to one of them.
fn small_order_encodings() -> Vec<[u8; 32]> {
    let mut encodings: Vec<[u8; 32]> =
        EIGHT_TORSION.iter().map(|point| point.compress().to_bytes()).collect();
    let mut low = [0; 32];
    let prime = |low: u8| {
        let mut bytes = [0xff; 32];
        (bytes[0], bytes[31]) = (low, 0x7f);
        bytes
    };
    low[0] = 1;
    for mut candidate in [low, prime(0xec), prime(0xed), prime(0xee)] {
        for sign in [0, 0x80] {
            candidate[31] = (candidate[31] & 0x7f) | sign;
            if !encodings.contains(&candidate)
                && CompressedEdwardsY(candidate).decompress().is_some()
            {
                encodings.push(candidate);
            }
        }
    }
    encodings
}

/// ZIP-215 accepts `s = 0` with any key and any `R` of small order, canonically encoded or not.
#[test]
fn small_order_points_are_judged_alike_everywhere() {
    let encodings = small_order_encodings();
    assert_eq!(encodings.len(), 14);
    for key in &encodings {
        for nonce in &encodings {
            let mut signature = [0; 64];
            signature[..32].copy_from_slice(nonce);
            assert!(verdict(IdentityKey(*key), b"Zcash", Signature(signature)));
            signature[32] = 1;
            assert!(!verdict(IdentityKey(*key), b"Zcash", Signature(signature)));
        }
    }
}

/// Signatures that a signer shifts by a point of small order pass cofactored checks and fail
/// others: where a library's single check has no cofactor, they split replicas.
#[test]
pub(crate) fn torsion_shifted_signatures_are_judged_alike() {
    for (index, torsion) in EIGHT_TORSION.iter().enumerate() {
        let secret = Scalar::from(1234_u64 + index as u64);
        let nonce = Scalar::from(99_u64);
        let base = curve25519_dalek::constants::ED25519_BASEPOINT_POINT;
        let key = (base * secret).compress().to_bytes();
        let shifted = (base * nonce + torsion).compress().to_bytes();
        let challenge = Scalar::from_hash({
            use sha2::Digest;
            sha2::Sha512::new_with_prefix(shifted).chain_update(key).chain_update(b"m")
        });
        let mut signature = [0; 64];
        signature[..32].copy_from_slice(&shifted);
        signature[32..].copy_from_slice((nonce + challenge * secret).as_bytes());
        assert!(verdict(IdentityKey(key), b"m", Signature(signature)), "torsion point {index}");
    }
}

#[test]
fn errors_name_what_is_wrong() {
    let secret = IdentitySecret::from_seed([1; 32]);
    let signature = secret.sign(b"m");
    assert_eq!(secret.public().verify(b"n", &signature), Err(SignatureError::Mismatch));
    let no_point = IdentityKey([2; 32]);
    assert!(CompressedEdwardsY([2; 32]).decompress().is_none(), "the test needs a non-point");
    assert_eq!(no_point.verify(b"m", &signature), Err(SignatureError::Key));
    assert_eq!(verify_batch(&[(no_point, b"m", signature)]), Err(SignatureError::Key));
    assert_eq!(verify_batch(&[(secret.public(), b"n", signature)]), Err(SignatureError::Mismatch));
    assert_eq!(verify_batch(&[]), Ok(()));
}

#[test]
fn batch_errors_do_not_cancel() {
    let secret = IdentitySecret::from_seed([1; 32]);
    let shift = |signature: Signature, by: Scalar| {
        let s = Scalar::from_canonical_bytes(array(&signature.0[32..])).unwrap() + by;
        let mut bytes = signature.0;
        bytes[32..].copy_from_slice(s.as_bytes());
        Signature(bytes)
    };
    let one = (secret.public(), &b"a"[..], shift(secret.sign(b"a"), Scalar::ONE));
    let two = (secret.public(), &b"b"[..], shift(secret.sign(b"b"), -Scalar::ONE));
    assert_eq!(verify_batch(&[one, two]), Err(SignatureError::Mismatch));
}

#[test]
fn prepared_key_judges_as_the_key_does() {
    let secret = IdentitySecret::from_seed([3; 32]);
    let prepared = secret.public().prepare().unwrap();
    assert_eq!(prepared.key(), secret.public());
    assert_eq!(prepared.verify(b"m", &secret.sign(b"m")), Ok(()));
    assert_eq!(prepared.verify(b"n", &secret.sign(b"m")), Err(SignatureError::Mismatch));
}

#[test]
fn secrets_are_not_shown() {
    let seed = [0xab; 32];
    let secret = IdentitySecret::from_seed(seed);
    assert!(!format!("{secret:?}").contains("abab"));
    assert!(format!("{secret:?}").contains(&secret.public().to_string()));
    assert_eq!(*secret.seed(), seed);
    let key = secret.public();
    let start = key.to_string()[..8].to_owned();
    assert!(format!("{key:?}").contains(&start));
    assert!(format!("{:?}", key.prepare().expect("a point")).contains(&start));
    let signature = secret.sign(b"statement");
    assert!(format!("{signature:?}").contains(&hex::encode(&signature.0[..4])));
}

#[test]
fn keys_are_written_in_hexadecimal() {
    let key = IdentitySecret::from_seed([4; 32]).public();
    assert_eq!(IdentityKey::from_hex(&key.to_string()), Ok(key));
    assert_eq!("abc".parse::<IdentityKey>(), Err(KeyError::Hex));
}

/// ZIP-215 takes signatures under each of these; no honest member has one for its key.
#[test]
fn members_have_one_encoding_of_a_point_of_prime_order() {
    let mixed = |torsion: &EdwardsPoint| (ED25519_BASEPOINT_POINT + torsion).compress().to_bytes();
    for torsion in &EIGHT_TORSION {
        let small = IdentityKey(torsion.compress().to_bytes());
        assert_eq!(small.check(), Err(KeyError::Identity));
    }
    for torsion in &EIGHT_TORSION[1..] {
        assert_eq!(IdentityKey(mixed(torsion)).check(), Err(KeyError::Subgroup));
    }
    let mut identity_again = [0xff; 32];
    (identity_again[0], identity_again[31]) = (0xee, 0x7f); // p + 1, for 1
    assert_eq!(IdentityKey(identity_again).check(), Err(KeyError::Encoding));
    assert_eq!(IdentityKey([2; 32]).check(), Err(KeyError::Encoding), "no such point");
    assert_eq!(IdentitySecret::from_seed([4; 32]).public().check(), Ok(()));
}

/// ★ Nobody takes part under a key that it copied.
#[test]
pub(crate) fn only_its_holder_proves_an_identity() {
    let [ours, theirs] = [4, 5].map(|seed| IdentitySecret::from_seed([seed; 32]));
    let (key, proof) = (ours.public(), ours.prove_possession());
    assert_eq!(key.check_possession(&proof), Ok(()));
    let others = theirs.prove_possession();
    assert_eq!(key.check_possession(&others), Err(KeyError::Possession));
    let elsewhere = PossessionProof(ours.sign(&key.0).0.to_vec());
    assert_eq!(key.check_possession(&elsewhere), Err(KeyError::Possession), "another statement");
    let mut long = proof.clone();
    long.0.push(0);
    assert_eq!(key.check_possession(&long), Err(KeyError::Possession));
    let none = PossessionProof(Vec::new());
    assert_eq!(key.check_possession(&none), Err(KeyError::NoIdentityProof));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Batches with tampered members: all three checks agree.
    #[test]
    fn single_batch_and_library_agree(
        tampering in prop::collection::vec((any::<u8>(), 0..97_usize), 1..6),
    ) {
        let mut items = Vec::new();
        let messages: Vec<[u8; 1]> = (0..tampering.len()).map(|i| [i as u8]).collect();
        for (message, (change, position)) in messages.iter().zip(&tampering) {
            let secret = IdentitySecret::from_seed([message[0]; 32]);
            let (mut key, mut signature) = (secret.public(), secret.sign(message));
            match position {
                0..64 => signature.0[*position] ^= change & 1,
                64..96 => key.0[*position - 64] ^= change & 1,
                _ => {}
            }
            items.push((key, &message[..], signature));
        }
        let singly = items.iter().all(|(key, message, sig)| key.verify(message, sig).is_ok());
        prop_assert_eq!(verify_batch(&items).is_ok(), singly);
        prop_assert_eq!(zebra_batch(&items), singly);
    }
}

#[cfg(feature = "count")]
#[test]
fn signatures_are_counted() {
    let secret = IdentitySecret::from_seed([4; 32]);
    let key = secret.public();
    let prepared = key.prepare().unwrap();
    crate::counts::take();
    for _ in 0..2 {
        let signature = secret.sign(b"statement");
        key.verify(b"statement", &signature).unwrap();
        prepared.verify(b"statement", &signature).unwrap();
    }
    let counts = crate::counts::take();
    assert_eq!((counts.ed25519_sign, counts.ed25519_verify, counts.ed25519_key_reads), (2, 4, 2));
}
