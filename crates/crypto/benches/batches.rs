//! Many signatures checked at once, by how many they are: a payment authority's daily work.
//!
//! ```text
//! cargo bench -p quorate-crypto --bench batches -- --quick
//! ```
//!
//! `ways` holds the two ways of adding up weighted nonces against one another, from which
//! `ed25519::batch::TABLES_MAX` was read.

use criterion::{BenchmarkId, Criterion, Throughput};
use curve25519_dalek::EdwardsPoint;
use curve25519_dalek::edwards::VartimeEdwardsPrecomputation;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{VartimeMultiscalarMul, VartimePrecomputedMultiscalarMul};
use quorate_crypto::{
    Bitmap, BySharing, Certificate, IdentityKey, IdentitySecret, KeyCache, Policy, Scheme,
    SchemeKind, Signature, VotingKey, VotingSecret, committee_scheme, deal, hash,
    threshold_schemes, verify_batch,
};
use std::sync::Arc;
use std::time::Duration;

/// Members, of whom a quorum signs.
const MEMBERS: usize = 10;
const QUORUM: usize = 7;

fn seed(number: usize) -> [u8; 32] {
    hash(&number.to_le_bytes()).0
}

fn message(number: usize) -> Vec<u8> {
    [&b"a vote for one transaction: chain, epoch, and its name "[..], &seed(number)].concat()
}

fn committee(kind: SchemeKind) -> (Vec<VotingSecret>, Arc<dyn Scheme>) {
    if kind == SchemeKind::BlsThreshold {
        let thresholds = BySharing::from_fn(|_| QUORUM);
        let dealing = deal(MEMBERS, &thresholds, &[1; 32]).expect("a quorum of members");
        let keys: Vec<VotingKey> = dealing.secrets.iter().map(VotingSecret::public).collect();
        let schemes = threshold_schemes(&keys, &dealing.groups, &thresholds);
        return (dealing.secrets, schemes.expect("honest keys").slow);
    }
    let secrets: Vec<_> =
        (0..MEMBERS).map(|member| VotingSecret::from_seed(kind, &seed(member))).collect();
    let keys: Vec<_> = secrets.iter().map(|one| (one.public(), one.prove_possession())).collect();
    let scheme = committee_scheme(kind, &keys, KeyCache::On).expect("honest keys");
    (secrets, scheme)
}

/// Certificates of the first members that are a quorum, or of changing ones.
fn certificates(kind: SchemeKind, count: usize, changing: bool) -> Certificates {
    let (secrets, scheme) = committee(kind);
    let nobody = Bitmap::new(MEMBERS);
    let made = (0..count).map(|number| {
        let message = message(number);
        let first = if changing { number % MEMBERS } else { 0 };
        let signers = (first..first + QUORUM).map(|at| at % MEMBERS);
        let shares: Vec<_> =
            signers.map(|signer| (signer, secrets[signer].sign(&message))).collect();
        let combined = scheme.combine(&message, &shares, &nobody, Policy::Aggregate);
        (message, combined.certificate.expect("honest shares"))
    });
    Certificates { made: made.collect(), scheme }
}

struct Certificates {
    made: Vec<(Vec<u8>, Certificate)>,
    scheme: Arc<dyn Scheme>,
}

impl Certificates {
    fn verify(&self, count: usize) {
        let made = self.made[..count].iter();
        let items: Vec<_> = made.map(|(message, one)| (&message[..], one)).collect();
        self.scheme.verify_many(&items).expect("honest certificates");
    }
}

fn many_certificates(criterion: &mut Criterion) {
    const COUNTS: [usize; 8] = [1, 4, 8, 16, 32, 64, 128, 256];
    let most = COUNTS[COUNTS.len() - 1];
    let kinds = [
        ("ed25519", SchemeKind::Ed25519, false),
        ("bls", SchemeKind::Bls, false),
        ("bls, changing signers", SchemeKind::Bls, true),
        ("bls-threshold", SchemeKind::BlsThreshold, false),
    ];
    for (name, kind, changing) in kinds {
        let certificates = certificates(kind, most, changing);
        let mut group = criterion.benchmark_group(format!("certificates of 7, {name}"));
        for count in COUNTS {
            group.throughput(Throughput::Elements(count as u64));
            group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
                bencher.iter(|| certificates.verify(count));
            });
        }
    }
}

/// Signatures of as many keys, none of which was seen before.
fn many_keys(criterion: &mut Criterion) {
    let made: Vec<(IdentityKey, Vec<u8>, Signature)> = (0..1_024)
        .map(|number| {
            let secret = IdentitySecret::from_seed(seed(number));
            let message = message(number);
            let signature = secret.sign(&message);
            (secret.public(), message, signature)
        })
        .collect();
    let items: Vec<_> = made.iter().map(|(key, text, one)| (*key, &text[..], *one)).collect();
    let mut group = criterion.benchmark_group("signatures of as many keys");
    for count in [1, 4, 16, 32, 64, 96, 128, 192, 256, 512, 1_024] {
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            bencher.iter(|| verify_batch(&items[..count]).expect("honest signatures"));
        });
    }
}

fn weight(number: usize) -> Scalar {
    let bytes = seed(number);
    Scalar::from(u128::from_le_bytes(bytes[..16].try_into().expect("16 bytes")))
}

fn ways(criterion: &mut Criterion) {
    let scalar = |number: usize| Scalar::from_bytes_mod_order(seed(number));
    let point = |number: usize| EdwardsPoint::mul_base(&scalar(number));
    let keys: Vec<EdwardsPoint> = (0..=MEMBERS).map(point).collect();
    let tables = VartimeEdwardsPrecomputation::new(keys.iter());
    let key_scalars: Vec<Scalar> = (0..=MEMBERS).map(scalar).collect();
    let nonces: Vec<EdwardsPoint> = (0..2_048).map(point).collect();
    let weights: Vec<Scalar> = (0..2_048).map(weight).collect();
    let mut group = criterion.benchmark_group("ways");
    for count in [64, 128, 192, 256, 320, 384, 512, 768, 1_024, 2_048] {
        group.throughput(Throughput::Elements(count as u64));
        let (nonces, weights) = (&nonces[..count], &weights[..count]);
        group.bench_function(BenchmarkId::new("tables", count), |bencher| {
            bencher.iter(|| tables.vartime_mixed_multiscalar_mul(&key_scalars, weights, nonces));
        });
        group.bench_function(BenchmarkId::new("buckets", count), |bencher| {
            bencher.iter(|| {
                EdwardsPoint::vartime_multiscalar_mul(
                    key_scalars.iter().chain(weights),
                    keys.iter().chain(nonces),
                )
            });
        });
    }
}

/// The same for keys that are no committee's: each brings a scalar of full length, and its own
/// point.
fn ways_of_many_keys(criterion: &mut Criterion) {
    let scalar = |number: usize| Scalar::from_bytes_mod_order(seed(number));
    let points: Vec<EdwardsPoint> =
        (0..1_024).map(|number| EdwardsPoint::mul_base(&scalar(number))).collect();
    let scalars: Vec<Scalar> = (0..1_024)
        .map(|number| match number % 2 {
            0 => scalar(number),
            _ => weight(number),
        })
        .collect();
    let no_points: [EdwardsPoint; 0] = [];
    let no_scalars: [Scalar; 0] = [];
    let tables = VartimeEdwardsPrecomputation::new(no_points);
    let mut group = criterion.benchmark_group("ways, many keys");
    for count in [64, 94, 128, 192, 256, 512] {
        group.throughput(Throughput::Elements(count as u64));
        let (points, scalars) = (&points[..2 * count], &scalars[..2 * count]);
        group.bench_function(BenchmarkId::new("tables", count), |bencher| {
            bencher.iter(|| tables.vartime_mixed_multiscalar_mul(no_scalars, scalars, points));
        });
        group.bench_function(BenchmarkId::new("either", count), |bencher| {
            bencher.iter(|| EdwardsPoint::vartime_multiscalar_mul(scalars, points));
        });
    }
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600))
        .configure_from_args();
    ways(&mut criterion);
    ways_of_many_keys(&mut criterion);
    many_keys(&mut criterion);
    many_certificates(&mut criterion);
    criterion.final_summary();
}
