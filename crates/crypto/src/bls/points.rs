//! The few operations on points that the scheme is made of, over `blst`'s safe interface.

use crate::batch_weights::BatchWeights;
use crate::counts;
use crate::error::{KeyError, SignatureError};
use crate::mutants::{self, Mutant};
use crate::scalar::Scalar;
use crate::{PossessionProof, SchemeKind, VotingKey};
use blst::min_sig::{AggregatePublicKey, PublicKey, SecretKey, Signature};
use blst::{BLST_ERROR, MultiPoint, Pairing, blst_fp12, blst_p1_affine, blst_p2_affine};

/// Bytes of a compressed point of G2.
pub(crate) const KEY_BYTES: usize = 96;
/// Bytes of a compressed point of G1.
pub(crate) const SHARE_BYTES: usize = 48;

const SIGN_TAG: &[u8] = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";
const POSSESSION_TAG: &[u8] = b"BLS_POP_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";
const DEALING_TAG: &[u8] = b"QUORATE_DEALING_POP_BLS12381G1_XMD:SHA-256_SSWU_RO_";
const WEIGHT_BITS: usize = 128;
const SCALAR_BITS: usize = 255;

/// The secret that the IETF's `KeyGen` derives from 32 bytes.
pub(crate) fn generate(seed: &[u8; 32]) -> SecretKey {
    SecretKey::key_gen(seed, b"").expect("KeyGen takes any 32 bytes")
}

/// Reads a secret scalar, which must be neither zero nor too large.
pub(crate) fn read_secret(bytes: &[u8; 32]) -> Result<SecretKey, KeyError> {
    SecretKey::from_bytes(bytes).map_err(|_| KeyError::Secret)
}

/// Signs `message` as the ciphersuite prescribes, into 48 bytes.
pub(crate) fn sign(secret: &SecretKey, message: &[u8]) -> Vec<u8> {
    counts::add(|count| {
        count.bls_sign += 1;
        count.bls_hash_to_curve += 1;
    });
    secret.sign(message, SIGN_TAG, &[]).to_bytes().to_vec()
}

/// Signs the secret's own public key, under a tag nothing else uses.
pub(crate) fn prove_possession(secret: &SecretKey) -> Vec<u8> {
    counts::add(|count| {
        count.bls_sign += 1;
        count.bls_hash_to_curve += 1;
    });
    secret.sign(&secret.sk_to_pk().to_bytes(), POSSESSION_TAG, &[]).to_bytes().to_vec()
}

/// Signs `statement` under a tag that nothing but proofs about dealings uses.
pub(crate) fn prove_dealing(secret: &SecretKey, statement: &[u8]) -> Vec<u8> {
    counts::add(|count| {
        count.bls_sign += 1;
        count.bls_hash_to_curve += 1;
    });
    secret.sign(statement, DEALING_TAG, &[]).to_bytes().to_vec()
}

/// Checks that `proof` is what [`prove_dealing`] gives with `key`'s secret.
pub(crate) fn check_dealing(
    statement: &[u8],
    key: &PublicKey,
    proof: &[u8],
) -> Result<(), KeyError> {
    let signature = read_signature(proof).map_err(|_| KeyError::Possession)?;
    check_subgroup(&signature).map_err(|_| KeyError::Possession)?;
    if pairing_holds(statement, DEALING_TAG, key, &signature) {
        Ok(())
    } else {
        Err(KeyError::Possession)
    }
}

/// Reads a member's key, checks it fully, and verifies that its owner holds the secret.
pub(crate) fn read_key(key: &VotingKey, proof: &PossessionProof) -> Result<PublicKey, KeyError> {
    check_length(SchemeKind::Bls, "public key", KEY_BYTES, &key.0)?;
    check_length(SchemeKind::Bls, "proof of possession", SHARE_BYTES, &proof.0)?;
    let point = read_point(&key.0)?;
    let signature = read_signature(&proof.0).map_err(|_| KeyError::Possession)?;
    check_subgroup(&signature).map_err(|_| KeyError::Possession)?;
    if !pairing_holds(&key.0, POSSESSION_TAG, &point, &signature) {
        return Err(KeyError::Possession);
    }
    Ok(point)
}

/// Reads a key from [`KEY_BYTES`]: a canonical point of the curve, in the prime-order subgroup, not
/// the identity. Nothing is known of who holds its secret.
pub(crate) fn read_point(bytes: &[u8]) -> Result<PublicKey, KeyError> {
    let point = PublicKey::uncompress(bytes).map_err(|_| KeyError::Encoding)?;
    match point.validate() {
        Err(BLST_ERROR::BLST_PK_IS_INFINITY) if mutants::active(Mutant::AcceptIdentity) => {}
        Err(BLST_ERROR::BLST_PK_IS_INFINITY) => return Err(KeyError::Identity),
        Err(_) => return Err(KeyError::Subgroup),
        Ok(()) => {}
    }
    Ok(point)
}

/// Reads a share or an aggregate: a canonical point of the curve, not the identity. Its subgroup is
/// checked apart, so that shares about to be summed pay for it once.
pub(crate) fn read_signature(bytes: &[u8]) -> Result<Signature, SignatureError> {
    if bytes.len() != SHARE_BYTES {
        return Err(SignatureError::Length { expected: SHARE_BYTES, found: bytes.len() });
    }
    counts::add(|count| count.bls_points_read += 1);
    let signature = Signature::uncompress(bytes).map_err(|_| SignatureError::Encoding)?;
    refuse_identity(&signature)?;
    Ok(signature)
}

/// Refuses a point outside the prime-order subgroup.
pub(crate) fn check_subgroup(signature: &Signature) -> Result<(), SignatureError> {
    counts::add(|count| count.bls_subgroup_checks += 1);
    if signature.subgroup_check() { Ok(()) } else { Err(SignatureError::Subgroup) }
}

/// Refuses the identity as a signature.
pub(crate) fn refuse_identity(signature: &Signature) -> Result<(), SignatureError> {
    let identity = Signature::from(blst_p1_affine::default());
    if *signature == identity && !mutants::active(Mutant::AcceptIdentity) {
        return Err(SignatureError::Identity);
    }
    Ok(())
}

/// Refuses the identity as a key.
pub(crate) fn refuse_identity_key(key: &PublicKey) -> Result<(), SignatureError> {
    if is_identity_key(key) && !mutants::active(Mutant::AcceptIdentity) {
        return Err(SignatureError::Identity);
    }
    Ok(())
}

/// The sum of the keys: the identity, if there are none.
pub(crate) fn sum_keys(keys: &[PublicKey]) -> AggregatePublicKey {
    if keys.is_empty() {
        return AggregatePublicKey::from_public_key(&PublicKey::default());
    }
    counts::add(|count| count.bls_key_additions += keys.len() as u64 - 1);
    keys.add()
}

/// `all` without `absent`, which may be empty.
pub(crate) fn subtract_keys(all: &AggregatePublicKey, absent: &[PublicKey]) -> PublicKey {
    let mut rest = *all;
    if !absent.is_empty() {
        counts::add(|count| count.bls_key_additions += 1);
        rest.sub_aggregate(&sum_keys(absent));
    }
    rest.to_public_key()
}

/// The sum of at least one signature.
pub(crate) fn sum_signatures(signatures: &[Signature]) -> Signature {
    counts::add(|count| count.bls_share_additions += signatures.len() as u64 - 1);
    signatures.add().to_signature()
}

/// The sum of the signatures, each multiplied by its coefficient. They need not be in the subgroup,
/// nor is the result then: it is worth nothing before it is checked. One multiplication for all
/// takes a fifth of the time of one each at 140, and a third at 11.
pub(crate) fn interpolate(signatures: &[Signature], coefficients: &[Scalar]) -> Signature {
    counts::add(|count| count.bls_interpolated_points += signatures.len() as u64);
    let scalars: Vec<u8> = coefficients.iter().flat_map(|one| one.to_le_bytes()).collect();
    signatures.mult(&scalars, SCALAR_BITS).to_signature()
}

/// The sum of the keys, each multiplied by its scalar of 32 bytes.
pub(crate) fn weighted_sum(keys: &[PublicKey], scalars: &[u8]) -> PublicKey {
    keys.mult(scalars, SCALAR_BITS).to_public_key()
}

/// Returns `true` if the keys, each multiplied by its scalar of 32 bytes, add up to the identity.
pub(crate) fn sum_to_nothing(keys: &[PublicKey], scalars: &[u8]) -> bool {
    is_identity_key(&weighted_sum(keys, scalars))
}

/// Checks that `signature`, in the subgroup, is `key`'s on `message`.
pub(crate) fn check_pairing(
    message: &[u8],
    key: &PublicKey,
    signature: &Signature,
) -> Result<(), SignatureError> {
    if pairing_holds(message, SIGN_TAG, key, signature) {
        Ok(())
    } else {
        Err(SignatureError::Mismatch)
    }
}

/// Returns `true` if a sum of signatures is in the subgroup and is that of the sum of the keys.
/// Linear: unlike a certificate's check it accepts the identity for the identity, as bisection
/// needs.
pub(crate) fn equation_holds(message: &[u8], key: &PublicKey, signature: &Signature) -> bool {
    check_subgroup(signature).is_ok() && pairing_holds(message, SIGN_TAG, key, signature)
}

/// [`equation_holds`] for `Σ zᵢ·keyᵢ` and `Σ zᵢ·signatureᵢ`, with 16 bytes of weight each. The
/// signatures must be in the subgroup, where the weights reach every error.
pub(crate) fn weighted_equation_holds(
    message: &[u8],
    keys: &[PublicKey],
    signatures: &[Signature],
    weights: &[u8],
) -> bool {
    counts::add(|count| count.bls_weighted_points += keys.len() as u64);
    let key = keys.mult(weights, WEIGHT_BITS).to_public_key();
    let signature = signatures.mult(weights, WEIGHT_BITS).to_signature();
    pairing_holds(message, SIGN_TAG, &key, &signature)
}

/// That `signature` is `key`'s on `message`.
pub(crate) struct Claim<'a> {
    pub(crate) message: &'a [u8],
    pub(crate) key: PublicKey,
    pub(crate) signature: Signature,
}

/// Checks that every claim is true. The signatures must be in the subgroup.
///
/// `e(Σ zᵢ·σᵢ, g₂) = ∏ e(Σ zᵢ·H(mᵢ), key)`, over the keys and each key's claims, with random
/// weights `zᵢ`, so that errors in different claims cannot cancel. Claims of one key share a
/// pairing: those of a threshold group always, others where the same members signed. `zᵢ·H(mᵢ)` is
/// what a secret `zᵢ` would sign, which is how the library's safe interface hands it out; nothing
/// about it is secret.
pub(crate) fn check_pairings(claims: &[Claim<'_>]) -> Result<(), SignatureError> {
    if claims.is_empty() {
        return Ok(());
    }
    counts::add(|count| {
        count.bls_verify += 1;
        count.bls_hash_to_curve += claims.len() as u64;
    });
    let mut stream = claim_weights(claims);
    let mut weights = Vec::with_capacity(claims.len() * WEIGHT_BITS / 8);
    let mut by_key: Vec<(PublicKey, Vec<Signature>)> = Vec::new();
    for claim in claims {
        let weight = stream.next();
        weights.extend(weight.to_le_bytes());
        let hash = weighted_hash(claim.message, weight);
        match by_key.iter_mut().find(|(key, _)| *key == claim.key) {
            Some((_, hashes)) => hashes.push(hash),
            None => by_key.push((claim.key, vec![hash])),
        }
    }
    let signatures: Vec<Signature> = claims.iter().map(|claim| claim.signature).collect();
    let signature = signatures.mult(&weights, WEIGHT_BITS).to_signature();
    let sums = by_key.iter().map(|(key, hashes)| {
        (blst_p2_affine::from(*key), blst_p1_affine::from(hashes.add().to_signature()))
    });
    let (keys, hashes): (Vec<blst_p2_affine>, Vec<blst_p1_affine>) = sums.unzip();
    let mut left = blst_fp12::default();
    let signature: &blst_p1_affine = (&signature).into();
    Pairing::aggregated(&mut left, signature);
    let right = blst_fp12::miller_loop_n(&keys, &hashes);
    if blst_fp12::finalverify(&left, &right) { Ok(()) } else { Err(SignatureError::Mismatch) }
}

/// `weight·H(message)`. The weight is not zero.
fn weighted_hash(message: &[u8], weight: u128) -> Signature {
    let mut bytes = [0; 32];
    bytes[16..].copy_from_slice(&weight.to_be_bytes());
    let weight = SecretKey::from_bytes(&bytes).expect("a weight is a scalar, and not zero");
    weight.sign(message, SIGN_TAG, &[])
}

fn claim_weights(claims: &[Claim<'_>]) -> BatchWeights {
    let mut hasher = blake3::Hasher::new_derive_key("quorate 2026-01 bls certificate weights");
    for claim in claims {
        hasher.update(&(claim.message.len() as u64).to_le_bytes());
        hasher.update(claim.message);
        hasher.update(&claim.key.serialize());
        hasher.update(&claim.signature.serialize());
    }
    BatchWeights::new(&hasher)
}

fn pairing_holds(message: &[u8], tag: &[u8], key: &PublicKey, signature: &Signature) -> bool {
    // The library's pairing is not meant for the identity; its equation is known without it.
    if is_identity_key(key) {
        return *signature == Signature::from(blst_p1_affine::default());
    }
    counts::add(|count| {
        count.bls_verify += 1;
        count.bls_hash_to_curve += 1;
    });
    let key: &blst_p2_affine = key.into();
    let signature: &blst_p1_affine = signature.into();
    let mut pairing = Pairing::new(true, tag);
    if pairing.aggregate(key, false, signature, false, message, &[]) != BLST_ERROR::BLST_SUCCESS {
        return false;
    }
    pairing.commit();
    pairing.finalverify(None)
}

fn is_identity_key(key: &PublicKey) -> bool {
    *key == PublicKey::default()
}

/// Refuses what is longer or shorter than `what` is.
pub(crate) fn check_length(
    kind: SchemeKind,
    what: &'static str,
    expected: usize,
    bytes: &[u8],
) -> Result<(), KeyError> {
    let found = bytes.len();
    if found == expected { Ok(()) } else { Err(KeyError::Length { kind, what, expected, found }) }
}
