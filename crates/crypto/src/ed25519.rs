//! Ed25519 voting: a certificate is the signers' signatures, one after the other.

pub(crate) mod batch;

use crate::error::{KeyError, SignatureError};
use crate::identity::{IdentityKey, PreparedIdentity, Signature};
use crate::options::{Policy, SchemeKind};
use crate::scheme::{
    Aggregate, Candidate, Certificate, Combined, Scheme, Share, SharePrimitives, check_signer,
    check_signers, combine,
};
use crate::{Bitmap, PossessionProof, VotingKey};
use curve25519_dalek::edwards::EdwardsPoint;
use std::fmt;

const KEY_BYTES: usize = 32;
const SIGNATURE_BYTES: usize = 64;

/// A committee's Ed25519 voting keys, decompressed.
pub(crate) struct Ed25519Scheme {
    members: Vec<Member>,
    /// The same keys, for batches.
    keys: batch::TabulatedKeys,
}

struct Member {
    bytes: [u8; KEY_BYTES],
    prepared: PreparedIdentity,
}

/// A signature, with what it is said to be of whom.
struct Signed<'a> {
    message: &'a [u8],
    signer: usize,
    signature: &'a [u8],
}

impl Ed25519Scheme {
    /// The scheme for these keys, each of which must be a canonical point of the prime-order
    /// subgroup.
    ///
    /// Signatures are judged by ZIP-215, which would allow other keys too. A committee's own keys
    /// are held to more, because an honest member's key always satisfies it.
    pub(crate) fn new(keys: &[(VotingKey, PossessionProof)]) -> Result<Self, KeyError> {
        let mut members = Vec::with_capacity(keys.len());
        let mut points = Vec::with_capacity(keys.len());
        for (member, (key, proof)) in keys.iter().enumerate() {
            let (loaded, point) = load_member(key, proof)
                .map_err(|cause| KeyError::Member { member, cause: Box::new(cause) })?;
            members.push(loaded);
            points.push(point);
        }
        let keys = batch::TabulatedKeys::new(points.into_iter());
        Ok(Self { members, keys })
    }

    /// One batch check of all these signatures.
    fn check_batch(&self, signed: &[Signed<'_>]) -> Result<(), SignatureError> {
        let mut items = Vec::with_capacity(signed.len());
        for one in signed {
            let member = &self.members[one.signer];
            let signature = signature_bytes(one.signature)?;
            let item = batch::Item::parse(&member.bytes, one.message, &signature)?;
            items.push((one.signer, item));
        }
        self.keys.check(&items)
    }

    /// The certificate's signatures, after every check that needs no curve arithmetic.
    fn open<'a>(
        &self,
        message: &'a [u8],
        certificate: &'a Certificate,
    ) -> Result<Vec<Signed<'a>>, SignatureError> {
        let Certificate { signers, aggregate } = certificate;
        check_signers(signers, self.members.len())?;
        let (expected, found) = (signers.count() * SIGNATURE_BYTES, aggregate.0.len());
        if expected != found {
            return Err(SignatureError::Length { expected, found });
        }
        let signatures = aggregate.0.chunks_exact(SIGNATURE_BYTES);
        let pairs = signers.iter().zip(signatures);
        Ok(pairs.map(|(signer, signature)| Signed { message, signer, signature }).collect())
    }
}

impl SharePrimitives for Ed25519Scheme {
    type Signature<'a> = &'a Share;
    type Joined = Certificate;

    fn read<'a>(&self, share: &'a Share) -> Option<&'a Share> {
        Some(share)
    }

    fn bad_alone(&self, message: &[u8], shares: &[Candidate<&Share>]) -> Vec<usize> {
        let is_good = |signer, share: &Share| self.verify_share(message, signer, share).is_ok();
        Candidate::bad_signers(shares, is_good)
    }

    /// Checks one batch, and each share alone if that is refused.
    fn bad_by_weights(&self, message: &[u8], shares: &[Candidate<&Share>]) -> Vec<usize> {
        if shares.is_empty() {
            return Vec::new();
        }
        let batch: Vec<Signed<'_>> = shares
            .iter()
            .map(|one| Signed { message, signer: one.signer, signature: &one.signature.0 })
            .collect();
        match self.check_batch(&batch) {
            Ok(()) => Vec::new(),
            Err(_) => self.bad_alone(message, shares),
        }
    }

    /// Puts the signatures one after the other.
    fn join(&self, _message: &[u8], shares: &[Candidate<&Share>]) -> Option<Certificate> {
        let signers = Bitmap::from_indices(self.members.len(), shares.iter().map(|one| one.signer));
        let bytes = || shares.iter().flat_map(|one| one.signature.0.iter().copied()).collect();
        (!shares.is_empty()).then(|| Certificate { signers, aggregate: Aggregate(bytes()) })
    }
}

impl Scheme for Ed25519Scheme {
    fn kind(&self) -> SchemeKind {
        SchemeKind::Ed25519
    }

    fn members(&self) -> usize {
        self.members.len()
    }

    fn share_bytes(&self) -> usize {
        SIGNATURE_BYTES
    }

    fn aggregate_bytes(&self, signers: usize) -> usize {
        signers * SIGNATURE_BYTES
    }

    fn verify_share(
        &self,
        message: &[u8],
        signer: usize,
        share: &Share,
    ) -> Result<(), SignatureError> {
        check_signer(signer, self.members.len())?;
        let signature = Signature(signature_bytes(&share.0)?);
        self.members[signer].prepared.verify(message, &signature)
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
        self.check_batch(&self.open(message, certificate)?)
    }

    fn verify_many(&self, items: &[(&[u8], &Certificate)]) -> Result<(), SignatureError> {
        let mut entries = Vec::new();
        for (message, certificate) in items {
            entries.extend(self.open(message, certificate)?);
        }
        self.check_batch(&entries)
    }
}

impl fmt::Debug for Ed25519Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ed25519Scheme({} members)", self.members.len())
    }
}

fn load_member(
    key: &VotingKey,
    proof: &PossessionProof,
) -> Result<(Member, EdwardsPoint), KeyError> {
    let kind = SchemeKind::Ed25519;
    let bytes: [u8; KEY_BYTES] = key.0[..].try_into().map_err(|_| KeyError::Length {
        kind,
        what: "public key",
        expected: KEY_BYTES,
        found: key.0.len(),
    })?;
    let point = IdentityKey(bytes).member_point()?;
    if !proof.0.is_empty() {
        return Err(KeyError::UnexpectedProof { kind });
    }
    let prepared = IdentityKey(bytes).prepare().map_err(|_| KeyError::Encoding)?;
    Ok((Member { bytes, prepared }, point))
}

fn signature_bytes(bytes: &[u8]) -> Result<[u8; SIGNATURE_BYTES], SignatureError> {
    bytes
        .try_into()
        .map_err(|_| SignatureError::Length { expected: SIGNATURE_BYTES, found: bytes.len() })
}

#[cfg(test)]
pub(crate) mod tests;
