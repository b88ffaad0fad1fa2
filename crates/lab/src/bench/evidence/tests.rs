use super::{Evidence, Sample, ValidatorState, growth, on_this_machine};
use crate::bench::config::BenchConfig;
use crate::bench::table::render;
use crate::bench::watch::Tracks;
use crate::load::measure::OverTime;
use crate::load::{LoadConfig, SendTo, Shape};
use crate::status::ValidatorStatus;
use quorate_crypto::SchemeKind;
use quorate_engine::Settings;
use quorate_model::Station;
use quorate_report::Report;
use quorate_report::results::{Beside, Counts, LatencyMs, Measurement};
use quorate_storage::Durability;
use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

const RATE: u64 = 1_000;

fn config() -> BenchConfig {
    BenchConfig {
        validators: 4,
        members: None,
        redundancy: 0,
        weights: None,
        scheme: SchemeKind::Bls,
        load: LoadConfig {
            shape: Shape::Fixed,
            rate: RATE,
            outstanding: 64,
            send_to: SendTo::One,
            tx_bytes: 512,
            keys: 1_000,
            duration_s: 4,
            warmup_s: 2,
            drain_s: 10,
            sessions: None,
            bundle_delay_ms: 5,
            retry_after_ms: 2_000,
            seed: 1,
        },
        settle_s: 0,
        mix: crate::load::MixPlan::default(),
        fill: false,
        time_restart: false,
        reads: 0,
        trace: None,
        kills: vec!["0@2".parse().expect("I@T")],
        restarts: Vec::new(),
        pauses: Vec::new(),
        lies: Vec::new(),
        crowds: Vec::new(),
        changes: Vec::new(),
        descriptors: None,
        cuts: Vec::new(),
        durability: Durability::Os,
        retention_bytes: 64 << 20,
        archive: quorate_node::Archive::default(),
        service: crate::ServiceKind::Log,
        settings: Settings::default(),
        emulation: None,
        bounds: false,
        directory: None,
        executable: "quorate".into(),
    }
}

fn status(start: Instant, second: u64, id: u16) -> Option<ValidatorStatus> {
    // Validator 3 is a tenth slower than the others.
    let operations = second * if id == 3 { RATE * 9 / 10 } else { RATE };
    Some(ValidatorStatus {
        id,
        view: 10 * second,
        executed: 9 * second,
        operations,
        view_changes: u64::from(second > 4),
        certificate_bytes: 230,
        bytes_sent: 4_096 * operations,
        cpu_seconds: Some(0.25 * second as f64),
        rss_mb: Some(40.0 + second as f64),
        at: Some(start + Duration::from_secs(second)),
        ..Default::default()
    })
}

fn samples() -> Vec<Sample> {
    let start = Instant::now();
    let look = |second: u64, id: u16| {
        let killed = id == 0 && second > 4;
        if killed { None } else { status(start, second, id) }
    };
    let sample = |second: u64| Sample {
        second,
        looks: (0..4).map(|id| look(second, id)).collect(),
        answered: 0,
        lately: LatencyMs { p50: 12.0, ..Default::default() },
        client_cpu_seconds: 0.1 * second as f64,
    };
    (0..=6).map(sample).collect()
}

/// Watch of the same: the last one stands still for the first half second of each.
fn tracks() -> Tracks {
    let at = |tenth: u64, id: u64| {
        let operations = match id {
            3 => RATE * (tenth / 10) + 2 * RATE * (tenth % 10).saturating_sub(5) / 10,
            _ => RATE * tenth / 10,
        };
        (tenth as f64 / 10.0, operations)
    };
    let seen = (0..4).map(|id| (0..=60).map(|tenth| at(tenth, id)).collect()).collect();
    Tracks { interval_ms: 100, seen }
}

/// The report of a run in which one of four validators was killed after two seconds.
pub(crate) fn sample_report() -> Report {
    report(&samples())
}

fn report(samples: &[Sample]) -> Report {
    report_with(samples, ValidatorState::Killed(2.0))
}

/// Report of a run in which this became of validator 0.
fn report_with(samples: &[Sample], first: ValidatorState) -> Report {
    use ValidatorState::Healthy;
    let (config, tracks, over_time) = (config(), tracks(), OverTime::default());
    let evidence = Evidence {
        load: &config.load,
        measurement: Measurement::Bench,
        config: on_this_machine(config.to_json()),
        samples,
        last: &samples.last().expect("samples").looks,
        states: &[first, Healthy, Healthy, Healthy],
        counted: Counts { done: 3_900, dropped: 60, ..Counts::default() },
        warmup: Counts { done: 2_000, ..Counts::default() },
        goodput_tps: 987.65,
        stations_us: BTreeMap::from([(Station::Log, 9_000.0)]),
        latency: LatencyMs { mean: 13.0, p50: 12.0, p90: 20.0, p99: 40.0, max: 1_234.0 },
        disk_bytes: Some(3 << 20),
        over_time: &over_time,
        tracks: &tracks,
        started: SystemTime::UNIX_EPOCH,
        offered: 4_000,
        events: &[],
        beside: Beside::default(),
    };
    evidence.report()
}

#[test]
fn the_slowest_healthy_validator_counts() {
    let report = report(&samples());
    assert_eq!(report.committed_tps, 900.0);
    let rates: Vec<_> = report.validators.iter().map(|v| v.committed_tps).collect();
    assert_eq!(rates, [None, Some(1_000.0), Some(1_000.0), Some(900.0)]);
    assert_eq!(report.validators[0].state, "killed");
    assert_eq!(report.validators[0].height, 36);
    assert_eq!((report.dropped, report.unanswered), (60, 40));
    assert_eq!(report.view_changes, Some(1));
}

#[test]
fn nothing_that_a_liar_says_of_itself_counts() {
    let mut samples = samples();
    for sample in &mut samples {
        let liar = ValidatorStatus {
            view_changes: 1_000 * sample.second,
            bytes_sent: 1 << (30 + sample.second),
            cpu_seconds: Some(100.0 * sample.second as f64),
            rss_mb: Some(9_999.0),
            ..ValidatorStatus::default()
        };
        sample.looks[0] = Some(liar);
    }
    let report = report_with(&samples, ValidatorState::Lying(2.0));
    assert_eq!((report.validators[0].state.as_str(), report.committed_tps), ("lying", 900.0));
    assert_eq!((report.view_changes, report.cpu_seconds), (Some(1), Some(3.0)));
    assert_eq!(report.rss_mb_max, Some(46.0));
    // Bytes of 4,000 + 4,000 + 3,600 operations, over the 3,600 committed.
    assert_eq!(report.bytes_per_tx, Some(13_198.2));
    assert!(report.timeline.iter().all(|second| second.view_changes <= 1));
}

#[test]
fn only_the_window_is_priced() {
    let report = report(&samples());
    // Three validators for four seconds and one for two, a quarter second of CPU each second.
    assert_eq!(report.cpu_seconds, Some(3.5));
    assert_eq!(report.client_cpu_seconds, 0.4);
    // Bytes of 2,000 + 4,000 + 4,000 + 3,600 operations, over the 3,600 committed.
    assert_eq!(report.bytes_per_tx, Some(15_473.8));
    let seconds: Vec<i64> = report.timeline.iter().map(|second| second.second).collect();
    assert_eq!(seconds, [-1, 0, 1, 2, 3, 4]);
    assert!(report.timeline.iter().all(|second| second.committed == 900));
}

#[test]
fn stations_are_priced_by_what_those_who_ran_all_along_executed() {
    let report = report(&samples());
    // 4,000 + 4,000 + 3,600 operations of the healthy three.
    assert_eq!(report.stations_us, BTreeMap::from([("log".to_owned(), 0.78)]));
    assert_eq!(report.goodput_tps, Some(987.7));
}

#[test]
fn a_counter_that_starts_again_keeps_growing() {
    let mut samples = samples();
    for (sample, cpu) in samples.iter_mut().zip([1.0, 2.0, 3.0, 0.5, 1.5, 1.5, 2.5]) {
        sample.looks[1].as_mut().expect("a status").cpu_seconds = Some(cpu);
    }
    assert_eq!(growth(&samples, 1, |status| status.cpu_seconds.unwrap_or(0.0)), 4.5);
}

#[test]
fn the_table_fits_in_a_hundred_columns() {
    let text = render(&report(&samples()));
    let widest = text.lines().skip(2).map(|line| line.chars().count()).max();
    assert!(widest <= Some(100), "{widest:?}\n{text}");
    assert!(text.contains("committed     900 tx/s on every healthy validator"), "{text}");
    assert!(text.contains("killed at 2 s"), "{text}");
    assert!(text.contains("60 not taken by a full client · 40 never answered"), "{text}");
}

#[test]
fn the_result_has_every_documented_field() {
    let json = serde_json::to_value(report(&samples())).expect("plain data");
    for field in [
        "offered_tps",
        "committed_tps",
        "bytes_per_tx",
        "cpu_seconds",
        "rss_mb_max",
        "disk_mb",
        "view_changes",
        "certificate_bytes",
    ] {
        assert!(json[field].is_number(), "{field}");
    }
    for field in ["mean", "p50", "p90", "p99", "max"] {
        assert!(json["latency_ms"][field].is_number(), "latency_ms.{field}");
    }
    assert_eq!(json["config"]["settings"]["protocol"], "jolteon");
    assert!(json["config"]["machine"]["cores"].is_number());
    assert_eq!(json["validators"].as_array().map(Vec::len), Some(4));
}

#[test]
fn the_slowest_and_the_fastest_are_found_in_every_interval() {
    let committed = report(&samples()).committed;
    assert_eq!((committed.interval_ms, committed.slowest_tps.len()), (100, 60));
    for (index, (slowest, fastest)) in
        committed.slowest_tps.iter().zip(&committed.fastest_tps).enumerate()
    {
        let expected = if index % 10 < 5 { [0.0, 1_000.0] } else { [1_000.0, 2_000.0] };
        assert_eq!([*slowest, *fastest], expected.map(Some), "interval {index}");
    }
}
