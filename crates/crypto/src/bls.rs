//! BLS12-381 voting: a certificate is one 48-byte signature, whoever signed.
//!
//! The IETF's proof-of-possession ciphersuite, signatures in G1 (48 bytes) and keys in G2 (96
//! bytes). Keys are checked once, when the committee is loaded, and kept as affine points: most of
//! a naive verifier's time goes into decompressing and checking them again.
//!
//! What is checked when (common rules, "Certificates"):
//!
//! | point | canonical, on curve | subgroup | identity |
//! | --- | --- | --- | --- |
//! | key | committee load | committee load | refused |
//! | proof of possession | committee load | committee load | refused |
//! | share alone | each time | each time | refused |
//! | share about to be summed | each time | through the sum | refused |
//! | aggregate | each time | each time | refused, and so is an identity sum of keys |
//!
//! Proofs of possession do not stop one party from registering both `x` and `−x`; their keys
//! cancel, and without the last check the identity signature would be theirs on every message.

pub(crate) mod points;
pub(crate) mod shares;

use crate::error::{KeyError, SignatureError};
use crate::options::{KeyCache, Policy, SchemeKind};
use crate::scheme::{
    Aggregate, Certificate, Combined, Scheme, Share, SharePrimitives, check_signer, check_signers,
    combine,
};
use crate::{Bitmap, PossessionProof, VotingKey};
use blst::min_sig::{AggregatePublicKey, PublicKey, Signature};
use points::SHARE_BYTES;
use shares::Candidate;
use std::fmt;

pub(crate) use blst::min_sig::SecretKey;
pub(crate) use points::{generate, prove_possession, read_secret, sign};

/// A committee's BLS voting keys as affine points, and (if cached) their sum.
pub(crate) struct BlsScheme {
    keys: Vec<PublicKey>,
    all: Option<AggregatePublicKey>,
    /// Subtract even where adding the signers' keys takes fewer additions.
    always_subtract: bool,
}

impl BlsScheme {
    /// The scheme for these keys, each checked and its owner's possession verified.
    pub(crate) fn new(
        keys: &[(VotingKey, PossessionProof)],
        cache: KeyCache,
    ) -> Result<Self, KeyError> {
        let mut loaded = Vec::with_capacity(keys.len());
        for (member, (key, proof)) in keys.iter().enumerate() {
            let key = points::read_key(key, proof)
                .map_err(|cause| KeyError::Member { member, cause: Box::new(cause) })?;
            loaded.push(key);
        }
        let all = match cache {
            KeyCache::On | KeyCache::Subtract => Some(points::sum_keys(&loaded)),
            KeyCache::Off => None,
        };
        Ok(Self { keys: loaded, all, always_subtract: cache == KeyCache::Subtract })
    }

    /// The sum of the signers' keys.
    fn key_of(&self, signers: &Bitmap) -> PublicKey {
        let pick = |members: Vec<usize>| -> Vec<PublicKey> {
            members.into_iter().map(|member| self.keys[member]).collect()
        };
        let absent = self.keys.len() - signers.count();
        match &self.all {
            // `absent` subtractions against `signers − 1` additions.
            Some(all) if self.always_subtract || absent < signers.count() => {
                points::subtract_keys(all, &pick(signers.absent().collect()))
            }
            _ => points::sum_keys(&pick(signers.iter().collect())).to_public_key(),
        }
    }

    /// Reads what a certificate claims, its signature and its signers' key, both fit for a pairing.
    fn open(&self, certificate: &Certificate) -> Result<(PublicKey, Signature), SignatureError> {
        check_signers(&certificate.signers, self.keys.len())?;
        let signature = points::read_signature(&certificate.aggregate.0)?;
        points::check_subgroup(&signature)?;
        let key = self.key_of(&certificate.signers);
        points::refuse_identity_key(&key)?;
        Ok((key, signature))
    }
}

impl SharePrimitives for BlsScheme {
    type Signature<'a> = Signature;
    type Joined = Certificate;

    fn read(&self, share: &Share) -> Option<Signature> {
        points::read_signature(&share.0).ok()
    }

    fn bad_alone(&self, message: &[u8], shares: &[Candidate]) -> Vec<usize> {
        shares::bad_alone(&self.keys, message, shares)
    }

    fn bad_by_weights(&self, message: &[u8], shares: &[Candidate]) -> Vec<usize> {
        shares::bad_by_weights(&self.keys, message, shares)
    }

    fn bad_by_sums(&self, message: &[u8], shares: &[Candidate]) -> Vec<usize> {
        shares::bad_by_sums(&self.keys, message, shares)
    }

    /// Adds the shares up. Every part of them was checked as a sum, and sums of valid sums are
    /// valid, so the whole is not checked again.
    fn join(&self, _message: &[u8], shares: &[Candidate]) -> Option<Certificate> {
        if shares.is_empty() {
            return None;
        }
        let signers = Bitmap::from_indices(self.keys.len(), shares.iter().map(|one| one.signer));
        let signatures: Vec<Signature> = shares.iter().map(|one| one.signature).collect();
        let sum = points::sum_signatures(&signatures);
        points::refuse_identity(&sum).ok()?;
        Some(Certificate { signers, aggregate: Aggregate(sum.to_bytes().to_vec()) })
    }
}

impl Scheme for BlsScheme {
    fn kind(&self) -> SchemeKind {
        SchemeKind::Bls
    }

    fn members(&self) -> usize {
        self.keys.len()
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
        check_signer(signer, self.keys.len())?;
        let signature = points::read_signature(&share.0)?;
        shares::check_alone(&self.keys, message, &Candidate { signer, signature })
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
        let (key, signature) = self.open(certificate)?;
        points::check_pairing(message, &key, &signature)
    }

    /// One product of pairings with random weights, so that errors in different certificates cannot
    /// cancel; one final exponentiation instead of one a certificate.
    fn verify_many(&self, items: &[(&[u8], &Certificate)]) -> Result<(), SignatureError> {
        if let [(message, certificate)] = items {
            return self.verify(message, certificate);
        }
        let mut claims = Vec::with_capacity(items.len());
        for (message, certificate) in items {
            let (key, signature) = self.open(certificate)?;
            claims.push(points::Claim { message, key, signature });
        }
        points::check_pairings(&claims)
    }

    fn signers_key(&self, signers: &Bitmap) -> Option<Vec<u8>> {
        check_signers(signers, self.keys.len()).ok()?;
        Some(self.key_of(signers).serialize().to_vec())
    }
}

impl fmt::Debug for BlsScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cache = if self.all.is_some() { "cached sum" } else { "no cached sum" };
        write!(f, "BlsScheme({} members, {cache})", self.keys.len())
    }
}

#[cfg(test)]
pub(crate) mod tests;
