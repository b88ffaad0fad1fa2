//! The dealer: secrets hidden in polynomials, and each member's values of them.

use super::sharing::{BySharing, Sharing};
use crate::bls::{self, SecretKey};
use crate::error::KeyError;
use crate::mutants::{self, Mutant};
use crate::scalar::{Scalar, evaluate};
use crate::voting::{VotingKey, VotingSecret};
use std::fmt;
use zeroize::Zeroizing;

/// What a dealer hands out: to each member its secret, to everybody the rest. Nothing else is kept; the
/// secrets that are shared exist nowhere once [`deal`] has returned.
#[derive(Clone)]
pub struct Dealing {
    /// The key that each sharing's certificates are checked with.
    pub groups: BySharing<VotingKey>,
    /// Each member's shares, in member order. [`VotingSecret::public`] is its entry in the committee.
    pub secrets: Vec<VotingSecret>,
    /// Feldman's commitments to each polynomial, the constant coefficient first (which is the group's
    /// key), as many as the threshold: whoever evaluates them at `i + 1` has member `i`'s public share.
    pub commitments: BySharing<Vec<VotingKey>>,
}

/// Deals all sharings among `members`, each with a threshold and a polynomial of its own, as a secret
/// seed determines them. The seed is as secret as all that is dealt together: whoever has it can sign
/// for the committee. Take 32 bytes of fresh randomness, and forget them.
///
/// # Errors
/// A committee of nobody or too many, and a threshold that is zero or more than there are members.
pub fn deal(
    members: usize,
    thresholds: &BySharing<usize>,
    seed: &[u8; 32],
) -> Result<Dealing, KeyError> {
    check_sizes(members, thresholds)?;
    #[cfg(feature = "stub")]
    if crate::stand_in::active() {
        return Ok(crate::stand_in::deal(members, thresholds, seed));
    }
    Ok(deal_from(&polynomials(members, thresholds, seed), members))
}

/// What the polynomials come to for each member.
pub(super) fn deal_from(polynomials: &Polynomials, members: usize) -> Dealing {
    let commitments = BySharing::from_fn(|sharing| -> Vec<VotingKey> {
        let coefficients = polynomials.get(sharing).iter();
        coefficients.map(|one| public(&secret(*one))).collect()
    });
    let shares = |member: usize| {
        let point = Scalar::from(member as u64 + 1);
        BySharing::from_fn(|sharing| secret(evaluate(polynomials.get(sharing), point)))
    };
    Dealing {
        groups: BySharing::from_fn(|sharing| commitments.get(sharing)[0].clone()),
        secrets: (0..members).map(|member| VotingSecret::from_shares(shares(member))).collect(),
        commitments,
    }
}

/// Refuses sizes and thresholds that no committee has.
pub(super) fn check_sizes(members: usize, thresholds: &BySharing<usize>) -> Result<(), KeyError> {
    check_size(members)?;
    Sharing::ALL.iter().try_for_each(|one| check_threshold(*thresholds.get(*one), members))
}

/// Each sharing's own, its coefficients in order, the constant one first.
pub(super) type Polynomials = BySharing<Zeroizing<Vec<Scalar>>>;

/// The polynomials that a seed determines.
pub(super) fn polynomials(
    members: usize,
    thresholds: &BySharing<usize>,
    seed: &[u8; 32],
) -> Polynomials {
    BySharing::from_fn(|sharing| {
        let seed = sharing_seed(seed, sharing);
        polynomial(&seed, members, *thresholds.get(sharing))
    })
}

/// What the only member of a committee of one is dealt.
pub(crate) fn deal_to_one(seed: &[u8; 32]) -> VotingSecret {
    let dealing = deal(1, &BySharing::from_fn(|_| 1), seed).expect("one of one is a threshold");
    dealing.secrets.into_iter().next().expect("one member")
}

/// Refuses a committee of nobody, or of more than a bitmap can name.
pub(super) fn check_size(members: usize) -> Result<(), KeyError> {
    match members {
        0 => Err(KeyError::NoMembers),
        1..=0xffff => Ok(()),
        _ => Err(KeyError::TooManyMembers { members }),
    }
}

/// Refuses a threshold that nobody need meet or that nobody can.
pub(super) fn check_threshold(threshold: usize, members: usize) -> Result<(), KeyError> {
    if (1..=members).contains(&threshold) {
        return Ok(());
    }
    Err(KeyError::Threshold { threshold, members })
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

/// As many coefficients as the threshold. Size and threshold enter the derivation: polynomials of two
/// thresholds that agreed in their first coefficients would give away the others to whoever holds a
/// share of both.
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

fn public(secret: &SecretKey) -> VotingKey {
    VotingKey(secret.sk_to_pk().to_bytes().to_vec())
}

impl fmt::Debug for Dealing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dealing({} members, {:?})", self.secrets.len(), self.groups)
    }
}
