//! What checking and making a certificate costs, by committee size, scheme and key cache.
//!
//! ```text
//! cargo bench -p quorate-crypto
//! ```

use criterion::{BenchmarkId, Criterion};
use quorate_crypto::{
    Bitmap, Certificate, KeyCache, Policy, Scheme, SchemeKind, Share, VotingSecret,
    committee_scheme,
};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

const MESSAGE: &[u8] =
    b"a vote for one block, about as long as a real one is: epoch, view, phase, block id";

struct Committee {
    secrets: Vec<VotingSecret>,
    scheme: Arc<dyn Scheme>,
}

impl Committee {
    fn new(kind: SchemeKind, cache: KeyCache, members: usize) -> Self {
        let seed = |member: usize| {
            let mut seed = [1; 32];
            seed[..8].copy_from_slice(&(member as u64).to_le_bytes());
            seed
        };
        let secrets: Vec<_> =
            (0..members).map(|member| VotingSecret::from_seed(kind, &seed(member))).collect();
        let keys: Vec<_> =
            secrets.iter().map(|one| (one.public(), one.prove_possession())).collect();
        let scheme = committee_scheme(kind, &keys, cache).expect("honest keys");
        Self { secrets, scheme }
    }

    /// Shares of the smallest quorum, in which the first members are absent.
    fn quorum(&self) -> Vec<(usize, Share)> {
        let members = self.secrets.len();
        let faulty = (members - 1) / 3;
        let signers = faulty..members;
        signers.map(|signer| (signer, self.secrets[signer].sign(MESSAGE))).collect()
    }

    fn combine(&self, shares: &[(usize, Share)], policy: Policy) -> Certificate {
        let nobody = Bitmap::new(self.secrets.len());
        self.scheme.combine(MESSAGE, shares, &nobody, policy).certificate.expect("honest shares")
    }
}

const SETTINGS: [(&str, SchemeKind, KeyCache); 3] = [
    ("ed25519", SchemeKind::Ed25519, KeyCache::On),
    ("bls cached", SchemeKind::Bls, KeyCache::On),
    ("bls off", SchemeKind::Bls, KeyCache::Off),
];

fn verify(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("verify");
    for members in [4, 10, 40, 80, 209] {
        for (name, kind, cache) in SETTINGS {
            let committee = Committee::new(kind, cache, members);
            let certificate = committee.combine(&committee.quorum(), Policy::Aggregate);
            group.bench_function(BenchmarkId::new(name, members), |bencher| {
                bencher.iter(|| committee.scheme.verify(black_box(MESSAGE), &certificate));
            });
        }
    }
    group.finish();
}

fn combine(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("combine");
    for members in [4, 40, 80, 209] {
        for (kind, policy) in [
            (SchemeKind::Ed25519, Policy::Batch),
            (SchemeKind::Bls, Policy::Aggregate),
            (SchemeKind::Bls, Policy::Batch),
        ] {
            let committee = Committee::new(kind, KeyCache::On, members);
            let shares = committee.quorum();
            let name = format!("{kind} {policy}");
            group.bench_function(BenchmarkId::new(name, members), |bencher| {
                bencher.iter(|| committee.combine(black_box(&shares), policy));
            });
        }
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    verify(&mut criterion);
    combine(&mut criterion);
    criterion.final_summary();
}
