//! Polynomials that hide each sharing's secret, as a seed determines them.

use super::sharing::{BySharing, Sharing};
use crate::bls::{self, SecretKey};
use crate::mutants::{self, Mutant};
use crate::scalar::{Scalar, evaluate};
use zeroize::Zeroizing;

/// Each sharing's own, its coefficients in order, the constant one first.
pub(crate) type Polynomials = BySharing<Zeroizing<Vec<Scalar>>>;

/// The polynomials that a seed determines.
pub(crate) fn polynomials(
    members: usize,
    thresholds: &BySharing<usize>,
    seed: &[u8; 32],
) -> Polynomials {
    BySharing::from_fn(|sharing| {
        let seed = sharing_seed(seed, sharing);
        polynomial(&seed, members, *thresholds.get(sharing))
    })
}

/// A member's values of the polynomials: its secret shares.
pub(crate) fn member_shares(polynomials: &Polynomials, member: usize) -> BySharing<SecretKey> {
    let point = Scalar::from(member as u64 + 1);
    BySharing::from_fn(|sharing| secret(evaluate(polynomials.get(sharing), point)))
}

/// Each sharing's own seed, derived under its own name ★: nothing about one is learnt from another.
pub(crate) fn sharing_seed(seed: &[u8; 32], sharing: Sharing) -> Zeroizing<[u8; 32]> {
    let sharing =
        if mutants::active(Mutant::SharingsShareASecret) { Sharing::Slow } else { sharing };
    Zeroizing::new(blake3::derive_key(
        match sharing {
            Sharing::Fast => "quorate 2026-11 threshold sharing fast",
            Sharing::Slow => "quorate 2026-11 threshold sharing slow",
            Sharing::Execution => "quorate 2026-11 threshold sharing execution",
        },
        seed,
    ))
}

/// Polynomial with as many coefficients as the threshold. Size and threshold enter the derivation:
/// polynomials of two thresholds that agreed in their first coefficients would give away the others
/// to whoever holds a share of both.
fn polynomial(seed: &[u8; 32], members: usize, threshold: usize) -> Zeroizing<Vec<Scalar>> {
    let mut hasher = blake3::Hasher::new_derive_key("quorate 2026-11 threshold polynomial");
    hasher.update(seed);
    hasher.update(&(members as u64).to_le_bytes());
    hasher.update(&(threshold as u64).to_le_bytes());
    let mut stream = hasher.finalize_xof();
    let mut wide = Zeroizing::new([0; 64]);
    let mut next = || {
        stream.fill(&mut wide[..]);
        Scalar::from_wide(&wide)
    };
    Zeroizing::new((0..threshold).map(|_| next()).collect())
}

pub(super) fn secret(scalar: Scalar) -> SecretKey {
    let bytes = Zeroizing::new(scalar.to_be_bytes());
    bls::read_secret(&bytes).expect("a hash that is zero modulo the order does not come up")
}
