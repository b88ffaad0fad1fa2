//! Cost of checking and making a certificate, by committee size, scheme and key cache.
//!
//! ```text
//! cargo bench -p quorate-crypto
//! ```
//!
//! To hold the check of one BLS certificate with up to five absentees against the verification of
//! one BLS signature, measured in turns, with the ratios at the end:
//!
//! ```text
//! cargo bench -p quorate-crypto -- 'bls check'
//! ```

use criterion::{BenchmarkId, Criterion};
use quorate_crypto::{
    Bitmap, Certificate, KeyCache, Policy, Scheme, SchemeKind, Share, VotingSecret,
    committee_scheme,
};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

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
        self.all_but((self.secrets.len() - 1) / 3)
    }

    /// Shares of all but the first so many members.
    fn all_but(&self, absent: usize) -> Vec<(usize, Share)> {
        let signers = absent..self.secrets.len();
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

/// Members who did not sign.
const ABSENTEES: [usize; 4] = [0, 1, 3, 5];

/// One certificate's check beside one signature's: what the cached committee key is for. Both read
/// compressed bytes and check the subgroup; the certificate's key takes an addition an absentee.
fn one_check(criterion: &mut Criterion) {
    let committees =
        [4, 10, 40, 80, 209].map(|members| Committee::new(SchemeKind::Bls, KeyCache::On, members));
    let mut group = criterion.benchmark_group("bls check");
    let share = committees[0].secrets[0].sign(MESSAGE);
    group.bench_function("one signature", |bencher| {
        bencher.iter(|| committees[0].scheme.verify_share(black_box(MESSAGE), 0, &share));
    });
    for (committee, absent) in cases(&committees) {
        let certificate = committee.combine(&committee.all_but(absent), Policy::Aggregate);
        let name = format!("certificate, {absent} absent");
        group.bench_function(BenchmarkId::new(name, committee.secrets.len()), |bencher| {
            bencher.iter(|| committee.scheme.verify(black_box(MESSAGE), &certificate));
        });
    }
    group.finish();
}

/// The same in turns, so that a busy machine slows down both: medians, and their ratio.
fn one_check_in_turns() {
    println!("\nbls check, in turns: members, absent, signature µs, certificate µs, ratio");
    let committees =
        [4, 10, 40, 80, 209].map(|members| Committee::new(SchemeKind::Bls, KeyCache::On, members));
    for (committee, absent) in cases(&committees) {
        let share = committee.secrets[0].sign(MESSAGE);
        let certificate = committee.combine(&committee.all_but(absent), Policy::Aggregate);
        let (mut alone, mut together) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            alone.push(micros(|| committee.scheme.verify_share(black_box(MESSAGE), 0, &share)));
            together.push(micros(|| committee.scheme.verify(black_box(MESSAGE), &certificate)));
        }
        let (alone, together) = (median(alone), median(together));
        let (members, ratio) = (committee.secrets.len(), together / alone);
        println!("{members:>9} {absent:>6} {alone:>10.0} {together:>12.0} {ratio:>10.3}");
    }
}

/// Committees with a quorum's absentees at most.
fn cases(committees: &[Committee]) -> impl Iterator<Item = (&Committee, usize)> {
    let fits = |(committee, absent): &(&Committee, usize)| 3 * absent < committee.secrets.len();
    committees.iter().flat_map(|one| ABSENTEES.map(|absent| (one, absent))).filter(fits)
}

const TURNS: usize = 201;

fn micros<T: std::fmt::Debug>(check: impl Fn() -> Result<(), T>) -> f64 {
    let start = Instant::now();
    check().expect("an honest signature");
    start.elapsed().as_secs_f64() * 1e6
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
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
    one_check(&mut criterion);
    if std::env::args().any(|argument| argument == "bls check") {
        one_check_in_turns();
    }
    criterion.final_summary();
}
