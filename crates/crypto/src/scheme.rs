//! Voting of a committee: shares, certificates, and the trait that makes one from the others.

use crate::Bitmap;
use crate::error::SignatureError;
use crate::mutants::{self, Mutant};
use crate::options::{Policy, SchemeKind};
use borsh::{BorshDeserialize, BorshSerialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A committee's voting keys, in member order, and what can be checked with them.
///
/// Messages are domain-separated by the caller. Nothing here knows thresholds: a caller looks at
/// [`Certificate::signers`] before it asks for the far dearer [`Scheme::verify`].
pub trait Scheme: Send + Sync + fmt::Debug {
    /// The kind of signatures that the members vote with.
    fn kind(&self) -> SchemeKind;

    /// Number of members of the committee.
    fn members(&self) -> usize;

    /// Bytes of a well-formed share.
    fn share_bytes(&self) -> usize;

    /// Bytes of the aggregate of a certificate with that many signers.
    fn aggregate_bytes(&self, signers: usize) -> usize;

    /// Checks one member's share alone.
    fn verify_share(
        &self,
        message: &[u8],
        signer: usize,
        share: &Share,
    ) -> Result<(), SignatureError>;

    /// Makes a certificate from shares over one message, leaving out the bad ones. A threshold
    /// scheme makes none of fewer good shares than its threshold, and uses no more of them.
    ///
    /// The certificate passes [`Scheme::verify`]. It proves the *sum* of its shares: whether each
    /// was valid alone is not said and need not be so, except for `suspects` (and under
    /// [`Policy::Each`] and [`Policy::Batch`] for all), which are checked before they join. Of
    /// several shares by one signer only the first counts.
    ///
    /// # Panics
    /// If a signer is not below [`Scheme::members`]: shares are attributed before they get here.
    fn combine(
        &self,
        message: &[u8],
        shares: &[(usize, Share)],
        suspects: &Bitmap,
        policy: Policy,
    ) -> Combined;

    /// Checks a certificate: its bitmap first, then its length, then its signature.
    fn verify(&self, message: &[u8], certificate: &Certificate) -> Result<(), SignatureError>;

    /// Checks certificates over different messages, such as those of a timeout certificate, all at
    /// once. Succeeds exactly when [`Scheme::verify`] would for each; an error does not say which
    /// failed. Nothing to check is no error.
    fn verify_many(&self, items: &[(&[u8], &Certificate)]) -> Result<(), SignatureError> {
        items.iter().try_for_each(|(message, certificate)| self.verify(message, certificate))
    }

    /// The one key that a certificate of these signers is checked against, encoded; `None` for a
    /// scheme that has no such key, and for signers of another committee.
    ///
    /// Computed as [`Scheme::verify`] computes it, anew each time: measurements call it to tell the
    /// key's part of a check from the pairing's.
    fn signers_key(&self, signers: &Bitmap) -> Option<Vec<u8>> {
        let _ = signers;
        None
    }
}

/// One member's signature, as the scheme encodes it: 64 bytes for Ed25519, 48 for BLS of either
/// kind.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Share(pub Vec<u8>);

/// Several members' signatures combined: 64 bytes a signer, in signer order, for Ed25519; 48 bytes
/// in all for BLS.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Aggregate(pub Vec<u8>);

/// Statement's signers, and their combined signature.
///
/// Two certificates for one statement can differ in both; whatever identifies a certificate must be
/// the statement.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, BorshSerialize, BorshDeserialize)]
pub struct Certificate {
    /// The members that signed. Proven by the signature, except for threshold schemes: theirs
    /// proves that so many signed, and this says who did as far as whoever made it tells the truth.
    pub signers: Bitmap,
    /// Signatures of the signers, combined.
    pub aggregate: Aggregate,
}

/// Result of combining shares: a certificate of the good ones, and the signers of the bad.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Combined {
    /// The certificate over all shares but the bad ones; `None` when no good one is left, or too
    /// few for a threshold scheme.
    ///
    /// Also `None` in the freak case that the good shares' keys cancel out, which takes a
    /// committee's members in collusion and nobody else among the signers.
    pub certificate: Option<Certificate>,
    /// Signers whose shares are bad, ascending. Each was refused alone, so blaming them is safe.
    pub bad: Vec<usize>,
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Share({})", abbreviate(&self.0))
    }
}

impl fmt::Debug for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Aggregate({})", abbreviate(&self.0))
    }
}

/// The first four bytes, and how many there are.
fn abbreviate(bytes: &[u8]) -> String {
    format!("{}, {} bytes", hex::encode(&bytes[..bytes.len().min(4)]), bytes.len())
}

/// Refuses a signer outside the committee.
pub(crate) fn check_signer(signer: usize, members: usize) -> Result<(), SignatureError> {
    if signer < members { Ok(()) } else { Err(SignatureError::Signer { signer, members }) }
}

/// Refuses a bitmap for another committee or of nobody.
pub(crate) fn check_signers(signers: &Bitmap, members: usize) -> Result<(), SignatureError> {
    if signers.members() != members {
        return Err(SignatureError::Committee { members, found: signers.members() });
    }
    if signers.is_empty() && !mutants::active(Mutant::AcceptNoSigners) {
        return Err(SignatureError::NoSigners);
    }
    Ok(())
}

/// Share that could be read, with the member that it is attributed to.
#[derive(Clone, Copy)]
pub(crate) struct Candidate<T> {
    pub(crate) signer: usize,
    pub(crate) signature: T,
}

impl<T: Copy> Candidate<T> {
    /// Signers of those whose share is not good.
    pub(crate) fn bad_signers(shares: &[Self], is_good: impl Fn(usize, T) -> bool) -> Vec<usize> {
        let bad = shares.iter().filter(|one| !is_good(one.signer, one.signature));
        bad.map(|one| one.signer).collect()
    }
}

/// Primitives of a scheme that [`combine`] puts together.
///
/// A search returns signers whose shares are invalid. Each of the dearer searches falls back on the
/// one before it, for schemes that have no other.
pub(crate) trait SharePrimitives: Scheme {
    /// Share as it was read.
    type Signature<'a>: Copy;
    /// Result of joining shares, which makes the certificate.
    type Joined: Into<Certificate>;

    /// Set unless [`Policy::Aggregate`] checks what shares are joined to
    /// ([`SharePrimitives::holds`]), in place of the shares.
    const SUMS_ARE_CHECKED_FIRST: bool = true;

    /// Reads a share; `None` when its bytes encode none.
    fn read<'a>(&self, share: &'a Share) -> Option<Self::Signature<'a>>;

    /// Signers whose shares are invalid, each checked alone.
    fn bad_alone(&self, message: &[u8], shares: &[Candidate<Self::Signature<'_>>]) -> Vec<usize>;

    /// Signers whose shares are invalid, found with random weights.
    fn bad_by_weights(
        &self,
        message: &[u8],
        shares: &[Candidate<Self::Signature<'_>>],
    ) -> Vec<usize> {
        self.bad_alone(message, shares)
    }

    /// Signers whose shares are invalid, found by sums. The sum of the others is valid, but two of
    /// them can be wrong by opposite errors.
    fn bad_by_sums(&self, message: &[u8], shares: &[Candidate<Self::Signature<'_>>]) -> Vec<usize> {
        self.bad_by_weights(message, shares)
    }

    /// Joins shares, in signer order; `None` if they are too few, or nothing comes of them.
    fn join(
        &self,
        message: &[u8],
        shares: &[Candidate<Self::Signature<'_>>],
    ) -> Option<Self::Joined>;

    /// Checks what shares were joined to under [`Policy::Aggregate`], where that does not follow
    /// from their sums.
    fn holds(&self, _message: &[u8], _joined: &Self::Joined) -> bool {
        true
    }
}

/// Combines shares as [`Scheme::combine`] promises: suspects are checked alone, the others under
/// `policy`, and the good ones joined.
///
/// While what they are joined to is bad, shares are left out: first those that sums give away,
/// which is cheap and finds whoever lies alone; then those that random weights do, which no two
/// errors cancel. What is left after that is good, share by share.
pub(crate) fn combine<S: SharePrimitives>(
    scheme: &S,
    message: &[u8],
    shares: &[(usize, Share)],
    suspects: &Bitmap,
    policy: Policy,
) -> Combined {
    let (mut candidates, mut bad) = read(scheme, shares);
    let (suspected, others): (Vec<_>, Vec<_>) =
        candidates.iter().partition(|one| suspects.contains(one.signer));
    bad.extend(invalid(scheme, message, &suspected, Policy::Each));
    if policy != Policy::Aggregate || S::SUMS_ARE_CHECKED_FIRST {
        bad.extend(invalid(scheme, message, &others, policy));
    }
    candidates.retain(|one| !bad.contains(&one.signer));
    let mut joined = scheme.join(message, &candidates);
    for search in [Policy::Aggregate, Policy::Batch] {
        let holds = |one: &S::Joined| scheme.holds(message, one);
        if policy != Policy::Aggregate || joined.as_ref().is_none_or(holds) {
            break;
        }
        bad.extend(invalid(scheme, message, &candidates, search));
        candidates.retain(|one| !bad.contains(&one.signer));
        joined = scheme.join(message, &candidates);
    }
    Combined { certificate: joined.map(Into::into), bad: bad.into_iter().collect() }
}

/// The first share of each signer, in signer order, and the signers whose shares cannot be read.
fn read<'a, S: SharePrimitives>(
    scheme: &S,
    shares: &'a [(usize, Share)],
) -> (Vec<Candidate<S::Signature<'a>>>, BTreeSet<usize>) {
    let mut candidates = Vec::with_capacity(shares.len());
    let mut bad = BTreeSet::new();
    for (signer, share) in distinct(shares, scheme.members()) {
        match scheme.read(share) {
            Some(signature) => candidates.push(Candidate { signer, signature }),
            None => drop(bad.insert(signer)),
        }
    }
    (candidates, bad)
}

/// Signers whose shares are found invalid, searched for as the policy says (★).
fn invalid<S: SharePrimitives>(
    scheme: &S,
    message: &[u8],
    shares: &[Candidate<S::Signature<'_>>],
    policy: Policy,
) -> Vec<usize> {
    if mutants::active(Mutant::TrustShares) {
        return Vec::new();
    }
    match policy {
        Policy::Each => scheme.bad_alone(message, shares),
        Policy::Batch => scheme.bad_by_weights(message, shares),
        Policy::Aggregate => scheme.bad_by_sums(message, shares),
    }
}

/// The first share of each signer, in signer order.
fn distinct(shares: &[(usize, Share)], members: usize) -> Vec<(usize, &Share)> {
    let mut first = BTreeMap::new();
    for (signer, share) in shares {
        assert!(*signer < members, "a share came attributed to {signer}, of {members} members");
        first.entry(*signer).or_insert(share);
    }
    first.into_iter().collect()
}

#[cfg(test)]
pub(crate) mod tests;
