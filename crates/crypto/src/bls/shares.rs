//! Shares as they come in, and which of them are not their signers'.

use super::points;
use crate::batch_weights::BatchWeights;
use crate::bisect::bad_items;
use crate::error::SignatureError;
use crate::scheme;
use blst::min_sig::{PublicKey, Signature};

/// Share whose bytes encode a point of the curve other than the identity; nothing else is known.
pub(crate) type Candidate = scheme::Candidate<Signature>;

/// Checks that a share is its signer's, whose key is in `keys` at its index.
pub(crate) fn check_alone(
    keys: &[PublicKey],
    message: &[u8],
    one: &Candidate,
) -> Result<(), SignatureError> {
    points::check_subgroup(&one.signature)?;
    points::check_pairing(message, &keys[one.signer], &one.signature)
}

/// The signers whose shares are not valid, each checked alone.
pub(crate) fn bad_alone(keys: &[PublicKey], message: &[u8], shares: &[Candidate]) -> Vec<usize> {
    let is_bad = |one: &&Candidate| check_alone(keys, message, one).is_err();
    shares.iter().filter(is_bad).map(|one| one.signer).collect()
}

/// Signers whose shares are not valid, found by their sums. The sum of the others is valid, but two
/// of them can be wrong by opposite errors.
pub(crate) fn bad_by_sums(keys: &[PublicKey], message: &[u8], shares: &[Candidate]) -> Vec<usize> {
    let holds = |part: &[Candidate]| {
        let keys: Vec<PublicKey> = part.iter().map(|one| keys[one.signer]).collect();
        let signatures: Vec<Signature> = part.iter().map(|one| one.signature).collect();
        let key = points::sum_keys(&keys).to_public_key();
        points::equation_holds(message, &key, &points::sum_signatures(&signatures))
    };
    bad_items(shares, holds).iter().map(|one| one.signer).collect()
}

/// The signers whose shares are not valid alone, found with random weights.
pub(crate) fn bad_by_weights(
    keys: &[PublicKey],
    message: &[u8],
    shares: &[Candidate],
) -> Vec<usize> {
    let (inside, outside): (Vec<Candidate>, Vec<Candidate>) =
        shares.iter().copied().partition(|one| points::check_subgroup(&one.signature).is_ok());
    let weighted: Vec<(Candidate, u128)> = {
        let mut weights = weights(keys, message, &inside);
        inside.into_iter().map(|one| (one, weights.next())).collect()
    };
    let bad = bad_items(&weighted, |part| {
        let weights: Vec<u8> = part.iter().flat_map(|(_, z)| z.to_le_bytes()).collect();
        let keys: Vec<PublicKey> = part.iter().map(|(one, _)| keys[one.signer]).collect();
        let signatures: Vec<Signature> = part.iter().map(|(one, _)| one.signature).collect();
        points::weighted_equation_holds(message, &keys, &signatures, &weights)
    });
    outside.iter().chain(bad.iter().map(|(one, _)| one)).map(|one| one.signer).collect()
}

fn weights(keys: &[PublicKey], message: &[u8], shares: &[Candidate]) -> BatchWeights {
    let mut hasher =
        crate::hash::absorb("quorate 2026-01 bls batch weights", [message].into_iter());
    for one in shares {
        hasher.update(&keys[one.signer].to_bytes());
        hasher.update(&one.signature.to_bytes());
    }
    BatchWeights::new(&hasher)
}
