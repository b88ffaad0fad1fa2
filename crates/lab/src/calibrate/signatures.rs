//! Prices of signatures and hashes.

use super::{figures, line, microseconds};
use quorate_crypto::{
    Bitmap, BySharing, Certificate, EcdsaSecret, IdentitySecret, KeyCache, Policy, Scheme,
    SchemeKind, Share, VotingSecret, committee_scheme, deal, hash as blake3, recover,
    threshold_schemes, verify_batch,
};
use quorate_model::{BlsPrices, Ed25519Prices, HashPrices, Secp256k1Prices};
use std::sync::Arc;

const MESSAGE: &[u8] =
    b"a statement about as long as a real one: its kind, chain, epoch, view, phase, block id";

/// Two sizes of a committee, between which prices are lines.
const FEW: usize = 8;
const MANY: usize = 56;

/// Shares of a threshold signature: coefficients cost more the more there are.
const QUORUM: usize = 140;

struct Voters {
    secrets: Vec<VotingSecret>,
    scheme: Arc<dyn Scheme>,
}

impl Voters {
    fn new(kind: SchemeKind, cache: KeyCache) -> Self {
        let seed = |member: usize| [u8::try_from(member).expect("few") + 1; 32];
        let secrets: Vec<VotingSecret> =
            (0..MANY).map(|member| VotingSecret::from_seed(kind, &seed(member))).collect();
        let keys: Vec<_> = secrets.iter().map(|s| (s.public(), s.prove_possession())).collect();
        let scheme = committee_scheme(kind, &keys, cache).expect("honest keys");
        Self { secrets, scheme }
    }

    fn shares(&self, count: usize) -> Vec<(usize, Share)> {
        (0..count).map(|member| (member, self.secrets[member].sign(MESSAGE))).collect()
    }

    /// Combining so many shares, in microseconds.
    fn combine(&self, count: usize, policy: Policy) -> f64 {
        let (shares, nobody) = (self.shares(count), Bitmap::new(MANY));
        microseconds(|| self.scheme.combine(MESSAGE, &shares, &nobody, policy))
    }

    fn certificate(&self, count: usize) -> Certificate {
        let nobody = Bitmap::new(MANY);
        let combined =
            self.scheme.combine(MESSAGE, &self.shares(count), &nobody, Policy::Aggregate);
        combined.certificate.expect("honest shares")
    }

    /// Checking a certificate of so many, in microseconds.
    fn verify(&self, count: usize) -> f64 {
        let certificate = self.certificate(count);
        microseconds(|| self.scheme.verify(MESSAGE, &certificate).expect("honest"))
    }
}

pub(super) fn ed25519() -> Ed25519Prices {
    let secret = IdentitySecret::from_seed([1; 32]);
    let (key, signature) = (secret.public(), secret.sign(MESSAGE));
    let prepared = key.prepare().expect("a key from a seed");
    let verify_us = microseconds(|| prepared.verify(MESSAGE, &signature).expect("honest"));
    let voters = Voters::new(SchemeKind::Ed25519, KeyCache::On);
    let (few, many) = (voters.verify(FEW), voters.verify(MANY));
    let (batch_us, batch_item_us) = line((FEW as f64, few), (MANY as f64, many));
    let strangers: Vec<_> = (0..MANY)
        .map(|member| {
            let secret = IdentitySecret::from_seed([u8::try_from(member).expect("few") + 1; 32]);
            (secret.public(), MESSAGE, secret.sign(MESSAGE))
        })
        .collect();
    let untabulated = microseconds(|| verify_batch(&strangers).expect("honest"));
    Ed25519Prices {
        sign_us: figures(microseconds(|| secret.sign(MESSAGE))),
        verify_us: figures(verify_us),
        key_read_us: figures(microseconds(|| key.prepare().expect("a key from a seed"))),
        batch_us,
        batch_item_us,
        batch_key_us: figures((untabulated - many).max(0.0) / MANY as f64),
    }
}

pub(super) fn bls() -> BlsPrices {
    let voters = Voters::new(SchemeKind::Bls, KeyCache::Off);
    let share = voters.secrets[0].sign(MESSAGE);
    // Of one signer, a certificate's check is what every check pays: its point, subgroup, pairing.
    let (few, many) = (voters.verify(FEW), voters.verify(MANY));
    let (_, key_addition_us) = line((FEW as f64, few), (MANY as f64, many));
    let alone = microseconds(|| voters.scheme.verify_share(MESSAGE, 0, &share).expect("honest"));
    let aggregate = |count| voters.combine(count, Policy::Aggregate);
    let (_, each) = line((FEW as f64, aggregate(FEW)), (MANY as f64, aggregate(MANY)));
    // Aggregating adds each share twice, its key once, and reads its point: of 48 bytes, by far
    // most.
    let point_read_us = figures((each - key_addition_us).max(0.0) * READ_SHARE);
    let share_addition_us = figures((each - key_addition_us - point_read_us).max(0.0) / 2.0);
    let batch = |count| voters.combine(count, Policy::Batch);
    let (_, weighted) = line((FEW as f64, batch(FEW)), (MANY as f64, batch(MANY)));
    let certificate = voters.certificate(MANY);
    let several = |count| {
        let items = vec![(MESSAGE, &certificate); count];
        microseconds(|| voters.scheme.verify_many(&items).expect("honest"))
    };
    let opening = point_read_us + (MANY - 1) as f64 * key_addition_us;
    let subgroup_us = figures((alone - point_read_us).max(0.0) * SUBGROUP_SHARE);
    let further = (several(6) - several(2)) / 4.0 - opening - subgroup_us;
    let quorum = |count| (count as f64, interpolate(count));
    let (_, interpolated) = line(quorum(FEW), quorum(QUORUM));
    BlsPrices {
        sign_us: figures(microseconds(|| voters.secrets[0].sign(MESSAGE))),
        pairing_us: figures((alone - point_read_us - subgroup_us).max(0.0)),
        further_message_us: figures(further.max(0.0)),
        point_read_us,
        subgroup_us,
        key_addition_us,
        share_addition_us,
        weighted_point_us: figures(
            (weighted - point_read_us - subgroup_us - share_addition_us).max(0.0),
        ),
        interpolated_point_us: figures((interpolated - point_read_us).max(0.0)),
    }
}

pub(super) fn secp256k1() -> Secp256k1Prices {
    let secret = EcdsaSecret::from_bytes([1; 32]).expect("less than the order");
    let digest = blake3(MESSAGE).0;
    let signature = secret.sign(&digest);
    let recover_us = microseconds(|| recover(&digest, &signature).expect("honest"));
    Secp256k1Prices { recover_us: figures(recover_us) }
}

/// Making a threshold signature of so many shares, in microseconds.
fn interpolate(threshold: usize) -> f64 {
    let members = threshold + 1;
    let thresholds = BySharing::from_fn(|_| threshold);
    let dealing = deal(members, &thresholds, &[1; 32]).expect("fewer than all");
    let keys: Vec<_> = dealing.secrets.iter().map(VotingSecret::public).collect();
    let schemes = threshold_schemes(&keys, &dealing.groups, &thresholds).expect("honest keys");
    let sign = |member: usize| (member, dealing.secrets[member].sign(MESSAGE));
    let (shares, nobody): (Vec<_>, _) = ((0..threshold).map(sign).collect(), Bitmap::new(members));
    microseconds(|| schemes.slow.combine(MESSAGE, &shares, &nobody, Policy::Aggregate))
}

/// Cost of reading a share as a part of the cost that each share adds to an aggregate, its key's
/// addition apart, and what a subgroup check is of a share's check. The scheme's interface shows
/// only their sums, and it is the sums that are paid; the parts are in the proportion of `blst`'s
/// own operations.
const READ_SHARE: f64 = 0.96;
const SUBGROUP_SHARE: f64 = 0.04;

pub(super) fn hash() -> HashPrices {
    let bytes = vec![7; 500_000];
    let of = |count: usize| (count as f64, microseconds(|| blake3(&bytes[..count])));
    let (_, byte_us) = line(of(20_000), of(500_000));
    HashPrices { call_us: figures(of(64).1), byte_ns: figures(byte_us * 1e3) }
}
