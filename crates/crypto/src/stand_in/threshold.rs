//! Stand-ins for threshold signatures: a member's shares are keyed hashes like any other, and
//! whatever `threshold` of them are combined, the group's signature is a keyed hash under the
//! group's key. What all members' shares add up to is one under another key.

use super::enabled::{bls_key, bls_share, count_pairings};
use crate::Bitmap;
use crate::counts;
use crate::error::SignatureError;
use crate::options::{Policy, SchemeKind};
use crate::scheme::{
    Aggregate, Candidate, Certificate, Combined, Scheme, Share, SharePrimitives, check_signer,
    combine,
};
use crate::threshold::{BySharing, Sharing, check_count, sharing_seed};
use std::fmt;
use zeroize::Zeroizing;

const SHARE_BYTES: usize = 48;

/// Stand-ins for a member's shares of each sharing.
#[derive(Clone)]
pub(crate) struct Shares {
    secrets: Zeroizing<Vec<u8>>,
    publics: BySharing<[u8; 96]>,
}

impl Shares {
    /// Shares that a seed determines for a member.
    pub(crate) fn deal(seed: &[u8; 32], member: usize) -> Self {
        let secret = |sharing| {
            let seed = sharing_seed(seed, sharing);
            let mut hasher =
                blake3::Hasher::new_derive_key("quorate 2026-11 stand-in threshold share");
            hasher.update(&seed[..]).update(&(member as u64).to_le_bytes());
            *hasher.finalize().as_bytes()
        };
        let secrets = BySharing::from_fn(secret);
        let all = Sharing::ALL.map(|sharing| *secrets.get(sharing));
        Self {
            secrets: Zeroizing::new(all.concat()),
            publics: BySharing::from_fn(|sharing| bls_key(secrets.get(sharing))),
        }
    }

    pub(crate) fn secrets(&self) -> Vec<u8> {
        self.secrets.to_vec()
    }

    pub(crate) fn publics(&self) -> Vec<u8> {
        Sharing::ALL.map(|sharing| *self.public(sharing)).concat()
    }

    pub(crate) fn public(&self, sharing: Sharing) -> &[u8; 96] {
        self.publics.get(sharing)
    }
}

/// One sharing under stand-in signatures.
pub(crate) struct StandInThreshold {
    group: Vec<u8>,
    /// Stand-in for the sum of all keys.
    all: Vec<u8>,
    keys: Vec<Vec<u8>>,
    threshold: usize,
}

impl StandInThreshold {
    /// The scheme for these keys. Nothing is checked: they were made for a simulation.
    pub(crate) fn new(group: &[u8], keys: &[&[u8]], threshold: usize) -> Self {
        let mut all = group.to_vec();
        all.iter_mut().for_each(|byte| *byte = !*byte);
        let keys = keys.iter().map(|key| key.to_vec()).collect();
        Self { group: group.to_vec(), all, keys, threshold }
    }

    /// The key of what so many signed.
    fn key(&self, signers: usize) -> &[u8] {
        if signers == self.keys.len() { &self.all } else { &self.group }
    }

    fn is_good(&self, message: &[u8], signer: usize, share: &Share) -> bool {
        share.0 == bls_share(&self.keys[signer], message)
    }

    fn bad(&self, message: &[u8], shares: &[Candidate<&Share>]) -> Vec<usize> {
        Candidate::bad_signers(shares, |signer, share| self.is_good(message, signer, share))
    }

    /// Refuses what needs no arithmetic to refuse, then a wrong aggregate.
    fn check(&self, message: &[u8], certificate: &Certificate) -> Result<(), SignatureError> {
        check_count(&certificate.signers, self.keys.len(), self.threshold)?;
        check_length(&certificate.aggregate.0)?;
        let key = self.key(certificate.signers.count());
        let fits = certificate.aggregate.0 == bls_share(key, message);
        fits.then_some(()).ok_or(SignatureError::Mismatch)
    }
}

fn check_length(bytes: &[u8]) -> Result<(), SignatureError> {
    let (expected, found) = (SHARE_BYTES, bytes.len());
    if expected == found { Ok(()) } else { Err(SignatureError::Length { expected, found }) }
}

fn count_alone(shares: usize) {
    counts::add(|count| {
        count.bls_subgroup_checks += shares as u64;
        count_pairings(count, shares as u64);
    });
}

/// One check with random weights.
fn count_weighted(message: &[u8], shares: usize) {
    counts::add(|count| {
        count_pairings(count, 1);
        count.bls_subgroup_checks += shares as u64;
        count.bls_weighted_points += shares as u64;
        count.hashes += 1;
        count.hashed_bytes += message.len() as u64 + 8;
    });
}

/// Searches as the scheme that it stands for does, with this difference: bad shares are found
/// before any are joined, each looked at alone, under any policy.
impl SharePrimitives for StandInThreshold {
    type Signature<'a> = &'a Share;
    type Joined = Certificate;

    fn read<'a>(&self, share: &'a Share) -> Option<&'a Share> {
        counts::add(|count| count.bls_points_read += 1);
        Some(share)
    }

    fn bad_alone(&self, message: &[u8], shares: &[Candidate<&Share>]) -> Vec<usize> {
        count_alone(shares.len());
        self.bad(message, shares)
    }

    fn bad_by_weights(&self, message: &[u8], shares: &[Candidate<&Share>]) -> Vec<usize> {
        if !shares.is_empty() {
            count_weighted(message, shares.len());
        }
        self.bad_by_sums(message, shares)
    }

    /// Good shares cost nothing here: what they are joined to is checked.
    fn bad_by_sums(&self, message: &[u8], shares: &[Candidate<&Share>]) -> Vec<usize> {
        let bad = self.bad(message, shares);
        if !bad.is_empty() {
            count_alone(shares.len());
        }
        bad
    }

    fn join(&self, message: &[u8], shares: &[Candidate<&Share>]) -> Option<Certificate> {
        let is_all = shares.len() == self.keys.len();
        let used = if is_all { shares } else { shares.get(..self.threshold)? };
        counts::add(|count| {
            if is_all {
                count.bls_share_additions += used.len() as u64 - 1;
            } else {
                count.bls_interpolated_points += used.len() as u64;
            }
        });
        let signers = Bitmap::from_indices(self.keys.len(), used.iter().map(|one| one.signer));
        let aggregate = Aggregate(bls_share(self.key(used.len()), message).to_vec());
        Some(Certificate { signers, aggregate })
    }

    /// Counts the check of what good shares were joined to, which cannot fail.
    fn holds(&self, _message: &[u8], _joined: &Certificate) -> bool {
        count_alone(1);
        true
    }
}

impl Scheme for StandInThreshold {
    fn kind(&self) -> SchemeKind {
        SchemeKind::BlsThreshold
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
        check_length(&share.0)?;
        counts::add(|count| count.bls_points_read += 1);
        count_alone(1);
        self.is_good(message, signer, share).then_some(()).ok_or(SignatureError::Mismatch)
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
        }
        let items = items.len() as u64;
        counts::add(|count| {
            count.bls_points_read += items;
            count.bls_subgroup_checks += items;
            count.bls_verify += items.min(1);
            count.bls_hash_to_curve += items;
        });
        Ok(())
    }
}

impl fmt::Debug for StandInThreshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StandInThreshold({} of {} members)", self.threshold, self.keys.len())
    }
}
