//! Counts of the operations performed on this thread, under the feature `count`.
//!
//! Papers compare protocols by operations; a measurement compares them by time. Counting both lets
//! a report say which of the two it shows. Without the feature nothing is counted and nothing is
//! paid.

use crate::SchemeKind;

/// Operations performed on one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpCounts {
    /// Signatures made with Ed25519 keys of either kind.
    pub ed25519_sign: u64,
    /// Ed25519 signatures checked one by one.
    pub ed25519_verify: u64,
    /// Ed25519 identity keys decompressed to check a signature.
    pub ed25519_key_reads: u64,
    /// Batch checks of Ed25519 signatures.
    pub ed25519_batches: u64,
    /// Ed25519 signatures that went through batch checks.
    pub ed25519_batch_items: u64,
    /// Number of those signatures whose keys were not tabulated before, but decompressed for the
    /// batch.
    pub ed25519_batch_keys: u64,
    /// Signatures and shares made with BLS keys.
    pub bls_sign: u64,
    /// BLS pairing checks: products of pairings compared with one, each with one final
    /// exponentiation.
    pub bls_verify: u64,
    /// Messages hashed to the curve, for signing and for checking.
    pub bls_hash_to_curve: u64,
    /// Additions (or subtractions) of public keys.
    pub bls_key_additions: u64,
    /// Additions of signature shares.
    pub bls_share_additions: u64,
    /// Signatures or shares decompressed.
    pub bls_points_read: u64,
    /// Signatures checked to be in the subgroup.
    pub bls_subgroup_checks: u64,
    /// Shares, with their keys, that were multiplied by random weights.
    pub bls_weighted_points: u64,
    /// Shares that were multiplied by Lagrange's coefficients.
    pub bls_interpolated_points: u64,
    /// Signers recovered from ECDSA signatures on secp256k1.
    pub secp256k1_recover: u64,
    /// Shares and certificates of stubs checked.
    pub stub_verify: u64,
    /// Hashes finished with BLAKE3.
    pub hashes: u64,
    /// Bytes hashed with BLAKE3, length prefixes included.
    pub hashed_bytes: u64,
}

impl OpCounts {
    /// The check of one share on its own.
    #[must_use]
    pub fn one_share(scheme: SchemeKind) -> Self {
        match scheme {
            SchemeKind::Ed25519 => Self { ed25519_verify: 1, ..Self::default() },
            SchemeKind::Bls | SchemeKind::BlsThreshold => Self {
                bls_verify: 1,
                bls_hash_to_curve: 1,
                bls_points_read: 1,
                bls_subgroup_checks: 1,
                ..Self::default()
            },
            #[cfg(feature = "stub")]
            SchemeKind::Stub => Self { stub_verify: 1, ..Self::default() },
        }
    }

    /// The additions among them alone: what is left of combining shares that were checked before.
    #[must_use]
    pub fn adding(&self) -> Self {
        let Self { bls_key_additions, bls_share_additions, .. } = *self;
        Self { bls_key_additions, bls_share_additions, ..Self::default() }
    }

    /// Number of checks among them, each of a signature, of a batch or of a certificate.
    #[must_use]
    pub fn checks(&self) -> u64 {
        let Self { ed25519_verify, ed25519_batches, bls_verify, stub_verify, .. } = *self;
        ed25519_verify + ed25519_batches + bls_verify + stub_verify
    }

    /// The hashes among them alone.
    #[must_use]
    pub fn hashing(&self) -> Self {
        Self { hashes: self.hashes, hashed_bytes: self.hashed_bytes, ..Self::default() }
    }
}

#[cfg(feature = "count")]
mod enabled {
    use super::OpCounts;
    use std::cell::Cell;

    thread_local! {
        static COUNTS: Cell<OpCounts> = const { Cell::new(OpCounts {
            ed25519_sign: 0,
            ed25519_verify: 0,
            ed25519_key_reads: 0,
            ed25519_batches: 0,
            ed25519_batch_items: 0,
            ed25519_batch_keys: 0,
            bls_sign: 0,
            bls_verify: 0,
            bls_hash_to_curve: 0,
            bls_key_additions: 0,
            bls_share_additions: 0,
            bls_points_read: 0,
            bls_subgroup_checks: 0,
            bls_weighted_points: 0,
            bls_interpolated_points: 0,
            secp256k1_recover: 0,
            stub_verify: 0,
            hashes: 0,
            hashed_bytes: 0,
        }) };
    }

    /// Takes the counts of this thread since the last call, and starts anew.
    pub fn take() -> OpCounts {
        COUNTS.take()
    }

    /// Counts of this thread since the last call of [`take`].
    pub fn peek() -> OpCounts {
        COUNTS.get()
    }

    /// Counts the recovery of a signer that nobody performs: for a model that charges for it.
    pub fn add_recovery() {
        add(|counts| counts.secp256k1_recover += 1);
    }

    pub(crate) fn add(change: impl FnOnce(&mut OpCounts)) {
        COUNTS.with(|cell| {
            let mut counts = cell.get();
            change(&mut counts);
            cell.set(counts);
        });
    }
}

#[cfg(feature = "count")]
pub use enabled::{add_recovery, peek, take};

#[cfg(feature = "count")]
pub(crate) use enabled::add;

#[cfg(not(feature = "count"))]
#[inline(always)]
pub(crate) fn add(_change: impl FnOnce(&mut OpCounts)) {}

#[cfg(test)]
mod tests;
