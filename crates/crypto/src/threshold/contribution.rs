//! One of several dealers, none of whom is trusted, and what their dealings come to together.
//!
//! Each deals a secret of its own as [`deal`](super::deal) does, and publishes Feldman's
//! commitments to its polynomials (FOCS 1987). Whoever gets a share compares it with them. The
//! committee's secret is the sum of the dealers' secrets, a member's share the sum of its shares,
//! and its public share follows from the sum of the commitments: all without anybody holding the
//! secret. Who counts among the dealers has to be agreed on elsewhere.

use super::dealer::{check_sizes, deal_from};
use super::polynomials::{Polynomials, polynomials, secret};
use super::sharing::{BySharing, Sharing};
use crate::bls::points::{self, KEY_BYTES};
use crate::error::KeyError;
use crate::hash::hash_parts;
use crate::mutants::{self, Mutant};
use crate::options::SchemeKind;
use crate::scalar::Scalar;
use crate::voting::VotingSecret;
use crate::voting_key::{PossessionProof, VotingKey};
use blst::min_sig::PublicKey;
use std::fmt;
use zeroize::Zeroizing;

/// Product of one dealer: shares for each member, and for everybody the commitments that they are
/// compared with.
#[derive(Clone)]
pub struct Contribution {
    /// Each member's shares, in member order: for that member alone.
    pub shares: Vec<VotingSecret>,
    /// Commitments to each polynomial, the constant coefficient first, as many as the threshold.
    pub commitments: BySharing<Vec<VotingKey>>,
    /// Proofs that the dealer holds the constant coefficients.
    pub possession: BySharing<PossessionProof>,
}

/// A dealer's part in the keys of `members`, as a secret seed determines it. `context` says which
/// generation and which dealer: a proof of possession is good in no other.
///
/// # Errors
/// A committee of nobody or too many, and a threshold that is zero or more than there are members.
pub fn contribute(
    members: usize,
    thresholds: &BySharing<usize>,
    seed: &[u8; 32],
    context: &[u8],
) -> Result<Contribution, KeyError> {
    check_sizes(members, thresholds)?;
    let polynomials = polynomials(members, thresholds, seed);
    let dealing = deal_from(&polynomials, members);
    Ok(Contribution {
        possession: prove(&polynomials, &dealing.groups, context),
        shares: dealing.secrets,
        commitments: dealing.commitments,
    })
}

fn prove(
    polynomials: &Polynomials,
    publics: &BySharing<VotingKey>,
    context: &[u8],
) -> BySharing<PossessionProof> {
    BySharing::from_fn(|sharing| {
        let constant = secret(polynomials.get(sharing)[0]);
        let statement = statement(context, sharing, publics.get(sharing));
        PossessionProof(points::prove_dealing(&constant, &statement))
    })
}

/// Statement that a proof of possession signs: generation, dealer, sharing and key ★.
fn statement(context: &[u8], sharing: Sharing, public: &VotingKey) -> [u8; 32] {
    hash_parts("quorate v1 dealing possession", &[context, &[sharing as u8], &public.0]).0
}

/// One dealer's commitments, or the sum of several's: points of the subgroup, as many as the
/// thresholds.
#[derive(Clone)]
pub struct Commitments(BySharing<Vec<PublicKey>>);

impl Commitments {
    /// Reads what a dealer published. Every point is canonical, in the subgroup and not the
    /// identity, there are as many as each threshold, and the dealer holds the constant
    /// coefficients ★.
    ///
    /// # Errors
    /// The first thing that is wrong, with its sharing.
    pub fn read(
        written: &BySharing<Vec<VotingKey>>,
        possession: &BySharing<PossessionProof>,
        thresholds: &BySharing<usize>,
        context: &[u8],
    ) -> Result<Self, KeyError> {
        let read = |sharing| {
            let keys = written.get(sharing);
            let (expected, found) = (*thresholds.get(sharing), keys.len());
            if found != expected || found == 0 {
                return Err(KeyError::Coefficients { expected, found });
            }
            let points = keys.iter().map(read_point).collect::<Result<Vec<_>, _>>()?;
            let statement = statement(context, sharing, &keys[0]);
            if !mutants::active(Mutant::DkgNoPossession) {
                points::check_dealing(&statement, &points[0], &possession.get(sharing).0)?;
            }
            Ok(points)
        };
        BySharing::try_from_fn(|sharing| {
            read(sharing).map_err(|cause| KeyError::Sharing { sharing, cause: Box::new(cause) })
        })
        .map(Self)
    }

    /// The sum of several dealers', at least one, of the same thresholds.
    ///
    /// # Panics
    /// When there are none, or their thresholds differ.
    #[must_use]
    pub fn sum(parts: &[&Self]) -> Self {
        Self(BySharing::from_fn(|sharing| {
            let coefficients = parts[0].0.get(sharing).len();
            let at = |index: usize| -> Vec<PublicKey> {
                parts.iter().map(|part| part.0.get(sharing)[index]).collect()
            };
            (0..coefficients).map(|index| points::sum_keys(&at(index)).to_public_key()).collect()
        }))
    }

    /// The key that each sharing's certificates are checked with, if this is all that was dealt.
    #[must_use]
    pub fn groups(&self) -> BySharing<VotingKey> {
        BySharing::from_fn(|sharing| write(&self.0.get(sharing)[0]))
    }

    /// A member's public shares: what [`VotingSecret::public`] of its shares is, if they are good.
    #[must_use]
    pub fn public(&self, member: usize) -> VotingKey {
        let mut bytes = Vec::with_capacity(Sharing::ALL.len() * KEY_BYTES);
        for sharing in Sharing::ALL {
            bytes.extend_from_slice(&write(&evaluate(self.0.get(sharing), member)).0);
        }
        VotingKey(bytes)
    }

    /// Returns `true` if these are the shares that the dealer committed itself to give this member
    /// ★.
    #[must_use]
    pub fn holds(&self, member: usize, shares: &VotingSecret) -> bool {
        shares.public() == self.public(member) || mutants::active(Mutant::DkgNoShareCheck)
    }
}

/// Adds up what several dealers gave a member: its share of the sum of their secrets.
///
/// # Errors
/// [`KeyError::Secret`] when they add up to zero, or are not shares of threshold keys.
pub fn add_shares(parts: &[VotingSecret]) -> Result<VotingSecret, KeyError> {
    let sum = BySharing::try_from_fn(|sharing| {
        let mut sum = Zeroizing::new(Scalar::ZERO);
        for part in parts {
            let share = part.shares().ok_or(KeyError::Secret)?.get(sharing);
            let bytes = Zeroizing::new(share.to_bytes());
            *sum = sum.plus(Scalar::from_be_bytes(&bytes));
        }
        crate::bls::read_secret(&Zeroizing::new(sum.to_be_bytes()))
    })?;
    Ok(VotingSecret::from_shares(sum))
}

fn read_point(key: &VotingKey) -> Result<PublicKey, KeyError> {
    points::check_length(SchemeKind::BlsThreshold, "commitment", KEY_BYTES, &key.0)?;
    points::read_point(&key.0)
}

fn write(point: &PublicKey) -> VotingKey {
    VotingKey(point.to_bytes().to_vec())
}

/// The polynomial's value at `member + 1`, in the exponent.
fn evaluate(coefficients: &[PublicKey], member: usize) -> PublicKey {
    let place = Scalar::from(member as u64 + 1);
    let mut power = Scalar::one();
    let mut powers = Vec::with_capacity(32 * coefficients.len());
    for _ in coefficients {
        powers.extend_from_slice(&power.to_le_bytes());
        power = power.times(place);
    }
    points::weighted_sum(coefficients, &powers)
}

impl fmt::Debug for Contribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Contribution({} members, {:?})", self.shares.len(), self.commitments)
    }
}

impl fmt::Debug for Commitments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Commitments({:?})", self.groups())
    }
}

#[cfg(test)]
mod tests;
