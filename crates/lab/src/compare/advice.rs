//! One recommended line for each size, and its reason.

use super::{Candidate, ComparisonSpec, Finding};
use crate::experiment::figure::number;
use quorate_crypto::{Policy, SchemeKind};
use quorate_report::text::{milliseconds, thousands};
use serde::Serialize;

/// Latencies closer than this share are alike.
const LATENCY_ALIKE: f64 = 0.05;
/// Shares of a processor closer than so many per cent of it are alike.
const CPU_ALIKE: f64 = 5.0;

/// Recommendation for a size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// Members of the committee.
    pub validators: u16,
    /// Recommended candidate; absent when nobody keeps up.
    pub candidate: Option<Candidate>,
    /// Measure that decided between candidates.
    pub ground: Ground,
    /// The recommendation as a line of text.
    pub line: String,
}

/// Measure that decides between candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ground {
    /// There was one candidate, or none that keeps up.
    NoChoice,
    /// It takes more operations, or alone takes as many as were asked for.
    Throughput,
    /// It answers more quickly.
    Latency,
    /// It leaves more of the processor.
    Processor,
    /// Its certificates are smaller.
    CertificateBytes,
}

/// A recommendation for each size, in the spec's order. Candidates are held against one another
/// by throughput, then by latency at the common rate, then by the processor, then by bytes; those
/// that are alike by one go on to the next: by throughput where the intervals of their knees meet.
#[must_use]
pub fn advise(spec: &ComparisonSpec, findings: &[Finding]) -> Vec<Advice> {
    let of_size = |size: &u16| {
        let all: Vec<&Finding> = findings.iter().filter(|one| one.validators == *size).collect();
        one_size(spec, *size, &all)
    };
    spec.sizes.iter().map(of_size).collect()
}

fn one_size(spec: &ComparisonSpec, validators: u16, all: &[&Finding]) -> Advice {
    let candidates: Vec<&Finding> = all.iter().copied().filter(|one| one.knee_tps > 0.0).collect();
    let Some((winner, lost)) = winner(spec, &candidates) else {
        let line = format!("n = {validators}: none keeps up with any load that was tried");
        return Advice { validators, candidate: None, ground: Ground::NoChoice, line };
    };
    // The other scheme's best says more than this one's other policy.
    let other = rival(&candidates, winner).map(|other| (other, lost_by(&lost, other)));
    let line =
        format!("n = {validators}: {}: {}", name(winner.candidate), reason(spec, winner, other));
    let ground = other.map_or(Ground::NoChoice, |(_, ground)| ground);
    Advice { validators, candidate: Some(winner.candidate), ground, line }
}

/// Measures by which candidates are compared: less is better, and near the least is alike.
type Measure = (Ground, fn(&Finding) -> f64, fn(f64, f64) -> bool);

/// Candidates that lost, each with the measure by which it did.
type Lost<'a> = Vec<(&'a Finding, Ground)>;

/// By what a candidate lost; [`Ground::NoChoice`] for one that is alike in everything.
fn lost_by(lost: &Lost<'_>, candidate: &Finding) -> Ground {
    let found = lost.iter().find(|(one, _)| one.candidate == candidate.candidate);
    found.map_or(Ground::NoChoice, |(_, ground)| *ground)
}

fn winner<'a>(
    spec: &ComparisonSpec,
    candidates: &[&'a Finding],
) -> Option<(&'a Finding, Lost<'a>)> {
    // By what was offered: what is committed of it varies.
    let best = candidates.iter().map(|one| one.kept_rate).max().unwrap_or(0) as f64;
    let may_be_best = |one: &Finding| one.limit_tps.is_none_or(|limit| limit > best);
    // All were measured at the rate that was asked for: those that kept up have a latency there.
    let enough = spec.rate.is_some() && candidates.iter().any(|one| one.latency_ms.is_some());
    let takes = |one: &&Finding| match enough {
        true => one.latency_ms.is_some(),
        false => may_be_best(one),
    };
    let (mut left, out): (Vec<&Finding>, Vec<&Finding>) =
        candidates.iter().copied().partition(takes);
    let mut lost: Lost<'_> = out.into_iter().map(|one| (one, Ground::Throughput)).collect();
    let measures: [Measure; 3] = [
        (
            Ground::Latency,
            |one| one.latency_ms.unwrap_or(f64::MAX),
            |value, least| value <= least * (1.0 + LATENCY_ALIKE),
        ),
        (
            Ground::Processor,
            |one| one.cpu_share.unwrap_or(f64::MAX),
            |value, least| value <= least + CPU_ALIKE,
        ),
        (Ground::CertificateBytes, |one| one.certificate_bytes, |value, least| value <= least),
    ];
    for (ground, value, alike) in measures {
        let least = left.iter().map(|one| value(one)).fold(f64::MAX, f64::min);
        let out;
        (left, out) = left.into_iter().partition(|one| alike(value(one), least));
        lost.extend(out.into_iter().map(|one| (one, ground)));
    }
    // Those that are alike in everything: the first that was asked for.
    left.first().map(|first| (*first, lost))
}

/// The best of the other scheme, or else of the other policies.
fn rival<'a>(candidates: &[&'a Finding], winner: &Finding) -> Option<&'a Finding> {
    let best = |found: &mut dyn Iterator<Item = &&'a Finding>| {
        found.max_by(|a, b| a.knee_tps.total_cmp(&b.knee_tps)).copied()
    };
    let scheme = winner.candidate.scheme;
    best(&mut candidates.iter().filter(|one| one.candidate.scheme != scheme))
        .or_else(|| best(&mut candidates.iter().filter(|one| one.candidate != winner.candidate)))
}

fn reason(spec: &ComparisonSpec, winner: &Finding, rival: Option<(&Finding, Ground)>) -> String {
    let bound = winner.bound.as_ref().map(|bound| format!(", bound by {bound}"));
    let takes = format!("takes {}{}", rate_of(winner), bound.unwrap_or_default());
    let enough = match spec.rate {
        Some(rate) if winner.latency_ms.is_none() => {
            format!(", not the {} asked for, which nobody takes", thousands(rate))
        }
        _ => String::new(),
    };
    let at = format!(" at {} tx/s", thousands(winner.common_rate));
    let latency = winner.latency_ms.map(|ms| format!(", {} ms{at}", milliseconds(ms)));
    let cpu =
        winner.cpu_share.map(|share| format!(", {} % of its cores there", number(share.round())));
    let facts = format!(
        "{takes}{enough}{}{}, {} B a certificate",
        latency.unwrap_or_default(),
        cpu.unwrap_or_default(),
        thousands(winner.certificate_bytes as u64),
    );
    let Some((rival, ground)) = rival else { return facts };
    let tie = if spec.rate.is_none() && ground != Ground::Throughput {
        format!(
            "a tie in throughput with {} ({} against {}), ",
            name(rival.candidate),
            interval(winner),
            interval(rival)
        )
    } else {
        String::new()
    };
    format!("{facts}; {tie}{}", against(winner, rival, ground))
}

/// Measure that decided, and the best other candidate's value.
fn against(winner: &Finding, rival: &Finding, ground: Ground) -> String {
    let who = name(rival.candidate);
    let other = |value: Option<f64>, unit: &str| {
        value.map_or("does not keep up there".to_owned(), |value| {
            format!("{} {unit}", milliseconds(value))
        })
    };
    match ground {
        Ground::Throughput => {
            let ratio = winner.knee_tps / rival.knee_tps.max(1.0);
            format!("chosen for throughput, ×{ratio:.2} of {who} ({})", rate_of(rival))
        }
        Ground::NoChoice => format!("{who} is alike in all that was measured"),
        Ground::Latency => {
            format!("chosen for latency: {who} has {}", other(rival.latency_ms, "ms"))
        }
        Ground::Processor => {
            format!("chosen for its processor: {who} has {}", other(rival.cpu_share, "% busy"))
        }
        Ground::CertificateBytes => format!(
            "alike in throughput, latency and processor, chosen for bytes: {who} has {} B a certificate",
            thousands(rival.certificate_bytes as u64)
        ),
    }
}

/// The highest rate that one takes; at least that, where nothing beyond was tried.
fn rate_of(finding: &Finding) -> String {
    let least = if finding.limit_tps.is_none() { "at least " } else { "" };
    format!("{least}{} tx/s", thousands(finding.knee_tps as u64))
}

/// Interval in which the highest rate is that one takes.
pub(super) fn interval(finding: &Finding) -> String {
    let least = thousands(finding.kept_rate);
    match finding.limit_tps {
        Some(limit) => format!("{least}–{}", thousands(limit as u64)),
        None => format!("≥ {least}"),
    }
}

/// A candidate in words.
#[must_use]
pub(super) fn name(candidate: Candidate) -> String {
    let how = match (candidate.scheme, candidate.verify) {
        (_, Policy::Each) => "each vote alone",
        // Ed25519's shares do not add up: the policy then is to check them as a batch.
        (SchemeKind::Bls, Policy::Aggregate) => "aggregate first",
        _ => "in batches",
    };
    let scheme = if candidate.scheme == SchemeKind::Bls { "BLS" } else { "Ed25519" };
    format!("{scheme}, {how}")
}
