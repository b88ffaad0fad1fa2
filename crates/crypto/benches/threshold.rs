//! Threshold signatures beside multi-signatures of BLS, a quorum signing: making a certificate,
//! checking it, its bytes; and what threshold keys cost beforehand.
//!
//! ```text
//! cargo bench -p quorate-crypto --bench threshold -- --quick
//! ```
//!
//! The same in turns, and of each the shortest time, which whoever shares the machine cannot lower:
//!
//! ```text
//! cargo bench -p quorate-crypto --bench threshold -- 'in turns'
//! ```

use criterion::{BenchmarkId, Criterion};
use quorate_crypto::{
    Bitmap, BySharing, Certificate, Combined, Dealing, KeyCache, Policy, Scheme, SchemeKind, Share,
    VotingKey, VotingSecret, committee_scheme, deal, threshold_schemes,
};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

const MESSAGE: &[u8] =
    b"a vote for one block, about as long as a real one is: epoch, view, phase, block id";
const MEMBERS: [usize; 4] = [4, 16, 80, 209];
const KINDS: [SchemeKind; 2] = [SchemeKind::Bls, SchemeKind::BlsThreshold];

fn quorum(members: usize) -> usize {
    members - (members - 1) / 3
}

fn dealing(members: usize) -> (Dealing, BySharing<usize>) {
    let thresholds = BySharing::from_fn(|_| quorum(members));
    (deal(members, &thresholds, &[1; 32]).expect("a quorum of members"), thresholds)
}

fn keys(dealing: &Dealing) -> Vec<VotingKey> {
    dealing.secrets.iter().map(VotingSecret::public).collect()
}

struct Committee {
    secrets: Vec<VotingSecret>,
    scheme: Arc<dyn Scheme>,
}

impl Committee {
    fn new(kind: SchemeKind, members: usize) -> Self {
        if kind == SchemeKind::BlsThreshold {
            let (dealing, thresholds) = dealing(members);
            let schemes = threshold_schemes(&keys(&dealing), &dealing.groups, &thresholds);
            return Self { scheme: schemes.expect("honest keys").slow, secrets: dealing.secrets };
        }
        let seed = |member: usize| {
            let mut seed = [1; 32];
            seed[..8].copy_from_slice(&(member as u64).to_le_bytes());
            seed
        };
        let secrets: Vec<_> =
            (0..members).map(|member| VotingSecret::from_seed(kind, &seed(member))).collect();
        let keys: Vec<_> =
            secrets.iter().map(|one| (one.public(), one.prove_possession())).collect();
        let scheme = committee_scheme(kind, &keys, KeyCache::On).expect("honest keys");
        Self { secrets, scheme }
    }

    /// Shares of the smallest quorum, in which the first members are absent; so many of them bad.
    fn shares(&self, bad: usize) -> Vec<(usize, Share)> {
        let members = self.secrets.len();
        let signers = members - quorum(members)..members;
        let sign = |(at, signer): (usize, usize)| {
            let message: &[u8] = if at < bad { b"something else" } else { MESSAGE };
            (signer, self.secrets[signer].sign(message))
        };
        signers.enumerate().map(sign).collect()
    }

    /// Everybody's: threshold signatures are not interpolated then.
    fn all_shares(&self) -> Vec<(usize, Share)> {
        let secrets = self.secrets.iter().enumerate();
        secrets.map(|(signer, secret)| (signer, secret.sign(MESSAGE))).collect()
    }

    fn combine(&self, shares: &[(usize, Share)]) -> Combined {
        let nobody = Bitmap::new(self.secrets.len());
        self.scheme.combine(MESSAGE, shares, &nobody, Policy::Aggregate)
    }

    fn certificate(&self) -> Certificate {
        self.combine(&self.shares(0)).certificate.expect("honest shares")
    }
}

fn certificates(criterion: &mut Criterion) {
    for members in MEMBERS {
        for kind in KINDS {
            let committee = Committee::new(kind, members);
            let (good, one_bad) = (committee.shares(0), committee.shares(1));
            let certificate = committee.certificate();
            let mut group = criterion.benchmark_group("certificate");
            let id = |what| BenchmarkId::new(format!("{what}, {kind}"), members);
            group.bench_function(id("combine"), |bencher| {
                bencher.iter(|| committee.combine(black_box(&good)));
            });
            group.bench_function(id("combine, one share bad"), |bencher| {
                bencher.iter(|| committee.combine(black_box(&one_bad)));
            });
            group.bench_function(id("verify"), |bencher| {
                bencher.iter(|| committee.scheme.verify(black_box(MESSAGE), &certificate));
            });
            group.finish();
        }
    }
}

/// Costs of the start: dealing three sharings, and loading them with all checks.
fn beforehand(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("beforehand");
    for members in MEMBERS {
        let (dealing_once, thresholds) = dealing(members);
        let keys = keys(&dealing_once);
        group.bench_function(BenchmarkId::new("deal", members), |bencher| {
            bencher.iter(|| dealing(black_box(members)));
        });
        group.bench_function(BenchmarkId::new("load", members), |bencher| {
            bencher.iter(|| threshold_schemes(black_box(&keys), &dealing_once.groups, &thresholds));
        });
    }
    group.finish();
}

const TURNS: usize = 60;

fn in_turns() {
    println!("\nshortest of {TURNS}, ms; bls and bls-threshold of each");
    println!(
        "members quorum, combine, combine with one bad share, verify, combine all; deal, load"
    );
    for members in MEMBERS {
        let committees = KINDS.map(|kind| Committee::new(kind, members));
        let good = committees.each_ref().map(|one| one.shares(0));
        let one_bad = committees.each_ref().map(|one| one.shares(1));
        let certificates = committees.each_ref().map(Committee::certificate);
        let all = committees.each_ref().map(Committee::all_shares);
        let mut shortest = [f64::INFINITY; 8];
        let mut once = [f64::INFINITY; 2];
        let (dealing_once, thresholds) = dealing(members);
        let keys = keys(&dealing_once);
        for turn in 0..TURNS {
            for (at, one) in committees.iter().enumerate() {
                let verify = || one.scheme.verify(black_box(MESSAGE), &certificates[at]).is_ok();
                keep(&mut shortest[at], || drop(one.combine(black_box(&good[at]))));
                keep(&mut shortest[2 + at], || drop(one.combine(black_box(&one_bad[at]))));
                keep(&mut shortest[4 + at], || assert!(verify()));
                keep(&mut shortest[6 + at], || drop(one.combine(black_box(&all[at]))));
            }
            if turn % 6 == 0 {
                let load = || threshold_schemes(&keys, &dealing_once.groups, &thresholds).is_ok();
                keep(&mut once[0], || drop(dealing(black_box(members))));
                keep(&mut once[1], || assert!(load()));
            }
        }
        let times: Vec<String> =
            shortest.iter().chain(&once).map(|time| format!("{time:8.2}")).collect();
        println!("{members:>3} {:>3} {}", quorum(members), times.join(" "));
    }
}

fn keep(shortest: &mut f64, work: impl FnOnce()) {
    let start = Instant::now();
    work();
    *shortest = shortest.min(start.elapsed().as_secs_f64() * 1e3);
}

fn bytes() {
    println!(
        "\nbytes: members, quorum, bls key, bls certificate, threshold key, threshold certificate"
    );
    for members in MEMBERS {
        let size = |kind| {
            let committee = Committee::new(kind, members);
            let encoded = borsh::to_vec(&committee.certificate()).expect("memory");
            (committee.secrets[0].public().0.len(), encoded.len())
        };
        let [(key, certificate), (threshold_key, threshold_certificate)] = KINDS.map(size);
        let quorum = quorum(members);
        println!("{members} {quorum} {key} {certificate} {threshold_key} {threshold_certificate}");
    }
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    certificates(&mut criterion);
    beforehand(&mut criterion);
    if std::env::args().any(|argument| argument == "in turns") {
        in_turns();
    }
    bytes();
    criterion.final_summary();
}
