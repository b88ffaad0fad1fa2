//! Threshold BLS12-381 voting: any `t` of `n` members together make the committee's one signature,
//! which is checked against the committee's one key, whoever took part.
//!
//! A dealer ([`deal`]) hides a secret as the value at zero of a random polynomial of degree `t − 1`
//! and gives member `i` its value at `i + 1`. A member signs with its value as with any BLS secret;
//! from `t` such shares Lagrange's interpolation, carried out on the signatures, gives what the
//! hidden secret would have signed (Boldyreva, PKC 2003). Ciphersuite, hashing and encodings are
//! those of [`crate::bls`], so that anybody can check a certificate as an ordinary BLS signature
//! under the group's key.
//!
//! What it assumes, and what it gives:
//!
//! * **Without a dealer** every member is one ([`contribute`]), and what they deal is added up; how
//!   they agree on whose is not this crate's.
//! * **A single dealer is trusted** to keep no secret and to choose them at random. It is not
//!   trusted to be careful: whoever loads a committee checks that its public shares and group key
//!   lie on one polynomial of the threshold's degree ([`threshold_schemes`]), without which shares
//!   that are all good would interpolate to a bad signature.
//! * **A certificate proves that `t` members signed, not which.** Its bitmap names those whose
//!   shares were used, as far as whoever combined them tells the truth: the same signature comes of
//!   every other `t`, and nothing ties the bitmap to it. A bitmap of fewer than `t` is a lie, and
//!   is refused ★.
//! * **When all have signed, nothing is interpolated** (paper 002, §VIII): the shares are ordinary
//!   BLS signatures under the public shares, and their sum is one under the sum of those. A bitmap
//!   of all members says that it is this sum; of fewer, that it is the group's signature. Both are
//!   one check against one known key, and adding costs a fraction of interpolating. A member cannot
//!   choose its public share by the others', which lies on the dealer's polynomial.
//! * **No proofs of possession.** A member's public share is its dealer's doing. That a stranger's
//!   key is none is shown by the polynomial it does not lie on.
//! * **Independent sharings** ★: SBFT's three thresholds are three secrets ([`Sharing`]). Were they
//!   one, the shares for the lowest threshold would be shares for the highest.
//!
//! What is checked when:
//!
//! | point | canonical, on curve | subgroup | identity |
//! | --- | --- | --- | --- |
//! | public share, group key | committee load | committee load | refused |
//! | share alone | each time | each time | refused |
//! | share about to be interpolated | each time | through the result | refused |
//! | aggregate | each time | each time | refused |

pub(crate) mod consistency;
mod contribution;
mod dealer;
mod keys;
mod loader;
mod polynomials;
mod sharing;

pub use contribution::{Commitments, Contribution, add_shares, contribute};
pub use dealer::{Dealing, deal};
pub use loader::threshold_schemes;
pub use sharing::{BySharing, Sharing};

pub(crate) use keys::{SECRET_BYTES, public_shares, read_secrets, write_secrets};
#[cfg(feature = "stub")]
pub(crate) use polynomials::sharing_seed;
pub(crate) use polynomials::{member_shares, polynomials};

use crate::Bitmap;
use crate::bls::points::{self, SHARE_BYTES};
use crate::bls::shares::{self, Candidate};
use crate::error::SignatureError;
use crate::mutants::{self, Mutant};
use crate::options::{Policy, SchemeKind};
use crate::scalar::{Scalar, inverses, product};
use crate::scheme::{
    Aggregate, Certificate, Combined, Scheme, Share, SharePrimitives, check_signer, check_signers,
    combine,
};
use blst::min_sig::{PublicKey, Signature};
use std::fmt;

/// One sharing's keys as affine points, checked to belong together.
pub(crate) struct ThresholdScheme {
    group: PublicKey,
    /// The sum of all public shares: the key of what all members signed.
    all: PublicKey,
    /// Each member's public share.
    shares: Vec<PublicKey>,
    threshold: usize,
}

/// The signature that shares were joined to, and whose shares they were.
pub(crate) struct Joined {
    signers: Bitmap,
    signature: Signature,
}

impl From<Joined> for Certificate {
    fn from(Joined { signers, signature }: Joined) -> Self {
        Self { signers, aggregate: Aggregate(signature.to_bytes().to_vec()) }
    }
}

impl ThresholdScheme {
    fn new(group: PublicKey, shares: Vec<PublicKey>, threshold: usize) -> Self {
        let all = points::sum_keys(&shares).to_public_key();
        Self { group, all, shares, threshold }
    }

    /// The key that a certificate of these signers is checked against.
    fn key(&self, signers: &Bitmap) -> &PublicKey {
        if signers.count() == self.shares.len() { &self.all } else { &self.group }
    }

    /// Reads the signature of a certificate, fit for a pairing.
    fn open(&self, certificate: &Certificate) -> Result<Signature, SignatureError> {
        check_count(&certificate.signers, self.shares.len(), self.threshold)?;
        let signature = points::read_signature(&certificate.aggregate.0)?;
        points::check_subgroup(&signature)?;
        Ok(signature)
    }
}

/// Refuses a bitmap for another committee, or of fewer than the threshold ★, before anything
/// dearer.
pub(crate) fn check_count(
    signers: &Bitmap,
    members: usize,
    threshold: usize,
) -> Result<(), SignatureError> {
    check_signers(signers, members)?;
    let found = signers.count();
    if found < threshold && !mutants::active(Mutant::ThresholdCountsNobody) {
        return Err(SignatureError::TooFewSigners { threshold, found });
    }
    Ok(())
}

/// Lagrange's coefficients at zero for these members, in their order.
///
/// Member `i` stands at `i + 1`, so that none stands at zero, where the secret is; and a bitmap
/// names nobody twice. Those are the two inputs that interpolation must never see.
///
/// `λᵢ = ∏ⱼ xⱼ ÷ (xᵢ · ∏_{j≠i} (xⱼ − xᵢ))`, where as many differences are negative as there are
/// members before `i`. All of them are small numbers, and one inversion serves all: computed anew
/// each time, they cost a twentieth of the multiplication by them.
fn coefficients(signers: &Bitmap) -> Vec<Scalar> {
    let points: Vec<u64> = signers.iter().map(|member| member as u64 + 1).collect();
    let others = |at: usize| points[..at].iter().chain(&points[at + 1..]);
    let denominators: Vec<Scalar> = (0..points.len())
        .map(|at| {
            let own = points[at];
            let differences = others(at).map(|other| other.abs_diff(own));
            product(std::iter::once(own).chain(differences)).negated_if(at % 2 == 1)
        })
        .collect();
    let numerator = product(points.iter().copied());
    inverses(&denominators).into_iter().map(|inverse| inverse.times(numerator)).collect()
}

impl SharePrimitives for ThresholdScheme {
    type Signature<'a> = Signature;
    type Joined = Joined;

    /// Sums of shares say nothing about what they are interpolated to; that is checked itself ★,
    /// and good shares interpolate to a good signature.
    const SUMS_ARE_CHECKED_FIRST: bool = false;

    fn read(&self, share: &Share) -> Option<Signature> {
        points::read_signature(&share.0).ok()
    }

    fn bad_alone(&self, message: &[u8], shares: &[Candidate]) -> Vec<usize> {
        shares::bad_alone(&self.shares, message, shares)
    }

    fn bad_by_weights(&self, message: &[u8], shares: &[Candidate]) -> Vec<usize> {
        shares::bad_by_weights(&self.shares, message, shares)
    }

    fn bad_by_sums(&self, message: &[u8], shares: &[Candidate]) -> Vec<usize> {
        shares::bad_by_sums(&self.shares, message, shares)
    }

    /// Adds up the shares of all members; else interpolates the first of them, as many as the
    /// threshold asks for; `None` if there are too few.
    fn join(&self, _message: &[u8], shares: &[Candidate]) -> Option<Joined> {
        let is_all = shares.len() == self.shares.len();
        let used = if is_all { shares } else { shares.get(..self.threshold)? };
        let signers = Bitmap::from_indices(self.shares.len(), used.iter().map(|one| one.signer));
        let signatures: Vec<Signature> = used.iter().map(|one| one.signature).collect();
        let signature = if is_all {
            points::sum_signatures(&signatures)
        } else {
            points::interpolate(&signatures, &coefficients(&signers))
        };
        Some(Joined { signers, signature })
    }

    fn holds(&self, message: &[u8], joined: &Joined) -> bool {
        points::equation_holds(message, self.key(&joined.signers), &joined.signature)
    }
}

impl Scheme for ThresholdScheme {
    fn kind(&self) -> SchemeKind {
        SchemeKind::BlsThreshold
    }

    fn members(&self) -> usize {
        self.shares.len()
    }

    fn share_bytes(&self) -> usize {
        SHARE_BYTES
    }

    fn aggregate_bytes(&self, _signers: usize) -> usize {
        SHARE_BYTES
    }

    fn verify_share(
        &self,
        message: &[u8],
        signer: usize,
        share: &Share,
    ) -> Result<(), SignatureError> {
        check_signer(signer, self.shares.len())?;
        let signature = points::read_signature(&share.0)?;
        shares::check_alone(&self.shares, message, &Candidate { signer, signature })
    }

    fn combine(
        &self,
        message: &[u8],
        shares: &[(usize, Share)],
        suspects: &Bitmap,
        policy: Policy,
    ) -> Combined {
        combine(self, message, shares, suspects, policy)
    }

    fn verify(&self, message: &[u8], certificate: &Certificate) -> Result<(), SignatureError> {
        let signature = self.open(certificate)?;
        points::check_pairing(message, self.key(&certificate.signers), &signature)
    }

    /// One product of pairings with random weights, as for multi-signatures.
    fn verify_many(&self, items: &[(&[u8], &Certificate)]) -> Result<(), SignatureError> {
        if let [(message, certificate)] = items {
            return self.verify(message, certificate);
        }
        let mut claims = Vec::with_capacity(items.len());
        for (message, certificate) in items {
            let signature = self.open(certificate)?;
            let key = *self.key(&certificate.signers);
            claims.push(points::Claim { message, key, signature });
        }
        points::check_pairings(&claims)
    }

    /// The group's key, whoever signed, unless all did.
    fn signers_key(&self, signers: &Bitmap) -> Option<Vec<u8>> {
        check_count(signers, self.shares.len(), self.threshold).ok()?;
        Some(self.key(signers).serialize().to_vec())
    }
}

impl fmt::Debug for ThresholdScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (members, threshold) = (self.shares.len(), self.threshold);
        write!(f, "ThresholdScheme({threshold} of {members} members)")
    }
}

#[cfg(test)]
pub(crate) mod tests;
