use crate::counts;
use crate::error::SignatureError;
use crate::options::{KeyCache, Policy, SchemeKind};
use crate::scheme::{
    Aggregate, Candidate, Certificate, Combined, Scheme, Share, SharePrimitives, check_signer,
    check_signers, combine,
};
use crate::{Bitmap, PossessionProof, VotingKey};
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

const SIGNATURE_BYTES: usize = 64;
const SHARE_BYTES: usize = 48;
/// Bytes that the batch equation's weights are hashed from, a signature: key, signature and
/// challenge, each with its length.
const WEIGHED_BYTES: u64 = 32 + 64 + 32 + 3 * 8;

thread_local! {
    static ACTIVE: Cell<u32> = const { Cell::new(0) };
}

/// Guard under which signatures on this thread are stand-ins.
#[derive(Debug)]
pub struct StandIns(PhantomData<*const ()>);

impl StandIns {
    /// Makes signatures stand-ins from now on, until the guard is dropped.
    #[must_use]
    pub fn begin() -> Self {
        ACTIVE.set(ACTIVE.get() + 1);
        Self(PhantomData)
    }
}

impl Drop for StandIns {
    fn drop(&mut self) {
        ACTIVE.set(ACTIVE.get() - 1);
    }
}

pub(crate) fn active() -> bool {
    ACTIVE.get() > 0
}

/// Signature that anybody can make for the holder of this Ed25519 key.
pub(crate) fn signature(key: &[u8; 32], message: &[u8]) -> [u8; SIGNATURE_BYTES] {
    let mut bytes = [0; SIGNATURE_BYTES];
    blake3::Hasher::new_keyed(key).update(message).finalize_xof().fill(&mut bytes);
    bytes
}

pub(crate) fn check(
    key: &[u8; 32],
    message: &[u8],
    found: &[u8; SIGNATURE_BYTES],
) -> Result<(), SignatureError> {
    if *found == signature(key, message) { Ok(()) } else { Err(SignatureError::Mismatch) }
}

/// The 96 bytes in the place of a BLS key.
pub(crate) fn bls_key(seed: &[u8; 32]) -> [u8; 96] {
    let mut bytes = [0; 96];
    let mut hasher = blake3::Hasher::new_derive_key("quorate 2026-11 stand-in bls key");
    hasher.update(seed).finalize_xof().fill(&mut bytes);
    bytes
}

/// Share that anybody can make for the holder of this BLS key.
pub(crate) fn bls_share(key: &[u8], message: &[u8]) -> [u8; SHARE_BYTES] {
    let mut bytes = [0; SHARE_BYTES];
    let start: &[u8; 32] = key[..32].try_into().expect("a key has 32 bytes or more");
    blake3::Hasher::new_keyed(start).update(message).finalize_xof().fill(&mut bytes);
    bytes
}

pub(crate) fn count_bls_sign() {
    counts::add(|count| {
        count.bls_sign += 1;
        count.bls_hash_to_curve += 1;
    });
}

/// One batch equation over so many Ed25519 signatures.
pub(crate) fn count_batch(items: usize, keys_are_new: bool) {
    let items = items as u64;
    counts::add(|count| {
        count.ed25519_batches += 1;
        count.ed25519_batch_items += items;
        count.ed25519_batch_keys += if keys_are_new { items } else { 0 };
        count.hashes += 1;
        count.hashed_bytes += items * WEIGHED_BYTES;
    });
}

/// A committee's keys under stand-in signatures of either scheme.
pub(crate) struct StandInScheme {
    kind: SchemeKind,
    keys: Vec<VotingKey>,
    cache: KeyCache,
}

impl StandInScheme {
    /// The scheme for these keys. Nothing is checked: they were made for a simulation.
    pub(crate) fn new(
        kind: SchemeKind,
        keys: &[(VotingKey, PossessionProof)],
        cache: KeyCache,
    ) -> Self {
        Self { kind, keys: keys.iter().map(|(key, _)| key.clone()).collect(), cache }
    }

    fn is_bls(&self) -> bool {
        self.kind == SchemeKind::Bls
    }

    fn share(&self, message: &[u8], signer: usize) -> Vec<u8> {
        let key = &self.keys[signer].0;
        if self.is_bls() {
            return bls_share(key, message).to_vec();
        }
        let key = key[..].try_into().expect("an Ed25519 key has 32 bytes");
        signature(key, message).to_vec()
    }

    fn is_good(&self, message: &[u8], signer: usize, share: &Share) -> bool {
        share.0 == self.share(message, signer)
    }

    fn bad(&self, message: &[u8], shares: &[Candidate<&Share>]) -> Vec<usize> {
        Candidate::bad_signers(shares, |signer, share| self.is_good(message, signer, share))
    }

    fn bad_together(
        &self,
        message: &[u8],
        shares: &[Candidate<&Share>],
        policy: Policy,
    ) -> Vec<usize> {
        self.count_together(message, shares.len(), policy);
        let bad = self.bad(message, shares);
        if !bad.is_empty() {
            self.count_alone(shares.len());
        }
        bad
    }

    fn aggregate(&self, message: &[u8], signers: &Bitmap) -> Aggregate {
        let shares = signers.iter().map(|signer| self.share(message, signer));
        if !self.is_bls() {
            return Aggregate(shares.flatten().collect());
        }
        let mut sum = vec![0; SHARE_BYTES];
        for share in shares {
            sum.iter_mut().zip(share).for_each(|(byte, other)| *byte ^= other);
        }
        Aggregate(sum)
    }

    /// Refuses what needs no arithmetic to refuse, then a wrong aggregate.
    fn check(&self, message: &[u8], certificate: &Certificate) -> Result<(), SignatureError> {
        let Certificate { signers, aggregate } = certificate;
        check_signers(signers, self.keys.len())?;
        let (expected, found) = (self.aggregate_bytes(signers.count()), aggregate.0.len());
        if expected != found {
            return Err(SignatureError::Length { expected, found });
        }
        let fits = *aggregate == self.aggregate(message, signers);
        fits.then_some(()).ok_or(SignatureError::Mismatch)
    }

    /// Counts the opening of a BLS certificate: its point, its subgroup, its signers' key.
    fn count_open(&self, signers: usize) {
        let absent = (self.keys.len() - signers) as u64;
        let signers = signers as u64;
        let additions = match self.cache {
            KeyCache::Subtract => absent,
            KeyCache::On if absent < signers => absent,
            _ => signers.saturating_sub(1),
        };
        counts::add(|count| {
            count.bls_points_read += 1;
            count.bls_subgroup_checks += 1;
            count.bls_key_additions += additions;
        });
    }

    fn count_alone(&self, shares: usize) {
        let shares = shares as u64;
        counts::add(|count| {
            if self.is_bls() {
                count.bls_subgroup_checks += shares;
                count_pairings(count, shares);
            } else {
                count.ed25519_verify += shares;
            }
        });
    }

    /// Counts what checking these shares together takes.
    fn count_together(&self, message: &[u8], shares: usize, policy: Policy) {
        if shares == 0 {
            return;
        }
        if !self.is_bls() {
            return count_batch(shares, false);
        }
        let shares = shares as u64;
        counts::add(|count| {
            count_pairings(count, 1);
            if policy == Policy::Batch {
                count.bls_subgroup_checks += shares;
                count.bls_weighted_points += shares;
                count.hashes += 1;
                count.hashed_bytes += message.len() as u64 + 8;
            } else {
                count.bls_subgroup_checks += 1;
                count.bls_key_additions += shares - 1;
                count.bls_share_additions += shares - 1;
            }
        });
    }
}

pub(super) fn count_pairings(count: &mut counts::OpCounts, checks: u64) {
    count.bls_verify += checks;
    count.bls_hash_to_curve += checks;
}

/// Searches as the scheme that it stands for does, with this difference: when shares are bad, each
/// is looked at alone, under any policy. Simulations that price have no forgers.
impl SharePrimitives for StandInScheme {
    type Signature<'a> = &'a Share;
    type Joined = Certificate;

    fn read<'a>(&self, share: &'a Share) -> Option<&'a Share> {
        counts::add(|count| count.bls_points_read += u64::from(self.is_bls()));
        Some(share)
    }

    fn bad_alone(&self, message: &[u8], shares: &[Candidate<&Share>]) -> Vec<usize> {
        self.count_alone(shares.len());
        self.bad(message, shares)
    }

    fn bad_by_weights(&self, message: &[u8], shares: &[Candidate<&Share>]) -> Vec<usize> {
        self.bad_together(message, shares, Policy::Batch)
    }

    fn bad_by_sums(&self, message: &[u8], shares: &[Candidate<&Share>]) -> Vec<usize> {
        self.bad_together(message, shares, Policy::Aggregate)
    }

    fn join(&self, message: &[u8], shares: &[Candidate<&Share>]) -> Option<Certificate> {
        let signers = Bitmap::from_indices(self.keys.len(), shares.iter().map(|one| one.signer));
        (!signers.is_empty()).then(|| {
            let additions = signers.count() as u64 - 1;
            counts::add(|count| {
                count.bls_share_additions += if self.is_bls() { additions } else { 0 };
            });
            let aggregate = self.aggregate(message, &signers);
            Certificate { signers, aggregate }
        })
    }
}

impl Scheme for StandInScheme {
    fn kind(&self) -> SchemeKind {
        self.kind
    }

    fn members(&self) -> usize {
        self.keys.len()
    }

    fn share_bytes(&self) -> usize {
        if self.is_bls() { SHARE_BYTES } else { SIGNATURE_BYTES }
    }

    fn aggregate_bytes(&self, signers: usize) -> usize {
        if self.is_bls() { SHARE_BYTES } else { signers * SIGNATURE_BYTES }
    }

    fn verify_share(
        &self,
        message: &[u8],
        signer: usize,
        share: &Share,
    ) -> Result<(), SignatureError> {
        check_signer(signer, self.keys.len())?;
        let (expected, found) = (self.share_bytes(), share.0.len());
        if expected != found {
            return Err(SignatureError::Length { expected, found });
        }
        counts::add(|count| count.bls_points_read += u64::from(self.is_bls()));
        self.count_alone(1);
        let good = self.is_good(message, signer, share);
        good.then_some(()).ok_or(SignatureError::Mismatch)
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
        self.verify_many(&[(message, certificate)])
    }

    fn verify_many(&self, items: &[(&[u8], &Certificate)]) -> Result<(), SignatureError> {
        for (message, certificate) in items {
            self.check(message, certificate)?;
            if self.is_bls() {
                self.count_open(certificate.signers.count());
            }
        }
        let signers: usize = items.iter().map(|(_, certificate)| certificate.signers.count()).sum();
        if !self.is_bls() {
            count_batch(signers, false);
        } else if !items.is_empty() {
            counts::add(|count| {
                count.bls_verify += 1;
                count.bls_hash_to_curve += items.len() as u64;
            });
        }
        Ok(())
    }
}

impl fmt::Debug for StandInScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StandInScheme({}, {} members)", self.kind, self.keys.len())
    }
}

#[cfg(test)]
mod tests;
