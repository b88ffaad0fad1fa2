use super::{confirmation_config, probe_config, settle_s};
use crate::bench::BenchConfig;
use crate::bench::config::sample;
use quorate_report::results::beside::{Probe, Searched};

#[test]
fn runs_of_the_whole_length_do_not_share_a_folder() {
    let mut config = sample();
    assert_eq!(confirmation_config(&config, 900, 7).directory, None);
    config.directory = Some("kept".into());
    let folder = |rate, number| confirmation_config(&config, rate, number).directory;
    assert_eq!(folder(900, 7), Some("kept/run-7-at-900".into()));
    assert_ne!(folder(900, 7), folder(900, 8));
    assert_eq!(probe_config(&config, 900, 1_000.0).directory, None, "probes are not kept");
}

#[test]
fn the_more_validators_the_longer_a_committee_may_settle() {
    let of = |validators, reads| settle_s(&BenchConfig { validators, reads, ..sample() });
    assert!(of(4, 0) > 0 && of(100, 0) > of(4, 0));
    assert_eq!(of(4, 10), 0, "readers count from a moment that is known before");
    let (probe, config) = (probe_config(&sample(), 900, 1_500.0), sample());
    assert_eq!(probe.load.drain_s, 3, "two of the longest answers");
    assert_eq!(probe.longest_load().warmup_s, probe.load.warmup_s + settle_s(&config));
    assert_eq!(config.longest_load().warmup_s, config.load.warmup_s, "a fixed one is as long");
}

#[test]
fn a_search_says_how_it_was_confirmed_and_what_stopped_it() {
    let probe = |rate, whole, failed: Option<&str>| Probe {
        rate,
        whole,
        warmup_s: None,
        committed_tps: None,
        p99_ms: None,
        failed: failed.map(str::to_owned),
    };
    let mut probes = vec![
        probe(2_000, false, None),
        probe(4_000, false, Some("the backlog grew")),
        probe(3_000, false, None),
    ];
    let searched = Searched { p99_limit_ms: 100.0, probes: probes.clone(), likely: None };
    assert_eq!(searched.describe(), "3 runs; at 4,000 tx/s the backlog grew", "as it once was");
    probes.extend([probe(3_100, true, Some("sessions were full")), probe(3_000, true, None)]);
    let searched = Searched { p99_limit_ms: 100.0, probes, likely: Some([2_980, 3_120]) };
    assert_eq!(
        searched.describe(),
        "5 runs; 3,000 tx/s confirmed, 1 of 2 whole runs held; the highest is likely 2,980 to \
         3,120; at 3,100 tx/s sessions were full"
    );
}
