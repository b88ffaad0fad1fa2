//! The packaged dashboard and alerts speak of the metrics that there are.

use super::*;
use crate::health::MemberContact;
use quorate_consensus::{Evidence, Ignored, MessageKind, Misbehaviour, Rule};
use quorate_types::{ReplicaId, View, Weights};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const DASHBOARD: &str = include_str!("../../../../packaging/grafana/quorate-validators.json");
const ALERTS: &str = include_str!("../../../../packaging/prometheus/quorate-alerts.yml");

/// Exported, and deliberately not on the dashboard.
const NOT_SHOWN: &[&str] = &[
    // Counted for the laboratory's reports; bytes say it better.
    "quorate_frames_received",
    "quorate_frames_sent",
];

/// One duplicate vote, and one leader that proposed two blocks.
fn status() -> Status {
    let mut status = Status::default();
    status.request_latency.observe(Duration::from_millis(3));
    status.ignored.count(MessageKind::Vote, Ignored::Duplicate);
    let (first, second) = (quorate_crypto::hash(b"one"), quorate_crypto::hash(b"other"));
    status.misbehaviour.count(&Misbehaviour {
        member: ReplicaId(2),
        rule: Rule::Equivocation,
        evidence: Evidence::Conflict { view: View(7), first, second },
    });
    status
}

/// Another member, which is connected and silent.
fn member() -> MemberStatus {
    MemberStatus {
        id: ReplicaId(1),
        weight: 1,
        votes: 3,
        certificates: 4,
        absences: 1,
        turns: 9,
        turns_failed: 2,
        contact: Some(MemberContact {
            connected: true,
            silent: true,
            silence_s: 7.5,
            round_trip_ms: Some(25.0),
        }),
    }
}

fn printed() -> String {
    let metrics = Metrics::new();
    metrics.describe(&Identity {
        member: ReplicaId(0),
        version: "0",
        network: String::new(),
        service: String::new(),
        durability: String::new(),
        weight: 1,
        members: 4,
        weight_total: 4,
        quorum: 3,
    });
    // Families show themselves once they have a member.
    metrics.drops(Peer::Replica(ReplicaId(1)), Lane::Bulk).inc();
    metrics.rejected(Peer::Replica(ReplicaId(1)), &Rejected::Stale);
    metrics.refused("rate");
    metrics.cut("test");
    metrics.barred(Peer::Replica(ReplicaId(1)));
    metrics.replaced(Peer::Replica(ReplicaId(1)));
    metrics.check_waited(Peer::Replica(ReplicaId(1)), Duration::from_millis(1));
    metrics.commit_took(Duration::from_millis(1));
    let host = HostFigures {
        peers: 1,
        outboxes: vec![(Lane::Bulk, 1, 1)],
        events: vec![("bulk", 1)],
        ..HostFigures::default()
    };
    let health = Health::starting(&Weights::equal(4));
    metrics.print(&status(), (&[member()], &health, health.is_ready()), &host)
}

/// The names of all metrics, without the endings that samples have.
fn exported(text: &str) -> BTreeSet<String> {
    let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    names.filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect()
}

/// The names of samples, as queries use them.
fn samples(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| Some(line.split(['{', ' ']).next()?.to_owned())).collect()
}

/// Every word of a text that begins as our metrics do.
fn named(text: &str) -> BTreeSet<String> {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let words = text.split(|c| !word(c)).filter(|word| word.starts_with("quorate_"));
    words.map(str::to_owned).collect()
}

/// The queries of a dashboard, of all its panels and variables.
fn queries(value: &serde_json::Value, found: &mut String) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                match value.as_str() {
                    Some(text) if ["expr", "definition", "query"].contains(&key.as_str()) => {
                        found.push_str(text);
                        found.push('\n');
                    }
                    _ => queries(value, found),
                }
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| queries(value, found)),
        _ => {}
    }
}

fn dashboard_queries() -> String {
    let mut found = String::new();
    queries(&serde_json::from_str(DASHBOARD).expect("the dashboard is JSON"), &mut found);
    found
}

#[test]
fn every_metric_on_the_dashboard_is_exported() {
    let samples = samples(&printed());
    let shown = named(&dashboard_queries());
    assert!(shown.len() > 20, "{shown:?}");
    let unknown: Vec<_> = shown.difference(&samples).collect();
    assert!(unknown.is_empty(), "the dashboard asks for {unknown:?}; there are {samples:?}");
}

#[test]
fn every_exported_metric_is_on_the_dashboard_or_left_out_on_purpose() {
    let shown = named(&dashboard_queries());
    let is_shown = |name: &String| {
        shown.iter().any(|shown| {
            let ending = shown.strip_prefix(name.as_str());
            ending.is_some_and(|e| ["", "_total", "_bucket", "_sum", "_count"].contains(&e))
        })
    };
    for name in exported(&printed()) {
        let left_out = NOT_SHOWN.contains(&name.as_str());
        assert!(
            is_shown(&name) != left_out,
            "{name}: put it on packaging/grafana/quorate-validators.json or into NOT_SHOWN, not both"
        );
    }
}

#[test]
fn every_metric_in_the_alerts_is_exported() {
    let samples = samples(&printed());
    let expressions: String =
        ALERTS.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    let asked = named(&expressions);
    assert!(asked.len() > 8, "{asked:?}");
    let unknown: Vec<_> = asked.difference(&samples).collect();
    assert!(unknown.is_empty(), "the alerts ask for {unknown:?}; there are {samples:?}");
}

#[test]
fn metric_names_say_their_unit() {
    for name in exported(&printed()) {
        let gauge_of_time =
            name.ends_with("_ms") || name.ends_with("_mb") || name.ends_with("_kib");
        assert!(!gauge_of_time, "{name}: Prometheus counts in seconds and bytes");
    }
}

#[test]
fn the_host_is_described() {
    let text = printed();
    for line in [
        "quorate_committee_quorum 3",
        "quorate_committee_weight 4",
        "quorate_peers_connected 1",
        "quorate_peer_connected{peer=\"r1\"} 1",
        "quorate_peer_silent{peer=\"r1\"} 1",
        "quorate_peer_silence_seconds{peer=\"r1\"} 7.5",
        "quorate_peer_round_trip_seconds{peer=\"r1\"} 0.025",
        "quorate_member_votes_ratio{peer=\"r1\"} 0.75",
        "quorate_member_turns_total{peer=\"r1\"} 9",
        "quorate_member_turns_failed_total{peer=\"r1\"} 2",
        "quorate_has_quorum 0",
        "quorate_ready 0",
        "quorate_request_latency_seconds_bucket{le=\"0.002\"} 0",
        "quorate_request_latency_seconds_bucket{le=\"0.004\"} 1",
        "quorate_request_latency_seconds_bucket{le=\"+Inf\"} 1",
        "quorate_request_latency_seconds_sum 0.003",
        "quorate_outbox_bytes{lane=\"bulk\"} 1",
        "quorate_queue_events{queue=\"bulk\"} 1",
        "quorate_messages_ignored_total{message=\"vote\",reason=\"duplicate\"} 1",
        "quorate_requests_refused_total{reason=\"rate\"} 1",
        "quorate_misbehaviour_total{peer=\"r2\",rule=\"equivocation\"} 1",
    ] {
        assert!(text.lines().any(|printed| printed == line), "{line}\n{text}");
    }
    let now = Process::now();
    assert!(now.resident_bytes.is_some_and(|bytes| bytes > 1 << 20), "{now:?}");
    assert!(now.open_files.is_some_and(|files| files > 2), "{now:?}");
}

#[test]
fn the_disk_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("log")).unwrap();
    std::fs::write(folder.path().join("log/segment"), [0; 4_096]).unwrap();
    std::fs::write(folder.path().join("state"), [0; 100]).unwrap();
    let disk = Disk::of(folder.path());
    assert_eq!((disk.log_bytes, disk.state_bytes), (4_096, 100));
    assert!(disk.free_bytes.is_some_and(|bytes| bytes > 0));
}

/// OpenMetrics: each family is described once, before its samples, which lie together; counters end
/// in `_total`; and the text ends as it says.
#[test]
fn what_is_printed_is_open_metrics() {
    let text = printed();
    let (families, end) = text.rsplit_once("# EOF\n").expect("an end");
    assert_eq!(end, "");
    let mut described = BTreeSet::new();
    let (mut family, mut kind, mut helped) = (String::new(), String::new(), String::new());
    for line in families.lines() {
        if let Some(said) = line.strip_prefix("# HELP ") {
            helped = said.split(' ').next().expect("a name").to_owned();
        } else if let Some((name, of_kind)) =
            line.strip_prefix("# TYPE ").and_then(|said| said.split_once(' '))
        {
            assert!(described.insert(name.to_owned()), "{name} is described twice");
            assert_eq!(helped, name);
            (family, kind) = (name.to_owned(), of_kind.to_owned());
        } else {
            let sample = line.split(['{', ' ']).next().expect("a name");
            let endings: &[&str] = match kind.as_str() {
                "counter" => &["_total"],
                "histogram" => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            let belongs = sample.strip_prefix(&family).is_some_and(|end| endings.contains(&end));
            assert!(belongs, "{sample} is no sample of the {kind} {family}");
        }
    }
    let lines = |part: &str| families.lines().filter(|line| line.contains(part)).count();
    assert_eq!(lines("le=\"+Inf\""), lines("_seconds_count"), "every histogram counts all");
}

/// `promtool test rules` runs them (`.ci/alerts`).
#[test]
fn every_alert_has_a_test_in_which_it_fires_and_one_in_which_it_does_not() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/prometheus/tests");
    let files = fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
    let texts: Vec<String> = files.map(|file| fs::read_to_string(file).expect("text")).collect();
    let names = ALERTS.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    let mut alerts = 0;
    for name in names {
        let asks = format!("alertname: {name}\n");
        let cases = texts.iter().flat_map(|text| text.split(&asks).skip(1));
        let quiet: Vec<bool> =
            cases.map(|case| case.trim_start().starts_with("exp_alerts: []")).collect();
        assert!(quiet.contains(&true) && quiet.contains(&false), "{name}: {quiet:?}");
        alerts += 1;
    }
    assert!(alerts > 20, "{alerts} alerts were found");
}
