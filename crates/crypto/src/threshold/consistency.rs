//! Consistency of what a dealer published: one polynomial through the group's key and all shares.

use super::dealer::{check_size, check_threshold};
use crate::bls::points::{self, KEY_BYTES};
use crate::error::KeyError;
use crate::mutants::{self, Mutant};
use crate::options::SchemeKind;
use crate::scalar::{Scalar, evaluate, inverses, product};
use blst::min_sig::PublicKey;
use std::collections::BTreeMap;

/// Reads and checks one sharing's public shares, of 96 bytes each and in member order, and its
/// group's key: each a point of the subgroup and not the identity, no two the same, and all on one
/// polynomial of degree `threshold − 1` whose value at zero is the group's ★.
///
/// Whatever `threshold` of their secrets sign then interpolates to the group's signature. Gives the
/// group's point and the members'.
///
/// # Errors
/// The first thing that is wrong.
pub(super) fn read_sharing(
    group: &[u8],
    publics: &[&[u8]],
    threshold: usize,
) -> Result<(PublicKey, Vec<PublicKey>), KeyError> {
    check_size(publics.len())?;
    check_threshold(threshold, publics.len())?;
    let group_point = read(group)?;
    let mut points = Vec::with_capacity(publics.len());
    for (member, bytes) in publics.iter().enumerate() {
        let in_member = |cause| KeyError::Member { member, cause: Box::new(cause) };
        points.push(read(bytes).map_err(in_member)?);
    }
    refuse_repeats(group, publics, threshold)?;
    let belong = on_one_polynomial(&group_point, &points, threshold);
    if !belong && !mutants::active(Mutant::TrustDealer) {
        return Err(KeyError::Polynomial { threshold });
    }
    Ok((group_point, points))
}

fn read(bytes: &[u8]) -> Result<PublicKey, KeyError> {
    let kind = SchemeKind::BlsThreshold;
    points::check_length(kind, "public share", KEY_BYTES, bytes)?;
    points::read_point(bytes)
}

/// A member whose share is the group's own secret signs alone, and so, for a polynomial that is a
/// constant, does everybody; two members with one share are one. With a threshold of one that is
/// how it must be, and the polynomial's check asks for it.
fn refuse_repeats(group: &[u8], publics: &[&[u8]], threshold: usize) -> Result<(), KeyError> {
    if threshold == 1 {
        return Ok(());
    }
    let mut seen = BTreeMap::new();
    for (second, key) in publics.iter().enumerate() {
        if *key == group {
            return Err(KeyError::GroupSecret { member: second });
        }
        if let Some(first) = seen.insert(key, second) {
            return Err(KeyError::Duplicate { first, second });
        }
    }
    Ok(())
}

/// Returns `true` if the points, the group's at zero and member `i`'s at `i + 1`, lie on one
/// polynomial of degree `threshold − 1`: SCRAPE's test (Cascudo and David, ACNS 2017, §2.1).
///
/// For `m` places `xᵢ` and weights `vᵢ = ∏_{j≠i} (xᵢ − xⱼ)⁻¹`, the sum `Σ vᵢ·q(xᵢ)·Pᵢ` is zero for
/// every polynomial `q` of degree `m − threshold − 1` exactly if they do. With a random `q` any
/// other points pass with a chance of about 2⁻²⁵⁵. It is drawn by hashing the points (Fiat–Shamir),
/// so that whoever chose them could not know it.
fn on_one_polynomial(group: &PublicKey, publics: &[PublicKey], threshold: usize) -> bool {
    let points: Vec<PublicKey> = std::iter::once(*group).chain(publics.iter().copied()).collect();
    let random = random_polynomial(&points, threshold);
    let scalars: Vec<u8> = dual_weights(points.len())
        .into_iter()
        .zip(0..)
        .flat_map(|(weight, place)| {
            weight.times(evaluate(&random, Scalar::from(place))).to_le_bytes()
        })
        .collect();
    points::sum_to_nothing(&points, &scalars)
}

/// `∏_{j≠i} (i − j)⁻¹` over the places `0..count`: the inverses of `i!·(count − 1 − i)!`, negative
/// where an odd number of places follows.
fn dual_weights(count: usize) -> Vec<Scalar> {
    let factorials: Vec<Scalar> = (0..count)
        .scan(Scalar::one(), |factorial, number| {
            *factorial = factorial.times(product(std::iter::once(number.max(1) as u64)));
            Some(*factorial)
        })
        .collect();
    let denominators: Vec<Scalar> = (0..count)
        .map(|place| {
            let after = count - 1 - place;
            factorials[place].times(factorials[after]).negated_if(after % 2 == 1)
        })
        .collect();
    inverses(&denominators)
}

/// Random polynomial with as many coefficients as there are points beyond the threshold.
fn random_polynomial(points: &[PublicKey], threshold: usize) -> Vec<Scalar> {
    let mut hasher = blake3::Hasher::new_derive_key("quorate 2026-11 threshold consistency");
    hasher.update(&(threshold as u64).to_le_bytes());
    for point in points {
        hasher.update(&point.to_bytes());
    }
    let mut stream = hasher.finalize_xof();
    let mut next = || {
        let mut wide = [0; 64];
        stream.fill(&mut wide);
        Scalar::from_wide(&wide)
    };
    (threshold..points.len()).map(|_| next()).collect()
}

#[cfg(test)]
pub(crate) mod tests;
