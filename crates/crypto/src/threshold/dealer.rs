//! The dealer: secrets hidden in polynomials, and each member's values of them.

use super::polynomials::{Polynomials, member_shares, polynomials, secret};
use super::sharing::{BySharing, Sharing};
use crate::bls::SecretKey;
use crate::error::KeyError;
use crate::voting::VotingSecret;
use crate::voting_key::VotingKey;
use std::fmt;

/// Output of a dealer: to each member its secret, to everybody the rest. Nothing else is kept; the
/// secrets that are shared exist nowhere once [`deal`] has returned.
#[derive(Clone)]
pub struct Dealing {
    /// The key that each sharing's certificates are checked with.
    pub groups: BySharing<VotingKey>,
    /// Each member's shares, in member order. [`VotingSecret::public`] is its entry in the
    /// committee.
    pub secrets: Vec<VotingSecret>,
    /// Feldman's commitments to each polynomial, the constant coefficient first (which is the
    /// group's key), as many as the threshold: whoever evaluates them at `i + 1` has member `i`'s
    /// public share.
    pub commitments: BySharing<Vec<VotingKey>>,
}

/// Deals all sharings among `members`, each with a threshold and a polynomial of its own, as a
/// secret seed determines them. The seed is as secret as all that is dealt together: whoever has it
/// can sign for the committee. Take 32 bytes of fresh randomness, and forget them.
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
        return Ok(deal_stand_ins(members, thresholds, seed));
    }
    Ok(deal_from(&polynomials(members, thresholds, seed), members))
}

/// Deals stand-ins, without polynomials: whoever combines knows everybody's shares anyway.
#[cfg(feature = "stub")]
fn deal_stand_ins(members: usize, thresholds: &BySharing<usize>, seed: &[u8; 32]) -> Dealing {
    use crate::stand_in::{Shares, bls_key};
    let groups = BySharing::from_fn(|sharing| {
        VotingKey(bls_key(&super::sharing_seed(seed, sharing)).to_vec())
    });
    let member = |member| VotingSecret::from_stand_ins(Shares::deal(seed, member));
    let commitments =
        |sharing| vec![VotingKey::clone(groups.get(sharing)); *thresholds.get(sharing)];
    Dealing {
        commitments: BySharing::from_fn(commitments),
        secrets: (0..members).map(member).collect(),
        groups,
    }
}

/// Evaluates the polynomials for each member.
pub(super) fn deal_from(polynomials: &Polynomials, members: usize) -> Dealing {
    let commitments = BySharing::from_fn(|sharing| -> Vec<VotingKey> {
        let coefficients = polynomials.get(sharing).iter();
        coefficients.map(|one| public(&secret(*one))).collect()
    });
    let shares = |member| member_shares(polynomials, member);
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

fn public(secret: &SecretKey) -> VotingKey {
    VotingKey(secret.sk_to_pk().to_bytes().to_vec())
}

impl fmt::Debug for Dealing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dealing({} members, {:?})", self.secrets.len(), self.groups)
    }
}
