mod parts;

use super::{
    Candidate, Comparison, ComparisonSpec, Finding, Ground, Means, advise, compare, experiment,
    search, table,
};
use crate::experiment::{Measured, RunError, Runner, Setup, figure};
use quorate_crypto::{Policy, SchemeKind};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A committee that is one queue: it takes so much, and its latency grows as it fills.
struct Queue {
    asked: AtomicUsize,
}

impl Queue {
    fn takes(setup: &Setup) -> f64 {
        let n = f64::from(setup.validators);
        match (setup.scheme, setup.settings.verify) {
            (SchemeKind::Ed25519, _) => 1_000_000.0 / n,
            (_, Policy::Each) => 200_000.0 / n,
            (_, _) => 100_000.0 - 500.0 * n,
        }
    }
}

impl Runner for Queue {
    fn is_parallel(&self) -> bool {
        true
    }

    fn estimate_s(&self, _: &Setup) -> f64 {
        1.0
    }

    fn run(&self, setup: &Setup, _: &AtomicBool) -> Result<Measured, RunError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let (rate, takes) = (setup.rate as f64, Self::takes(setup));
        let filled = rate / takes;
        let latency = if filled < 1.0 { 100.0 + 20.0 * filled } else { 5_000.0 };
        let bytes =
            if setup.scheme == SchemeKind::Bls { 60.0 } else { 64.0 * f64::from(setup.validators) };
        let numbers = [
            ("committed_tps", rate.min(takes)),
            ("latency_one_p50_ms", latency),
            ("latency_one_p99_ms", 2.0 * latency),
            ("busiest_share", (100.0 * filled).min(100.0)),
            ("certificate_bytes", bytes),
        ];
        let numbers = numbers.map(|(name, number)| (name.to_owned(), number)).into();
        Ok(Measured { numbers, ..Measured::default() })
    }
}

fn candidate(scheme: SchemeKind, verify: Policy) -> Candidate {
    Candidate { scheme, verify }
}

fn spec(sizes: &[u16], rate: Option<u64>) -> ComparisonSpec {
    let candidates = vec![
        candidate(SchemeKind::Ed25519, Policy::Aggregate),
        candidate(SchemeKind::Bls, Policy::Aggregate),
        candidate(SchemeKind::Bls, Policy::Each),
    ];
    ComparisonSpec { sizes: sizes.to_vec(), candidates, rate, base: Setup::default() }
}

fn means<'a>(queue: &'a Queue, machine: &'a Value, interrupted: &'a AtomicBool) -> Means<'a> {
    Means { runner: queue, machine, threads: 2, progress: &|_, _| {}, interrupted }
}

fn answer(spec: &ComparisonSpec) -> Comparison {
    let queue = Queue { asked: AtomicUsize::new(0) };
    let machine = json!({ "commit": "c0ffee", "cpu": "a cpu", "cores": 2, "optimised": true });
    let no = AtomicBool::new(false);
    let comparison = compare(spec, &means(&queue, &machine, &no)).unwrap();
    assert_eq!(comparison.records.len(), queue.asked.into_inner(), "every point is kept");
    comparison
}

#[test]
fn each_size_gets_the_candidate_that_takes_most() {
    let comparison = answer(&spec(&[8, 40], None));
    assert_eq!(comparison.findings.len(), 6);
    // 1,000,000 ÷ 8 against 96,000; 25,000 against 80,000.
    let chosen: Vec<_> =
        comparison.advice.iter().map(|one| one.candidate.unwrap().scheme).collect();
    assert_eq!(chosen, [SchemeKind::Ed25519, SchemeKind::Bls]);
    assert!(comparison.advice.iter().all(|one| one.ground == Ground::Throughput));
    for (finding, takes) in comparison.findings.iter().zip([125e3, 96e3, 25e3, 25e3, 80e3, 5e3]) {
        let off = finding.knee_tps / takes;
        assert!((0.9..=1.06).contains(&off), "{finding:?} is {off} of {takes}");
    }
    let line = &comparison.advice[1].line;
    assert!(line.starts_with("n = 40: BLS, aggregate first: takes "), "{line}");
    assert!(line.contains("chosen for throughput, ×3."), "{line}");
    assert!(line.contains("of Ed25519, in batches (2"), "{line}");
}

#[test]
fn under_a_rate_that_several_take_less_decides() {
    let comparison = answer(&spec(&[8], Some(30_000)));
    // Both take it at about the same latency; Ed25519 is filled to 24 % by it, BLS to 31 %.
    let advice = &comparison.advice[0];
    assert_eq!(advice.candidate.unwrap().scheme, SchemeKind::Ed25519);
    assert_eq!(advice.ground, Ground::Processor);
    assert!(comparison.findings.iter().all(|finding| finding.common_rate == 30_000));
}

fn finding(scheme: SchemeKind, knee_tps: f64, latency_ms: f64, cpu: f64, bytes: f64) -> Finding {
    Finding {
        validators: 8,
        candidate: candidate(scheme, Policy::Aggregate),
        knee_tps,
        kept_rate: knee_tps as u64,
        limit_tps: Some(knee_tps * 1.05),
        bound: None,
        idle_ms: 100.0,
        common_rate: 1_000,
        latency_ms: Some(latency_ms),
        latency_p99_ms: Some(latency_ms),
        cpu_share: Some(cpu),
        certificate_bytes: bytes,
    }
}

#[test]
fn alike_by_one_measure_is_decided_by_the_next() {
    use SchemeKind::{Bls, Ed25519};
    let ask = spec(&[8], None);
    let cases = [
        (
            finding(Ed25519, 1e5, 100.0, 10.0, 500.0),
            finding(Bls, 8e4, 50.0, 5.0, 60.0),
            Ed25519,
            Ground::Throughput,
        ),
        (
            finding(Ed25519, 1e5, 100.0, 10.0, 500.0),
            finding(Bls, 9.9e4, 50.0, 50.0, 60.0),
            Bls,
            Ground::Latency,
        ),
        (
            finding(Ed25519, 1e5, 100.0, 10.0, 500.0),
            finding(Bls, 9.9e4, 101.0, 50.0, 60.0),
            Ed25519,
            Ground::Processor,
        ),
        (
            finding(Ed25519, 1e5, 100.0, 10.0, 500.0),
            finding(Bls, 9.9e4, 101.0, 12.0, 60.0),
            Bls,
            Ground::CertificateBytes,
        ),
    ];
    for (a, b, scheme, ground) in cases {
        let advice = advise(&ask, &[a, b]);
        assert_eq!(advice[0].candidate.unwrap().scheme, scheme, "{}", advice[0].line);
        assert_eq!(advice[0].ground, ground);
    }
}

/// Two policies of one scheme that are alike in everything: the scheme was still chosen for
/// something.
#[test]
fn what_decided_is_said_even_if_two_of_one_scheme_remain() {
    let bls = finding(SchemeKind::Bls, 9.9e4, 100.0, 10.0, 60.0);
    let each = Finding { candidate: candidate(SchemeKind::Bls, Policy::Each), ..bls.clone() };
    let ed25519 = finding(SchemeKind::Ed25519, 1e5, 100.0, 10.0, 500.0);
    let advice = advise(&spec(&[8], None), &[ed25519, bls.clone(), each]);
    assert_eq!(advice[0].candidate, Some(bls.candidate), "the first that was asked for");
    assert_eq!(advice[0].ground, Ground::CertificateBytes);
    assert!(advice[0].line.ends_with("Ed25519, in batches has 500 B a certificate"));
}

/// What one did not keep up with and another did is no tie, whatever was committed of it.
#[test]
fn intervals_that_only_touch_are_no_tie() {
    let ask = spec(&[8], None);
    let better =
        Finding { knee_tps: 19_900.0, ..finding(SchemeKind::Bls, 20_000.0, 90.0, 9.0, 60.0) };
    let refused = finding(SchemeKind::Ed25519, 19_000.0, 50.0, 1.0, 300.0);
    let refused = Finding { limit_tps: Some(20_000.0), ..refused };
    let advice = &advise(&ask, &[refused.clone(), better.clone()])[0];
    assert_eq!((advice.candidate, advice.ground), (Some(better.candidate), Ground::Throughput));
    let open = Finding { limit_tps: Some(20_100.0), ..refused };
    let advice = &advise(&ask, &[open.clone(), better])[0];
    assert_eq!((advice.candidate, advice.ground), (Some(open.candidate), Ground::Latency));
    assert!(advice.line.contains("a tie in throughput with BLS"), "{}", advice.line);
    assert!(advice.line.contains("(19,000–20,100 against 20,000–21,000)"), "{}", advice.line);
}

#[test]
fn nobody_is_recommended_when_nobody_keeps_up() {
    let ask = spec(&[8], Some(1_000_000));
    let none = advise(&ask, &[finding(SchemeKind::Bls, 0.0, 1.0, 1.0, 1.0)]);
    assert_eq!((none[0].candidate, none[0].ground), (None, Ground::NoChoice));
    // At the rate that was asked for it did not keep up, and so has no latency there.
    let few = Finding { latency_ms: None, ..finding(SchemeKind::Bls, 5e3, 1.0, 1.0, 1.0) };
    let few = advise(&ask, &[few]);
    assert!(
        few[0].line.contains("not the 1,000,000 asked for, which nobody takes"),
        "{}",
        few[0].line
    );
}

#[test]
fn a_comparison_is_a_table_and_a_page() {
    let ask = spec(&[8, 40], None);
    let comparison = answer(&ask);
    let text = table(&comparison);
    assert_eq!(text.lines().count(), 1 + 6, "{text}");
    assert_eq!(text.matches('◀').count(), 2, "one recommended line for each size: {text}");
    let (experiment, records) = experiment(&ask, &comparison);
    assert_eq!(experiment.notes.len(), 2);
    let plots = experiment.figures.iter().flat_map(|shown| figure::plots(shown, &records));
    let plots: Vec<_> = plots.collect();
    let names: Vec<&str> = plots.iter().map(|plot| &*plot.name).collect();
    assert_eq!(names, ["knee", "latency", "processor", "certificate", "n8", "n40"]);
    assert_eq!(plots[0].dots.len(), 3, "a line for each candidate");
    assert_eq!(plots[0].dots[0].points.len(), 2, "a point for each size");
}

#[test]
fn an_interrupted_comparison_ends() {
    let queue = Queue { asked: AtomicUsize::new(0) };
    let (machine, yes) = (json!({}), AtomicBool::new(true));
    let ended = compare(&spec(&[4], None), &means(&queue, &machine, &yes));
    assert_eq!(ended.map(|_| ()).unwrap_err(), RunError::Interrupted);
}

#[test]
fn a_line_names_what_the_rival_lost_by_and_not_what_decided_among_others() {
    use SchemeKind::{Bls, Ed25519};
    let ask = spec(&[8], None);
    let each = |mut one: Finding| {
        one.candidate.verify = Policy::Each;
        one
    };
    // The other way of voting lost by latency, BLS before that by throughput: it is quicker at
    // that.
    let findings = [
        finding(Ed25519, 100_000.0, 500.0, 20.0, 300.0),
        each(finding(Ed25519, 97_000.0, 540.0, 20.0, 300.0)),
        finding(Bls, 60_000.0, 430.0, 20.0, 60.0),
    ];
    let advice = &advise(&ask, &findings)[0];
    assert_eq!(advice.ground, Ground::Throughput);
    assert!(advice.line.contains("chosen for throughput, ×1.67 of BLS"), "{}", advice.line);
    // Alike in everything: the first that was asked for, and no reason is made up.
    let findings =
        [finding(Ed25519, 100_000.0, 500.0, 20.0, 60.0), finding(Bls, 98_000.0, 500.0, 20.0, 60.0)];
    let advice = &advise(&ask, &findings)[0];
    assert_eq!(advice.candidate.unwrap().scheme, Ed25519);
    assert!(
        advice.line.ends_with("BLS, aggregate first is alike in all that was measured"),
        "{}",
        advice.line
    );
}

#[test]
fn a_rate_that_is_kept_up_with_is_taken_though_the_search_ends_a_little_below() {
    let ask = spec(&[8], Some(30_000));
    let findings = [
        finding(SchemeKind::Ed25519, 29_500.0, 100.0, 90.0, 300.0),
        Finding { latency_ms: None, ..finding(SchemeKind::Bls, 20_000.0, 100.0, 90.0, 60.0) },
    ];
    let advice = &advise(&ask, &findings)[0];
    assert!(!advice.line.contains("which nobody takes"), "{}", advice.line);
    assert_eq!(advice.ground, Ground::Throughput);
}

#[test]
fn what_nothing_beyond_was_tried_of_is_said_to_be_a_least() {
    let comparison = answer(&spec(&[2], None));
    assert!(comparison.findings[0].limit_tps.is_none(), "500,000 a second, more than is tried");
    assert!(comparison.advice[0].line.contains("takes at least 400,000 tx/s"));
}

/// Whatever its numbers are, a run that doubts itself recommends nothing.
#[test]
fn a_rate_in_doubt_is_not_kept_up_with() {
    let numbers = [("committed_tps", 1_000.0), ("latency_one_p50_ms", 10.0)];
    let numbers = numbers.map(|(name, number)| (name.to_owned(), number)).into();
    let sure = Measured { numbers, ..Measured::default() };
    assert!(search::kept_up(&sure, 1_000, 10.0));
    let details = json!({ "doubts": ["the backlog grows"] });
    assert!(!search::kept_up(&Measured { details, ..sure }, 1_000, 10.0));
}
