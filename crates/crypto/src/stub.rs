//! A signature scheme worth nothing outside the simulator.
//!
//! A share is a keyed hash of the message under the signer's *public* key, so anyone can make
//! anyone's. The simulator's faults do not forge, and a thousand simulated replicas need signatures
//! that cost nanoseconds. As an oracle for protocols it is sound: a share is bound to its signer
//! and message, a certificate to its signers and message, and every mistake in either is refused.

use crate::counts;
use crate::error::{KeyError, SignatureError};
use crate::options::{Policy, SchemeKind};
use crate::scheme::{
    Aggregate, Candidate, Certificate, Combined, Scheme, Share, SharePrimitives, check_signer,
    check_signers, combine,
};
use crate::{Bitmap, PossessionProof, VotingKey};
use std::fmt;

const KEY_BYTES: usize = 32;
const TAG_BYTES: usize = 16;

/// A committee's stub keys.
pub(crate) struct StubScheme {
    keys: Vec<[u8; KEY_BYTES]>,
}

/// The public key of a seed.
pub(crate) fn public(seed: &[u8; 32]) -> [u8; KEY_BYTES] {
    blake3::derive_key("quorate 2026-01 stub public key", seed)
}

/// Share of the holder of `key`, which anybody else can make as well.
pub(crate) fn tag(key: &[u8; KEY_BYTES], message: &[u8]) -> [u8; TAG_BYTES] {
    shorten(&blake3::keyed_hash(key, message))
}

impl StubScheme {
    /// The scheme for these keys: any 32 bytes each.
    pub(crate) fn new(keys: &[(VotingKey, PossessionProof)]) -> Result<Self, KeyError> {
        let load = |member: usize, key: &VotingKey, proof: &PossessionProof| {
            load_key(key, proof)
                .map_err(|cause| KeyError::Member { member, cause: Box::new(cause) })
        };
        let keys: Result<Vec<_>, KeyError> = keys
            .iter()
            .enumerate()
            .map(|(member, (key, proof))| load(member, key, proof))
            .collect();
        Ok(Self { keys: keys? })
    }

    fn aggregate(&self, message: &[u8], signers: &Bitmap) -> Aggregate {
        let mut hasher = blake3::Hasher::new_derive_key("quorate 2026-01 stub aggregate");
        for signer in signers.iter() {
            hasher.update(&(signer as u64).to_le_bytes());
            hasher.update(&tag(&self.keys[signer], message));
        }
        Aggregate(shorten(&hasher.finalize()).to_vec())
    }
}

impl SharePrimitives for StubScheme {
    type Signature<'a> = &'a Share;
    type Joined = Certificate;

    fn read<'a>(&self, share: &'a Share) -> Option<&'a Share> {
        Some(share)
    }

    fn bad_alone(&self, message: &[u8], shares: &[Candidate<&Share>]) -> Vec<usize> {
        let is_good = |signer, share: &Share| self.verify_share(message, signer, share).is_ok();
        Candidate::bad_signers(shares, is_good)
    }

    fn join(&self, message: &[u8], shares: &[Candidate<&Share>]) -> Option<Certificate> {
        let signers = Bitmap::from_indices(self.keys.len(), shares.iter().map(|one| one.signer));
        (!signers.is_empty()).then(|| {
            let aggregate = self.aggregate(message, &signers);
            Certificate { signers, aggregate }
        })
    }
}

impl Scheme for StubScheme {
    fn kind(&self) -> SchemeKind {
        SchemeKind::Stub
    }

    fn members(&self) -> usize {
        self.keys.len()
    }

    fn share_bytes(&self) -> usize {
        TAG_BYTES
    }

    fn aggregate_bytes(&self, _signers: usize) -> usize {
        TAG_BYTES
    }

    fn verify_share(
        &self,
        message: &[u8],
        signer: usize,
        share: &Share,
    ) -> Result<(), SignatureError> {
        check_signer(signer, self.keys.len())?;
        counts::add(|counts| counts.stub_verify += 1);
        check_tag(&share.0, &tag(&self.keys[signer], message))
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
        check_signers(&certificate.signers, self.keys.len())?;
        counts::add(|counts| counts.stub_verify += 1);
        check_tag(&certificate.aggregate.0, &self.aggregate(message, &certificate.signers).0)
    }
}

impl fmt::Debug for StubScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StubScheme({} members)", self.keys.len())
    }
}

fn load_key(key: &VotingKey, proof: &PossessionProof) -> Result<[u8; KEY_BYTES], KeyError> {
    let kind = SchemeKind::Stub;
    if !proof.0.is_empty() {
        return Err(KeyError::UnexpectedProof { kind });
    }
    key.0[..].try_into().map_err(|_| KeyError::Length {
        kind,
        what: "public key",
        expected: KEY_BYTES,
        found: key.0.len(),
    })
}

fn check_tag(found: &[u8], expected: &[u8]) -> Result<(), SignatureError> {
    if found.len() != expected.len() {
        let (expected, found) = (expected.len(), found.len());
        return Err(SignatureError::Length { expected, found });
    }
    if found == expected { Ok(()) } else { Err(SignatureError::Mismatch) }
}

fn shorten(hash: &blake3::Hash) -> [u8; TAG_BYTES] {
    let mut tag = [0; TAG_BYTES];
    tag.copy_from_slice(&hash.as_bytes()[..TAG_BYTES]);
    tag
}

#[cfg(test)]
mod tests;
