//! The ZIP-215 batch equation, for keys that are already decompressed.
//!
//! `[8]( −[Σ zᵢsᵢ]B + Σ [zᵢ]Rᵢ + Σ [zᵢkᵢ]Aᵢ ) = 0`, with 128-bit weights `zᵢ`: the sum of the
//! single equations, so it holds whenever they all do. `ed25519-zebra` has the same check, but
//! decompresses every key and tabulates its multiples anew each time; a committee's keys are the
//! same for every certificate. Tests compare the two on valid, tampered and small-order inputs.

use crate::batch_weights::BatchWeights;
use crate::counts;
use crate::error::SignatureError;
use crate::hash;
use crate::mutants::{self, Mutant};
use curve25519_dalek::constants::ED25519_BASEPOINT_POINT;
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint, VartimeEdwardsPrecomputation};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{
    IsIdentity, VartimeMultiscalarMul, VartimePrecomputedMultiscalarMul,
};
use sha2::{Digest, Sha512};
use std::iter::once;

/// One signature, parsed: what its equation needs besides the key's point.
pub(crate) struct Item {
    nonce: EdwardsPoint,
    response: Scalar,
    challenge: Scalar,
    key_bytes: [u8; 32],
    signature: [u8; 64],
}

impl Item {
    /// Parses `signature` and hashes the challenge `k = SHA-512(R ‖ A ‖ M)`, over the bytes as
    /// given.
    pub(crate) fn parse(
        key_bytes: &[u8; 32],
        message: &[u8],
        signature: &[u8; 64],
    ) -> Result<Self, SignatureError> {
        let (nonce_bytes, response_bytes) = halves(signature);
        let nonce = decompress(&nonce_bytes).ok_or(SignatureError::Encoding)?;
        let response: Option<Scalar> = Scalar::from_canonical_bytes(response_bytes).into();
        let response = response.ok_or(SignatureError::Encoding)?;
        let hash =
            Sha512::new_with_prefix(nonce_bytes).chain_update(key_bytes).chain_update(message);
        let challenge = Scalar::from_hash(hash);
        Ok(Self { nonce, response, challenge, key_bytes: *key_bytes, signature: *signature })
    }
}

/// The point that `bytes` encode, canonically or not.
pub(crate) fn decompress(bytes: &[u8; 32]) -> Option<EdwardsPoint> {
    CompressedEdwardsY(*bytes).decompress()
}

/// Checks that every item's equation holds, for any keys.
pub(crate) fn check(items: &[(EdwardsPoint, Item)]) -> Result<(), SignatureError> {
    counts::add(|counts| counts.ed25519_batch_keys += items.len() as u64);
    let weights = weights(items.iter().map(|(_, item)| item));
    let mut base = Scalar::ZERO;
    let mut key_scalars = Vec::with_capacity(items.len());
    for ((_, item), weight) in items.iter().zip(&weights) {
        base -= weight * item.response;
        key_scalars.push(weight * item.challenge);
    }
    refuse_unless_zero(EdwardsPoint::vartime_multiscalar_mul(
        once(&base).chain(&key_scalars).chain(&weights),
        once(&ED25519_BASEPOINT_POINT)
            .chain(items.iter().map(|(key, _)| key))
            .chain(items.iter().map(|(_, item)| &item.nonce)),
    ))
}

/// Most items whose nonces are added up by tables of their multiples, next to the keys' own. Beyond
/// that sorting them into buckets takes less time, the more so the more they are: half at 2,000,
/// where the tables outgrow the caches (`cargo bench -p quorate-crypto --bench batches -- ways`).
pub(super) const TABLES_MAX: usize = 320;

/// A committee's keys with tables of their multiples: 10 KiB a member.
pub(crate) struct TabulatedKeys {
    /// The base point, then the keys.
    points: Vec<EdwardsPoint>,
    tables: VartimeEdwardsPrecomputation,
}

impl TabulatedKeys {
    pub(crate) fn new(keys: impl Iterator<Item = EdwardsPoint>) -> Self {
        let points: Vec<_> = once(ED25519_BASEPOINT_POINT).chain(keys).collect();
        let tables = VartimeEdwardsPrecomputation::new(&points);
        Self { points, tables }
    }

    /// Checks that every item's equation holds, each for the key at its index.
    pub(crate) fn check(&self, items: &[(usize, Item)]) -> Result<(), SignatureError> {
        let weights = weights(items.iter().map(|(_, item)| item));
        let mut scalars = vec![Scalar::ZERO; self.points.len()];
        for ((key, item), weight) in items.iter().zip(&weights) {
            scalars[0] -= weight * item.response;
            scalars[1 + key] += weight * item.challenge;
        }
        let nonces = items.iter().map(|(_, item)| &item.nonce);
        refuse_unless_zero(if items.len() <= TABLES_MAX {
            self.tables.vartime_mixed_multiscalar_mul(&scalars, &weights, nonces)
        } else {
            EdwardsPoint::vartime_multiscalar_mul(
                scalars.iter().chain(&weights),
                self.points.iter().chain(nonces),
            )
        })
    }
}

fn refuse_unless_zero(sum: EdwardsPoint) -> Result<(), SignatureError> {
    let sum =
        if mutants::active(Mutant::BatchWithoutCofactor) { sum } else { sum.mul_by_cofactor() };
    if sum.is_identity() { Ok(()) } else { Err(SignatureError::Mismatch) }
}

/// Weights that depend on every item. An equation is a function of key, signature and challenge;
/// the message enters it through the challenge alone, so a long message is not hashed a second
/// time.
fn weights<'a>(items: impl ExactSizeIterator<Item = &'a Item>) -> Vec<Scalar> {
    let count = items.len();
    counts::add(|counts| {
        counts.ed25519_batches += 1;
        counts.ed25519_batch_items += count as u64;
    });
    let fields =
        items.flat_map(|item| [&item.key_bytes[..], &item.signature, item.challenge.as_bytes()]);
    let hasher = hash::absorb("quorate 2026-01 ed25519 batch weights", fields);
    let mut weights = BatchWeights::new(&hasher);
    (0..count).map(|_| Scalar::from(weights.next())).collect()
}

fn halves(signature: &[u8; 64]) -> ([u8; 32], [u8; 32]) {
    let (mut nonce, mut response) = ([0; 32], [0; 32]);
    nonce.copy_from_slice(&signature[..32]);
    response.copy_from_slice(&signature[32..]);
    (nonce, response)
}
